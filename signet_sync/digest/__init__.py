"""The digest of a transcript for a session that comes without a summary: made by rules, no model, nothing invented."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from signet_sync.contracts.sentences import basename, flatten
from signet_sync.digest.findings import LAST, Found, find, open_ends, questions
from signet_sync.digest.lines import read

LIMIT = 6_000
TITLE_LENGTH, FIRST_REQUEST, REQUEST, SENTENCE, LINE = 100, 300, 120, 200, 160
FILES, COMMANDS, ERRORS, ENDS, ASKED = 16, 10, 6, 5, 3
# Characters that the items of a section may take; with headings and counts they stay below `LIMIT`.
_SHARES = {
    "Requests": 1500, "Decisions": 850, "Files": 600, "Commands": 600, "Errors": 550, "Last state": 650,
    "Next steps": 350, "Open questions": 300,
}  # fmt: skip

# What would start a heading, a quote, a fence, a list or a task inside a list item or quote.
_BLOCK = re.compile(r"(?:(?:#{1,6}|[-*+]|\d{1,9}[.)]|\[[ xX]\])(?:[ \t]+|$)|>[ \t]*|[~`]{3,}[ \t]*|\\(?=#))+")
_LIST_ITEM = re.compile(r"[ \t]*(?:[-*+]|\d{1,3}[.)])[ \t]+")
_LOOKS = re.compile(
    r"(?:cd \S+ *(?:&&|;) *)?(?:ls|cat|head|tail|grep|rg|find|pwd|cd|sed -n|wc|echo|which|tree|file|stat|du|type"
    r"|git (?:status|log|diff|show|branch))\b(?!.*[>;&])"
)


def digest(transcript: str, *, project: str | None, harness: str | None) -> str:
    """Markdown about a session from the (sanitized) text of its transcript; empty where that holds no word.

    Total, linear, deterministic, at most `LIMIT` characters. Everything but headings, counts and the line that says
    what this is stands in the text; what is shortened ends in `…`.
    """
    found = find(read(transcript))
    title = _title(found)
    if not title:
        return ""
    sections = [f"# {title}", _honest(project, harness)]
    for name, lines in _sections(found, project):
        kept = _within(lines, _SHARES[name])
        if kept:
            sections.append("\n".join([f"## {name}", "", *kept]))
    return "\n\n".join(sections) + "\n"


def _sections(found: Found, project: str | None) -> Iterator[tuple[str, Sequence[str]]]:
    """The sections in order, each with its lines; those that mean what MEMORY.md's head knows are called as it does."""
    yield "Requests", _requests(found)
    yield "Decisions", _items(_decisions(found), SENTENCE)
    yield "Files", _files(found, project)
    yield "Commands", _commands(found)
    yield "Errors", _errors(found)
    yield "Last state", _last_state(found)
    yield "Next steps", _items(open_ends(found.recent)[-ENDS:], SENTENCE)
    yield "Open questions", _items(_open_questions(found), SENTENCE)


def _title(found: Found) -> str:
    """The first request that says more than two words, else the first, else the first line of the text."""
    requests = [line for text in (*found.first, *found.last) if (line := _line(text, TITLE_LENGTH))]
    telling = [line for line in requests if len(line.split()) > 2 or not line.isascii()]
    return next(iter([*telling, *requests, _line(found.opening, TITLE_LENGTH)]), "")


def _honest(project: str | None, harness: str | None) -> str:
    name = flatten(basename(project), 60)
    whose = f" {flatten(harness, 40)}" if harness else ""
    where = f" in '{name}'" if name else ""
    said = (
        f"Digest of a{whose} session{where}, made by rules from its transcript without a model; the lines are quoted."
    )
    return f"*{said.replace('*', '')}*"


def _requests(found: Found) -> list[str]:
    first, last = found.first, list(found.last)
    lines = [f"- {_line(text, REQUEST if place else FIRST_REQUEST)}" for place, text in enumerate(first)]
    left_out = found.requests - len(first) - len(last)
    if left_out:
        lines.append(f"- … {left_out:,} more between these …")
    return [*lines, *(f"- {_line(text, REQUEST)}" for text in last[-LAST:])]


