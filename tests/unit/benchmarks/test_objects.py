"""The bare client's writes are the product's: the same guards, the same contents."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import orjson

from benchmarks.objects import Machine, Shape, claim, delete_options, pool
from controller.claims import patches, status
from controller.claims.objects import Claim
from controller.claims.status import Terms
from controller.machines.rendering import render
from crds import names
from tests.support.builders import NAMESPACE, NOW, POOL, POOL_UID, make_claim, make_pool, make_vm, make_vmi

VM = Machine("pool-aaaaa", "pool-aaaaa-uid")
OWNER = {
    "apiVersion": names.API_VERSION,
    "kind": "VirtualMachinePool",
    "name": POOL,
    "uid": POOL_UID,
    "controller": True,
    "blockOwnerDeletion": True,
}


def stored_vm(**metadata: Any) -> dict[str, Any]:
    """A VM as the API server has it: what the controller made, and what was added since."""
    made = render(make_pool(), "0123456789", "aaaaa")
    made["metadata"] |= {
        "namespace": NAMESPACE,
        "uid": VM.uid,
        "resourceVersion": "5",
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "ownerReferences": [OWNER],
        **metadata,
    }
    return made | {"status": {"ready": True}}


def stored_vmi() -> dict[str, Any]:
    return {
        "metadata": {"uid": "pool-aaaaa-guest"},
        "status": {"nodeName": "node-1", "interfaces": [{"ipAddress": "10.0.0.7"}]},
    }


def shape() -> Shape:
    return Shape(stored_vm(), stored_vmi())


def test_the_bare_hand_over_is_the_products_write_1() -> None:
    ours = patches.hand_over(make_vm(VM.name, uid=VM.uid), make_claim())
    assert orjson.loads(shape().hand_over(VM, "claim", "claim-uid")) == orjson.loads(orjson.dumps(ours))


def test_the_bare_publication_is_the_products_write_2() -> None:
    vm, vmi, wanted = make_vm(VM.name, uid=VM.uid), make_vmi(VM.name), make_claim()
    terms = Terms(POOL, POOL_UID, NOW, 0.005)
    ours = patches.whole_status(wanted, status.bound(wanted, vm, vmi, terms))
    bare = shape().publish(VM, "claim-uid", datetime.fromtimestamp(NOW, UTC))
    assert orjson.loads(bare) == orjson.loads(orjson.dumps(ours))


def test_the_bare_vm_is_one_of_the_controllers_with_another_name() -> None:
    made = orjson.loads(shape().vm("pool-bbbbb"))
    expected = stored_vm()
    for key in ("uid", "resourceVersion", "creationTimestamp"):
        del expected["metadata"][key]
    del expected["status"]
    expected["metadata"]["name"] = "pool-bbbbb"
    assert made == expected


def test_making_a_vm_changes_nothing_of_the_pattern() -> None:
    pattern = shape()
    pattern.vm("pool-bbbbb")
    assert orjson.loads(pattern.vm("pool-ccccc"))["metadata"]["name"] == "pool-ccccc"


def test_the_claim_is_a_claim_on_the_pool() -> None:
    made = msgspec.json.decode(claim("warm", "c-1"), type=Claim)
    assert made.spec.pool_ref.name == "warm"
    assert made.name == "c-1"


def test_the_pool_is_the_examples_with_another_size() -> None:
    example = {"kind": "VirtualMachinePool", "metadata": {"name": "runners"}, "spec": {"template": {"a": 1}}}
    made = orjson.loads(pool(example, "warm", 300, 5000, 100))
    assert made["metadata"] == {"name": "warm"}
    assert made["spec"]["template"] == {"a": 1}
    assert made["spec"]["warm"] == {"replicas": 300}
    assert made["spec"]["limits"]["maxReplicas"] == 5000
    assert example["metadata"] == {"name": "runners"}


def test_a_vm_is_deleted_by_its_uid_as_the_product_does() -> None:
    assert orjson.loads(delete_options("u-1")) == {
        "kind": "DeleteOptions",
        "apiVersion": "v1",
        "preconditions": {"uid": "u-1"},
        "propagationPolicy": "Background",
    }
