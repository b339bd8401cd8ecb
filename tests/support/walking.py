"""Every path that a procedure of the protocol can take, whatever is answered at whatever stage.

A procedure is a frozen value, so equal ones go on equally and the paths form a finite graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from controller.claims.protocol import Answer, Done, NotApplied, Procedure, Step, Unknown

P = TypeVar("P", bound=Procedure)
Answers = Callable[[Step], Iterable[Answer]]


@dataclass
class Graph(Generic[P]):
    """Nodes are the states of the procedure, the first one its beginning; edges are answers."""

    nodes: list[P] = field(default_factory=list)
    edges: list[tuple[int, Answer, int]] = field(default_factory=list)

    def ends(self) -> list[tuple[P, Done]]:
        return [(node, end) for node in self.nodes if isinstance(end := node.next(), Done)]

    def steps(self) -> list[Step]:
        return [step for node in self.nodes if not isinstance(step := node.next(), Done)]

    def after(self, *kinds: type) -> list[P]:
        """The states right after an answer of these kinds."""
        return [self.nodes[dest] for _, answer, dest in self.edges if isinstance(answer, kinds)]

    def from_every_state_an_end_is_reached(self) -> bool:
        reached = {number for number, node in enumerate(self.nodes) if isinstance(node.next(), Done)}
        while True:
            more = {source for source, _, dest in self.edges if dest in reached} - reached
            if not more:
                return len(reached) == len(self.nodes)
            reached |= more

    def circles_without(self, *kinds: type) -> list[int]:
        """The states to which answers of other kinds alone lead back: a loop that nothing slows down."""
        left = {number: [] for number in range(len(self.nodes))}  # type: dict[int, list[int]]
        for source, answer, dest in self.edges:
            if not isinstance(answer, kinds):
                left[source].append(dest)
        while ended := [number for number, after in left.items() if not any(each in left for each in after)]:
            for number in ended:
                del left[number]
        return sorted(left)


UNCERTAIN = (Unknown, NotApplied)


def explore(start: P, answers: Answers, bound: int = 500) -> Graph[P]:
    """All states that are reached from `start`. More than `bound` of them is a failure."""
    graph: Graph[P] = Graph([start])
    ahead = [0]
    while ahead:
        number = ahead.pop()
        step = graph.nodes[number].next()
        if isinstance(step, Done):
            continue
        for answer in answers(step):
            after = graph.nodes[number].observe(answer)
            if after not in graph.nodes:
                graph.nodes.append(after)
                ahead.append(len(graph.nodes) - 1)
                assert len(graph.nodes) <= bound, "the procedure does not come to an end"
            graph.edges.append((number, answer, graph.nodes.index(after)))
    return graph
