"""A pool that a command was told to look at: which one is meant, the object, and its recorded history.

Only reads, as whoever runs the command; what is not allowed or not there is said with what to do about it.
"""

from __future__ import annotations

import binascii
from base64 import b64decode
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import orjson
import typer

from auditor.cluster import Cluster
from auditor.connection import Connection, Refused
from capacity import archive
from capacity.history import History
from cli.trouble import CouldNotLookError
from crds.kinds import CLAIM, POOL, Kind
from crds.names import API_VERSION, HISTORY_KEY, HISTORY_NOTE_KEY, HISTORY_PREFIX, LABEL_POOL
from crds.pool import VirtualMachinePool, parse_pool

Json = dict[str, Any]

_SHOWN = 5
"""So many names of other pools are told when one is not found."""
RIGHTS = "docs/backtest.md has a Role with the rights that are needed"


def named(words: list[str]) -> str:
    """The name in `wp/x` or `wp x`, by any name that kubectl takes for the kind.

    Raises:
        BadParameter: it is no pool, or not one.
    """
    kind, name = _split(words)
    if kind not in _names(POOL):
        if kind in _names(CLAIM):
            raise typer.BadParameter(f"{kind} is a claim: name its pool, as in wp/NAME")
        raise typer.BadParameter(f"{kind!r} is no pool: write wp/NAME")
    if not name or "/" in name:
        raise typer.BadParameter(f"{' '.join(words)!r} names no pool: write wp/NAME")
    return name


def _split(words: list[str]) -> tuple[str, str]:
    match words:
        case [both] if "/" in both:
            kind, _, name = both.partition("/")
        case [kind, name] if "/" not in kind + name:
            pass
        case [alone]:
            raise typer.BadParameter(f"{alone!r} is no pool: write wp/{alone}")
        case _:
            raise typer.BadParameter(f"{' '.join(words)!r} is not one pool: write wp/NAME")
    return kind.lower(), name


def _names(kind: Kind) -> set[str]:
    """What kubectl takes: singular, plural and short names, with the group behind them or not."""
    group, _, version = API_VERSION.partition("/")
    bare = {kind.singular, kind.plural, *kind.short_names}
    full = {f"{kind.plural}.{group}", f"{kind.singular}.{group}", f"{kind.plural}.{version}.{group}"}
    return bare | full


async def pool(connection: Connection, namespace: str, name: str) -> VirtualMachinePool:
    """The pool as it stands.

    Raises:
        CouldNotLookError: there is none, it can't be read, or whoever asks may not.
        Refused: the server answered with an error of another kind.
    """
    path = f"/apis/{API_VERSION}/namespaces/{namespace}/{POOL.plural}"
    try:
        return parse_pool(await connection.get(f"{path}/{name}", {}))
    except ValueError as error:
        raise CouldNotLookError(f"wp/{name} can't be read: {error}") from error
    except Refused as refused:
        if refused.status == HTTPStatus.FORBIDDEN:
            raise CouldNotLookError(
                _forbidden(refused, f"get {POOL.plural}.{API_VERSION.partition('/')[0]}")
            ) from refused
        if refused.status == HTTPStatus.NOT_FOUND and name in refused.message:
            others = await _others(connection, path)
            raise CouldNotLookError(
                f"there is no pool {name} in namespace {namespace}; {others}"
            ) from refused
        raise


async def _others(connection: Connection, path: str) -> str:
    """What there is instead; nothing is said where that may not be read."""
    try:
        found, _ = await connection.collection(path, {})
    except Refused:
        return "name another with wp/NAME, or its namespace with -n"
    names = sorted(each["metadata"]["name"] for each in found)
    if not names:
        return "there is none at all: name its namespace with -n"
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"there is {', '.join(names[:_SHOWN])}{more}"


@dataclass(frozen=True, slots=True)
class Recorded:
    """What was recorded of a pool's demand, or why there is nothing to be had.

    `until`: when it was written (epoch seconds), where that is known.
    """

    history: History | None
    missing: str = ""
    until: float | None = None


async def recorded(connection: Connection, namespace: str, name: str) -> Recorded:
    """The pool's history out of its ConfigMap; a sentence where there is none that can be read.

    Raises:
        Refused: the server answered with an error that says nothing of the history.
    """
    configmap = HISTORY_PREFIX + name
    try:
        stored = await connection.get(f"/api/v1/namespaces/{namespace}/configmaps/{configmap}", {})
    except Refused as refused:
        if refused.status == HTTPStatus.FORBIDDEN:
            return Recorded(None, _forbidden(refused, "get configmaps"))
        if refused.status == HTTPStatus.NOT_FOUND:
            return Recorded(
                None,
                f"no claims were recorded for pool {name} yet: the controller writes ConfigMap {configmap} "
                "some five minutes after the first one",
            )
        raise
    return decoded(stored, configmap)


async def looked_at(target: Cluster, namespace: str, name: str) -> tuple[VirtualMachinePool, Recorded]:
    """The pool and its history, by a session of their own.

    Raises:
        CouldNotLookError, Refused: as `pool` and `recorded` do.
    """
    async with Connection.to(target) as connection:
        found = await pool(connection, namespace, name)
        return found, await recorded(connection, namespace, name)


def decoded(stored: Json, configmap: str) -> Recorded:
    """The history in a ConfigMap that was read."""
    written = (stored.get("binaryData") or {}).get(HISTORY_KEY)
    if LABEL_POOL not in (stored["metadata"].get("labels") or {}):
        return Recorded(None, f"ConfigMap {configmap} is not Bullpen's: give it another name")
    if written is None:
        return Recorded(
            None, f"ConfigMap {configmap} holds no history ({HISTORY_KEY} is missing in its binaryData)"
        )
    try:
        return Recorded(archive.decode(b64decode(written, validate=True)), until=_written_at(stored))
    except (archive.HistoryError, binascii.Error) as error:
        return Recorded(
            None,
            f"the history in ConfigMap {configmap} can't be read: {error}; "
            "delete it, and the controller begins anew",
        )


def _written_at(stored: Json) -> float | None:
    """When the controller wrote it, as its note says; the note is not worth failing for."""
    try:
        found: float = float(orjson.loads((stored.get("data") or {})[HISTORY_NOTE_KEY])["writtenAt"])
    except (KeyError, TypeError, ValueError):
        return None
    return found


def _forbidden(refused: Refused, right: str) -> str:
    return f"the right to {right} is missing: {refused.message}; {RIGHTS}"
