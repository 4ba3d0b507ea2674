"""Public sets of conversations: what is read of their formats, and that what is found counts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import conversations, locomo, longmemeval
from signet_sync.formats.timestamps import iso


def said(*words: str, answer: int = -1) -> list[dict[str, Any]]:
    """A session: words of the user and the assistant in turn, one of which may have the answer."""
    return [
        {"role": ("user", "assistant")[place % 2], "content": text, "has_answer": place == answer}
        for place, text in enumerate(words)
    ]


def asked(name: str, kind: str, question: str, sessions: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """A question of LongMemEval; sessions that answer have `answer` in their ids."""
    return {
        "question_id": name, "question_type": kind, "question": question, "answer": 3,
        "question_date": "2023/06/01 (Thu) 10:00",
        "haystack_session_ids": list(sessions),
        "haystack_dates": [f"2023/05/{day:02} (Sat) 02:21" for day in range(20, 20 + len(sessions))],
        "haystack_sessions": list(sessions.values()),
        "answer_session_ids": [one for one in sessions if "answer" in one],
    }  # fmt: skip


ARCHERY = said("I bought a longbow for archery.", "Enjoy!", "It is made of yew.", answer=2)
BAKING = said("How long does sourdough rise?", "About twelve hours at room temperature.", answer=1)
EMPTY: list[dict[str, Any]] = said("", " ")
QUESTIONS = [
    asked("q1", "single-session-user", "What wood is my longbow made of?", {"chat_1": BAKING, "answer_1": ARCHERY}),
    asked("q2", "single-session-assistant", "How long does sourdough rise?", {"answer_2": BAKING, "chat_2": EMPTY}),
    asked("q3", "multi-session", "What about quokkas?", {"answer_3": ARCHERY, "chat_3": BAKING}),
    asked("q4_abs", "multi-session", "How many kayaks have I got?", {"chat_4": ARCHERY}),
]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A file in the form of LongMemEval."""
    path = tmp_path / "longmemeval.json"
    path.write_text(json.dumps(QUESTIONS))
    return path


def test_each_question_of_longmemeval_has_its_sessions_and_the_turns_that_answer(data: Path) -> None:
    read = longmemeval.groups(data)
    assert [group.name for group in read] == ["q1", "q2", "q3"], "without an answer there is nothing to find"
    (first,) = read[0].questions
    assert first.sessions == {"q1-session-2"} and first.turns == {"q1 2:3"}
    assert first.category == "single-session-user"
    assert [talk.id for talk in read[1].talks] == ["q2-session-1"], "nothing was said in the other one"
    assert iso(read[0].talks[1].at_us) == "2023-05-21T02:21:00.000Z"
    names = json.dumps([talk for group in read for talk in group.talks])
    assert "answer_" not in names, "an id that says it would be found"


def test_what_is_found_counts_and_what_is_not_does_not(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    conversations.report(longmemeval.groups(data), misses=True)
    shown = capsys.readouterr().out
    rows = {line.split(" | ")[0]: line.split(" | ") for line in shown.splitlines() if line.startswith("| ")}
    assert rows["| single-session-user"][1:4] == ["1", "100.0", "100.0"]
    assert rows["| single-session-assistant"][1:4] == ["1", "100.0", "100.0"]
    assert rows["| multi-session"][1:4] == ["1", "0.0", "0.0"]
    assert rows["| signet-sync"][1] == rows["| bm25, a row a turn, stop words out"][1] == "66.7"
    assert "bm25, a row a session" in shown
    assert shown.splitlines()[-1] == "multi-session: What about quokkas?"


def test_turns_of_locomo_are_named_by_its_evidence(tmp_path: Path) -> None:
    path = tmp_path / "locomo.json"
    turns = [
        {"speaker": "Ada", "dia_id": "D1:1", "text": "I row."},
        {"speaker": "Jo", "dia_id": "D1:2", "text": "I sew."},
    ]
    talk = {"speaker_a": "Ada", "speaker_b": "Jo", "session_1": turns, "session_1_date_time": "1:56 pm on 8 May, 2023"}
    qa = [
        {"question": "What does Jo do?", "category": 4, "evidence": ["D1:02"]},
        {"question": "What does Eve do?", "category": 5, "evidence": ["D1:1"]},
    ]
    path.write_text(json.dumps([{"sample_id": "c1", "conversation": talk, "qa": qa}]))
    (group,) = locomo.groups(path)
    (question,) = group.questions
    assert question.turns == {"c1 D1:2"} and question.sessions == {"c1-session-1"}
    assert [turn.role for turn in group.talks[0].turns] == ["user", "assistant"]
    assert iso(group.talks[0].at_us) == "2023-05-08T13:56:00.000Z"
