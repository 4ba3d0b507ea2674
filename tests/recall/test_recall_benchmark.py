"""The benchmark of recall: what it reads of its sets, and that what is found counts and what is not does not."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from benchmarks import public, recall_sets, recall_speed
from benchmarks import recall as benchmark
from benchmarks.labelled import Workspace
from signet_sync.formats.ids import token_of

SAID = [
    "I bought a longbow for archery, made of yew. The quiver is of leather.",
    "Sourdough rises for twelve hours at room temperature, then it is baked.",
    "The kiln cools by forty degrees an hour. The glaze is celadon.",
]
ASKED = ["Which longbow was bought?", "Why does sourdough rise?"]


@pytest.fixture
def talks(tmp_path: Path) -> recall_sets.Set:
    """Three sessions in the form of LoCoMo; two are asked for, by a question each."""
    conversation: dict[str, object] = {"speaker_a": "Ada", "speaker_b": "Jo"}
    for number, text in enumerate(SAID, 1):
        first, second = text.split(". ") if ". " in text else (text, "Fine.")
        conversation[f"session_{number}_date_time"] = f"1:56 pm on {number} May, 2023"
        conversation[f"session_{number}"] = [
            {"speaker": "Ada", "dia_id": f"D{number}:1", "text": first},
            {"speaker": "Jo", "dia_id": f"D{number}:2", "text": second},
        ]
    qa = [
        {"question": question, "category": 4, "evidence": [f"D{number}:01"]} for number, question in enumerate(ASKED, 1)
    ]
    qa.append({"question": "What does Eve do?", "category": 5, "evidence": ["D1:1"]})
    path = tmp_path / "locomo.json"
    path.write_text(json.dumps([{"sample_id": "c1", "conversation": conversation, "qa": qa}]))
    return recall_sets.locomo(path)[0]


def test_turns_of_locomo_are_named_by_its_evidence(talks: recall_sets.Set) -> None:
    assert [one.text for one in talks.questions] == ASKED, "one of category 5 has no answer"
    first = talks.questions[0]
    assert first.sessions == {"c1-session-1"} and first.turns[0].startswith("Ada: I bought a longbow")
    ended = json.loads(talks.sessions[0].text)
    assert ended["captured_at"] == "2023-05-01T13:56:00.000Z"
    assert "## Assistant · 2023-05-01T13:56:20.000Z\n\nJo: The quiver" in ended["transcript"]


def test_public_questions_are_read_by_kind(tmp_path: Path) -> None:
    chat = tmp_path / "chats/3"
    (chat / "probing_questions").mkdir(parents=True)
    turns = [
        [{"role": "user", "id": 2 * n, "time_anchor": "March-15-2024", "content": f"{one} ->-> {n},1"},
         {"role": "assistant", "id": 2 * n + 1, "content": "Fine."}]
        for n, one in enumerate(SAID)
    ]  # fmt: skip
    (chat / "chat.json").write_text(json.dumps([{"batch_number": 1, "turns": turns, "time_anchor": None}]))
    asked = {
        "abstention": [{"question": "What does Eve do?"}],
        "knowledge_update": [{"question": ASKED[1], "source_chat_ids": {"original": [2], "updated": [5, 99]}}],
        "summarization": [{"question": "All of it?"}],
    }
    (chat / "probing_questions/probing_questions.json").write_text(json.dumps(asked))
    ((found, kinds),) = public.beam(tmp_path / "chats")
    assert kinds == ["abstention", "knowledge_update"] and found.name == "chats-3"
    assert [one.sessions for one in found.questions] == [frozenset(), {"chats-3-1-1", "chats-3-1-2"}]
    times = [json.loads(one.text)["captured_at"] for one in found.sessions]
    assert times == sorted({*times}) and times[0] == "2024-03-15T00:00:00.000Z"
    assert "->->" not in found.sessions[0].text

    folder = tmp_path / "swe"
    past, lite = folder / "SWEContextBench Lite Past Experience", folder / "SWEContextBench Lite"
    past.mkdir(parents=True)
    lite.mkdir()
    for name, path in (("a", "/home/ada/shop/src/queue.py"), ("b", "/home/ada/shop/src/log.py")):
        edit = {"type": "tool_use", "name": "Edit", "id": "t", "input": {"file_path": path}}
        line = {"type": "assistant", "sessionId": name, "message": {"role": "assistant", "content": [edit]}}
        (past / f"{name}.jsonl").write_text("torn\n" + json.dumps(line) + "\n")
    tasks = [
        {"problem_statement": "Queue waits\n\nFor ever.", "patch": "--- a/src/queue.py\n+++ b/src/queue.py\n"},
        {"problem_statement": "Nobody did it", "patch": "--- a/other/queue.py\n+++ b/other/queue.py\n"},
    ]
    for number, one in enumerate(tasks):
        (lite / f"{number}.json").write_text(json.dumps(one))
    ((found, _),) = public.swe_contextbench(folder)
    assert [(one.text, one.sessions) for one in found.questions] == [("Queue waits", {"a"})]


def test_a_broken_ranking_and_texts_that_show_nothing_are_told(
    talks: recall_sets.Set, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def figures(found: list[benchmark.Found]) -> list[int]:
        return [sum(one.place <= 1 for one in found), sum(one.place <= 5 for one in found), sum(o.shown for o in found)]

    found = benchmark.answers(talks, tmp_path)
    assert {name: figures(some) for name, some in found.items()} == {name: [2, 2, 2] for name in found}
    token = token_of("default", "c1-session-3")
    wrong = (f"memory/2023-05-03T13-56-00.000Z--{token}--summary.md", "The glaze is celadon", True)
    right = recall_speed.ours
    monkeypatch.setattr(
        "benchmarks.recall.ours", lambda *asked: [wrong, *((path, "", True) for path, _, _ in right(*asked))]
    )
    assert figures(benchmark.answers(talks, tmp_path)["signet-sync"]) == [0, 2, 0]


def test_what_is_asked_without_its_session_is_known_only_where_others_have_it(
    talks: recall_sets.Set, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(benchmark, "UNRELATED", tmp_path / "unrelated.txt")
    benchmark.UNRELATED.write_text("Which quokka smiles?\nWhat cools in the kiln?\n")
    before: list[int] = []
    count = benchmark._count

    def counted(
        known: dict[str, list[bool]], made: Workspace, sessions: Sequence[recall_sets.Session], texts: Sequence[str]
    ) -> None:
        before.append(len([*(made.root / "memory").glob("*--transcript.md")]))
        count(known, made, sessions, texts)

    monkeypatch.setattr(benchmark, "_count", counted)
    told = list(benchmark.unanswerable(talks, talks, tmp_path))
    assert before == [2, 2, 3], "one session is taken away at a time, and comes back"
    assert told[0].startswith("| prompts without their session, 2 | signet-sync | 0.0 (")
    assert told[3].startswith("| unrelated, 2 | signet-sync | 50.0 (")
    continuing = [recall_sets.Session(*one) for one in (("a", ""), ("b", "", None, ("a",)), ("c", "", None, ("b",)))]
    assert benchmark._with_successors(continuing, "a") == {"a", "b", "c"}


def test_shares_and_their_intervals() -> None:
    assert benchmark.share([True] * 3 + [False]) == "75.0 (30–95)"
    assert benchmark.share([False] * 50) == "0.0 (0–7)"
