"""Marks summaries that were made from a transcript, and recognizes them, by the line below the title."""

from __future__ import annotations

import re
from typing import Literal, cast

from signet_sync.formats.lazy_pattern import late
from signet_sync.formats.timestamps import DAY, parse_instant
from signet_sync.text.prompt import is_greeting
from signet_sync.text.sentences import basename, page_line

Status = Literal["done", "open", "blocked", "aborted", "question-only"]

# Increased, with its day, when the rules make other lines of the same transcript.
VERSION, _MADE_ON = 20, "2026-11-30"
# What sessions since then state is made again from their transcripts if other rules wrote their summary. An upgrade
# reads three months of transcripts, then, not years; what is older is seldom of use, and its summary still counts. It
# is counted from the rules' day, not from today, so that every machine and every rebuild gives the same rows.
SINCE_US = (parse_instant(f"{_MADE_ON}T00:00:00Z") or 0) - 90 * DAY

_MADE = "A digest made by rules from the transcript, without a model"
_CHOSEN = "A digest of the transcript whose quotes were chosen by a model"
_HEADLESS = "A program asked, no person."
_LOOK_UP = "Nothing but memory was asked."
# What was asked for, behind what came out.
ASKED = late(r"(?<=\S) \((?:first )?asked: .*", re.DOTALL)
_OPENING = late(
    rf"\*(?:(?P<made>{_MADE})(?: \(rules (?P<rules>\d+)\))?|{_CHOSEN})"
    r"\.[^*\n]* Status: (?P<status>done|open|blocked|aborted|question-only)\.\*"
)


def make_opening(
    project: str | None,
    harness: str | None,
    status: Status | None,
    *,
    headless: bool = False,
    looks_up: bool = False,
) -> str:
    """Returns the line below the title of a summary made by rules: what it is, and how its session ended."""
    said = f"{_MADE} (rules {VERSION})."
    said += f" {_HEADLESS}" if headless else ""
    said += f" {_LOOK_UP}" if looks_up else ""
    name = page_line(basename(project), 60)
    said += f" Project: {name}." if name else ""
    said += f" Harness: {page_line(harness, 40)}." if harness else ""
    said += f" Status: {status}." if status is not None else ""
    return f"*{said.replace('*', '')}*"


def mark_chosen_by_model(line: str) -> str:
    """Returns the line below the title for a digest whose items a model chose, made from that of the rules' one."""
    return f"*{_CHOSEN}.{line.partition('.')[2]}"


def status_of(summary: str) -> Status | None:
    """Returns how the session of a digest ended, made by rules or with a model; None for any other text."""
    found = _OPENING.fullmatch(_read_line_below_title(summary))
    return cast(Status, found["status"]) if found is not None else None


def is_of_other_rules(summary: str) -> bool:
    """Returns whether rules made this summary, but other ones than today's."""
    found = _OPENING.fullmatch(_read_line_below_title(summary))
    return found is not None and found["made"] is not None and found["rules"] != str(VERSION)


def end_of(summary: str) -> int:
    """Returns where the line of a digest ends; 0 for any other text."""
    line = _read_line_below_title(summary)
    return summary.index(line) + len(line) if _OPENING.fullmatch(line) else 0


def says_nothing(summary: str) -> bool:
    """Returns whether rules made this summary of a session that was only a greeting, or asked nothing but memory."""
    if is_look_up(summary):
        return True
    title = summary[:400].partition("\n")[0]
    return "\n## " not in summary and status_of(summary) == "question-only" and is_greeting(title)


def is_headless(summary: str) -> bool:
    """Returns whether rules made this summary of a session in which no person spoke."""
    line = _read_line_below_title(summary)
    return line.startswith(f"*{_MADE}") and f". {_HEADLESS}" in line[:120]


def is_look_up(summary: str) -> bool:
    """Returns whether rules made this summary of a session in which nothing but memory was asked."""
    return f". {_LOOK_UP}" in _read_line_below_title(summary)[:160]


def _read_line_below_title(summary: str) -> str:
    """Returns the first line with words after the first one."""
    lines = summary[:2_000].split("\n", 4)
    return next((line for line in lines[1:4] if line), "") if lines[0].startswith("# ") else ""
