"""Sessions are removed from many workspaces by an approved plan, and from nothing else."""

from __future__ import annotations

import io
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from memory_store import MemoryStore
from workbench import NOW, Answer, Vault, call, contents, numbered

from signet_sync.fleet import engines, workspaces
from signet_sync.fleet.engines import Engine, Finished
from signet_sync.fleet.removal import object_store
from signet_sync.storage import state_dir
from signet_sync.storage.remote import RemoteRoot

WORDS = "qzxvbodycanary"
QUOTE = "the keeper of the lighthouse counts every wave that breaks before the lamp is lit"


@pytest.fixture(autouse=True)
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without processes: what an engine does is tested for itself."""

    def run(function: Callable[[Any], Any], items: Iterable[Any], _: Engine) -> Iterator[Finished[Any, Any]]:
        for item in items:
            yield Finished(item, *engines.tried(function, item))

    monkeypatch.setattr(engines, "run", run)


@pytest.fixture
def fleet(tmp_path: Path) -> list[Vault]:
    """Three folders: two with the session, one of them never indexed, one without it."""
    vaults = [Vault(tmp_path / name) for name in ("one", "two", "three")]
    for vault in vaults:
        vault.session(2)
        vault.session(3, project="/home/ada/code/other")
    for vault in vaults[:2]:
        subject(vault)
    vaults[0].reindex()
    vaults[2].reindex()
    return vaults


def subject(vault: Vault, **given: Any) -> dict[str, str]:
    """The session that is to be removed."""
    return vault.session(1, body=f"# Queue\n\n- Ada  Lovelace keeps\n  the {WORDS} in src/queue.py.\n", **given)


ID = numbered(1)["session_id"]


def remove(*arguments: object, code: int | None = 0) -> Any:
    """Runs the command; `code` None: done, whether or not words remain."""
    answer = call("fleet", "remove", *map(str, arguments), "--json", "--now", NOW)
    assert answer.code in ((0, 1) if code is None else (code,)), answer
    return answer.json


def plan(path: Path, *what: object, code: int = 0) -> Any:
    return remove(*what, "--reason", "asked for", "--plan", path, code=code)


def carried_out(path: Path, *what: object, code: int | None = 0) -> Any:
    """Plans, approves and applies."""
    plan(path, *what)
    remove("--approve", path, "--by", "Grace")
    return remove("--apply", path, code=code)


def states(document: Any) -> dict[str, str]:
    return {Path(row["workspace"]).name: row["state"] for row in document["workspaces"]}


def holding(folder: Path, word: str = WORDS) -> list[str]:
    """The files below a folder that contain a word."""
    return [str(one) for one in folder.rglob("*") if one.is_file() and word[3:].encode() in one.read_bytes()]


# ── the plan ──


def test_the_plan_says_where_it_is_and_nothing_is_written_elsewhere(fleet: list[Vault], tmp_path: Path) -> None:
    before = [contents(vault.root) for vault in fleet]
    document = plan(tmp_path / "plan.json", *(vault.root for vault in fleet), "--session", ID)
    assert [contents(vault.root) for vault in fleet] == before
    assert not Path(state_dir.locate(str(fleet[1].root)).path).exists()
    assert [Path(one["workspace"]).name for one in document["workspaces"]] == ["one", "two"]
    for one in document["workspaces"]:
        (session,) = one["sessions"]
        assert session["session_ids"] == [ID] and len(session["files"]) == 3
        assert all(file["state"] for file in session["files"])
    place = tmp_path / "plan.json"
    assert place.stat().st_mode & 0o777 == 0o600
    assert json.loads(place.read_text())["workspaces"] == document["workspaces"]


def test_without_a_plan_file_it_is_a_dry_run_for_people(fleet: list[Vault]) -> None:
    answer = call("fleet", "remove", str(fleet[0].root), str(fleet[2].root), "--session", ID, "--now", NOW)
    assert answer.code == 0
    assert "1 session and 3 files in 1 of 2 workspaces; nothing was removed" in answer.out
    assert f"session {ID}" in answer.out


@pytest.mark.parametrize("name", ["key", "token"])
def test_a_key_or_a_token_means_every_session_of_it(tmp_path: Path, name: str) -> None:
    vault = Vault(tmp_path / "vault")
    for number in (1, 2):
        paths = vault.session(number, session_key="agent:main:one")
    vault.session(3)
    token = paths["summary"].split("--")[1]
    document = remove(vault.root, "--session", {"key": "agent:main:one", "token": token}[name])
    (session,) = document["workspaces"][0]["sessions"]
    assert session["all_sessions"] and len(session["files"]) == 6
    # One of them by its id leaves the other.
    (session,) = remove(vault.root, "--session", ID)["workspaces"][0]["sessions"]
    assert session["session_ids"] == [ID] and not session["all_sessions"] and len(session["files"]) == 3


def test_the_beginning_of_a_name_is_no_name(fleet: list[Vault]) -> None:
    assert remove(fleet[0].root, "--session", ID[:12])["workspaces"] == []


@pytest.mark.parametrize("phrase", ["ada lovelace KEEPS the", WORDS])
def test_a_phrase_is_found_whatever_its_case_and_line_breaks_and_is_in_no_plan(
    fleet: list[Vault], tmp_path: Path, phrase: str
) -> None:
    document = plan(tmp_path / "plan.json", *(vault.root for vault in fleet), "--phrase", phrase)
    assert [Path(one["workspace"]).name for one in document["workspaces"]] == ["one", "two"]
    said = (tmp_path / "plan.json").read_text().lower()
    assert "lovelace" not in said and WORDS not in said
    assert set(document["request"]) == {"phrase_sha256", "agent_id"}


def test_a_project_is_found_by_its_path_or_its_name(fleet: list[Vault]) -> None:
    for project in ("/home/ada/code/other", "/home/ada/code/other/", "Other"):
        document = remove(fleet[0].root, "--project", project)
        assert document["workspaces"][0]["sessions"][0]["session_ids"] == [numbered(3)["session_id"]]
    assert remove(fleet[0].root, "--project", "oth")["workspaces"] == []


def test_one_agent_can_be_asked_for(tmp_path: Path) -> None:
    vault = Vault(tmp_path / "vault")
    subject(vault)
    subject(vault, agent_id="reviewer")
    found = {one["agent_id"] for one in remove(vault.root, "--session", ID)["workspaces"][0]["sessions"]}
    assert found == {"default", "reviewer"}
    (session,) = remove(vault.root, "--session", ID, "--agent", "reviewer")["workspaces"][0]["sessions"]
    assert session["agent_id"] == "reviewer"


@pytest.mark.parametrize(
    "wrong",
    [
        (), ("--session", "a", "--project", "b"), ("--phrase", "a b"), ("--session", " "),
        ("--phrase", "ghp_" + "a1B2" * 9), ("--session", "a", "--plan", "p.json"), ("--apply", "p.json"),
    ],
)  # fmt: skip
def test_a_request_that_cannot_be_met_is_an_error(fleet: list[Vault], wrong: tuple[str, ...]) -> None:
    answer = call("fleet", "remove", str(fleet[0].root), *wrong, "--json")
    assert (answer.code == 2 and answer.out == "") or "error" in answer.json


def test_a_session_that_runs_and_one_whose_files_are_lost_are_in_the_index_alone(
    fleet: list[Vault], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vault = fleet[0]
    for path in vault.memory.glob("*--*.md"):
        if ID in path.read_text():
            path.unlink()
    turn = json.dumps({"turn": 0, "role": "user", "text": f"Where does the {WORDS} wait?", "at": NOW})
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(turn.encode())))
    assert vault.call("transcript", "append", "--session-key", "agent:main:live").code == 0
    document = carried_out(tmp_path / "plan.json", vault.root, "--phrase", WORDS)
    assert len(document["workspaces"][0]["session_ids"]) == 2
    assert holding(vault.root) == [] and holding(vault.state) == []


# ── the approval ──


def test_only_an_approved_unaltered_and_recent_plan_is_carried_out(fleet: list[Vault], tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    plan(path, fleet[0].root, "--session", ID)
    before = contents(fleet[0].root)
    assert remove("--apply", path, code=2)["error"]["code"] == "not-approved"
    remove("--approve", path, "--by", "Grace")
    made = path.read_text()
    path.write_text(made.replace(ID, numbered(2)["session_id"]))
    assert remove("--apply", path, code=2)["error"]["code"] == "not-approved"
    path.write_text(made)
    later = call("fleet", "remove", "--apply", str(path), "--json", "--now", "2026-04-06T12:00:01Z")
    assert later.code == 2 and later.json["error"]["code"] == "stale-plan"
    assert contents(fleet[0].root) == before
    # A plan of that name is not written over what was approved, and no other file is.
    assert plan(path, fleet[0].root, "--session", ID, code=2)["error"]["code"] == "usage"
    (tmp_path / "other.json").write_text("{}")
    assert plan(tmp_path / "other.json", fleet[0].root, "--session", ID, code=2)["error"]["code"] == "not-writable"
    assert remove("--apply", path)["counts"] == {"removed": 1}


@pytest.mark.parametrize("answer", ["y", "n"])
def test_at_a_terminal_all_three_are_one_command(
    fleet: list[Vault], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("sys.stdin", Terminal(f"{answer}\n"))
    words = ("--session", ID, "--reason", "asked", "--plan", str(tmp_path / "plan.json"), "--by", "Grace")
    said = call("fleet", "remove", str(fleet[0].root), *words, "--now", NOW)
    assert said.code == (0 if answer == "y" else 130) and "3 files" in said.out
    assert (holding(fleet[0].memory) == []) == (answer == "y")
    assert Path(f"{tmp_path}/plan.json.approved.json").exists() == (answer == "y")


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"signet-sync-removal-plan": 2}', "[" * 9999])
def test_what_is_no_plan_is_an_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "plan.json").write_text(text)
    for words in (("--approve", "--by", "Grace"), ("--apply",)):
        answer = call("fleet", "remove", words[0], str(tmp_path / "plan.json"), *words[1:], "--json")
        assert answer.code == 2 and answer.json["error"]["hint"], answer


# ── folders ──


def test_it_is_gone_everywhere_and_nothing_else_has_changed(fleet: list[Vault], tmp_path: Path) -> None:
    one, two, three = fleet
    others = [{p: c for p, c in contents(v.memory).items() if ID not in (v.memory / p).read_text()} for v in fleet]
    # A pass, which the second has not seen yet, writes references into manifests.
    others[1] = {path: content for path, content in others[1].items() if "--manifest" not in path}
    untouched = contents(three.root)
    document = carried_out(tmp_path / "plan.json", *(vault.root for vault in fleet), "--session", ID)
    assert states(document) == {"one": "removed", "two": "removed"} and document["counts"] == {"removed": 2}
    assert contents(three.root) == untouched
    for vault, before in zip(fleet, others, strict=True):
        now = contents(vault.memory)
        assert before.items() <= now.items()
        assert all("tombstones" in path or "--manifest" in path for path in now.keys() - before.keys())
    for vault in (one, two):
        assert holding(vault.root) == [] and holding(vault.state) == []
    assert not two.db.exists(), "a folder without an index has got one"
    for row in document["workspaces"]:
        assert row["session_ids"] == [ID] and len(row["files"]) == 3 and row["remains"] == [] and row["message"] == ""
        assert all((Path(row["workspace"]) / stone).is_file() for stone in row["tombstones"])
    report = (tmp_path / "plan.json.report.md").read_text()
    assert "Approved by Grace" in report and "Done in 2 of 2 workspaces: 6 files" in report
    assert json.loads((tmp_path / "plan.json.report.json").read_text())["workspaces"] == document["workspaces"]


def test_files_of_the_session_that_came_after_the_plan_go_too(fleet: list[Vault], tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    plan(path, fleet[0].root, "--session", ID)
    fleet[0].session(1, captured_at="2026-03-28T18:00:00.000Z", body=f"# Later\n\n- The {WORDS} again.\n")
    remove("--approve", path, "--by", "Grace")
    (row,) = remove("--apply", path)["workspaces"]
    assert len(row["files"]) == 6 and holding(fleet[0].root) == []
    assert row["message"] == "3 files came or changed since the plan"


def test_a_workspace_in_use_is_done_by_the_next_apply(
    fleet: list[Vault], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("signet_sync.fleet.removal.removing._PATIENCE", 0.0)
    path = tmp_path / "plan.json"
    plan(path, fleet[0].root, fleet[1].root, "--session", ID)
    remove("--approve", path, "--by", "Grace")
    with state_dir.workspace_lock(state_dir.locate(str(fleet[0].root))):
        document = remove("--apply", path, code=1)
    assert states(document) == {"one": "pending", "two": "removed"}
    before = contents(fleet[1].root)
    assert states(remove("--apply", path)) == {"one": "removed", "two": "removed"}
    assert contents(fleet[1].root) == before
    lines = map(json.loads, Path(f"{path}.journal.jsonl").read_text().splitlines())
    tried = [Path(line["workspace"]).name for line in lines if line["event"] == "workspace"]
    assert sorted(tried) == ["one", "one", "two"], "what is done is not done again"


def test_what_is_gone_by_then_is_no_trouble(fleet: list[Vault], tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    plan(path, fleet[0].root, fleet[1].root, "--session", ID)
    remove("--approve", path, "--by", "Grace")
    assert fleet[0].call("remove", ID, "--reason", "asked", "--yes", "--now", NOW).code == 0
    shutil.rmtree(fleet[1].root)
    document = remove("--apply", path, code=1)
    assert states(document) == {"one": "removed", "two": "unreachable"}


def test_quotes_are_decided_by_the_plan(fleet: list[Vault], tmp_path: Path) -> None:
    vault = Vault(tmp_path / "quoting")
    vault.session(2, body=f"# Lamp\n\n{QUOTE.capitalize()}.\n")
    quoting = vault.session(1, body=f"# Later\n\nAs was said: {QUOTE.capitalize()}.\n")["summary"]
    theirs = vault.session(1, agent_id="reviewer", body=f"# Read\n\n{QUOTE.capitalize()}.\n")["summary"]
    subject_id = numbered(2)["session_id"]
    document = plan(tmp_path / "open.json", vault.root, "--session", subject_id, "--agent", "default")
    assert quoting in document["workspaces"][0]["quoted_in"]
    assert theirs in document["workspaces"][0]["elsewhere"]
    assert remove("--approve", tmp_path / "open.json", "--by", "Grace", code=2)["error"]["code"] == "quoted"
    before = (vault / theirs).read_bytes()
    document = carried_out(
        tmp_path / "plan.json", vault.root, "--session", subject_id, "--agent", "default", "--quoting", "redact", code=1
    )
    assert QUOTE not in (vault / quoting).read_text().lower()
    # Another agent's file is its own; the report names it.
    assert (vault / theirs).read_bytes() == before
    assert any(theirs in one for one in document["workspaces"][0]["remains"])


# ── the journal ──


def test_a_run_that_was_killed_goes_on_from_its_journal(fleet: list[Vault], tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    first = carried_out(path, fleet[0].root, fleet[1].root, "--session", ID)
    journal = Path(f"{path}.journal.jsonl")
    lines = journal.read_bytes().splitlines(keepends=True)
    # Killed while the second workspace's line was written: the workspace is done, its line is not.
    journal.write_bytes(b"".join(lines[:2]) + lines[2][:40])
    again = remove("--apply", path)
    assert [row | {"at": ""} for row in again["workspaces"]] == [row | {"at": ""} for row in first["workspaces"]]
    assert again["counts"] == {"removed": 2}


def test_a_journal_that_was_changed_is_refused(fleet: list[Vault], tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    carried_out(path, fleet[0].root, "--session", ID)
    journal = Path(f"{path}.journal.jsonl")
    made = journal.read_text()
    lines = made.splitlines(keepends=True)
    for changed in (made.replace("Grace", "Nobody"), lines[0] + lines[2], made + "{}\n", made + "[]\n"):
        journal.write_text(changed)
        assert "not as it was written" in remove("--apply", path, code=2)["error"]["message"]


@pytest.mark.parametrize("name", ["line\u2028separator\x85", os.fsdecode(b"not-utf8-\xff"), "größer"])
def test_a_folder_of_any_name_is_in_plan_journal_and_report(tmp_path: Path, name: str) -> None:
    vault = Vault(tmp_path / name)
    subject(vault)
    path = tmp_path / "plan.json"
    first = carried_out(path, vault.root, "--session", ID)
    assert first["counts"] == {"removed": 1} and holding(vault.memory) == []
    assert remove("--apply", path)["workspaces"] == first["workspaces"]
    assert "1 workspace" in Path(f"{path}.report.md").read_text()


# ── object stores ──


def upload(system: Any, vault: Vault, top: str = "/bucket/one") -> str:
    """Copies a vault into a store; returns its URL."""
    for path in contents(vault.root):
        if not path.startswith(".signet"):
            system.pipe_file(f"{top}/{path}", (vault / path).read_bytes())
    return f"memory:/{top}"


def stored(system: Any) -> dict[str, bytes]:
    return {path: system.cat_file(path) for path in system.find("/bucket")}


def test_in_a_store_tombstones_are_written_files_deleted_and_nothing_else(
    fleet: list[Vault], memory: Any, tmp_path: Path
) -> None:
    url = upload(memory, fleet[0])
    before = stored(memory)
    document = carried_out(tmp_path / "plan.json", url, "--session", ID, code=1)
    (row,) = document["workspaces"]
    after = stored(memory)
    assert row["state"] == "removed" and len(row["files"]) == 3
    gone = {path.removeprefix("/bucket/one/") for path in before.keys() - after.keys()}
    assert gone == {*row["files"]}
    assert {path.removeprefix("/bucket/one/") for path in after.keys() - before.keys()} == {*row["tombstones"]}
    assert all(after[path] == before[path] for path in before.keys() & after.keys())
    # Its pages are its own agent's to write.
    assert any(one.startswith("MEMORY.md") for one in row["remains"])
    assert states(remove("--apply", tmp_path / "plan.json", code=1)) == {"one": "removed"}
    assert stored(memory) == after


def test_a_tombstone_of_the_store_is_enforced_by_a_pass_and_the_other_way(
    fleet: list[Vault], memory: Any, tmp_path: Path
) -> None:
    one = fleet[0]
    url = upload(memory, one)
    document = carried_out(tmp_path / "plan.json", url, "--session", ID, code=None)
    stone = document["workspaces"][0]["tombstones"][0]
    (one / stone).parent.mkdir()
    (one / stone).write_bytes(memory.cat_file(f"/bucket/one/{stone}"))
    one.reindex()
    assert holding(one.root) == [] and holding(one.state) == []
    # The other way: what a folder's removal wrote is taken for what it is in the store.
    two = fleet[1]
    url = upload(memory, two, "/bucket/two")
    plan(tmp_path / "two.json", url, "--session", ID)
    remove("--approve", tmp_path / "two.json", "--by", "Grace")
    carried_out(tmp_path / "local.json", two.root, "--session", ID)
    for path in (two / "memory/tombstones").iterdir():
        memory.pipe_file(f"/bucket/two/memory/tombstones/{path.name}", path.read_bytes())
    before = stored(memory)
    (row,) = remove("--apply", tmp_path / "two.json", code=None)["workspaces"]
    assert row["state"] == "removed" and len(row["files"]) == 3
    assert stored(memory).items() <= before.items(), "the tombstone that is there already is kept as it is"


def changing(monkeypatch: pytest.MonkeyPatch, memory: Any, path: str, raw: bytes) -> None:
    """An object that is changed right before it is deleted, once."""
    delete = MemoryStore.delete
    left = [raw]

    def late(store: Any, name: str, version: str) -> bool:
        if name in path and left:
            memory.pipe_file(path, left.pop())
        return delete(store, name, version)

    monkeypatch.setattr(MemoryStore, "delete", late)


def test_an_object_that_changes_before_its_deletion_is_judged_again(
    fleet: list[Vault], memory: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vault = Vault(tmp_path / "shared")
    mine = vault.session(1, session_key="constant")["summary"]
    other = vault.session(2, session_key="constant")["summary"]
    url = upload(memory, vault)
    # Under the same name and key: what the other session has written in between.
    raw = (vault / other).read_bytes()
    changing(monkeypatch, memory, f"/bucket/one/{mine}", raw)
    (row,) = carried_out(tmp_path / "plan.json", url, "--session", ID, code=None)["workspaces"]
    assert memory.cat_file(f"/bucket/one/{mine}") == raw, "another session's words were deleted"
    assert row["state"] == "removed" and mine not in row["files"] and len(row["files"]) == 2


def test_an_object_of_the_session_that_changes_is_deleted_all_the_same(
    fleet: list[Vault], memory: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = upload(memory, fleet[0])
    path = next(one for one in stored(memory) if one.endswith("--manifest.md") and ID.encode() in memory.cat_file(one))
    changing(monkeypatch, memory, path, memory.cat_file(path) + b"\nmore\n")
    (row,) = carried_out(tmp_path / "plan.json", url, "--session", ID, code=1)["workspaces"]
    assert len(row["files"]) == 3 and path not in stored(memory)


def test_a_folder_that_could_not_be_written_is_tried_again(
    fleet: list[Vault], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "plan.json"
    with monkeypatch.context() as denying:  # whoever runs the tests may be root, whom no mode stops
        denying.setattr("os.access", lambda _path, mode: not mode & os.W_OK)
        document = plan(path, fleet[0].root, "--session", ID)
        assert "cannot be written" in document["workspaces"][0]["obstacle"]
        remove("--approve", path, "--by", "Grace")
        assert states(remove("--apply", path, code=1)) == {"one": "not-writable"}
    assert states(remove("--apply", path)) == {"one": "removed"}


def test_a_tombstone_that_is_there_is_joined(fleet: list[Vault], memory: Any, tmp_path: Path) -> None:
    vault = Vault(tmp_path / "shared")
    for number in (1, 2, 3):
        vault.session(number, session_key="constant")
    url = upload(memory, vault)
    for number in (1, 2):
        carried_out(tmp_path / f"{number}.json", url, "--session", numbered(number)["session_id"], code=None)
    (stone,) = (one for one in stored(memory) if "tombstones" in one)
    said = memory.cat_file(stone).decode()
    assert numbered(1)["session_id"] in said and numbered(2)["session_id"] in said
    assert len(stored(memory)) == 4


@pytest.mark.parametrize("url", ["gs://bucket/one", "az://bucket/one", "git+https://host/one.git", "zip://a::s3://b"])
def test_where_nothing_can_be_removed_it_says_why(url: str) -> None:
    with workspaces.opened("memory://any") as root:
        assert isinstance(root, RemoteRoot) and object_store.obstacle(RemoteRoot(url, root.reader), url)


def test_people_read_what_became_of_it(fleet: list[Vault], tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    plan(path, fleet[0].root, tmp_path / "nowhere", "--session", ID, code=1)
    assert "to carry it out" in call("fleet", "remove", "--approve", str(path), "--by", "Grace", "--now", NOW).out
    answer: Answer = call("fleet", "remove", "--apply", str(path), "--now", NOW)
    assert answer.code == 1
    assert "removed, 3 files gone" in answer.out and "was not read for the plan" in answer.out


def test_tables_lose_what_was_removed_until_they_are_made_anew(fleet: list[Vault], tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    tables = tmp_path / "tables"
    roots = [str(vault.root) for vault in fleet]

    def indexed() -> Any:
        answer = call("fleet", "index", *roots, "--tables", str(tables), "--bodies", "--json", "--now", NOW)
        assert answer.code == 0, answer
        return answer.json

    def is_in_tables(word: str) -> bool:
        import pyarrow.parquet as parquet

        return any(word in str(parquet.read_table(file).to_pylist()) for file in tables.rglob("*.parquet"))

    before = indexed()
    assert is_in_tables(WORDS) and before["rows"]["sessions"] == 8
    path = tmp_path / "plan.json"
    plan(path, *roots, "--session", ID)
    remove("--approve", path, "--by", "Grace")
    assert remove("--apply", path, "--tables", tables)["counts"]["removed"] == 2
    assert not is_in_tables(WORDS) and is_in_tables("session")
    again = indexed()
    assert (again["indexed"], again["unchanged"], again["rows"]["sessions"]) == (2, 1, 6)
    assert not is_in_tables(WORDS)
    assert call("fleet", "remove", roots[0], "--session", ID, "--tables", str(tables)).code == 2
