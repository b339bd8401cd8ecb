"""What a pool's VMs were made from, as a short hash of what the user wrote: its revision.

Pure. A changed hash replaces VMs, so nothing that the controller or the API server adds may change it, and
neither may an upgrade: what an earlier release wrote onto a VM is recognised for ever.
"""

import hashlib
from typing import Any

import orjson

from crds.pool import VirtualMachinePool, VMTemplate

Json = dict[str, Any]


def revision(pool: VirtualMachinePool) -> str:
    """The revision of the VMs that are made now: ten hex digits.

    The same whatever the order of keys, whether what is empty is written or left out, and whether
    `runStrategy: Always`, which rendering puts in, is written or not.
    """
    return _hash(_plain(pool.spec.template))


def current_revisions(pool: VirtualMachinePool) -> frozenset[str]:
    """Every revision that a VM of the pool's present template may carry, by this release or an earlier one.

    An algorithm that was released once stays here: taken out, it would replace all VMs of its time.
    """
    return frozenset({revision(pool), _hash(_as_first_released(pool.spec.template))})


def _plain(template: VMTemplate) -> Json:
    spec = {"runStrategy": "Always", **template.spec}
    guest = spec.get("template")
    if isinstance(guest, dict) and "metadata" in guest:
        rest = {key: value for key, value in guest.items() if key != "metadata"}
        spec["template"] = {**rest, **_with_metadata(guest["metadata"])}
    written = template.metadata.model_dump(by_alias=True, exclude_none=True) if template.metadata else None
    return {"spec": spec, **_with_metadata(written)}


def _with_metadata(metadata: Any) -> Json:
    if isinstance(metadata, dict):
        metadata = {key: value for key, value in metadata.items() if value not in (None, {})}
    return {"metadata": metadata} if metadata else {}


def _as_first_released(template: VMTemplate) -> Json:
    """0.1: as written, apart from absent fields."""
    return template.model_dump(by_alias=True, exclude_none=True, exclude_defaults=True)


def _hash(written: Json) -> str:
    return hashlib.sha256(orjson.dumps(written, option=orjson.OPT_SORT_KEYS)).hexdigest()[:10]
