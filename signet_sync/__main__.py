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
    try:
        from signet_sync.cli import run

        code = run(arguments)
    except KeyboardInterrupt:  # while it was loaded: nothing was begun
        sys.stderr.write("\nsignet-sync: interrupted\n")
        code = 130
    # All is done: a signal that comes while Python takes itself down would only make it look otherwise.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    sys.exit(code)


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
