"""Settings that a person writes in one way or another."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from controller.settings import Settings


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("", ()),
        (" ", ()),
        ("team-a", ("team-a",)),
        ("team-a,team-b", ("team-a", "team-b")),
        (" team-b , team-a,team-b", ("team-b", "team-a")),
    ],
)
def test_namespaces_are_written_with_commas(written: str, meant: tuple[str, ...]) -> None:
    assert Settings(watch_namespaces=written).namespaces == meant


@pytest.mark.parametrize("written", ["Team", "a b", "a,,b", "a;b", "*", "-a", "a" * 64])
def test_what_is_no_name_of_a_namespace_is_refused(written: str) -> None:
    with pytest.raises(ValidationError, match="write them like team-a,team-b"):
        Settings(watch_namespaces=written)
