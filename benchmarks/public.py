"""Recall on public questions, beside plain bm25, without a language model. You bring the data.

`python -m benchmarks.public KIND PATH [--skip N]` makes a vault of each conversation through the product, asks every
question once, and prints its table with intervals of 95 %:

* `locomo`: `data/locomo10.json` of snap-research/locomo (CC BY-NC 4.0); `--skip 3` leaves out those we tuned on.
* `beam`: a folder of chats, such as `chats/100K` of mohammadtavakoli78/BEAM. A session is a turn with what follows it;
  what answers are the messages in `source_chat_ids`. One row of the table a kind of question; of those without an
  answer (`abstention`) the share that is answered as if known.
* `swe-contextbench`: the folder `cases` of jiayuanz3/SWEContextBench, with its `Lite` tasks and `Past Experience`,
  transcripts of Claude Code. By a task's title, the sessions that edited a file of its patch.
* `real`: sessions labelled as in `benchmarks/recall_sets.py`.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks import recall, recall_sets
from benchmarks.ground import machine
from benchmarks.recall import Found, answers, difference, share
from benchmarks.recall_sets import Question, Session, Set, ended
from signet_sync.formats.timestamps import DAY, instant_of

UNANSWERED = "abstention"
_PATCHED = re.compile(r"^\+\+\+ b/(\S+)", re.MULTILINE)
_MARK = re.compile(r"\s*->-> [\d,]+\s*$")  # with which BEAM numbers the questions of a person


def beam(folder: Path) -> Iterator[tuple[Set, list[str]]]:
    """Yields each chat of a folder, and the kinds of its questions."""
    for path in sorted(folder.glob("*/chat.json"), key=lambda one: one.parent.name.zfill(9)):
        name = f"{folder.name}-{path.parent.name}"
        session_of: dict[int, str] = {}
        sessions, kinds, at_us = [], [], 0
        for batch in json.loads(path.read_text("utf-8")):
            for number, messages in enumerate(batch["turns"]):
                at_us = max(at_us + DAY // 100, _anchored(messages, batch))
                session = f"{name}-{batch['batch_number']}-{number}"
                session_of.update((one["id"], session) for one in messages)
                said = [(one["role"].capitalize(), _MARK.sub("", one["content"])) for one in messages]
                sessions.append(Session(session, ended(session, at_us, said)))
        questions = []
        document = json.loads((path.parent / "probing_questions" / "probing_questions.json").read_text("utf-8"))
        for kind, asked in document.items():
            for one in asked:
                found = frozenset(session_of[number] for number in _numbers(one.get("source_chat_ids")) & {*session_of})
                if found or kind == UNANSWERED:
                    questions.append(Question(one["question"], found))
                    kinds.append(kind)
        yield Set(name, tuple(sessions), tuple(questions)), kinds


def _anchored(messages: Sequence[dict[str, Any]], batch: dict[str, Any]) -> int:
    """The day that a turn or its batch names."""
    named = next((one["time_anchor"] for one in messages if one.get("time_anchor")), batch.get("time_anchor"))
    return instant_of(datetime.strptime(named, "%B-%d-%Y").replace(tzinfo=UTC)) if named else 0


def _numbers(value: object) -> set[int]:
    """All numbers in a nested value."""
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return {value} if isinstance(value, int) else {number for part in parts for number in _numbers(part)}


def swe_contextbench(folder: Path) -> Iterator[tuple[Set, list[str]]]:
    """Yields the sessions of a folder with the tasks whose files some of them edited."""
    sessions, edited = [], {}
    for path in sorted((folder / "SWEContextBench Lite Past Experience").glob("*.jsonl")):
        text = path.read_text("utf-8")
        name = recall_sets.session_id(text)
        sessions.append(Session(name, text, "claude-code"))
        edited[name] = [_slashed(one) for one in re.findall(r'"file_path":\s*"([^"]+)"', text)]
    questions = []
    for path in sorted((folder / "SWEContextBench Lite").glob("*.json")):
        task = json.loads(path.read_text("utf-8"))
        files = tuple(f"/{one}" for one in _PATCHED.findall(task["patch"]))
        found = frozenset(name for name, paths in edited.items() if any(path.endswith(files) for path in paths))
        if found:
            questions.append(Question(task["problem_statement"].strip().split("\n")[0], found))
    yield Set("swe-contextbench", tuple(sessions), tuple(questions)), ["title"] * len(questions)


def _slashed(path: str) -> str:
    return "/" + path.replace("\\\\", "/").lstrip("/")


def table(sets: Iterator[tuple[Set, list[str]]], keep: Path | None) -> Iterator[str]:
    """Yields the rows: of each kind of question and of all, each system, and how far ours is from the others."""
    found: dict[str, dict[str, list[Found]]] = defaultdict(lambda: defaultdict(list))
    for asked, kinds in sets:
        for system, some in answers(asked, keep).items():
            for kind, one in zip(kinds, some, strict=True):
                found[kind][system].append(one)
                if kind != UNANSWERED and len({*kinds}) > 1:
                    found["all"][system].append(one)
        print(f"{asked.name}: {len(asked.sessions)} sessions, {len(kinds)} questions", file=sys.stderr, flush=True)
    unanswered = found.pop(UNANSWERED, {})
    for kind, systems in sorted(found.items(), key=lambda one: (one[0] == "all", one[0])):
        places = {system: [one.place for one in some] for system, some in systems.items()}
        for system, some in systems.items():
            cells = [share([one.place <= k for one in some]) for k in (1, 5, 10)]
            told = [one.shown for one in some if one.question.turns or one.question.keys]
            apart = [difference(places["signet-sync"], places[system], k) for k in (1, 5, 10)]
            ours = " | | |" if system == "signet-sync" else f" {' | '.join(apart)} |"
            yield f"| {kind}, {len(some)} | {system} | {' | '.join(cells)} | {share(told) if told else '–'} |{ours}"
    for system, some in unanswered.items():
        known = [any(hit.known for hit in one.hits) for one in some]
        yield f"| {UNANSWERED}, {len(some)} | {system} | answered as if known: {share(known)} | | | | | | |"


HEAD = "| questions | system | @1 | @5 | @10 | shown | ours more @1 | @5 | @10 |\n|---|---|---|---|---|---|---|---|---|"


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.public", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kind", choices=("locomo", "beam", "swe-contextbench", "real"))
    parser.add_argument("path", type=Path)
    parser.add_argument("--skip", type=int, default=0, metavar="N", help="leave out so many conversations at the start")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the vaults here, and take those that are")
    given = parser.parse_args(arguments)
    if given.kind in ("locomo", "real"):
        sets = recall_sets.locomo(given.path) if given.kind == "locomo" else [recall_sets.real(given.path)]
        asked = [(one, [given.kind] * len(one.questions)) for one in sets]
    else:
        asked = list(beam(given.path) if given.kind == "beam" else swe_contextbench(given.path))
    print(f"{machine()}\n\n{HEAD}")
    recall.show(table(iter(asked[given.skip :]), given.keep))
    return 0


if __name__ == "__main__":
    sys.exit(main())
