"""`kubectl bullpen explain` and `backtest` as people run them, by kubectl, beside a controller at work."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path

import pytest
import yaml

from capacity.history import History
from e2e.install import ROOT
from tests.support import histories
from tests.support.audit_command import BIN
from tests.support.site import Site, until

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("controller", "auditor")]


def bullpen(kubeconfig: Path, *arguments: str) -> tuple[int, str, str]:
    """The exit code, standard output, standard error."""
    done = subprocess.run(
        [str(BIN / "kubectl"), "bullpen", *arguments],
        env=os.environ | {"KUBECONFIG": str(kubeconfig), "PATH": f"{BIN}:{os.environ['PATH']}"},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


def remembered(site: Site) -> None:
    """A day of claims, one every ten minutes, and boots of twenty seconds: as a leader leaves it."""
    now = time.time()
    past = History(float(int(now - 86_400)))
    for number in range(140):
        past.arrive(now - 86_400 + 600 * number)
        past.served(now - 86_400 + 600 * number, warm=True)
        past.lead(20.0)
    histories.write(site, past, now)


def test_a_pool_explains_its_size_and_replays_its_claims(
    site: Site, kubeconfig: Path, tmp_path: Path
) -> None:
    remembered(site)
    site.pool(warm=2)
    site.until_warm(2)
    code, out, error = bullpen(kubeconfig, "explain", "wp/pool", "-n", site.namespace)
    assert (code, error) == (0, "")
    assert out.startswith(f"wp/pool in namespace {site.namespace} aims at 2 VMs ready or booting, because")
    assert "spec.warm.replicas is 2" in out
    assert f"kubectl bullpen backtest wp/pool -n {site.namespace}" in out
    page = tmp_path / "out.html"
    code, out, _ = bullpen(
        kubeconfig, "backtest", "wp", "pool", "-n", site.namespace, "-o", "json", "--html", str(page)
    )
    assert code == 0
    document = json.loads(out)
    assert document["claims"] >= 139
    assert document["settings"]["today"]["units"] == "2"
    assert "<svg" in page.read_text(encoding="utf-8")


def test_a_pool_without_claims_says_that_there_is_nothing_to_replay(site: Site, kubeconfig: Path) -> None:
    site.pool(warm=0)
    code, out, error = bullpen(kubeconfig, "backtest", "wp/pool", "-n", site.namespace)
    assert (code, out) == (3, "")
    assert "no claims were recorded for pool pool" in error


def test_the_documented_role_is_enough_and_what_is_missing_is_named(
    site: Site, kubeconfig: Path, tmp_path: Path
) -> None:
    remembered(site)
    site.pool(warm=1)
    page = (ROOT / "docs/backtest.md").read_text(encoding="utf-8")
    role = yaml.safe_load(page.split("```yaml\n")[1].split("```")[0])
    reader = _account(site, kubeconfig, tmp_path)
    code, _, error = bullpen(reader, "explain", "wp/pool", "-n", site.namespace)
    assert code == 3
    assert "the right to get virtualmachinepools.bullpen.dev is missing" in error
    role["metadata"]["namespace"] = site.namespace
    site.kubectl("create", "-f", "-", stdin=json.dumps(role))
    binding = ["--role=bullpen-explain", f"--serviceaccount={site.namespace}:reader"]
    site.kubectl("create", "rolebinding", "reader", "-n", site.namespace, *binding)
    until("allowed", lambda: bullpen(reader, "backtest", "wp/pool", "-n", site.namespace)[0] == 0)


def _account(site: Site, kubeconfig: Path, directory: Path) -> Path:
    """A kubeconfig of an account that may do nothing yet."""
    site.kubectl("create", "serviceaccount", "reader", "-n", site.namespace)
    config = yaml.safe_load(kubeconfig.read_text(encoding="utf-8"))
    token = site.kubectl("create", "token", "reader", "-n", site.namespace).strip()
    config["users"] = [{"name": "reader", "user": {"token": token}}]
    config["contexts"][0]["context"]["user"] = "reader"
    path = directory / "reader"
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    return path
