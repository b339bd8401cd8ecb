"""All that is watched, sorted by namespace: four stores, their reflectors, and whom each change concerns.

It watches everything, or the namespaces that it was told: then a set of reflectors for each feeds the stores.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from controller.claims.desk import Desk
from controller.claims.execute import CLAIM_PATH, VM_PATH
from controller.claims.loop import Namespace
from controller.claims.objects import Claim, misfit
from controller.claims.scope import AnyReflector, Scope
from controller.kube.client import ApiClient
from controller.kube.paths import collection
from controller.kube.reflector import Reflector
from controller.kube.store import Store
from controller.machines.objects import Node, VirtualMachine, VirtualMachineInstance, gone
from controller.machines.readiness import node_trouble
from controller.metrics import FOREIGN
from crds import names

VMI_PATH = VM_PATH.replace("virtualmachines", "virtualmachineinstances")

TABLES = (
    *("claim", "vm", "vmi", "pool", "line", "waiting", "inventory", "instance", "guest", "carrier", "named"),
    *("foreign", "in hand", "alarm", "refreshed", "gone node"),
)
"""What is kept in memory, as `World.held` counts it."""


_GONE_NODES = 1000  # at least so many of the last ones that went are remembered


class World:
    """What this process sees of the cluster. Nothing is done about it until `begin`.

    `spaces` only grows: by one for each namespace in which there ever was a pool, a claim or a VM of ours. An
    empty one costs a few kilobytes, and tasks and loops that are ending may still hold it.
    """

    def __init__(self, client: ApiClient, max_hand_overs: int, namespaces: tuple[str, ...] = ()) -> None:
        self.client = client
        self.desk = Desk(max_hand_overs)
        self.spaces: dict[str, Namespace] = {}
        self.claims: Store[Claim] = Store(self._claim_changed)
        self.vms: Store[VirtualMachine] = Store(self._vm_changed)
        self.vmis: Store[VirtualMachineInstance] = Store(self._vmi_changed)
        self.nodes: Store[Node] = Store(self._node_changed)
        self._node_by_name: dict[str, Node] = {}
        self._gone_nodes: dict[str, None] = {}
        self._unserved: set[tuple[str, str]] = set()
        self._begun: set[str] = set()
        self.node_reflector = Reflector(client, "/api/v1/nodes", Node, self.nodes, optional=True)
        self.scopes = [self._scope(each) for each in namespaces or ("",)]

    def _scope(self, namespace: str) -> Scope:
        """One reflector for each kind; VMs and guests by our label, so that all others cost nothing."""
        ours = names.LABEL_POOL_UID
        claims, vms, vmis = (collection(path, namespace) for path in (CLAIM_PATH, VM_PATH, VMI_PATH))
        return Scope(
            namespace,
            (
                Reflector(self.client, claims, Claim, self.claims, namespace=namespace, misfit=misfit),
                Reflector(
                    self.client,
                    vms,
                    VirtualMachine,
                    self.vms,
                    namespace=namespace,
                    label_selector=ours,
                    on_served=self._serves("virtualmachines", namespace),
                ),
                Reflector(
                    self.client,
                    vmis,
                    VirtualMachineInstance,
                    self.vmis,
                    namespace=namespace,
                    label_selector=ours,
                    on_served=self._serves("virtualmachineinstances", namespace),
                ),
            ),
        )

    @property
    def reflectors(self) -> list[AnyReflector]:
        return [self.node_reflector, *(each for scope in self.scopes for each in scope.reflectors)]

    def begin(self, scope: str = "") -> None:
        """The lease is ours and the stores are as new as that: go to work in this namespace, or in all."""
        self.desk.active = True
        self._begun.add(scope)
        for space in list(self.spaces.values()):
            if scope in {"", space.name}:
                space.begin()

    def stop(self) -> None:
        """Start nothing any more; what is under way is cancelled."""
        self.desk.active = False
        for task in list(self.desk.tasks):
            task.cancel()

    def held(self) -> Mapping[str, int]:
        """How many entries each of TABLES has, over all namespaces."""
        found = Counter(dict.fromkeys(TABLES, 0))
        found.update(
            {
                "claim": len(self.claims),
                "vm": len(self.vms),
                "vmi": len(self.vmis),
                "gone node": len(self._gone_nodes),
            }
        )
        for each in self.spaces.values():
            found.update(each.held())
        return found

    def space(self, namespace: str) -> Namespace:
        found = self.spaces.get(namespace)
        if found is None:
            found = Namespace(
                namespace, self.client, self.desk, self.vms, self.claims, self._node_by_name.get
            )
            found.begun = not self._begun.isdisjoint({"", namespace})
            self.spaces[namespace] = found
        return found

    def _serves(self, plural: str, namespace: str = "") -> Callable[[bool], None]:
        """Whom to tell when one of KubeVirt's kinds goes or comes."""

        def told(served: bool) -> None:  # noqa: FBT001 - the one thing that it is told
            (self._unserved.discard if served else self._unserved.add)((plural, namespace))
            before, self.desk.missing = (
                self.desk.missing,
                kubevirt_missing({each for each, _ in self._unserved}),
            )
            if not self.desk.active or bool(before) == bool(self.desk.missing):
                return
            for space in list(self.spaces.values()):
                space.look_all_over()

        return told

    def _claim_changed(self, old: Claim | None, new: Claim | None) -> None:
        if new is not None:
            self.space(new.metadata.namespace).router.claim_seen(new)
        elif old is not None:
            self.space(old.metadata.namespace).claim_gone(old, watched=not self.claims.listing)

    def _vm_changed(self, old: VirtualMachine | None, new: VirtualMachine | None) -> None:
        seen = new or old
        if seen is None:
            return
        router = self.space(seen.metadata.namespace).router
        before = len(router.foreign)
        if new is not None:
            router.vm_seen(new)
        else:
            router.vm_gone(seen)
        if len(router.foreign) != before:
            FOREIGN.labels(router.namespace).set(len(router.foreign))

    def _vmi_changed(self, old: VirtualMachineInstance | None, new: VirtualMachineInstance | None) -> None:
        if new is not None:
            self.space(new.metadata.namespace).router.vmi_seen(new)
        elif old is not None:
            self.space(old.metadata.namespace).router.vmi_gone(old)

    def _node_changed(self, old: Node | None, new: Node | None) -> None:
        seen = new or old
        if seen is None:
            return
        name = seen.metadata.name
        known = self._node_by_name.get(name)
        if new is None and known is not None and known.metadata.uid != seen.metadata.uid:
            return  # a list tells of the node registered anew before it tells that the old one went
        self._gone_nodes.pop(name, None)
        if new is None:  # kept: a VM on a node that was taken away is lost, not on a node unheard of
            new, self._gone_nodes[name] = gone(seen), None
        self._node_by_name[name] = new
        before, after = (node_trouble(each) if each else "" for each in (known, new))
        if before != after:
            for space in self.spaces.values():
                space.router.node_changed(name)
        if len(self._gone_nodes) > 2 * _GONE_NODES:
            self._forget_nodes()

    def _forget_nodes(self) -> None:
        """Those that went long ago and that no guest names: where nodes come and go, each has a new name."""
        named = {each.status.node_name for each in self.vmis}
        for name in [*self._gone_nodes][:_GONE_NODES]:
            del self._gone_nodes[name]
            if name in named:
                self._gone_nodes[name] = None
            else:
                del self._node_by_name[name]


def kubevirt_missing(unserved: Iterable[str]) -> str:
    """The sentence for people while these of KubeVirt's kinds are not served; empty when all are."""
    if not (kinds := " and no ".join(sorted(unserved))):
        return ""
    return (
        f"the API server serves no {kinds} ({names.KUBEVIRT_API_VERSION}): install KubeVirt, "
        "or wait until its operator has; everything goes on by itself then"
    )
