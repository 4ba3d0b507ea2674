"""Keeps each statement of a session once, and its open points of the newest list only."""

from __future__ import annotations

import re
from collections.abc import Sequence

from signet_sync.formats.lazy_pattern import late
from signet_sync.text.digest.conversation import OutcomeItem
from signet_sync.text.digest.sentences import overlap, stems

ITEM_LENGTH = 200
# At most so many statements are compared; a session has a handful.
_COMPARED = 200


def newest_list(stated: Sequence[OutcomeItem]) -> list[OutcomeItem]:
    """Drops next steps and blockers in lists that a newer list of these replaces."""
    newest = max((item.order for item in stated if _is_listed(item)), default=-1)
    return [item for item in stated if not _is_listed(item) or item.order == newest]


def _is_listed(item: OutcomeItem) -> bool:
    return item.kind in ("next", "blocker") and item.source == "section"


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
