"""The judge: events go in, in the order of their resourceVersions, and violations come out.

It is pure: no I/O, no clock. What it could not see it does not judge: in the dark of a break in a watch it
only takes in what is shown, and says once that there was a gap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from auditor import facts, rules_claim, rules_rest, rules_vm
from auditor.events import About, Change, Event, Kind, Object, Rule, Violation
from auditor.world import ClaimLife, PoolLife, VmLife, World

SWEEP_EVERY = 1_000
"""Events between two sweeps of what is gone out of mind."""


class Judge:
    """Holds I1 to I5 over every state that it is shown."""

    def __init__(self) -> None:
        self.world = World()
        self.violations: list[Violation] = []
        self.rv = 0
        """The resourceVersion up to which was judged."""
        self.seen = 0
        """Events."""
        self._dark_until = 0
        self._fresh: list[Violation] = []
        self._takers: dict[Kind, Callable[[Object, bool], None]] = {
            Kind.POOL: self._pool,
            Kind.CLAIM: self._claim,
            Kind.VM: self._vm,
            Kind.NAMESPACE: self._namespace,
        }

    def excuse(self, vm_uid: str, why: str) -> None:
        """A person handles this VM: its deletion, labels and owner are not judged any more."""
        self.world.excused[vm_uid] = why

    def see(self, event: Event) -> list[Violation]:
        """Take in one event; what it broke."""
        self._fresh = []
        self.seen += 1
        if self.seen % SWEEP_EVERY == 0:
            self.world.sweep()
        if event.change is Change.DARK:
            self._dark(event)
        elif event.change is Change.LISTED:
            self._listed(event)
        else:
            if event.rv < self.rv:
                self._late(event)
            self.rv = max(self.rv, event.rv)
            for raw in event.objects:
                self._takers[event.kind](raw, event.change is Change.DELETED)
        self.violations += self._fresh
        return self._fresh

    def at_rest(self) -> list[Violation]:
        """What is wrong if nothing changes any more; not added to `violations`."""
        return [
            _violation(rule, self.rv, about, message)
            for rule, about, message in rules_rest.at_rest(self.world)
        ]

    @property
    def _in_the_dark(self) -> bool:
        return self.rv <= self._dark_until

    def _report(self, about: facts.Vm | facts.Claim, findings: Iterable[rules_vm.Finding]) -> None:
        found = list(findings)  # looked at in full before anything is written down
        if not self._in_the_dark:
            self._fresh += [_violation(rule, self.rv, about, message) for rule, message in found]

    # What could not be seen

    def _dark(self, event: Event) -> None:
        self._dark_until = max(self._dark_until, event.until)
        if event.why:
            self._gap(event, f"nothing was seen from {event.rv} to {event.until}: {event.why}")

    def _late(self, event: Event) -> None:
        """It belongs before what was judged already: whatever was found since then may be wrong."""
        self.violations[:] = [
            found for found in self.violations if found.rv < event.rv or found.rule is Rule.GAP
        ]
        self._dark_until = max(self._dark_until, self.rv)
        self._gap(event, f"an event of {event.rv} came after {self.rv} was judged")

    def _gap(self, event: Event, message: str) -> None:
        self._fresh.append(Violation(Rule.GAP, self.rv, event.kind, message))

    def _listed(self, event: Event) -> None:
        """All there is of a kind, in the dark: taken in, and what is missing is gone."""
        self.rv = max(self.rv, event.rv)
        self._dark_until = max(self._dark_until, event.rv)
        if event.kind is Kind.NAMESPACE:
            self.world.ending.clear()
        for raw in event.objects:
            self._takers[event.kind](raw, False)
        here = {raw["metadata"]["uid"] for raw in event.objects}
        for uid, life in self._lives(event.kind):
            life.gone = life.gone or uid not in here
        if event.kind is Kind.CLAIM:
            for claim, vm in rules_claim.named_twice(self.world):
                message = f"names VM {vm}, which another claim names too"
                self._fresh.append(_violation(Rule.I1, event.rv, claim, message))

    def _lives(self, kind: Kind) -> Iterator[tuple[str, VmLife | ClaimLife | PoolLife]]:
        world = self.world
        lives: dict[Kind, dict[str, VmLife] | dict[str, ClaimLife] | dict[str, PoolLife]] = {
            Kind.VM: world.vms,
            Kind.CLAIM: world.claims,
            Kind.POOL: world.pools,
        }
        yield from lives.get(kind, {}).items()

    # What was seen

    def _namespace(self, raw: Object, gone: bool) -> None:  # noqa: FBT001 - one of the takers
        meta = raw["metadata"]
        if gone or "deletionTimestamp" in meta:
            self.world.ending.add(meta["name"])
        else:
            self.world.ending.discard(meta["name"])

    def _pool(self, raw: Object, gone: bool) -> None:  # noqa: FBT001 - one of the takers
        new = facts.pool(raw)
        self.world.pools[new.uid] = PoolLife(new, gone)
        if new.orphaning:
            self.world.kept.add(new.uid)

    def _claim(self, raw: Object, gone: bool) -> None:  # noqa: FBT001 - one of the takers
        new, world = facts.claim(raw), self.world
        life = world.claims.get(new.uid)
        self._report(new, rules_claim.changed(world, life.facts if life else None, new))
        world.claims[new.uid] = ClaimLife(new, gone)
        if new.orphaning:
            world.kept.add(new.uid)
        for uid in new.named:
            world.published.setdefault(uid, {}).setdefault(new.uid)

    def _vm(self, raw: Object, gone: bool) -> None:  # noqa: FBT001 - one of the takers
        new, world = facts.vm(raw), self.world
        life = world.vms.get(new.uid)
        if life is None:
            life = world.vms[new.uid] = VmLife(new, ours=new.ours, carried=new.claim_uid)
            self._report(new, rules_vm.appeared(new))
        else:
            self._report(new, rules_vm.changed(world, life, new))
        was_alive = life.alive
        self._write_down(life, new)
        life.gone = gone
        if was_alive and not life.alive:
            self._report(new, rules_vm.deletion_begun(world, life))

    def _write_down(self, life: VmLife, new: facts.Vm) -> None:
        old = life.facts
        if rules_vm.reset(old, new):
            life.carried = None
            self.world.published.pop(new.uid, None)
        if life.carried is None or self._in_the_dark:
            life.carried = new.claim_uid or life.carried
        if life.ours and new.owner is None and self.world.orphaned(old):
            life.ours, life.orphaned, life.wavered = False, True, self.world.wavered(old)
        elif new.ours:
            life.ours = True
        life.facts = new


def _violation(rule: Rule, rv: int, of: facts.Vm | facts.Claim, message: str) -> Violation:
    about = About(Kind.VM if isinstance(of, facts.Vm) else Kind.CLAIM, of.namespace, of.name, of.uid)
    return Violation(rule, rv, str(about), message, about)
