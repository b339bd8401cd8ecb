"""The page of a back-test: one file, readable without a script, that says the numbers of its study."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cli.backtest import charts, page, svg
from cli.backtest.study import Point, Setting, Study
from tests.unit.cli.studies import CURVE, MONDAY, fixed, study

WORLDS = {
    "all": study(),
    "no today": study(today=None),
    "no engine": study(engine=None),
    "the smallest alone": study(today=None, engine=None),
    "today is the smallest": study(today=fixed(6)),
    "today is far too many": study(today=fixed(9)),
    "one claim": study(
        claims=1, curve=(Point(0, 0.0, 0.0, 1), Point(1, 1.0, 24.0, 0)), arrivals=(1.0, *(0.0,) * 167),
        least=Setting(1.0, 24.0, 0, (1.0,) * 168, (0,) * 168, 1, 1), today=None, engine=None, until=MONDAY,
    ),
    "no demand by the hour": study(arrivals=(0.0,) * 168),
    "a level of nines": study(level=0.9999),
}  # fmt: skip


class Checker(HTMLParser):
    """What a browser would fetch, the words, and tags that are not closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.fetched: list[str] = []
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.fetched += [value or "" for name, value in attrs if name in {"src", "href", "srcset", "data"}]
        if tag not in {"meta", "br", "hr"}:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def read(of: Study) -> tuple[str, Checker]:
    html, checker = page.write(of), Checker()
    checker.feed(html)
    checker.close()
    return html, checker


def parsed(drawn: str) -> ET.Element:
    return ET.fromstring(drawn)  # noqa: S314 - what the page drew itself


def drawings(html: str) -> list[ET.Element]:
    return [parsed(each) for each in re.findall(r"<svg .*?</svg>", html, re.DOTALL)]


@pytest.mark.parametrize("of", WORLDS.values(), ids=WORLDS.keys())
def test_every_study_makes_a_whole_page_that_fetches_nothing(of: Study) -> None:
    html, checker = read(of)
    assert (checker.open, checker.fetched) == ([], [])
    assert "url(" not in html
    assert "@import" not in html
    assert "http" not in html
    assert "$" not in html
    assert "nan" not in html.replace("finance", "")
    assert "inf" not in html.replace("information", "")


@pytest.mark.parametrize("of", WORLDS.values(), ids=WORLDS.keys())
def test_every_drawing_is_well_formed_and_says_in_words_what_it_shows(of: Study) -> None:
    found = drawings(page.write(of))
    assert len(found) == 4
    for each in found:
        assert len(each.get("aria-label", "")) > 20
        assert each.findall(".//text")


@pytest.mark.parametrize("of", WORLDS.values(), ids=WORLDS.keys())
def test_nothing_is_drawn_outside(of: Study) -> None:
    for each in drawings(page.write(of)):
        _, _, wide, high = map(float, each.get("viewBox", "").split())
        for node in each.iter():
            for name, most in (("x", wide), ("cx", wide), ("y", high), ("cy", high)):
                assert -1 <= float(node.get(name, "0")) <= most + 1, ET.tostring(node)
            for x, y in re.findall(r"[ML]([-\d.]+),([-\d.]+)", node.get("d", "")):
                assert -1 <= float(x) <= wide + 1
                assert -1 <= float(y) <= high + 1


def test_the_first_sentence_is_the_answer_and_all_numbers_are_there() -> None:
    html, checker = read(study())
    text = " ".join(checker.words)
    assert (
        '<p class="first">With today&#x27;s 4 VMs, 93% of 10,000 claims found a warm VM, short of 99%;'
        in html
    )
    for number in ("93%", "99.4%", "99.3%", "84.5", "132", "70.2", "10,000 claims", "2 to 7", "a note"):
        assert number in text


def test_light_and_dark_are_both_thought_of() -> None:
    html = page.write(study())
    assert "prefers-color-scheme: dark" in html
    assert 'content="light dark"' in html


def test_names_are_shown_and_never_run() -> None:
    html, checker = read(study(of="<script>alert(1)</script> & $name", notes=("<b>",)))
    assert "<script>alert" not in html
    assert "<script>alert(1)</script> & $name" in "".join(checker.words)


