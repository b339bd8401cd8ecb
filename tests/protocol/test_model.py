"""The model itself: API server, garbage collector, people, caches and judge, each a step at a time."""

from __future__ import annotations

import pytest

from controller.claims import patches
from controller.claims.objects import FOREGROUND, ORPHAN
from controller.claims.protocol import DeleteVM, FoundVM, PatchVM, ReadVM, StepName
from crds import names
from tests.protocol import garbage, judge, people, view
from tests.protocol.apiserver import MISSING, REFUSED, Server, Written, dying, perform, put_claim, put_pool
from tests.protocol.things import Thing, request, thing
from tests.protocol.worlds import World
from tests.support.patching import applied

WORLD = World("of a test", "two VMs, one claim", budget={"delete-claim": 1, "clone": 1})
WHERE = people.where(WORLD)
START = people.beginning(WORLD)


def _vm(server: Server, slot: int = 0) -> Thing:
    found = server.vms[slot]
    assert found is not None
    return found


def _claim(server: Server) -> Thing:
    found = server.claims[0]
    assert found is not None
    return found


def _handed(server: Server = START) -> Written:
    ops = patches.hand_over(_vm(server).vm, _claim(server).claim)
    return perform(server, WHERE, request(PatchVM(StepName.HAND_OVER_VM, "vm-1", ops)))


def _collected(server: Server) -> list[str]:
    return [move.label for move in garbage.moves(server)]


# ---- things


def test_equal_versions_are_one_thing_and_different_ones_are_not() -> None:
    vm = _vm(START)
    assert thing(vm.kind, applied(vm.raw, ())) is vm
    assert thing(vm.kind, {**vm.raw, "status": {}}) is not vm


# ---- API server


def test_a_guarded_write_is_taken_once_and_refused_when_its_tests_fail() -> None:
    first = _handed()
    assert isinstance(first.answer, FoundVM)
    assert _vm(first.server).labels[names.LABEL_STATE] == "Claimed"
    again = perform(
        first.server,
        WHERE,
        request(
            PatchVM(StepName.HAND_OVER_VM, "vm-1", patches.hand_over(_vm(START).vm, _claim(START).claim))
        ),
    )
    assert (again.server, again.answer, again.events) == (first.server, REFUSED, ())


def test_a_deletion_needs_the_right_uid_and_leaves_the_vm_to_kubevirt() -> None:
    wrong = perform(START, WHERE, request(DeleteVM(StepName.DRAIN_DELETE, "vm-1", "another")))
    assert (wrong.server, wrong.answer) == (START, MISSING)
    right = perform(START, WHERE, request(DeleteVM(StepName.DRAIN_DELETE, "vm-1", "vm-1-uid")))
    assert _vm(right.server).going
    read = perform(right.server, WHERE, request(ReadVM(StepName.REPAIR_READ_VM, "vm-1")))
    assert isinstance(read.answer, FoundVM)
    assert any(move.label == "KubeVirt lets vm-1 go" for move in people.moves(WORLD, WHERE, right.server))


def test_an_object_goes_with_its_last_finalizer() -> None:
    assert put_claim(START, 0, dying(_claim(START)))[0].claims == (None,)
    assert put_claim(START, 0, dying(_claim(START), FOREGROUND))[0].claims != (None,)


# ---- garbage collector


def test_the_collector_leaves_alone_what_has_an_owner_that_stays() -> None:
    assert _collected(START) == []
    assert _collected(_handed().server) == []


def test_what_is_left_of_a_claim_that_is_gone_is_read_and_then_deleted() -> None:
    gone, _ = put_claim(_handed().server, 0, dying(_claim(START)))
    (read,) = garbage.moves(gone)
    (deleted,) = garbage.moves(read.server)
    assert _vm(deleted.server).going


def test_a_vm_that_got_another_owner_after_it_was_read_is_not_deleted() -> None:
    assert START.pool is not None
    going, _ = put_pool(START, dying(START.pool, FOREGROUND))
    read = next(move for move in garbage.moves(going) if "vm-1" in move.label)
    labels = [move.label for move in garbage.moves(_handed(read.server).server)]
    assert "the garbage collector is refused: vm-1 has another owner now" in labels


def test_an_orphan_deletion_takes_the_owner_off_before_the_claim_goes() -> None:
    going, _ = put_claim(_handed().server, 0, dying(_claim(START), ORPHAN))
    (freed,) = garbage.moves(going)
    assert _vm(freed.server).owners == ()
    (ended,) = garbage.moves(freed.server)
    assert ended.server.claims == (None,)


# ---- caches


def test_a_cache_lags_by_what_its_watch_has_not_delivered() -> None:
    known = view.listed_claims(view.listed_vms(view.View(), START), START)
    told = view.listening(known, _handed().events)
    assert told.vms == known.vms
    seen = view.next_vm(told, WHERE)
    assert seen.vms[0][-1] is _vm(_handed().server)
    assert seen.vm_events == ()


def test_an_answer_is_newer_than_all_that_the_watch_delivers_later() -> None:
    known = view.listed_claims(view.listed_vms(view.View(), START), START)
    told = view.listening(known, _handed().events)
    assert view.saw_vm(told, WHERE, _vm(_handed().server)).vm_events == ()


def test_a_vm_that_loses_the_label_of_the_watch_is_gone_and_never_heard_of_again() -> None:
    world = World("stripped", "a person strips", relabels=("stripped",))
    strip = next(move for move in people.moves(world, WHERE, START) if "stripped" in move.label)
    assert [there for _, there in strip.events] == [False]
    deleted = perform(strip.server, WHERE, request(DeleteVM(StepName.DRAIN_DELETE, "vm-1", "vm-1-uid")))
    assert deleted.events == ()


# ---- the judge


def test_a_second_claims_uid_on_one_vm_is_seen() -> None:
    handed = _handed().server
    stolen = dict(_vm(handed).labels) | {names.LABEL_CLAIM_UID: "another"}
    meta = {**_vm(handed).meta, "labels": stolen}
    after = handed._replace(vms=(thing("VM", {**_vm(handed).raw, "metadata": meta}), *handed.vms[1:]))
    found = judge.written(WORLD, handed, after, "controller")
    assert "I1: controller gave vm-1 to another after it was claim-1-1's" in found


@pytest.mark.parametrize(
    ("server", "found"),
    [
        pytest.param(_handed().server, "leak: vm-1 is held for claim-1-1, and no claim names it", id="held"),
        pytest.param(START, "rest: claim-1-1 waits beside vm-1, which is free", id="waits beside a free VM"),
    ],
)
def test_a_bad_rest_is_seen(server: Server, found: str) -> None:
    assert found in list(judge.at_rest(WORLD, server))