def _decisions(found: Found) -> list[str]:
    """Sentences that say so; where there are few, those that lean to it as well; in the order of the text."""
    chosen = list(found.decided)
    if len(chosen) < 4:
        chosen += list(found.leans)[len(chosen) - 4 :]
    return list(dict.fromkeys(text for _, text in sorted(chosen)))


def _files(found: Found, project: str | None) -> list[str]:
    edited = _relative(found.edited, project)
    named = {path: times for path, times in _relative(found.named, project).items() if path not in edited}
    lines = [f"- {_code(path)} (edited{_often(times)})" for path, times in edited.items()]
    lines += [f"- {_code(path)}" for path in sorted(named, key=lambda path: -named[path])]
    return _counted(lines, FILES, "more files")


def _relative(paths: Mapping[str, int], project: str | None) -> dict[str, int]:
    root = (project or "").rstrip("/") + "/"
    counts: dict[str, int] = {}
    for path, times in paths.items():
        below = path.removeprefix(root) if len(root) > 1 else path
        counts[below] = counts.get(below, 0) + times
    return counts


def _commands(found: Found) -> list[str]:
    """The last commands that did something; those that only look where no others are."""
    acting = [command for command in found.commands if not _LOOKS.match(command)]
    chosen = acting or list(found.commands)
    left_out = len(found.commands) - min(len(chosen), COMMANDS)
    lines = [f"- {_code(command)}{' · failed' if found.commands[command] else ''}" for command in chosen[-COMMANDS:]]
    return [*([f"- … {left_out:,} others before or between these …"] if left_out and lines else []), *lines]


def _errors(found: Found) -> list[str]:
    errors = list(found.errors.items())[-ERRORS:]
    return [
        f"- {said}{f' (met{_often(times)})' if times > 1 else ''}"
        for error, times in errors
        if (said := _line(error, LINE))
    ]


def _last_state(found: Found) -> list[str]:
    """The assistant's last words as a quote: their beginning and their end."""
    lines = [f"> {said}" for text in found.ending if (said := _quoted(text))]
    share = _SHARES["Last state"]
    if sum(map(len, lines)) + len(lines) <= share:
        return lines
    head = _within(lines[:-1], share * 3 // 5)
    tail = _within(lines[: len(head) - 1 : -1], share - sum(map(len, head)) - len(head) - 4)[::-1] if head else []
    gap = ["> …"] if len(head) + len(tail) < len(lines) else []
    return [*head, *gap, *tail] or [f"{lines[0][: share - 1].rstrip()}…"]


def _quoted(text: str) -> str:
    item = _LIST_ITEM.match(text)
    said = _line(text, 400)
    return f"- {said}" if item and said else said


def _open_questions(found: Found) -> list[str]:
    """What the user asked last and nobody answered, or what the assistant asked last."""
    if found.unanswered:
        return [found.unanswered]
    return questions(found.ending[-4:])[-ASKED:]


def _items(texts: Iterable[str], limit: int) -> list[str]:
    return [f"- {said}" for text in texts if (said := _line(text, limit))]


def _counted(lines: list[str], limit: int, what: str) -> list[str]:
    left_out = len(lines) - limit
    return lines if left_out <= 0 else [*lines[:limit], f"- … {left_out:,} {what}"]


def _often(times: int) -> str:
    return f" {times:,} times" if times > 1 else ""


def _code(text: str) -> str:
    return f"`{flatten(text[: 4 * LINE], LINE) or '?'}`"


def _line(text: str, limit: int) -> str:
    """A text as one line in which nothing starts a block, a link or its target; empty where it holds no word."""
    said = _BLOCK.sub("", flatten(text[: 8 * limit], limit), 1) if text else ""
    said = said.replace("]:", "] :")
    return said if any(c.isalnum() for c in said) else ""


def _within(lines: Sequence[str], share: int) -> list[str]:
    """The first lines that fit into a share of characters."""
    kept: list[str] = []
    for line in lines:
        share -= len(line) + 1
        if share < 0:
            break
        kept.append(line)
    return kept
