"""`python -m cli`: the same as `kubectl bullpen`."""

from cli.app import main

if __name__ == "__main__":
    main()
