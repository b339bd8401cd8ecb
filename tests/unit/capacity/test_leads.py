"""Lead times that change are believed soon, and chance is not taken for a change."""

import numpy as np
import pytest

from capacity.leads import GENERATION, REVISIONS, Generations, Leads


def boots(mean: float, count: int, seed: int = 1) -> list[float]:
    """As KubeVirt's boots are spread: a 95th percentile of 1.7 times the median."""
    drawn: list[float] = np.random.default_rng(seed).gamma(9, mean / 9, count).tolist()
    return drawn


def test_boot_times_that_double_are_believed_after_about_twenty_boots() -> None:
    of = Generations()
    for seconds in boots(20, 700):
        of.add(seconds)
    assert of.believed.mean == pytest.approx(20, rel=0.05)
    for seconds in boots(40, 40, seed=2):
        of.add(seconds)
        if of.believed.mean > 30:
            break
    else:
        pytest.fail("forty boots were not enough")


def test_chance_alone_never_makes_it_forget() -> None:
    of = Generations()
    for number, seconds in enumerate(boots(20, 10_000)):
        of.add(seconds)
        if number >= GENERATION:
            assert of.old.count == GENERATION
    assert of.believed.count <= 2 * GENERATION
    assert of.believed.mean == pytest.approx(20, rel=0.05)


def test_boot_times_that_are_all_the_same_do_not_differ_by_a_bucket() -> None:
    of = Generations()
    for number in range(GENERATION + 500):
        of.add(20.0 if number % 100 < 50 else 20.2)
    assert of.old.count == GENERATION


def test_a_slow_drift_is_followed_within_a_thousand_boots() -> None:
    of = Generations()
    for number, seconds in enumerate(boots(1, 5000)):
        of.add(seconds * (20 + number / 250))
    assert of.believed.mean == pytest.approx(39, rel=0.08)


def test_a_new_revision_is_believed_when_it_was_measured_often_enough() -> None:
    leads = Leads()
    for seconds in boots(20, 100):
        leads.add(seconds, "running", "old")
    for seconds in boots(60, 10):
        leads.add(seconds, "running", "new")
    assert leads.of("running", "new").count == 110
    for seconds in boots(60, 10, seed=3):
        leads.add(seconds, "running", "new")
    assert leads.of("running", "new").mean == pytest.approx(60, rel=0.15)
    assert leads.of("running", None) == leads.of("running", "new")
    assert leads.of("running", "old").count == 100
    assert leads.of("running", "never seen") == leads.of("running", None)


def test_tiers_have_lead_times_of_their_own() -> None:
    leads = Leads()
    leads.add(20, "running", "r")
    leads.add(5, "stopped", "r")
    assert leads.of("running", "r").mean == pytest.approx(20, rel=0.01)
    assert leads.of("stopped", None).mean == pytest.approx(5, rel=0.01)
    assert leads.of("paused", None).count == 0


def test_only_the_newest_revisions_are_kept() -> None:
    leads = Leads()
    for number in range(50):
        leads.add(20, "running", f"revision-{number}")
        leads.add(20, "stopped", f"revision-{number}")
    assert len(leads.by) == 2 * REVISIONS
    assert ("running", "revision-49") in leads.by
