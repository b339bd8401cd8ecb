"""The soak of `tests/soak`, small. At full length, and with guests that fail by themselves: `make soak`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.soak.soak import soak
from tests.trials.stage import own_plane, stage

pytestmark = pytest.mark.cluster


async def test_a_short_soak_finds_nothing_and_leaves_nothing(tmp_path: Path) -> None:
    """On a control plane of its own: what others left there would count as what it left."""
    with own_plane(tmp_path) as plane:
        async with stage(plane, tmp_path, recordings=tmp_path) as where:
            found = await soak(where, minutes=0.2, seed=1, places=2, lease="12s")
    assert found.findings == []
    assert found.claims["bound"] > 0
    assert sum(found.ends.values()) > 0
