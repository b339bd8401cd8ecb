"""VMs under deletion: whose they are, and which do not go."""

from __future__ import annotations

from controller.kube.timeline import Timeline
from controller.machines.inventory import Instance
from controller.pools.endings import Endings, endings
from statemachines.instance import State
from tests.support.builders import NOW, make_instance


def ending(name: str, claim_uid: str = "") -> Instance:
    """One that has been under deletion for a second."""
    return make_instance(name, State.TERMINATING, deleting=True, claim_uid=claim_uid)


def names(instances: tuple[Instance, ...]) -> list[str]:
    return [each.name for each in instances]


def test_a_vm_that_has_been_under_deletion_for_too_long_is_stuck() -> None:
    found = endings([ending("a")], NOW, 1.0)
    assert (names(found.stuck), found.under_way, found.next_late) == (["a"], 0, 0.0)


def test_until_then_it_is_under_way_and_it_is_known_when_it_is_late() -> None:
    found = endings([ending("a"), ending("b")], NOW, 60.0)
    assert (found.stuck, found.under_way, found.next_late) == ((), 2, NOW + 59)


def test_a_clock_that_is_set_forward_makes_none_stuck() -> None:
    forward = Timeline().heard(NOW - 10, 0.0).heard(NOW + 3590, 10.0)
    found = endings([ending("a")], NOW + 3600, 60.0, forward)
    assert (found.stuck, found.under_way, found.next_late) == ((), 1, NOW + 3600 + 59)


def test_a_claimed_one_is_not_the_pools_to_wait_for() -> None:
    found = endings([ending("a"), ending("b", claim_uid="claim-uid")], NOW, 60.0)
    assert names(found.going) == ["a"]


def test_without_any_there_is_nothing_to_say() -> None:
    assert endings([], NOW, 60.0) == Endings()
