"""What the rules' digest is worth: sessions with what came out of them, through the product's own door.

`python -m benchmarks.digest FOLDER` reads sessions in the format of `digest_sessions/README.md`, imports each as a
transcript of Claude Code into a workspace of its own making, reads back summaries and sentences, and prints how much of
what came out they say. `--misses` lists what is missing and what is wrong, `--shown` each sentence.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import unicodedata
import uuid
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from signet_sync.text.digest.session import outcome
from signet_sync.text.digest.summary import summary
from signet_sync.text.digest_mark import status_of

KINDS = ("decisions", "constraints", "blockers", "next_steps", "preferences")
SECTIONS = {
    "Decisions": "decisions", "Constraints": "constraints", "Blockers": "blockers", "Next steps": "next_steps",
    "Preferences": "preferences",
}  # fmt: skip
TRIVIAL = 80  # characters of a sentence about a session in which nothing came out
INSIDE = 12  # characters from which on an item may lie inside a passage that is none

Record = dict[str, Any]


class Given(NamedTuple):
    """What a digest says of a session."""

    sentence: str = ""
    status: str = ""
    items: Mapping[str, Sequence[str]] = {}


# ── the door ──


def digest(transcript: str, *, project: str | None, harness: str | None) -> str:
    """Returns the summary of a (sanitized) transcript; see `summary`."""
    return summary(outcome(transcript), project=project, harness=harness)


def records(session: Record) -> Iterator[Record]:
    """A session as the lines of a transcript of Claude Code."""
    parent: str | None = None
    made = 0

    def record(speaker: str, content: object, at: str) -> Record:
        nonlocal parent, made
        made += 1
        own = str(uuid.uuid5(uuid.UUID(session["id"]), str(made)))
        line = {
            "type": speaker, "uuid": own, "parentUuid": parent, "sessionId": session["id"], "timestamp": at,
            "cwd": session["project"], "message": {"role": speaker, "content": content},
        }  # fmt: skip
        parent = own
        return line

    for place, turn in enumerate(session["turns"]):
        if turn["role"] == "user":
            yield record("user", turn["text"], turn["at"])
        elif turn["role"] == "assistant":
            yield record("assistant", [{"type": "text", "text": turn["text"]}], turn["at"])
        else:
            tool, call = turn["tool"], f"toolu_{place}"
            use = {"type": "tool_use", "id": call, "name": tool["name"], "input": tool["input"]}
            yield record("assistant", [use], turn["at"])
            result = {"type": "tool_result", "tool_use_id": call, "content": tool["output"] or ""}
            yield record("user", [result], turn["at"])


class Workspace(NamedTuple):
    """A workspace, and the environment in which it is the usual one."""

    root: Path
    environment: Mapping[str, str]

    def run(self, *command: str) -> None:
        """Runs a command on it."""
        called = [sys.executable, "-m", "signet_sync", *command]
        subprocess.run(called, env=self.environment, check=True, stdout=subprocess.DEVNULL)

    def take(self, sessions: Sequence[Record]) -> None:
        """Imports sessions."""
        with tempfile.TemporaryDirectory(dir=self.root.parent) as source:
            for session in sessions:
                lines = "".join(json.dumps(record) + "\n" for record in records(session))
                Path(source, f"{session['id']}.jsonl").write_text(lines, "utf-8")
            self.run("import", "claude-code", source)


@contextmanager
def workspace(sessions: Sequence[Record]) -> Iterator[Workspace]:
    """A workspace into which the sessions were imported."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "workspace")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("SIGNET_", "XDG_"))}
        made = Workspace(
            root, {**kept, "HOME": folder, "SIGNET_STATE": f"{folder}/state", "SIGNET_WORKSPACE": str(root)}
        )
        made.run("init")
        if sessions:
            made.take(sessions)
        yield made


def imported(sessions: Sequence[Record]) -> dict[str, Given]:
    """What the product says of the sessions, by their ids."""
    with workspace(sessions) as (root, _):
        return dict(map(_read, sorted((root / "memory").glob("*--summary.md"))))


