"""`signet-sync` and `python -m signet_sync`: the entry point, kept free of imports that a hook would pay for."""

from __future__ import annotations

import signal
import sys


def main() -> None:
    """Runs the command line and exits with its code."""
    arguments = sys.argv[1:]
    if _is_hook(arguments):
        # Ctrl-C ends the person's session; of its end we are still to be told.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        from signet_sync.hook import main as hook

        sys.exit(hook(arguments))
    from signet_sync.cli import run

    sys.exit(run(arguments))


def _is_hook(arguments: list[str]) -> bool:
    """Whether the command is `hook`, and not its help: a harness waits for it, and click alone would take too long."""
    words = iter(arguments)
    for word in words:
        if word in ("--workspace", "--db"):
            next(words, None)
        elif not word.startswith("-"):
            return word == "hook" and not {"-h", "--help"}.intersection(words)
    return False


if __name__ == "__main__":
    main()
