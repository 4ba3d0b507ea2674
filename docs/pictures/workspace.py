"""The workspace of the pictures: the demo, lived in for three weeks; the tests in a browser look at the same one."""

from __future__ import annotations

import io
import json
import sys
from contextlib import redirect_stdout
from datetime import datetime, timedelta
from pathlib import Path

from signet_sync.cli import main

# What somebody asked to be kept: how many days ago, of which type, with which tags.
MILLIMETRES = "Priya counts in millimetres, never in inches"
REMEMBERED = (
    (20, MILLIMETRES, "person", ("tidepool", "units")),
    (19, "A restore drill counts only when checksums of both sides were compared", "constraint", ("homelab", "backup")),
    (16, "Mira wants the plain choice first, and its weak spot written down", "preference", ("mira",)),
    (12, "Jo reviews lantern on Thursdays and wants the changelog before the code", "person", ("lantern", "release")),
    (6, "The reporting role owns every view that the harbour office reads", "note", ("tidepool", "views")),
    (3, "The spare USB disk lies in the drawer under the printer", "note", ("homelab",)),
)
# What was asked since, and how many days ago.
ASKED = (
    (18, "how does Priya count"),
    (17, "millimetres or inches"),
    (15, "which unit does Priya want"),
    (15, "restore drill checksums"),
    (13, "when does a drill count"),
    (11, "compare checksums of both sides"),
    (10, "who reviews lantern"),
    (7, "Thursdays release review"),
    (5, "millimetres"),
    (4, "changelog before the code"),
    (4, "plain choice first"),
    (2, "who owns the view of the harbour office"),
    (1, "restore drill"),
    (1, "reporting role views"),
    (1, "weak spot of the plain choice"),
)
SWEPT = (14, 8, 6)  # days ago
# Mira has pinned her preferences, so an agent may only propose.
PROPOSED = """\
- Wants the plain choice first and its weak spot written down.
- Asks for a measurement before an optimisation, and for the difference between two answers in practice.
- Counts a backup as one only after a restore whose checksums were compared.
"""
WHY = "why: said after both restore drills; until: it is taken back; plan: one line with the measurement"
# A session that goes on while one looks.
RUNNING = "lantern-navigation"
SAID = (
    ("user", "Navigation is the larger part of what a build still costs. Render it once?"),
    ("assistant", "Yes: it is the same on all pages but for the current entry. I measure first what it costs."),
)
# A person tidied up what was not theirs to edit: the page of problems shows it.
EDITED = "1,204 doubled readings of HRB-07"
SPOILT = ((EDITED, "1,200 doubled readings of HRB-07"), ("converted all", "converted nearly all"))


def furnish(root: str, present: datetime) -> None:
    """Makes the demo in a folder and lets three weeks pass: memories, questions, an edit, a session."""

    def call(*words: str, days: int | None = None, said: str = "") -> None:
        when = [] if days is None else ["--now", (present - timedelta(days=days)).isoformat()]
        _call("--workspace", root, *words[:1], *when, *words[1:], said=said)

    _call("demo", root)
    happened = [(days, 0, _remember(*rest)) for days, *rest in REMEMBERED]
    happened += [(days, 1, ("recall", question)) for days, question in ASKED]
    happened += [(days, 2, ("dream",)) for days in SWEPT]
    for days, _, words in sorted(happened, key=lambda one: (-one[0], one[1])):
        call(*words, days=days)
    call("entity", "set", "Mira", "preferences", "--text", PROPOSED, "--rationale", WHY, "--propose")
    _edit(Path(root))
    call("reindex")
    turns = (
        {"turn": number, "role": role, "text": text, "at": (present - timedelta(minutes=4 - number)).isoformat()}
        for number, (role, text) in enumerate(SAID)
    )
    call("transcript", "append", "--session-key", RUNNING, said="".join(f"{json.dumps(turn)}\n" for turn in turns))


def _edit(root: Path) -> None:
    """Changes the sealed summary that says so."""
    (path,) = (path for path in root.glob("memory/*--summary.md") if EDITED in path.read_text("utf-8"))
    text = path.read_text("utf-8")
    for before, after in SPOILT:
        text = text.replace(before, after)
    path.write_text(text, "utf-8")


def _remember(text: str, kind: str, tags: tuple[str, ...]) -> tuple[str, ...]:
    return ("remember", text, "--type", kind, *(word for tag in tags for word in ("--tag", tag)))


def _call(*words: str, said: str = "") -> None:
    """One command line in this process. Raises `RuntimeError` where it fails."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    before, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(said.encode()))
    try:
        with redirect_stdout(out):
            code = main.run([*words])
    finally:
        sys.stdin = before
    if code:
        raise RuntimeError(f"signet-sync {' '.join(words)}: exit code {code}")
