"""`kubectl bullpen audit`: whether Bullpen keeps its promises on a cluster, and whether anything is lost.

It looks, and says what was found; nothing is ever repaired here.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from auditor import Auditor, cluster, findings, looking
from auditor.connection import Connection
from auditor.events import Recording, Violation
from auditor.findings import Finding
from auditor.judge import Judge
from auditor.looking import Audit
from cli import options, report, trouble
from cli.output import Output

_LOOK = 0.5  # seconds between two looks at what a watch has found


@dataclass(frozen=True, slots=True)
class Watch:
    """How to watch: for how long (None: until Ctrl-C), and where to keep the events."""

    length: float | None
    record: Path | None


_Settle: TypeAlias = Annotated[
    float,
    typer.Option(
        parser=options.duration,
        metavar="DURATION",
        help="Look again after so long, and report only what is unchanged: a hand-over takes its moment.",
    ),
]
_Watch: TypeAlias = Annotated[
    bool, typer.Option("--watch", "-w", help="Follow and judge every change until Ctrl-C, then look.")
]
_For: TypeAlias = Annotated[
    float | None,
    typer.Option("--for", parser=options.duration, metavar="DURATION", help="Watch for so long, like 10m."),
]
_Record: TypeAlias = Annotated[
    Path | None, typer.Option(help="Watch, and keep the events in this file, one JSON line each.")
]
_Replay: TypeAlias = Annotated[Path | None, typer.Option(help="Judge such a file instead of a cluster.")]
_Strict: TypeAlias = Annotated[
    bool, typer.Option("--strict", help="Exit with 1 also for what is foreign or a warning.")
]


def audit(
    settle: _Settle = "10s",  # type: ignore[assignment]  # typer parses defaults, too
    watch: _Watch = False,
    length: _For = None,
    record: _Record = None,
    replay: _Replay = None,
    form: options.Form = Output.TABLE,
    strict: _Strict = False,
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = None,
    namespace: options.Namespace = None,
    all_namespaces: options.AllNamespaces = False,
) -> None:
    """Say whether Bullpen keeps its promises on a cluster, and name what is lost.

    It looks at pools, claims and VMs, and looks again at what is wrong: only what stays is reported.

    With --watch or --for it also judges each change that comes, which finds what heals before anybody looks.

    Exit codes: 0, all is well (there may be warnings, foreign VMs and notes). 1, a promise is broken or
    something leaked. 2, a wrong option. 3, it could not look, and says why.
    """
    if replay is not None:
        unset = all(each is None for each in (length, record, kubeconfig, context, namespace))
        if watch or all_namespaces or not unset:
            why = "a file is judged, no cluster: leave the other options out"
            raise typer.BadParameter(why, param_hint="--replay")
        with trouble.told():
            found, where = _replayed(replay), str(replay)
    else:
        with trouble.told():
            target = cluster.find(kubeconfig, context)
        within = None if all_namespaces else namespace or target.namespace
        where = _where(within)
        how = Watch(length, record) if watch or length is not None or record is not None else None
        tell = _tell if form is Output.TABLE else _silent
        with trouble.told(target.server):
            found = asyncio.run(_audited(target, within, settle, how, tell))
    report.write(found, where, form)
    raise typer.Exit(report.exit_code(found.findings, strict=strict))


async def _audited(
    target: cluster.Cluster,
    namespace: str | None,
    settle: float,
    how: Watch | None,
    tell: Callable[[Finding], None],
) -> Audit:
    async with Connection.to(target) as connection:
        if how is None:
            return await looking.audited(connection, namespace, settle)
        begun = (await looking.once(connection, namespace)).numbers
        async with Auditor.over(connection, namespace, record=how.record) as auditor:
            typer.echo(f"watching {_where(namespace)}: {report.counted(begun)}; Ctrl-C ends it", err=True)
            await _watched(auditor, how.length, tell)
            last = await looking.audited(connection, namespace, settle)
            found = [*map(findings.of, auditor.violations), *last.findings]
            return Audit(findings.ordered(found), last.seen)


def _where(namespace: str | None) -> str:
    return "all namespaces" if namespace is None else f"namespace {namespace}"


async def _watched(auditor: Auditor, length: float | None, tell: Callable[[Finding], None]) -> None:
    """Until the time is over or Ctrl-C; a second Ctrl-C ends everything."""
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    told: set[Violation] = (
        set()
    )  # a late event takes back what was found after it: no place in the list stays
    loop.add_signal_handler(signal.SIGINT, stop.set)
    end = loop.time() + (length if length is not None else float("inf"))
    try:
        while not stop.is_set() and loop.time() < end:
            with suppress(TimeoutError):
                async with asyncio.timeout(min(_LOOK, end - loop.time())):
                    await stop.wait()
            auditor.check()
            for violation in auditor.violations:
                if violation not in told:
                    tell(findings.of(violation))
                    told.add(violation)
    finally:
        loop.remove_signal_handler(signal.SIGINT)


def _replayed(path: Path) -> Audit:
    judge = Judge()
    for event in Recording(path).read():
        judge.see(event)
    found = map(findings.of, judge.violations + judge.at_rest())
    return Audit(findings.ordered(found), judge.world.seen)


def _tell(found: Finding) -> None:
    report.console().print(report.line(found))


def _silent(_found: Finding) -> None:
    """Programs read one document, at the end."""
