"""Knows the turns of a transcript, and cuts it into chunks that cover all of it.

A head of ours begins a line: `## User · TIME`, `## Assistant · TIME`, `## Harness · TIME`, `## Compaction · TIME`; of a
tool it is a list item, ``- `NAME` · TIME``, with the call's arguments behind it and what the tool gave back indented
below it. A line of somebody's words that looks like a head gets a backslash. Chunks are cut between turns if these fit,
else at paragraphs, lines, spaces.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Literal, NamedTuple

from signet_sync.formats.lazy_pattern import late
from signet_sync.formats.timestamps import parse_instant
from signet_sync.text.token_estimate import estimate_tokens

Speaker = Literal["user", "assistant", "harness", "tool"]

STAMP = r"\d{4}-\d\d-\d\dT[\d:.]{1,20}Z"
TOOL_NAME = r"`[^`\n]{1,200}`"
HEAD = (
    rf"(?:## (?P<role>User|Assistant|Harness|Compaction)|- (?P<sub>sub-agent )?(?P<tool>{TOOL_NAME})) · (?P<at>{STAMP})"
    r"(?P<live> · live)?(?(role)(?=\n|\Z)|(?=\n|\Z| · ))"
)
OUR_HEAD = late(HEAD, re.ASCII)
FORGED = late(
    r"^([ ]{0,3})(?=#{1,6}[ \t]+"
    r"(?:(?:User|Assistant|Compaction)[ \t]*(?:·|#|\(live|$)|(?:Harness|Tool)\b[^\n]{0,210}[·(])"
    rf"|-[ \t]+(?:sub-agent[ \t]+)?{TOOL_NAME}[ \t]+·[ \t]+\d{{4}}-)",
    re.MULTILINE,
)

_SPEAKERS: dict[str, Speaker] = {
    **dict.fromkeys(("user", "human", "me", "用户", "人类"), "user"),
    **dict.fromkeys(
        ("assistant", "ai", "agent", "model", "claude", "codex", "gemini", "助手", "助理"), "assistant"
    ),
    **dict.fromkeys(("system", "developer", "harness", "compaction", "系统"), "harness"),
}  # fmt: skip


def speaker_of(role: str) -> Speaker:
    """Returns who speaks under a role; whoever is neither person, agent nor harness counts as a tool."""
    return _SPEAKERS.get(role.strip().casefold(), "tool")


def label_of(role: str) -> str:
    """Returns how a speaker is shown: `User`, `Assistant`, `Harness`, or a tool by its name."""
    speaker = speaker_of(role)
    return speaker.capitalize() if speaker != "tool" else tool_label(tool_name(role))


def tool_name(name: str) -> str:
    """Returns a tool's name as a head has it: on one line, without backticks."""
    return " ".join(name.replace("`", "'").split())[:200].strip() or "tool"


def tool_label(name: str) -> str:
    """Returns how a tool is shown."""
    return "Tool" if name.casefold() == "tool" else f"Tool {name}"


def head_label(head: re.Match[str]) -> str:
    """Returns how the speaker of one of our heads is shown."""
    if head["role"]:
        return head["role"]
    name = head["tool"].strip("`")
    return f"Sub-agent {name}" if head["sub"] else tool_label(name)


# Spaces cost next to nothing: a piece never has more characters than this for each token that it may have.
SPAN = 16
LABEL_LENGTH = 120

_ROLE = r"(?i:user|human|assistant|ai|agent|model|system|tool|claude|codex|gemini|用户|人类|助手|助理|系统)"
_FENCE = r"[ ]{0,3}(`{3,}|~{3,})([^\n]*)"
_HEADING = (
    rf"(?:#{{1,6}}[ \t]+(?:\*\*)?|\*\*(?=[^\n:：]*(?:\n|\Z)))(?P<headed>{_ROLE})(?:\*\*)?"
    rf"(?:[ \t]+(?P<named>{TOOL_NAME}))?[ \t]*(?:[·(|:：—-][^\n]*)?(?=\n|\Z)"
)
_LABEL = rf"(?:\*\*)?(?P<labelled>{_ROLE})(?:\*\*)?[ \t]*[:：](?:\*\*)?"
_THEIRS = rf"{_HEADING}|{_LABEL}"

# What may begin a line, first for the text's first line: searching for a newline is ten times as fast as for the
# beginning of a line, and the first character of most lines is enough.
_OUR_HEADING = late(rf"\n{HEAD}", re.ASCII)
_MARGIN = late(r"\n(?=\S)")
_THEIR_MARKS = (
    late(rf"{_FENCE}|{_THEIRS}", re.ASCII),
    late(rf"\n(?=[ `~#*uhacmgstUHACMGST用人助系])(?:{_FENCE}|{_THEIRS})", re.ASCII),
)
_TIME = late(rf"·[ ]*({STAMP})", re.ASCII)
_TURN = late(rf"(?:\*{{3}}\n\n)?{HEAD}|{_THEIRS}", re.ASCII)
_LEAD = late(r"[ \t]*(?:(?:#{1,6}|[-*+])[ \t]+|>[ \t]*)*")

_LINES_SEEN, _LINE_SEEN = 60, 400


class TurnStart(NamedTuple):
    """Where a turn begins, when (microseconds since 1970 UTC) if its head has a time, who speaks, where words begin."""

    start: int
    at: int | None
    label: str = ""
    words: int = 0


