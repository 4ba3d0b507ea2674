"""Renders DREAMS.md: what each sweep promoted and why, in words for a person."""

from __future__ import annotations

from collections.abc import Sequence

from signet_sync.formats.handle import handle
from signet_sync.formats.timestamps import day_of, iso
from signet_sync.memories.promotion_score import Dream, SweepView, order, weighted
from signet_sync.pages.sections import plain
from signet_sync.text.phrases import counted

TITLE = "# DREAMS.md — Dream Diary"
INTRO = """\
What is looked up again and again, by different questions, rises into the *Dreamed* section of MEMORY.md by itself. This
page tells, sweep by sweep and oldest first, what rose and why.

Something should not have risen? `signet-sync dream --undo ID` takes it out of *Dreamed* for good and keeps the memory;
`signet-sync forget ID` takes the memory away, here and everywhere else. Its ID stands at the end of its line, after the
`^`."""
NOTHING = "Nothing has risen yet."

# Characters of the newest entries; older ones are left out.
LONGEST = 200_000


def diary(sweeps: Sequence[SweepView]) -> str:
    """Returns the generated text of DREAMS.md: an entry for each sweep that promoted, oldest first."""
    entries: list[str] = []
    room = LONGEST
    for sweep in reversed(sweeps):
        if sweep.promoted <= 0 and not sweep.dreams:
            continue
        entry = _entry(sweep)
        room -= len(entry)
        if room < 0:
            break
        entries.append(entry)
    return "\n\n".join([TITLE, INTRO, *(entries[::-1] or [NOTHING])])


def _entry(sweep: SweepView) -> str:
    dreams = sorted(sweep.dreams, key=lambda dream: order(dream.memory))
    bullets = list(map(_bullet, dreams))
    promoted, at = max(sweep.promoted, len(dreams)), iso(sweep.at_us)
    lines = [
        f"## Dreamed {at[:10]} {at[11:16]} UTC",
        "",
        f"- candidates: {sweep.candidates}",
        f"- promoted: {promoted}",
        f"- skipped (already promoted): {sweep.skipped}",
        "",
        "### Promoted",
        "",
        *bullets,
    ]
    return "\n".join([*lines, f"- {promoted - len(bullets)} forgotten since"] if promoted > len(bullets) else lines)


def _bullet(dream: Dream) -> str:
    """Returns `- … — found 5 times by 3 different queries on 3 days, …; score 0.67 (frequency 0.92, …) ^m-…`."""
    memory = dream.memory
    signals = ", ".join(f"{name} {value:.2f}" for name, value in weighted(memory.signals).items())
    queries, days = counted(memory.queries, "query", "different queries"), counted(memory.signals.unique_days, "day")
    found = f"found {counted(memory.signals.recall_count, 'time')} by {queries} on {days}"
    why = f"{found}, {_place(memory.signals.relevance)}, last on {day_of(memory.last_us)}"
    undone = f"; taken out of *Dreamed* on {day_of(dream.undone_us)}" if dream.undone_us is not None else ""
    return (
        f"- {plain(dream.text) or '…'} — {why}; score {memory.score:.2f} ({signals}){undone} {handle(memory.memory_id)}"
    )


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
