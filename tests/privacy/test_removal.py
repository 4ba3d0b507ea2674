"""Privacy removal end to end: nothing of a session is left in any file that we write, and nothing brings it back."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import artifacts_fixture as made
import pytest
from history_vault import git
from signet_writer import process_of
from workbench import NOW, Vault, cast, contents, numbered, spawn_ordinary, tree

from signet_sync.formats.frontmatter import parse

# Words that stand nowhere else. Full text writes only what a word does not share with the one before it in order, so
# the first letters are left out of what is looked for.
CANARIES = ("qzxvbodycanary", "qjkxsentencecanary", "qwzkprojectcanary", "qpvxheadingcanary")
KEY = "agent:qgfxkeycanary:main"


def of_three(found: Vault) -> None:
    """A session full of words that no other holds, and two ordinary ones."""
    found.session(
        1,
        session_key=KEY,
        project="/home/ada/code/qwzkprojectcanary",
        body="# qpvxheadingcanary\n\n## Decisions\n\n- The qzxvbodycanary of lantern stays 日本語qzxvbodycanary.\n",
        memory_sentence="In lantern the qjkxsentencecanary bounded the retry loop of src/queue.py so that it ends.",
    )
    found.indexed(2, 3)


@pytest.fixture(scope="module")
def mould(tmp_path_factory):
    return cast(tmp_path_factory.mktemp("mould"), of_three)


@pytest.fixture
def vault(mould, tmp_path):
    return mould(tmp_path)


ID = numbered(1)["session_id"]
TOKEN = made.token_for(session_id=ID, session_key=KEY)


def mine(kind):
    return made.path_for(kind, session_id=ID, session_key=KEY, captured_at=numbered(1)["captured_at"])


def remove(vault, name=ID, *more, code=0):
    answer = vault.call("remove", name, "--reason", "asked for", "--yes", "--json", "--now", NOW, *more)
    assert answer.code == code, answer
    return answer.json["removals"][0]


def leaks(*places: Path, words=(*CANARIES, KEY), but=()):
    """Files that hold one of the words, whatever its case, but for its first letters."""
    found = []
    needles = [word[3:].encode() for word in words]
    for place in places:
        for where, folders, names in os.walk(place):
            folders[:] = [name for name in folders if name not in but]
            for name in names:
                raw = (Path(where) / name).read_bytes().lower()
                found += [(name, needle) for needle in needles if needle in raw]
    return found


def test_the_tombstone_holds_no_word_of_the_session(vault):
    document = remove(vault)
    assert document["tombstone"] == f"memory/tombstones/default--{TOKEN}.md"
    fields = parse((vault / document["tombstone"]).read_bytes()).fields
    told = {"kind": "tombstone", "agent_id": "default", "session_token": TOKEN, "removed_at": NOW}
    assert fields.items() >= {**told, "reason": "asked for"}.items()
    assert sorted(fields["removed_paths"]) == sorted(mine(k) for k in ("summary", "transcript", "manifest"))
    assert set(fields) <= {*told, "reason", "session_ids", "removed_paths", "tombstone_version"}


@pytest.mark.parametrize("name", [KEY, TOKEN, ID[:9], mine("summary")], ids=lambda n: n[:12])
def test_a_session_goes_by_key_token_id_prefix_or_path(vault, name):
    document = remove(vault, name)
    assert len(document["removed_paths"]) == 3 and leaks(vault.root, vault.state) == []


def of_one_key(found: Vault) -> None:
    for number in (1, 2, 3):
        found.session(number, session_key="agent:main:main")
    found.reindex()


@pytest.fixture(scope="module")
def mould_of_one_key(tmp_path_factory):
    return cast(tmp_path_factory.mktemp("key"), of_one_key)


@pytest.fixture
def shared_key(mould_of_one_key, tmp_path):
    """Three sessions of a harness whose key never changes."""
    return mould_of_one_key(tmp_path)


def test_an_id_covers_its_session_only(shared_key):
    for number in (2, 3):
        path = shared_key.session(number, session_key="agent:main:main")["summary"]
        (shared_key / path.replace(".md", " (1).md")).write_bytes((shared_key / path).read_bytes())
    document = remove(shared_key, numbered(2)["session_id"])
    assert len(document["removed_paths"]) == 4 and document["foreign"] == []
    fields = parse((shared_key / document["tombstone"]).read_bytes()).fields
    assert fields["session_ids"] == [numbered(2)["session_id"]]
    assert shared_key.hits("number2x") == [] and shared_key.hits("number1x") and shared_key.hits("number3x")
    remove(shared_key, numbered(3)["session_id"][:9])
    fields = parse((shared_key / document["tombstone"]).read_bytes()).fields
    assert fields["session_ids"] == [numbered(2)["session_id"], numbered(3)["session_id"]]
    assert shared_key.hits("number3x") == [] and shared_key.reindex()["counts"]["indexed"] == 3
    assert shared_key.call("remove", path, "--undo").code == 2, "the file's tombstone is of two"
    # The last one of a constant key goes alone too: the key's next session was not asked for.
    remove(shared_key, numbered(1)["session_id"])
    shared_key.session(4, session_key="agent:main:main")
    assert shared_key.reindex()["counts"]["indexed"] == 3 and shared_key.hits("number4x")


@pytest.mark.parametrize("name", ["agent:main:main", made.token_for(session_key="agent:main:main")])
def test_a_key_or_token_covers_all_of_its_sessions_also_later_ones(shared_key, name):
    document = remove(shared_key, name)
    assert len(document["removed_paths"]) == 9
    assert "session_ids" not in parse((shared_key / document["tombstone"]).read_bytes()).fields
    paths = shared_key.session(4, session_key="agent:main:main")
    assert shared_key.reindex()["counts"]["indexed"] == 0
    assert not (shared_key / paths["summary"]).exists()


def test_what_somebody_wrote_into_a_tombstone_erases_no_words_of_others(vault):
    path = vault.session(5)["summary"]
    vault.reindex()
    made_up = vault.call("entity", "create", "part", "Lantern", "--json", "--now", NOW).json["id"]
    said = ("--text", "The lighthouse lantern bounds its retries loop.", "--actor", "person", "--now", NOW)
    assert vault.call("entity", "append", made_up, "highlights", *said).code == 0
    kept = vault / "MEMORY.user-20260329T110000Z.md"
    kept.write_text(f"my lighthouse\nthe retries loop of mine\n[[{path}|summary]]\n")
    before = contents(vault / "entities"), kept.read_text()
    (vault / "memory/tombstones").mkdir()
    (vault / "memory/tombstones/default--aaaaaaaaaaaaaaaa.md").write_text(
        f"---\nkind: tombstone\nagent_id: default\nsession_token: aaaaaaaaaaaaaaaa\nremoved_at: {NOW}\nreason: r\n"
        f"removed_paths: [lantern, memory/x/lighthouse, {path}]\nsession_ids: [retries loop]\n---\n"
    )
    assert vault.reindex()["counts"]["tombstones"] == 1
    assert (contents(vault / "entities"), kept.read_text()) == before


@pytest.mark.parametrize(
    ("told", "kept"),
    [("password=hunter2hunter2", "password=[REDACTED:assignment]"), (r"\x01", "none that can be shown")],
)
def test_the_reason_in_a_tombstone_of_somebody_else_passes_the_sanitizer(vault, told, kept):
    (vault / "memory/tombstones").mkdir()
    (vault / "memory/tombstones/default--aaaaaaaaaaaaaaaa.md").write_text(
        "---\nkind: tombstone\nagent_id: default\nsession_token: aaaaaaaaaaaaaaaa\n"
        f'removed_at: {NOW}\nreason: "{told}"\n---\n'
    )
    vault.reindex()
    assert vault.rows("select reason from memory_artifact_tombstones") == [(kept,)]


# ── files that cannot be deleted ──


def test_files_that_cannot_be_deleted_leave_the_index_at_once_and_go_later(vault):
    (vault / "memory/tombstones").mkdir()
    (vault / "memory/tombstones").chmod(0o700)
    vault.memory.chmod(0o500)
    try:
        words = ("remove", ID, "--reason", "asked for", "--yes", "--json", "--now", NOW)
        answer = spawn_ordinary("--workspace", vault.root, *words)
        assert answer.code == 1 and "cannot be deleted: [Errno 13]" in answer.err, answer
        (done,) = answer.json["removals"]
        assert sorted(done["pending"]) == sorted(mine(k) for k in ("summary", "transcript", "manifest"))
        assert done["removed_paths"] == []
        assert vault.hits("qzxvbodycanary") == [] and ID not in vault.page() and TOKEN not in vault.page()
        assert leaks(vault.state) == []
        answer = spawn_ordinary("--workspace", vault.root, "reindex", "--json", "--now", NOW)
        assert answer.code == 0, answer
        problems = {mine(kind): ("tombstoned", "tombstoned") for kind in ("summary", "transcript", "manifest")}
        assert vault.problems(answer.json) == problems
        assert all("cannot be deleted" in line for line in answer.json["trouble"]) and answer.json["trouble"]
        assert vault.hits("qzxvbodycanary") == []
        assert vault.call("status", "--json").json["counts"]["tombstoned"] == 3
    finally:
        vault.memory.chmod(0o700)
    document = vault.reindex()
    assert document["counts"]["tombstoned"] == 3 and not (vault / mine("summary")).exists()
    assert vault.reindex()["problems"] == [] and vault.call("status", "--json").json["counts"]["tombstoned"] == 0
    assert vault.rows("select scrubbed from memory_artifact_tombstones") == [(1,)]


def test_a_tombstone_that_cannot_be_written_removes_nothing(vault):
    vault.memory.chmod(0o500)
    before = vault.dump()
    try:
        answer = spawn_ordinary("--workspace", vault.root, "remove", ID, "--reason", "x", "--yes", "--json")
    finally:
        vault.memory.chmod(0o700)
    assert answer.code == 3 and answer.json["error"]["hint"]
    assert vault.dump() == before


def test_nothing_is_removed_while_the_files_are_away(vault, tmp_path):
    vault.memory.rename(tmp_path / "away")
    answer = vault.call("remove", ID, "--reason", "x", "--yes", "--json", "--now", NOW)
    assert answer.code == 5 and "while files are missing" in answer.json["error"]["message"]
    assert not vault.memory.exists() and vault.hits("qzxvbodycanary")


# ── files that are not ours ──


def test_foreign_files_that_still_hold_it_are_named_and_left(vault):
    said = "In lantern the qjkxsentencecanary bounded the retry loop of src/queue.py so that it ends."
    notes = {
        "memory/memories.db": b"SQLite format 3\0" + ID.encode(),
        "memory/codex/transcripts/a.jsonl": b'{"session": "' + KEY.encode() + b'"}',
        "notes/mine.md": f"see [[{mine('summary')}|the session]]".encode(),
        ".obsidian/workspace.json": f'{{"lastOpenFiles": ["{mine("summary")}"]}}'.encode(),
        f".{mine('summary')}": said.encode(),
        "other.md": b"nothing of it",
    }
    for path, raw in notes.items():
        (vault / path).parent.mkdir(parents=True, exist_ok=True)
        (vault / path).write_bytes(raw)
    (vault / "loop").symlink_to(vault.root)
    os.mkfifo(vault / "pipe")
    before = {path: (vault / path).read_bytes() for path in notes}
    assert remove(vault)["foreign"] == sorted(set(notes) - {"other.md"})
    assert {path: (vault / path).read_bytes() for path in notes} == before


def test_a_persons_words_around_our_block_are_named(vault):
    (vault / "MEMORY.md").write_text(f"I keep {ID} in mind.\n\n" + vault.page())
    document = remove(vault)
    assert document["foreign"] == ["MEMORY.md"]
    assert vault.page().startswith(f"I keep {ID} in mind.\n\n<!-- signet:begin -->")


def test_its_words_in_our_block_go_though_another_machine_removed_it(vault):
    """They are kept beside the page, by a pass that still knows whose words they are."""
    said = "In lantern the qjkxsentencecanary bounded the retry loop of src/queue.py so that it ends."
    heading = "## Session Ledger"
    (vault / "MEMORY.md").write_text(vault.page().replace(heading, f"{said}\n\nMy own words.\n\n{heading}"))
    vault.put(made.tombstone(token=TOKEN), "memory/tombstones")
    vault.reindex()
    (kept,) = vault.root.glob("MEMORY.user-*.md")
    assert "My own words." in kept.read_text() and leaks(vault.root, vault.state) == []


def test_while_pages_are_held_back_our_own_lose_what_was_removed(vault):
    with process_of(vault.root):
        manifests = {path: path.read_bytes() for path in vault.memory.glob("*manifest.md") if TOKEN not in path.name}
        assert ID in vault.page("ledger/2026/03/28.md") or KEY in vault.page("ledger/2026/03/28.md")
        document = remove(vault)
        assert document["foreign"] == [] and leaks(vault.root, vault.state) == []
        assert vault.reindex()["held"] and leaks(vault.root, vault.state) == []
        assert {path: path.read_bytes() for path in manifests} == manifests, "manifests are Signet's, too"
        page = vault.page()
        vault.session(7, captured_at="2026-03-27T11:00:00.000Z")
        vault.session(8, captured_at="2026-01-02T11:00:00.000Z")
        vault.reindex()
        assert vault.page() == page, "MEMORY.md follows only in what was removed"
        assert numbered(7)["session_id"] in vault.page("ledger/2026/03/27.md"), "pages of ours that stand are kept true"
        assert not (vault / "ledger/2026/01/02.md").exists(), "none is made"
        before = contents(vault.root)
        vault.reindex()
        assert contents(vault.root) == before
    vault.reindex()
    assert numbered(7)["session_id"] in vault.page() and (vault / "ledger/2026/01/02.md").exists()


def test_a_page_that_signet_wrote_is_named_and_not_touched(vault):
    theirs = f"<!-- generated 2026-03-29 12:05 -->\n# Working Memory Summary\n- {ID} said <!-- signet:end --> so\n"
    with process_of(vault.root):
        (vault / "MEMORY.md").write_text(theirs)
        assert remove(vault)["foreign"] == ["MEMORY.md"]
        assert vault.page() == theirs and leaks(vault.root, vault.state, but=("MEMORY.md",)) == []
    vault.reindex()
    assert vault.page() != theirs and leaks(vault.root, vault.state) == []


def test_the_git_history_is_looked_at(vault):
    git(vault.root, "init", "--quiet")
    git(vault.root, "add", "MEMORY.md")
    git(vault.root, "commit", "--quiet", "--message", "page")
    assert remove(vault, numbered(2)["session_id"])["git_history"] == "clean"
    git(vault.root, "add", "memory")
    git(vault.root, "commit", "--quiet", "--message", "memory")
    answer = vault.call("remove", numbered(1)["session_id"], "--reason", "x", "--yes")
    line = next(line for line in answer.out.splitlines() if "filter-repo" in line)
    assert line.startswith("    git filter-repo --invert-paths --path memory/") and line.endswith("--path MEMORY.md")


# ── asking, dry run, undo ──


def test_a_dry_run_writes_nothing(vault):
    def all_of_it():
        return tree(vault.root), tree(vault.state)

    before = all_of_it()
    answer = vault.call("remove", KEY, "--dry-run", "--json")
    assert answer.code == 0
    paths = sorted(mine(k) for k in ("summary", "transcript", "manifest"))
    covered = {"agent_id": "default", "session_token": TOKEN, "session_ids": [ID], "paths": paths}
    assert answer.json["removals"] == [covered | {"entity_lines": []}]
    shown = vault.call("remove", ID, "--dry-run")
    assert mine("summary") in shown.out and "nothing was removed" in shown.out and not shown.err
    assert all_of_it() == before
    ((sentence,),) = vault.rows("select sentence from thread_sessions where session_id = ?", ID)
    assert f" · {sentence[:60]}" in shown.out.splitlines()[1]


def test_a_removal_needs_a_reason_and_somebody_who_agrees(vault):
    before = contents(vault.root)
    assert vault.call("remove", ID).code == vault.call("remove", ID, "--reason", " \x01", "--yes").code == 2
    for command in ("remove", "redact"):  # at once: before anything is looked for
        assert "--reason is required" in vault.call(command, "nobody", "--yes").err
    answer = vault.spawn("remove", ID, "--reason", "x", stdin=subprocess.DEVNULL)
    assert answer.code == 2 and "--yes" in answer.err
    assert vault.call("remove", "nobody", "--reason", "x", "--yes", "--json").json["error"]["code"] == "unknown-session"
    assert contents(vault.root) == before


def test_a_vanished_session_can_be_removed_for_good(vault):
    for kind in ("summary", "transcript", "manifest"):
        (vault / mine(kind)).unlink()
    vault.reindex()
    document = remove(vault, KEY)
    assert sorted(document["removed_paths"]) == sorted(mine(k) for k in ("summary", "transcript"))
    assert leaks(vault.root, vault.state) == [] and vault.reindex()["problems"] == []
