"""Reads a model's answer about a session: what holds is taken as a quote, everything else is refused with a reason.

Who speaks is decided by where a quote stands, never by the model's word. A quote is shown as the whole sentences that
hold it, so that no `not` is left out.
"""

import json
import re
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, cast, get_args

from signet_sync.digest.model_question import GAP, LONGEST, ModelQuestion
from signet_sync.digest.outcome import ModelDigest
from signet_sync.digest.sentences import IS_CJK, is_question, overlap
from signet_sync.digest.statements import ITEMS, Item, Kind
from signet_sync.formats.lazy_pattern import late
from signet_sync.text.index_words import CJK

ANSWER = 40_000  # characters of an answer
_SENTENCE = 2_000
_LEAST = 8  # characters of a quote, or it is a whole sentence

# The end of thoughts: in JSON it could only stand in a text, and no text ends a line.
_THOUGHT = late(r"</(?:think|thinking|thought|reasoning)>[ \t]*(?:$|(?=\{))", re.I | re.M)
_REFUSES = late(
    r"^\W*(?:no|nope|nah|stop|cancel|wait|undo|nein|nee|stopp|non|arrête|não|para|нет|стоп|hayır|dur|không)\b"
    r"|^\W*(?:いいえ|いや|だめ|やめ|不要|不行|不用|不是|别|아니|안 돼)",
    re.I,
)
_WORD = late(rf"""[^\s,;()"'«»„“”‘’…。、{CJK}]+""")
_SIGNS = frozenset("/\\.@:=$^&+<>{}|~#%_")


class Reading(NamedTuple):
    """An answer as far as it holds, None if it is refused as a whole; and why, in no words of the session."""

    digest: ModelDigest | None
    refused: tuple[str, ...]


class _Refused(Exception):
    """Something that does not hold; the message says why."""


def read(answer: str, asked: ModelQuestion) -> Reading:
    """Returns what holds of an answer to a question. Total, deterministic, linear.

    Of items most of which are refused none is believed, nor is anything else of their answer.
    """
    try:
        given = _document(answer)
        offered = given.get("items")
        if not isinstance(offered, list) or not all(isinstance(one, dict) for one in offered):
            raise _Refused("its items are no list of objects")
    except _Refused as refusal:
        return Reading(None, (str(refusal),))
    refused: list[str] = []
    items: list[Item] = []
    for number, one in enumerate(offered, 1):
        try:
            item = _item(one, asked)
            if len(items) == ITEMS:
                raise _Refused("there are too many")
            if not any(item.kind == kept.kind and overlap(item.text, kept.text) > 0.75 for kept in items):
                items.append(item)
        except _Refused as refusal:
            refused.append(f"item {number}: {refusal}")
    if 2 * len(refused) > len(offered):
        return Reading(None, (*refused, "most of its items do not hold"))
    sentence = None
    try:
        sentence = _sentence(given.get("sentence"), asked)
    except _Refused as refusal:
        refused.append(f"sentence: {refusal}")
    return Reading(ModelDigest(sentence, tuple(items)), tuple(refused))


def _document(answer: str) -> dict[str, Any]:
    """Returns the object of an answer, without thoughts, fence and courtesies around it."""
    if len(answer) > ANSWER:
        raise _Refused(f"it is longer than {ANSWER:,} characters")
    begun = max((thought.end() for thought in _THOUGHT.finditer(answer)), default=0)
    try:
        found = json.loads(answer[answer.index("{", begun) : answer.rindex("}") + 1])
    except (ValueError, RecursionError):
        raise _Refused("it is no JSON object") from None
    if not isinstance(found, dict):
        raise _Refused("it is no JSON object")
    return found


def _item(given: dict[str, Any], asked: ModelQuestion) -> Item:
    kind, turn, quote = (given.get(name) for name in ("kind", "turn", "quote"))
    if kind == "tried" or kind not in get_args(Kind):
        raise _Refused("an unknown kind")
    if type(turn) is not int or not isinstance(quote, str):
        raise _Refused("its turn is no number or its quote no text")
    if turn not in asked.turns:
        raise _Refused("its turn was not shown")
    if len(quote) > LONGEST * 2:
        raise _Refused("its quote is too long")
    kind, shown = cast(Kind, kind), asked.turns[turn]
    said = _standing(quote, shown.person)
    who: Literal["person", "agent"] = "person" if said else "agent"
    sentences = said or _standing(quote, shown.agent)
    if not sentences:
        raise _Refused("its quote does not stand in its turn")
    text = " ".join(sentences)
    rule = "picked" if text in shown.given else "model"
    item = Item(kind, text, who, asked.lines[turn][who == "agent"], turn, rule)
    if why := _objection(item, sentences, asked):
        raise _Refused(why)
    return item


def _objection(item: Item, sentences: Sequence[str], asked: ModelQuestion) -> str:
    """Returns why a quote is no statement of its kind; empty if it is one."""
    if len(item.text) > LONGEST or any(GAP in one for one in sentences):
        return "its quote is too long, or stands where something is left out"
    if item.rule == "picked":
        return ""
    if item.kind in ("decision", "constraint", "preference") and any(map(is_question, sentences)):
        return "a question states nothing"
    if item.kind == "preference" and item.who == "agent":
        return "a preference that no person said"
    if item.kind == "decision" and item.who == "person" and any(map(_REFUSES.search, sentences)):
        return "a refusal decides nothing"
    return "a tool said these words" if asked.relayed.holds(item) else ""


def _standing(quote: str, said: Sequence[str]) -> list[str]:
    """Returns the sentences in which a quote stands first, blanks aside; none if it does not."""
    wanted, text = " ".join(quote.split()), " ".join(said)
    least = _LEAST if IS_CJK.search(wanted) is None else _LEAST // 2
    at = text.find(wanted) if wanted in said or len(wanted) >= least else -1
    begun, found = 0, list[str]()
    for sentence in said if at >= 0 else ():
        if begun < at + len(wanted) and begun + len(sentence) > at:
            found.append(sentence)
        begun += len(sentence) + 1
    return found


def _sentence(said: object, asked: ModelQuestion) -> str:
    """Returns the sentence if the record has every name in it; whether it is a good one is decided by the gate."""
    if not isinstance(said, str) or not said.strip() or len(said) > _SENTENCE or not said.isprintable():
        raise _Refused("it is none")
    record = asked.prompt.casefold()
    names = (word.rstrip(".:!?") for word in _WORD.findall(said.replace("`", " ").casefold()))
    if any(_is_name(name) and name not in record for name in names):
        raise _Refused("it names what the record does not")
    return said.strip()


def _is_name(word: str) -> bool:
    mixed = any(map(str.isdigit, word)) and any(map(str.isalpha, word))
    return mixed or word.startswith("-") or not _SIGNS.isdisjoint(word)
