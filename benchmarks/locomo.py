"""Measures recall on LoCoMo: `python -m benchmarks.locomo DATA.json [--pooled] [--misses]`.

DATA.json has the form of `locomo10.json` (snap-research/locomo, CC BY-NC 4.0). Questions of category 5, which have no
answer, are left out. `--pooled` puts all conversations into one agent's memory.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.conversations import Group, Question, Talk, Turn, pooled, report
from signet_sync.formats.timestamps import instant_of

CATEGORIES = {1: "1 multi-hop", 2: "2 temporal", 3: "3 open-domain", 4: "4 single-hop"}


def groups(path: Path) -> list[Group]:
    """Reads the conversations with the questions that have an answer."""
    return [_group(one) for one in json.loads(path.read_text("utf-8"))]


def _group(document: dict[str, Any]) -> Group:
    name, said = document["sample_id"], document["conversation"]
    talks = tuple(_talks(name, said))
    of_turn = {turn.id: talk.id for talk in talks for turn in talk.turns}
    questions = []
    for one in document["qa"]:
        # Some name several turns in one string, or one with a leading zero.
        found = [f"D{int(d)}:{int(t)}" for d, t in re.findall(r"D(\d+):(\d+)", " ".join(one.get("evidence", ())))]
        turns = frozenset(turn for turn in (f"{name} {one}" for one in found) if turn in of_turn)
        if one["category"] in CATEGORIES and turns:
            sessions = frozenset(of_turn[turn] for turn in turns)
            questions.append(Question(str(one["question"]), CATEGORIES[one["category"]], sessions, turns))
    return Group(name, talks, tuple(questions))


def _talks(name: str, said: dict[str, Any]) -> Iterator[Talk]:
    for number in range(1, 1_000):
        if f"session_{number}" not in said:
            continue
        turns = tuple(
            Turn(
                f"{name} {one['dia_id']}",
                "user" if one["speaker"] == said["speaker_a"] else "assistant",
                f"{one['speaker']}: {one['text']}{_photo(one)}",
            )
            for one in said[f"session_{number}"]
        )
        at = datetime.strptime(said[f"session_{number}_date_time"], "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
        yield Talk(f"{name}-session-{number}", instant_of(at), turns)


def _photo(turn: dict[str, Any]) -> str:
    return f" [shares {turn['blip_caption']}]" if turn.get("blip_caption") else ""


def main() -> int:
    """See the module."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.locomo", description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--pooled", action="store_true", help="all conversations in one agent")
    parser.add_argument("--half", type=int, choices=(0, 1), help="every second question only")
    parser.add_argument("--misses", action="store_true", help="list questions without an answer among the first five")
    given = parser.parse_args()
    asked = groups(given.data)
    if given.half is not None:
        asked = [group._replace(questions=group.questions[given.half :: 2]) for group in asked]
    report([pooled(asked)] if given.pooled else asked, misses=given.misses)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
