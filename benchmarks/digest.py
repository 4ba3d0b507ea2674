"""What the rules' digest says of real sessions, beside their last answer cut at 240 characters.

`python -m benchmarks.digest FOLDER` reads transcripts of any harness, `NN-slug.jsonl` (of OpenCode `.json`), with their
labels in `NN-slug.gold.json` beside them or in `--labels`; or sessions in the form of `benchmarks/labelled.py`. Labels
hold `outcome_keys`, `status` and `status_also`, `items` (`kind`, `text`, `keys`, `weight` 2 where the next agent does
worse without it), `optional_items` (neither right nor wrong) and `traps` (passages that look like items and are none).

`--notes FOLDER` adds hand-over lines of somebody who had not seen the labels, `NAME.json` with `end` and `stale`
(those of a turn long before the end), to none, a quarter, half and all of the sessions; of those, one in ten has the
lines of another session and two in ten have the stale ones. How often agents comply cannot be known here.

With `--model` the model of the user's own settings is asked about each session, within its budget and pauses.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from benchmarks.labelled import Record, holds, is_junk, records, sessions_of, share
from signet_sync.capture.harnesses import registry
from signet_sync.capture.harnesses.claude_code import transcript as claude_code
from signet_sync.capture.harnesses.markdown import render
from signet_sync.capture.harnesses.opencode import transcript as opencode
from signet_sync.capture.harnesses.reader import Conversation
from signet_sync.capture.hook import BUDGET
from signet_sync.digest.outcome import outcome
from signet_sync.digest.quotes import words_of
from signet_sync.digest.summary import headline, summary
from signet_sync.digest.turns import turns_of
from signet_sync.pages.project_context import project_text
from signet_sync.pages.sections import BoardInputs
from signet_sync.sessions.model_proposals import Propose, proposer
from signet_sync.settings import model
from signet_sync.storage.locations import user_file
from signet_sync.text.phrases import QuotedSession
from signet_sync.text.sanitizer import sanitize_counted
from signet_sync.text.sentences import SentenceSubject, passes_strict
from signet_sync.text.token_estimate import estimate_tokens

BASELINE = 240  # characters of the last answer
PRESENT, FALSE, STALE = (0.0, 0.25, 0.5, 1.0), 0.1, 0.3  # shares of sessions with notes; of those, up to which draw
OLD_KINDS = {"decisions": "decision", "constraints": "constraint", "blockers": "blocker", "next_steps": "next",
             "preferences": "preference"}  # fmt: skip


class Session(NamedTuple):
    """A labelled session with its (sanitized) transcript, the agent's last words, and what was read of it."""

    name: str
    labels: Record
    text: str
    last: str
    read: Conversation


class Result(NamedTuple):
    """What one session adds to the counts, and what is told of it with `--shown`."""

    counts: Counter[str]
    told: list[str]


def digest(transcript: str, *, project: str | None, harness: str | None) -> str:
    """Returns the summary of a (sanitized) transcript; see `summary`."""
    return summary(outcome(transcript), project=project, harness=harness)


# ── sessions ──


def read_sessions(folder: Path, labels: Path) -> Iterator[Session]:
    """Yields the sessions of a folder that have labels, by name."""
    for path in sorted(labels.glob("*.gold.json")):
        name = path.name.removesuffix(".gold.json")
        found = [one for one in (folder / f"{name}.jsonl", folder / f"{name}.json") if one.exists()]
        if found:
            yield _session(name, json.loads(path.read_text("utf-8")), conversation_of(found[0]))
    for session in sessions_of(folder):
        lines = [json.dumps(record).encode() for record in records(session)]
        yield _session(session["id"], _labels(session), claude_code.read(lines, file_name=f"{session['id']}.jsonl"))


def conversation_of(path: Path) -> Conversation:
    """Returns a transcript as the reader gives it that finds most in it."""
    if path.suffix == ".json":
        export = json.loads(path.read_text("utf-8"))
        rows = [
            opencode.MessageRow(
                one["info"]["id"], json.dumps(one["info"]), [(part["id"], json.dumps(part)) for part in one["parts"]]
            )
            for one in export["messages"]
        ]
        return opencode.read(export["info"], rows)
    lines = path.read_bytes().splitlines(keepends=True)
    read: list[Conversation] = [
        reader(iter(lines), file_name=path.name)
        for reader in map(registry.reader, registry.names())
        if reader is not opencode.read
    ]
    return max(read, key=lambda one: len(one.entries))


def _session(name: str, labels: Record, found: Conversation) -> Session:
    last = next((entry.text for entry in reversed(found.entries) if entry.kind == "assistant"), "")
    return Session(name, labels, sanitize_counted(render(found.entries))[0], last, found)


