"""The four drawings of the page: the trade-off, the VMs, the claims and the misses by the hour.

Colours are classes; the page's style sheet knows them, in light and in dark. Everything can be read without a
script: what is pointed at says its numbers by `title`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from cli.backtest import svg, words
from cli.backtest.study import HOURS_A_WEEK, Point, Setting, Study

_WIDE = 1040.0
_LEFT = 62.0
_RIGHT = 1022.0
_MORE = 1.6
"""How much further than the dearest mark the curve goes, at most."""
_SHARES = (0.0, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999)
_LABEL_EVERY = 30.0
_DAY = 24


@dataclass(frozen=True, slots=True)
class Mark:
    """A setting that is told by name: the class of its colour, and what to say of it."""

    setting: Setting
    kind: str
    name: str


def marks(study: Study) -> list[Mark]:
    """The settings that are marked, the most important first; one that is two things is named once."""
    found = []
    same = study.today is not None and study.today.units == study.least.units
    if study.today:
        name = f"today, and the least for {words.percent(study.level)}" if same else "today"
        found.append(Mark(study.today, "today", name))
    if study.engine:
        found.append(Mark(study.engine, "engine", "engine"))
    if not same:
        found.append(Mark(study.least, "least", f"smallest fixed for {words.percent(study.level)}"))
    return found


# ---- hit ratio against idle VM-hours


@dataclass(frozen=True, slots=True)
class _Plane:
    """Where what is drawn. Upwards each step of the same height is a tenth of the misses: 90, 99, 99.9 %."""

    most_hours: float
    most_nines: float
    top: float = 22.0
    foot: float = 384.0

    def x(self, idle_hours: float) -> float:
        return _LEFT + (_RIGHT - _LEFT) * idle_hours / self.most_hours

    def y(self, hit_ratio: float) -> float:
        """What missed nothing is at the top."""
        nines = -math.log10(1 - hit_ratio) if hit_ratio < 1 else self.most_nines
        return self.foot - (self.foot - self.top) * min(nines / self.most_nines, 1)


def trade_off(study: Study) -> str:
    """The curve of hit ratio against idle VM-hours a day, with what is set and what would be on it."""
    named = marks(study)
    points = _shown(study.curve, [mark.setting.idle_hours for mark in named])
    dearest = max([point.idle_hours for point in points] + [mark.setting.idle_hours for mark in named])
    fewest = math.log10(max(study.claims, 10)) + 0.25  # one miss of all claims is below the top
    plane = _Plane(max(dearest * 1.04, 1.0), max(fewest, -math.log10(1 - study.level) + 0.4))
    label = "Hit ratio against idle VM-hours a day. " + " ".join(words.summary(study))
    return svg.drawing(
        _WIDE,
        436,
        label,
        *_ground(study, plane),
        *_curve(points, plane),
        *_marked(study, named, points, plane),
    )


def _shown(curve: tuple[Point, ...], costs: list[float]) -> list[Point]:
    """As far as the first that misses nothing, but not much further than what is marked."""
    enough = _MORE * max(costs)
    found: list[Point] = []
    for point in curve:
        if found and (point.idle_hours > enough or found[-1].misses == 0):
            break
        found.append(point)
    return found


def _ground(study: Study, plane: _Plane) -> list[str]:
    """The axes, and the band in which the level is met."""
    level = plane.y(study.level)
    drawn = [
        svg.element(
            "rect", class_="met", x=_LEFT, y=plane.top, width=_RIGHT - _LEFT, height=level - plane.top
        )
    ]
    for share in _SHARES:
        y = plane.y(share)
        if y < plane.top + 14:
            break
        drawn += [
            svg.path([(_LEFT, y), (_RIGHT, y)], class_="grid"),
            svg.text(words.percent(share), _LEFT - 8, y + 4, class_="tick end"),
        ]
    drawn += [
        svg.path([(_LEFT, plane.top), (_RIGHT, plane.top)], class_="grid"),
        svg.text("no miss", _LEFT - 8, plane.top + 4, class_="tick end"),
        svg.path([(_LEFT, level), (_RIGHT, level)], class_="level"),
        svg.text(
            f"{words.percent(study.level)} is met from here up", _LEFT + 10, level - 7, class_="levelname"
        ),
    ]
    for hours in svg.round_ticks(plane.most_hours, 8):
        x = plane.x(hours)
        drawn += [
            svg.path([(x, plane.foot), (x, plane.foot + 5)], class_="axis"),
            svg.text(f"{hours:,g}", x, plane.foot + 21, class_="tick middle"),
        ]
    foot = svg.path([(_LEFT, plane.foot), (_RIGHT, plane.foot)], class_="axis")
    name = "idle VM-hours a day →"
    return [*drawn, foot, svg.text(name, _RIGHT, plane.foot + 42, class_="axisname end")]


def _curve(points: list[Point], plane: _Plane) -> list[str]:
    """A fixed number of VMs a dot; the numbers stand where there is room for them."""
    places = [(plane.x(each.idle_hours), plane.y(each.hit_ratio)) for each in points]
    drawn = [svg.path(places, class_="curve")]
    last = -math.inf
    for point, (x, y) in zip(points, places, strict=True):
        told = (
            f"{words.vms(point.units)}: {words.percent(point.hit_ratio)}, {point.misses:,} missed, "
            f"{words.hours(point.idle_hours)} idle VM-hours a day"
        )
        drawn.append(
            svg.group(
                svg.title(told),
                svg.element("circle", class_="reach", cx=x, cy=y, r=9),
                svg.element("circle", class_="dot", cx=x, cy=y, r=3.2),
                class_="tip",
            )
        )
        if point.units and x - last >= _LABEL_EVERY:
            drawn.append(svg.text(str(point.units), x - 6, y - 8, class_="count end"))
            last = x
    return drawn


def _marked(study: Study, named: list[Mark], points: list[Point], plane: _Plane) -> list[str]:
    """Each mark, and beside it what it is: over no dot, no other label, and not over the level's line."""
    labels = svg.Labels(svg.Box(_LEFT, plane.top - 14, _RIGHT, plane.foot - 4))
    spots = [(plane.x(mark.setting.idle_hours), plane.y(mark.setting.hit_ratio)) for mark in named]
    dots = [(plane.x(each.idle_hours), plane.y(each.hit_ratio)) for each in points]
    labels.taken += [svg.Box(x - 9, y - 9, x + 9, y + 9) for x, y in spots]
    labels.taken += [svg.Box(x - 16, y - 20, x + 5, y + 5) for x, y in dots]
    level = plane.y(study.level)
    labels.taken.append(svg.Box(_LEFT, level - 3, _RIGHT, level + 3))
    labels.taken.append(svg.Box(_LEFT, level - 20, _LEFT + 180, level))
    drawn = [
        svg.path([(x, y), (x, plane.foot)], class_=f"drop {mark.kind}")
        for mark, (x, y) in zip(named, spots, strict=True)
    ]
    for mark, (x, y) in zip(named, spots, strict=True):
        setting = mark.setting
        lines = [
            f"{mark.name}: {words.vms(setting.units)}",
            f"{words.percent(setting.hit_ratio)} · {words.hours(setting.idle_hours)} VM-hours a day",
        ]
        left, foot, side = labels.place(x, y, lines)
        drawn.append(
            svg.group(
                svg.title(f"{lines[0]}, {lines[1]}, {setting.misses:,} missed"),
                _shape(mark.kind, x, y),
                svg.text(lines[0], left, foot, class_=f"markname {side}"),
                svg.text(lines[1], left, foot + 17, class_=f"marktext {side}"),
                class_=f"tip mark {mark.kind}",
            )
        )
    return drawn