class ChunkSpan(NamedTuple):
    """Characters `start` to `end` of a text, and their tokens by `estimate_tokens`."""

    start: int
    end: int
    tokens: int


def is_ours(text: str) -> bool:
    """Returns whether a text has heads of turns in the form of our own transcripts."""
    return OUR_HEAD.match(text) is not None or _OUR_HEADING.search(text) is not None


def turns(text: str) -> Iterator[TurnStart]:
    """Yields where turns begin, in order.

    If the text has heads like those of our own transcripts, only those count, and words inside a turn cannot look like
    one; else line starts outside code fences such as `User:`, `**Assistant:**` or `### user`.
    """
    return _our_turns(text) if is_ours(text) else _their_turns(text)


def _our_turns(text: str) -> Iterator[TurnStart]:
    spoken, after = "", None
    opening = OUR_HEAD.match(text)
    for match in chain([opening] if opening else (), _OUR_HEADING.finditer(text)):
        start = match.start() + match[0].startswith("\n")
        # A compaction's divider belongs to its turn.
        divided = text.startswith("***\n\n", start - 5) and text[start - 6 : start - 5] in ("", "\n")
        start = start - 5 if divided and start >= 5 else start
        if after is not None and after.start < start:
            yield after
        turn, after = TurnStart(start, parse_instant(match["at"]), head_label(match), match.end()), None
        yield turn
        if speaker_of(turn.label) != "tool":
            spoken = turn.label
        elif spoken and (line := _MARGIN.search(text, turn.words)):
            # What a tool gave back is indented: at the margin the speaker before it goes on without a head.
            after = turn._replace(start=line.end(), words=line.end(), label=spoken)
    if after is not None and after.start < len(text):
        yield after


def _their_turns(text: str) -> Iterator[TurnStart]:
    first_line, line = _THEIR_MARKS
    opening, fence = first_line.match(text), ""
    for match in chain([opening] if opening else (), line.finditer(text)):
        start = match.start() + (match is not opening)
        ticks, info, headed, named, labelled = match.groups()
        if not ticks:
            time = _TIME.search(match[0]) if headed and "·" in match[0] else None
            at = parse_instant(time[1]) if time else None
            if not fence:
                yield TurnStart(start, at, _label(headed or labelled, named), match.end())
        elif fence:
            fence = "" if ticks.startswith(fence) and not info.strip() else fence
        elif ticks[0] != "`" or "`" not in info:  # else it is code within a line
            fence = ticks


def speaker_at(begun: Sequence[TurnStart], place: int) -> str:
    """Returns who speaks at a place of a text with these `turns`, as they are shown (`User`); "" if unknown."""
    number = bisect_right(begun, place, key=lambda turn: turn.start)
    return begun[number - 1].label if number else ""


def _label(role: str, tool: str | None) -> str:
    return tool_label(tool.strip("`")) if tool else role.capitalize()


def pieces(text: str, limit: int, begun: Sequence[TurnStart] | None = None) -> Iterator[ChunkSpan]:
    """Yields pieces of at most `limit` tokens, in order, that cover the text without gap or overlap.

    Whole turns are joined while they fit. A turn that is too long is cut at its last empty line that leaves the piece
    at least half full, else likewise at a line, else at a space, else between characters. A single character that costs
    more than `limit` is a piece of its own. Linear in the text's length. `begun` are its `turns`, if the caller has
    them already.
    """
    start = end = tokens = 0
    for stop in (*(turn.start for turn in (turns(text) if begun is None else begun)), len(text)):
        while end < stop:
            if stop - start <= SPAN * limit and tokens + (cost := estimate_tokens(text[end:stop])) <= limit:
                end, tokens = stop, tokens + cost
                continue
            if start == end:
                end = _part_of_turn(text, start, stop, limit)
            yield ChunkSpan(start, end, estimate_tokens(text[start:end]))
            start, tokens = end, 0
    if end > start:
        yield ChunkSpan(start, end, estimate_tokens(text[start:end]))


def first_words(piece: str, label: str = "") -> str:
    """Returns the first line of a piece that has words, flattened; empty if none has.

    `label` is who speaks at its beginning. Only a tool's words bear its name.
    """
    from signet_sync.text.sentences import flatten  # slow import; who only looks for turns needs none

    for line in piece.split("\n", _LINES_SEEN)[:_LINES_SEEN]:
        line = line[:_LINE_SEEN]
        if turn := _TURN.match(line):
            label = head_label(turn) if turn["at"] else _label(turn["headed"] or turn["labelled"], turn["named"])
        words = _LEAD.sub("", line[turn.end() :].removeprefix(" · ") if turn else line, 1)
        if words.startswith(("```", "~~~")) or not any(map(str.isalnum, words)):
            continue
        return flatten(f"{label}: {words}" if label and speaker_of(label) == "tool" else words, LABEL_LENGTH)
    return ""


# ── where to cut ──


def _part_of_turn(text: str, start: int, stop: int, limit: int) -> int:
    """Returns where the first part of a turn that is too long ends: what fits, cut where something ends."""
    ends = range(start + 1, min(stop, start + SPAN * limit) + 1)
    fits = ends[max(bisect_right(ends, limit, key=lambda end: estimate_tokens(text[start:end])) - 1, 0)]
    half = start + (fits - start) // 2
    cuts = (place + len(mark) for mark in ("\n\n", "\n", " ") if (place := text.rfind(mark, half, fits)) >= 0)
    return next(cuts, fits)
