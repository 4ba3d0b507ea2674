"""Which statements name exactly the file or command of a moment."""

from __future__ import annotations

import pytest

from signet_sync.capture.injections import Moment
from signet_sync.pages.hook_context import names
from signet_sync.pages.sections import StatementView

FAILED = "Never vp fmt src/wick_trim.py; pnpm exec vp works"


@pytest.mark.parametrize(("kind", "text", "path", "command", "expected"), [
    ("constraint", "src/loop.py and src/other.py are generated.", "/w/src/other.py", "", True),
    ("decision", "src/loop.py is generated from src/other.py", "/w/src/loop.py", "", True),
    ("decision", "Copy lamp_oil.py or point to src/other.py? — Point to it", "/w/src/other.py", "", False),
    *(("constraint", FAILED, "", command, True)
      for command in ("cd /w && A=1 B=2 vp fmt  src/wick_trim.py 2>&1 | tail -40", "vp fmt src/wick_trim.py || true")),
    ("constraint", FAILED, "", "cd /w", False),
])  # fmt: skip
def test_what_a_statement_names(kind: str, text: str, path: str, command: str, expected: bool) -> None:
    view = StatementView("f-a", kind, text, "", 1, "", "", "agent", 1)
    assert names(view, Moment(path, command, "")) is expected
