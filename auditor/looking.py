"""Looks at a cluster twice, a moment apart, and says what is wrong with it both times.

One look can't tell a hand-over under way from one that was given up: between its two writes a VM is held by a
claim that does not know of it. Nothing is written, and nothing is watched.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from auditor import look_claims, look_vms
from auditor.connection import METADATA_ONLY, Connection, Refused
from auditor.events import Kind, Object
from auditor.feed import Source
from auditor.findings import Finding, lasting, ordered
from auditor.look import Look, look

_EXPIRED, _NOT_FOUND, _FORBIDDEN = 410, 404, 403
_TRIES = 3


class NoSuchNamespaceError(Exception):
    """An empty list would be taken for a clean namespace."""


@dataclass(frozen=True, slots=True)
class Audit:
    """What was found, and in how much."""

    findings: list[Finding]
    seen: dict[str, int]


async def audited(connection: Connection, namespace: str | None, settle: float) -> Audit:
    """What is wrong, and is still wrong after `settle` seconds; at once when nothing is.

    Raises:
        Refused: the server does not serve a kind, or not to us.
        NoSuchNamespaceError: the namespace is not there.
    """
    seen = await once(connection, namespace)
    found = judged(seen)
    if found and settle:
        await asyncio.sleep(settle)
        seen = await once(connection, namespace)
        found = lasting(found, judged(seen))
    return Audit(ordered(found), seen.numbers)


def judged(seen: Look) -> list[Finding]:
    """All that is wrong with what was seen. Pure."""
    found = [each for pool in seen.pools.values() for each in look_claims.pool(seen, pool)]
    found += [each for claim in seen.claims.values() for each in look_claims.claim(seen, claim)]
    found += [each for vm in seen.vms.values() if (each := look_vms.vm(seen, vm)) is not None]
    return found


async def once(connection: Connection, namespace: str | None) -> Look:
    """One look. The lists are consistent, each in itself: what moved between two of them settles.

    VMs come as metadata alone: that says all, and their specs are long.
    """
    ending = await _ending(connection, namespace)
    pools = await _list(connection, Source(Kind.POOL, namespace))
    claims = await _list(connection, Source(Kind.CLAIM, namespace))
    vms = await _list(connection, Source(Kind.VM, namespace), METADATA_ONLY)
    now = parsedate_to_datetime(connection.date) if connection.date else datetime.now(UTC)
    return look(now, pools, claims, vms, ending)


async def _list(connection: Connection, source: Source, accept: str = "application/json") -> list[Object]:
    """All of a kind; begun anew when the server could not keep the list for so long."""
    for _ in range(_TRIES - 1):
        try:
            return (await connection.collection(source.path, {}, accept))[0]
        except Refused as error:
            if error.status != _EXPIRED:
                raise
    return (await connection.collection(source.path, {}, accept))[0]


async def _ending(connection: Connection, namespace: str | None) -> frozenset[str]:
    """Namespaces that are being deleted; none for who may not see namespaces."""
    path = Source(Kind.NAMESPACE, None).path
    try:
        if namespace is not None:
            found = [await connection.get(f"{path}/{namespace}", {})]
        else:
            found, _ = await connection.collection(path, {}, METADATA_ONLY)
    except Refused as error:
        if error.status == _NOT_FOUND:
            raise NoSuchNamespaceError(f"there is no namespace {namespace}") from error
        if error.status != _FORBIDDEN:
            raise
        return frozenset()
    return frozenset(each["metadata"]["name"] for each in found if "deletionTimestamp" in each["metadata"])
