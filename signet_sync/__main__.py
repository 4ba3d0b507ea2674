"""Starts `signet-sync` and `python -m signet_sync`, without imports that a hook would pay for."""

from __future__ import annotations

import gc
import signal
import sys


def main() -> None:
    """Runs the command line and exits with its code."""
    arguments = sys.argv[1:]
    # Modules make objects that stay: looking for cycles among them took a tenth of a command.
    gc.set_threshold(200_000)
    if sys.platform == "win32":
        sys.exit(_refuse_windows(arguments))
    if _is_hook(arguments):
        # Ctrl-C ends the person's session; the hook still has to record that end.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        from signet_sync.app.ask import run_hook as hook

        _leave(hook(arguments))
    try:
        from signet_sync.cli.main import run  # click, which a hook has no time for

        code = run(arguments)
    except KeyboardInterrupt:  # while it was being loaded: nothing was started
        sys.stderr.write("\nsignet-sync: interrupted\n")
        code = 130
    # Everything is done: a signal while Python shuts down would only make it look otherwise.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    _leave(code)


def _leave(code: int) -> None:
    """Exits; Python need not look for cycles in what the system takes back, for a tenth of a command."""
    gc.freeze()
    sys.exit(code)


def _refuse_windows(arguments: list[str]) -> int:
    """Reports, before importing more, that Windows is not supported; a hook exits with 0, for Gemini CLI with JSON."""
    if _is_hook(arguments):
        if "gemini" in arguments:
            sys.stdout.write("{}\n")
        return 0
    sys.stderr.write("signet-sync: Windows is not supported; it runs on Linux and macOS, and on Windows inside WSL\n")
    return 2


def _is_hook(arguments: list[str]) -> bool:
    """Returns whether the command is `hook`, and not its help: click alone would keep a harness waiting."""
    words = iter(arguments)
    for word in words:
        if word in ("--workspace", "--db", "--agent", "--now"):
            next(words, None)
        elif not word.startswith("-"):
            return word == "hook" and not {"-h", "--help"}.intersection(words)
    return False


if __name__ == "__main__":
    main()
