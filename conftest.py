"""Makes the fixtures of `tests/support/fixtures.py` known to tests and specs: one control plane for both."""

pytest_plugins = [
    "tests.support.fixtures",
    "tests.support.auditing",
    "tests.support.controller",
    "tests.support.site",
]
