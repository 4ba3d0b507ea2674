"""`reindex` and `check` end to end: what a pass leaves alone, heals, refuses and says."""

from __future__ import annotations

import os
import shutil

import artifacts_fixture as made
import pytest
from history_vault import git
from workbench import NOW, SIGNS, Vault, cast, contents, numbered, path_of, tree

from signet_sync.formats.body import normalize, text_sha256
from signet_sync.formats.frontmatter import parse
from signet_sync.formats.snapshot import Trouble
from signet_sync.sync import engine, indexing, reading
from signet_sync.sync.store import artifacts


@pytest.fixture
def vault(tmp_path):
    """Three sessions, one of them with a compaction, indexed once."""
    found = Vault(tmp_path / "vault")
    for number in (1, 2, 3):
        found.session(number)
    who = {k: v for k, v in numbered(2).items() if k != "body"}
    found.put(made.compaction(**who, body="# Compacted\n\n## Decisions\n\n- lantern keeps its queue.\n"))
    found.reindex()
    return found


def lose_database(vault):
    for suffix in ("", "-wal", "-shm"):
        vault.db.with_name(vault.db.name + suffix).unlink(missing_ok=True)


# ── a pass that finds nothing new ──


def test_a_second_pass_writes_nothing_at_all(vault):
    (vault.memory / "people's notes.md").write_text("mine")
    (vault.memory / "folder").mkdir()
    os.mkfifo(vault / path_of("summary", 7))
    vault.put(("2026-03-20T10-00-00.000Z--aaaaaaaaaaaaaaaa--summary.md", b"broken"))
    (vault / path_of("transcript", 3)).unlink()
    vault.reindex()
    places = [vault.root, vault.state]
    before = [tree(place, but=SIGNS) for place in places]
    document = vault.reindex()
    assert [tree(place, but=SIGNS) for place in places] == before
    assert document["counts"]["removed_rows"] == 0 and not document["trouble"]
    assert not any(page["changed"] for page in document["agents"].values())


class Killed(BaseException):
    """Nothing catches it."""


@pytest.mark.parametrize("lost", ["nothing", "the database and a file"])
def test_a_first_index_answers_before_it_is_complete_and_goes_on_when_it_was_killed(tmp_path, monkeypatch, lost):
    """Killed while it reads the second part; the next pass reads only what is left, as if it had not been killed."""
    vault = Vault(tmp_path / "vault")
    for number in (4, 9, 7, 10, 1, 2, 6, 3, 8, 5):  # no order in which a file system might list them
        vault.session(number)
    if lost != "nothing":
        vault.reindex()
        lose_database(vault)
        (vault / path_of("transcript", 10)).unlink()
    for name, value in {"NEWEST": 7, "PART": 6, "MANY": 5}.items():
        monkeypatch.setattr(indexing, name, value)
    log, page, parts = vault / "ledger/2026-03.md", vault / "MEMORY.md", []
    logged = log.read_bytes() if log.exists() else None

    def killed(run, paths, *given):
        parts.append(len(paths))
        if len(parts) == 2:
            raise Killed
        return reading.read_and_write(run, paths, *given)

    monkeypatch.setattr(indexing, "read_and_write", killed)
    with pytest.raises(Killed):
        vault.call("reindex", "--now", NOW)
    assert vault.rows("select count(*) from files") == [(7,)]
    assert vault.hits("number1x") and not vault.hits("number10x")
    assert "step number 1 bounded" in page.read_text() and "step number 10 bounded" not in page.read_text()
    assert (log.read_bytes() if log.exists() else None) == logged, "a page of the log is complete, or as it was"
    assert vault.call("status", "--json").json["backlog"] == (23 if lost == "nothing" else 22)
    assert vault.call("remember", "Lamps need oil.").code == 0  # hides nothing: it looks at all that is left
    assert vault.call("status", "--json").json["backlog"] == 0 and max(parts) == 7
    document = vault.reindex()
    if lost != "nothing":
        assert vault.problems(document) == {path_of("transcript", 10): ("violation", "vanished")}
        return
    assert not document["problems"] and vault.rows("select count(*) from links where broken") == [(0,)]
    assert "step number 10 bounded" in vault.page() and vault.dump() == vault.dump_from_scratch()
    assert document["counts"]["read"] == 0


BETWEEN = {
    "no memory/": lambda vault, run, patch: vault.memory.rename(vault / "elsewhere"),
    "torn files": lambda vault, run, patch: patch.setattr(reading, "read_settled", lambda *_: Trouble("unsettled", "")),
    "another sanitizer": lambda vault, run, patch: artifacts.set_sanitizer_of_rows(run.database, "older"),
}


