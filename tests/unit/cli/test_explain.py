"""Why a pool has its size: pools as their status was recorded, and what is made of them."""

from __future__ import annotations

import io
from typing import Any

import pytest
import yaml
from rich.console import Console
from rich.text import Text

from capacity.history import History
from cli import explain, explaining
from cli.explaining import Explanation
from cli.pools import Recorded
from crds.pool import parse_pool
from tests.support.manifests import pool_manifest

Json = dict[str, Any]
SINCE = 1_772_409_600.0
NOT_YET = Recorded(None, "no claims were recorded for pool runners yet")
WHEN = "2026-03-02T08:15:00Z"


def policy(name: str, wants: int, because: str = "", *, applied: bool | None = None) -> Json:
    return {"name": name, "wants": wants, "because": because} | (
        {} if applied is None else {"applied": applied}
    )


def condition(kind: str, status: str, reason: str, message: str = "so it is") -> Json:
    return {
        "type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": WHEN,
    }  # fmt: skip


GOOD = [
    condition("Ready", "True", "Serving"),
    condition("Warm", "True", "TargetReached"),
    condition("Progressing", "False", "TargetReached"),
    condition("RolledOut", "True", "UpToDate"),
    condition("Degraded", "False", "AsExpected"),
    condition("CapacityAvailable", "True", "BelowLimits"),
]


def status(*policies: Json, target: int = 7, by: str = "replicas", **more: Any) -> Json:
    return {
        "replicas": 7,
        "total": 19,
        "instances": {"provisioning": 2, "warm": 5, "claimed": 12},
        "warm": {"ready": 5, "target": target, "decidedBy": by, "policies": list(policies)},
        "demand": {
            "pending": 0,
            "claimsPerHour": 42.5,
            "hitRatio": "97.3%",
            "leadTimeSeconds": {"p50": 16.0, "p95": 27.0},
        },
        "conditions": GOOD,
    } | more


def of(
    found: Json | None, *, recorded: Recorded = NOT_YET, suspend: bool = False, **warm: Any
) -> Explanation:
    manifest = pool_manifest("runners", warm={"replicas": 2, **warm}, suspend=suspend)
    pool = parse_pool(manifest | ({"status": found} if found is not None else {}))
    return Explanation("runners", "ci", pool, recorded)


def shown(explanation: Explanation, width: int = 100) -> str:
    text = io.StringIO()
    console = Console(file=text, width=width, highlight=False)
    for part in explain.told(explanation):
        console.print(part, soft_wrap=isinstance(part, Text))
    return text.getvalue()


def whys(explanation: Explanation) -> str:
    return "\n".join(each.why for each in explaining.advice(explanation))


def commands(explanation: Explanation) -> str:
    return "\n".join(each.command for each in explaining.advice(explanation) if each.command)


# ---- the answer


def test_the_first_line_is_the_answer() -> None:
    first, *_ = shown(of(status(policy("replicas", 7)))).splitlines()
    assert first == "wp/runners in namespace ci aims at 7 VMs ready or booting, because replicas says so."


@pytest.mark.parametrize(("target", "words"), [(0, "no VM"), (1, "1 VM "), (2, "2 VMs")])
def test_numbers_are_words_that_fit(target: int, words: str) -> None:
    assert f"aims at {words}" in explaining.headline(of(status(target=target)))


def test_every_policy_has_its_sentence_and_the_one_that_decides_is_marked() -> None:
    text = shown(
        of(
            status(
                policy("replicas", 2, "spec.warm.replicas is 2"),
                policy("schedule/office", 7, "open until 18:00"),
                by="schedule/office",
            )
        )
    )
    lines = text.splitlines()
    assert any(line.split()[:3] == ["replicas", "2", "spec.warm.replicas"] for line in lines)
    assert any(line.split()[:4] == ["→", "schedule/office", "7", "open"] for line in lines)


def test_a_policy_that_only_advises_says_so() -> None:
    text = shown(of(status(policy("serviceLevel", 9, "99% need 9", applied=False))))
    assert "99% need 9 (only advises)" in text


def test_the_stock_is_told_in_the_words_of_kubectl_get() -> None:
    lines = shown(of(status(policy("replicas", 7)))).splitlines()
    [place] = [number for number, line in enumerate(lines) if line.split()[:1] == ["TARGET"]]
    names, numbers = lines[place].split(), lines[place + 1].split()
    assert dict(zip(names, numbers, strict=True)) == {
        "TARGET": "7", "WARM": "5", "BOOTING": "2", "UNREADY": "0", "CLAIMED": "12", "PENDING": "0",
    }  # fmt: skip


