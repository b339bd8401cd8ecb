"""Release: Recycle as it is designed, explored before there is a line of it in the product.

**This is no product code.** The steps of the reset stand here as the design has them, with one amendment that
the exploration asked for (`Rules.record_at_mark`). When the product gets its own procedure, it takes the
place of this one in the explorer's worlds, and this module goes.

The reset: the finished claim's VM is marked Recycling; the guest that runs *then* is read, and its UID is
recorded in the VM; that guest is deleted by UID; when another one is there, the VM is offered again, if it is
still this claim's, marked and recorded so. A guest knows every claim under which it has run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from tests.protocol.explore import Graph
from tests.protocol.things import Numbered

POOLED, CLAIMED, RECYCLING = "Pooled", "Claimed", "Recycling"
WAITING, BOUND, GOING, GONE = "waiting", "bound", "going", "gone"
UNRECORDED, NO_GUEST = -1, 0
CRASH, FAULT, RESTART = range(3)


class VM(NamedTuple):
    """`claim`: the number of the claim whose UID it carries, 0 for none."""

    state: str = POOLED
    claim: int = 0
    recorded: int = UNRECORDED


class Stage(StrEnum):
    MARK = "marks the VM Recycling"
    LOOK = "reads the guest"
    RECORD = "records the guest"
    DELETE = "deletes the guest"
    WAIT = "looks for a new guest"
    OFFER = "offers the VM again"
    FINALIZER = "reads the VM for the claim's finalizer"
    UNHOLD = "takes the finalizer off"


class Reset(NamedTuple):
    """A controller's task: for which claim, and which guest it read."""

    stage: Stage
    claim: int
    guest: int = UNRECORDED


class Controller(NamedTuple):
    """`seen` is its cache, of any age; `guest` too, where the rules go by it."""

    seen: VM = VM()
    guest: int = UNRECORDED
    task: Reset | None = None


class State(NamedTuple):
    """`guest` is 0 while none runs; `knows` are the claims under which it ran; `late` has timed out."""

    vm: VM = VM()
    guest: int = 1
    knows: frozenset[int] = frozenset()
    guests: int = 1
    claims: tuple[str, ...] = (WAITING, WAITING)
    controllers: tuple[Controller, ...] = (Controller(), Controller())
    late: Reset | None = None
    budget: tuple[int, ...] = (0, 0, 0)


@dataclass(frozen=True)
class Rules:
    """The reset's rules: all of them False. Each True is a mistake."""

    by_name: bool = False  # the guest is deleted whatever its UID
    record_at_mark: bool = False  # the guest is recorded by the write that marks, so it was read before
    offer_untested: bool = False  # whose VM it is and what is recorded is not tested
    unproven: bool = False  # it is offered without a look for a new guest
    finalizer_by_cache: bool = False  # the claim is let go by what the cache says of its VM


class Move(NamedTuple):
    label: str
    after: State
    bad: str = ""
    by_itself: bool = True


# ---- the API server


def _write(rules: Rules, state: State, task: Reset) -> tuple[State, bool, str]:
    """The server after a write, whether it was taken, and what it broke."""
    vm, mine = state.vm, state.vm.claim == task.claim
    match task.stage:
        case Stage.MARK if vm.state == CLAIMED and mine:
            recorded = task.guest if rules.record_at_mark else UNRECORDED
            return state._replace(vm=vm._replace(state=RECYCLING, recorded=recorded)), True, ""
        case Stage.RECORD if vm == VM(RECYCLING, task.claim):
            return state._replace(vm=vm._replace(recorded=task.guest)), True, ""
        case Stage.DELETE if state.guest and (rules.by_name or state.guest == task.guest):
            in_use = vm.state == CLAIMED and state.claims[vm.claim - 1] == BOUND
            bad = f"I3: the guest of claim {vm.claim} was deleted under it" if in_use else ""
            return state._replace(guest=NO_GUEST, knows=frozenset()), True, bad
        case Stage.OFFER if vm.state == RECYCLING and (
            rules.offer_untested or (mine and vm.recorded == task.guest)
        ):
            users = " ".join(f"claim {each}" for each in state.knows)
            bad = f"I5: the VM is offered with a guest that {users} had used" if users else ""
            return state._replace(vm=VM()), True, bad
        case Stage.UNHOLD if state.claims[task.claim - 1] == GOING:
            bad = f"F: claim {task.claim} was let go, and its VM carries its UID" if mine else ""
            return _with_claim(state, task.claim, GONE), True, bad
    return state, False, ""


