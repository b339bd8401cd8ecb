from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from controller.kube import store as store_module
from controller.kube.objects import KubeObject, ObjectMeta
from controller.kube.store import Store

Changes = list[tuple[str | None, str | None]]


def obj(uid: str, version: int, *, name: str | None = None) -> KubeObject:
    meta = ObjectMeta(name=name or uid, namespace="n", uid=uid, resource_version=str(version))
    return KubeObject(metadata=meta)


def version(found: KubeObject | None) -> int | None:
    return None if found is None else int(found.metadata.resource_version)


def watched() -> tuple[Store[KubeObject], Changes]:
    changes: Changes = []

    def note(old: KubeObject | None, new: KubeObject | None) -> None:
        changes.append(
            ((old and old.metadata.resource_version) or None, (new and new.metadata.resource_version) or None)
        )

    return Store[KubeObject](note), changes


def test_each_change_is_told_once_with_what_was_before() -> None:
    store, changes = watched()
    assert store.apply(obj("a", 1))
    assert store.apply(obj("a", 2))
    assert not store.apply(obj("a", 2))
    assert store.remove(obj("a", 3))
    assert changes == [(None, "1"), ("1", "2"), ("2", None)]
    assert len(store) == 0


def test_versions_are_compared_as_numbers() -> None:
    store, _ = watched()
    store.apply(obj("a", 9))
    assert store.apply(obj("a", 10))
    assert not store.apply(obj("a", 9))


def test_an_older_answer_does_not_roll_an_object_back() -> None:
    store, changes = watched()
    store.apply(obj("a", 5))
    assert not store.apply(obj("a", 4))
    assert version(store.get("a")) == 5
    assert changes == [(None, "5")]


def test_a_late_answer_does_not_bring_back_what_was_deleted() -> None:
    store, _ = watched()
    store.apply(obj("a", 5))
    store.remove(obj("a", 7))
    assert not store.apply(obj("a", 6))
    assert store.get("a") is None


def test_what_a_list_does_not_hold_is_gone_and_stays_gone() -> None:
    store, changes = watched()
    store.apply(obj("a", 5))
    store.replace([], "10")
    assert changes[-1] == ("5", None)
    assert not store.apply(obj("a", 9))


def test_a_late_answer_about_an_object_that_came_and_went_before_the_list_is_ignored() -> None:
    store, changes = watched()
    store.replace([], "10")
    assert not store.apply(obj("a", 9))
    assert changes == []


def test_a_later_list_may_hold_an_old_object_that_an_earlier_one_did_not() -> None:
    store, _ = watched()
    store.replace([], "10")
    store.replace([obj("unreadable until now", 3)], "20")
    assert len(store) == 1


def test_an_object_newer_than_the_list_survives_it() -> None:
    store, _ = watched()
    store.apply(obj("new", 12))
    store.replace([obj("a", 3)], "10")
    assert version(store.get("new")) == 12


def test_a_stale_list_does_not_roll_an_object_back() -> None:
    store, _ = watched()
    store.apply(obj("a", 12))
    store.replace([obj("a", 8)], "10")
    assert version(store.get("a")) == 12


def test_a_deletion_older_than_what_is_known_is_ignored() -> None:
    store, _ = watched()
    store.apply(obj("a", 9))
    assert not store.remove(obj("a", 8))
    assert store.get("a") is not None


def test_an_object_that_left_the_selector_may_come_back() -> None:
    store, _ = watched()
    store.apply(obj("a", 1))
    store.remove(obj("a", 2))
    assert store.apply(obj("a", 3))


def test_a_name_used_again_means_the_newest_object() -> None:
    store, _ = watched()
    store.apply(obj("old", 1, name="x"))
    store.apply(obj("new", 3, name="x"))
    store.apply(obj("old", 2, name="x"))
    assert (store.by_name("n", "x") or obj("", 0)).metadata.uid == "new"
    store.remove(obj("old", 4, name="x"))
    assert (store.by_name("n", "x") or obj("", 0)).metadata.uid == "new"
    store.remove(obj("new", 5, name="x"))
    assert store.by_name("n", "x") is None


def test_the_memory_of_the_dead_is_bounded() -> None:
    store, _ = watched()
    for number in range(store_module._TOMBSTONES + 100):
        store.apply(obj(f"u{number}", 1))
        store.remove(obj(f"u{number}", 2))
    assert len(store._gone) == store_module._TOMBSTONES


@dataclass
class World:
    """The truth: a history of versions of a few objects, of which messages tell in any order."""

    version: int = 0
    live: dict[str, int] = field(default_factory=dict)
    births: int = 0
    stream: list[tuple[str, str, int]] = field(default_factory=list)
    answers: list[tuple[str, int]] = field(default_factory=list)

    def write(self, kind: str, which: int) -> None:
        names = sorted(self.live)
        self.version += 1
        if kind == "create" or not names:
            uid = f"u{self.births}"
            self.births += 1
        else:
            uid = names[which % len(names)]
        if kind == "delete" and names:
            del self.live[uid]
            self.stream.append(("DELETED", uid, self.version))
            return
        self.live[uid] = self.version
        self.stream.append(("APPLIED", uid, self.version))
        self.answers.append((uid, self.version))