@pytest.mark.parametrize(("patience", "said"), [("0s", "got a VM at once"), ("20s", "got a VM within 20s")])
def test_the_hit_ratio_is_told_by_the_yardstick_of_the_service_level(patience: str, said: str) -> None:
    assert said in shown(of(status(), serviceLevel={**LEVEL, "maxWait": patience}))


def test_demand_and_boot_times_are_sentences() -> None:
    text = shown(of(status()))
    assert "42.5 claims an hour, lately; 97.3% of the claims of the last seven days got a VM at once" in text
    assert "a VM takes 16s from its creation to warm in half of all cases, and 27s in 19 of 20" in text


def test_who_waits_is_told_and_since_when() -> None:
    text = shown(of(status(demand={"pending": 3, "oldestPendingSince": WHEN})))
    assert f"3 claims wait for a VM, the first since {WHEN}" in text


def test_what_was_never_measured_is_not_told_as_nothing() -> None:
    text = shown(of(status(demand={"pending": 0, "leadTimeSeconds": {}})))
    assert "an hour" not in text
    assert "a VM takes" not in text


def test_a_missing_history_says_why() -> None:
    assert "no claims were recorded for pool runners yet" in shown(of(status()))


def test_what_a_history_has_to_say_of_itself_is_passed_on() -> None:
    history = History(SINCE, note="the oldest claims are counted by the hour only")
    assert "· the oldest claims are counted" in shown(of(status(), recorded=Recorded(history)))


# ---- trouble


def test_good_conditions_are_not_told() -> None:
    assert explaining.troubles(of(status())) == []
    assert "!" not in shown(of(status()))


@pytest.mark.parametrize(
    "bad",
    [
        condition("Ready", "False", "BrakeOpen"),
        condition("Warm", "False", "Short"),
        condition("RolledOut", "Unknown", "RollingOut"),
        condition("Degraded", "True", "VMsFailed"),
        condition("CapacityAvailable", "False", "QuotaRefused"),
        condition("ReferencedDataChanged", "True", "DataMissing"),
        condition("PoliciesMet", "False", "RefillBound"),
        condition("SomethingNew", "False", "OfALaterRelease"),
    ],
    ids=lambda bad: bad["type"],
)
def test_a_condition_that_stands_as_it_should_not_is_told_with_its_sentence(bad: Json) -> None:
    explanation = of(status(conditions=[*GOOD, bad]))
    [found] = explaining.troubles(explanation)
    assert found.type == bad["type"]
    assert f"{bad['type']} is {bad['status']}, {bad['reason']}: so it is" in shown(explanation)
    assert f"docs/troubleshooting.md says what to do about {bad['reason']}" in whys(explanation)


def test_one_reason_of_several_conditions_is_looked_up_once() -> None:
    bad = [condition("Ready", "False", "BrakeOpen"), condition("Degraded", "True", "BrakeOpen")]
    assert whys(of(status(conditions=bad))).count("BrakeOpen") == 1


def test_a_pool_that_nobody_looked_at_says_so_and_nothing_of_sizes() -> None:
    text = shown(of(None))
    assert text.startswith("wp/runners in namespace ci has no size yet: no controller has looked at it.")
    assert "TARGET" not in text
    assert "start a controller" in text


# ---- what to change


def test_without_a_service_level_one_is_offered_that_changes_nothing() -> None:
    patch = """--type=merge -p '{"spec":{"warm":{"serviceLevel":{"target":"99%"}}}}'"""
    assert f"kubectl patch wp runners -n ci {patch}" in commands(of(status()))


LEVEL = {"target": "99%"}


def test_a_level_that_needs_more_may_be_let_decide() -> None:
    explanation = of(status(policy("serviceLevel", 9, applied=False)), serviceLevel=LEVEL)
    assert "99% needs 9 at this hour, 2 more than the target" in whys(explanation)
    assert '{"spec":{"warm":{"serviceLevel":{"mode":"Apply"}}}}' in commands(explanation)


def test_a_floor_that_keeps_more_than_the_level_needs_may_be_lowered() -> None:
    explanation = of(status(policy("serviceLevel", 4, applied=False)), serviceLevel=LEVEL)
    assert "99% needs only 4 at this hour" in whys(explanation)
    assert "kubectl scale wp/runners -n ci --replicas=4 && kubectl patch" in commands(explanation)


def test_an_applied_level_under_its_floor_asks_for_a_lower_floor_only() -> None:
    explanation = of(status(policy("serviceLevel", 4)), serviceLevel=LEVEL | {"mode": "Apply"})
    assert commands(explanation) == "kubectl scale wp/runners -n ci --replicas=4"


