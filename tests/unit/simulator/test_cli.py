"""The command line: what is read, what is refused, what is explained."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from simulator.__main__ import main
from simulator.kubevirt.behaviour import Defaults, Failure, Profile
from simulator.kubevirt.cli import add_command, defaults_of
from simulator.kubevirt.distributions import Fixed, LogNormal, Uniform


def read(*arguments: str) -> Defaults:
    parser = argparse.ArgumentParser()
    add_command(parser.add_subparsers())
    return defaults_of(parser.parse_args(["kubevirt", *arguments]))


def test_without_flags_it_is_the_observed_kubevirt_with_boots_of_a_second() -> None:
    assert read() == Defaults()


def test_every_time_can_be_a_distribution() -> None:
    got = read("--boot", "500ms..2s", "--shutdown", "2s", "--agent", "1s", "--status-lag", "p50=6s,p95=12s")
    assert got.boot == Uniform(0.5, 2.0)
    assert got.shutdown == Fixed(2.0)
    assert got.agent == Fixed(1.0)
    assert got.status_lag == LogNormal(6.0, 12.0)


def test_realistic_is_a_boot_time() -> None:
    assert read("--realistic").boot == LogNormal(16.0, 27.0)


def test_shares_of_several_failures_add_up() -> None:
    got = read("--fail", "crash-loop=0.05", "--fail", "hang=.1")
    assert got.failures == {Failure.CRASH_LOOP: 0.05, Failure.HANG: 0.1}


def test_with_nodes_a_lost_node_takes_as_long_as_the_node_controller_does() -> None:
    assert read().node_grace == 1.0
    assert read("--nodes", "2").node_grace == 40.0
    assert read("--nodes", "2", "--node-grace", "3s").node_grace == 3.0


def test_the_minimal_profile_is_chosen_by_name() -> None:
    assert read("--profile", "minimal").profile is Profile.MINIMAL


@pytest.mark.parametrize(
    "arguments",
    [
        ["--fail", "crash-loop"],
        ["--fail", "fire=0.1"],
        ["--fail", "hang=2"],
        ["--profile", "x"],
        ["--nodes", "few"],
    ],
)
def test_a_flag_that_makes_no_sense_is_refused_with_what_would(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        main(["kubevirt", *arguments])
    assert end.value.code == 2
    assert arguments[0] in capsys.readouterr().err


def test_a_time_that_cannot_be_read_ends_it_with_a_sentence(caplog: pytest.LogCaptureFixture) -> None:
    assert main(["kubevirt", "--boot", "soon"]) == 2
    assert "soon" in caplog.text


def test_a_cluster_that_is_not_there_ends_it_with_a_sentence(
    caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    broken = tmp_path / "broken"
    broken.write_text("clusters: [")
    for path in (tmp_path / "nothing", broken):
        assert main(["kubevirt", "--kubeconfig", str(path)]) == 2
        assert f"no usable cluster configuration in {path}" in caplog.records[-1].getMessage()


def test_help_names_every_annotation_and_failure(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["kubevirt", "--help"])
    text = capsys.readouterr().out
    for name in ("boot", "shutdown", "status-lag", "agent", "fail", "crash-after", "shutdown-after", "pause"):
        assert f"simulator.bullpen.dev/{name}: " in text
    for failure in Failure:
        assert failure.value in text
