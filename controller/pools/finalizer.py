"""Puts our finalizer on a pool and takes it off again, each by a patch that another's change refuses.

It never decides when: before the first VM, and when an uncached list shows none that the pool owns.
"""

from contextlib import suppress

from controller.claims.patches import add, test
from controller.claims.protocol import StepName
from controller.kube import errors
from controller.kube.client import ApiClient
from controller.pools.report import patch_pool
from crds import names
from crds.pool import VirtualMachinePool


async def put_on(client: ApiClient, pool: VirtualMachinePool) -> None:
    """Unless it is there, or the pool is going. Raises ApiError."""
    meta = pool.metadata
    if names.FINALIZER_POOL in meta.finalizers or meta.deletion_timestamp is not None:
        return
    body = [test("/metadata/finalizers", list(meta.finalizers))] if meta.finalizers else []
    body.append(add("/metadata/finalizers", [*meta.finalizers, names.FINALIZER_POOL]))
    with suppress(errors.TestFailed, errors.NotFound):
        await patch_pool(client, pool, body, StepName.POOL_FINALIZER)


async def take_off(client: ApiClient, pool: VirtualMachinePool) -> bool:
    """Whether it was there. Raises NotFound when the pool is gone, TestFailed when its finalizers changed."""
    found = list(pool.metadata.finalizers)
    left = [each for each in found if each != names.FINALIZER_POOL]
    if left == found:
        return False
    body = [test("/metadata/finalizers", found), add("/metadata/finalizers", left)]
    await patch_pool(client, pool, body, StepName.POOL_FINALIZER)
    return True
