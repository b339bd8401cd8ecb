"""What we know of one kind: fed by watches, lists and the answers to our own writes, in any order.

The newest resourceVersion wins. It must never show an object older than one it has shown, nor bring one back
that is gone.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Generic, Protocol, TypeVar

from controller.kube.objects import ObjectMeta

_TOMBSTONES = 10_000


class HasMetadata(Protocol):
    @property
    def metadata(self) -> ObjectMeta: ...


T = TypeVar("T", bound=HasMetadata)


class Store(Generic[T]):
    """Objects by UID. `on_change(old, new)` is called for each change, None standing for "not there"."""

    def __init__(self, on_change: Callable[[T | None, T | None], None] | None = None) -> None:
        self.on_change = on_change
        # While true, what is told as gone is only missing from a list: nobody saw it go.
        self.listing = False
        self._objects: dict[str, T] = {}
        self._uids: dict[tuple[str, str], str] = {}
        # UID → the version at which it went. A version, not for ever: an object that lost the label we select
        # by may come back with the same UID.
        self._gone: dict[str, int] = {}
        # The version of the last list, by the namespace that it was of, "" for all of them. What is older and
        # was not in it went before we heard of it: the answer to a create may come when the object is deleted
        # and its deletion can no longer be watched.
        self._listed: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[T]:
        return iter(self._objects.values())

    def get(self, uid: str) -> T | None:
        return self._objects.get(uid)

    def by_name(self, namespace: str, name: str) -> T | None:
        """The newest object of that name, also while an older one of the same name is still known."""
        uid = self._uids.get((namespace, name))
        return None if uid is None else self._objects[uid]

    def apply(self, obj: T) -> bool:
        """Take an object as read from anywhere; False if nothing newer was in it."""
        return self._take(obj, self._listed_in(obj.metadata.namespace))

    def _take(self, obj: T, known: int) -> bool:
        meta = obj.metadata
        version = int(meta.resource_version)
        old = self._objects.get(meta.uid)
        if version <= self._known(meta.uid, known):
            return False
        self._gone.pop(meta.uid, None)
        self._objects[meta.uid] = obj
        self._name(meta, version)
        self._tell(old, obj)
        return True

    def remove(self, obj: T) -> bool:
        """Take an object as its DELETED event carries it; False if a newer one is known."""
        return self._bury(obj.metadata.uid, int(obj.metadata.resource_version))

    def changed(self, metas: Iterable[ObjectMeta]) -> list[ObjectMeta]:
        """Those in a consistent, complete list of metadata whose objects are newer than ours."""
        return [meta for meta in metas if int(meta.resource_version) > self._known(meta.uid, -1)]

    def reconcile(self, metas: Iterable[ObjectMeta], list_rv: str | int, namespace: str = "") -> None:
        """Take such a list, when all that was `changed` has been read: from now on what it lacks is gone.

        Not before: an object that it shows and that is not here yet would be refused when an event brings it.
        """
        self._bury_all_but({meta.uid for meta in metas}, int(list_rv), namespace)

    def admit(self, obj: T) -> bool:
        """Take an object that a consistent read has just shown; False if nothing newer was in it."""
        return self._take(obj, -1)

    def miss(self, uid: str, version: str | int) -> None:
        """A consistent read of that version did not find this object."""
        self.listing = True
        try:
            self._bury(uid, int(version))
        finally:
            self.listing = False

    def replace(self, objs: Iterable[T], list_rv: str | int, namespace: str = "") -> None:
        """Take a consistent list of a namespace, or of all: what is not in it is gone, unless it is newer."""
        listed = set()
        newest = self._listed_in(namespace)
        known = -1 if int(list_rv) >= newest else newest  # overtaken: a newer list lacked it
        for obj in objs:
            listed.add(obj.metadata.uid)
            self._take(obj, known)
        self._bury_all_but(listed, int(list_rv), namespace)

    def _known(self, uid: str, otherwise: int) -> int:
        """The version up to which this object's story is known."""
        if (old := self._objects.get(uid)) is not None:
            return int(old.metadata.resource_version)
        return max(otherwise, self._gone.get(uid, otherwise))

    def _listed_in(self, namespace: str) -> int:
        return max(self._listed.get("", -1), self._listed.get(namespace, -1))

    def _bury_all_but(self, listed: set[str], version: int, namespace: str) -> None:
        missing = [
            uid
            for uid, obj in self._objects.items()
            if uid not in listed and namespace in {"", obj.metadata.namespace}
        ]
        self.listing = True
        try:
            for uid in missing:
                self._bury(uid, version)
        finally:
            self.listing = False
        self._listed[namespace] = max(self._listed_in(namespace), version)

    def _bury(self, uid: str, version: int) -> bool:
        old = self._objects.get(uid)
        if old is not None and int(old.metadata.resource_version) > version:
            return False
        self._gone[uid] = max(version, self._gone.pop(uid, -1))
        if len(self._gone) > _TOMBSTONES:
            del self._gone[next(iter(self._gone))]
        if old is None:
            return False
        del self._objects[uid]
        name = (old.metadata.namespace, old.metadata.name)
        if self._uids.get(name) == uid:
            del self._uids[name]
        self._tell(old, None)
        return True

    def _name(self, meta: ObjectMeta, version: int) -> None:
        name = (meta.namespace, meta.name)
        holder = self._objects.get(self._uids.get(name, ""))
        if holder is None or int(holder.metadata.resource_version) <= version:
            self._uids[name] = meta.uid

    def _tell(self, old: T | None, new: T | None) -> None:
        if self.on_change is not None:
            self.on_change(old, new)