@pytest.mark.parametrize("happens", BETWEEN)
def test_a_first_index_in_parts_ends_whatever_happens_between_two(tmp_path, monkeypatch, happens):
    vault, calls = Vault(tmp_path / "vault"), []
    for number in range(1, 5):
        vault.session(number)

    def index(run):
        calls.append(run)
        assert len(calls) < 6
        if len(calls) == 2:
            BETWEEN[happens](vault, run, patch)
        indexing.index(run)

    with monkeypatch.context() as patch:
        for name in ("NEWEST", "PART", "MANY"):
            patch.setattr(indexing, name, 3)
        patch.setattr(engine, "index", index)
        vault.reindex(code=5 if happens == "no memory/" else 0)
    assert (vault / "ledger").exists() == (happens == "another sanitizer"), "a page of the log is complete"
    if not vault.memory.exists():
        (vault / "elsewhere").rename(vault.memory)
    vault.reindex()
    assert vault.dump() == vault.dump_from_scratch()


# ── databases that are lost or damaged ──


def test_a_deleted_database_comes_back_the_same(vault):
    assert vault.call("recall", "number1x").code == 0
    vault.reindex()
    before = vault.dump(), vault.rows("select * from node_telemetry order by 1, 2")
    seals = vault.rows("select path, digest, text_sha256, sealed_at from seals order by path")
    pages = contents(vault.root)
    lose_database(vault)
    document = vault.reindex()
    assert any("came back from the backup" in line for line in document["trouble"])
    assert (vault.dump(), vault.rows("select * from node_telemetry order by 1, 2")) == before
    assert vault.rows("select path, digest, text_sha256, sealed_at from seals order by path") == seals
    assert contents(vault.root) == pages
    # The bytes of the seals stand in no backup, but in the files that still fit them.
    assert vault.rows("select count(*) from seals where packed is null") == [(0,)]


def test_a_mutation_is_still_seen_after_the_database_was_lost(vault):
    """The backup keeps digests of the seals; only their bytes are gone."""
    lose_database(vault)
    path = vault / path_of("summary")
    raw = path.read_bytes()
    changed = raw.replace(b"keeps its word", b"breaks its word")
    document = parse(changed)
    digest = text_sha256(normalize(document.body)).encode()
    path.write_bytes(changed.replace(parse(raw).fields["content_sha256"].encode(), digest))
    assert vault.problems(vault.reindex()) == {path_of("summary"): ("violation", "mutated")}
    answer = vault.call("violations", "restore", path_of("summary"))
    assert answer.code == 2 and "lost with a database" in answer.err
    assert vault.call("violations", "accept", path_of("summary"), "--reason", "mine", "--now", NOW).code == 0
    assert vault.reindex()["problems"] == []


# ── the cliff ──


@pytest.fixture(scope="module")
def mould(tmp_path_factory):
    return cast(tmp_path_factory.mktemp("many"), lambda vault: vault.indexed(*range(1, 15)))


@pytest.fixture
def many(mould, tmp_path):
    found = mould(tmp_path)
    found.reindex()  # whose files are others by now
    return found


def test_a_missing_memory_folder_halts_and_goes_on_when_it_is_back(many):
    before = many.dump()
    many.memory.rename(many / "elsewhere")
    document = many.reindex(code=5)
    assert document["halted"]["state"] == "cliff"
    assert (document["halted"]["would_remove"], document["halted"]["indexed"]) == (42, 42)
    assert "--accept-removals" in document["halted"]["hint"]
    assert many.dump() == before and many.hits("number1x")
    assert not many.memory.exists()
    assert many.call("status", "--json").json["state"] == "halted: cliff"
    assert "> [!warning] signet-sync is halted" in many.page()
    (many / "elsewhere").rename(many.memory)
    assert many.reindex()["halted"] is None
    assert many.call("status", "--json").json["state"] == "stopped"
    assert "[!warning]" not in many.page()


