"""The agenda: by the seed alone, everything in it, and calm at the end."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest

from tests.soak.agenda import CHAPTER, WEIGHTS, Act, Chapter, Entry, agenda
from tests.soak.people import People

ENDS = {Act.KILL, Act.STOP, Act.FREEZE, Act.OUTAGE}


def entries(chapters: list[Chapter]) -> list[Entry]:
    return [entry for chapter in chapters for entry in chapter.entries]


def test_the_same_seed_gives_the_same_agenda_and_another_one_another() -> None:
    assert agenda(5, 7, 3) == agenda(5, 7, 3)
    assert agenda(5, 7, 3) != agenda(5, 8, 3)


def test_twenty_minutes_have_every_act_in_every_place() -> None:
    found = entries(agenda(20, 1, 3))
    assert {entry.act for entry in found} == set(Act)
    assert {entry.place for entry in found} == {0, 1, 2}


@pytest.mark.parametrize("minutes", [0.4, 2, 5, 20, 60])
def test_the_chapters_fill_the_time_and_the_last_third_is_calm(minutes: float) -> None:
    chapters = agenda(minutes, 1, 3)
    assert sum(each.seconds for each in chapters) == pytest.approx(60 * minutes)
    calm = [each.calm for each in chapters]
    assert calm == sorted(calm)
    assert calm[-1]
    assert not calm[0]
    assert sum(calm) == pytest.approx(len(calm) / 3, abs=1)


def test_nobody_is_killed_in_the_calm_and_somebody_in_each_storm() -> None:
    for chapter in agenda(20, 3, 3):
        ends = [entry for entry in chapter.entries if entry.act in ENDS]
        assert bool(ends) is not chapter.calm


def test_each_long_storm_has_an_outage_and_says_so() -> None:
    storms = [each for each in agenda(20, 3, 3) if not each.calm]
    assert all(each.outages == int(each.seconds / 90) >= 1 for each in storms)
    assert min(each.seconds for each in storms) >= 0.9 * CHAPTER


def test_a_chapter_s_acts_are_in_order_and_within_its_time() -> None:
    for chapter in agenda(6, 2, 3):
        times = [entry.at for entry in chapter.entries]
        assert times == sorted(times)
        assert times[0] >= 0
        assert times[-1] <= chapter.seconds


def test_even_the_shortest_soak_has_a_storm_with_a_kill_and_a_calm() -> None:
    storm, calm = agenda(0.1, 1, 1)
    assert (storm.calm, calm.calm) == (False, True)
    assert ENDS & {entry.act for entry in storm.entries}


def test_people_can_do_whatever_the_agenda_holds() -> None:
    scene: Any = SimpleNamespace(warm={})
    people = People(scene, Counter())
    assert people._acts.keys() == WEIGHTS.keys() == set(Act) - ENDS
