"""The commands, and the entry point: `kubectl bullpen` runs whatever `kubectl-bullpen` is on PATH."""

from __future__ import annotations

import sys
import traceback

import typer

from cli.audit import audit
from cli.backtest.command import backtest
from cli.explain import explain
from cli.trouble import COULD_NOT_LOOK

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(audit)
app.command()(explain)
app.command()(backtest)


@app.callback()
def bullpen() -> None:
    """Look after Bullpen: warm KubeVirt VMs, and the claims that took some."""


def main() -> None:
    """The entry point. An error of our own is shown whole, and its exit code is nobody's verdict."""
    try:
        app(prog_name="kubectl bullpen")
    except Exception:  # noqa: BLE001 - Python's own exit code for these is 1, which says that a promise is broken
        traceback.print_exc()
        sys.exit(COULD_NOT_LOOK)