def with_note(session: Session, lines: Sequence[str], *, late: bool) -> Session:
    """Returns a session of which the last report, or one after three fifths of it, ends with an agent's lines."""
    entries = session.read.entries
    spoken = [place for place, entry in enumerate(entries) if entry.kind in ("user", "assistant")]
    reports = [
        place
        for place, following in zip_longest(spoken, spoken[1:])
        if entries[place].kind == "assistant" and (following is None or entries[following].kind == "user")
    ]
    if not reports or not lines:
        return session
    place = reports[-1] if late else reports[int(0.6 * (len(reports) - 1))]
    text = "\n\n".join([entries[place].text, "\n".join(lines)])
    changed = [*entries[:place], replace(entries[place], text=text), *entries[place + 1 :]]
    return session._replace(text=sanitize_counted(render(changed))[0])


def noted(sessions: Sequence[Session], folder: Path, share_present: float) -> Iterator[Session]:
    """Yields the sessions, a share of them with notes: most of the end, some stale, some of another session."""
    dice = random.Random(7)
    notes = {one.name: json.loads((folder / f"{one.name}.json").read_text("utf-8")) for one in sessions}
    for session in sessions:
        present, kind, other = dice.random() < share_present, dice.random(), dice.choice(sessions).name
        if not present:
            yield session
        elif kind < FALSE:
            yield with_note(session, notes[other]["end"], late=True)
        else:
            stale = kind < STALE
            yield with_note(session, notes[session.name]["stale" if stale else "end"], late=not stale)


def _labels(session: Record) -> Record:
    gold = session["gold"]
    items = [{**one, "kind": kind, "weight": 2} for name, kind in OLD_KINDS.items() for one in gold[name]]
    return {**gold, "project": session["project"], "started_at": session["started_at"], "items": items,
            "traps": gold["not_items"]}  # fmt: skip


# ── the score ──


def score(session: Session, propose: Propose | None = None) -> Result:
    """Compares what the rules say of a session, or a model where it answers, with its labels."""
    labels = session.labels
    outcome(session.text[:20_000] + "\n")  # what is loaded once is no cost of a session
    began = time.process_time_ns()
    turns_of(session.text)
    parsed = time.process_time_ns()
    found = outcome(session.text)
    counts = Counter(sessions=1, ns=time.process_time_ns() - parsed, parser=parsed - began, size=len(session.text))
    subject = _subject(session)
    said = headline(found, [subject]) or ""
    offered = propose(session.text, project=subject.project, harness=None) if propose is not None else None
    if offered is not None:
        found = found._replace(items=offered.items)
        holding = offered.sentence is not None and passes_strict(offered.sentence, subject)
        said = offered.sentence or "" if holding else headline(found, [subject]) or ""
        counts.update(answers=1, sentences=holding)
    counts["status"] = found.status in (labels["status"], *labels.get("status_also", ()))
    if labels["outcome_keys"]:
        told, cut = holds(said, labels["outcome_keys"]), holds(session.last[:BASELINE], labels["outcome_keys"])
        counts.update(outcomes=1, told=told, cut=cut, won=told and not cut, lost=cut and not told)
    texts = [item.text for item in found.items]
    junk = [is_junk(text, labels["traps"]) for text in texts]
    gold = sorted(labels["items"], key=lambda one: -one["weight"])
    owner = matched([[place for place, text in enumerate(texts) if not junk[place] and holds(text, one["keys"])]
                     for one in gold], len(texts))  # fmt: skip
    optional = labels.get("optional_items", ())
    neutral = [
        not junk[place] and owner[place] is None and any(holds(text, one["keys"]) for one in optional)
        for place, text in enumerate(texts)
    ]
    right = len(texts) - owner.count(None)
    counts.update(given=len(texts), right=right, neutral=sum(neutral), junk=sum(junk))
    quoted = quotes(session.text)
    there = {one for one in owner if one is not None}
    for place, one in enumerate(gold):
        if one["weight"] == 2:
            counts.update(heavy=1, stated=place in there, present=place in there or holds(quoted, one["keys"]))
    counts["quoted"] = len(quoted)
    shown = [f"{session.name}: {said or '-'} [{found.status}, labelled {labels['status']}]"]
    for place, item in enumerate(found.items):
        mark = "+" if owner[place] is not None else "!" if junk[place] else "~" if neutral[place] else "-"
        shown.append(f"  {mark} {item.kind} ({item.who}, {item.rule}): {item.text[:160]}")
    return Result(counts, shown)