def test_accepted_removals_leave_the_index_and_stay_restorable(many):
    for path in many.memory.glob("*.md"):
        path.unlink()
    many.reindex(code=5)
    document = many.reindex("--accept-removals")
    assert document["halted"] is None and document["counts"]["removed_rows"] == 42
    assert document["counts"]["indexed"] == 0 and document["counts"]["violation"] == 0
    assert many.hits("number1x") == [] and not (many / "MEMORY.md").exists() and not (many / "ledger").exists()
    for more in ((), ("--full",)):
        document = many.reindex(*more)
        assert (document["mode"] == "full") == bool(more)
        assert document["halted"] is None and document["problems"] == []
    (accepted,) = {one["reason"] for one in many.call("violations", "list", "--accepted", "--json").json["accepted"]}
    assert accepted == "reindex --accept-removals"
    answer = many.call("violations", "restore", "--accepted", "--yes", "--json", "--now", NOW)
    assert answer.code == 0 and len(answer.json["restored"]) == 28
    document = many.reindex()
    assert document["counts"]["indexed"] == 42 and not document["problems"]


# ── manifests ──


def test_a_manifest_that_is_gone_is_written_again(vault):
    path = vault / path_of("manifest", 2)
    before = parse(path.read_bytes()).fields
    path.unlink()
    document = vault.reindex()
    assert [n["path"] for n in document["notes"] if n["code"] == "manifest-rebuilt"] == [path_of("manifest", 2)]
    fields = parse(path.read_bytes())
    same = ("kind", "agent_id", "session_id", "session_key", "project", "harness", "captured_at", "summary_path",
            "transcript_path", "memory_md_refs")  # fmt: skip
    assert {k: fields.fields[k] for k in same} == {k: before[k] for k in same}
    assert fields.fields["compaction_path"] == path_of("compaction", 2)
    assert f"[[{path_of('summary', 2)}|summary]]" in fields.body
    assert not document["problems"] and document["counts"]["indexed"] == 10
    assert not [n for n in vault.reindex()["notes"] if n["code"] in ("manifest-rebuilt", "link-broken")]


def test_references_follow_the_page_and_leave_updated_at(vault):
    paths = [vault / path_of("manifest", number) for number in (1, 2, 3)]
    shown = [parse(path.read_bytes()).fields for path in paths]
    assert [f["memory_md_refs"] for f in shown] == [["Session Ledger (Last 30 Days)"]] * 3
    assert [f["revision"] for f in shown] == ["2"] * 3
    assert [f["updated_at"] for f in shown] == [numbered(n)["captured_at"] for n in (1, 2, 3)]
    # Thirty days later but for two minutes: the session of the 26th has left the window, that of the 27th has not.
    later = vault.reindex(now="2026-04-26T10:00:00.000Z")
    assert later["agents"]["default"]["sessions_in_window"] == 2
    after = [parse(path.read_bytes()).fields for path in paths]
    assert [f["memory_md_refs"] for f in after] == [shown[0]["memory_md_refs"]] * 2 + [None]
    assert [f["revision"] for f in after] == ["2", "2", "3"]
    assert [f["updated_at"] for f in after] == [f["updated_at"] for f in shown]
    assert vault.problems(later) == {}


# ── violations ──


def test_an_edited_body_is_a_violation_that_restore_heals(vault):
    path = vault / path_of("summary")
    raw = path.read_bytes()
    path.write_bytes(raw + b"One more line.\n")
    (problem,) = vault.reindex()["problems"]
    assert (problem["verdict"], problem["code"]) == ("violation", "mutated") and path_of("summary") in problem["hint"]
    assert "> [!warning] 1 file of this vault was changed or lost after being sealed: signet-sync violations list" in (
        vault.page()
    )
    assert vault.call("status", "--json").json["violations"] == [path_of("summary")]
    shown = vault.call("violations", "list", path_of("summary")).out
    assert "+One more line.\n" in shown and f"--- {path_of('summary')} (sealed " in shown
    document = vault.call("violations", "list", path_of("summary"), "--json").json
    assert document == {"path": path_of("summary"), "diff": shown}
    assert vault.call("violations", "restore", path_of("summary"), "--now", NOW).code == 0
    assert path.read_bytes() == raw
    assert vault.reindex()["problems"] == [] and "[!warning]" not in vault.page()


def test_an_accepted_edit_gets_a_seal_and_a_hash_of_its_own(vault):
    path = vault / path_of("summary")
    head, _, body = path.read_bytes().rpartition(b"---\n")
    path.write_bytes(head.replace(b'kind: "summary"', b'extra: "kept"\nkind: "summary"') + b"---\n" + body + b"More.\n")
    vault.reindex()
    reason = "my own words, password=hunter2hunter2"
    answer = vault.call("violations", "accept", path_of("summary"), "--reason", reason, "--now", NOW)
    assert answer.code == 0
    assert "REDACTED" in str(vault.rows("select reason from acceptances"))
    document = parse(path.read_bytes())
    assert document.fields["content_sha256"] == text_sha256(normalize(document.body))
    assert document.fields["extra"] == "kept" and document.body.endswith("More.\n")
    assert vault.reindex()["problems"] == [] and path_of("summary") in vault.hits("more")
    path.write_bytes(path.read_bytes() + b"Again.\n")
    assert vault.problems(vault.reindex()) == {path_of("summary"): ("violation", "mutated")}
    assert vault.call("violations", "restore", path_of("summary"), "--now", NOW).code == 0
    assert path.read_bytes().endswith(b"More.\n")


