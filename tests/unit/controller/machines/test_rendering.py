"""What a pool's VM looks like, and which templates make none."""

from __future__ import annotations

import copy
import json
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.machines.ownership import OwnerKind, owner_of
from controller.machines.rendering import (
    MAX_TEMPLATE_BYTES,
    NAME_ALPHABET,
    SUFFIX_LENGTH,
    TemplateError,
    TemplateTooLargeError,
    check,
    render,
)
from controller.machines.revision import revision
from crds import names
from crds.pool import VirtualMachinePool
from tests.support.builders import make_pool, make_template, read_vm

DISK = {"metadata": {"name": "root"}, "spec": {"source": {"pvc": {"name": "golden"}}}}


def _rendered(pool: VirtualMachinePool, suffix: str = "x7k2p") -> dict[str, Any]:
    check(pool)
    return render(pool, revision(pool), suffix)


def _refusal(template: dict[str, Any]) -> str:
    with pytest.raises(TemplateError) as caught:
        check(make_pool(template=template))
    assert caught.value.reason == "TemplateInvalid"
    return str(caught.value)


# ---- the name


def test_a_vm_is_named_after_its_pool() -> None:
    assert _rendered(make_pool("web"))["metadata"]["name"] == "web-x7k2p"


@pytest.mark.parametrize("length", [1, 57, 58, 62, 63])
def test_a_name_is_never_longer_than_a_label_value(length: int) -> None:
    name = _rendered(make_pool("w" * length))["metadata"]["name"]
    assert len(name) <= names.MAX_NAME
    assert name.endswith("-x7k2p")


@pytest.mark.parametrize("end", ["-", ".", "-.-"])
def test_a_cut_name_does_not_end_in_what_no_part_of_a_name_may_end_in(end: str) -> None:
    long = "w" * (57 - len(end)) + end + "wwwwww"
    assert _rendered(make_pool(long))["metadata"]["name"] == "w" * (57 - len(end)) + "-x7k2p"


def test_suffixes_are_of_letters_and_digits_that_nobody_confuses() -> None:
    assert SUFFIX_LENGTH == 5
    assert not set(NAME_ALPHABET) & set("aeiou013")
    assert NAME_ALPHABET.isalnum()
    assert NAME_ALPHABET.lower() == NAME_ALPHABET


# ---- what is ours on it


def test_a_vm_is_pooled_and_its_pools() -> None:
    vm = read_vm(_rendered(make_pool()))
    owner = owner_of(vm.metadata)
    assert owner is not None
    assert (owner.kind, owner.uid) == (OwnerKind.POOL, "pool-uid")
    assert vm.metadata.labels[names.LABEL_STATE] == names.Mark.POOLED
    assert vm.metadata.namespace == "ns"


def test_its_owner_is_the_controller_and_blocks_the_owners_deletion() -> None:
    (reference,) = _rendered(make_pool())["metadata"]["ownerReferences"]
    assert reference["controller"] is True
    assert reference["blockOwnerDeletion"] is True


def test_pool_and_revision_are_labels_of_the_vm_and_of_its_guest() -> None:
    pool = make_pool()
    body = _rendered(pool)
    shared = {
        names.LABEL_POOL: "pool",
        names.LABEL_POOL_UID: "pool-uid",
        names.LABEL_REVISION: revision(pool),
    }
    assert shared.items() <= body["metadata"]["labels"].items()
    assert body["spec"]["template"]["metadata"]["labels"] == shared


def test_the_state_is_no_label_of_the_guest_since_it_would_be_out_of_date_there() -> None:
    assert names.LABEL_STATE not in _rendered(make_pool())["spec"]["template"]["metadata"]["labels"]


def test_the_users_labels_and_annotations_stay_beside_ours() -> None:
    pool = make_pool(labels={"team": "a"}, annotations={"note": "b"})
    metadata = _rendered(pool)["metadata"]
    assert metadata["labels"]["team"] == "a"
    assert metadata["annotations"]["note"] == "b"


def test_a_users_label_never_takes_the_place_of_ours() -> None:
    template = make_template()
    template["template"]["metadata"] = {"labels": {names.LABEL_POOL: "other", "team": "a"}}
    labels = _rendered(make_pool(template=template))["spec"]["template"]["metadata"]["labels"]
    assert labels[names.LABEL_POOL] == "pool"
    assert labels["team"] == "a"


def test_every_vm_has_a_label_and_an_annotation_so_that_a_patch_can_add_more() -> None:
    metadata = _rendered(make_pool())["metadata"]
    assert metadata["labels"]
    assert metadata["annotations"]


@pytest.mark.parametrize("metadata", [None, {}, {"labels": None}, {"creationTimestamp": None}])
def test_guest_metadata_may_be_empty_in_every_way_that_yaml_knows(metadata: Any) -> None:
    template = make_template()
    template["template"]["metadata"] = metadata
    labels = _rendered(make_pool(template=template))["spec"]["template"]["metadata"]["labels"]
    assert labels[names.LABEL_POOL] == "pool"


