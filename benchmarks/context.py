"""What a session's context holds: the share of what is still valid, of lines still true, and words per token.

`python -m benchmarks.context FOLDER` reads sessions in the format of `benchmarks/labelled.py` and imports them one
after the other. At the start of each session of a project, and a day after its last one, it compares the context with
what earlier sessions of the project came to. `--half 0` or `1` takes every second project: one half is for tuning, the
other one confirms.

An item is valid from the end of its session until a later session of the project retires it. A decision or constraint
is retired by a decision or outcome with a word such as *drop*, *instead of* or *no longer* directly before one of its
keys; a blocker or next step by an outcome that hits all of its keys. It is held if one line hits all of its keys. A
line is true unless it fits only retired items, or holds a passage that is no item; *recognised* lines fit an item
(optional ones too), an outcome, or a preference of an earlier session of any project.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.labelled import Record, Workspace, holds, is_junk, plain, sessions_of, workspace
from signet_sync.formats.timestamps import DAY, parse_instant
from signet_sync.pages import context
from signet_sync.pages.project_context import project_text
from signet_sync.pages.store.views import project_inputs
from signet_sync.storage import locations
from signet_sync.storage.database.connection import Database
from signet_sync.text.token_estimate import estimate_tokens

LIMITS = (1_000, 2_000)
STANDING, OPEN = ("decisions", "constraints"), ("blockers", "next_steps")
KINDS = (*STANDING, *OPEN, "preferences")
_RETIRES = re.compile(
    r"\b(?:drop\w*|instead of|rather than|no longer|not any ?more|replac\w+|retire\w*|statt|nicht mehr|вместо|больше не"
    r"|en lugar de|ya no)\b([^,;.]{0,40})"
)
_HANDLE, _WORD = re.compile(r" \^[a-z]-[a-z2-7]+$"), re.compile(r"[^\W\d_]\w*")


class Item(NamedTuple):
    """A gold item, its kind and the session that has it."""

    kind: str
    text: str
    keys: Sequence[Sequence[str]]
    session: Record


class Moment(NamedTuple):
    """An instant at which a context is made, and the sessions before: of the project, and of all."""

    at_us: int
    project: str
    earlier: Sequence[Record]
    anywhere: Sequence[Record]


def items_of(sessions: Sequence[Record]) -> Iterator[Item]:
    """The gold items of sessions."""
    for session in sessions:
        for kind in KINDS:
            yield from (Item(kind, one["text"], one["keys"], session) for one in session["gold"][kind])


def is_retired(item: Item, later: Sequence[Record]) -> bool:
    """Whether one of the later sessions of its project retires an item."""
    for session in later:
        gold = session["gold"]
        if item.kind in OPEN and holds(gold["outcome"], item.keys):
            return True
        said = [gold["outcome"], *(one["text"] for one in gold["decisions"])] if item.kind in STANDING else []
        for rest in (rest for text in said for rest in _RETIRES.findall(plain(text))):
            keys = (plain(key) for group in item.keys for key in group)
            if any(len(key) > 2 and not key[:1].isdigit() and key in rest for key in keys):
                return True
    return False


def measure(lines: Sequence[str], moment: Moment, misses: list[str]) -> Counter[str]:
    """Compares lines with what the sessions before came to."""
    earlier = moment.earlier
    wishes = [one["keys"] for session in moment.anywhere for one in session["gold"]["preferences"]]
    counts: Counter[str] = Counter()
    valid: list[Item] = []
    retired: list[Item] = []
    for item in items_of(earlier):
        place = earlier.index(item.session)
        (retired if is_retired(item, earlier[place + 1 :]) else valid).append(item)
    for item in valid:
        held = any(holds(line, item.keys) for line in lines)
        counts.update({f"valid {item.kind}": 1, f"held {item.kind}": held})
        if not held:
            misses.append(f"missing {item.kind}: {item.text}")
    for line in lines:
        fits = any(holds(line, item.keys) for item in valid)
        outdated = not fits and any(holds(line, item.keys) for item in retired)
        junk = any(is_junk(line, session["gold"]["not_items"]) for session in earlier)
        others = [
            keys
            for session in earlier
            for keys in [session["gold"]["outcome_keys"], *(one["keys"] for one in session["gold"]["optional_items"])]
        ]
        known = fits or any(holds(line, keys) for keys in (*others, *wishes))
        counts.update(lines=1, true=not outdated and not junk, outdated=outdated, junk=junk, recognised=known)
        if outdated or junk:
            misses.append(f"{'outdated' if outdated else 'junk'}: {line}")
        elif not known:
            misses.append(f"unknown: {line}")
    return counts


def lines_at(database: Database, moment: Moment, limit: int) -> tuple[list[str], str]:
    """The lines on the project and the person in a context, without bullets and handles, and all of its text."""
    name, belongs = context.name_project(moment.project)
    seen = project_inputs(database, "default", moment.at_us, belongs)
    text = project_text(seen, name, moment.at_us, limit, estimate_tokens).text
    lines = []
    for part in re.split(r"^(?==== )", text, flags=re.MULTILINE):
        if not part.startswith("=== Other"):
            lines += [_HANDLE.sub("", line[2:]) for line in part.split("\n") if line.startswith("- ")]
    return lines, text


def moments(sessions: Sequence[Record]) -> Iterator[tuple[Record | None, list[Moment]]]:
    """Yields sessions in time order, each with the contexts to make before it; then those after the last."""
    ordered = sorted(sessions, key=lambda one: one["started_at"])
    before: dict[str, list[Record]] = {}
    for place, session in enumerate(ordered):
        project = session["project"]
        earlier = before.setdefault(project, [])
        start = parse_instant(session["started_at"]) or 0
        yield session, [Moment(start, project, tuple(earlier), ordered[:place])] if earlier else []
        earlier.append(session)
    ends = {project: parse_instant(earlier[-1]["ended_at"]) or 0 for project, earlier in before.items()}
    yield None, [Moment(ends[project] + DAY, project, tuple(earlier), ordered) for project, earlier in before.items()]


def run(sessions: Sequence[Record], projects: set[str]) -> tuple[dict[int, Counter[str]], list[str]]:
    """Imports sessions one by one; returns the counts by limit, and what was missing at the largest."""
    totals: dict[int, Counter[str]] = {limit: Counter() for limit in LIMITS}
    notes: list[str] = []
    with workspace([]) as place:
        for session, due in moments(sessions):
            for moment in due:
                if moment.project in projects:
                    _take(place, moment, totals, notes)
            if session is not None:
                place.take([session])
    return totals, notes


def _take(place: Workspace, moment: Moment, totals: dict[int, Counter[str]], notes: list[str]) -> None:
    database = Database(locations.locate(str(place.root), place.environment).database, readonly=True)
    try:
        for limit in LIMITS:
            lines, text = lines_at(database, moment, limit)
            misses: list[str] = []
            totals[limit] += measure(lines, moment, misses)
            totals[limit].update(
                contexts=1, tokens=estimate_tokens(text), words=len(_WORD.findall(_HANDLE.sub("", text)))
            )
    finally:
        database.connection.close()
    notes += [f"{Path(moment.project).name} after {len(moment.earlier)}: {one}" for one in misses]


def figures(counts: Counter[str]) -> dict[str, Any]:
    """The figures of one limit; shares between 0 and 1."""
    held, valid = (sum(counts[f"{what} {kind}"] for kind in (*STANDING, *OPEN)) for what in ("held", "valid"))
    return {
        "contexts": counts["contexts"],
        "valid": valid,
        "held": held / valid if valid else 0.0,
        **{
            kind: counts[f"held {kind}"] / counts[f"valid {kind}"] if counts[f"valid {kind}"] else None
            for kind in KINDS
        },
        "lines": counts["lines"],
        "true": counts["true"] / max(counts["lines"], 1),
        "outdated": counts["outdated"],
        "junk": counts["junk"],
        "recognised": counts["recognised"] / max(counts["lines"], 1),
        "tokens": counts["tokens"] / max(counts["contexts"], 1),
        "words_per_token": counts["words"] / max(counts["tokens"], 1),
    }


def table(found: dict[int, dict[str, Any]]) -> Iterator[str]:
    """The lines that are printed."""
    yield f"{'':<18}" + "".join(f"{limit:>12,}" for limit in found)
    for name in next(iter(found.values())):
        row = []
        for values in found.values():
            value = values[name]
            is_share = name in ("held", "true", "recognised", *KINDS)
            if value is None:
                row.append("-")
            elif is_share:
                row.append(f"{100 * value:.1f} %")
            else:
                row.append(f"{value:.2f}" if name == "words_per_token" else f"{value:,.0f}")
        yield f"{name.replace('_', ' '):<18}" + "".join(f"{one:>12}" for one in row)


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints the table of a folder."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.context", description=__doc__)
    parser.add_argument("folder", type=Path, nargs="+")
    parser.add_argument("--half", type=int, choices=(0, 1))
    parser.add_argument("--misses", action="store_true", help="list what is missing, outdated or unknown")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args(arguments)
    sessions = [session for folder in options.folder for session in sessions_of(folder)]
    if not sessions:
        raise SystemExit("give a folder in the format of benchmarks/labelled.py")
    every = sorted({session["project"] for session in sessions})
    projects = {one for place, one in enumerate(every) if options.half is None or place % 2 == options.half}
    totals, notes = run([one for one in sessions if one["project"] in projects], projects)
    found = {limit: figures(counts) for limit, counts in totals.items()}
    print(json.dumps(found) if options.json else "\n".join([*table(found), *(notes if options.misses else ())]))


if __name__ == "__main__":
    main()
