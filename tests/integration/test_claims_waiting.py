"""A claim that finds nothing warm: where it stands, why, what it orders, and how its wait ends."""

from __future__ import annotations

from datetime import datetime

import pytest

from tests.support.auditing import AuditorThread
from tests.support.manifests import claim_manifest
from tests.support.site import (
    CLAIMS,
    POOLS,
    VMS,
    Json,
    Site,
    condition,
    holds,
    named_vm,
    owner,
    until,
    vm_template,
)

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("controller", "auditor")]


def position(site: Site, claim: str) -> Json:
    """Wait until the claim is told its place in line."""
    told = site.until(CLAIMS, claim, "told its place", lambda obj: (obj.get("status") or {}).get("queue"))
    queue: Json = told["status"]["queue"]
    return queue


def seconds_between(earlier: str, later: str) -> float:
    return (datetime.fromisoformat(later) - datetime.fromisoformat(earlier)).total_seconds()


def test_a_claim_in_line_knows_its_place_and_no_time_before_the_first_boot(site: Site) -> None:
    site.pool(warm=0, template=vm_template(boot="10m"))
    site.claim("first")
    until("its order", site.vms, lambda vms: len(vms) == 1)
    site.claim("second")
    assert position(site, "first") == {"position": 1}
    assert position(site, "second") == {"position": 2}
    for name in ("first", "second"):
        status = site.get(CLAIMS, name)["status"]
        assert status["phase"] == "Pending"
        for kind in ("Bound", "Ready"):
            found = condition(site.get(CLAIMS, name), kind)
            assert (found["status"], found["reason"]) == ("False", "Queued")
            assert found["message"] == "no VM of pool pool is warm; the claim is in line"


def test_a_claim_in_line_is_told_when_its_vm_is_expected(site: Site) -> None:
    site.pool(warm=1, template=vm_template(boot="3s"))
    site.until_warm(1)
    site.patch(POOLS, "pool", {"spec": {"warm": {"replicas": 0}}})
    until("an empty pool", site.vms, lambda vms: not vms)
    made = site.claim()["metadata"]["creationTimestamp"]
    expected = position(site, "claim")["estimatedReadyTime"]
    assert 2 <= seconds_between(made, expected) <= 6
    bound = site.bound()["status"]["boundAt"]
    assert abs(seconds_between(expected, bound)) <= 3


def test_claims_bind_in_the_order_of_their_arrival(site: Site) -> None:
    site.pool(warm=0, template=vm_template(boot="500ms..2s"), limits={"maxConcurrentCreations": 2})
    names = [f"claim-{number}" for number in range(5)]
    for name in names:
        site.claim(name)
    times = []
    for name in names:
        status = site.bound(name)["status"]
        times.append(status["boundAt"])
        assert "queue" not in status
        assert status["waited"]
    assert times == sorted(times)


def test_order_makes_one_more_vm_at_once(site: Site, auditor: AuditorThread) -> None:
    site.pool(warm=0)
    for name in ("one", "two"):
        site.claim(name, whenEmpty={"policy": "Order"})
    for name in ("one", "two"):
        site.bound(name)
    assert auditor.settled() == []
    assert auditor.seen["VMs"] == 2
    site.until(POOLS, "pool", "nobody waits", lambda pool: pool["status"]["demand"]["pending"] == 0)


def test_order_after_makes_one_more_vm_when_its_patience_is_over(site: Site) -> None:
    site.pool(warm=0)
    made = site.claim(whenEmpty={"policy": "OrderAfter", "after": "3s"})["metadata"]["creationTimestamp"]
    [vm] = until("its order", site.vms, lambda vms: len(vms) == 1)
    assert seconds_between(made, vm["metadata"]["creationTimestamp"]) >= 3
    assert named_vm(site.bound())["name"] == vm["metadata"]["name"]


def test_wait_orders_nothing_and_takes_what_the_target_refills(site: Site) -> None:
    site.pool(warm=0)
    site.claim(whenEmpty={"policy": "Wait"})
    position(site, "claim")
    assert not site.vms()
    site.patch(POOLS, "pool", {"spec": {"warm": {"replicas": 1}}})
    site.bound()


