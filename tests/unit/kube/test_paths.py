"""Where the objects of a kind are."""

from __future__ import annotations

import pytest

from controller.kube.paths import collection


@pytest.mark.parametrize(
    ("path", "within"),
    [
        ("/apis/x.dev/v1/things", "/apis/x.dev/v1/namespaces/ns/things"),
        ("/api/v1/secrets", "/api/v1/namespaces/ns/secrets"),
    ],
)
def test_a_kinds_objects_are_asked_for_in_one_namespace_or_in_all(path: str, within: str) -> None:
    assert collection(path, "ns") == within
    assert collection(path) == path
