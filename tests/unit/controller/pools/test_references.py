"""Where a template refers to Secrets and ConfigMaps, and which of them a running VM holds."""

from __future__ import annotations

from typing import Any

import pytest

from controller.pools.references import Kind, Reference, references
from crds.pool_status import MAX_REFERENCES

Json = dict[str, Any]


def spec(*volumes: Json, **rest: Any) -> Json:
    """A VM's spec with these volumes; `guest` goes into the instance's spec."""
    guest = {"volumes": list(volumes), "domain": {"devices": {}}, **rest.pop("guest", {})}
    return {"template": {"spec": guest}, **rest}


def secret(name: str = "data", *, held: bool = True, optional: bool = False) -> Reference:
    return Reference("Secret", name, held, optional)


def config_map(name: str = "data", *, held: bool = True, optional: bool = False) -> Reference:
    return Reference("ConfigMap", name, held, optional)


@pytest.mark.parametrize("source", ["cloudInitNoCloud", "cloudInitConfigDrive"])
@pytest.mark.parametrize("key", ["secretRef", "networkDataSecretRef"])
def test_cloud_init_is_read_once_by_the_guest(source: str, key: str) -> None:
    assert references(spec({"name": "init", source: {key: {"name": "data"}}})) == (secret(),)


def test_a_sysprep_answer_file_is_read_once() -> None:
    sysprep = {"secret": {"name": "answers"}, "configMap": {"name": "more"}}
    found = references(spec({"name": "s", "sysprep": sysprep}))
    assert found == (config_map("more"), secret("answers"))


@pytest.mark.parametrize("optional", [True, False])
@pytest.mark.parametrize(
    ("source", "key", "kind"), [("secret", "secretName", "Secret"), ("configMap", "name", "ConfigMap")]
)
def test_a_volume_may_be_optional(source: str, key: str, kind: Kind, optional: bool) -> None:  # noqa: FBT001 - a case
    volume = {"name": "v", source: {key: "data", "optional": optional}}
    assert references(spec(volume)) == (Reference(kind, "data", held=True, optional=optional),)


def test_what_is_shared_by_virtiofs_the_guest_follows_live() -> None:
    guest = {"domain": {"devices": {"filesystems": [{"name": "shared", "virtiofs": {}}]}}}
    shared = {"name": "shared", "configMap": {"name": "followed"}}
    disk = {"name": "disk", "configMap": {"name": "copied"}}
    assert references(spec(shared, disk, guest=guest)) == (
        config_map("copied"),
        config_map("followed", held=False),
    )


@pytest.mark.parametrize(
    ("use", "method", "held"),
    [
        ("sshPublicKey", {"noCloud": {}}, True),
        ("sshPublicKey", {"configDrive": {}}, True),
        ("sshPublicKey", {"qemuGuestAgent": {"users": ["fedora"]}}, False),
        ("userPassword", {"qemuGuestAgent": {}}, False),
    ],
)
def test_the_guest_agent_brings_new_keys_to_running_guests(use: str, method: Json, held: bool) -> None:  # noqa: FBT001 - a case
    access = {use: {"source": {"secret": {"secretName": "data"}}, "propagationMethod": method}}
    assert references(spec(guest={"accessCredentials": [access]})) == (secret(held=held),)


def test_what_is_only_needed_to_fetch_something_no_vm_holds() -> None:
    disk = {"name": "root", "containerDisk": {"image": "registry.example/guest:1", "imagePullSecret": "pull"}}
    boot = {"domain": {"firmware": {"kernelBoot": {"container": {"imagePullSecret": "kernel"}}}}}
    assert references(spec(disk, guest=boot)) == (secret("kernel", held=False), secret("pull", held=False))


@pytest.mark.parametrize("source", ["http", "s3", "gcs", "registry", "imageio", "vddk"])
def test_a_disks_import_needs_its_credentials_and_the_disk_does_not_hold_them(source: str) -> None:
    written = {"secretRef": "login", "certConfigMap": "ca", "secretExtraHeaders": ["header"]}
    found = references(spec(dataVolumeTemplates=[{"spec": {"source": {source: written}}}]))
    assert found == (config_map("ca", held=False), secret("header", held=False), secret("login", held=False))


def test_an_object_that_is_named_twice_is_there_once_and_held_if_either_is() -> None:
    init = {"name": "a", "cloudInitNoCloud": {"secretRef": {"name": "data"}}}
    pull = {"name": "b", "containerDisk": {"imagePullSecret": "data"}}
    maybe = {"name": "c", "secret": {"secretName": "data", "optional": True}}
    assert references(spec(pull, maybe, init)) == (secret(held=True, optional=False),)


def test_two_optional_ones_of_one_name_stay_optional() -> None:
    one, two = ({"name": name, "secret": {"secretName": "data", "optional": True}} for name in "ab")
    assert references(spec(one, two)) == (secret(optional=True),)


def test_a_secret_and_a_config_map_of_one_name_are_two() -> None:
    volumes = {"name": "a", "secret": {"secretName": "x"}}, {"name": "b", "configMap": {"name": "x"}}
    assert references(spec(*volumes)) == (config_map("x"), secret("x"))


@pytest.mark.parametrize(
    "written",
    [
        {},
        {"template": None},
        {"template": {"spec": {"volumes": "none"}}},
        {"template": {"spec": {"volumes": [None, 7, {"secret": "x"}, {"secret": {"secretName": 7}}]}}},
        {"template": {"spec": {"volumes": [{"cloudInitNoCloud": {"userData": "#cloud-config"}}]}}},
        {"dataVolumeTemplates": [{"spec": {"source": {"pvc": {"name": "golden"}, "blank": None}}}, {}]},
        {"dataVolumeTemplates": [{"spec": {"source": {"http": {"url": "x", "secretExtraHeaders": 7}}}}]},
    ],
)
def test_a_template_without_references_or_out_of_shape_has_none(written: Json) -> None:
    assert references(written) == ()


def test_there_is_a_bound() -> None:
    volumes = [{"name": f"v{i}", "secret": {"secretName": f"s{i:03}"}} for i in range(MAX_REFERENCES + 5)]
    assert len(references(spec(*volumes))) == MAX_REFERENCES