def test_a_pool_without_a_run_strategy_makes_vms_that_run() -> None:
    template = make_template()
    del template["runStrategy"]
    assert _rendered(make_pool(template=template))["spec"]["runStrategy"] == "Always"


def test_rendering_leaves_the_pool_as_it_is() -> None:
    template = make_template(volumes=[{"name": "root", "dataVolume": {"name": "root"}}])
    template["dataVolumeTemplates"] = [DISK]
    pool = make_pool(template=template)
    before = copy.deepcopy(pool.spec.template.spec)
    _rendered(pool)
    assert pool.spec.template.spec == before


def test_the_same_pool_and_suffix_make_the_same_vm() -> None:
    assert _rendered(make_pool()) == _rendered(make_pool())


# ---- disks of its own


def test_each_data_volume_gets_a_name_of_the_vms_own_and_every_reference_follows() -> None:
    volumes = [
        {"name": "a", "dataVolume": {"name": "root"}},
        {"name": "b", "persistentVolumeClaim": {"claimName": "data", "readOnly": True}},
        {"name": "c", "dataVolume": {"name": "data", "hotpluggable": True}},
    ]
    template = make_template(volumes=volumes)
    template["dataVolumeTemplates"] = [DISK, {**DISK, "metadata": {"name": "data", "labels": {"k": "v"}}}]
    spec = _rendered(make_pool(template=template))["spec"]
    assert [each["metadata"] for each in spec["dataVolumeTemplates"]] == [
        {"name": "pool-x7k2p-root"},
        {"name": "pool-x7k2p-data", "labels": {"k": "v"}},
    ]
    assert spec["template"]["spec"]["volumes"] == [
        {"name": "a", "dataVolume": {"name": "pool-x7k2p-root"}},
        {"name": "b", "persistentVolumeClaim": {"claimName": "pool-x7k2p-data", "readOnly": True}},
        {"name": "c", "dataVolume": {"name": "pool-x7k2p-data", "hotpluggable": True}},
    ]


def test_what_is_shared_keeps_its_name() -> None:
    volumes = [
        {"name": "a", "dataVolume": {"name": "made-elsewhere"}},
        {"name": "b", "persistentVolumeClaim": {"claimName": "library", "readOnly": True}},
        {"name": "c", "containerDisk": {"image": "root"}},
        {"name": "root", "cloudInitNoCloud": {"userData": "root"}},
    ]
    template = make_template(volumes=volumes)
    template["dataVolumeTemplates"] = [DISK]
    assert _rendered(make_pool(template=template))["spec"]["template"]["spec"]["volumes"] == volumes


def test_where_a_disk_is_copied_from_keeps_its_name() -> None:
    template = make_template()
    template["dataVolumeTemplates"] = [{**DISK, "metadata": {"name": "golden"}}]
    (disk,) = _rendered(make_pool(template=template))["spec"]["dataVolumeTemplates"]
    assert disk["spec"] == {"source": {"pvc": {"name": "golden"}}}


# ---- refusals


@pytest.mark.parametrize(
    ("template", "says"),
    [
        pytest.param(
            make_template(domain={"firmware": {"uuid": "5d307ca9"}}), "domain.firmware.uuid", id="a uuid"
        ),
        pytest.param(
            make_template(domain={"firmware": {"serial": "e4686d2c"}}),
            "domain.firmware.serial",
            id="a serial",
        ),
        pytest.param(
            make_template(
                domain={"devices": {"interfaces": [{"name": "nic"}, {"name": "b", "macAddress": "02:00"}]}}
            ),
            "interface b has a fixed macAddress",
            id="a MAC address, on the second interface too",
        ),
        pytest.param(
            make_template(volumes=[{"name": "d", "persistentVolumeClaim": {"claimName": "x"}}]),
            "volume d is a writable persistentVolumeClaim",
            id="a disk that one VM alone can have",
        ),
        pytest.param(
            make_template(
                volumes=[{"name": "d", "persistentVolumeClaim": {"claimName": "x", "readOnly": False}}]
            ),
            "readOnly: true",
            id="a disk that says it is writable",
        ),
        pytest.param({**make_template(), "runStrategy": "Halted"}, "is Halted", id="a VM that does not run"),
        pytest.param(
            {**make_template(), "runStrategy": "Manual"}, "is Manual", id="a VM that a person starts"
        ),
        pytest.param({**make_template(), "running": True}, "write runStrategy: Always", id="running: true"),
        pytest.param({**make_template(), "running": False}, "write runStrategy: Always", id="running: false"),
        pytest.param({}, "spec.template.spec.template has to be a mapping", id="nothing at all"),
        pytest.param({"template": {}}, "has to be a mapping", id="a guest without a spec"),
        pytest.param({"template": []}, "has to be a mapping", id="a guest that is a list"),
    ],
)
def test_refused_with_a_sentence_is(template: dict[str, Any], says: str) -> None:
    assert says in _refusal(template)


