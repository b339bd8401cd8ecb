"""What a pool's status says of a roll-out: whether it is through, how far it is, why it does not go on."""

from __future__ import annotations

from typing import Any

import pytest

from controller.machines.inventory import Instance
from controller.pools.brake import BrakeState
from controller.pools.freshness import Revisions, Standard
from controller.pools.snapshot import Snapshot, Trouble
from controller.pools.status import progressing, rolled_out, status
from crds import names
from tests.support.builders import NOW, make_instance, make_pool, make_snapshot

Json = dict[str, Any]
OPEN = BrakeState(4, NOW - 60, NOW + 20, 20.0)
TROUBLE = Trouble("TemplateInvalid", "interface b has a fixed macAddress")
FULL: Json = {"warm": 3}
NEW = Revisions(updated=3, updated_warm=3)
HALF = Revisions(updated=1, updated_warm=1, stale=2)
OLD: Json = {names.LABEL_REVISION: "fedcba9876"}


def _rolling(**fields: Any) -> Snapshot:
    """Two of three are still old."""
    outdated = [make_instance(name, labels=OLD) for name in "ab"]
    settings: Json = {
        "pool": make_pool(update={"type": "RollingUpdate"}),
        "removable": outdated,
        "outdated": outdated,
        "revisions": HALF,
        "warm": 1,
    }
    return make_snapshot(**{**settings, **fields})


@pytest.mark.parametrize(
    ("seen", "truth", "reason", "words"),
    [
        pytest.param(
            make_snapshot(revisions=NEW, **FULL), "True", "UpToDate", "every unclaimed VM is of", id="all new"
        ),
        pytest.param(make_snapshot(make_pool(warm=0)), "True", "UpToDate", "every", id="none is wanted"),
        pytest.param(make_snapshot(), "False", "RollingOut", "0 of 3 VMs of revision", id="none is there"),
        pytest.param(
            _rolling(pool=make_pool(update={"type": "RollingUpdate"}, deleting=True)),
            "False",
            "Deleting",
            "being deleted",
            id="it goes",
        ),
        pytest.param(
            make_snapshot(make_pool(deleting=True), revisions=NEW, **FULL),
            "False",
            "Deleting",
            "being deleted",
            id="it goes, all new",
        ),
        pytest.param(_rolling(), "False", "RollingOut", "1 of 3 unclaimed VMs are of revision", id="half"),
        pytest.param(
            _rolling(pool=make_pool(), outdated=()),
            "False",
            "Replenishing",
            "1 of 3 unclaimed VMs are of revision 0123456789; the others stay until they are claimed",
            id="left to the claims",
        ),
        pytest.param(
            _rolling(brake=OPEN, last_failure="no boot"),
            "False",
            "RolloutStalled",
            "4 VMs in a row of revision 0123456789 failed; the last: no boot",
            id="failing",
        ),
        pytest.param(
            make_snapshot(brake=OPEN, last_failure="no boot"),
            "False",
            "RolloutStalled",
            "no boot",
            id="never",
        ),
        pytest.param(_rolling(trouble=TROUBLE), "False", "RolloutStalled", "fixed macAddress", id="refused"),
        pytest.param(
            _rolling(pool=make_pool(update={"type": "Recreate"}, suspend=True)),
            "False",
            "RolloutStalled",
            "spec.suspend is true",
            id="suspended",
        ),
        pytest.param(
            _rolling(pool=make_pool(update={"type": "RollingUpdate"}, limits={"maxReplicas": 3})),
            "False",
            "RolloutStalled",
            "the others are kept: limits.maxReplicas (3) leaves no room",
            id="no room",
        ),
    ],
)
def test_rolled_out(seen: Snapshot, truth: str, reason: str, words: str) -> None:
    found = rolled_out(seen, {})
    assert (found[0], found[1]) == (truth, reason)
    assert words in found[2]


def test_those_that_were_warm_and_were_claimed_since_count_too() -> None:
    """A pool under load may never be full: else its roll-out would never be through."""
    found = Revisions(updated=3, updated_warm=1)
    assert rolled_out(make_snapshot(revisions=found, warm=1, provisioning=2, proven=2), {})[0] == "False"
    assert rolled_out(make_snapshot(revisions=found, warm=1, provisioning=2, proven=3), {})[0] == "True"


def test_what_was_rolled_out_stays_so_while_claims_take_vms() -> None:
    before = status(make_snapshot(revisions=NEW, **FULL), {})
    assert rolled_out(make_snapshot(), before)[0] == "True"


@pytest.mark.parametrize(
    "seen", [_rolling(), make_snapshot(revision="another")], ids=["old ones", "revision"]
)
def test_another_template_is_rolled_out_anew(seen: Snapshot) -> None:
    before = status(make_snapshot(revisions=NEW, **FULL), {})
    assert rolled_out(seen, before)[0] == "False"


def test_a_new_name_for_the_same_revision_is_no_roll_out() -> None:
    """As after an upgrade of the controller that computes it otherwise."""
    before = status(make_snapshot(revisions=NEW, **FULL), {})
    standard = Standard(frozenset({"another", "0123456789"}))
    seen = make_snapshot(revision="another", standard=standard)
    assert rolled_out(seen, before)[0] == "True"


AGED = [make_instance(name, age=9000.0) for name in "cd"]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ([], "2 VMs of an older template"),
        (AGED[:1], "2 VMs of an older template and 1 VM older than maxWarmAge"),
    ],
    ids=["old ones", "and aged ones"],
)
@pytest.mark.parametrize("provisioning", [0, 1])
def test_while_vms_are_replaced_the_pool_progresses(
    more: list[Instance], words: str, provisioning: int
) -> None:
    outdated = [*_rolling().outdated, *more]
    found = progressing(_rolling(outdated=outdated, provisioning=provisioning))
    assert found == ("True", "RollingOut", f"being replaced: {words}")


def test_vms_that_are_only_too_old_are_no_older_template() -> None:
    assert progressing(_rolling(outdated=AGED))[2] == "being replaced: 2 VMs older than maxWarmAge"


def test_a_pool_whose_roll_out_is_stalled_does_not_say_that_vms_are_being_replaced() -> None:
    stalled = _rolling(warm=1, trouble=TROUBLE)
    truth, reason, message = progressing(stalled)
    assert (truth, reason) == ("False", "RolloutStalled")
    assert message == f"kept: 2 VMs of an older template: {TROUBLE.message}"
    assert progressing(_rolling(warm=0, trouble=TROUBLE))[:2] == ("True", "Filling")
    assert progressing(_rolling(warm=9, trouble=TROUBLE))[:2] == ("True", "Shrinking")


def test_a_pool_that_has_no_room_for_a_successor_does_not_say_that_vms_are_being_replaced() -> None:
    full = make_pool(update={"type": "RollingUpdate"}, limits={"maxReplicas": 3})
    assert progressing(_rolling(pool=full))[:2] == ("False", "RolloutStalled")
