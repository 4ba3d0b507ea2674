"""Keeps the statements valid at the end: none retracted, replaced, done or declined, and each only once."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence

from signet_sync.formats.lazy_pattern import late
from signet_sync.text.digest.conversation import Dialogue, OutcomeItem
from signet_sync.text.digest.sentences import overlap, stems

ITEM_LENGTH = 200
# At most so many statements and sentences are compared; a session has a handful.
_COMPARED, _LATER = 200, 1_000

_INSTEAD = late(
    r"\binstead\b|\brather\b|\bnot\b|\bactually\b|\bno longer\b|\bdoch\b|statt|au lieu|en vez|em vez|invece|вместо"
    r"|而不是|改|ではなく|대신",
    re.IGNORECASE,
)


def still_valid(dialogue: Dialogue, stated: Sequence[OutcomeItem]) -> list[OutcomeItem]:
    """Returns the statements that still hold."""
    left = _not_retracted(dialogue, list(stated)[:_COMPARED])
    lists = [item.order for item in left if _listed(item)]
    newest = max(lists, default=-1)
    later = _later(dialogue)
    replacing = [item for item in left if item.kind == "decision" and _INSTEAD.search(item.text)]
    chosen = [item for item in left if item.kind in ("decision", "constraint") and item.source != "section"]
    return [
        item
        for item in left
        if not (_listed(item) and item.order < newest)
        and not (item.kind == "next" and any(one.order > item.order and _shared(one.text, item.text) for one in chosen))
        and not (item.kind in ("next", "blocker") and _was_done(dialogue, item, later))
        and not (item.kind == "next" and _was_declined(dialogue, item, _place(item, left), later))
        and not (item.kind == "decision" and _was_replaced(item, replacing))
    ]


def _place(item: OutcomeItem, left: Sequence[OutcomeItem]) -> int:
    """Returns the place of an item in its list, from 1; 0 if it is in none."""
    if not _listed(item):
        return 0
    return 1 + [one.line for one in left if one.order == item.order and _listed(one)].index(item.line)


def _listed(item: OutcomeItem) -> bool:
    """Returns whether it is in a list of open points; a newer list replaces an older one."""
    return item.kind in ("next", "blocker") and item.source == "section"


def _not_retracted(dialogue: Dialogue, left: list[OutcomeItem]) -> list[OutcomeItem]:
    """Drops the decision that a "no wait" retracts."""
    places = [place for place, _ in dialogue.users]
    chosen: dict[int, int] = {}  # the last decision between each of the person's turns and the one before
    for item in left:
        at = bisect_right(places, item.order)
        if item.kind == "decision" and 0 < at < len(places):
            chosen[at] = max(item.order, chosen.get(at, 0))
    opening = {at: next(iter(dialogue.sentences_of(places[at])), ("", 0))[0] for at in chosen}
    gone = {order for at, order in chosen.items() if dialogue.cues.has("retract", opening[at])}
    return [item for item in left if item.kind != "decision" or item.order not in gone]


def _later(dialogue: Dialogue) -> list[tuple[int, str, str]]:
    """Returns what was said and committed towards the end, with the speaker."""
    said = [
        (place, message.speaker, sentence)
        for place, message in sorted([*dialogue.users[-40:], *dialogue.assistants[-40:]])
        for sentence, _ in dialogue.sentences_of(place)[:60]
    ]
    return [*said[-_LATER:], *((place, "commit", subject) for place, subject in dialogue.commits[-100:])]


def _was_done(dialogue: Dialogue, item: OutcomeItem, later: Sequence[tuple[int, str, str]]) -> bool:
    """Returns whether a later report or commit says that it was done, or the person that it is solved."""
    for place, speaker, sentence in later:
        if place <= item.order:
            continue
        if speaker == "user":
            if item.kind == "blocker" and dialogue.cues.has("solved", sentence):
                return True
        elif (
            _shared(item.text, sentence)
            and len(stems(item.text) & stems(sentence)) >= 0.6 * len(stems(item.text))
            and (
                speaker == "commit"
                or (dialogue.cues.has("outcome", sentence) and not dialogue.cues.has("left", sentence))
            )
        ):
            return True
    return False


def _was_declined(dialogue: Dialogue, item: OutcomeItem, number: int, later: Sequence[tuple[int, str, str]]) -> bool:
    """Returns whether the person rejects a step, by its words or by its number in the list."""
    for place, speaker, sentence in later:
        if speaker == "user" and place > item.order and dialogue.cues.has("no", sentence):
            called = _NUMBER.match(sentence)
            if _shared(sentence, item.text) or (called and int(called[1]) == number):
                return True
            if number and any(name[:5].casefold() in stems(item.text) for name in _NAME.findall(sentence)):
                return True
    return False


_NUMBER = late(r"(?:\w+, )?(?:no\.? |number |point |#)?(\d)\b(?![.:]\d)", re.IGNORECASE)


# A name that is written like one: "iOS", "CHANGELOG", "v2".
_NAME = late(r"\b\w*(?:[A-Z]\w*[A-Z]|\d)\w*\b")


def _shared(one: str, other: str) -> bool:
    return len(stems(one) & stems(other)) >= 2


def _was_replaced(item: OutcomeItem, replacing: Sequence[OutcomeItem]) -> bool:
    """Returns whether a later decision says the same about another value."""
    return any(other.order > item.order and overlap(item.text, other.text) >= 0.35 for other in replacing)


def distinct(stated: Sequence[OutcomeItem]) -> list[OutcomeItem]:
    """Keeps each statement once, as short as an item may be: the later and more structured one."""
    kept: list[OutcomeItem] = []
    for item in sorted(stated[:_COMPARED], key=lambda one: (one.source != "section", -one.order)):
        text = item_text(item.text)
        item = item._replace(text=text)
        own = stems(text) if text else None
        # Two without a common word differ; this is a quick check.
        if own and not any(not own.isdisjoint(stems(other.text)) and _same(item, other) for other in kept):
            kept = [other for other in kept if not (other.order == item.order and _within(other, text))]
            kept.append(item)
    return sorted(kept, key=lambda one: (one.order, one.line))


def _same(item: OutcomeItem, other: OutcomeItem) -> bool:
    if item.text.casefold() == other.text.casefold():
        return True
    shared = stems(item.text) & stems(other.text)
    if item.kind != other.kind and {item.kind, other.kind} == {"decision", "next"}:
        # A choice and the step that remains of it are two statements.
        return len(shared) >= 0.75 * len(stems(item.text) | stems(other.text))
    if item.kind == other.kind == "decision" and item.order < other.order:
        # The report repeats what a reply chose: "128 MB, the nodes choke on more", "128 MB target files".
        head = stems(re.split(r"[,.;，。、]", item.text, maxsplit=1)[0])
        if head and head <= stems(other.text):
            return True
    if (
        item.kind == other.kind
        and item.order == other.order
        and abs(item.line - other.line) <= 1
        and _within(item, other.text)
    ):
        return True
    return len(shared) >= 2 and overlap(item.text, other.text) >= 0.75


def _within(item: OutcomeItem, text: str) -> bool:
    """Returns whether a text contains everything that a short statement of its turn says."""
    return item.kind == "preference" and stems(item.text) < stems(text)


_TRIM = late(r"^(?:\(?\d{1,3}[.)]\s+|[\s\-–—•·*:,.;]+)+|[\s*:,;]+$")


def item_text(text: str) -> str:
    """Formats a statement as an item: one line without Markdown, at most `ITEM_LENGTH` characters, whole clauses."""
    text = " ".join(text[: 4 * ITEM_LENGTH].split())
    text = re.sub(r"\[([^\[\]]{1,200})\]\([^()]{0,300}\)", r"\1", text)
    text = _TRIM.sub("", re.sub(r"\*\*|__|`", "", text))
    if len(text) <= ITEM_LENGTH:
        return text
    cut = max(text.rfind(mark, 60, ITEM_LENGTH) for mark in (". ", "; ", ", ", ": ", "。", "，", "、", " - ", " – "))
    cut = cut if cut > 0 else text.rfind(" ", 60, ITEM_LENGTH)
    return text[: cut if cut > 0 else ITEM_LENGTH].rstrip(" ,;:-–")