@pytest.mark.parametrize("reason", ["TooFewClaims", "HistoryLost", "ScheduleNeverOpens"])
def test_nobody_is_told_to_lower_a_floor_while_nothing_is_known(reason: str) -> None:
    told = condition("PoliciesMet", "False", reason)
    explanation = of(
        status(policy("serviceLevel", 0, applied=False), conditions=[*GOOD, told]), serviceLevel=LEVEL
    )
    assert "lower the floor" not in whys(explanation)


def test_nobody_is_told_to_keep_more_where_no_number_would_do() -> None:
    bound = condition("PoliciesMet", "False", "RefillBound")
    explanation = of(
        status(policy("serviceLevel", 233, applied=False), conditions=[*GOOD, bound]), serviceLevel=LEVEL
    )
    assert "more than the target" not in whys(explanation)
    assert "RefillBound" in whys(explanation)


def test_a_level_that_is_applied_and_decides_needs_no_change() -> None:
    explanation = of(
        status(policy("serviceLevel", 7), by="serviceLevel"), serviceLevel=LEVEL | {"mode": "Apply"}
    )
    assert explaining.advice(explanation) == []


def test_a_maximum_that_holds_the_target_down_may_be_raised() -> None:
    explanation = of(
        status(policy("schedule/office", 12), policy("max", 7), by="max"), serviceLevel=LEVEL, max=7
    )
    assert "warm.max keeps the target at 7, where 12 are asked for" in whys(explanation)
    assert '{"spec":{"warm":{"max":12}}}' in commands(explanation)


def test_what_is_only_advised_is_no_reason_to_raise_a_maximum() -> None:
    explanation = of(status(policy("serviceLevel", 12, applied=False), policy("max", 7), by="max"), max=7)
    assert "warm.max" not in whys(explanation)


def test_a_budget_that_bites_is_told() -> None:
    explanation = of(status(policy("percent", 12), policy("budget", 7), by="budget"))
    assert "warm.budget keeps the target at 7, where 12 are asked for" in whys(explanation)


def test_a_suspended_pool_says_how_to_go_on() -> None:
    assert """'{"spec":{"suspend":false}}'""" in commands(of(status(), suspend=True))


def test_with_a_history_the_back_test_is_the_next_step() -> None:
    explanation = of(status(), recorded=Recorded(History(SINCE)), serviceLevel=LEVEL)
    assert "97.3% of the claims got a VM at once, short of 99%" in whys(explanation)
    assert "kubectl bullpen backtest wp/runners -n ci" in commands(explanation)


def test_without_a_history_nobody_is_sent_to_the_back_test() -> None:
    assert "backtest" not in commands(of(status(), serviceLevel=LEVEL))


# ---- forms


def test_a_narrow_screen_loses_no_word() -> None:
    explanation = of(
        status(policy("schedule/office", 7, "it is open and very long " * 5), by="schedule/office"),
        serviceLevel=LEVEL,
    )
    text = shown(explanation, width=60)
    assert max(map(len, text.splitlines()[1:])) <= 60
    assert "schedule/office" in text


def test_a_command_stands_on_one_line_to_be_copied() -> None:
    explanation = of(status(policy("serviceLevel", 9, applied=False)), serviceLevel=LEVEL)
    [command] = [each.command for each in explaining.advice(explanation) if each.command]
    assert f"  {command}\n" in shown(explanation, width=60)


def test_the_document_holds_all_of_it_under_names_that_stay() -> None:
    explanation = of(
        status(policy("replicas", 7, "spec.warm.replicas is 7"), policy("serviceLevel", 9, applied=False))
    )
    document = explaining.document(explanation)
    assert (document["pool"], document["namespace"], document["target"]) == ("runners", "ci", 7)
    assert document["policies"] == [
        {
            "name": "replicas", "wants": 7, "because": "spec.warm.replicas is 7",
            "decides": True, "applied": True,
        },
        {"name": "serviceLevel", "wants": 9, "because": "", "decides": False, "applied": False},
    ]  # fmt: skip
    assert document["stock"] == {"ready": 5, "pending": 0, "provisioning": 2, "warm": 5, "claimed": 12}
    assert document["demand"]["hitRatio"] == "97.3%"
    assert document["history"] == {"missing": NOT_YET.missing}
    assert document["conditions"] == []
    assert [set(each) <= {"why", "command"} for each in document["advice"]]
    assert yaml.safe_load(yaml.safe_dump(document)) == document


def test_the_document_says_how_much_was_recorded_and_since_when() -> None:
    history = History(SINCE)
    history.arrive(SINCE + 5, units=3)
    document = explaining.document(of(status(), recorded=Recorded(history)))
    assert document["history"] == {"claims": 3, "since": "2026-03-02T00:00:00Z"}


def test_the_document_of_a_pool_that_nobody_looked_at_names_no_target() -> None:
    document = explaining.document(of(None))
    assert "target" not in document
    assert "decidedBy" not in document