@pytest.mark.parametrize(
    "template",
    [
        pytest.param({**make_template(), "runStrategy": "RerunOnFailure"}, id="RerunOnFailure"),
        pytest.param(
            make_template(domain={"firmware": {"uuid": "", "bootloader": {"efi": {}}}}), id="other firmware"
        ),
        pytest.param(make_template(domain={"devices": {"interfaces": [{"name": "nic"}]}}), id="a free MAC"),
        pytest.param(make_template(domain={"devices": None, "firmware": None}), id="empty sections"),
        pytest.param(make_template(volumes=None), id="no volumes"),
        pytest.param(
            make_template(
                volumes=[{"name": "d", "persistentVolumeClaim": {"claimName": "x", "readOnly": True}}]
            ),
            id="a disk that is read alone",
        ),
    ],
)
def test_taken_is(template: dict[str, Any]) -> None:
    _rendered(make_pool(template=template))


def test_a_template_of_256_kb_is_taken_and_one_byte_more_is_not() -> None:
    def padded(size: int) -> VirtualMachinePool:
        return make_pool(template=make_template(volumes=[{"name": "x" * size}]))

    room = MAX_TEMPLATE_BYTES - len(orjson.dumps(padded(0).spec.template.spec))
    check(padded(room))
    with pytest.raises(TemplateTooLargeError, match="move user data into a Secret") as caught:
        check(padded(room + 1))
    assert caught.value.reason == "TemplateTooLarge"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["", "root", "Always"]),
    lambda inner: st.lists(inner, max_size=2)
    | st.dictionaries(
        st.sampled_from(
            [
                "name", "metadata", "labels", "spec", "domain", "devices", "interfaces", "firmware", "uuid",
                "volumes", "dataVolume", "persistentVolumeClaim", "claimName", "readOnly",
            ]
        ),
        inner,
        max_size=4,
    ),
    max_leaves=8,
)  # fmt: skip
SHAPES = st.fixed_dictionaries(
    {},
    optional={
        "metadata": JSON,
        "spec": st.fixed_dictionaries(
            {},
            optional={
                "domain": JSON | st.fixed_dictionaries({"devices": JSON, "firmware": JSON}),
                "volumes": JSON | st.lists(st.fixed_dictionaries({"dataVolume": JSON}), max_size=2),
            },
        )
        | JSON,
    },
)


@given(
    template=st.fixed_dictionaries(
        {"template": SHAPES | JSON},
        optional={
            "dataVolumeTemplates": JSON | st.lists(st.fixed_dictionaries({"metadata": JSON}), max_size=2)
        },
    )
)
def test_whatever_a_person_writes_is_rendered_or_refused_with_a_sentence(template: dict[str, Any]) -> None:
    pool = make_pool(template=template)
    try:
        body = _rendered(pool)
    except TemplateError as refused:
        assert len(str(refused)) > 20  # noqa: PT017 - both ways are right
    else:
        assert body["spec"]["template"]["metadata"]["labels"][names.LABEL_POOL_UID] == "pool-uid"
        json.dumps(body)


# ---- the revision


def _shuffled(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _shuffled(value[key]) for key in reversed(value)}
    return [_shuffled(each) for each in value] if isinstance(value, list) else value


def test_a_revision_is_ten_hex_digits_and_the_same_for_the_same_template() -> None:
    assert revision(make_pool()) == revision(make_pool("other", uid="other", warm=7, suspend=True))
    assert len(revision(make_pool())) == 10
    int(revision(make_pool()), 16)


def test_a_revision_does_not_depend_on_the_order_of_keys() -> None:
    shuffled = _shuffled(make_template())
    assert list(shuffled) != list(make_template())
    assert revision(make_pool(template=shuffled)) == revision(make_pool())


@pytest.mark.parametrize(
    "pool",
    [
        pytest.param(make_pool(template=make_template(hostname="x")), id="one more field"),
        pytest.param(make_pool(labels={"a": "b"}), id="a label"),
        pytest.param(make_pool(annotations={"a": "b"}), id="an annotation"),
        pytest.param(make_pool(template={**make_template(), "runStrategy": "RerunOnFailure"}), id="a value"),
    ],
)
def test_a_revision_changes_with(pool: VirtualMachinePool) -> None:
    assert revision(pool) != revision(make_pool())


def test_a_revision_is_pinned_so_that_no_release_replaces_a_vm() -> None:
    assert revision(make_pool()) == "85e4253fc6"


def test_an_order_of_list_items_is_part_of_the_revision() -> None:
    volumes = [{"name": "a"}, {"name": "b"}]
    forth, back = (make_pool(template=make_template(volumes=order)) for order in (volumes, volumes[::-1]))
    assert revision(forth) != revision(back)
