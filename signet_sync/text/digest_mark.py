"""Marks summaries that were made from a transcript, and recognizes them, by the line below the title."""

from __future__ import annotations

from typing import Literal, cast

from signet_sync.formats.lazy_pattern import late
from signet_sync.text.prompt import is_greeting
from signet_sync.text.sentences import basename, page_line

Status = Literal["done", "open", "blocked", "aborted", "question-only"]

# Increased when the rules make other lines of the same transcript.
VERSION = 4

_MADE = "A digest made by rules from the transcript, without a model"
_CHOSEN = "A digest of the transcript whose quotes were chosen by a model"
_HEADLESS = "A program asked, no person."
_OPENING = late(rf"\*{_MADE}\.[^*\n]* Status: (done|open|blocked|aborted|question-only)\.\*")

_CHOSEN_OPENING = late(rf"\*{_CHOSEN}\.[^*\n]* Status: (done|open|blocked|aborted|question-only)\.\*")


def opening(project: str | None, harness: str | None, status: Status | None, *, headless: bool = False) -> str:
    """Returns the line below the title of a summary made by rules: what it is, and how its session ended."""
    said = f"{_MADE}. {_HEADLESS}" if headless else f"{_MADE}."
    name = page_line(basename(project), 60)
    said += f" Project: {name}." if name else ""
    said += f" Harness: {page_line(harness, 40)}." if harness else ""
    said += f" Status: {status}." if status is not None else ""
    return f"*{said.replace('*', '')}*"


def chosen_by_model(line: str) -> str:
    """Returns the line below the title for a digest whose items a model chose, made from that of the rules' one."""
    return f"*{_CHOSEN}.{line.partition('.')[2]}"


def status_of(summary: str) -> Status | None:
    """Returns how the session of a digest ended, made by rules or with a model; None for any other text."""
    if (chosen := _CHOSEN_OPENING.fullmatch(_below_title(summary))) is not None:
        return cast(Status, chosen[1])
    found = _OPENING.fullmatch(_below_title(summary))
    return cast(Status, found[1]) if found is not None else None


def end_of(summary: str) -> int:
    """Returns where the line of a digest ends; 0 for any other text."""
    line = _below_title(summary)
    return summary.index(line) + len(line) if _OPENING.fullmatch(line) or _CHOSEN_OPENING.fullmatch(line) else 0


def says_nothing(summary: str) -> bool:
    """Returns whether rules made this summary of a session that was only a greeting."""
    title = summary[:400].partition("\n")[0]
    return "\n## " not in summary and status_of(summary) == "question-only" and is_greeting(title)


def is_headless(summary: str) -> bool:
    """Returns whether rules made this summary of a session in which no person spoke."""
    return _below_title(summary).startswith(f"*{_MADE}. {_HEADLESS}")


def _below_title(summary: str) -> str:
    """Returns the first line with words after the first one."""
    lines = summary[:2_000].split("\n", 4)
    return next((line for line in lines[1:4] if line), "") if lines[0].startswith("# ") else ""
