from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from pydantic import ValidationError

from crds.claim import (
    ClaimSpec,
    ClaimStatus,
    VirtualMachineClaim,
    WhenEmptyPolicy,
    parse_claim,
    parse_claim_spec,
)
from crds.conditions import Condition, Truth
from crds.pool import PoolSpec, VirtualMachinePool, parse_pool
from crds.pool_status import PoolStatus
from crds.schema import Model
from crds.warm import ScaleDown, WarmCapacity, WarmPolicy
from tests.support.manifests import claim_manifest, pool_manifest
from tests.unit.crds import strategies


def reread(model: Model) -> Model:
    return type(model).model_validate(model.as_json())


@given(strategies.pool_specs)
def test_a_pool_spec_survives_the_wire(spec: PoolSpec) -> None:
    assert reread(spec) == spec


@given(strategies.pool_statuses)
def test_a_pool_status_survives_the_wire(status: PoolStatus) -> None:
    assert reread(status) == status


@given(strategies.claim_specs)
def test_a_claim_spec_survives_the_wire(spec: ClaimSpec) -> None:
    assert reread(spec) == spec


@given(strategies.claim_statuses)
def test_a_claim_status_survives_the_wire(status: ClaimStatus) -> None:
    assert reread(status) == status


@given(strategies.claim_statuses)
def test_nothing_on_the_wire_is_null(status: ClaimStatus) -> None:
    def nulls(value: Any) -> bool:
        if isinstance(value, dict):
            return any(map(nulls, value.values()))
        return any(map(nulls, value)) if isinstance(value, list) else value is None

    assert not nulls(status.as_json())


def test_a_pool_that_says_nothing_has_the_documented_defaults() -> None:
    spec = parse_pool(pool_manifest()).spec
    assert spec.warm == WarmCapacity(replicas=1, scale_down=ScaleDown(stabilization="5m"))
    assert not spec.warm.sizes_itself
    assert (spec.limits.max_replicas, spec.limits.max_concurrent_creations) == (100, 10)
    assert (spec.readiness.when, spec.readiness.deadline, spec.readiness.unready_grace) == (
        "Ready",
        "15m",
        "2m",
    )
    assert (spec.claims.order, spec.claims.lifetime, spec.suspend) == ("Oldest", None, False)


def test_a_claim_that_says_nothing_orders_when_the_pool_is_empty() -> None:
    assert parse_claim_spec(claim_manifest()["spec"]).when_empty.policy is WhenEmptyPolicy.ORDER


def test_uids_are_written_as_kubernetes_writes_them() -> None:
    status = ClaimStatus(pool_uid="p", virtual_machines=({"name": "n", "uid": "u", "vmi_uid": "v"},))
    assert status.as_json()["poolUID"] == "p"
    assert status.as_json()["virtualMachines"][0]["vmiUID"] == "v"


def test_times_are_whole_seconds_of_utc_whatever_they_were_given_in() -> None:
    berlin = datetime(2026, 1, 31, 13, 0, 0, 999_999, tzinfo=timezone(timedelta(hours=1)))
    status = ClaimStatus(bound_at=berlin, expires_at=datetime(2026, 1, 31, 12))  # noqa: DTZ001 - the case
    assert status.as_json()["boundAt"] == "2026-01-31T12:00:00Z"
    assert status.bound_at == status.expires_at == datetime(2026, 1, 31, 12, tzinfo=UTC)


def test_a_message_that_is_too_long_is_cut_and_stops_no_status_write() -> None:
    condition = Condition(
        type="Ready",
        status=Truth.FALSE,
        last_transition_time=datetime(2026, 1, 31, tzinfo=UTC),
        reason="TemplateInvalid",
        message="x" * 100_000,
    )
    assert len(condition.message) == 4096
    assert condition.message.endswith("x…")
    assert len(WarmPolicy(name="replicas", wants=1, because="y" * 9_999).because) == 4096


def test_models_are_frozen() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        WarmCapacity().replicas = 2  # type: ignore[misc]  # the case


def test_a_field_of_a_later_version_is_ignored() -> None:
    assert parse_pool(pool_manifest(warm={"replicas": 2, "rhythm": "10%"})).spec.warm.replicas == 2


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ({"template": None}, "spec.template: "),
        ({"template": {}}, "spec.template.spec: Field required"),
        ({"warm": {"replicas": -1}}, "spec.warm.replicas: Input should be greater than or equal to 0"),
        ({"warm": "many"}, "spec.warm: "),
        ({"readiness": {"deadline": "10 minutes"}}, "spec.readiness.deadline: '10 minutes' is no duration"),
        ({"readiness": {"deadline": "0s"}}, "spec.readiness.deadline: '0s' must be longer than 0s"),
        ({"claims": {"order": "Random"}}, "spec.claims.order: Input should be 'Oldest' or 'Newest'"),
    ],
)
def test_a_stored_pool_that_cannot_be_read_gets_one_sentence(spec: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match="spec") as refusal:
        parse_pool(pool_manifest(**spec))
    assert str(refusal.value).startswith(sentence)
    assert "\n" not in str(refusal.value)
    assert not isinstance(refusal.value, ValidationError)


def test_a_sentence_says_how_many_more_things_are_wrong() -> None:
    with pytest.raises(ValueError, match=r"^spec\.warm\.replicas: .* \(and 1 more\)$"):
        parse_pool(pool_manifest(warm={"replicas": -1}, suspend="perhaps"))


@pytest.mark.parametrize("obj", [{}, {"spec": None}, {"metadata": 1, "spec": []}, {"kind": "Pod"}, []])
def test_no_nonsense_whatsoever_raises_anything_but_a_value_error(obj: Any) -> None:
    for parse in (parse_pool, parse_claim, parse_claim_spec):
        with pytest.raises(ValueError, match=": "):
            parse(obj)


def test_a_status_that_cannot_be_read_does_not_hide_the_spec() -> None:
    pool = parse_pool({**pool_manifest(), "status": {"replicas": "lots", "conditions": 3}})
    claim = parse_claim({**claim_manifest(), "status": {"phase": "Married"}})
    assert isinstance(pool, VirtualMachinePool)
    assert pool.status is None
    assert isinstance(claim, VirtualMachineClaim)
    assert claim.status is None


def test_a_bad_spec_is_told_even_beside_a_bad_status() -> None:
    with pytest.raises(ValueError, match=r"^spec\.warm\.replicas: "):
        parse_pool({**pool_manifest(warm={"replicas": -1}), "status": {"replicas": "lots"}})


def test_a_claims_spec_alone_is_read_with_its_path() -> None:
    assert parse_claim_spec({"poolRef": {"name": "p"}, "timeout": "5m"}).timeout == "5m"
    with pytest.raises(ValueError, match=r"^spec\.poolRef: Field required$"):
        parse_claim_spec({})
