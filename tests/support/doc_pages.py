"""The pages that people read: their fenced blocks, the commands that they name, the places that they link to.

A block in `sh` is run by `test_docs_run.py`, line by line in the order of the page; what is only shown is `text` or
`console`. A comment `exits with N` says that the line's last command ends so.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *(ROOT / folder / "README.md" for folder in ("systemd", "launchd")),
]

_FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"^<!--.*?-->$", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"`([^`]+)`")
_LINK = re.compile(r"\[[^\]]*\]\((?!\w+:)([^)#\s]*)(?:#([^)\s]+))?\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
# What may stand before a program's name without being one's argument.
_BEFORE = {"sudo", "time", "exec", "if", "while", "!", "nohup"}


@dataclass(frozen=True)
class Block:
    """A fenced block: the line on which its text begins, its language, and what is shown right below it."""

    line: int
    language: str
    text: str
    shown: str | None = None


def name_of(page: Path) -> str:
    """A page's path from the top of the checkout."""
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path) -> list[Block]:
    """All fenced blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    found = list(_FENCE.finditer(text))
    made = []
    for fence, after in zip_longest(found, found[1:]):
        follows = after is not None and after[1] == "text" and not text[fence.end() : after.start()].strip()
        line = text.count("\n", 0, fence.start(2)) + 1
        made.append(Block(line, fence[1], fence[2], after[2] if after is not None and follows else None))
    return made


def prose(page: Path) -> str:
    """A page without its fenced blocks and hidden comments."""
    return _COMMENT.sub("", _FENCE.sub("", page.read_text(encoding="utf-8")))


def spans(page: Path) -> Iterator[str]:
    """What stands as code in the running text, each on one line."""
    for span in _SPAN.findall(prose(page)):
        yield " ".join(span.replace("\\|", "|").split())


def calls(script: str) -> Iterator[list[str]]:
    """The arguments of every call of signet-sync in a piece of shell."""
    for line in script.replace("\\\n", " ").splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        words: list[str] = []
        for token in [*lexer, ";"]:
            if token and not token.strip("();<>|&"):
                yield from _call(words)
                words = []
            else:
                words.append(token)


def _call(words: list[str]) -> Iterator[list[str]]:
    for place, word in enumerate(words):
        if word.rpartition("/")[2] == "signet-sync":
            yield words[place + 1 :]
            return
        if word not in _BEFORE and not re.match(r"\w+=", word):
            return


def links(page: Path) -> Iterator[tuple[str, str]]:
    """Path and anchor of every link that leads to another place of the project."""
    for path, anchor in _LINK.findall(re.sub(_SPAN, "", prose(page))):
        if path or anchor:
            yield path, anchor


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    text = _FENCE.sub("", page.read_text(encoding="utf-8"))
    kept = (re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in _HEADING.findall(text))
    return set(kept)


def generated(page: Path, **parts: str) -> None:
    """Holds what stands between two hidden comments, by their name, to what it is made of; `WRITE_DOCS=1` writes it."""
    text = whole = page.read_text(encoding="utf-8")
    for name, part in parts.items():
        begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
        whole = whole.partition(begin)[0] + begin + part + end + whole.partition(end)[2]
    if os.environ.get("WRITE_DOCS"):
        page.write_text(whole, encoding="utf-8")
    assert text == whole, "WRITE_DOCS=1 pytest brings it up to date"
