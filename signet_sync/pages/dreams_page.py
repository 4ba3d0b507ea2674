"""Renders DREAMS.md: what each sweep promoted and why, in words for a person.

Every entry has a hidden id and the same text on every machine, so machines that share a vault, each with a promotion
history of its own, add to one page and never rewrite it in turns.
"""

import re
from bisect import bisect
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from signet_sync.formats.handle import handle
from signet_sync.formats.lazy_pattern import late
from signet_sync.formats.timestamps import day_of, iso
from signet_sync.memories.promotion_score import DreamView, SweepView
from signet_sync.pages.sections import plain
from signet_sync.text.phrases import counted

TITLE = "# DREAMS.md — Dream Diary"
INTRO = """\
What is looked up again and again, by different questions, rises into the *Dreamed* section of MEMORY.md by itself. This
page tells, sweep by sweep and oldest first, what rose and why; of what lies far back only the numbers are kept.

Something should not have risen? `signet-sync dream --undo ID` takes it out of *Dreamed* for good and keeps the memory;
`signet-sync forget ID` takes the memory away, here and everywhere else. Its ID stands at the end of its line, after the
`^`."""
NOTHING = "Nothing has risen yet."

# The newest entries are written out up to so many characters, older ones as counts only; at most so many entries are
# kept. So even ten years of one promotion a night stay below half a megabyte.
IN_WORDS = 200_000
ENTRIES = 1_000

_HEADING = late(r"^(?=## )", re.MULTILINE)
_KEY = late(r"## .*\n<!-- (dream|quiet) (\d{8}T\d{9}Z) -->(?:\n|\Z)", re.ASCII)
_BULLET = late(r"- .* \^(m-[a-z0-9]+)", re.ASCII)
_FORGOTTEN = late(r"- (\d{1,9}) forgotten since", re.ASCII)
_PROMOTED = "### Promoted"


class _SweepEntry(NamedTuple):
    """A part of the page: the id of its (first) sweep, whether it promoted nothing, and its text."""

    id: str
    quiet: bool
    text: str


def diary(sweeps: Sequence[SweepView], existing: str | None, gone: Collection[str]) -> str:
    """Returns the generated text of DREAMS.md, for between the markers; rendering it again changes nothing.

    `existing` is that text on disk: its entries of sweeps that are not ours (another machine's, a lost database's) are
    kept unchanged, except for the memories in `gone`. Consecutive sweeps that promoted nothing share one heading, up to
    the next sweep of any machine that promoted something.
    """
    ours = {sweep.id for sweep in sweeps}
    others = [entry for entry in _entries(existing or "") if entry.id not in ours]
    promoted = [_promotion_entry(sweep, gone) for sweep in sweeps if not _is_quiet(sweep)]
    promoted += [_without(entry, gone) for entry in others if not entry.quiet]
    shown = _bounded(sorted(promoted))
    quiet = _quiet([sweep for sweep in sweeps if _is_quiet(sweep)], [entry.id for entry in shown])
    quiet += [entry for entry in others if entry.quiet]
    if len(shown) == ENTRIES:
        quiet = [entry for entry in quiet if entry.id > shown[0].id]
    parts = [TITLE, INTRO, *([] if shown else [NOTHING]), *(entry.text for entry in sorted([*shown, *quiet]))]
    return "\n\n".join(parts)


def _is_quiet(sweep: SweepView) -> bool:
    return sweep.promoted <= 0 and not sweep.dreams


def _promotion_entry(sweep: SweepView, gone: Collection[str]) -> _SweepEntry:
    """Returns the entry of a sweep that promoted something."""
    dreams = sorted(sweep.dreams, key=lambda dream: (-dream.score, -dream.last_us, dream.memory_id))
    bullets = [_bullet(dream, dream.text) for dream in dreams if dream.text is not None and dream.memory_id not in gone]
    promoted = max(sweep.promoted, len(dreams))
    lines = [
        f"## Dreamed {_to_minute(sweep.at_us)}",
        f"<!-- dream {sweep.id} -->",
        "",
        f"- candidates: {sweep.candidates}",
        f"- promoted: {promoted}",
        f"- skipped (already promoted): {sweep.skipped}",
        "",
        _PROMOTED,
        "",
        *bullets,
        *_forgotten_line(promoted - len(bullets)),
    ]
    return _SweepEntry(sweep.id, False, "\n".join(lines))


