"""Transcripts in our format from invented words."""

from __future__ import annotations

STAMP = "2026-03-28T22:34:06.792Z"


def user(text: str) -> str:
    return f"## User · {STAMP}\n\n{text}\n\n"


def assistant(text: str) -> str:
    return f"## Assistant · {STAMP}\n\n{text}\n\n"


def interrupted() -> str:
    return f"## Harness · {STAMP}\n\n*interrupted by the user*\n\n"


def call(tool: str, detail: str = "", output: str = "", *, failed: bool = False) -> str:
    printed = "".join(f"  {line}\n" for line in output.split("\n"))
    fenced = f"  ````\n{printed}  ````\n" if output else ""
    return f"- `{tool}` · {STAMP} · `{detail}`{' · failed' if failed else ''}\n{fenced}\n"


EDIT = call("Edit", "/home/u/lantern/src/wick.py")
TASK = user("Please repair the lamp on the north pier.")
DONE = "The lamp in src/lamp.py burns again with the trimmed wick."
