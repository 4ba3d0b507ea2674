"""Questions over the shares of many machines: what is found, and the state of every share in the answer."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from workbench import NOW, Vault, call, cast

pytest.importorskip("duckdb")
pytest.importorskip("pyarrow")


def furnish(vault: Vault) -> None:
    for number in (1, 2, 3):
        vault.session(number)
    body = "# Beacon\n\n## Decisions\n\n- The beacon gets a café für Ünal.\n"
    vault.session(4, agent_id="scout", project="/home/ada/code/beacon", body=body)
    vault.session(5, body="# Fünf\n\n## Decisions\n\n- 我们把索引改成增量更新 in getUserName.\n")
    vault.reindex()
    put(vault.root / "t", vault)
    other = Vault(vault.root / "other")
    other.session(6)
    other.session(1)  # of a vault that two machines sync
    other.reindex()
    put(vault.root / "t", other)


def put(place: Path | str, vault: Vault, holds: str = "text") -> None:
    assert vault.call("fleet", "share", "--at", str(place), "--holds", holds, "--now", NOW).code == 0


@pytest.fixture(scope="module")
def mould(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return cast(tmp_path_factory.mktemp("mould"), furnish)


@pytest.fixture
def place(mould: Any, tmp_path: Path) -> Path:
    return Path(mould(tmp_path).root / "t")


def found(place: Path | str, query: str, *more: str, code: int = 0) -> Any:
    answer = call("fleet", "search", "--json", "--at", str(place), *more, "--", query)
    assert answer.code == code, answer
    return answer.json


def sessions(place: Path | str, *query: str) -> list[int]:
    return [int(hit["session_id"][-12:]) for hit in found(place, *query)["hits"]]


def states(document: Any) -> dict[str, int]:
    return {state: count for state, count in document["states"].items() if count}


@pytest.mark.parametrize(
    ("words", "numbers"),
    [
        (("number2x",), {2}),
        (("Lantern number3x keeps",), {3}),  # all of the words
        (("number1x number6x",), {1, 6}),  # if none has all, any; what two shares have is found once
        (("增量",), {5}),
        (("café ünal",), {4}),
        (("beacon", "--agent", "default"), set()),
        (("beacon", "--project", "Beacon"), {4}),
        (("queue", "--since", "2026-03-27"), {1, 2}),
        (("queue", "--until", "2026-03-26"), {3, 4, 5, 6}),
        (("100%5 \\ _",), set()),
    ],
)
def test_sessions_are_found_by_words_project_agent_and_time(place: Path, words: Any, numbers: set[int]) -> None:
    assert set(sessions(place, *words)) == numbers and len(sessions(place, *words)) == len(numbers)


def test_a_hit_says_where_and_no_question_does_harm(place: Path) -> None:
    (hit,) = found(place, "number2x")["hits"]
    assert hit["workspace"].endswith("/vault") and "number2x" in hit["snippet"] and hit["score"] == 1
    assert hit["path"].endswith("--summary.md") and hit["day"] == "2026-03-27"
    assert len(found(place, "queue", "--limit", "2")["hits"]) == 2
    strange = ["retry AND OR NOT NEAR(", "content:retry", "*", "--", "'; drop table shares; --", " \u3000 ", "", "🦉"]
    for query in [*strange, "retry " * 170_000, "备" * 1_000_000, '"' * 10_000, "\0retry\0", "\ud800 retry"]:
        found(place, query)


def test_a_report_counts_and_a_persons_own_question_is_asked(place: Path, memory: Any, tmp_path: Path) -> None:
    document = call("fleet", "report", "--at", str(place), "--json").json
    rows = [dict(zip(document["columns"], row, strict=True)) for row in document["rows"]]
    assert [(row["sessions"], row["files"], row["problems"]) for row in rows] == [(5, 15, 0), (2, 6, 0)]
    out = tmp_path / "out.csv"
    sql = f"copy (select h.workspace, count(*) as n from sessions s join shares h using (share) group by 1) to '{out}'"
    assert call("fleet", "report", "--at", str(place), "--sql", sql).code == 0 and len(out.read_text().split()) == 3
    refused = call("fleet", "report", "--at", str(place), "--sql", "select nothing from nowhere")
    assert refused.code == 2 and "docs/fleet.md" in refused.err
    # A store answers as a folder does; without text a share is found by project only.
    put("memory://bucket/t", Vault(tmp_path / "vault"), holds="rows")
    assert sessions("memory://bucket/t", "number2x") == [] and sessions("memory://bucket/t", "beacon") == [4]


def test_every_share_has_a_state_in_the_answer(place: Path, tmp_path: Path) -> None:
    for number in (1, 2, 3, 4):
        vault = Vault(tmp_path / f"more{number}")
        if number > 1:
            vault.session(10 + number)
        vault.reindex()
        put(place, vault)
    commits = {
        json.loads(path.read_text())["workspace"].rpartition("/")[2]: path for path in place.glob("shares/*.json")
    }
    shutil.rmtree(place / f"sessions/share={commits['more2'].stem}")
    part = next(place.glob(f"statements/share={commits['more3'].stem}/*"))
    part.write_bytes(part.read_bytes()[:-9])
    commits["more4"].write_bytes(b'{"share":')
    (place / "sessions/share=00000000000000000000").mkdir()
    document = found(place, "queue", code=1)
    assert states(document) == {"ok": 2, "empty": 1, "damaged": 3, "vanished": 1}
    assert len(document["hits"]) == 6
    said = {one["workspace"].rpartition("/")[2]: (one["state"], one["message"]) for one in document["workspaces"]}
    assert said["more2"] == ("vanished", "its sessions are gone")
    assert said["more3"] == ("damaged", "its statements cannot be read")
    assert said[commits["more4"].stem][0] == said["0" * 20][0] == "damaged"
    nowhere = "ftp://127.0.0.1:1/x"
    assert call("fleet", "search", "queue", "--at", str(tmp_path / "none")).code == 1
    document = found(place, "queue", "--at", nowhere, code=1)
    assert states(document)["unreachable"] == 1 and len(document["hits"]) == 6


def test_a_commit_names_no_file_but_its_own(place: Path, tmp_path: Path) -> None:
    """Another machine wrote it."""
    path = next(place.glob("shares/*.json"))
    commit = json.loads(path.read_text())
    for name, value in (
        ("share", "../x"),
        ("sessions", "../../../etc/passwd"),
        ("workspace", None),
        ("share", "0" * 20),
    ):
        path.write_text(json.dumps({**commit, name: value}))
        assert states(found(place, "queue", code=1))["damaged"] == 1