def _read(path: Path) -> tuple[str, Given]:
    front, _, body = path.read_text("utf-8").removeprefix("---\n").partition("\n---\n")
    fields = dict(line.split(": ", 1) for line in front.split("\n") if ": " in line)
    items: dict[str, list[str]] = {kind: [] for kind in KINDS}
    section = ""
    for line in body.split("\n"):
        if line.startswith("## "):
            section = SECTIONS.get(line[3:], "")
        elif section and line.startswith("- ") and not line.startswith("- … "):
            items[section].append(line[2:])
    sentence = json.loads(fields.get("memory_sentence", '""'))
    return json.loads(fields["session_id"]), Given(sentence, status_of(body) or "", items)


# ── the score ──


def plain(text: str) -> str:
    """A text as it is compared: NFKC, without case, with single blanks, without the marks of emphasis and code."""
    return " ".join(unicodedata.normalize("NFKC", re.sub(r"[`*]", "", text)).casefold().split())


def holds(text: str, groups: Sequence[Sequence[str]]) -> bool:
    """Whether a text has a key of each group; one of digits only stands alone."""
    told = plain(text)
    return bool(groups) and all(any(_has(told, plain(key)) for key in group) for group in groups)


def _has(told: str, key: str) -> bool:
    if key.isdigit():
        return re.search(rf"(?<!\d)(?<!\d[.,]){key}(?![.,]?\d)", told) is not None
    return bool(key) and key in told


def is_junk(text: str, passages: Sequence[str]) -> bool:
    """Whether a text holds a passage that is no item, or lies in one."""
    told = plain(text)
    return any(one and (one in told or (len(told) >= INSIDE and told in one)) for one in map(plain, passages))


def matched(edges: Sequence[Sequence[int]], size: int) -> list[int | None]:
    """For each of `size` gold items the given one that has it: as many as can be."""
    owner: list[int | None] = [None] * size

    def place(item: int, seen: set[int]) -> bool:
        for gold in edges[item]:
            if gold not in seen:
                seen.add(gold)
                held = owner[gold]
                if held is None or place(held, seen):
                    owner[gold] = item
                    return True
        return False

    for item in range(len(edges)):
        place(item, set())
    return owner


def score(session: Record, given: Given) -> tuple[Counter[str], list[str]]:
    """The counts of one session, and what is missing or wrong."""
    gold = session["gold"]
    counts: Counter[str] = Counter(sessions=1)
    notes: list[str] = []
    if gold["outcome_keys"]:
        hit = holds(given.sentence, gold["outcome_keys"])
        counts.update(outcomes=1, told=hit, junk_sentences=is_junk(given.sentence, gold["not_items"]))
        if not hit:
            notes.append(f"outcome: {given.sentence[:160]!r}")
    elif len(given.sentence) > TRIVIAL:
        notes.append(f"a sentence about nothing: {given.sentence[:160]!r}")
    counts["status"] = given.status == gold["status"] or (not given.status and gold["status"] == "question-only")
    if not counts["status"]:
        notes.append(f"status {given.status!r}, gold {gold['status']!r}")
    pooled: list[tuple[str, bool]] = []
    for kind in KINDS:
        items = [(text, is_junk(text, gold["not_items"])) for text in given.items.get(kind, ())]
        pooled += items
        right, missing, wrong = _compared(items, gold[kind], gold["optional_items"])
        counts.update({f"gold {kind}": len(gold[kind]), f"hit {kind}": right, f"given {kind}": right + len(wrong)})
        counts["junk"] += sum(junk for _, junk in items)
        notes += [f"missing {kind}: {text}" for text in missing] + [f"wrong {kind}: {text[:160]!r}" for text in wrong]
    every = [item for kind in KINDS for item in gold[kind]]
    right, _, wrong = _compared(pooled, every, gold["optional_items"])
    counts.update({"gold any": len(every), "hit any": right, "given any": right + len(wrong)})
    return counts, notes


