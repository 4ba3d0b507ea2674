"""The benchmark of recall: what it reads of its sets, and that what is found counts and what is not does not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import recall as benchmark
from benchmarks import recall_sets, recall_speed
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
