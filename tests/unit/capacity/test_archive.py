"""A history survives as bytes, in little room; bytes that are none are told from one, in a sentence."""

import zlib
from array import array
from itertools import chain

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity.archive import MAGIC, MOST_BYTES, VERSION, HistoryError, decode, encode
from capacity.curve import build
from capacity.history import DAY, HOUR, KEPT, MOST_ARRIVALS, MOST_GAPS, WEEK, History
from tests.unit.capacity.demands import MONDAY, arrivals, history, level, office, quarters

SMALL = history(arrivals(quarters(level(0.001), 1.0)), MONDAY + WEEK, boots=50)
BYTES = encode(SMALL)


def same(one: History, other: History) -> bool:
    return (
        one.arrivals == other.arrivals
        and one.quarters == other.quarters
        and [*chain(*one.gaps)] == pytest.approx([*chain(*other.gaps)], abs=0.001)
        and one.since == pytest.approx(other.since, abs=0.001)
        and one.detail_since == pytest.approx(other.detail_since, abs=0.001)
        and list(one.leads.by) == list(other.leads.by)
        and all(of.believed == other.leads.by[key].believed for key, of in one.leads.by.items())
        and one.note == other.note
    )


@given(
    st.lists(st.tuples(st.integers(0, WEEK), st.integers(1, 5)), max_size=50),
    st.lists(st.tuples(st.floats(0, WEEK), st.floats(0, HOUR)), max_size=5),
    st.lists(
        st.tuples(st.floats(0, 1e5), st.sampled_from(["", "stopped"]), st.text(max_size=20)), max_size=40
    ),
    st.lists(st.tuples(st.integers(0, WEEK), st.booleans()), max_size=20),
)
def test_what_is_written_is_read_again(
    asked: list[tuple[int, int]],
    gaps: list[tuple[float, float]],
    boots: list[tuple[float, str, str]],
    served: list[tuple[int, bool]],
) -> None:
    of = History(since=MONDAY)
    for age, units in asked:
        of.arrive(MONDAY + age, units)
    for begin, length in gaps:
        of.gap(MONDAY + begin, MONDAY + begin + length)
    for seconds, tier, revision in boots:
        of.lead(seconds, tier, revision)
    for second, warm in served:
        of.served(MONDAY + second, warm=warm)
    of.roll(MONDAY + WEEK)
    again = decode(encode(of))
    assert same(again, of) or any(quarter.gap for quarter in of.quarters.values())
    assert again.arrivals == of.arrivals
    assert again.claims == of.claims
    assert again.hit_ratio(MONDAY + WEEK) == of.hit_ratio(MONDAY + WEEK)


def test_a_restart_changes_no_estimate() -> None:
    of = history(arrivals(quarters(office(0.1), 2.0)), MONDAY + 2 * WEEK)
    of.gap(MONDAY + 10 * DAY, MONDAY + 10 * DAY + 100)
    again = decode(encode(of))
    now = MONDAY + 2 * WEEK
    before, after = (build(each.snapshot(now), servers=10) for each in (of, again))
    for hour in range(0, 168, 3):
        assert after.estimate(0.99, now + hour * HOUR) == before.estimate(0.99, now + hour * HOUR)


def test_a_read_history_goes_on_as_if_nothing_had_been() -> None:
    again = decode(BYTES)
    again.arrive(MONDAY + WEEK + 5, units=2)
    again.lead(20.0)
    again.gap(MONDAY + WEEK + 10, MONDAY + WEEK + 20)
    again.roll(MONDAY + WEEK + HOUR)
    assert again.claims == SMALL.claims + 2


@pytest.mark.parametrize("batch", [1.0, 5.0])
def test_a_week_of_a_hundred_thousand_claims_takes_about_forty_kilobytes(batch: float) -> None:
    times = arrivals(quarters(level(100_000 / WEEK), 1.0), batch=batch)
    of = history(times, MONDAY + WEEK)
    assert len(of.arrivals) > 90_000
    assert len(encode(of)) < (75_000 if batch == 1 else 40_000)


