"""The page of a back-test: one file that needs nothing else, neither a network nor a script to be read."""

from __future__ import annotations

from html import escape
from importlib.resources import files
from string import Template

from cli.backtest import charts, words
from cli.backtest.study import Study


def write(study: Study) -> str:
    """The whole page."""
    template = Template(files("cli.backtest").joinpath("page.html").read_text(encoding="utf-8"))
    first, *rest = words.summary(study)
    return template.substitute(
        name=escape(study.of),
        span=escape(words.span(study)),
        lead=escape(words.facts(study)),
        zone=escape(study.zone),
        first=escape(first),
        rest="".join(f"<p>{escape(each)}</p>" for each in rest),
        cards="".join(map(_card, charts.marks(study))),
        tradeoff=charts.trade_off(study),
        week=charts.week(study),
        sizes=charts.sizes(study),
        misses=charts.misses(study),
        keys=_keys(study),
        rows="".join(_rows(study)),
        notes="".join(f"<li>{escape(each)}</li>" for each in study.notes),
    )


def _card(mark: charts.Mark) -> str:
    setting = mark.setting
    return (
        f'<div class="card {mark.kind}"><h3>{escape(mark.name)}</h3>'
        f'<p class="big">{escape(words.percent(setting.hit_ratio))}</p>'
        f"<dl><dt>VMs</dt><dd>{escape(setting.units)}</dd>"
        f"<dt>idle VM-hours a day</dt><dd>{words.hours(setting.idle_hours)}</dd>"
        f"<dt>misses</dt><dd>{setting.misses:,}</dd></dl></div>"
    )


def _keys(study: Study) -> str:
    return "".join(
        f'<span class="key {mark.kind}">{escape(mark.name)}</span>' for mark in charts.marks(study)[:2]
    )


def _rows(study: Study) -> list[str]:
    named = {int(mark.setting.units): mark for mark in charts.marks(study) if mark.setting.units.isdigit()}
    written = []
    for point in study.curve:
        mark = named.get(point.units)
        about = f' class="{mark.kind}"' if mark else ""
        written.append(
            f"<tr{about}><td>{point.units}</td><td>{escape(words.percent(point.hit_ratio))}</td>"
            f"<td>{words.hours(point.idle_hours)}</td><td>{point.misses:,}</td>"
            f"<td>{escape(mark.name) if mark else ''}</td></tr>"
        )
    return written
