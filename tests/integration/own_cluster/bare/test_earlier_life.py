"""VMs of an earlier life hold nobody up and are left alone; `make earlier-life` tries ten thousand."""

from __future__ import annotations

from pathlib import Path

import pytest

from e2e.controlplane.plane import ControlPlane
from e2e.install import install_crds
from tests.trials.earlier_life import earlier_life

pytestmark = pytest.mark.cluster


async def test_vms_of_a_pool_that_is_gone_and_foreign_ones_are_left_alone(
    plane: ControlPlane, tmp_path: Path
) -> None:
    install_crds(plane.kubeconfig)
    try:
        found = await earlier_life(plane, tmp_path, 300)
    finally:
        plane.processes.stop("simulator")
    assert found.first_hand_over < 30, "ten seconds on a machine with nothing else to do"
