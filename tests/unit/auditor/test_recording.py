"""A run that was recorded on a real API server, judged again."""

from pathlib import Path

import pytest

from auditor.events import Recording, Rule
from tests.unit.auditor.story import Story, judged

DOUBLE = Path(__file__).parents[2] / "data" / "double-hand-over.jsonl"


def test_the_recorded_double_hand_over_is_found() -> None:
    judge = judged(Recording(DOUBLE).read())

    assert [(found.rule, found.rv) for found in judge.violations] == [
        (Rule.I1, 238),
        (Rule.I5, 238),
        (Rule.I1, 239),
    ]
    assert "claim rec-48c2cc/second" in judge.violations[-1].subject
    assert judge.at_rest() == []


def test_the_recording_without_its_second_hand_over_is_clean() -> None:
    events = [event for event in Recording(DOUBLE).read() if event.rv < 238]

    assert judged(events).violations == []


def test_what_is_recorded_reads_back_the_same(tmp_path: Path) -> None:
    story = Story()
    story.bound()
    recording = Recording(tmp_path / "events.jsonl")
    recording.add(story.events[:9])
    recording.add(story.events[9:])

    assert list(Recording(recording.path).read()) == story.events


def test_a_recording_begins_anew(tmp_path: Path) -> None:
    story = Story()
    path = tmp_path / "events.jsonl"
    for _ in range(2):
        Recording(path).add(story.events)

    assert len(list(Recording(path).read())) == len(story.events)


@pytest.mark.parametrize(
    "line", ["{", "[]", '{"kind":"Pod","change":"ADDED","rv":1}', '{"kind":"Namespace"}']
)
def test_a_line_that_is_no_event_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text(line + "\n", encoding="utf-8")

    with pytest.raises(ValueError, match=r"events\.jsonl:1 is no event"):
        list(Recording(path).read())