def _bullet(dream: DreamView, text: str) -> str:
    """Returns `- … — found 5 times by 3 different queries on 3 days, …; score 0.67 (frequency 0.92, …) ^m-…`."""
    signals = ", ".join(
        f"{name} {value:.2f}"
        for name, value in (
            ("frequency", dream.frequency),
            ("relevance", dream.relevance),
            ("recency", dream.recency),
            ("diversity", dream.diversity),
            ("consolidation", dream.consolidation),
        )
    )
    queries = counted(dream.queries, "query", "different queries")
    found = f"found {counted(dream.hits, 'time')} by {queries} on {counted(dream.days, 'day')}"
    why = f"{found}, {_place(dream.relevance)}, last on {day_of(dream.last_us)}"
    undone = f"; taken out of *Dreamed* on {day_of(dream.undone_us)}" if dream.undone_us is not None else ""
    return f"- {plain(text) or '…'} — {why}; score {dream.score:.2f} ({signals}){undone} {handle(dream.memory_id)}"


def _place(relevance: float) -> str:
    """Describes a memory's place among the answers, by the mean of 1/rank."""
    return next(words for least, words in _PLACES if relevance >= least)


# Above 0.75 it was the first answer more often than not: as the second it would count 0.5.
_PLACES = (
    (1.0, "always as the first answer"),
    (0.76, "mostly as the first answer"),
    (0.4, "near the top of the answers"),
    (0.15, "among the answers"),
    (-1.0, "far down the answers"),
)


def _forgotten_line(count: int) -> list[str]:
    return [f"- {count} forgotten since"] if count > 0 else []


def _quiet(sweeps: Iterable[SweepView], entry_ids: Sequence[str]) -> list[_SweepEntry]:
    """Returns the sweeps that promoted nothing, those between two of the entries `entry_ids` (ids in order) as one."""
    ordered = sorted(sweeps, key=lambda sweep: sweep.id)
    runs = groupby(ordered, key=lambda sweep: bisect(entry_ids, sweep.id))
    return [_quiet_entry(list(run)) for _, run in runs]


def _quiet_entry(sweeps: Sequence[SweepView]) -> _SweepEntry:
    first, last = day_of(sweeps[0].at_us), day_of(sweeps[-1].at_us)
    days = first if first == last else f"{first} to {last}"
    heading = f"## {days}: {counted(len(sweeps), 'quiet sweep')}, nothing new rose"
    return _SweepEntry(sweeps[0].id, True, f"{heading}\n<!-- quiet {sweeps[0].id} -->")


def _entries(text: str) -> Iterator[_SweepEntry]:
    """Yields the entries of DREAMS.md: second-level headings, each identified by the hidden line below it."""
    seen: set[tuple[str, str]] = set()
    for part in _HEADING.split(text.replace("\r\n", "\n")):
        key = _KEY.match(part)
        if key is not None and key.groups() not in seen:
            seen.add((key[1], key[2]))
            yield _SweepEntry(key[2], key[1] == "quiet", part.rstrip())


def _without(entry: _SweepEntry, gone: Collection[str]) -> _SweepEntry:
    """Returns an entry with the memories in `gone` replaced by a number."""
    kept: list[str] = []
    count_forgotten = count_dropped = 0
    for line in entry.text.split("\n"):
        if (bullet := _BULLET.fullmatch(line)) and bullet[1] in gone:
            count_dropped += 1
        elif count := _FORGOTTEN.fullmatch(line):
            count_forgotten += int(count[1])
        else:
            kept.append(line)
    return (
        entry._replace(text="\n".join([*kept, *_forgotten_line(count_forgotten + count_dropped)]))
        if count_dropped
        else entry
    )


def _bounded(entries: Sequence[_SweepEntry]) -> list[_SweepEntry]:
    """Returns the newest of the ordered entries: in words as far as they fit, from then on as counts."""
    room = IN_WORDS
    shown: list[_SweepEntry] = []
    for entry in reversed(entries[-ENTRIES:]):
        counts, heading, _ = entry.text.partition(f"\n\n{_PROMOTED}\n")
        # An entry that another machine cut also ends the words: otherwise the next render would find new space.
        room = room - len(entry.text) if heading else 0
        shown.append(entry if room > 0 else entry._replace(text=counts))
    return shown[::-1]


def _to_minute(at_us: int) -> str:
    """Returns `2026-04-24 03:00 UTC`."""
    text = iso(at_us)
    return f"{text[:10]} {text[11:16]} UTC"