def _compared(
    items: Sequence[tuple[str, bool]], gold: Sequence[Record], optional: Sequence[Record]
) -> tuple[int, list[str], list[str]]:
    """How many items are right, the gold that is missing, the items that are wrong; what is optional is neither."""
    edges = [
        [] if junk else [place for place, one in enumerate(gold) if holds(text, one["keys"])] for text, junk in items
    ]
    owner = matched(edges, len(gold))
    used = {item for item in owner if item is not None}
    missing = [one["text"] for one, item in zip(gold, owner, strict=True) if item is None]
    wrong = [
        text
        for place, (text, junk) in enumerate(items)
        if place not in used and (junk or not any(holds(text, one["keys"]) for one in optional))
    ]
    return len(used), missing, wrong


# ── the table ──


def share(part: int, whole: int) -> str:
    """A share as a percentage; a dash where there is nothing to share."""
    return f"{100 * part / whole:5.1f} %" if whole else "      -"


def table(total: Counter[str], languages: Mapping[str, Counter[str]], lengths: Sequence[int]) -> Iterator[str]:
    """The lines that are printed."""
    yield f"{total['sessions']} sessions"
    yield f"  outcome     {share(total['told'], total['outcomes'])}  ({total['told']} of {total['outcomes']})"
    yield f"  status      {share(total['status'], total['sessions'])}"
    yield f"  junk        {total['junk']} items, {total['junk_sentences']} sentences"
    yield f"  sentence    {sorted(lengths)[len(lengths) // 2] if lengths else 0} characters in the median"
    yield f"  {'kind':<12} {'gold':>5} {'given':>5} {'hit':>5}   found     right"
    for kind in ("gold", "given", "hit"):
        total[f"{kind} all"] = sum(total[f"{kind} {one}"] for one in KINDS)
    for name, label in [*((kind, kind.replace("_", " ")) for kind in KINDS), ("all", "by kind"), ("any", "any kind")]:
        gold, given, hit = (total[f"{what} {name}"] for what in ("gold", "given", "hit"))
        yield f"  {label:<12} {gold:>5} {given:>5} {hit:>5}   {share(hit, gold)}   {share(hit, given)}"
    yield f"  {'language':<12} {'sess.':>5}   outcome   status    found     right"
    for language, counts in sorted(languages.items(), key=lambda pair: (-pair[1]["sessions"], pair[0])):
        gold, given, hit = (sum(counts[f"{what} {kind}"] for kind in KINDS) for what in ("gold", "given", "hit"))
        said, stood = share(counts["told"], counts["outcomes"]), share(counts["status"], counts["sessions"])
        yield f"  {language:<12} {counts['sessions']:>5}   {said}   {stood}   {share(hit, gold)}   {share(hit, given)}"


def sessions_of(folder: Path) -> list[Record]:
    """The sessions of a folder, by file name."""
    read = (json.loads(path.read_text("utf-8")) for path in sorted(folder.glob("*.json")))
    return [session for session in read if isinstance(session, dict) and "gold" in session]


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints the table of a folder."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.digest", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--misses", action="store_true", help="list what is missing and what is wrong")
    parser.add_argument("--shown", action="store_true", help="print each sentence")
    options = parser.parse_args(arguments)
    sessions = sessions_of(options.folder)
    if not sessions:
        raise SystemExit(f"no sessions in {options.folder}: give a folder in the format of digest_sessions/README.md")
    given = imported(sessions)
    total: Counter[str] = Counter()
    languages: defaultdict[str, Counter[str]] = defaultdict(Counter)
    details: list[str] = []
    for session in sessions:
        said = given.get(session["id"], Given())
        counts, notes = score(session, said)
        total.update(counts)
        languages[session["gold"]["lang"]].update(counts)
        project = Path(session["project"]).name
        details += [f"  {said.status or '-'}: {said.sentence}"] if options.shown else []
        details += [f"  {project}, {session['started_at'][:10]}: {note}" for note in notes] if options.misses else []
    lengths = [len(said.sentence) for said in given.values() if said.sentence]
    print("\n".join([*table(total, languages, lengths), *details]))


if __name__ == "__main__":
    main()
