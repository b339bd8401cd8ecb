"""VMs of an earlier life hold nobody up and are left alone; `make earlier-life` tries ten thousand."""

from __future__ import annotations

from pathlib import Path

import pytest

from e2e.controlplane.plane import ControlPlane
from e2e.install import install_crds
from tests.trials.earlier_life import earlier_life

pytestmark = pytest.mark.cluster


async def test_vms_of_a_pool_that_is_gone_and_foreign_ones_are_left_alone(tmp_path: Path) -> None:
    with ControlPlane.start(tmp_path / "plane") as plane:  # what stays behind would be in everybody's way
        install_crds(plane.kubeconfig)
        found = await earlier_life(plane, tmp_path, 300)
    assert found.first_hand_over < 30, "ten seconds on a machine with nothing else to do"
