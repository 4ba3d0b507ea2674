"""Measures how much of a MEMORY.md is words: the share of its characters, outside the session log, that say something.

Counted are characters that are no blanks, without the frame that every page has: title, headings of sections, hint and
markers. No words of content are: links and handles, whole; what a pair of parentheses says of a line (days, counts,
status, what it is about); days and counts in front of a line of the temporal index, and how many lines are left out;
marks of Markdown. Names of projects count, as do dates and numbers within a sentence.

    python -m benchmarks.word_share ~/.agents/MEMORY.md
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from signet_sync.formats.artifact import LEDGER_HEADING

_LEDGER = re.compile(rf"^## {re.escape(LEDGER_HEADING)}\n.*?(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_FRAME = re.compile(r"^(?:<!--.*-->|##? .*|Each \^handle .*)$", re.MULTILINE)
_DAY = r"(?:[A-Z][a-z]{2}\ \d{1,4}|\d{4}-\d\d(?:-\d\d)?)"
_NO_WORDS = re.compile(
    rf"""
    ^\#+ | \[\[[^\]]*\]\] | \^[a-z]-[a-z2-7]+
    | \((?:[^()]*,\ )?(?:remembered\ |quiet\ since\ )?{_DAY}(?:,[^()]*)?\)
    | _\(score=[^()]*\)_ | (?<=\*\*)\ \([^()]*\)(?=:)
    | ^-\ {_DAY}(?:\ to\ {_DAY})?\ ·(?:\ \d+\ sessions?\ ·)? | ,\ \d+\ (?:session|week)s?(?=:)
    | ^…\ and\ .*$ | ^-\  | \*\*
    """,
    re.MULTILINE | re.VERBOSE,
)


def word_share(page: str) -> float:
    """Returns the share, between 0 and 1; of a page that has nothing outside its session log 1."""
    said = _FRAME.sub("", _LEDGER.sub("", page))
    return _length(_NO_WORDS.sub("", said)) / _length(said) if _length(said) else 1.0


def _length(text: str) -> int:
    return len("".join(text.split()))


if __name__ == "__main__":
    for name in sys.argv[1:]:
        print(f"{word_share(Path(name).read_text(encoding='utf-8')):.0%}  {name}")
