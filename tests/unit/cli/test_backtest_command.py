"""`kubectl bullpen backtest`: what it is told, of pools, of files, and what it answers."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import pytest
import typer
import yaml

from capacity import archive
from capacity.history import History
from cli import trouble
from cli.backtest import ask
from crds.names import HISTORY_KEY, LABEL_POOL
from e2e.install import ROOT
from tests.support.manifests import pool_manifest
from tests.unit.cli.running import Answer, kubeconfig, run, serving

Json = dict[str, Any]
EXAMPLE = ROOT / "examples/claims.csv"
FILE = ("backtest", "--trace", EXAMPLE, "--boot", "40s,70s")
MONDAY = datetime(2026, 3, 2, tzinfo=UTC).timestamp()
POOL = "/apis/bullpen.dev/v1alpha1/namespaces/mine/virtualmachinepools/runners"
CONFIGMAP = "/api/v1/namespaces/mine/configmaps/bullpen-history-runners"


def history(claims: int = 60, *, leads: bool = True) -> History:
    """A claim every ten minutes, boots of twenty seconds."""
    found = History(MONDAY)
    for number in range(claims):
        found.arrive(MONDAY + 600 * number)
        if leads:
            found.lead(20.0)
    return found


def cluster(recorded: History | None, **warm: Any) -> dict[str, Answer]:
    answers: dict[str, Answer] = {POOL: (200, pool_manifest("runners", warm={"replicas": 2, **warm}))}
    if recorded is not None:
        kept = base64.b64encode(archive.encode(recorded)).decode()
        meta = {"name": "bullpen-history-runners", "labels": {LABEL_POOL: "runners"}}
        note = orjson.dumps({"writtenAt": MONDAY + 86_400}).decode()
        answers[CONFIGMAP] = (
            200,
            {"metadata": meta, "binaryData": {HISTORY_KEY: kept}, "data": {"note": note}},
        )
    return answers


def replayed(tmp_path: Path, answers: dict[str, Answer], *options: object) -> tuple[int, str, str]:
    with serving(answers) as server:
        return run("backtest", "wp/runners", *options, "--kubeconfig", kubeconfig(tmp_path, server))


# ---- a file


def test_a_file_and_a_boot_time_are_enough() -> None:
    code, out, error = run(*FILE)
    assert (code, error) == (0, "")
    assert "1,251 claims; boots as given: half within 40s, 19 of 20 within 1m10s" in out
    assert "← the smallest that meets 99%" in out
    assert "← the engine, for 99%" in out
    assert "today" not in out


def test_lead_times_may_come_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "boots.csv"
    path.write_text("seconds\n20\n20\n20\n", encoding="utf-8")
    code, out, _ = run("backtest", "--trace", EXAMPLE, "--lead-times", path)
    assert code == 0
    assert f"boots from {path}: half within 20s" in " ".join(out.split())


def test_the_level_and_the_patience_are_ones_own_choice() -> None:
    _, strict, _ = run(*FILE, "--level", "99.9%", "-o", "json")
    _, lax, _ = run(*FILE, "--level", "90%", "--max-wait", "30s", "-o", "json")
    hard, easy = orjson.loads(strict), orjson.loads(lax)
    assert (hard["level"], easy["level"], easy["maxWaitSeconds"]) == (0.999, 0.9, 30.0)
    assert hard["settings"]["smallest"]["most"] > easy["settings"]["smallest"]["most"]


@pytest.mark.parametrize("patience", ["100s", "2m", "1h500ms", "300h"])
def test_patience_may_be_long(patience: str) -> None:
    code, out, error = run(*FILE, "--max-wait", patience)
    assert (code, error) == (0, "")
    assert "the engine" in out


def test_a_number_may_be_taken_for_what_is_set_today() -> None:
    _, out, _ = run(*FILE, "--units", "4")
    assert "← today" in out
    assert "With today's 4 VMs, " in out


@pytest.mark.parametrize(("form", "parse"), [("json", orjson.loads), ("yaml", yaml.safe_load)])
def test_programs_get_one_document_and_nothing_else(tmp_path: Path, form: str, parse: Any) -> None:
    page = tmp_path / "out.html"
    code, out, error = run(*FILE, "-o", form, "--html", page)
    assert code == 0
    assert parse(out)["claims"] == 1251
    assert error == f"wrote {page}\n"


def test_the_page_is_written_beside_the_table(tmp_path: Path) -> None:
    page = tmp_path / "out.html"
    code, out, _ = run(*FILE, "--html", page, "--time-zone", "Europe/Berlin")
    assert code == 0
    assert "HIT RATIO" in out
    html = page.read_text(encoding="utf-8")
    assert html.startswith("<!DOCTYPE html>")
    assert "in Europe/Berlin" in html


def test_a_page_that_can_not_be_written_is_told(tmp_path: Path) -> None:
    code, _, error = run(*FILE, "--html", tmp_path / "none" / "out.html")
    assert code == trouble.COULD_NOT_LOOK
    assert "no such file" in error


# ---- what is wrong with the options


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "name a pool, as wp/NAME, or a file with --trace"),
        (["--trace", EXAMPLE, "-n", "ci"], "without a pool no cluster is asked"),
        (["runners"], "write wp/runners"),
        (["--trace", EXAMPLE, "--boot", "40s"], "write p50,p95 like 16s,27s"),
        (["--trace", EXAMPLE, "--boot", "1 minute,2m"], "write a duration"),
        (["--trace", EXAMPLE, "--boot", "40s,30s"], "the second at least that"),
        (["--trace", EXAMPLE, "--boot", "0s,30s"], "must be more than 0s"),
        (["--trace", EXAMPLE, "--boot", "1s,2s", "--lead-times", EXAMPLE], "not both"),
        (["--trace", EXAMPLE, "--level", "100%"], "write a share from 50% to 99.99%"),
        (["--trace", EXAMPLE, "--level", "0.99"], "write a share from 50% to 99.99%"),
        (["--trace", EXAMPLE, "--max-wait", "long"], "write a duration"),
        (["--trace", EXAMPLE, "--time-zone", "Mars"], "write one of IANA's names"),
        (["--trace", EXAMPLE, "--units", "-1"], "--units"),
        (["--trace", EXAMPLE, "-o", "xml"], "neither table, json nor yaml"),
    ],
)
def test_a_wrong_option_says_what_to_write(options: list[object], said: str) -> None:
    code, out, error = run("backtest", *options)
    assert (code, out) == (2, "")
    told = " ".join(error.replace("│", " ").split())
    assert said in told


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("time\nsoon\n", "claims.csv:2: 'soon' is no time"),
        ("when\n1\n", "claims.csv:1: the first line must name a column time"),
        ("time\n", "holds no claim"),
        ("time,count\n10,7\n10,2\n", "all claims came at the same moment"),
    ],
)
def test_a_mistake_in_a_file_is_told_with_its_line(tmp_path: Path, content: str, said: str) -> None:
    path = tmp_path / "claims.csv"
    path.write_text(content, encoding="utf-8")
    code, out, error = run("backtest", "--trace", path, "--boot", "1s,2s")
    assert (code, out) == (trouble.COULD_NOT_LOOK, "")
    assert said in error
    assert "Traceback" not in error


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    code, _, error = run("backtest", "--trace", tmp_path / "none.csv", "--boot", "1s,2s")
    assert code == trouble.COULD_NOT_LOOK
    assert "none.csv: no such file" in error


def test_without_a_boot_time_a_file_says_nothing() -> None:
    code, _, error = run("backtest", "--trace", EXAMPLE)
    assert code == trouble.COULD_NOT_LOOK
    assert "say so with --boot p50,p95 (like 16s,27s) or with --lead-times FILE" in error


# ---- a pool


def test_a_pool_is_replayed_from_what_was_recorded_of_it(tmp_path: Path) -> None:
    code, out, error = replayed(tmp_path, cluster(history()))
    assert (code, error) == (0, "")
    assert "wp/runners in namespace mine: Mon 02 Mar 2026, 00:00 to Tue 03 Mar 2026, 00:00 UTC" in out
    assert "60 claims; boots as measured (60 VMs): half within 20s" in out
    assert "With today's 2 VMs, 100% of 60 claims found a warm VM, which meets 99%" in out


def test_a_pool_may_be_asked_what_other_boots_would_do(tmp_path: Path) -> None:
    code, out, _ = replayed(tmp_path, cluster(history()), "--boot", "30m,40m")
    assert code == 0
    assert "boots as given: half within 30m" in out
    assert "short of 99%" in out


def test_a_pool_may_be_asked_about_the_claims_of_a_file(tmp_path: Path) -> None:
    code, out, _ = replayed(tmp_path, cluster(history()), "--trace", EXAMPLE)
    assert code == 0
    assert "1,251 claims; boots as measured (60 VMs)" in out
    assert "With today's 2 VMs, " in out


def test_a_file_may_be_replayed_for_a_pool_that_recorded_nothing(tmp_path: Path) -> None:
    code, out, _ = replayed(tmp_path, cluster(None), "--trace", EXAMPLE, "--boot", "40s,70s")
    assert code == 0
    assert "With today's 2 VMs, " in out


def test_boot_times_of_the_status_do_where_none_are_in_the_history(tmp_path: Path) -> None:
    answers = cluster(history(leads=False))
    status, pool = answers[POOL]
    demand = {"demand": {"leadTimeSeconds": {"p50": 16.0, "p95": 27.5}}}
    code, out, _ = replayed(tmp_path, answers | {POOL: (status, {**pool, "status": demand})})
    assert code == 0
    assert "boots as the pool's status has them: half within 16s" in out


def test_a_pool_without_boots_asks_for_them(tmp_path: Path) -> None:
    code, _, error = replayed(tmp_path, cluster(history(leads=False)))
    assert code == trouble.COULD_NOT_LOOK
    assert "it is not known how long a VM takes" in error


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((404, {"message": "not found"}), "no claims were recorded for pool runners yet"),
        ((403, {"message": "cannot get"}), "the right to get configmaps is missing"),
        (
            (
                200,
                {
                    "metadata": {"labels": {LABEL_POOL: "runners"}},
                    "binaryData": {HISTORY_KEY: base64.b64encode(b"BPH\x09").decode()},
                },
            ),
            "can't be read: its version is 09",
        ),
    ],
    ids=["none", "forbidden", "of a newer release"],
)
def test_a_history_that_can_not_be_had_is_a_sentence(tmp_path: Path, answer: Answer, said: str) -> None:
    code, out, error = replayed(tmp_path, cluster(None) | {CONFIGMAP: answer})
    assert (code, out) == (trouble.COULD_NOT_LOOK, "")
    assert said in error
    assert error.count("\n") == 1


def test_a_history_without_claims_has_nothing_to_replay(tmp_path: Path) -> None:
    code, _, error = replayed(tmp_path, cluster(History(MONDAY)))
    assert code == trouble.COULD_NOT_LOOK
    assert "no claims were recorded for pool runners in the last seven days" in error


# ---- boots out of two numbers


@pytest.mark.parametrize(
    ("written", "p50", "p95"), [("16s,27s", 16, 27), ("1m,1m", 60, 60), ("500ms,2s", 0.5, 2)]
)
def test_two_quantiles_are_kept(written: str, p50: float, p95: float) -> None:
    boots = ask.boot(written)
    assert (boots.p50, boots.p95) == (p50, p95)
    found = boots.times
    assert found.quantile(0.5) == pytest.approx(p50, rel=0.02)
    assert found.quantile(0.95) == pytest.approx(p95, rel=0.02)


def test_two_quantiles_have_a_tail_beyond_them() -> None:
    longest = ask.boot("16s,27s").times.quantile(0.999)
    assert longest is not None
    assert longest > 35


def test_a_level_is_a_share() -> None:
    assert ask.level("99.9%") == pytest.approx(0.999)
    with pytest.raises(typer.BadParameter):
        ask.level("49%")
