"""What each part of a world may do next, asked of the real code once for each of its states and then known.

A part is what is stored (with the garbage collector, people and time), or one controller. Its state is a
number, and so is everything that is said about a step; `explore` puts the parts together.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from controller.claims import handover, release
from controller.claims.protocol import Denied, FoundClaim, FoundVM, NotApplied, Unknown
from crds import names
from tests.protocol import garbage, judge, people, view
from tests.protocol.apiserver import Event, perform
from tests.protocol.leader import Desk, claim_ended
from tests.protocol.things import CLAIM, VM, Numbered, Request, behind, forget
from tests.protocol.view import Mode, Purpose, Task, View
from tests.protocol.worlds import BUDGETS, World
from tests.support.builders import NOW

UNKNOWN, NOT_APPLIED, DENIED = Unknown(), NotApplied(), Denied("denied without a reason")
COST = {name: number for number, name in enumerate(BUDGETS)}


class Step(NamedTuple):
    """A transition of one part, before the others have heard of it. `cost` -1: it happens by itself."""

    label: int
    server: int
    events: int
    view: int
    bad: tuple[str, ...]
    cost: int


class Parts:
    """The parts of one world."""

    def __init__(self, world: World) -> None:
        forget()
        self.world = world
        self.where = people.where(world)
        self.servers: Numbered[Any] = Numbered()
        self.views: Numbered[View] = Numbered()
        self.lefts: Numbered[tuple[int, ...]] = Numbered()
        self.events: Numbered[tuple[Event, ...]] = Numbered()
        self.labels: Numbered[str] = Numbered()
        self._nothing = self.events.number(())
        self._by_others: dict[int, list[Step]] = {}
        self._heard: dict[tuple[int, int], int] = {}
        self._own: dict[tuple[int, int, int], list[Step]] = {}
        self._chosen: dict[tuple[int, int, int], list[Task]] = {}
        self._applied: dict[tuple[int, Request], Any] = {}
        self._spent: dict[tuple[int, int], int] = {}

    def spend(self, left: int, cost: int) -> int:
        """The budgets afterwards, -1 if there is nothing left of this one."""
        if cost < 0:
            return left
        found = self._spent.get((left, cost))
        if found is None:
            budget = self.lefts[left]
            found = -1
            if budget[cost]:
                found = self.lefts.number((*budget[:cost], budget[cost] - 1, *budget[cost + 1 :]))
            self._spent[left, cost] = found
        return found

    def others(self, number: int) -> list[Step]:
        found = self._by_others.get(number)
        if found is None:
            server = self.servers[number]
            moves = [*garbage.moves(server), *people.moves(self.world, self.where, server)]
            found = self._by_others[number] = [
                Step(
                    self.labels.number(move.label),
                    self.servers.number(move.server),
                    self.events.number(move.events),
                    -1,
                    judge.written(self.world, server, move.server, move.who),
                    COST[move.costs] if move.costs else -1,
                )
                for move in moves
                if not move.costs or self.world.budget.get(move.costs)
            ]
        return found

    def hear(self, number: int, events: int) -> int:
        if events == self._nothing:
            return number
        found = self._heard.get((number, events))
        if found is None:
            heard = view.listening(self.views[number], self.events[events])
            found = self._heard[number, events] = self.views.number(heard)
        return found

    # ---- a controller

    def mine(self, server: int, number: int, who: int, *, newer: bool) -> list[Step]:
        """What a controller may do; `newer`: another one leads since."""
        key = (server, number, 2 * who + newer)
        found = self._own.get(key)
        if found is None:
            found = self._own[key] = list(self._controller(server, number, who, newer=newer))
        return found

    def _controller(self, server: int, number: int, who: int, *, newer: bool) -> Iterator[Step]:
        mine = self.views[number]
        name = f"controller {who + 1}"
        match mine.mode:
            case Mode.DEAD:
                return
            case Mode.STANDBY:
                yield self._alone(f"{name} takes the lease", server, mine._replace(mode=Mode.STARTING))
                return
            case Mode.STARTING:
                after = view.listed_vms(mine, self.servers[server])
                yield self._alone(f"{name} lists the VMs", server, after)
            case Mode.LISTING:
                after = view.listed_claims(mine, self.servers[server])
                yield self._alone(f"{name} lists the claims and begins", server, after)
            case Mode.LEADING:
                yield from self._leading(server, number, who, name)
        if newer:
            yield self._alone(f"{name} notices that it lost the lease", server, View(Mode.DEAD))
        again = View(Mode.STARTING, made=mine.made)
        yield self._alone(f"{name} dies and is started again", server, again, "crash")

    def _leading(self, server: int, number: int, who: int, name: str) -> Iterator[Step]:
        mine, stored = self.views[number], self.servers[server]
        for place, task in enumerate(mine.tasks):
            left = mine._replace(tasks=(*mine.tasks[:place], *mine.tasks[place + 1 :]))
            yield from self._ask(server, left, task, name)
        if len(mine.tasks) >= self.world.tasks:
            return
        if mine.vm_events:
            yield self._delivery(name, server, mine)
        if mine.claim_events:
            yield self._claim_delivery(name, server, mine)
        if mine.pool_events:
            yield self._alone(f"{name} sees {_look(mine.pool_events[0])}", server, view.next_pool(mine))
        for uid in mine.aside:
            others = tuple(each for each in mine.aside if each != uid)
            yield self._alone(f"{name} offers {uid} again", server, mine._replace(aside=others))
        for claim in mine.claims:
            if self.world.budget.get("old-list"):
                lacks = tuple(each for each in mine.claims if each is not claim)
                what = f"{name} lists the claims anew from a server that lags: {claim.name} is missing"
                late = ((claim, True), *mine.claim_events)
                yield self._alone(what, server, mine._replace(claims=lacks, claim_events=late), "old-list")
        for task in self._decisions(number, stored.clock, who):
            yield from self._ask(server, mine, task, f"{name} begins to {task.about}:")

    def _decisions(self, number: int, clock: int, who: int) -> list[Task]:
        key = (number, clock, who)
        found = self._chosen.get(key)
        if found is None:
            desk = Desk(self.views[number], NOW + clock, self.world)
            found = self._chosen[key] = list(dict.fromkeys(desk.decisions(who)))
        return found

    def _delivery(self, name: str, server: int, mine: View) -> Step:
        what = f"{name} sees {_look(mine.vm_events[0])}"
        return self._alone(what, server, view.next_vm(mine, self.where))

    def _claim_delivery(self, name: str, server: int, mine: View) -> Step:
        what, there = mine.claim_events[0]
        after = view.next_claim(mine)
        if not there:
            begun = claim_ended(mine, what, self.servers[server].now, self.world)
            after = after._replace(tasks=(*after.tasks, *begun))
        return self._alone(f"{name} sees {_look(mine.claim_events[0])}", server, after)

    def _alone(self, label: str, server: int, after: View, costs: str = "") -> Step:
        """Nothing is stored."""
        cost = COST[costs] if costs else -1
        return Step(self.labels.number(label), server, self._nothing, self.views.number(after), (), cost)

    # ---- a request and its answers

    def _ask(self, server: int, rest: View, task: Task, name: str) -> Iterator[Step]:
        """`rest` is the view without the task. The request is sent, and answered in each way it may be."""
        asked = task.work.request
        assert asked is not None
        after, answer, events, bad = self._apply(server, asked)
        said = f"{name} {asked.step.step} on {getattr(asked.step, 'name', 'the pool')}"
        views = self._answered(rest, task, answer)
        own = views if self._takes_in(task, answer) else view.listening(views, self.events[events])
        yield self._step(f"{said}: {people.told(answer)}", after, events, own, bad, "")
        if not asked.writes:
            return
        unsure = self._answered(rest, task, UNKNOWN)
        if self.world.budget.get("fault"):
            if events != self._nothing:
                heard = view.listening(unsure, self.events[events])
                yield self._step(f"{said}: done, but the reply is lost", after, events, heard, bad, "fault")
            yield self._step(f"{said}: the request is lost", server, self._nothing, unsure, (), "fault")
            stored = self.servers[server]
            if not stored.late:
                late = self.servers.number(stored._replace(late=(asked,)))
                yield self._step(f"{said}: it times out under way", late, self._nothing, unsure, (), "fault")
        if self.world.budget.get("refusal"):
            for refusal in (NOT_APPLIED, DENIED):
                refused = self._answered(rest, task, refusal)
                kind = "refused for now" if refusal is NOT_APPLIED else "denied"
                yield self._step(f"{said}: {kind}", server, self._nothing, refused, (), "refusal")

    def _apply(self, server: int, asked: Request) -> Any:
        found = self._applied.get((server, asked))
        if found is None:
            before = self.servers[server]
            done = perform(before, self.where, asked)
            bad = judge.written(self.world, before, done.server, "controller")
            found = self._applied[server, asked] = (
                self.servers.number(done.server),
                done.answer,
                self.events.number(done.events),
                bad,
            )
        return found

    def _takes_in(self, task: Task, answer: Any) -> bool:
        """Whether the answer itself brings the cache up to date."""
        return isinstance(answer, FoundVM | FoundClaim) and task.purpose is not Purpose.LABELS

    def _answered(self, rest: View, task: Task, answer: Any) -> View:
        after = rest
        if self._takes_in(task, answer):
            if isinstance(answer, FoundVM):
                after = view.saw_vm(rest, self.where, behind(answer))
            elif isinstance(answer, FoundClaim):
                after = view.saw_claim(rest, behind(answer))
        if task.purpose is Purpose.CREATE and not any(task.about == each.about for each in rest.tasks):
            made = max(after.made, int(task.about[-1]))
            after = after._replace(made=made)
        following = task.work.after(answer)
        if following.done is None:
            return after._replace(tasks=(*after.tasks, task._replace(work=following)))
        if task.purpose is Purpose.HAND_OVER and following.done.outcome == handover.Outcome.VM_TAKEN:
            return after._replace(aside=(*after.aside, task.vm_uid))
        gone = getattr(following.procedure, "gone", False)
        if task.then is not None and following.done.outcome == release.Outcome.DONE and gone:
            return after._replace(tasks=(*after.tasks, task._replace(work=task.then, then=None)))
        return after

    def _step(
        self, label: str, server: int, events: int, after: View, bad: tuple[str, ...], costs: str
    ) -> Step:
        cost = COST[costs] if costs else -1
        return Step(self.labels.number(label), server, events, self.views.number(after), bad, cost)


def _look(event: Event) -> str:
    what, there = event
    if not there:
        return f"{what.name} gone"
    if what.going:
        return f"{what.name} in deletion"
    if what.kind == VM:
        return f"{what.name} {what.labels.get(names.LABEL_STATE, 'without a state')}"
    return f"{what.name} {what.phase if what.kind == CLAIM else 'changed'}"
