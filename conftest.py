"""Makes the fixtures of `tests/support/fixtures.py` known to tests and specs: one control plane for both."""

import signal

import pytest
from hypothesis import HealthCheck, settings

# How long an example takes is the machine's affair. Where CI is set, the same examples come each time.
settings.register_profile("bullpen", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("bullpen")

# A shell's background job ignores Ctrl-C, and so would all that the tests start and interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)

pytest_plugins = [
    "tests.support.fixtures",
    "tests.support.audit_command",
    "tests.support.auditing",
    "tests.support.controller",
    "tests.support.site",
    "tests.support.warm_watch",
]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that need no controller come first: the session's would answer what they write themselves."""
    items.sort(key=lambda item: "controller" in getattr(item, "fixturenames", ()))
