"""What a claim says about itself."""

from __future__ import annotations

import msgspec
import pytest

from controller.claims.objects import Claim, decode_claim
from statemachines.claim import State
from tests.support.builders import make_bound_claim, make_claim, read_claim, stored


@pytest.mark.parametrize("state", list(State))
def test_its_phase_is_the_machines_word(state: State) -> None:
    assert make_claim(phase=state.value).phase is state


@pytest.mark.parametrize("claim", [make_claim(), make_claim(phase="")])
def test_a_claim_without_a_phase_waits(claim: Claim) -> None:
    assert claim.phase is State.PENDING
    assert claim.waiting


@pytest.mark.parametrize(
    "claim", [make_claim(deleting=True), make_claim(phase="Expired"), make_bound_claim()]
)
def test_a_claim_that_is_going_bound_or_over_does_not_wait(claim: Claim) -> None:
    assert not claim.waiting


def test_it_orphans_its_vm_only_when_it_is_deleted_so() -> None:
    assert make_claim(deleting=True, finalizers=["orphan"]).orphans
    assert not make_claim(finalizers=["orphan"]).orphans
    assert not make_claim(deleting=True, finalizers=["foregroundDeletion"]).orphans


def test_it_names_a_vm_by_its_uid() -> None:
    assert make_bound_claim().names("pool-aaaaa-uid")
    assert not make_bound_claim().names("pool-aaaaa")
    assert not make_claim().names("pool-aaaaa-uid")


def test_it_is_read_as_the_api_server_sends_it_and_fields_of_later_releases_are_no_harm() -> None:
    raw = stored(make_bound_claim(lifetime="1h", expires=60))
    raw["spec"]["later"] = {"field": 1}
    raw["status"]["virtualMachines"][0]["later"] = 1
    found = read_claim(raw)
    assert found.names("pool-aaaaa-uid")
    assert found.status is not None
    assert found.status.virtual_machines[0].vmi_uid == "pool-aaaaa-guest"
    assert found.status.pool_uid == "pool-uid"


def test_a_bare_claim_is_read_with_its_defaults() -> None:
    found = msgspec.json.decode(b'{"metadata":{"name":"c","uid":"u"}}', type=Claim)
    assert found.spec.when_empty.policy == "Order"
    assert found.status is None


@pytest.mark.parametrize(
    ("claim", "says"),
    [
        (make_claim(timeout="soon"), "spec.timeout: 'soon' is no duration"),
        (make_claim(lifetime="7d"), "spec.lifetime: '7d' is no duration"),
        (make_claim(when_empty="OrderAfter", after="later"), "spec.whenEmpty.after: 'later' is no duration"),
        (
            make_claim(when_empty="Perhaps"),
            "spec.whenEmpty.policy: write one of Order, OrderAfter, Wait, Fail",
        ),
    ],
)
def test_what_an_older_schema_let_in_is_named(claim: Claim, says: str) -> None:
    assert claim.trouble.startswith(says)


def test_an_ordinary_claim_is_no_trouble() -> None:
    assert not make_claim(timeout="5m", lifetime="1h30m", when_empty="OrderAfter", after="35ms").trouble


def test_of_a_claim_whose_spec_does_not_fit_the_rest_is_read() -> None:
    body = msgspec.json.encode(
        {
            "metadata": {"name": "odd", "namespace": "ns", "uid": "u", "resourceVersion": "1"},
            "spec": {"poolRef": "pool"},
            "status": {"phase": "Bound", "virtualMachines": [{"name": "vm", "uid": "vm-uid"}]},
        }
    )
    claim = decode_claim(body)
    assert claim.trouble.startswith("spec can't be read: Expected `object`, got `str`")
    assert claim.names("vm-uid")
    assert claim.phase is State.BOUND


def test_what_is_no_claim_at_all_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError):
        decode_claim(b'{"metadata": 5}')
