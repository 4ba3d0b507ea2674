"""The Markdown that a conversation becomes: made to be read in a vault, deterministic, with turns nobody can forge."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from signet_sync.contracts.sanitizer import sanitize_transcript_v1
from signet_sync.contracts.timestamps import iso
from signet_sync.harness.records import Entry

# How much of a tool's result is shown; of a longer one the beginning and the end.
HEAD_LINES, TAIL_LINES = 10, 5
HEAD_CHARACTERS, TAIL_CHARACTERS = 800, 400

_FAILED = " · failed"
_SPEAKERS = {"user": "User", "assistant": "Assistant", "compaction": "Compaction"}
_FORGED = re.compile(rf"^([ ]{{0,3}})(?=#{{1,6}}[ \t]+(?:{'|'.join(_SPEAKERS.values())})[ \t]*(?:·|#|$))", re.MULTILINE)
# What the sanitizer takes away could hide a heading from us; LF and tab stay.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})([^\n]*)$", re.MULTILINE)
# Words that Markdown and Obsidian leave alone: no emphasis, tag, link, comment or HTML can come of them.
_PLAIN = re.compile(r"[\w ./:=@,+()-]*", re.ASCII)
_SPECIAL = re.compile(r"([\\*_`\[\]<>#~|%$=])")
_TICKS = re.compile("`+")
_FIRST_HEADING = re.compile(rf"^## (?:{'|'.join(_SPEAKERS.values())}) · (\S+)$", re.MULTILINE)


def render(entries: Sequence[Entry]) -> str:
    """The entries as Markdown, unsanitized but for results that had to be cut.

    A heading `## User · <time>` opens each turn of the user and each stretch of the assistant's; words stay as they
    are. Tool calls and sub-agents are items of a list, with what they gave back below them where it is among these
    entries, else below an item of its own. A line within somebody's words that looks like one of our headings gets a
    backslash, a code fence that they left open is closed.
    """
    answers, answered = _answers(entries)
    blocks: list[str] = []
    speaker, in_list = "", False
    for place, entry in enumerate(entries):
        if place in answered:
            continue
        heading = _heading(entry, speaker)
        speaker = _speaker(entry) or speaker
        if heading:
            blocks.append(heading)
        item = entry.kind in ("tool", "subagent", "result")
        text = _item(entry, answers.get(place, ())) if item else _block(entry)
        if item and in_list and not heading:
            blocks[-1] += "\n" + text
        elif text:
            blocks.append(text)
        in_list = item
    return "\n\n".join(blocks)


def since(entries: Sequence[Entry], boundary: int | None, last_body: str) -> tuple[Entry, ...]:
    """The entries that a segment which ends at `boundary` and holds `last_body` does not hold yet.

    Later entries are new. Of those in the boundary's own millisecond (what was written stands in milliseconds) the
    ones that the body shows, sanitized as it is, are held: as often as it shows them beyond what came before.
    """
    if boundary is None:
        return tuple(entries)
    limit = boundary // 1000
    at_limit = [entry for entry in entries if entry.at // 1000 == limit]
    opening = _FIRST_HEADING.search(last_body)
    opened = opening[1] if opening else ""
    held = Counter(_shown(at_limit, last_body))
    held.subtract(_look_key(entry) for entry in entries if entry.at // 1000 < limit and iso(entry.at) >= opened)
    new = []
    for entry in entries:
        if entry.at // 1000 == limit:
            key = _look_key(entry)
            held[key] -= 1
            if held[key] >= 0:
                continue
        if entry.at // 1000 >= limit:
            new.append(entry)
    return tuple(new)


# ── turns ──


def _speaker(entry: Entry) -> str:
    if entry.kind == "event":
        return ""
    return _SPEAKERS.get(entry.kind, "Assistant")


def _heading(entry: Entry, speaker: str) -> str:
    """The heading that goes before an entry, if any: each turn of the user has one, and each change of the speaker."""
    own = _speaker(entry)
    if not own or (own == speaker and entry.kind not in ("user", "compaction")):
        return ""
    # Stars, not dashes: dashes would make a heading of the line above, or frontmatter of what begins with them.
    divider = "***\n\n" if entry.kind == "compaction" else ""
    return f"{divider}## {own} · {iso(entry.at)}"


def _block(entry: Entry) -> str:
    if entry.kind == "event":
        return f"*{_escaped(entry.text)}*" if entry.text.strip() else ""
    if entry.kind == "compaction":
        how = f" ({_escaped(entry.name)})" if entry.name else ""
        end = "the summary stands in its own artifact" if entry.text.strip() else "the harness handed over no summary"
        return f"*The conversation up to here was compacted{how}; {end}.*"
    return _words(entry.text)


def _words(text: str) -> str:
    if _CONTROLS.search(text):
        text = sanitize_transcript_v1(text)
    text = _FORGED.sub(r"\1\\", text.strip("\n"))
    fence = _open_fence(text)
    return f"{text}\n{fence}" if fence else text


def _open_fence(text: str) -> str:
    """The fence that would close the code block which the text leaves open; empty where it leaves none."""
    opened = ""
    for match in _FENCE.finditer(text):
        mark, rest = match.groups()
        if not opened:
            # Backticks after a fence of backticks make it code within a line.
            opened = "" if mark[0] == "`" and "`" in rest else mark
        elif mark[0] == opened[0] and len(mark) >= len(opened) and not rest.strip():
            opened = ""
    return opened


# ── tools ──


def _answers(entries: Sequence[Entry]) -> tuple[dict[int, list[Entry]], set[int]]:
    """The results of each call by the call's place, and the places of these results."""
    calls: dict[str, int] = {}
    answers: dict[int, list[Entry]] = {}
    answered = set()
    for place, entry in enumerate(entries):
        if entry.kind in ("tool", "subagent") and entry.call:
            calls[entry.call] = place
        elif entry.kind == "result" and entry.call in calls:
            answers.setdefault(calls[entry.call], []).append(entry)
            answered.add(place)
    return answers, answered


