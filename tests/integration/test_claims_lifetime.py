"""A claim's lifetime, from the bind to the VM's end; and what is left of a claim that is finished."""

from __future__ import annotations

from datetime import datetime

import pytest

from tests.support.site import (
    CLAIMS,
    POOLS,
    VMS,
    Json,
    Site,
    condition,
    holds,
    named_vm,
    until_equal,
    vm_template,
)

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("controller", "auditor")]


def lifetime_of(claim: Json) -> float | None:
    """Seconds from the bind to the announced release; None when the claim has no end."""
    status = claim["status"]
    if "expiresAt" not in status:
        return None
    ends, began = (datetime.fromisoformat(status[key]) for key in ("expiresAt", "boundAt"))
    return (ends - began).total_seconds()


# The pool's policy, the claim's wish, and the seconds that come of it.
LIFETIMES: dict[str, tuple[Json | None, str | None, float | None]] = {
    "nothing-said": (None, None, None),
    "a-wish": (None, "1h", 3600),
    "a-default": ({"default": "30m"}, None, 1800),
    "a-wish-over-the-default": ({"default": "30m"}, "1h", 3600),
    "a-wish-over-the-bound": ({"max": "45m"}, "1h", 2700),
    "a-bound-and-nothing-said": ({"max": "45m"}, None, 2700),
    "a-default-under-the-bound": ({"default": "30m", "max": "45m"}, None, 1800),
}


def test_the_lifetime_is_the_wish_or_the_default_within_the_bound(site: Site) -> None:
    for name, (policy, wish, _) in LIFETIMES.items():
        site.pool(name, warm=0, **({"claims": {"lifetime": policy}} if policy else {}))
        site.claim(name, name, **({"lifetime": wish} if wish else {}))
    found = {name: lifetime_of(site.bound(name)) for name in LIFETIMES}
    assert found == {name: seconds for name, (_, _, seconds) in LIFETIMES.items()}


def test_a_lifetime_that_is_over_releases_the_vm_and_keeps_the_claim(site: Site) -> None:
    site.pool(warm=1, template=vm_template(shutdown="3s"))
    site.until_warm(1)
    site.claim(lifetime="2s")
    bound = site.bound()
    vm = named_vm(bound)["name"]
    releasing = site.until_phase("claim", "Releasing")
    assert condition(releasing, "Ready")["reason"] == "LifetimeOver"
    released = site.until_phase("claim", "Released")
    assert not site.find(VMS, vm), "Released is said when the VM is gone"
    finished = condition(released, "Finished")
    assert (finished["status"], finished["reason"]) == ("True", "Released")
    assert condition(released, "Ready")["reason"] == "Released"
    assert released["status"]["virtualMachines"] == bound["status"]["virtualMachines"]
    site.until_warm(1)


def test_a_lifetime_extended_after_the_bind_moves_the_end(site: Site) -> None:
    site.pool(warm=1)
    site.until_warm(1)
    site.claim(lifetime="4s")
    site.bound()
    site.patch(CLAIMS, "claim", {"spec": {"lifetime": "1h"}})
    site.until(CLAIMS, "claim", "extended", lambda claim: lifetime_of(claim) == 3600)
    holds("bound", lambda: site.get(CLAIMS, "claim")["status"]["phase"], lambda phase: phase == "Bound", 4)


def test_a_lifetime_shortened_after_the_bind_ends_it_sooner(site: Site) -> None:
    site.pool(warm=1)
    site.until_warm(1)
    site.claim(lifetime="1h")
    vm = named_vm(site.bound())["name"]
    site.patch(CLAIMS, "claim", {"spec": {"lifetime": "1s"}})
    site.until_phase("claim", "Released")
    assert not site.find(VMS, vm)


def test_a_lifetime_added_and_taken_away_after_the_bind_counts(site: Site) -> None:
    site.pool(warm=1)
    site.until_warm(1)
    site.claim()
    assert lifetime_of(site.bound()) is None
    for lifetime, seconds in (("1h", 3600), (None, None)):
        site.patch(CLAIMS, "claim", {"spec": {"lifetime": lifetime}})
        until_equal(lambda: lifetime_of(site.get(CLAIMS, "claim")), seconds)


def test_an_extension_stays_within_the_pools_bound(site: Site) -> None:
    site.pool(warm=1, claims={"lifetime": {"max": "45m"}})
    site.until_warm(1)
    site.claim(lifetime="10m")
    site.bound()
    site.patch(CLAIMS, "claim", {"spec": {"lifetime": "48h"}})
    site.until(CLAIMS, "claim", "bounded", lambda claim: lifetime_of(claim) == 2700)


def test_a_lifetime_runs_on_when_the_pool_is_gone(site: Site) -> None:
    site.pool(warm=1, claims={"lifetime": {"default": "4s"}})
    site.until_warm(1)
    site.claim()
    vm = named_vm(site.bound())["name"]
    site.delete(POOLS, "pool")
    site.until_gone(POOLS, "pool")
    site.until_phase("claim", "Released")
    assert not site.find(VMS, vm)


@pytest.mark.parametrize(
    ("spec", "phase"),
    [
        pytest.param({"lifetime": "1s"}, "Released", id="released"),
        pytest.param({"whenEmpty": {"policy": "Fail"}, "poolRef": {"name": "empty"}}, "Failed", id="failed"),
    ],
)
def test_a_finished_claim_is_removed_after_its_time(site: Site, spec: Json, phase: str) -> None:
    site.pool(warm=1)
    site.pool("empty", warm=0)
    site.until_warm(1)
    site.until_warm(0, "empty")
    site.claim(**spec, ttlSecondsAfterFinished=5)
    site.until_phase("claim", phase)
    site.until_gone(CLAIMS, "claim")


def test_a_finished_claim_without_a_time_to_live_stays(site: Site) -> None:
    site.pool(warm=1)
    site.until_warm(1)
    site.claim(lifetime="1s")
    site.until_phase("claim", "Released")
    holds("there", lambda: site.find(CLAIMS, "claim"), bool, 2)
