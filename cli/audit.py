"""`kubectl bullpen audit`: whether Bullpen kept its promises on a cluster, and whether anything is lost."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from auditor import Auditor, Violation, cluster
from auditor.connection import Connection
from auditor.events import Recording
from auditor.judge import Judge
from cli import options


def audit(
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = None,
    namespace: options.Namespace = None,
    all_namespaces: options.AllNamespaces = False,  # noqa: FBT002 - typer makes a flag of it
    length: Annotated[
        float | None,
        typer.Option("--for", parser=options.duration, metavar="DURATION", help="How long, like 10m."),
    ] = None,
    record: Annotated[Path | None, typer.Option(help="Keep the events, one JSON line each.")] = None,
    replay: Annotated[Path | None, typer.Option(help="Judge a recording instead of a cluster.")] = None,
) -> None:
    """Say whether Bullpen kept its promises, and name what is lost."""
    if replay is not None:
        found = _replayed(replay)
    else:
        target = cluster.find(kubeconfig, context)
        within = None if all_namespaces else namespace or target.namespace
        found = asyncio.run(_watched(target, within, length, record))
    for violation in found:
        typer.echo(violation)
    typer.echo(f"{len(found)} violations" if found else "no violation")
    raise typer.Exit(1 if found else 0)


async def _watched(
    target: cluster.Cluster, namespace: str | None, length: float | None, record: Path | None
) -> list[Violation]:
    async with (
        Connection.to(target) as connection,
        Auditor.over(connection, namespace, record=record) as auditor,
    ):
        await asyncio.sleep(length or 0)
        return await auditor.settled()


def _replayed(path: Path) -> list[Violation]:
    judge = Judge()
    for event in Recording(path).read():
        judge.see(event)
    return judge.violations + judge.at_rest()
