"""Whether the books balance at rest: every VM is somebody's, every claim has one or says why not. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from crds.durations import seconds
from crds.names import CLAIM_KIND, LABEL_CLAIM_UID, LABEL_STATE, POOL_KIND, Mark

Json = dict[str, Any]


def complaints(claims: list[Json], vms: list[Json], warm: int) -> list[str]:
    """What is wrong with a namespace at rest whose pools want `warm` VMs in all; empty when nothing is."""
    bound = {each["metadata"]["uid"]: each for each in claims if _phase(each) == "Bound"}
    found = [*_vms(vms, bound), *_claims(claims, vms)]
    if len(vms) != warm + len(bound):
        found.append(f"there are {len(vms)} VMs for a target of {warm} and {len(bound)} bound claims")
    pooled = sum(_state(vm) == Mark.POOLED for vm in vms)
    waiting = [each["metadata"]["name"] for each in claims if _phase(each) == "Pending"]
    if waiting and pooled:
        found.append(f"claims wait beside {pooled} free VMs: {', '.join(waiting[:5])}")
    return found


def running_out(claims: Iterable[Json], now: float, within: float) -> list[str]:
    """Claims that time alone changes within so many seconds of now (since the epoch): they are no rest yet.

    A lifetime ends, a timeout, a `ttlSecondsAfterFinished`, or the moment comes in which a VM is ordered.
    """
    due = ((claim, what, at) for claim in claims for what, at in _clocks(claim, now) if at <= now + within)
    return [f"claim {claim['metadata']['name']}: its {what} is about to end" for claim, what, _ in due]


def _clocks(claim: Json, now: float) -> Iterator[tuple[str, float]]:
    spec, status, phase = claim.get("spec") or {}, claim.get("status") or {}, _phase(claim)
    if phase == "Bound":
        if expires := status.get("expiresAt"):
            yield "lifetime", _epoch(expires)
    elif phase == "Pending":
        created = _epoch(claim["metadata"]["creationTimestamp"])
        if timeout := spec.get("timeout"):
            yield "timeout", created + seconds(timeout)
        after = (spec.get("whenEmpty") or {}).get("after")
        if after and created + seconds(after) > now:  # what was ordered before shows in the books
            yield "whenEmpty.after", created + seconds(after)
    elif (ttl := spec.get("ttlSecondsAfterFinished")) is not None:
        ends = (each for each in status.get("conditions", []) if each["type"] == "Finished")
        yield from (("ttlSecondsAfterFinished", _epoch(each["lastTransitionTime"]) + ttl) for each in ends)


def _epoch(stamp: str) -> float:
    return datetime.fromisoformat(stamp).timestamp()


def _vms(vms: Iterable[Json], bound: dict[str, Json]) -> Iterator[str]:
    for vm in vms:
        meta = vm["metadata"]
        name, state, holder = meta["name"], _state(vm), meta.get("labels", {}).get(LABEL_CLAIM_UID)
        owners = [(each["kind"], each["uid"]) for each in meta.get("ownerReferences", [])]
        if "deletionTimestamp" in meta:
            yield f"VM {name} is being deleted still"
        elif state == Mark.POOLED:
            if holder or [kind for kind, _ in owners] != [POOL_KIND]:
                yield f"VM {name} is Pooled, has the claim UID {holder} and is owned by {owners}"
        elif state == Mark.CLAIMED:
            if owners != [(CLAIM_KIND, holder)]:
                yield f"VM {name} is Claimed for {holder} and is owned by {owners}"
            elif holder not in bound or meta["uid"] not in _named(bound[holder]):
                yield f"VM {name} is leaked: Claimed for {holder}, and no such claim is Bound to it"
        else:
            yield f"VM {name} is {state}"


def _claims(claims: Iterable[Json], vms: Iterable[Json]) -> Iterator[str]:
    alive = {vm["metadata"]["uid"] for vm in vms}
    for claim in claims:
        meta, phase = claim["metadata"], _phase(claim)
        if "deletionTimestamp" in meta:
            yield f"claim {meta['name']} is being deleted still"
        elif phase == "Bound":
            named = _named(claim)
            if len(named) != 1 or not set(named) <= alive:
                yield f"claim {meta['name']} is Bound to {named}, not to one VM that is there"
        elif phase == "Releasing":
            yield f"claim {meta['name']} is Releasing still"
        elif not _reason(claim, "Bound" if phase == "Pending" else "Finished"):
            yield f"claim {meta['name']} is {phase} and does not say why"


def _phase(claim: Json) -> str:
    return str((claim.get("status") or {}).get("phase") or "Pending")


def _state(vm: Json) -> str | None:
    state: str | None = vm["metadata"].get("labels", {}).get(LABEL_STATE)
    return state


def _named(claim: Json) -> list[str]:
    return [each["uid"] for each in claim["status"].get("virtualMachines", [])]


def _reason(claim: Json, kind: str) -> str:
    conditions = (claim.get("status") or {}).get("conditions", [])
    return next((f"{each['reason']}: {each['message']}" for each in conditions if each["type"] == kind), "")