def _shape(kind: str, x: float, y: float) -> str:
    """Each mark has a shape of its own: colours alone are not seen by everybody."""
    if kind == "engine":
        return svg.path([(x, y - 9), (x + 9, y), (x, y + 9), (x - 9, y)], closed=True, class_="shape")
    if kind == "least":
        return svg.element("circle", class_="shape ring", cx=x, cy=y, r=7)
    return svg.element("circle", class_="shape", cx=x, cy=y, r=7.5)


# ---- the week


def week(study: Study) -> str:
    """Claims in each hour of the week: a row a day, a column an hour."""
    most = max(study.arrivals)
    wide, high, top = (_RIGHT - _LEFT) / _DAY, 30.0, 24.0
    drawn = [
        svg.text(f"{hour:02}", _LEFT + wide * (hour + 0.5), 14, class_="tick middle") for hour in range(_DAY)
    ]
    for day, name in enumerate(words.DAYS):
        drawn.append(svg.text(name, _LEFT - 10, top + high * (day + 0.5) + 4, class_="tick end"))
    for hour, amount in enumerate(study.arrivals):
        x, y = _LEFT + wide * (hour % _DAY), top + high * (hour // _DAY)
        box = {"x": x + 1, "y": y + 1, "width": wide - 2, "height": high - 2, "rx": 3}
        cell = [
            svg.title(f"{words.slot(hour)}: {_rate(amount)}"),
            svg.element("rect", class_="cell", **box),
            svg.element("rect", class_="heat", fill_opacity=round(_shade(amount, most), 3), **box),
        ]
        if amount >= 0.5:  # noqa: PLR2004 - what rounds to none is left blank
            strong = " strong" if _shade(amount, most) > 0.55 else ""  # noqa: PLR2004
            cell.append(
                svg.text(_short(amount), x + wide / 2, y + high / 2 + 4, class_=f"cellname middle{strong}")
            )
        drawn.append(svg.group(*cell, class_="tip"))
    busiest = max(range(HOURS_A_WEEK), key=study.arrivals.__getitem__)
    label = f"Claims by hour of the week; most on {words.slot(busiest)}: {_rate(most)}."
    return svg.drawing(_WIDE, top + 7 * high + 6, label, *drawn)


def _shade(amount: float, most: float) -> float:
    """Between none and all; by the root, so that quiet hours can be told from empty ones."""
    return math.sqrt(amount / most) if most else 0.0


def _rate(amount: float) -> str:
    return f"{amount:,.1f} claims an hour" if amount < 10 else f"{amount:,.0f} claims an hour"  # noqa: PLR2004


def _short(amount: float) -> str:
    return f"{amount:.0f}" if amount < 1000 else f"{amount / 1000:.1f}k"  # noqa: PLR2004


def sizes(study: Study) -> str:
    """How many VMs each setting keeps, by the hour of the week."""
    named = [mark for mark in marks(study) if mark.kind in {"today", "engine"}] or marks(study)
    most = max(max(mark.setting.units_by_hour) for mark in named)
    top, foot = 14.0, 184.0
    ticks = svg.round_ticks(most * 1.05, 4)
    high = max(most * 1.08, ticks[-1], 1.0)
    wide = (_RIGHT - _LEFT) / HOURS_A_WEEK
    drawn = _days(top, foot)
    for tick in ticks:
        y = foot - (foot - top) * tick / high
        drawn += [
            svg.path([(_LEFT, y), (_RIGHT, y)], class_="grid"),
            svg.text(f"{tick:g}", _LEFT - 8, y + 4, class_="tick end"),
        ]
    for mark in named:
        stairs = []
        for hour, units in enumerate(mark.setting.units_by_hour):
            y = foot - (foot - top) * units / high
            stairs += [(_LEFT + wide * hour, y), (_LEFT + wide * (hour + 1), y)]
        if mark.kind == "engine":
            area = [(_LEFT, foot), *stairs, (_RIGHT, foot)]
            drawn.append(svg.path(area, closed=True, class_="area engine"))
        drawn.append(svg.path(stairs, class_=f"line {mark.kind}"))
    for hour in range(HOURS_A_WEEK):
        told = ", ".join(f"{mark.kind} {mark.setting.units_by_hour[hour]:.3g}" for mark in named)
        box = svg.element("rect", class_="reach", x=_LEFT + wide * hour, y=top, width=wide, height=foot - top)
        drawn.append(svg.group(svg.title(f"{words.slot(hour)}: VMs {told}"), box, class_="tip"))
    label = "VMs by hour of the week: " + "; ".join(f"{mark.name}, {mark.setting.units}" for mark in named)
    return svg.drawing(_WIDE, foot + 28, label, *drawn)


def _days(top: float, foot: float) -> list[str]:
    wide = (_RIGHT - _LEFT) / len(words.DAYS)
    drawn = []
    for day, name in enumerate(words.DAYS):
        x = _LEFT + wide * day
        drawn += [
            svg.path([(x, top), (x, foot + 6)], class_="grid"),
            svg.text(name, x + wide / 2, foot + 20, class_="tick middle"),
        ]
    return drawn


# ---- misses


def misses(study: Study) -> str:
    """Misses a day in each hour of the day: one bar a setting."""
    named = marks(study)[:2]
    daily = [_by_hour_of_day(mark.setting, study.days) for mark in named]
    most = max(max(each) for each in daily)
    top, foot = 14.0, 184.0
    ticks = svg.round_ticks(max(most, 0.1) * 1.05, 4)
    high = max(most * 1.08, 0.1)
    wide = (_RIGHT - _LEFT) / _DAY
    drawn = []
    for tick in ticks:
        y = foot - (foot - top) * tick / high
        drawn += [
            svg.path([(_LEFT, y), (_RIGHT, y)], class_="grid"),
            svg.text(f"{tick:g}", _LEFT - 8, y + 4, class_="tick end"),
        ]
    bar = (wide - 10) / len(named)
    for hour in range(_DAY):
        x = _LEFT + wide * hour
        bars = []
        for place, mark in enumerate(named):
            tall = (foot - top) * daily[place][hour] / high
            bars.append(
                svg.element(
                    "rect", class_=f"bar {mark.kind}",
                    x=x + 5 + bar * place, y=foot - tall, width=bar - 1, height=tall, rx=1.5,
                )
            )  # fmt: skip
        told = ", ".join(f"{mark.kind} {daily[place][hour]:.2g}" for place, mark in enumerate(named))
        reach = svg.element("rect", class_="reach", x=x, y=top, width=wide, height=foot - top)
        drawn.append(svg.group(svg.title(f"{hour:02}:00, misses a day: {told}"), reach, *bars, class_="tip"))
        drawn.append(svg.text(f"{hour:02}", x + wide / 2, foot + 20, class_="tick middle"))
    foot_line = svg.path([(_LEFT, foot), (_RIGHT, foot)], class_="axis")
    label = "Misses a day by hour of the day: " + "; ".join(
        f"{mark.name}, {sum(each):.2g} in all" for mark, each in zip(named, daily, strict=True)
    )
    return svg.drawing(_WIDE, foot + 28, label, *drawn, foot_line)


def _by_hour_of_day(setting: Setting, days: float) -> list[float]:
    """Misses a day; a history of less than a day counts as one."""
    return [sum(setting.misses_by_hour[hour::_DAY]) / max(days, 1.0) for hour in range(_DAY)]