def _item(entry: Entry, results: Iterable[Entry]) -> str:
    """A list item: the call and what came of it, or a result whose call stands in an earlier segment."""
    if entry.kind == "result":
        results = [entry]
    line = _call_line(entry)
    if entry.failed or any(result.failed for result in results):
        line += _FAILED
    return "\n".join([line, *filter(None, map(_excerpt, results))])


def _call_line(entry: Entry) -> str:
    name = _code(entry.name or "tool")
    if entry.kind == "result":
        return f"- {name} gave back"
    text = " ".join(entry.text.split())
    if entry.kind == "subagent":
        return f"- sub-agent {name} {_escaped(text)}".rstrip()
    return f"- {name} {text if _PLAIN.fullmatch(text) else _code(text)}".rstrip()


def _excerpt(result: Entry) -> str:
    """The result in a fence, indented so that it belongs to its item; empty where there is nothing to show."""
    lines = _shown_lines(result)
    if not lines:
        return ""
    longest = max((len(run) for line in lines for run in _TICKS.findall(line)), default=0)
    fence = "`" * max(3, longest + 1)
    return "\n".join(f"  {line}" if line.strip() else "" for line in (fence, *lines, fence))


def _shown_lines(result: Entry) -> list[str]:
    text = result.text
    if _CONTROLS.search(text):
        text = sanitize_transcript_v1(text)
    text = text.strip("\n")
    if not text.strip():
        return []
    lines = text.split("\n")
    whole = len(lines) <= HEAD_LINES + TAIL_LINES and len(text) <= HEAD_CHARACTERS + TAIL_CHARACTERS
    if whole and not result.omitted:
        return lines
    # Half a secret is no longer known for one: sanitized first, then cut.
    text = sanitize_transcript_v1(text).strip("\n")
    lines = text.split("\n")
    head = "\n".join(lines[:HEAD_LINES])[:HEAD_CHARACTERS]
    rest = text[len(head) :]
    tail = "\n".join(rest.split("\n")[-TAIL_LINES:])[-TAIL_CHARACTERS:]
    left_out = result.omitted + len(rest) - len(tail)
    gap = [f"… {left_out:,} characters left out"] if left_out > 0 else []
    return [*head.split("\n"), *gap, *tail.strip("\n").split("\n")]


def _code(text: str) -> str:
    """The text as code within a line."""
    text = " ".join(text.split())
    longest = max(map(len, _TICKS.findall(text)), default=0)
    ticks = "`" * (longest + 1)
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{ticks}{pad}{text}{pad}{ticks}"


def _escaped(text: str) -> str:
    """The text on one line, with nothing left in it that Markdown or Obsidian would act upon."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


# ── what a body holds ──


def _look_key(entry: Entry) -> tuple[object, ...]:
    """Equal for entries that look the same on a page: of those with a heading of their own the time counts too."""
    headed = entry.kind in ("user", "compaction")
    return (entry.kind, entry.text, entry.name, entry.failed, entry.omitted, entry.at // 1000 if headed else 0)


def _look(entry: Entry) -> str:
    """How a body shows an entry, whatever stands around it; empty where there is nothing to see of it."""
    if entry.kind == "result":
        look = _excerpt(entry)
    elif entry.kind in ("tool", "subagent"):
        look = _call_line(entry)
    elif entry.kind in ("user", "compaction"):
        look = f"{_heading(entry, '')}\n\n{_block(entry)}"
    else:
        look = _block(entry)
    return sanitize_transcript_v1(look)


def _shown(entries: Iterable[Entry], body: str) -> dict[tuple[object, ...], int]:
    """How often a body shows each of the entries, as whole lines; the body is read once."""
    looks = {_look_key(entry): _look(entry) for entry in entries}
    by_line: dict[str, list[str]] = {}
    for look in set(looks.values()):
        by_line.setdefault(look.partition("\n")[0], []).append(look)
    found: Counter[str] = Counter()
    at = 0
    for line in body.split("\n"):
        for look in (
            *by_line.get(line, ()),
            *(by_line.get(line[: -len(_FAILED)], ()) if line.endswith(_FAILED) else ()),
        ):
            behind = body[at + len(look) : at + len(look) + len(_FAILED) + 1].removeprefix(_FAILED)
            found[look] += body.startswith(look, at) and behind[:1] in ("", "\n")
        at += len(line) + 1
    # What shows nothing is missing nowhere.
    return {key: found[look] if look else len(body) + 1_000_000 for key, look in looks.items()}