def _with_claim(state: State, claim: int, phase: str) -> State:
    return state._replace(claims=tuple(phase if n == claim else p for n, p in enumerate(state.claims, 1)))


# ---- everybody but the controllers


def _others(rules: Rules, state: State) -> Iterator[Move]:
    for claim, phase in enumerate(state.claims, 1):
        if phase == BOUND:
            yield Move(f"a user deletes claim {claim}", _with_claim(state, claim, GOING))
    if state.guest:
        dead = state._replace(guest=NO_GUEST, knows=frozenset())
        yield from _spending(RESTART, "the guest dies by itself", dead)
    else:
        born = frozenset({state.vm.claim}) if state.vm.state == CLAIMED else frozenset()
        number = state.guests + 1
        fresh = state._replace(guest=number, guests=number, knows=born)
        yield Move("KubeVirt starts another guest", fresh)
    if state.late is not None:
        after, _, bad = _write(rules, state._replace(late=None), state.late)
        yield Move(f"late: a controller {state.late.stage}", after, bad)


def _spending(what: int, label: str, after: State) -> Iterator[Move]:
    if after.budget[what]:
        left = tuple(each - (number == what) for number, each in enumerate(after.budget))
        yield Move(label, after._replace(budget=left), by_itself=False)


# ---- a controller


def _mine(rules: Rules, state: State, who: int) -> Iterator[Move]:
    mine, name = state.controllers[who], f"controller {who + 1}"

    def put(controller: Controller, at: State = state) -> State:
        return at._replace(controllers=(*at.controllers[:who], controller, *at.controllers[who + 1 :]))

    fresh = Controller(state.vm, state.guest if rules.record_at_mark else UNRECORDED)
    if mine.task is not None:
        yield from _spending(CRASH, f"{name} dies, and is started again", put(fresh))
        yield from _asks(rules, state, mine, name, put)
        return
    yield Move(f"{name} sees the VM as it is", put(fresh))
    seen = mine.seen
    if seen.state == POOLED and WAITING in state.claims and seen == state.vm and state.guest:
        claim = state.claims.index(WAITING) + 1
        given = state._replace(vm=VM(CLAIMED, claim), knows=state.knows | {claim})
        yield Move(f"{name} hands the VM to claim {claim}", _with_claim(put(mine, given), claim, BOUND))
    for claim, phase in enumerate(state.claims, 1):
        if phase != GOING:
            continue
        if seen.claim == claim:
            task = _begun(rules, mine, claim)
            yield Move(f"{name} begins to reset the VM of claim {claim}", put(mine._replace(task=task)))
        elif rules.finalizer_by_cache:
            task = Reset(Stage.UNHOLD, claim)
            yield Move(f"{name} lets claim {claim} go by its cache", put(mine._replace(task=task)))
        else:
            task = Reset(Stage.FINALIZER, claim)
            yield Move(f"{name} thinks that claim {claim} may go", put(mine._replace(task=task)))


def _begun(rules: Rules, mine: Controller, claim: int) -> Reset:
    """From the beginning, or from where somebody else left it."""
    if mine.seen.state == CLAIMED:
        return Reset(Stage.MARK, claim, mine.guest if rules.record_at_mark else UNRECORDED)
    if mine.seen.recorded == UNRECORDED:
        return Reset(Stage.LOOK, claim)
    return Reset(Stage.DELETE, claim, mine.seen.recorded)