def test_what_cannot_be_accepted_says_why(vault):
    path = vault / path_of("summary")
    raw = path.read_bytes()
    another = raw.replace(numbered(1)["session_id"].encode(), b"somebody-else")
    for edited, why in ((b"no frontmatter", "cannot be accepted"), (another, "identity is never accepted")):
        path.write_bytes(edited)
        answer = vault.call("violations", "accept", path_of("summary"), "--reason", "x")
        assert answer.code == 2 and why in answer.err
    assert vault.call("violations", "accept", "memory/none.md", "--reason", "x").code == 2


# ── CI: index only, check ──


def test_index_only_leaves_a_checkout_as_it_was(vault, tmp_path):
    shutil.rmtree(vault / ".signet")
    shutil.rmtree(vault.root.parent / "machine", ignore_errors=True)
    (vault / path_of("manifest", 2)).unlink()
    (vault / path_of("summary", 3)).write_bytes(b"broken")
    vault.put(made.tombstone(session_id=numbered(1)["session_id"]), "memory/tombstones")
    git(vault.root, "init", "--quiet")
    git(vault.root, "add", "--all")
    git(vault.root, "commit", "--quiet", "--message", "all")
    before = tree(vault.root)
    document = vault.reindex("--index-only")
    assert git(vault.root, "status", "--porcelain", "--ignored") == ""
    after = tree(vault.root)
    assert {p: found for p, found in after.items() if not p.startswith(".git")} == {
        p: found for p, found in before.items() if not p.startswith(".git")
    }
    assert not (vault / ".signet").exists()
    assert document["agents"] == {}
    assert {code for _, code in vault.problems(document).values()} == {"frontmatter-missing", "tombstoned"}
    assert document["counts"]["tombstoned"] == 3
    assert vault.hits("number1x") == [] and vault.hits("number2x")
    assert vault.call("reindex", "--index-only", "--strict", "--now", NOW).code == 1


def test_check_agrees_with_reindex(vault):
    raw = (vault / path_of("summary")).read_bytes()
    vault.put({
        "note.md": b"mine",
        ".syncthing.x.md.tmp": b"",
        path_of("summary", 3).removeprefix("memory/").replace(".md", " (1).md"): raw,
        path_of("compaction", 3).removeprefix("memory/"): b"broken",
    })  # fmt: skip
    check = vault.call("check", "--json", "--now", NOW).json
    reindexed = vault.reindex()
    for problem in check["problems"]:
        assert (problem.pop("line", None) is None) == (problem["verdict"] == "ignored")
    assert check["problems"] == reindexed["problems"]
    same = ("indexed", "ignored", "invalid", "violation", "tombstoned", "tombstones", "scanned")
    assert {k: check["counts"][k] for k in same} == {k: reindexed["counts"][k] for k in same}
    assert check["ok"] is False


def test_checks_exit_codes(vault):
    def code(*arguments):
        return vault.call("check", "--now", NOW, *arguments).code

    assert code() == 0 and code("--strict") == 0
    (vault.memory / "note.md").write_text("mine")
    assert code() == 0 and code("--strict") == 0
    summary = vault / path_of("summary")
    raw = summary.read_bytes()
    summary.write_bytes(raw.replace(b"\n", b"\r\n"))
    assert code() == 0 and code("--with-index") == 0
    assert code("--strict", "--with-index") == 1
    summary.write_bytes(raw + b"edited\n")
    assert code() == 1
    summary.write_bytes(raw)
    (vault / path_of("transcript")).unlink()
    assert code() == 0 and code("--with-index") == 1
    assert code("--strict") == 1  # the manifest's link is broken
    git(vault.root, "init", "--quiet")
    (vault / ".gitignore").write_text("memory/*--transcript.md\n")
    assert code("--strict") == 0
    vault.put(made.tombstone(session_id=numbered(2)["session_id"]), "memory/tombstones")
    assert code() == 1
