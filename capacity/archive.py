"""A history as bytes, to survive restarts. It must never grow without bound, nor crash on garbage.

Form: a magic word, a version, and a zlib stream of varints (LEB128, signed ones zigzag). Of arrivals it has
the differences between seconds, so that a claim costs less than four bits where claims are dense and two
bytes where they are not.
"""

import zlib
from array import array
from collections.abc import Iterable
from typing import Final

from capacity.history import DETAILED, KEPT, MOST_ARRIVALS, MOST_GAPS, QUARTER, History, Quarter
from capacity.leads import REVISIONS, Generations, Leads
from capacity.sketch import LeadTimes

MAGIC: Final = b"BPH"
VERSION: Final = 1
MOST_BYTES: Final = 256 * 1024
_MOST_INFLATED: Final = 8 * 1024 * 1024
_LONGEST_NAME: Final = 253
_MOST_TIERS: Final = 4
_SEVEN_BITS: Final = 0x7F
_LONGEST_SHIFT: Final = 49
_LATEST: Final = 2**40  # epoch seconds


class HistoryError(ValueError):
    """A sentence that says why these bytes are no history."""


def encode(history: History, most: int = MOST_BYTES) -> bytes:
    """The history in at most so many bytes: if need be its oldest arrivals go, and its note says so."""
    whole = _packed(history, history.arrivals, history.detail_since)
    kept, arrivals, since = 1.0, history.arrivals, history.detail_since
    while len(whole) > most and len(arrivals):
        kept *= min(0.9, 0.95 * most / len(whole))
        arrivals = history.arrivals[len(history.arrivals) - int(kept * len(history.arrivals)) :]
        since = arrivals[0] + 1 if arrivals else history.since + KEPT
        history.note = (
            f"only the last {len(arrivals)} claims were kept one by one: the history may have {most} bytes"
        )
        whole = _packed(history, arrivals, since)
    return whole


def decode(data: bytes) -> History:
    """What `encode` wrote.

    Raises:
        HistoryError: with a sentence; whatever the bytes are, nothing else is raised.
    """
    if data[:3] != MAGIC:
        raise HistoryError("it does not begin as a history does")
    if data[3:4] != bytes([VERSION]):
        raise HistoryError(f"its version is {data[3:4].hex() or 'missing'}, and this release reads {VERSION}")
    try:
        inflater = zlib.decompressobj()
        plain = inflater.decompress(data[4:], _MOST_INFLATED)
        if not inflater.eof or inflater.unused_data:
            raise HistoryError("it is cut off, or something follows it")
        return _read(_Reader(plain))
    except zlib.error as error:
        raise HistoryError(f"it is broken: {error}") from error
    except (IndexError, OverflowError, UnicodeDecodeError, ValueError) as error:
        if isinstance(error, HistoryError):
            raise
        raise HistoryError(f"it holds what no history can hold: {error}") from error


class _Writer:
    def __init__(self) -> None:
        self.out = bytearray()

    def number(self, value: int) -> None:
        while value > _SEVEN_BITS:
            self.out.append(value & _SEVEN_BITS | 0x80)
            value >>= 7
        self.out.append(value)

    def time(self, seconds: float) -> None:
        """To the millisecond."""
        self.number(max(0, round(seconds * 1000)))

    def text(self, text: str) -> None:
        coded = text.encode()[:_LONGEST_NAME]
        self.number(len(coded))
        self.out += coded

    def pairs(self, lead_times: LeadTimes) -> None:
        pairs = lead_times.to_pairs()
        self.number(len(pairs))
        before = 0
        for bucket, times in pairs:
            self.number(_zigzag(bucket - before))
            self.number(times)
            before = bucket


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def number(self, most: int = 2**53) -> int:
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & _SEVEN_BITS) << shift
            if byte <= _SEVEN_BITS:
                break
            shift += 7
            if shift > _LONGEST_SHIFT:
                raise HistoryError("a number in it is too long")
        if value > most:
            raise HistoryError(f"a number in it is {value}, and {most} is the most")
        return value

    def time(self) -> float:
        return self.number(_LATEST * 1000) / 1000

    def text(self, longest: int = _LONGEST_NAME) -> str:
        length = self.number(longest)
        self.at += length
        if self.at > len(self.data):
            raise HistoryError("a name in it is cut off")
        return self.data[self.at - length : self.at].decode()

    def pairs(self) -> LeadTimes:
        bucket, pairs = 0, []
        for _ in range(self.number(2000)):
            bucket += _unzigzag(self.number())
            pairs.append((bucket, self.number(10**9)))
        return LeadTimes(pairs)


def _zigzag(value: int) -> int:
    return value * 2 if value >= 0 else -value * 2 - 1


def _unzigzag(value: int) -> int:
    return value // 2 if value % 2 == 0 else -(value + 1) // 2


def _packed(history: History, arrivals: Iterable[int], detail_since: float) -> bytes:
    writer = _Writer()
    writer.time(history.since)
    writer.time(detail_since)
    writer.text(history.note)
    _write_arrivals(writer, arrivals)
    _write_quarters(writer, history)
    writer.number(len(history.gaps))
    for start, end in history.gaps:
        writer.time(start)
        writer.time(end - start)
    writer.number(len(history.leads.by))
    for (tier, revision), of in history.leads.by.items():
        writer.text(tier)
        writer.text(revision)
        for generation in (of.latest, of.new, of.old):
            writer.pairs(generation)
    return MAGIC + bytes([VERSION]) + zlib.compress(bytes(writer.out), 9)


def _write_arrivals(writer: _Writer, arrivals: Iterable[int]) -> None:
    """Their number, and the differences between their seconds."""
    before = count = 0
    body = _Writer()
    for second in arrivals:
        body.number(second - before)
        before = second
        count += 1
    writer.number(count)
    writer.out += body.out


def _write_quarters(writer: _Writer, history: History) -> None:
    writer.number(len(history.quarters))
    before = 0
    for number, quarter in sorted(history.quarters.items()):
        writer.number(number - before)
        before = number
        for value in (quarter.arrived, quarter.served, quarter.warm):
            writer.number(value)
        writer.time(quarter.gap)


def _read(reader: _Reader) -> History:
    history = History(since=reader.time(), detail_since=reader.time(), note=reader.text())
    second, arrivals = 0, array("q")
    for _ in range(reader.number(MOST_ARRIVALS * 2)):
        second += reader.number(_LATEST)
        arrivals.append(second)
    history.arrivals = arrivals
    number = 0
    for _ in range(reader.number(2 * (KEPT + DETAILED) // QUARTER)):
        number += reader.number(_LATEST)
        arrived, served, warm = reader.number(), reader.number(), reader.number()
        if warm > served:
            raise HistoryError(f"in it {warm} of {served} claims were served warm")
        history.quarters[number] = Quarter(arrived, min(reader.time(), float(QUARTER)), served, warm)
    for _ in range(reader.number(MOST_GAPS)):
        start = reader.time()
        history.gaps.append((start, start + reader.time()))
    history.leads = _read_leads(reader)
    if reader.at != len(reader.data):
        raise HistoryError("something follows it")
    return history


def _read_leads(reader: _Reader) -> Leads:
    leads = Leads()
    for _ in range(reader.number(_MOST_TIERS * REVISIONS)):
        key = reader.text(), reader.text()
        leads.by[key] = Generations(reader.pairs(), reader.pairs(), reader.pairs())
    return leads
