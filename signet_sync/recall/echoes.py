"""Tells what answers nothing: a text that only asks, or that only repeats the query."""

from __future__ import annotations

from collections.abc import Collection

from signet_sync.formats.lazy_pattern import late
from signet_sync.recall.query import Query
from signet_sync.text.turn_heads import TOOL_NAME
from signet_sync.text.word_forms import STOP_WORDS, folded

_LONGEST = 4_000  # characters; a longer text says something
_ADDED = 0.1  # of a text's words may be new in a repetition
_WORD = late(r"[^\W_]+")
_SENTENCE = late(r"(?<=[.!?。！？])\s+|(?<=[。！？])|\n+")
_ASKS = late(r"[?？][\W_]*\Z|[吗呢か][。?？]?\Z")
_USER = "## User"
_ANSWER = late(rf"\n(?:## Assistant|- (?:sub-agent )?{TOOL_NAME} · \d{{4}}-)")


def words_of(query: Query) -> frozenset[str]:
    """Returns the words of a query, in every form that finds them."""
    return frozenset(word for term in query.terms for form in (*term.phrases, *term.akin) for word in form.split())


def is_echo(text: str, words: Collection[str]) -> bool:
    """Returns whether every sentence of a text asks, or hardly any of its words is not among `words` (of a query)."""
    if len(text) > _LONGEST:
        return False
    if all(_ASKS.search(sentence.strip()) for sentence in _SENTENCE.split(text) if sentence.strip()):
        return True
    said = [word for word in _WORD.findall(folded(text)) if word not in STOP_WORDS]
    return sum(word not in words for word in said) <= _ADDED * len(said)


def title_alone(summary: str, end: int) -> str:
    """Returns the title of a summary made by rules, whose mark ends at `end`, if nothing else is in it; else ""."""
    return summary.partition("\n")[0].lstrip("# ") if end and not summary[end:].strip() else ""


def unanswered(transcript: str, place: int) -> str:
    """Returns what a person says at a place of a transcript and after it; "" if somebody answers, or spoke there."""
    begin = transcript.rfind(f"\n{_USER}", 0, place + len(_USER)) + 1
    if not transcript.startswith(_USER, begin) or len(transcript) - begin > _LONGEST:
        return ""
    if _ANSWER.search(transcript, begin):
        return ""
    lines = transcript[begin:].split("\n")
    return "\n".join(line for line in lines if not line.startswith(_USER))
