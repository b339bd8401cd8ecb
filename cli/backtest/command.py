"""The command: what is asked, of whom, and where the answer goes."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated, TypeAlias
from zoneinfo import ZoneInfo, available_timezones

import typer
from rich.text import Text

from auditor import cluster
from cli import options, output, pools, report, trouble
from cli.backtest import ask, page, replay, table
from cli.backtest.ask import Boots, Options, Question
from cli.output import Output

_REPLAY, _SHOW = "What is replayed", "How it is shown"


def _zone(name: str) -> str:
    if name not in available_timezones():
        raise typer.BadParameter(f"{name!r} is no time zone: write one of IANA's names, like Europe/Berlin")
    return str(ZoneInfo(name))


_Pool: TypeAlias = Annotated[
    list[str] | None,
    typer.Argument(metavar="[wp/NAME]", help="The pool: wp/NAME, or wp NAME.", show_default=False),
]
_Trace: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        help="Replay the claims in this CSV file: a column time, and count if there are several at once.",
        rich_help_panel=_REPLAY,
    ),
]
_LeadTimes: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        help="CSV file with a column seconds: how long VMs took to be ready.", rich_help_panel=_REPLAY
    ),
]
_Boot: TypeAlias = Annotated[
    Boots | None,
    typer.Option(
        parser=ask.boot,
        metavar="P50,P95",
        help="What if half of the VMs were ready within the first, 19 of 20 within the second: 16s,27s.",
        rich_help_panel=_REPLAY,
    ),
]
_Level: TypeAlias = Annotated[
    float | None,
    typer.Option(
        parser=ask.level,
        metavar="SHARE",
        help="The share of claims to serve in time; default: the pool's, or 99%.",
        rich_help_panel=_REPLAY,
    ),
]
_MaxWait: TypeAlias = Annotated[
    float | None,
    typer.Option(
        parser=options.duration,
        metavar="DURATION",
        help="How long a claim may wait and still be in time; default: the pool's, or 0s.",
        rich_help_panel=_REPLAY,
    ),
]
_Units: TypeAlias = Annotated[
    int | None,
    typer.Option(
        min=0,
        max=10_000,
        help="Take this fixed number for what is set today; default: what the pool's spec says.",
        rich_help_panel=_REPLAY,
    ),
]
_Zone: TypeAlias = Annotated[
    str,
    typer.Option(
        parser=_zone,
        metavar="ZONE",
        help="Tell times in this zone, like Europe/Berlin.",
        rich_help_panel=_SHOW,
    ),
]
_Html: TypeAlias = Annotated[
    Path | None, typer.Option(help="Write a page with curves to this file as well.", rich_help_panel=_SHOW)
]


def backtest(
    pool: _Pool = None,
    trace: _Trace = None,
    lead_times: _LeadTimes = None,
    boot: _Boot = None,
    level: _Level = None,
    max_wait: _MaxWait = None,
    units: _Units = None,
    time_zone: _Zone = "UTC",
    html: _Html = None,
    form: options.Form = Output.TABLE,
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = None,
    namespace: options.Namespace = None,
) -> None:
    """Say what other sizes of a pool would have done with the claims that came.

    It replays the last seven days as the controller recorded them, or a file of claims, and tells for each
    number of VMs how many claims would have found one warm, and how many VM-hours would have stood idle.

    Exit codes: 0, it is told. 2, a wrong option. 3, it could not look, and says why.
    """
    if boot is not None and lead_times is not None:
        raise typer.BadParameter("give --boot or --lead-times, not both", param_hint="--boot")
    wanted = Options(level, max_wait, boot, lead_times, units)
    if pool:
        question = _asked(pools.named(pool), trace, wanted, kubeconfig, context, namespace)
    else:
        question = _without_a_pool(trace, wanted, any((kubeconfig, context, namespace)))
    study = replay.study(question, time_zone)
    if html is not None:
        with trouble.told():
            html.write_text(page.write(study), encoding="utf-8")
        typer.echo(f"wrote {html}", err=True)
    if form is not Output.TABLE:
        output.write(table.document(study), form)
        return
    for part in table.told(study):
        report.console().print(part, soft_wrap=isinstance(part, Text))


def _without_a_pool(trace: Path | None, wanted: Options, of_a_cluster: bool) -> Question:  # noqa: FBT001
    if trace is None:
        raise typer.BadParameter("name a pool, as wp/NAME, or a file with --trace", param_hint="wp/NAME")
    if of_a_cluster:
        raise typer.BadParameter(
            "without a pool no cluster is asked: leave the options out", param_hint="--trace"
        )
    with trouble.told():
        return ask.of_trace(trace, wanted)


def _asked(
    name: str,
    trace: Path | None,
    wanted: Options,
    kubeconfig: Path | None,
    context: str | None,
    within: str | None,
) -> Question:
    with trouble.told():
        target = cluster.find(kubeconfig, context)
    namespace = within or target.namespace
    with trouble.told(target.server):
        found, recorded = asyncio.run(pools.looked_at(target, namespace, name))
        if trace is not None:
            return ask.of_trace(trace, wanted, found, recorded)
        return ask.of_pool(name, namespace, found, recorded, wanted)
