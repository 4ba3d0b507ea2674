"""`signet-sync` and `python -m signet_sync`: the entry point, kept free of imports that a hook would pay for."""

from __future__ import annotations

import sys


def main() -> None:
    """Runs the command line and exits with its code."""
    from signet_sync.cli import run

    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
