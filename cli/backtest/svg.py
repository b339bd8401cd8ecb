"""As much SVG as the page's charts need: escaped elements, round ticks, labels that keep apart."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from html import escape

_LETTER = 7.2
"""Width of a letter of a mark's label, in the units of the drawing: a little too much on purpose."""
_LINE = 17.0
_GAP = 14.0


def element(name: str, *children: str, **attributes: object) -> str:
    """One element; `class_` and `stroke_width` are written as SVG has them."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_number(value))}"'
        for key, value in attributes.items()
    )
    inside = "".join(children)
    return f"<{name}{written}>{inside}</{name}>" if inside else f"<{name}{written}/>"


def text(words: str, x: float, y: float, **attributes: object) -> str:
    """Some words with their foot at this place."""
    return element("text", escape(words), x=x, y=y, **attributes)


def title(words: str) -> str:
    """What is shown when the element around it is pointed at."""
    return element("title", escape(words))


def group(*children: str, **attributes: object) -> str:
    """Several elements as one."""
    return element("g", *children, **attributes)


def path(points: Iterable[tuple[float, float]], *, closed: bool = False, **attributes: object) -> str:
    """A line through these places."""
    d = "M" + "L".join(f"{_number(x)},{_number(y)}" for x, y in points) + ("Z" if closed else "")
    return element("path", d=d, **attributes)


def drawing(width: float, height: float, label: str, *children: str) -> str:
    """A whole drawing that fills the width that there is; `label` is what a screen reader says."""
    return element(
        "svg",
        *children,
        viewBox=f"0 0 {_number(width)} {_number(height)}",
        role="img",
        aria_label=label,
    )


def round_ticks(most: float, about: int = 6) -> list[float]:
    """Round numbers from 0 to `most`, some `about` of them: steps of 1, 2 or 5 times a power of ten."""
    if most <= 0:
        return [0.0]
    rough = most / about
    power = 10 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
    return [number * step for number in range(math.floor(most / step + 1e-9) + 1)]


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle that something is drawn in."""

    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: Box) -> bool:
        """Whether the two have something of the drawing in common."""
        return (
            self.left < other.right
            and other.left < self.right
            and self.top < other.bottom
            and other.top < self.bottom
        )

    def within(self, other: Box) -> bool:
        """Whether this one is wholly inside the other."""
        return (
            self.left >= other.left
            and self.right <= other.right
            and self.top >= other.top
            and self.bottom <= other.bottom
        )


@dataclass(slots=True)
class Labels:
    """Labels of a few lines beside their points, none over another nor over what is `taken`."""

    room: Box
    taken: list[Box] = field(default_factory=list)

    def place(self, x: float, y: float, lines: list[str]) -> tuple[float, float, str]:
        """Where the first line's foot is, and how it is anchored: the nearest place that is free."""
        wide, high = _LETTER * max(map(len, lines)), _LINE * len(lines)
        places = [
            (side, Box(left, top, left + wide, top + high))
            for side, left, top in (
                ("start", x + _GAP, y + 6),
                ("start", x + _GAP, y - high / 2),
                ("start", x + _GAP, y - high - 6),
                ("end", x - _GAP - wide, y - high - 6),
                ("end", x - _GAP - wide, y + 6),
                ("end", x - _GAP - wide, y - high / 2),
                *self._farther(x, y, wide, high),
            )
        ]
        free = (
            (side, box)
            for side, box in places
            if box.within(self.room) and not any(box.meets(other) for other in self.taken)
        )
        side, box = next(free, places[0])
        self.taken.append(box)
        return (box.left if side == "start" else box.right), box.top + _LINE - 4, side

    def _farther(self, x: float, y: float, wide: float, high: float) -> Iterator[tuple[str, float, float]]:
        """Side, left and top of places ever farther up and down, line by line, as far as the room goes."""
        for step in range(1, math.ceil((self.room.bottom - self.room.top) / _LINE)):
            aside = _GAP * min(step, 6)  # beside the line that leads away from the point
            for top in (y + 6 + _LINE * step, y - high - 6 - _LINE * step):
                yield "start", x + aside, top
                yield "end", x - aside - wide, top


def _number(value: object) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
