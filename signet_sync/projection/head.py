"""The head of MEMORY.md: what summaries and compactions say under headings such as *Decisions* or *Blockers*."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from signet_sync.contracts.sentences import basename, flatten, flatten_cell
from signet_sync.contracts.tokencount import estimate_tokens
from signet_sync.contracts.wikilinks import wikilink

SECTIONS: tuple[tuple[str, str], ...] = (
    ("projects", "## Active Projects & Threads"),
    ("decisions", "## Decisions & Constraints"),
    ("people", "## People & Relationships"),
    ("blockers", "## Open Blockers & Technical Notes"),
)

_HEADINGS: dict[str, str] = {
    "decision": "decisions", "decisions": "decisions", "key decisions": "decisions", "decided": "decisions",
    "constraint": "decisions", "constraints": "decisions", "decisions & constraints": "decisions",
    "decisions and constraints": "decisions",
    "people": "people", "relationships": "people", "people & relationships": "people",
    "people and relationships": "people",
    "blocker": "blockers", "blockers": "blockers", "open blockers": "blockers", "risks": "blockers",
    "open questions": "blockers", "technical notes": "blockers", "known issues": "blockers",
    "next": "projects", "next step": "projects", "next steps": "projects", "todo": "projects", "to do": "projects",
    "action items": "projects", "follow-ups": "projects",
}  # fmt: skip
_HEADING_OR_FENCE = re.compile(r"^(?:#{1,6}[ \t].*|[ \t]*(?:```|~~~).*)$", re.MULTILINE)
_ITEM = re.compile(r"^[ \t]*(?:[-*+]|\d{1,3}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?(.*)$")
_SAYS_SOMETHING = re.compile(r"\w\W*\w\W*\w")
_DONE = re.compile(r"^[ \t]*[-*+][ \t]+\[[xX]\]")
# What would start a heading, a quote, a fence, a list or a task inside the list item that shows the text.
_BLOCK = re.compile(r"^(?:(?:#{1,6}|[-*+]|\d{1,9}[.)]|\[[ xX]\])(?:[ \t]+|$)|>[ \t]*|~{3,}[ \t]*)+")

ITEMS_PER_HEADING = 5
ITEMS_PER_ARTIFACT = 60
SECTION_LINES = 120
ITEM_LENGTH = 280


class Highlight(NamedTuple):
    """One item that an artifact says under a known heading, flattened, with the section of the head it belongs to."""

    section: str
    text: str


def highlights(body: str) -> tuple[Highlight, ...]:
    """The items under known headings of a (sanitized) body, in order; text inside code fences does not count."""
    found: list[Highlight] = []
    section: str | None = None
    begin = 0
    for start, end in (*_headings(body), (len(body), len(body))):
        if section is not None:
            found.extend(Highlight(section, item) for item in _items(body[begin:start]))
        if len(found) >= ITEMS_PER_ARTIFACT:
            break
        section, begin = _section(body[start:end]), end
    return tuple(dict.fromkeys(found[:ITEMS_PER_ARTIFACT]))


def _headings(body: str) -> Iterator[tuple[int, int]]:
    """Where each heading outside code fences begins and ends."""
    fenced = False
    for mark in _HEADING_OR_FENCE.finditer(body):
        if not mark[0].startswith("#"):
            fenced = not fenced
        elif not fenced:
            yield mark.span()


def _section(line: str) -> str | None:
    """The section of the head that a heading line opens, or None where it is no known heading."""
    title = line.lstrip("#")
    if not 1 <= len(line) - len(title) <= 6 or not title.startswith((" ", "\t")) or len(title) > 60:
        return None
    return _HEADINGS.get(title.strip(" \t#").rstrip(": \t").lower())


def _items(text: str) -> list[str]:
    """List items and paragraphs of a section, flattened; the first few that say something and are not done."""
    items: list[str] = []
    paragraph: list[str] = []
    fenced = done = False
    for line in [*text.split("\n", SECTION_LINES)[:SECTION_LINES], ""]:
        stripped = line.strip()
        fence = stripped.startswith(("```", "~~~"))
        item = None if fenced or fence else _ITEM.match(line)
        if stripped and not fence and not fenced and item is None and not stripped.startswith(("|", ">")):
            if not done:
                paragraph.append(stripped)
            continue
        if paragraph:
            said = _BLOCK.sub("", flatten(" ".join(paragraph), ITEM_LENGTH), 1)
            if _SAYS_SOMETHING.search(said):
                items.append(said)
            paragraph = []
        if len(items) == ITEMS_PER_HEADING:
            break
        done = item is not None and _DONE.match(line) is not None
        if fence:
            fenced = not fenced
        elif item is not None and not done:
            paragraph.append(item[1].strip())
    return items


@dataclass(frozen=True, slots=True)
class HeadItem:
    """A highlight with where it came from."""

    section: str
    text: str
    path: str
    kind: str
    project: str | None
    day: str


@dataclass(frozen=True, slots=True)
class ProjectView:
    """A project with sessions in the window: how many, when last, and what the newest said."""

    project: str
    sessions: int
    last_day: str
    sentence: str
    path: str
    kind: str


def project_line(view: ProjectView) -> str:
    """`- **lantern** · 4 sessions, last 2026-03-28: … [[…|summary]]`."""
    name = flatten_cell(basename(view.project) or view.project, 60)
    count = "1 session" if view.sessions == 1 else f"{view.sessions} sessions"
    return f"- **{name}** · {count}, last {view.last_day}: {view.sentence} {wikilink(view.path, view.kind)}"


def item_line(item: HeadItem) -> str:
    """`- … (lantern, 2026-03-28) [[…|summary]]`."""
    name = flatten_cell(basename(item.project), 60) if item.project else ""
    prefix = "next: " if item.section == "projects" else ""
    return f"- {prefix}{item.text} ({name + ', ' if name else ''}{item.day}) {wikilink(item.path, item.kind)}"


def fill(projects: Sequence[ProjectView], items: Iterable[HeadItem], budget: int) -> tuple[dict[str, list[str]], int]:
    """Lines of each head section within a budget of tokens, and the tokens used.

    Sections take turns, so that none starves; inside a section newest first; the same text is said once.
    """
    queues: dict[str, deque[ProjectView | HeadItem]] = {key: deque() for key, _ in SECTIONS}
    queues["projects"].extend(projects)
    said: set[tuple[str, str]] = set()
    for item in items:
        saying = (item.section, item.text.casefold())
        if saying not in said:
            said.add(saying)
            queues[item.section].append(item)
    lines: dict[str, list[str]] = {key: [] for key, _ in SECTIONS}
    used = 0
    headings = dict(SECTIONS)
    while any(queues.values()):
        for key, queue in queues.items():
            if not queue:
                continue
            entry = queue.popleft()
            line = item_line(entry) if isinstance(entry, HeadItem) else project_line(entry)
            cost = estimate_tokens(line) + 1
            if not lines[key]:
                cost += estimate_tokens(headings[key]) + 3
            if used + cost > budget:
                queue.clear()
                continue
            lines[key].append(line)
            used += cost
    return lines, used
