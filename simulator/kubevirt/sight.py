"""What is known of one VM and of its VMI: the newest of what the watches and our own writes returned.

Must never go back: an older resourceVersion, or an object that is known to be gone, is ignored.
"""

from simulator.kubevirt.objects import VM, VMI


class Sight:
    """`raw` is the VM as our last write returned it, kept only while a script runs."""

    __slots__ = ("_gone", "name", "namespace", "raw", "vm", "vmi")

    def __init__(self, namespace: str, name: str) -> None:
        self.namespace = namespace
        self.name = name
        self.vm: VM | None = None
        self.vmi: VMI | None = None
        self.raw: bytes | None = None
        self._gone: set[str] = set()

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def versions(self) -> tuple[str, str]:
        """Changes with every write that changed anything."""
        return (
            self.vm.metadata.resource_version if self.vm else "",
            self.vmi.metadata.resource_version if self.vmi else "",
        )

    def see(self, seen: VM | VMI) -> bool:
        """Whether this was news."""
        known = self.vm if isinstance(seen, VM) else self.vmi
        if seen.metadata.uid in self._gone or not _newer(seen, known):
            return False
        if isinstance(seen, VM):
            self.vm, self.raw = seen, None
        else:
            self.vmi = seen
        return True

    def lose(self, lost: VM | VMI) -> None:
        """It is gone, as far as we know before the watch says so."""
        uid = lost.metadata.uid
        self._gone.add(uid)
        if self.vm is not None and self.vm.metadata.uid == uid:
            self.vm, self.raw = None, None
        if self.vmi is not None and self.vmi.metadata.uid == uid:
            self.vmi = None

    def confirm_gone(self, uid: str) -> None:
        """The watch said so: no older event of it can follow."""
        self._gone.discard(uid)

    @property
    def empty(self) -> bool:
        return self.vm is None and self.vmi is None and not self._gone


def _newer(seen: VM | VMI, known: VM | VMI | None) -> bool:
    return known is None or int(seen.metadata.resource_version) > int(known.metadata.resource_version)
