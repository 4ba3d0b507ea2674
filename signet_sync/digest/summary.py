"""Writes what a session's outcome is told by: its summary, and its one sentence.

A summary holds what rules found, with the items that a model chose where there are some. The sentence says results
first, open points last; that of the newest of several segments includes the results of earlier ones.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from signet_sync.digest.outcome import JOINT, STOPPED, UNFINISHED, Outcome, clip, outcome
from signet_sync.digest.sentences import IS_CJK, overlap, stems
from signet_sync.digest.statements import Item, Kind
from signet_sync.formats.lazy_pattern import late
from signet_sync.formats.timestamps import day_of
from signet_sync.text.digest_mark import Status, make_opening, mark_chosen_by_model, says_nothing
from signet_sync.text.sentences import (
    MAX_WORDS,
    MIN_WORDS,
    SentenceSubject,
    escape,
    flatten,
    has_anchor,
    passes_signet,
    passes_strict,
    signet_anchor,
    usable_name,
    words,
)

TITLE_LENGTH, LINE = 100, 160
MARKED = 260  # characters of a text before its mark, which no reader of items may cut off
# Characters for the lines of a section; with headings and counts they stay below 6,000.
OUTCOME, ITEMS, FILES = 800, 800, 500

# What would start a heading, a quote, a fence, a list or a task inside a list item.
_BLOCK = late(r"^(?:(?:#{1,6}|[-*+]|\d{1,9}[.)]|\[[ xX]\])(?:[ \t]+|$)|>[ \t]*|[~`]{3,}[ \t]*|\\(?=#))+")
_SECTIONS: tuple[tuple[str, Kind], ...] = (
    ("Decisions", "decision"), ("Constraints", "constraint"), ("Blockers", "blocker"), ("Next steps", "next"),
    ("Preferences", "preference"), ("Notes", "note"), ("Tried", "tried"),
)  # fmt: skip


def summary(
    found: Outcome, *, project: str | None, harness: str | None, headless: bool = False, looks_up: bool = False
) -> str:
    """Returns Markdown about a session; empty if its transcript has no word. At most 6,000 characters.

    Everything but headings, counts and the opening line is in the transcript; shortened text ends in `…`.
    """
    said = (found.request, *found.results[:1], found.opening)
    title = next(filter(None, (_line(text, TITLE_LENGTH) for text in said)), "")
    if not title:
        return ""
    made = make_opening(project, harness, found.status, headless=headless, looks_up=looks_up)
    sections = [f"# {title}", mark_chosen_by_model(made) if found.chosen else made]
    for name, lines in _sections(found, project):
        if lines:
            sections.append("\n".join([f"## {name}", "", *lines]))
    return "\n\n".join(sections) + "\n"


def _sections(found: Outcome, project: str | None) -> Iterator[tuple[str, list[str]]]:
    """Yields the sections in order with their lines; those that MEMORY.md also has use its names."""
    yield "Outcome", _first(_items(found.results), OUTCOME)
    for name, kind in _SECTIONS:
        told = (_tell_item(item) for item in found.items if item.kind == kind and item.rule != "done")
        yield name, _first(_items(told), ITEMS)
    yield "Done", _first(_items(_tell_item(item) for item in found.items if item.rule == "done"), ITEMS)
    yield "Files", _first(_files(found.edited, project), FILES)


def item_line(item: Item) -> str:
    """Returns a statement as its line in the summary says it; empty without a word."""
    return _line(_tell_item(item), 400)


def _tell_item(item: Item) -> str:
    """Returns a statement's words; only a person's stand as a decision without a mark."""
    text = item.text.replace("`", "").replace("**", "")
    marked = item.who == "agent" and item.kind in ("decision", "constraint")
    return f"{flatten(text, MARKED)} (agent)" if marked else text


def _files(edited: Mapping[str, int], project: str | None) -> list[str]:
    root = (project or "").rstrip("/") + "/"
    below: dict[str, int] = {}
    for path, times in edited.items():
        name = path.removeprefix(root) if len(root) > 1 else path
        below[name] = below.get(name, 0) + times
    return [
        f"- `{flatten(path[: 4 * LINE], LINE) or '?'}`{f' ({times:,} times)' if times > 1 else ''}"
        for path, times in below.items()
    ]


def _items(texts: Iterable[str]) -> list[str]:
    return [f"- {said}" for text in texts if (said := _line(text, 400))]


def _line(text: str, limit: int) -> str:
    """Returns a text as one line without block or link syntax at its start, cut at a word; empty without a word."""
    said = _BLOCK.sub("", flatten(text[: 8 * limit], 8 * limit).replace("]:", "] :"), 1)
    if len(said) > limit:
        cut = said.rfind(" ", limit // 2, limit)
        said = said[: cut if cut > 0 else limit - 1].rstrip(" ,;:") + "…"
    return escape(said) if any(c.isalnum() for c in said) else ""


def _first(lines: Sequence[str], share: int) -> list[str]:
    """Returns the first lines that fit into a share of characters, and how many are left out."""
    kept = fit_lines(lines, share)
    return [*kept, f"- … {len(lines) - len(kept):,} more …"] if len(kept) < len(lines) else kept


def fit_lines(lines: Iterable[str], share: int) -> list[str]:
    """Returns the first lines that fit into a share of characters."""
    kept: list[str] = []
    for line in lines:
        share -= len(line) + 1
        if share < 0:
            break
        kept.append(line)
    return kept


SENTENCE_LENGTH, SENTENCE_LENGTH_CJK = 260, 150  # characters that a sentence may have

# ── the one sentence ──


_END = late(r"[\s.!?…:;,，、。！？]+$")
_INNER = late(r"(?<!^\d)[.!?](['\")\]]{0,3})\s+(?=[A-Z\"'(\[])")
_FRAME, _LEAST = 8, 10  # words of a sentence besides its passages; of a passage
_SHORT = 3  # words of a passage such as `committed and pushed`
_ASKED, _PASSAGE = 14, 300  # words of the request beside the results; characters of a passage


def headline(outcome: Outcome, contexts: Sequence[SentenceSubject]) -> str | None:
    """Returns a true sentence that passes the strict gate in every context, or None without any result."""
    said = results_text(outcome)
    if not said:
        return None
    first = contexts[0]
    # Signet shows one of its own in place of one that names no anchor of its kind; a file's name is one to both.
    named = f" (session of {first.day}, {first.kind}.md)"
    short = " ".join(said.split()[: MAX_WORDS - _FRAME])
    for text, behind in ((said, ""), (said, named), (short, named)):
        sentence = _anchor(_END.sub("", text) + behind, outcome, first)
        signets = all(passes_signet(sentence, context.body, context.project) for context in contexts)
        if signets and passes_strict(sentence, *contexts):
            return sentence
    return None


def results_text(outcome: Outcome) -> str:
    """Returns the results without the project and the words that a gate requires; without any, what was asked."""
    request = _shorten(outcome.request, _ASKED)[0]
    # What was asked last and not done says more than what was asked first.
    told = any(one.startswith((STOPPED, UNFINISHED)) for one in outcome.results)
    told = told or overlap(request, " ".join(outcome.results)) >= 0.5
    parts = _fit_passages(outcome.results, 0 if told else words(request))
    if outcome.status == "aborted":
        said = f"{request or 'the work'}: stopped midway" if request or parts else ""
        return f"{said}; last state: {'; '.join(parts[:2])}" if parts else said
    if not parts:
        return f"asked: {request}" if request else ""
    text = "; ".join(parts)
    text += _tell_what_is_left(outcome, (SENTENCE_LENGTH_CJK if IS_CJK.search(text) else SENTENCE_LENGTH) - len(text))
    # What was asked says what it is about, where the results do not; of several requests it is not what they answer.
    if len(stems(request)) > 2 and not told and words(text) + words(request) <= MAX_WORDS - 3:
        text += f" ({'asked' if outcome.messages < 2 else 'first asked'}: {request})"
    return text


def _fit_passages(results: Sequence[str], reserved: int) -> list[str]:
    """Returns the passages for which there is room, each whole or to a joint; the first one in any case.

    All but the first two and the shortest leave room for so many `reserved` words of the request; a single one, too.
    """
    parts: list[str] = []
    for place, text in enumerate(results):
        asked = reserved if (place > 1 or len(results) == 1) and words(text) > _SHORT else 0
        left = MAX_WORDS - _FRAME - sum(map(words, parts)) - asked
        part, whole = _shorten(text, max(_LEAST, left))
        if part and (not parts or (whole and words(part) <= left)):
            parts.append(part)
    return parts


def _shorten(text: str, most: int) -> tuple[str, bool]:
    """Returns a passage of about `most` words, and whether it ends where the passage or a part of it does."""
    text = " ".join(text.split())
    cut = clip(text, most)
    whole = cut == text or JOINT.match(text, len(cut)) is not None
    return _clean(cut) + ("" if whole else "…"), whole


def _tell_what_is_left(outcome: Outcome, room: int) -> str:
    """Returns what blocks the session, or is open, as the end of its sentence; empty if there is no room for it."""
    kind, lead = ("blocker", "blocked") if outcome.status == "blocked" else ("next", "open")
    left = next((item.text for item in outcome.items if item.kind == kind and item.rule != "done"), "")
    told = f"; {lead}: {_clean(left)}" if left and outcome.status in ("blocked", "open") else ""
    return told if len(told) <= room else ""


def _anchor(text: str, outcome: Outcome, context: SentenceSubject) -> str:
    """Returns the text as a sentence that names something of the session and is long enough for both gates."""
    name = usable_name(context.project)
    said = _END.sub("", text)
    if name and name not in said and signet_anchor(context.body, context.project) not in said:
        said = f"{name}: {said}"
    elif not has_anchor(said, context):
        said = f"{signet_anchor(context.body, context.project)}: {said}"
    for filling in _fillings(said, outcome, context.day):
        if words(said) >= MIN_WORDS:
            break
        said += filling
    # A name or a path keeps its small letter.
    kept = (name and said.startswith(name)) or not said.split(" ", 1)[0].isalpha()
    return f"{said if kept else said[:1].upper() + said[1:]}."


def _fillings(said: str, outcome: Outcome, day: str) -> Iterator[str]:
    """Yields what makes a sentence long enough for the gate: request, day; last, words on the transcript."""
    request = _END.sub("", _clean(clip(outcome.request, _ASKED)))
    if request and request not in said and overlap(request, said) < 0.8:
        yield f" (asked: {request})"
    yield f", on {day}"
    yield ", in a session whose transcript stands behind its links"


def _clean(text: str) -> str:
    """Flattens a passage to a part of a sentence: no final point, inner sentences joined by semicolons."""
    text = flatten(re.sub(r"\*\*|`", "", text), _PASSAGE)
    return _INNER.sub(r"\1; ", _END.sub("", text)).replace('"', "'")


SEGMENTS = 12  # the newest ones that a session's sentence is made from
_SAME = 0.6  # of the words of what is told twice


def join_outcomes(earlier: Sequence[Outcome], latest: Outcome) -> Outcome:
    """Returns the latest outcome with what came out of earlier ones, too, newest first; `earlier` are oldest first."""
    segments = (latest, *reversed(earlier))
    results: list[str] = []
    for one in segments:
        if not results:
            results += one.results
        elif one.results and overlap(one.results[0], " ".join(results)) < _SAME:
            results.append(one.results[0])
    request = next((one.request for one in segments if one.request), "")
    return latest._replace(results=tuple(results), request=request)


# ── segments; sessions whose files have only a fallback ──


class DerivedDigest(NamedTuple):
    """What today's rules derive from a session's transcripts, oldest first.

    `sentence` is None without any result; `status` is that of the newest one. With `says_nothing` the session was only
    a greeting. `outcomes` are those of the newest `SEGMENTS` transcripts.
    """

    sentence: str | None
    status: Status | None
    says_nothing: bool
    outcomes: tuple[Outcome, ...]


def derive_digest(transcripts: Sequence[Any]) -> DerivedDigest:
    """Derives a session from the rows of its (sanitized) transcripts, oldest first, at least one."""
    newest = transcripts[-1]
    day = day_of(newest.membership_us)
    context = SentenceSubject(newest.content, newest.project, "transcript", day)
    outcomes = [outcome(row.content) for row in transcripts[-SEGMENTS:]]
    return DerivedDigest(
        headline(join_outcomes(outcomes[:-1], outcomes[-1]), [context]),
        outcomes[-1].status,
        all(says_nothing(summary(one, project=None, harness=None)) for one in outcomes),
        tuple(outcomes),
    )