def _asks(
    rules: Rules, state: State, mine: Controller, name: str, put: Callable[..., State]
) -> Iterator[Move]:
    """One request and its answers."""
    task = mine.task
    assert task is not None
    said = f"{name} {task.stage} (of claim {task.claim})"
    if task.stage in {Stage.LOOK, Stage.WAIT, Stage.FINALIZER}:
        yield Move(said, put(mine._replace(task=_looked(state, task))))
        return
    after, taken, bad = _write(rules, state, task)
    following = _following(rules, task, taken=taken)
    yield Move(f"{said}: {'done' if taken else 'refused'}", put(mine._replace(task=following), after), bad)
    unsure = mine._replace(task=_following(rules, task, taken=True) if task.stage is Stage.DELETE else None)
    yield from _spending(FAULT, f"{said}: the request is lost", put(unsure))
    if taken:
        yield from _spending(FAULT, f"{said}: done, but the reply is lost", put(unsure, after))
    if state.late is None:
        yield from _spending(FAULT, f"{said}: it times out under way", put(unsure, state._replace(late=task)))


def _looked(state: State, task: Reset) -> Reset | None:
    match task.stage:
        case Stage.LOOK:
            return Reset(Stage.RECORD, task.claim, state.guest)
        case Stage.WAIT if state.guest in {NO_GUEST, task.guest}:
            return task if state.guest == NO_GUEST else Reset(Stage.DELETE, task.claim, task.guest)
        case Stage.WAIT:
            return Reset(Stage.OFFER, task.claim, task.guest)
        case _:
            return None if state.vm.claim == task.claim else Reset(Stage.UNHOLD, task.claim)


def _following(rules: Rules, task: Reset, *, taken: bool) -> Reset | None:
    """What comes after a write; a refusal sends the controller back to what it sees."""
    if task.stage is Stage.DELETE:
        return task._replace(stage=Stage.OFFER if rules.unproven else Stage.WAIT)
    if not taken:
        return None
    match task.stage:
        case Stage.MARK if rules.record_at_mark:
            return task._replace(stage=Stage.DELETE)
        case Stage.MARK:
            return Reset(Stage.LOOK, task.claim)
        case Stage.RECORD:
            return task._replace(stage=Stage.DELETE)
        case _:
            return None


# ---- all of it


@dataclass
class Found:
    """`ways` has each violation's shortest story."""

    states: int
    rests: int
    ways: dict[str, list[str]]


def explore(
    rules: Rules, *, crashes: int = 0, faults: int = 0, restarts: int = 0, stop_at: str = ""
) -> Found:
    """All of it, or until a violation that begins with `stop_at` is found."""
    graph, labels, ways = Graph(), Numbered[str](), dict[str, tuple[int, int]]()
    graph.meet(State(budget=(crashes, faults, restarts)), -1, -1)  # type: ignore[arg-type]
    at = 0
    while at < len(graph.order) and not (stop_at and any(each.startswith(stop_at) for each in ways)):
        state: State = graph.order[at]  # type: ignore[assignment]
        resting = True
        for move in (*_others(rules, state), *(m for who in (0, 1) for m in _mine(rules, state, who))):
            label = labels.number(move.label)
            number = graph.meet(move.after, at, label)  # type: ignore[arg-type]
            if move.by_itself and number != at:
                resting = False
                graph.sources.append(at)
                graph.targets.append(number)
            if move.bad:
                ways.setdefault(move.bad, (at, label))
        if resting:
            graph.rests.append(at)
            if wrong := _at_rest(state):
                ways.setdefault(wrong, (at, -1))
        at += 1
    if not stop_at and (stuck := graph.stuck()) is not None:
        ways["livelock: no rest can be reached from here"] = (stuck, -1)
    stories = {what: [labels[each] for each in graph.way(*how)] for what, how in ways.items()}
    return Found(len(graph.order), len(graph.rests), stories)


def _at_rest(state: State) -> str:
    """Users delete their claims by themselves here: in the end both are gone, and the VM is on offer."""
    if state.vm != VM() or not state.guest:
        return f"rest: the VM is {state.vm.state} for ever"
    return "" if set(state.claims) == {GONE} else f"rest: the claims are {', '.join(state.claims)} for ever"
