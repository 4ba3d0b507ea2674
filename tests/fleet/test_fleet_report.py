"""`fleet report`: what is wrong and what is in many workspaces, without any secret that a file holds."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import artifacts_fixture as made
import pytest
from fleet_tables import here
from workbench import NOW, Answer, Vault, call, numbered

from signet_sync.fleet import engines

SECRET = "ghp_" + "aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5"
EVIL = "<script>&\"'\x1b[31m"


def report(*words: str | Path) -> Answer:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engines, "run", here)
        answer = call("fleet", "report", *words, "--now", NOW)
    assert answer.code == 0 and answer.err == "", answer
    return answer


@pytest.fixture(scope="module")
def mould(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace that is well, and others in which something is wrong, of every kind."""
    folder = tmp_path_factory.mktemp("fleet")
    well = Vault(folder / "well")
    for number in (1, 2, 3):
        well.session(number)
    leaky = Vault(folder / "leaky")
    leaky.session(1, project=f"/x/{SECRET}")
    leaky.put(made.summary(session_id="5e5510ee-0000-4000-8000-000000000001", body=f"# x\n\nthe key {SECRET} here\n"))
    hurt = Vault(folder / f"hurt {EVIL}")
    paths = {number: hurt.session(number) for number in (1, 2, 9)}
    summary = hurt / paths[1]["summary"]
    summary.write_bytes(summary.read_bytes() + b"edited\n")
    (hurt / paths[1]["manifest"]).write_bytes(b"no frontmatter")
    (hurt / paths[2]["transcript"]).unlink()
    (hurt / paths[2]["transcript"]).mkdir()
    hurt.put(made.tombstone(session_id=numbered(9)["session_id"]), "memory/tombstones")
    (folder / "empty").mkdir()
    Vault(folder / f"of-{SECRET}").put(made.summary(body=f"# {SECRET}\n"))
    return folder


@pytest.fixture(scope="module")
def found(mould: Path) -> Any:
    return report("--json", *sorted(mould.iterdir()), mould / "nowhere").json


def test_it_says_of_every_workspace_what_is_wrong_with_it(found: Any, mould: Path) -> None:
    wrong = Counter((Path(one["workspace"]).name[:4], one["kind"], one["code"]) for one in found["findings"])
    assert wrong == {
        ("leak", "secret", "secret-suspected"): 4,
        ("of-[", "secret", "secret-suspected"): 1,
        ("hurt", "changed", "hash-mismatch"): 1,
        ("hurt", "invalid", "frontmatter-missing"): 1,
        ("hurt", "unreadable", "not-a-file"): 1,
        ("hurt", "came-back", "tombstoned"): 3,
    }
    kinds = Counter(one["kind"] for one in found["findings"])
    assert {kind: found["counts"][kind] for kind in kinds} == kinds
    assert found["workspaces"] == 6 and len(found["by_workspace"]) == 5
    (lost,) = found["unreachable"]
    assert lost["workspace"] == str(mould / "nowhere") and "does not exist" in lost["message"]
    assert found["by_rule"] == [{"rule": "github", "files": 5, "workspaces": 2}]
    assert all(one["rules"] == (["github"] if one["kind"] == "secret" else []) for one in found["findings"])


def test_it_says_what_is_there_and_when_each_was_last_seen(found: Any, mould: Path) -> None:
    of = {Path(one["workspace"]).name: one for one in found["by_workspace"]}
    well = of["well"]
    assert (well["sessions"], well["artifacts"], well["agents"]) == (3, 9, 1)
    assert well["bytes"] == sum(path.stat().st_size for path in (mould / "well/memory").iterdir())
    assert well["last_session"] == "2026-03-28T10:01:00.000Z" and of["empty"]["last_session"] is None


def test_no_form_holds_a_secret_or_a_control_character(mould: Path) -> None:
    places = [*sorted(mould.iterdir()), mould / "nowhere"]
    shown = report(*places)
    for text in (shown.out, report("--json", *places).out):
        assert SECRET not in text and "\x1b" not in text and "github" in text
    lines = shown.out.splitlines()
    assert lines[0].split()[:2] == ["sessions", "files"]
    assert any(line.startswith("6 workspaces ") for line in lines)
    assert lines[-2] == f"unreachable  {mould}/nowhere" and "does not exist" in lines[-1]
