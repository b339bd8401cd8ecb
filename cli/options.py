"""What every command is told in the same words as kubectl: which cluster, as whom, and which namespace."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from cli import output
from cli.output import Output
from crds import durations

_CLUSTER = "Cluster"

Kubeconfig: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        help="Kubeconfig file; default: $KUBECONFIG, ~/.kube/config, or the pod's own account.",
        show_default=False,
        rich_help_panel=_CLUSTER,
    ),
]
Context: TypeAlias = Annotated[
    str | None,
    typer.Option(
        help="Context of the kubeconfig; default: its current one.",
        show_default=False,
        rich_help_panel=_CLUSTER,
    ),
]
Namespace: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--namespace",
        "-n",
        help="Namespace to look at; default: the context's.",
        show_default=False,
        rich_help_panel=_CLUSTER,
    ),
]
AllNamespaces: TypeAlias = Annotated[
    bool,
    typer.Option("--all-namespaces", "-A", help="Look at all namespaces.", rich_help_panel=_CLUSTER),
]
Form: TypeAlias = Annotated[
    Output,
    typer.Option(
        "--output",
        "-o",
        parser=output.parsed,
        metavar="[table|json|yaml]",
        help="For people, or for programs.",
    ),
]
Pool: TypeAlias = Annotated[
    list[str],
    typer.Argument(metavar="wp/NAME", help="The pool: wp/NAME, or wp NAME.", show_default=False),
]


def duration(text: str) -> float:
    """A length of time as Bullpen's own kinds write it (90s, 10m, 1h30m), in seconds."""
    try:
        return durations.seconds(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
