"""The digest of a transcript for a session that comes without a summary: made by rules, no model, nothing invented."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from signet_sync.contracts.sentences import basename, flatten
from signet_sync.digest.findings import Found, find, open_ends, questions
from signet_sync.digest.lines import read

LIMIT = 6_000
TITLE_LENGTH, FIRST_REQUEST, REQUEST, SENTENCE, LINE = 100, 300, 120, 200, 160
LITTLE = 80
# Characters that the lines of a section may take; with headings and counts they stay below `LIMIT`.
REQUESTS, DECISIONS, FILES, COMMANDS, ERRORS, LAST_STATE, NEXT_STEPS, OPEN_QUESTIONS = (
    1450, 850, 550, 550, 550, 650, 350, 250,
)  # fmt: skip

# What would start a heading, a quote, a fence, a list or a task inside a list item or quote.
_BLOCK = re.compile(r"^(?:(?:#{1,6}|[-*+]|\d{1,9}[.)]|\[[ xX]\])(?:[ \t]+|$)|>[ \t]*|[~`]{3,}[ \t]*|\\(?=#))+")
_LIST_ITEM = re.compile(r"[ \t]*(?:[-*+]|\d{1,3}[.)])[ \t]+")
_LOOKS = re.compile(
    r"(?:cd \S+ *(?:&&|;) *)?(?:ls|cat|head|tail|grep|rg|find|pwd|cd|sed -n|wc|echo|which|tree|file|stat|du|type"
    r"|git (?:status|log|diff|show|branch))\b(?!.*[>;&])"
)


def digest(transcript: str, *, project: str | None, harness: str | None) -> str:
    """`told` of a transcript's text."""
    return told(survey(transcript), project=project, harness=harness)


def survey(transcript: str) -> Found:
    """What the (sanitized) text of a transcript says about its session. Total, linear, deterministic."""
    return find(read(transcript))


def told(found: Found, *, project: str | None, harness: str | None) -> str:
    """Markdown about a session; empty where its transcript holds no word. At most `LIMIT` characters.

    Everything but headings, counts and the line that says what this is stands in the text; what is shortened ends in
    `…`.
    """
    title = _title(found)
    if not title:
        return ""
    sections = [f"# {title}", _honest(project, harness)]
    for name, lines in _sections(found, project):
        if lines:
            sections.append("\n".join([f"## {name}", "", *lines]))
    return "\n\n".join(sections) + "\n"


def _sections(found: Found, project: str | None) -> Iterator[tuple[str, list[str]]]:
    """The sections in order, each with its lines; those that mean what MEMORY.md's head knows are called as it does."""
    yield "Requests", _first(_requests(found), REQUESTS)
    yield "Decisions", _last(_items(_in_order(found.decided)), DECISIONS)
    yield "Preferences", _last(_items(_in_order(found.leans)), DECISIONS)
    yield "Files", _first(_files(found, project), FILES)
    yield "Commands", _last(_commands(found, project), COMMANDS)
    yield "Errors", _last(_errors(found), ERRORS)
    yield "Last state", _last_state(found)
    yield "Next steps", _last(_items(open_ends(found.recent)), NEXT_STEPS)
    yield "Open questions", _last(_items(_open_questions(found)), OPEN_QUESTIONS)


def _title(found: Found) -> str:
    """The first request that says more than two words, else the first, else how the text begins."""
    requests = [line for text in (*found.first, *found.last) if (line := _line(text, TITLE_LENGTH))]
    telling = [line for line in requests if len(line.split()) > 2 or not line.isascii()]
    beginnings = (_line(text, TITLE_LENGTH) for text in found.openings)
    return next(iter(telling or requests), "") or next(filter(None, beginnings), "")


def _honest(project: str | None, harness: str | None) -> str:
    said = "A digest made by rules from the transcript, without a model; its lines are quoted."
    name = flatten(basename(project), 60)
    said += f" Project: {name}." if name else ""
    said += f" Harness: {flatten(harness, 40)}." if harness else ""
    return f"*{said.replace('*', '')}*"


def _requests(found: Found) -> list[str]:
    """The first ones and the last ones, and how many stand between them."""
    first = [_line(text, REQUEST if place else FIRST_REQUEST) for place, text in enumerate(found.first)]
    last = [_line(text, REQUEST) for text in found.last]
    left_out = found.requests - len(first) - len(last)
    gap = [f"… {left_out:,} more between these …"] if left_out else []
    return [f"- {said}" for said in (*first, *gap, *last) if said]


