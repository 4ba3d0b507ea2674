"""Makes a session's one sentence from what came out of it: outcome first, what stays open last."""

from __future__ import annotations

import re
from collections.abc import Sequence

from signet_sync.contracts.sentences import (
    MAX_WORDS,
    MIN_WORDS,
    SessionContext,
    flatten,
    has_anchor,
    passes_strict,
    signet_anchor,
    usable_name,
    words,
)
from signet_sync.digest.sentences import IS_CJK, overlap
from signet_sync.digest.standing import item_text
from signet_sync.digest.talk import Outcome
from signet_sync.digest.telling import SENTENCE_LENGTH, SENTENCE_LENGTH_CJK

_END = re.compile(r"[\s.!?…:;,，、。！？]+$")
_INNER = re.compile(r"([.!?]['\")\]]{0,3})\s+(?=[A-Z\"'(\[])")
_PARENTHESES = re.compile(r"\s*\([^()]{0,120}\)")
_CLAUSE = re.compile(r"[;；]\s+|,\s+(?=(?:but|and|so|which|aber|und|mais|et|pero|y|mas|e|ma|но|и)\b)|\s+[–—-]\s+|,\s+|，|、")


def headline(outcome: Outcome, contexts: Sequence[SessionContext]) -> str | None:
    """A true sentence that passes the strict gate in every context, or None where nothing came out that can be told."""
    context = contexts[0]
    said = told(outcome)
    if not said:
        return None
    for text in _shorter(said):
        sentence = _anchored(text, outcome, context)
        if passes_strict(sentence, *contexts):
            return sentence
    return None


def told(outcome: Outcome) -> str:
    """What came out, without the project and the words that a gate asks for; empty where nothing did."""
    parts = [_clean(text) for text in outcome.told]
    asked = _clean(outcome.asked)[:120].rsplit(" ", 1)[0] if len(outcome.asked) > 120 else _clean(outcome.asked)
    if outcome.status == "aborted":
        state = next((part for part in parts), "")
        return f"{asked}: stopped midway" + (f"; last state: {state}" if state else "") if asked or state else ""
    parts = [part for part in parts if part]
    if not parts:
        return ""
    text = "; ".join([parts[0], *(_continued(part) for part in parts[1:])])
    room = SENTENCE_LENGTH_CJK if IS_CJK.search(text) else SENTENCE_LENGTH
    left = [item for item in outcome.items if item.kind == ("blocker" if outcome.status == "blocked" else "next")]
    if outcome.status in ("blocked", "open") and left and overlap(left[0].text, text) < 0.6:
        open_end = _clean(left[0].text)
        while parts and len(text) + len(open_end) + 8 > room and len(parts) > 1:
            parts.pop()
            text = "; ".join([parts[0], *(_continued(part) for part in parts[1:])])
        if len(text) + len(open_end) + 8 <= room + 40:
            text = f"{text}; open: {open_end}"
    return text


def _shorter(text: str) -> list[str]:
    """The text, then shorter forms of it: without parentheses, then cut behind a clause."""
    found = [text, _PARENTHESES.sub("", text)]
    bare = found[-1]
    while words(bare) > 20 and len(found) < 8:
        cuts = [match.start() for match in _CLAUSE.finditer(bare)]
        if not cuts or cuts[-1] < 40:
            break
        bare = bare[: cuts[-1]]
        found.append(bare)
    found.append(" ".join(text.split()[: MAX_WORDS - 6]))
    return found


def _anchored(text: str, outcome: Outcome, context: SessionContext) -> str:
    """The text as a sentence that names something of the session and has words enough for both gates."""
    name = usable_name(context.project)
    said = _END.sub("", text)
    if name and name not in said and signet_anchor(context.body, context.project) not in said:
        said = f"{name}: {said}"
    elif not has_anchor(said, context):
        said = f"{signet_anchor(context.body, context.project)}: {said}"
    if words(said) < MIN_WORDS:
        extra = outcome.asked and _clean(outcome.asked)
        if extra and overlap(extra, said) < 0.8 and outcome.status != "aborted":
            said = f"{said} (asked: {' '.join(extra.split()[:24])})"
    if words(said) < MIN_WORDS:
        said = f"{said}, in the session of {context.day}, whose transcript stands behind its links"
    return said[:1].upper() + said[1:] + "." if name and not said.startswith(name) else said + "."


def _clean(text: str) -> str:
    """A passage as a part of a sentence: flat, without its point, inner sentences joined by a semicolon."""
    text = flatten(item_text(text) if len(text) > 400 else re.sub(r"\*\*|__|`", "", text), 400)
    return _INNER.sub("; ", _END.sub("", text)).replace('"', "'")


def _continued(text: str) -> str:
    """A passage behind a semicolon: a capital that only begins a sentence goes."""
    first = text.split(" ", 1)[0]
    return text[:1].lower() + text[1:] if first[:1].isupper() and first[1:].islower() and len(first) > 1 else text