def test_no_history_takes_more_than_it_may() -> None:
    random = np.random.default_rng(4)
    of = history(np.sort(random.uniform(MONDAY, MONDAY + WEEK, MOST_ARRIVALS)), MONDAY + WEEK)
    for number in range(MOST_GAPS):
        of.gap(MONDAY + number * 1000 + random.uniform(0, 400), MONDAY + number * 1000 + 500.1234)
    for revision in range(4):
        for seconds in random.lognormal(3, 2, 600).tolist():
            of.lead(seconds, "stopped", f"revision-{revision}")
    assert len(encode(of)) <= MOST_BYTES
    assert not of.note


def test_what_does_not_fit_is_left_out_from_the_oldest_on_and_said() -> None:
    of = history(arrivals(quarters(office(0.2), 1.0)), MONDAY + WEEK)
    data = encode(of, most=20_000)
    assert len(data) <= 20_000
    again = decode(data)
    assert "were kept one by one" in again.note
    assert 100 < len(again.arrivals) < len(of.arrivals)
    assert again.arrivals == of.arrivals[-len(again.arrivals) :]
    assert again.detail_since > again.arrivals[0] - 1
    assert again.claims == of.claims  # by the quarter of an hour they are all there


def test_with_no_room_at_all_everything_is_still_counted_by_the_quarter() -> None:
    of = history(arrivals(quarters(level(0.05), 1.0)), MONDAY + WEEK)
    again = decode(encode(of, most=10))
    assert not again.arrivals
    assert again.claims == of.claims


def test_a_truncated_one_is_refused_wherever_it_was_cut() -> None:
    for length in range(len(BYTES)):
        with pytest.raises(HistoryError):
            decode(BYTES[:length])


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"", "does not begin"),
        (b"{}", "does not begin"),
        (MAGIC + bytes([VERSION + 1]) + b"xyz", "version is 02, and this release reads 1"),
        (MAGIC, "version is missing"),
        (MAGIC + bytes([VERSION]) + b"not compressed", "broken"),
        (BYTES + b"more", "follows"),
        (MAGIC + bytes([VERSION]) + zlib.compress(b"\xff" * 40), "too long"),
        (MAGIC + bytes([VERSION]) + zlib.compress(bytes(200)), "follows"),
        (MAGIC + bytes([VERSION]) + zlib.compress(bytes(3)), "no history can hold"),
        (MAGIC + bytes([VERSION]) + zlib.compress(b"\xff\xff\xff\xff\xff\xff\x7f" * 3), "the most"),
    ],
)
def test_every_refusal_says_why(data: bytes, sentence: str) -> None:
    with pytest.raises(HistoryError, match=sentence):
        decode(data)


@given(st.binary(max_size=300))
@settings(max_examples=300)
def test_no_garbage_crashes_it(garbage: bytes) -> None:
    for data in (garbage, MAGIC + bytes([VERSION]) + garbage):
        with pytest.raises(HistoryError):
            decode(data)


@given(st.binary(max_size=300))
@settings(max_examples=500)
def test_no_garbage_that_is_well_packed_crashes_it(garbage: bytes) -> None:
    try:
        of = decode(MAGIC + bytes([VERSION]) + zlib.compress(garbage))
    except HistoryError:
        return
    of.roll(MONDAY)
    encode(of)


@given(st.integers(0, 10**6), st.integers(1, 255))
@settings(max_examples=60)
def test_a_flipped_byte_inside_is_refused_or_read_and_never_a_crash(place: int, flip: int) -> None:
    plain = bytearray(zlib.decompress(BYTES[4:]))
    plain[place % len(plain)] ^= flip
    try:
        of = decode(MAGIC + bytes([VERSION]) + zlib.compress(bytes(plain)))
    except HistoryError:
        return
    of.roll(MONDAY + WEEK)
    build(of.snapshot(MONDAY + WEEK), servers=10).estimate(0.99, MONDAY)


def test_a_small_packet_that_inflates_without_end_is_refused() -> None:
    bomb = MAGIC + bytes([VERSION]) + zlib.compress(bytes(50_000_000), 9)
    assert len(bomb) < 60_000
    with pytest.raises(HistoryError, match="cut off"):
        decode(bomb)


def test_an_empty_history_is_a_history() -> None:
    assert same(decode(encode(History(since=MONDAY))), History(since=MONDAY))
    assert decode(encode(History(since=MONDAY))).arrivals == array("q")


def test_a_history_of_four_weeks_keeps_its_quarters() -> None:
    of = history(arrivals(quarters(level(0.01), 4.0)), MONDAY + KEPT)
    assert decode(encode(of)).quarters == of.quarters
