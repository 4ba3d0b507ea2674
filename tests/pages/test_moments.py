"""Which statements name exactly the file or command of a moment."""

from __future__ import annotations

import pytest

from signet_sync.capture.injections import Moment
from signet_sync.pages.hook_context import names
from signet_sync.pages.sections import StatementView

NEVER = "Never vp fmt src/wick_trim.py; pnpm exec vp works"
FAILED = '"vp fmt src/wick_trim.py" is not a command here; "pnpm exec vp fmt src/wick_trim.py" worked'


@pytest.mark.parametrize(("kind", "text", "path", "command", "expected"), [
    ("constraint", "src/loop.py and src/other.py are generated.", "/w/src/other.py", "", True),
    ("decision", "src/loop.py is generated from src/other.py", "/w/src/loop.py", "", True),
    ("decision", "Copy lamp_oil.py or point to src/other.py? — Point to it", "/w/src/other.py", "", False),
    *((kind, text, "", command, True) for kind, text in (("constraint", NEVER), ("tried", NEVER), ("tried", FAILED))
      for command in ("cd /w && A=1 B=2 vp fmt  src/wick_trim.py 2>&1 | tail -40", "vp fmt src/wick_trim.py || true")),
    ("constraint", NEVER, "", "cd /w", False),
    ("tried", FAILED, "", "pnpm exec vp fmt src/wick_trim.py", False),
    ("tried", FAILED, "", "vp fmt", False),
    ("tried", FAILED, "/w/src/wick_trim.py", "", False),
    ("tried", "Edits of src/wick_trim.py were taken back: “not in this file”", "/w/src/wick_trim.py", "", True),
])  # fmt: skip
def test_what_a_statement_names(kind: str, text: str, path: str, command: str, expected: bool) -> None:
    view = StatementView("f-a", kind, text, "", 1, "", "", "agent", 1)
    assert names(view, Moment(path, command, "")) is expected
