"""Makes the fixtures of `tests/support/fixtures.py` known to tests and specs: one control plane for both."""

import signal

# A shell's background job ignores Ctrl-C, and so would all that the tests start and interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)

pytest_plugins = [
    "tests.support.fixtures",
    "tests.support.auditing",
    "tests.support.controller",
    "tests.support.site",
]
