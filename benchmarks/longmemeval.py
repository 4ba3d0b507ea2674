"""Measures recall on LongMemEval: `python -m benchmarks.longmemeval DATA.json [--every N] [--misses]`.

DATA.json has the form of `longmemeval_s.json` and `longmemeval_oracle.json` (xiaowu0162/LongMemEval, MIT). Each
question has sessions of its own, so a workspace of its own. Questions without an answer (`…_abs`) are left out.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.conversations import Group, Question, Talk, Turn, report
from signet_sync.formats.timestamps import instant_of

_NO_ANSWER = "_abs"


def groups(path: Path) -> list[Group]:
    """Reads the questions that have an answer, each with its sessions."""
    documents = json.loads(path.read_text("utf-8"))
    return [_group(one) for one in documents if not one["question_id"].endswith(_NO_ANSWER)]


def _group(document: dict[str, Any]) -> Group:
    name, answering = document["question_id"], set(document["answer_session_ids"])
    sessions, turns = set(), set()
    talks = []
    for session, talk, said in _talks(name, document):
        talks.append(talk)
        if session in answering:
            sessions.add(talk.id)
            turns |= {turn.id for turn, one in zip(talk.turns, said, strict=True) if one.get("has_answer")}
    question = Question(document["question"], document["question_type"], frozenset(sessions), frozenset(turns))
    return Group(name, tuple(talks), (question,))


def _talks(name: str, document: dict[str, Any]) -> Iterator[tuple[str, Talk, list[dict[str, Any]]]]:
    """Yields the sessions under numbers: their ids in the data say which of them answer."""
    every = zip(
        document["haystack_session_ids"], document["haystack_dates"], document["haystack_sessions"], strict=True
    )
    for number, (session, date, records) in enumerate(every, 1):
        said = [one for one in records if one["content"].strip()]
        turns = tuple(
            Turn(f"{name} {number}:{place}", one["role"], one["content"]) for place, one in enumerate(said, 1)
        )
        if turns:
            yield session, Talk(f"{name}-session-{number}", _instant(date), turns), said


def _instant(date: str) -> int:
    return instant_of(datetime.strptime(date, "%Y/%m/%d (%a) %H:%M").replace(tzinfo=UTC))


def main() -> int:
    """See the module."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.longmemeval", description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--every", type=int, default=1, metavar="N", help="every N-th question only")
    parser.add_argument("--misses", action="store_true", help="list questions without an answer among the first five")
    given = parser.parse_args()
    report(groups(given.data)[:: given.every], misses=given.misses)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
