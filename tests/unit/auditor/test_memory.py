"""The auditor forgets what is gone, and nothing that it still needs."""

from __future__ import annotations

from auditor.events import Kind, Rule
from auditor.judge import SWEEP_EVERY
from auditor.world import World
from tests.unit.auditor.story import Story


def swept(story: Story) -> World:
    """Twice: what is gone is forgotten when that is found the second time."""
    world = story.judge().world
    world.sweep()
    world.sweep()
    return world


def used_up(story: Story, claim: str, vm: str) -> None:
    story.bound(vm, claim)
    story.remove(Kind.CLAIM, claim)
    story.destroy(vm)


def test_a_claim_and_a_vm_that_are_gone_are_forgotten() -> None:
    story = Story()
    used_up(story, "claim", "vm")

    world = swept(story)

    assert world.remembered == {"VMs": 0, "claims": 0, "pools": 1}
    assert world.forgotten == {"VMs": 1, "claims": 1, "pools": 0}
    assert not world.published


def test_they_are_forgotten_the_second_time_that_they_are_found() -> None:
    story = Story()
    used_up(story, "claim", "vm")
    world = story.judge().world

    world.sweep()

    assert world.remembered == {"VMs": 1, "claims": 1, "pools": 1}


def test_a_claim_that_is_gone_is_remembered_as_long_as_its_vm_is_there() -> None:
    story = Story()
    story.bound()
    story.remove(Kind.CLAIM, "claim")

    assert swept(story).remembered == {"VMs": 1, "claims": 1, "pools": 1}


def test_a_vm_that_is_gone_is_remembered_as_long_as_its_claim_is_there() -> None:
    story = Story()
    story.bound()
    story.destroy()

    assert swept(story).remembered == {"VMs": 1, "claims": 1, "pools": 1}


def test_a_pool_that_is_gone_is_remembered_as_long_as_a_vm_of_it_is_there() -> None:
    story = Story()
    story.bound()
    story.remove(Kind.POOL, "pool")
    assert swept(story).remembered["pools"] == 1

    story.remove(Kind.CLAIM, "claim")
    story.destroy()
    assert swept(story).remembered["pools"] == 0


def test_what_a_person_was_excused_for_is_forgotten_with_the_vm() -> None:
    story = Story()
    used_up(story, "claim", "vm")
    judge = story.judge()
    [uid] = judge.world.vms
    judge.excuse(uid, "a person deletes it")

    judge.world.sweep()
    judge.world.sweep()

    assert not judge.world.excused


def test_a_claim_that_names_a_vm_out_of_mind_is_found_nevertheless() -> None:
    story = Story()
    used_up(story, "claim", "vm")
    gone = story.events[-1].objects[0]
    judge = story.judge()
    judge.world.sweep()
    judge.world.sweep()

    later = Story()
    later.rv = story.rv
    later.claim("other")
    later.status("other", phase="Bound", virtualMachines=[{"name": "vm", "uid": gone["metadata"]["uid"]}])
    for event in later.events:
        if event.rv > story.rv:
            judge.see(event)

    assert [found.rule for found in judge.violations] == [Rule.I2]


def test_the_end_of_a_namespace_is_forgotten_with_what_was_in_it() -> None:
    story = Story()
    used_up(story, "claim", "vm")
    story.remove(Kind.POOL, "pool")
    world = story.judge().world
    world.ending.add("ns")

    world.sweep()
    assert world.ending == {"ns"}
    world.sweep()
    assert not world.ending


def test_months_of_claims_leave_no_more_in_mind_than_two_sweeps_do() -> None:
    story = Story()
    for number in range(SWEEP_EVERY):
        used_up(story, f"claim-{number}", f"vm-{number}")

    world = story.judge().world

    assert len(story.events) > 5 * SWEEP_EVERY
    assert sum(world.remembered.values()) < 2 * SWEEP_EVERY
    assert world.forgotten["VMs"] + len(world.vms) == SWEEP_EVERY
