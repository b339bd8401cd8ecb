"""`kubectl bullpen explain wp/x`: why this pool has this size, and what to change."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from rich.table import Table
from rich.text import Text

from auditor import cluster
from cli import explaining, options, output, pools, report, trouble
from cli.explaining import Explanation
from cli.output import Output
from crds.conditions import Condition


def explain(
    pool: options.Pool,
    form: options.Form = Output.TABLE,
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = None,
    namespace: options.Namespace = None,
) -> None:
    """Say why a pool has the size that it has, and what to change.

    It tells the target, which policy set it, what each policy asks for and why, what there is, what is
    asked of the pool, and what stands in its way. It only reads.

    Exit codes: 0, it is told. 2, a wrong option. 3, it could not look, and says why.
    """
    name = pools.named(pool)
    with trouble.told():
        target = cluster.find(kubeconfig, context)
    with trouble.told(target.server):
        within = namespace or target.namespace
        of = Explanation(name, within, *asyncio.run(pools.looked_at(target, within, name)))
    if form is not Output.TABLE:
        output.write(explaining.document(of), form)
        return
    for part in told(of):
        report.console().print(part, soft_wrap=isinstance(part, Text))


def told(of: Explanation) -> Iterable[Table | Text]:
    """What a person reads, from the answer to the details and on to what to do."""
    yield Text(explaining.headline(of), "bold")
    if of.looked_at:
        yield Text()
        yield _stock(of)
    if of.warm.policies:
        yield Text()
        yield _policies(of)
    if facts := [*explaining.demand(of), *_history(of)]:
        yield Text()
        yield _listed((Text(each) for each in facts), "·")
    if troubles := explaining.troubles(of):
        yield Text()
        yield _listed(map(_trouble, troubles), "!", "yellow")
    if advice := explaining.advice(of):
        yield Text()
        yield Text("What to change, or to look at", "bold")
        for each in advice:
            yield _listed([Text(each.why)], "→")
            if each.command:  # on one line, however long: it is there to be copied
                yield Text(f"  {each.command}", "cyan")


def _stock(of: Explanation) -> Table:
    """What there is, in the words of `kubectl get wp`."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    pending = of.status.demand.pending if of.status.demand else 0
    numbers = {
        "TARGET": of.warm.target,
        "WARM": of.warm.ready,
        "BOOTING": of.stock.provisioning,
        "UNREADY": of.stock.unready,
        "CLAIMED": of.stock.claimed,
        "PENDING": pending,
    }
    for name in numbers:
        table.add_column(name)
    table.add_row(*map(str, numbers.values()))
    return table


def _policies(of: Explanation) -> Table:
    table = Table("", "POLICY", "WANTS", "WHY", box=None, pad_edge=False, header_style="dim")
    table.columns[2].justify = "right"
    for each in of.warm.policies:
        decides = of.decides(each)
        why = Text(each.because)
        if not of.counts(each):
            why.append(" (only advises)" if why else "only advises", "dim")
        style = "bold" if decides else "" if of.counts(each) else "dim"
        table.add_row("→" if decides else "", Text(each.name, style), Text(str(each.wants), style), why)
    return table


def _history(of: Explanation) -> list[str]:
    history = of.recorded.history
    if history is None:
        return [of.recorded.missing]
    return [history.note] if history.note else []


def _trouble(condition: Condition) -> Text:
    return Text.assemble(
        (f"{condition.type} is {condition.status}, {condition.reason}: ", "yellow"), condition.message
    )


def _listed(points: Iterable[Text], sign: str, style: str = "") -> Table:
    """One point below the other, each behind its sign and wrapped beside it."""
    table = Table.grid(padding=(0, 1))
    for point in points:
        table.add_row(Text(sign, style), point)
    return table