def _in_order(sentences: Iterable[tuple[int, str]]) -> list[str]:
    return list(dict.fromkeys(text for _, text in sorted(sentences)))


def _files(found: Found, project: str | None) -> list[str]:
    """The files that were edited, then those that were read or spoken of, the most mentioned first."""
    edited = _relative(found.edited, project)
    named = _relative(found.named, project)
    ends = {path.rpartition("/")[2] for path in (*edited, *named) if "/" in path}
    others = [path for path in named if path not in edited and path not in ends]
    lines = [f"- {_code(path)} (edited{_often(times)})" for path, times in edited.items()]
    return lines + [f"- {_code(path)}" for path in sorted(others, key=lambda path: -named[path])]


def _relative(paths: Mapping[str, int], project: str | None) -> dict[str, int]:
    root = (project or "").rstrip("/") + "/"
    counts: dict[str, int] = {}
    for path, times in paths.items():
        below = path.removeprefix(root) if len(root) > 1 else path
        counts[below] = counts.get(below, 0) + times
    return counts


def _commands(found: Found, project: str | None) -> list[str]:
    """The commands that did something; those that only look where no others are."""
    here = f"cd {(project or '/').rstrip('/')} && "
    commands = {command.removeprefix(here): failed for command, failed in found.commands.items()}
    acting = [command for command in commands if not _LOOKS.match(command)]
    return [f"- {_code(command)}{' · failed' if commands[command] else ''}" for command in acting or commands]


def _errors(found: Found) -> list[str]:
    return [
        f"- {said}{f' (met{_often(times)})' if times > 1 else ''}"
        for error, times in found.errors.items()
        if (said := _line(error, LINE))
    ]


def _last_state(found: Found) -> list[str]:
    """The assistant's last words as a quote: their beginning and their end."""
    stretches = list(found.endings)
    # "Now the tests:" alone says little; what was said before it belongs to it.
    while len(stretches) > 1 and sum(map(len, stretches[-1])) < LITTLE:
        stretches[-2:] = [stretches[-2] + stretches[-1]]
    words = dict.fromkeys(map(_quoted, stretches[-1] if stretches else ()))
    lines = [f"> {said}" for said in words if said]
    if not lines:
        return []
    if _size(lines) <= LAST_STATE:
        return lines
    head = _fitting(lines, LAST_STATE * 3 // 5)
    tail = _fitting(lines[: len(head) - 1 if head else None : -1], LAST_STATE - _size(head) - 4)[::-1]
    return [*head, "> …", *tail] if head or tail else [f"{lines[-1][: LAST_STATE - 1].rstrip()}…"]


def _quoted(text: str) -> str:
    item = _LIST_ITEM.match(text)
    said = _line(text, 400)
    return f"- {said}" if item and said else said


def _open_questions(found: Found) -> list[str]:
    """What the user asked last and nobody answered, or what the assistant asked last."""
    if found.unanswered:
        return [found.unanswered]
    return questions((found.endings[-1] if found.endings else [])[-4:])


def _items(texts: Iterable[str]) -> list[str]:
    return [f"- {said}" for text in texts if (said := _line(text, SENTENCE))]


def _often(times: int) -> str:
    return f" {times:,} times" if times > 1 else ""


def _code(text: str) -> str:
    return f"`{flatten(text[: 4 * LINE], LINE) or '?'}`"


def _line(text: str, limit: int) -> str:
    """A text as one line in which nothing starts a block, a link or its target; empty where it holds no word."""
    said = _BLOCK.sub("", flatten(text[: 8 * limit], limit).replace("]:", "] :"), 1)
    return said if any(c.isalnum() for c in said) else ""


def _first(lines: Sequence[str], share: int) -> list[str]:
    """The first lines that fit into a share of characters, and how many do not."""
    kept = _fitting(lines, share)
    return [*kept, f"- … {len(lines) - len(kept):,} more …"] if len(kept) < len(lines) else kept


def _last(lines: Sequence[str], share: int) -> list[str]:
    """The last lines that fit into a share of characters, and how many went before."""
    kept = _fitting(lines[::-1], share)[::-1]
    return [f"- … {len(lines) - len(kept):,} before these …", *kept] if len(kept) < len(lines) else kept


def _fitting(lines: Iterable[str], share: int) -> list[str]:
    kept: list[str] = []
    for line in lines:
        share -= len(line) + 1
        if share < 0:
            break
        kept.append(line)
    return kept


def _size(lines: Sequence[str]) -> int:
    return sum(map(len, lines)) + len(lines)