MOVES = st.lists(
    st.tuples(
        st.sampled_from(["create", "patch", "delete", "event", "event", "answer", "list", "compare"]),
        st.integers(0, 99),
    ),
    max_size=80,
)


class Reader:
    """A store that is told of a world: of its events in order, of all else whenever it comes."""

    def __init__(self) -> None:
        self.world = World()
        self.seen = 0
        self.lists: list[tuple[int, dict[str, int]]] = [(0, {})]
        self.shown: dict[str, int] = {}
        self.store = Store[KubeObject](self.never_backwards)

    def never_backwards(self, _: KubeObject | None, new: KubeObject | None) -> None:
        if new is not None:
            uid, told = new.metadata.uid, int(new.metadata.resource_version)
            assert told > self.shown.get(uid, -1), "shown older than before"
            self.shown[uid] = told

    def write(self, kind: str, which: int) -> None:
        self.world.write(kind, which)
        self.lists.append((self.world.version, dict(self.world.live)))

    def event(self) -> None:
        if self.seen < len(self.world.stream):
            kind, uid, at = self.world.stream[self.seen]
            (self.store.remove if kind == "DELETED" else self.store.apply)(obj(uid, at))
            self.seen += 1

    def answer(self, which: int) -> None:
        """To a write of ours, however late."""
        if self.world.answers:
            self.store.apply(obj(*self.world.answers[which % len(self.world.answers)]))

    def relist(self, which: int) -> None:
        """A list as it was at some time not before the watch's; the watch goes on from there."""
        told = self.world.stream[self.seen - 1][2] if self.seen else 0
        at, listed = self.lists[max(which % len(self.lists), told)]
        self.store.replace([obj(uid, version) for uid, version in listed.items()], str(at))
        self.seen = sum(entry[2] <= at for entry in self.world.stream)

    def compare(self, which: int) -> None:
        """A list of metadata as it was at some time, and what has changed read one by one a little later."""
        at, listed = self.lists[which % len(self.lists)]
        metas = [obj(uid, version).metadata for uid, version in listed.items()]
        for meta in self.store.changed(metas):
            if (live := self.world.live.get(meta.uid)) is not None:
                self.store.admit(obj(meta.uid, live))
            else:
                self.store.miss(meta.uid, self.world.version)
            self.event()
            self.answer(which)
        self.store.reconcile(metas, str(at))
        for found in self.store:
            at_least = listed.get(found.metadata.uid, at + 1)
            assert int(found.metadata.resource_version) >= at_least, "older than the list, or gone by then"
        missing = {uid for uid in listed if self.store.get(uid) is None}
        assert not missing & self.world.live.keys(), "listed, there still, and not shown"


@settings(max_examples=500)
@given(MOVES)
def test_whatever_comes_in_whatever_order_the_newest_state_wins(moves: list[tuple[str, int]]) -> None:
    reader = Reader()
    for move, which in moves:
        match move:
            case "event":
                reader.event()
            case "answer":
                reader.answer(which)
            case "list":
                reader.relist(which)
            case "compare":
                reader.compare(which)
            case _:
                reader.write(move, which)
    while reader.seen < len(reader.world.stream):
        reader.event()
    assert {found.metadata.uid: version(found) for found in reader.store} == reader.world.live
    for uid in reader.world.live:
        assert reader.store.by_name("n", uid) is reader.store.get(uid)


def test_a_list_that_a_newer_comparison_overtook_brings_nothing_back() -> None:
    store = Store[KubeObject]()
    store.reconcile([], "9")
    store.replace([obj("u", 5)], "7")
    assert len(store) == 0


def test_what_a_comparison_misses_was_not_seen_going() -> None:
    told: list[bool] = []
    store = Store[KubeObject]()
    store.on_change = lambda _, new: told.append(store.listing) if new is None else None
    store.apply(obj("u", 3))
    store.apply(obj("v", 4))
    store.reconcile([obj("v", 4).metadata], "6")
    store.miss("v", "7")
    assert told == [True, True]
    assert not store.listing


def test_a_list_of_one_namespace_says_nothing_about_the_others() -> None:
    store = Store[KubeObject]()
    here, there = placed("a", 3, "here"), placed("b", 4, "there")
    store.replace([here], "10", "here")
    store.replace([there], "11", "there")
    assert store.changed([here.metadata]) == []
    store.reconcile([], "12", "here")
    assert list(store) == [there]
    assert not store.apply(placed("c", 12, "here")), "older than the list that lacked it"
    assert store.apply(placed("d", 12, "there"))
    store.replace([], "13", "there")
    assert len(store) == 0


def placed(uid: str, at: int, namespace: str) -> KubeObject:
    return KubeObject(ObjectMeta(name=uid, uid=uid, namespace=namespace, resource_version=str(at)))
