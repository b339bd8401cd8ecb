"""`python -m controller`: see `--help`."""

import asyncio
import sys

import uvloop

from controller.app import App, configure_logging
from controller.kube.config import ConfigError
from controller.settings import Settings


async def _run(settings: Settings) -> int:
    return await App(settings).run()


def main() -> int:
    """Run until a signal; 0 after a clean stop, 2 without a cluster, 3 when the lease was lost."""
    settings = Settings(_cli_parse_args=True)
    configure_logging(settings)
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(_run(settings))
    except ConfigError as error:
        sys.stderr.write(f"{error}\n")
        return 2


if __name__ == "__main__":
    sys.exit(main())
