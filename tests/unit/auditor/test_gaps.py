"""What the auditor did not see: it says so, and does not guess."""

from auditor.events import Change, Event, Kind, Rule
from auditor.judge import Judge
from tests.unit.auditor.story import START, Raw, Story, judged


def listed(story: Story, kind: Kind) -> Event:
    objects: list[Raw] = [raw for (of, _), raw in story.objects.items() if of is kind]
    return Event(kind, Change.LISTED, story.rv, tuple(objects))


def with_gap(story: Story, kind: Kind, since: int) -> Judge:
    """The judge of a story in which nothing of `kind` was seen from `since` on, and then a list."""
    shown = [one for one in story.events if one.rv <= since or one.kind is not kind]
    dark = Event(kind, Change.DARK, since, until=story.rv, why="too old resource version")
    before = [one for one in shown if one.rv <= since]
    after = [one for one in shown if one.rv > since]
    return judged([*before, dark, *after, listed(story, kind)])


def test_a_gap_is_reported_with_its_ends_and_its_reason() -> None:
    story = Story()
    story.bound()
    since = story.rv
    story.status(queue={"position": 1})

    (gap,) = with_gap(story, Kind.CLAIM, since).violations

    assert gap.rule is Rule.GAP
    assert gap.subject == Kind.CLAIM
    assert str(since) in gap.message
    assert str(story.rv) in gap.message
    assert "too old resource version" in gap.message


def test_the_first_list_is_no_gap() -> None:
    assert Story().broken() == []


def test_a_vm_deleted_while_its_claim_was_out_of_sight_is_not_judged() -> None:
    story = Story()
    story.bound()
    since = story.rv
    story.remove(Kind.CLAIM, "claim")  # not seen
    story.destroy()

    judge = with_gap(story, Kind.CLAIM, since)

    assert [found.rule for found in judge.violations] == [Rule.GAP]
    assert judge.at_rest() == []


def test_what_is_found_missing_after_a_gap_is_gone_and_its_claim_must_say_so() -> None:
    story = Story()
    story.bound()
    since = story.rv
    story.destroy()

    judge = with_gap(story, Kind.VM, since)

    assert [found.rule for found in judge.violations] == [Rule.GAP]
    assert [found.rule for found in judge.at_rest()] == [Rule.REST]


def test_a_gap_does_not_hide_what_comes_after_it() -> None:
    story = Story()
    story.bound(claim="a")
    since = story.rv
    story.claim("b")
    judge = with_gap(story, Kind.CLAIM, since)
    begun = len(story.events)
    story.hand_over("vm", "b")

    judged(story.events[begun:], judge)

    assert [found.rule for found in judge.violations] == [Rule.GAP, Rule.I1, Rule.I5]


def test_a_hand_over_inside_a_gap_is_known_afterwards() -> None:
    story = Story()
    story.pool()
    story.vm()
    story.claim("a")
    story.claim("b")
    since = story.rv
    story.hand_over("vm", "a")
    judge = with_gap(story, Kind.VM, since)
    begun = len(story.events)
    story.hand_over("vm", "b")

    judged(story.events[begun:], judge)

    assert [found.rule for found in judge.violations] == [Rule.GAP, Rule.I1]


def test_two_claims_that_a_list_shows_with_one_vm_are_found_even_in_the_dark() -> None:
    story = Story()
    story.bound(claim="a")
    story.claim("b")
    since = story.rv
    story.publish("b", "vm")

    judge = with_gap(story, Kind.CLAIM, since)

    assert [found.rule for found in judge.violations] == [Rule.GAP, Rule.I1]


def test_an_event_that_comes_too_late_takes_back_what_was_judged_without_it() -> None:
    story = Story()
    story.bound()
    story.remove(Kind.CLAIM, "claim")
    late = story.events.pop()
    story.destroy()
    judge = story.judge()
    assert [found.rule for found in judge.violations] == [Rule.I3]

    judge.see(late)

    assert [found.rule for found in judge.violations] == [Rule.GAP]
    assert str(late.rv) in judge.violations[0].message
    assert judge.at_rest() == []


def test_a_namespace_that_ended_in_a_gap_is_forgotten() -> None:
    story = Story()
    story.create(Kind.NAMESPACE, "ns")
    story.delete(Kind.NAMESPACE, "ns", "kubernetes")
    judge = story.judge()
    judge.see(Event(Kind.NAMESPACE, Change.DARK, story.rv, until=story.rv + 10, why="cut"))
    judge.see(Event(Kind.NAMESPACE, Change.LISTED, story.rv + 10))

    assert judge.world.ending == set()
    assert judge.rv > START
