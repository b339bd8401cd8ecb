"""The ConfigMap in which a pool's demand is kept, as a test reads it, or writes one of days before."""

from __future__ import annotations

import base64
import json
from typing import Any

from capacity.archive import decode, encode
from capacity.history import History
from crds import names
from tests.support.site import Site

Json = dict[str, Any]


def path(site: Site, pool: str = "pool") -> str:
    return f"/api/v1/namespaces/{site.namespace}/configmaps/{names.HISTORY_PREFIX}{pool}"


def kept(site: Site, pool: str = "pool") -> Json:
    """The ConfigMap; empty when there is none."""
    answer = site.api.get(path(site, pool))
    return answer.body if answer.ok else {}


def history(site: Site, pool: str = "pool") -> History | None:
    """What is kept of a pool's demand."""
    written = kept(site, pool).get("binaryData", {}).get(names.HISTORY_KEY)
    return decode(base64.b64decode(written)) if written else None


def write(site: Site, past: History | bytes, at: float, pool: str = "pool") -> None:
    """Write a history as a leader would have that stopped at that time (epoch seconds)."""
    blob = past if isinstance(past, bytes) else encode(past)
    meta = {"name": f"{names.HISTORY_PREFIX}{pool}", "labels": {names.LABEL_POOL: pool}}
    body = {
        "metadata": meta,
        "binaryData": {names.HISTORY_KEY: base64.b64encode(blob).decode()},
        "data": {names.HISTORY_NOTE_KEY: json.dumps({"writtenAt": at})},
    }
    all_of_them = path(site, pool).rpartition("/")[0]
    answer = site.api.patch(path(site, pool), body) if kept(site, pool) else site.api.post(all_of_them, body)
    assert answer.ok, answer.message
