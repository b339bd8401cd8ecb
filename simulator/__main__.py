"""`python -m simulator STAND-IN …`."""

import argparse
import sys

from simulator.kubevirt import cli as kubevirt


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="simulator", description="Stand-ins for what Bullpen works with.")
    commands = parser.add_subparsers(required=True, metavar="STAND-IN")
    kubevirt.add_command(commands)
    options = parser.parse_args(arguments)
    return int(options.run(options))


if __name__ == "__main__":
    sys.exit(main())
