"""Puts back our labels where a person stripped or changed them: the owner decides, labels follow.

The watches select by label, so a VM without it is out of sight; now and then all VMs are listed by their
metadata alone. It never changes the state that is there, and never touches a VM that nothing of ours owns.
"""

import asyncio
import random
from collections.abc import Mapping

import structlog

from controller.claims.execute import VM_PATH
from controller.claims.objects import Claim
from controller.claims.patches import add, escape, owner_references, test
from controller.claims.protocol import Ops, StepName
from controller.kube import errors
from controller.kube.client import METADATA_ONLY, ApiClient, Priority
from controller.kube.objects import KubeObject, ObjectMeta
from controller.kube.pages import metadata_page
from controller.kube.paths import collection
from controller.kube.store import Store
from controller.machines.ownership import OwnerKind, controller_reference
from crds import names

log = structlog.get_logger()

_PAGE = "500"


def missing_labels(meta: ObjectMeta, claim: Claim | None) -> dict[str, str]:
    """The labels that a VM of ours should have and has not, or otherwise; `claim` where one owns it."""
    owner = controller_reference(meta)
    if owner is None or not owner.api_version.startswith(names.GROUP + "/"):
        return {}
    if owner.kind == OwnerKind.POOL:
        wanted = {
            names.LABEL_POOL: owner.name,
            names.LABEL_POOL_UID: owner.uid,
            names.LABEL_STATE: names.Mark.POOLED.value,
        }
    elif owner.kind == OwnerKind.CLAIM:
        wanted = {names.LABEL_CLAIM_UID: owner.uid, names.LABEL_STATE: names.Mark.CLAIMED.value}
        if claim is not None and claim.uid == owner.uid and claim.status is not None:
            wanted |= {names.LABEL_POOL: claim.status.pool, names.LABEL_POOL_UID: claim.status.pool_uid}
    else:
        return {}
    state = names.LABEL_STATE  # what we decided is repair's business; whose a VM is, its owner says
    return {
        key: value
        for key, value in wanted.items()
        if value and (key not in meta.labels if key == state else meta.labels.get(key) != value)
    }


def put_back(meta: ObjectMeta, labels: Mapping[str, str]) -> Ops:
    """Put the labels right, if the VM still has the owners that say so and nobody was faster."""
    guards = [
        test("/metadata/uid", meta.uid),
        test("/metadata/deletionTimestamp", None),
        test("/metadata/ownerReferences", owner_references(KubeObject(meta))),
    ]
    if not meta.labels:
        return (*guards, test("/metadata/labels", None), add("/metadata/labels", dict(labels)))
    paths = {f"/metadata/labels/{escape(key)}": value for key, value in labels.items()}
    seen = (test(f"/metadata/labels/{escape(key)}", meta.labels.get(key)) for key in labels)
    return (*guards, *seen, *(add(path, value) for path, value in paths.items()))


class Resync:
    """`run` looks at a namespace, or at all, every `interval` seconds, give or take a tenth."""

    def __init__(self, client: ApiClient, claims: Store[Claim], interval: float, namespace: str = "") -> None:
        self._client = client
        self._path = collection(VM_PATH, namespace)
        self._claims = claims
        self._interval = interval

    async def run(self) -> None:
        """For ever; an error costs one look."""
        while True:
            await asyncio.sleep(self._interval * random.uniform(0.9, 1.1))
            try:
                await self.look()
            except errors.ApiError as error:
                log.warning("no resync this time", error=str(error))

    async def look(self) -> None:
        """One look at the metadata of all VMs. Raises ApiError."""
        params = {"limit": _PAGE}
        while True:
            page = metadata_page(
                await self._client.get(self._path, params, step=StepName.RESYNC, accept=METADATA_ONLY)
            )
            for each in page.items or ():
                await self._mend(each.metadata)
            if not page.metadata.next:
                return
            params["continue"] = page.metadata.next

    async def _mend(self, meta: ObjectMeta) -> None:
        owner = controller_reference(meta)
        if owner is None or meta.deletion_timestamp is not None:
            return
        labels = missing_labels(meta, self._claims.get(owner.uid))
        if not labels:
            return
        log.warning("labels put back", vm=meta.name, namespace=meta.namespace, labels=sorted(labels))
        path = f"{collection(VM_PATH, meta.namespace)}/{meta.name}"
        try:
            await self._client.json_patch(
                path, list(put_back(meta, labels)), priority=Priority.STATUS, step=StepName.RESYNC_LABELS
            )
        except (errors.TestFailed, errors.NotFound):
            return  # it has changed meanwhile: the next look decides anew
