"""The commands, and the entry point: `kubectl bullpen` runs whatever `kubectl-bullpen` is on PATH."""

from __future__ import annotations

import typer

from cli.audit import audit

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(audit)


@app.callback()
def bullpen() -> None:
    """Look after Bullpen: warm KubeVirt VMs, and the claims that took some."""


def main() -> None:
    """The entry point."""
    app(prog_name="kubectl bullpen")
