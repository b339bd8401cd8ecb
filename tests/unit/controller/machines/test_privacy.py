"""Whatever a refusal quotes of what a guest is told in private, and however, is left out."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from controller.machines.privacy import GRAM, OMITTED, private_texts, redacted
from crds.pool import VirtualMachinePool, parse_pool
from tests.support.manifests import pool_manifest

USER_DATA = "#cloud-config\npassword: 'swordfish-4711'\nssh_pwauth: true\n"
TEXTS = st.text(st.characters(codec="utf-8"), max_size=80)


def pool(volume: dict[str, Any], **template: Any) -> VirtualMachinePool:
    spec = {"template": {"spec": {"domain": {}, "volumes": [{"name": "init", **volume}]}}}
    manifest = pool_manifest(template={"spec": {**spec, **template.pop("spec", {})}, **template})
    manifest["metadata"] |= {"namespace": "team", "uid": "u", "resourceVersion": "1"}
    return parse_pool(manifest)


@pytest.mark.parametrize("quote", [str, repr, json.dumps, lambda text: text.replace("\n", "\\n")])
def test_a_quoted_secret_is_left_out_and_the_rest_stands(quote: Any) -> None:
    text = f"admission webhook denied the request: volumes[0] is {quote(USER_DATA)}, which is too long"
    shown = redacted(text, [USER_DATA])
    assert "swordfish" not in shown
    assert shown.startswith("admission webhook denied the request: volumes[0] is ")
    assert shown.endswith(", which is too long")
    assert OMITTED in shown


def test_a_part_of_a_secret_is_left_out_too() -> None:
    assert redacted("no user swordfish-47 here", [USER_DATA]) == f"no user {OMITTED} here"


@given(TEXTS, st.lists(TEXTS, max_size=3))
def test_nothing_of_eight_characters_is_shared_any_more(text: str, private: list[str]) -> None:
    shown = redacted(text, private).split(OMITTED)
    for part in shown:
        for start in range(len(part) - GRAM + 1):
            assert not any(part[start : start + GRAM] in each for each in private if len(each) >= GRAM)


@given(TEXTS, TEXTS)
def test_a_text_that_shares_nothing_is_not_touched(text: str, private: str) -> None:
    assume(not any(text[at : at + GRAM] in private for at in range(max(0, len(text) - GRAM + 1))))
    assert redacted(text, [private]) == text


def test_short_texts_are_words_and_hide_nothing() -> None:
    assert redacted("no room on the node", ["room", "", "node"]) == "no room on the node"


@pytest.mark.parametrize("source", ["cloudInitNoCloud", "cloudInitConfigDrive"])
@pytest.mark.parametrize("key", ["userData", "networkData"])
def test_cloud_init_is_private_as_text_and_in_base64(source: str, key: str) -> None:
    assert USER_DATA in private_texts(pool({source: {key: USER_DATA}}))
    encoded = base64.b64encode(USER_DATA.encode()).decode()
    assert {USER_DATA, encoded} <= set(private_texts(pool({source: {f"{key}Base64": encoded}})))


def test_what_is_no_base64_is_private_as_it_is() -> None:
    assert "%%%" in private_texts(pool({"cloudInitNoCloud": {"userDataBase64": "%%%"}}))


def test_annotations_addresses_and_kernel_arguments_are_private() -> None:
    url = "https://me:secret@example.com/disk.img"
    disk = {"metadata": {"name": "root"}, "spec": {"source": {"http": {"url": url}}}}
    kernel = {"domain": {"firmware": {"kernelBoot": {"kernelArgs": "token=abc"}}}}
    found = private_texts(
        pool(
            {},
            metadata={"annotations": {"example.com/a": "noted on the VM"}},
            spec={
                "dataVolumeTemplates": [disk],
                "template": {"metadata": {"annotations": {"b": "noted on the guest"}}, "spec": kernel},
            },
        )
    )
    assert set(found) == {"noted on the VM", url, "noted on the guest", "token=abc"}


def test_the_names_of_secrets_and_disks_are_not_private_for_a_person_needs_them() -> None:
    volume = {"cloudInitNoCloud": {"secretRef": {"name": "seed-of-the-pool"}}}
    assert private_texts(pool(volume)) == ()