def test_fail_fails_at_once_when_nothing_is_warm(site: Site) -> None:
    site.pool(warm=0)
    site.claim(whenEmpty={"policy": "Fail"})
    failed = site.until_phase("claim", "Failed")
    for kind, status, reason in (
        ("Finished", "True", "Failed"),
        ("Ready", "False", "Failed"),
        ("Bound", "False", "NothingWarm"),
    ):
        found = condition(failed, kind)
        assert (found["status"], found["reason"]) == (status, reason)
        assert found["message"] == "pool pool had no warm VM, and spec.whenEmpty.policy is Fail"
    assert not site.vms()


def test_fail_takes_what_is_warm(site: Site) -> None:
    site.pool(warm=1)
    site.until_warm(1)
    site.claim(whenEmpty={"policy": "Fail"})
    site.bound()


def test_a_claim_that_waited_for_its_timeout_expires(site: Site) -> None:
    site.pool(warm=0)
    made = site.claim(whenEmpty={"policy": "Wait"}, timeout="2s")["metadata"]["creationTimestamp"]
    expired = site.until_phase("claim", "Expired")
    finished = condition(expired, "Finished")
    assert (finished["status"], finished["reason"]) == ("True", "Expired")
    assert condition(expired, "Ready")["reason"] == "Expired"
    assert "within spec.timeout (2s)" in finished["message"]
    assert seconds_between(made, finished["lastTransitionTime"]) >= 2
    site.patch(POOLS, "pool", {"spec": {"warm": {"replicas": 1}}})
    site.until_warm(1)
    assert site.get(CLAIMS, "claim")["status"]["phase"] == "Expired"


def test_a_timeout_can_be_extended_while_the_claim_waits(site: Site) -> None:
    site.pool(warm=0)
    site.claim(whenEmpty={"policy": "Wait"}, timeout="3s")
    site.patch(CLAIMS, "claim", {"spec": {"timeout": "10m"}})
    holds("pending", lambda: site.get(CLAIMS, "claim").get("status") or {}, lambda s: "Finished" not in s, 1)
    site.patch(CLAIMS, "claim", {"spec": {"timeout": "1s"}})
    site.until_phase("claim", "Expired", seconds=10)


def test_a_claim_on_a_missing_pool_waits_with_a_reason_and_binds_when_it_appears(site: Site) -> None:
    site.claim()
    for kind in ("Bound", "Ready"):
        said = site.until_condition(CLAIMS, "claim", kind, "False", "PoolNotFound")
        assert "pool pool does not exist in this namespace" in said["message"]
    assert "queue" not in site.get(CLAIMS, "claim")["status"]
    site.pool(warm=1)
    site.bound()


def test_a_claim_whose_pool_is_missing_until_its_timeout_fails(site: Site) -> None:
    site.claim(timeout="2s")
    failed = site.until_phase("claim", "Failed")
    finished = condition(failed, "Finished")
    assert finished["reason"] == condition(failed, "Ready")["reason"] == "Failed"
    assert condition(failed, "Bound")["reason"] == "PoolNotFound"
    assert "pool pool did not exist when spec.timeout (2s) ended" in finished["message"]


def test_a_claim_deleted_while_it_waits_takes_its_order_back(site: Site) -> None:
    site.pool(warm=0, template=vm_template(boot="10m"))
    site.claim("impatient")
    site.claim("patient")
    until("two orders", site.vms, lambda vms: len(vms) == 2)
    site.delete(CLAIMS, "impatient")
    site.until_gone(CLAIMS, "impatient")
    until("one order", site.vms, lambda vms: len(vms) == 1)
    assert position(site, "patient")["position"] in {1, 2}
    site.until(POOLS, "pool", "one waits", lambda pool: pool["status"]["demand"]["pending"] == 1)


def test_a_claim_made_again_under_its_name_is_another_claim(site: Site) -> None:
    site.pool(warm=1)
    site.until_warm(1)
    first = site.claim()
    given = named_vm(site.bound())
    site.delete(CLAIMS, "claim")
    site.until_gone(CLAIMS, "claim")
    second = site.create(CLAIMS, claim_manifest())
    taken = named_vm(site.bound())
    assert first["metadata"]["uid"] != second["metadata"]["uid"]
    assert taken["uid"] != given["uid"]
    site.until_gone(VMS, given["name"])
    assert owner(site.get(VMS, taken["name"]))["uid"] == second["metadata"]["uid"]
