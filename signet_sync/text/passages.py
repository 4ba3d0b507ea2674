"""Cuts what an artifact says into passages, by which `recall` finds it, and leaves what tools printed apart."""

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from signet_sync.formats.lazy_pattern import late
from signet_sync.text.chunking import FORGED, TurnStart, speaker_of, turns
from signet_sync.text.digest_mark import end_of, is_look_up
from signet_sync.text.own_calls import is_own_tool, runs_us
from signet_sync.text.prompt import is_about_earlier_work
from signet_sync.text.sanitizer import has_controls, sanitize_transcript_v2

LONGEST = 1_000  # characters
_CALL = 2_000  # characters of a call's arguments
# By speaker: somebody's words that no turn frames are a text's.
Voice = Literal["person", "agent", "text", "tool"]
_VOICES: dict[str, Voice] = {"user": "person", "assistant": "agent"}
_ENDS = late(r"[.!?…][\s\"'”)\]]|[。！？]|\n")
_WORD = late(r"[^\W_]")


class Passage(NamedTuple):
    """Characters `start` to `end` of a body, of which turn (from 0; -1 without turns), and who says it."""

    start: int
    end: int
    turn: int
    voice: Voice


# A call of ours has one of these, in the tool's name or in what it runs.
_OUR_SIGNS = ("ignet", "IGNET", "memory_", "entity_", "session_open")
_SENTENCE = Passage(-1, -1, -1, "text")


def passages(content: str, kind: str, sentence: str | None = None) -> list[Passage]:
    """Returns what an artifact says, in order, each at most `LONGEST` characters, and behind it what tools printed.

    The `sentence` of a summary is not in its body: it begins at -1.

    What was asked of memory is no memory: calls of our own tools are left out, and so is a session of nothing else.
    """
    if kind != "transcript":
        if is_look_up(content):
            return []
        told = [_SENTENCE] if kind == "summary" and sentence else []
        return told + list(_cut(content, end_of(content), len(content), -1, "text"))
    begun = list(turns(content))
    said = list(_cut(content, 0, begun[0].start if begun else len(content), -1, "text"))
    printed: list[Passage] = []
    ends = [*(turn.start for turn in begun[1:]), len(content)][: len(begun)]
    own = False
    for number, (turn, end) in enumerate(zip(begun, ends, strict=True)):
        voice = _VOICES.get(speaker_of(turn.label))
        if voice is not None:
            said += _cut(content, turn.words, end, number, voice)
        elif _is_own_call(content, turn):
            own = True
        elif not content[turn.words : end].isspace() and end > turn.words:
            printed.append(Passage(turn.words, end, number, "tool"))
    return [] if own and not printed and _only_asks(content, said) else said + printed


def asks_only_memory(transcript: str) -> bool:
    """Returns whether our own tools, and no others, were called in a transcript."""
    if not any(sign in transcript for sign in _OUR_SIGNS):
        return False  # in nearly all
    return any(_is_own_call(transcript, turn) for turn in turns(transcript)) and not passages(transcript, "transcript")


def _only_asks(content: str, said: list[Passage]) -> bool:
    words = [content[one.start : one.end].strip() for one in said if one.voice == "person"]
    return all(text.endswith(("?", "？")) or is_about_earlier_work(text) for text in words)


def _is_own_call(content: str, turn: TurnStart) -> bool:
    if speaker_of(turn.label) != "tool":
        return False
    name = turn.label.rpartition(" ")[2]
    return is_own_tool(name) or runs_us(content[turn.words : turn.words + _CALL].partition("\n")[0])


def _cut(content: str, start: int, end: int, turn: int, voice: Voice) -> Iterator[Passage]:
    """Yields the pieces of a turn that have words, cut where a sentence or line ends in their second half."""
    while start < end:
        stop = end if end - start <= LONGEST else _stop(content, start, start + LONGEST)
        if _WORD.search(content, start, stop):
            yield Passage(start, stop, turn, voice)
        start = stop


def _stop(content: str, start: int, most: int) -> int:
    half = start + LONGEST // 2
    if ends := [found.end() for found in _ENDS.finditer(content, half, most)]:
        return ends[-1]
    blank = content.rfind(" ", half, most)
    return blank + 1 if blank > 0 else most


# ── prepares the words of a turn for a transcript ──

_FENCE = late(r"^ {0,3}(`{3,}|~{3,})([^\n]*)$", re.MULTILINE)
# What every line begins with that could be a head. Of a text without controls the sanitizer makes no other one: what
# stands in place of a secret begins with a bracket, and ends no line.
_ROLE = r"#{1,6}[ \t]+(?:User|Assistant|Compaction|Harness|Tool)"
_MAY_BE_ROLE = late(rf"\n {{0,3}}{_ROLE}")
_MAY_BE_HEAD = late(rf"\n {{0,3}}(?:{_ROLE}|-[ \t]+(?:sub-agent[ \t]+)?`)")


def words_of(text: str) -> str:
    """Returns words as a turn shows them: they cannot forge a head, and no fence is left open.

    What the sanitizer will remove could hide a head. Else it is left to it, which counts.
    """
    if has_controls(text) or (_MAY_BE_HEAD if "·" in text else _MAY_BE_ROLE).search(f"\n{text}"):
        clean = sanitize_transcript_v2(text)
        text = FORGED.sub(r"\1\\", clean) if FORGED.search(clean) else text
        fence = _open_fence(clean)
    else:
        fence = _open_fence(text)
    text = text.strip("\n")
    return f"{text}\n{fence}" if fence else text


def indent(text: str) -> str:
    """Returns what a tool said as it stands below the tool's head."""
    return "\n".join(f"  {line}" if line.strip() else "" for line in text.split("\n"))


def _open_fence(text: str) -> str:
    """Returns the fence that closes the code block which the text leaves open; empty if there is none."""
    opened = ""
    if "```" not in text and "~~~" not in text:
        return opened
    for match in _FENCE.finditer(text):
        mark, rest = match.groups()
        if not opened:
            # Backticks after a fence of backticks make it inline code.
            opened = "" if mark[0] == "`" and "`" in rest else mark
        elif mark[0] == opened[0] and len(mark) >= len(opened) and not rest.strip():
            opened = ""
    return opened