def _subject(session: Session) -> SentenceSubject:
    project = f"/home/u/{Path(session.labels.get('project') or 'project').name}"
    day = (session.labels.get("started_at") or "2026-01-01")[:10]
    return SentenceSubject(session.text, project, "summary", day)


def quotes(text: str) -> str:
    """Returns what a session's start quotes of one with this transcript."""
    found = words_of([text]).quotes
    last = max((one.at_us or 0 for one in found), default=0)
    return project_text(BoardInputs(quoted=QuotedSession(last, found)), "", last, BUDGET, estimate_tokens).text


def matched(edges: Sequence[Sequence[int]], size: int) -> list[int | None]:
    """Returns for each of `size` items the label that it has: as many as can be, earlier labels first."""
    owner: list[int | None] = [None] * size

    def place(label: int, seen: set[int]) -> bool:
        for item in edges[label]:
            if item not in seen:
                seen.add(item)
                held = owner[item]
                if held is None or place(held, seen):
                    owner[item] = label
                    return True
        return False

    for label in range(len(edges)):
        place(label, set())
    return owner


# ── the table ──


def table(total: Counter[str]) -> Iterator[str]:
    """Yields the lines that are printed."""
    outcomes, judged = total["outcomes"], total["given"] - total["neutral"]
    rest, parser = total["ns"] - total["parser"], total["parser"]
    size = max(1, total["size"])
    yield f"{total['sessions']} sessions, {rest / size:.0f} ms a megabyte beside {parser / size:.0f} ms of the parser"
    if total["answers"]:
        yield f"  answers of the model      {total['answers']}, with a sentence that passes {total['sentences']}"
    yield f"  outcome in the sentence   {interval(total['told'], outcomes)}"
    yield f"  in the last answer, cut   {interval(total['cut'], outcomes)}"
    chance = sign_test(total["won"], total["lost"])
    yield f"  only in the one           {total['won']}, only in the other {total['lost']} (by chance: {chance:.3f})"
    yield f"  status                    {interval(total['status'], total['sessions'])}"
    yield f"  items given               {total['given']}, neutral {total['neutral']}, traps {total['junk']}"
    yield f"  items right               {interval(total['right'], judged)}"
    yield f"  weight 2, stated          {interval(total['stated'], total['heavy'])}"
    yield f"  weight 2, also in quotes  {interval(total['present'], total['heavy'])}"
    yield f"  quotes of a session       {total['quoted'] // max(1, total['sessions'])} characters"


def interval(part: int, whole: int) -> str:
    """Returns a share with the interval in which it lies in 95 of 100 samples (Wilson)."""
    if not whole:
        return share(part, whole)
    p, z = part / whole, 1.96
    middle, half = p + z * z / (2 * whole), z * math.sqrt(p * (1 - p) / whole + (z / (2 * whole)) ** 2)
    low, high = ((middle + sign * half) / (1 + z * z / whole) for sign in (-1, 1))
    return f"{share(part, whole)}  ({part} of {whole}; {100 * low:.0f} to {100 * high:.0f} %)"


def sign_test(won: int, lost: int) -> float:
    """Returns how often two equals would differ at least as much."""
    n = won + lost
    return min(1.0, 2.0 * sum(math.comb(n, k) for k in range(min(won, lost) + 1)) / float(2**n))


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints the table of a folder."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.digest", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--labels", type=Path, help="the folder of the labels, if it is another one")
    parser.add_argument("--only", type=Path, help="a file with the names of the sessions to read, one a line")
    parser.add_argument("--shown", action="store_true", help="print each sentence and each item")
    parser.add_argument("--notes", type=Path, help="a folder of hand-over lines; see above")
    parser.add_argument("--model", action="store_true", help="ask the model of your own settings about each session")
    options = parser.parse_args(arguments)
    propose = proposer(model.load(options.folder)[0], os.environ) if options.model else None
    if options.model and propose is None:
        raise SystemExit(f"no model is set up in {user_file()}")
    only = options.only.read_text("utf-8").split() if options.only else None
    sessions = [
        session
        for session in read_sessions(options.folder, options.labels or options.folder)
        if only is None or session.name in only
    ]
    if not sessions:
        raise SystemExit(f"no labelled sessions in {options.folder}")
    for present in PRESENT if options.notes else (0.0,):
        total: Counter[str] = Counter()
        for session in noted(sessions, options.notes, present) if options.notes else sessions:
            counts, told = score(session, propose)
            total.update(counts)
            if options.shown:
                print("\n".join(told))
        if options.notes:
            print(f"notes in {present:.0%}:")
        print("\n".join(table(total)))


if __name__ == "__main__":
    main()
