"""`python -m controller`: see `--help`."""

import asyncio
import sys

import uvloop
from pydantic import ValidationError

from controller.app import App, configure_logging
from controller.kube.config import ConfigError
from controller.settings import Settings


async def _run(settings: Settings) -> int:
    return await App(settings).run()


def complaints(error: ValidationError) -> str:
    """What is wrong with the settings, a line for each, with the names a person can set."""
    lines = []
    for each in error.errors(include_url=False):
        name = str(each["loc"][0])
        what = each["msg"].removeprefix("Value error, ")
        lines.append(f"--{name.replace('_', '-')} (or BULLPEN_{name.upper()}): {what}\n")
    return "".join(lines)


def main() -> int:
    """Run until a signal; 0 after a clean stop, 2 without a cluster or with settings that make no sense.

    3 says that the lease was lost: the process is to be started anew, as a standby.
    """
    try:
        settings = Settings(_cli_parse_args=True)
    except ValidationError as error:
        sys.stderr.write(complaints(error))
        return 2
    configure_logging(settings)
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(_run(settings))
    except ConfigError as error:
        sys.stderr.write(f"{error}\n")
        return 2


if __name__ == "__main__":
    sys.exit(main())
