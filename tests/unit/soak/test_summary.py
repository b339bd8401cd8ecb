"""What is counted, and what a person and a machine read of it."""

from __future__ import annotations

from io import StringIO

import orjson
import pytest
from rich.console import Console

from tests.soak.summary import Summary, table, tally
from tests.soak.vitals import held
from tests.trials.fairness import Life


def life(*, served: bool = False, ended: bool = False, reason: str = "") -> Life:
    return Life("claim", arrival=1, service=int(served), ended=float(ended), reason=reason)


def shown(found: Summary) -> str:
    console = Console(width=160, file=StringIO())
    with console.capture() as capture:
        console.print(table(found))
    return capture.get()


def test_claims_are_counted_by_how_they_ended() -> None:
    lives = [
        life(),
        life(ended=True),
        life(served=True),
        life(served=True, ended=True),
        life(served=True, reason="Expired"),
        life(reason="TimedOut", ended=True),
    ]
    assert tally(lives) == {
        "made": 6,
        "bound": 3,
        "deleted while it waited": 1,
        "given back": 1,
        "Expired": 1,
        "TimedOut": 1,
    }


def test_no_claims_are_none() -> None:
    assert tally([]) == {"made": 0, "bound": 0}


def test_the_table_says_what_was_done_and_that_nothing_was_found() -> None:
    text = shown(
        Summary(
            seed=5,
            minutes=20.02,
            claims={"made": 9, "bound": 7},
            acts={"roll-outs": 3, "guests crashed": 2, "relabelled": 1},
            ends={"SIGKILL": 4, "lease lost in an outage": 1},
            outages=2,
            rests=[1.0, 7.25],
            vitals={"leader, controller 9": {"rss_mib": "80 → 81"}},
            judged=1234,
            remembered={"VMs": 3, "claims": 2, "pools": 1},
        )
    )
    for words in (
        "seed 5",
        "20.0",
        "9 made, 7 bound",
        "4 SIGKILL, 1 lease lost in an outage",
        "3 roll-outs",
        "2 guests crashed",
        "1 relabelled",
        "2 times, at worst 7.2",
        "rss_mib 80 → 81",
        "1234 events judged, 0 gaps in outages, 6 objects",
        "none",
    ):
        assert words in text, words


def test_each_finding_is_shown_and_fails_the_soak() -> None:
    found = Summary(seed=1, findings=["a leak", "a traceback"])
    assert not found.passed
    assert "a leak" in shown(found)
    assert "a traceback" in shown(found)


def test_the_json_has_the_verdict_beside_the_figures() -> None:
    document = orjson.loads(orjson.dumps(Summary(seed=1, rests=[2.5]).as_json()))
    assert (document["passed"], document["seed"], document["rests"]) == (True, 1, [2.5])


def test_the_tables_of_a_controller_are_read_from_its_metrics() -> None:
    vm, tasks = 'bullpen_held_entries{table="vm"} 3.0', "bullpen_tasks 12.0"
    text = f'{vm}\n{tasks}\nbullpen_held_entries{{table="in hand"}} 0.0\n'
    assert held(text) == {"vm": 3.0, "in hand": 0.0}


def test_metrics_without_tables_are_no_empty_tables() -> None:
    with pytest.raises(AssertionError, match="bullpen_held_entries"):
        held("bullpen_tasks 12.0\n")