def test_every_size_is_in_the_table_and_what_is_marked_is_named() -> None:
    html = page.write(study())
    assert html.count("<tr") == len(CURVE) + 1
    assert re.search(r'<tr class="today"><td>4</td>.*?<td>today</td></tr>', html)


def test_a_page_of_a_year_is_of_bounded_size() -> None:
    curve = tuple(Point(units, 1 - 0.5**units, 20.0 * units, 10_000 >> units) for units in range(300))
    assert len(page.write(study(curve=curve))) < 300_000


# ---- the trade-off


def spots(of: Study, kind: str) -> list[ET.Element]:
    drawn = parsed(charts.trade_off(of))
    return [each for each in drawn.iter("g") if kind in (each.get("class") or "").split()]


def test_each_setting_is_a_mark_with_its_name_and_its_numbers() -> None:
    for kind, name in (("today", "today: 4 VMs"), ("engine", "engine: 2 to 7 VMs"), ("least", "99%: 6 VMs")):
        [mark] = spots(study(), kind)
        first, second = (each.text or "" for each in mark.findall("text"))
        assert name in first
        assert "VM-hours a day" in second


def test_one_that_is_both_today_and_the_smallest_is_marked_once() -> None:
    of = study(today=fixed(6))
    assert [mark.kind for mark in charts.marks(of)] == ["today", "engine"]
    assert charts.marks(of)[0].name == "today, and the least for 99%"


def test_the_curve_ends_at_the_first_size_that_misses_nothing() -> None:
    told = [each.text or "" for each in parsed(charts.trade_off(study())).iter("title")]
    assert any(each.startswith("8 VMs: 100%") for each in told)
    assert not any(each.startswith("9 VMs: 100%") for each in told)


def test_a_curve_that_goes_on_and_on_does_not_press_the_marks_together() -> None:
    curve = (*CURVE[:8], *(Point(units, 0.9995, 24.0 * units, 5) for units in range(8, 400)))
    told = [each.text or "" for each in parsed(charts.trade_off(study(curve=curve))).iter("title")]
    assert len(told) < 25


def places(labels: list[tuple[float, float, list[str]]]) -> list[svg.Box]:
    keeper = svg.Labels(svg.Box(0, 0, 1000, 400))
    for x, y, lines in labels:
        keeper.place(x, y, lines)
    return keeper.taken


@given(st.lists(st.tuples(st.floats(100, 500), st.floats(60, 340)), min_size=1, max_size=3))
@example([(100.0, 237.0), (100.0, 311.0), (100.0, 293.0)])  # no room on the left, nor straight below
def test_labels_keep_apart(points: list[tuple[float, float]]) -> None:
    boxes = places([(x, y, ["today: 4 VMs", "93% · 84.5 VM-hours"]) for x, y in points])
    for number, box in enumerate(boxes):
        assert not any(box.meets(other) for other in boxes[number + 1 :])


# ---- pieces


@pytest.mark.parametrize(
    ("most", "ticks"),
    [
        (10, [0, 2, 4, 6, 8, 10]),
        (7, [0, 2, 4, 6]),
        (0, [0]),
        (0.35, [0, 0.1, 0.2, 0.3]),
        (250, [0, 50, 100, 150, 200, 250]),
    ],
)
def test_ticks_are_round(most: float, ticks: list[float]) -> None:
    assert svg.round_ticks(most) == pytest.approx(ticks)


@given(st.floats(1e-3, 1e7), st.integers(2, 10))
def test_ticks_are_not_too_many_and_within(most: float, about: int) -> None:
    ticks = svg.round_ticks(most, about)
    assert 1 <= len(ticks) <= about + 1
    assert ticks[-1] <= most * (1 + 1e-6)


def test_text_and_attributes_are_escaped() -> None:
    drawn = svg.group(svg.title('a < b & "c"'), svg.text("<i>", 1, 2.5, class_="x"), data_of='"<')
    node = parsed(drawn)
    assert node.get("data-of") == '"<'
    assert [each.text for each in node] == ['a < b & "c"', "<i>"]
