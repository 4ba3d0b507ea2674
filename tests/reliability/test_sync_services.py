"""What Obsidian, cloud drives and checkouts do to a vault: no value lost, no copy indexed, no fight over a page."""

from __future__ import annotations

import itertools
import os
import shutil
from pathlib import Path

import hand_edits
import pytest
from workbench import NOW, Vault, numbered, path_of, tree

from signet_sync.app import changed_paths
from signet_sync.app.workspace import opened
from signet_sync.formats import managed_block
from signet_sync.formats.frontmatter import parse
from signet_sync.formats.timestamps import parse_instant
from signet_sync.settings.model import Settings
from signet_sync.sync.engine import run_pass
from signet_sync.sync.workspace import Outcome, Request

NOW_US = parse_instant(NOW) or 0
WARNING = "changed or lost after being sealed"


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    """Two sessions that were indexed."""
    return Vault(tmp_path / "vault").indexed(1, 2)


def hinted(vault: Vault, *paths: str, settle: float = 0.0) -> Outcome:
    """The agent's pass after events of some paths."""
    with opened(str(vault.root), Settings()) as workspace:
        asked = changed_paths.relevant(workspace, frozenset(paths))
        return run_pass(workspace, Request(now_us=NOW_US, paths=asked, settle_seconds=settle))


def note_codes(document: dict[str, list[dict[str, str]]], path: str) -> set[str]:
    return {note["code"] for note in document["notes"] if note["path"] == path}


# ── editors ──


def test_saved_again_in_any_way_a_file_stays_what_it_was(vault: Vault) -> None:
    rows = [row for row in vault.dump() if row[0] != "files"]
    written = {kind: (vault / path_of(kind)).read_bytes() for kind in ("summary", "transcript")}
    for (what, again), how in itertools.product(hand_edits.RESAVINGS.items(), hand_edits.SAVINGS):
        kind = ("summary", "transcript")[len(what + how) % 2]
        hand_edits.save(vault / path_of(kind), again(written[kind]), how)
        assert not hinted(vault, path_of(kind)).trouble
        (verdict,) = vault.rows("select verdict, notes from files where path = ?", path_of(kind))
        assert verdict[0] == "indexed" and ("reformatted" in (verdict[1] or "")) == (what != "unchanged")
        assert [row for row in vault.dump() if row[0] != "files"] == rows, (what, how)
    document = vault.reindex()
    assert not document["problems"] and document["counts"]["indexed"] == 6
    assert WARNING not in vault.page()


def test_keys_that_an_editor_gave_another_name_to_are_none_of_ours(vault: Vault) -> None:
    path = vault / path_of("summary")
    raw = path.read_bytes()
    path.write_bytes(raw.replace(b"\n---\n", b'\ntag: "work"\nalias: "mine"\ncssclass: "wide"\n---\n', 1))
    assert not vault.reindex()["problems"]
    path.write_bytes(raw.replace(b"\n---\n", b"\ntags:\n  - work\naliases:\n  - mine\ncssclasses:\n  - wide\n---\n", 1))
    document = vault.reindex()
    assert not document["problems"] and note_codes(document, path_of("summary")) == {"reformatted"}


def test_a_linters_key_is_none_of_ours_but_its_blank_line_is_another_text(vault: Vault) -> None:
    path = vault / path_of("summary")
    raw = path.read_bytes()
    path.write_bytes(hand_edits.as_a_linter(raw))
    assert not vault.reindex()["problems"]
    path.write_bytes(raw.replace(b"\n---\n", b"\n---\n\n", 1))
    assert vault.problems(vault.reindex()) == {path_of("summary"): ("violation", "mutated")}
    assert vault.hits("number1x"), "what was sealed goes on being found"
    assert vault.call("violations", "restore", "--all", "--yes", "--now", NOW).code == 0
    assert path.read_bytes() == raw and not vault.reindex()["problems"]


def test_a_renamed_file_and_the_links_that_followed_it_lose_nothing(vault: Vault) -> None:
    """Obsidian rewrites the links to a file in all others."""
    body = f"# After it\n\nSee [[{path_of('summary')}|the other]] for word3x.\n"
    vault.session(3, body=body)
    vault.reindex()
    old, new = path_of("summary"), "memory/Retry loop.md"
    before = {path: (vault / path).read_bytes() for path in (old, path_of("summary", 3))}
    (vault / old).rename(vault / new)
    linking = vault / path_of("summary", 3)
    linking.write_bytes(linking.read_bytes().replace(old.encode(), new.encode()))
    problems = vault.problems(vault.reindex())
    assert problems[old] == ("violation", "vanished")
    assert problems[path_of("summary", 3)] == ("violation", "mutated")
    assert problems[new] == ("ignored", "foreign-name")
    assert len(vault.rows("select 1 from memory_artifacts")) == 8 and vault.hits("word3x")
    assert vault.call("violations", "restore", "--all", "--yes", "--now", NOW).code == 0
    assert {path: (vault / path).read_bytes() for path in before} == before
    assert vault.problems(vault.reindex()).keys() == {new}


def test_what_obsidian_takes_to_its_trash_is_missed_and_comes_back(vault: Vault) -> None:
    trash = vault / ".trash"
    trash.mkdir()
    taken = [path_of(kind) for kind in ("summary", "transcript")]
    for path in taken:
        (vault / path).rename(trash / Path(path).name)
    document = vault.reindex()
    assert vault.problems(document) == dict.fromkeys(taken, ("violation", "vanished"))
    assert document["counts"]["tombstones"] == 0 and not vault.hits("number1x")
    assert vault.hits("number2x") and len(list(trash.iterdir())) == 2
    rows = vault.dump_from_scratch()
    assert not [row for row in rows if row[0] == "memory_artifacts" and ".trash" in row[2]]
    for path in taken:
        (trash / Path(path).name).rename(vault / path)
    assert not vault.reindex()["problems"] and vault.hits("number1x")


def test_a_vault_opened_in_obsidian_is_the_same_vault(vault: Vault) -> None:
    for name in (".obsidian/workspace.json", ".obsidian/plugins/x.js", ".trash/old.md", "memory/.obsidian/app.json"):
        (vault / name).parent.mkdir(parents=True, exist_ok=True)
        (vault / name).write_bytes(b"{}")
    before, rows = tree(vault.root), vault.dump()
    document = vault.reindex()
    assert not document["problems"] and vault.dump() == rows and tree(vault.root) == before
    with opened(str(vault.root), Settings()) as workspace:
        assert (
            changed_paths.relevant(workspace, frozenset({".obsidian/workspace.json", ".trash/old.md"})) == frozenset()
        )


# ── copies ──


def test_of_copies_of_pages_and_manifests_every_word_of_a_person_stays(vault: Vault) -> None:
    """Those of pages keep what somebody typed, those of manifests are joined, those of artifacts are told and left."""
    page = vault.page()
    manifest = (vault / path_of("manifest")).read_bytes()
    theirs: dict[str, bytes] = {}
    for service in hand_edits.CONFLICTS:
        names = ("MEMORY.md", path_of("manifest"), path_of("summary"))
        own = (f"typed by {service}\n\n".encode() + page.encode(), manifest + f"said by {service}\n".encode(), b"")
        for path, raw in zip(names, own, strict=True):
            folder, _, name = path.rpartition("/")
            copy = hand_edits.conflict_name(name, service)
            theirs[f"{folder}/{copy}" if folder else copy] = raw or (vault / path).read_bytes()
    for path, raw in theirs.items():
        (vault / path).write_bytes(raw)
    for document in (vault.reindex(), vault.reindex("--full"), vault.reindex()):
        copies = {path for path in theirs if "--summary" in path}
        told = vault.problems(document)
        assert copies <= {path for path, problem in told.items() if problem == ("ignored", "conflict-copy")}
        assert all((vault / path).read_bytes() == theirs[path] for path in copies)
        words = "".join(file.read_text() for file in vault.root.rglob("*.md") if file.is_file())
        for service in hand_edits.CONFLICTS:
            assert f"typed by {service}\n" in words and f"said by {service}\n" in words, service
        pages = [path for path in theirs if "/" not in path and (vault / path).exists()]
        assert not [path for path in pages if "signet:begin" in (vault / path).read_text()]
        assert not [path for path in theirs if "--manifest" in path and (vault / path).exists()]
    assert vault.page() == page
    before = tree(vault.root)
    vault.reindex()
    assert tree(vault.root) == before
    assert vault.dump() == vault.dump_from_scratch()


def test_one_pass_settles_copies_of_what_it_writes_itself(vault: Vault) -> None:
    """A copy that equals its file waits until that is later, and a pass writes references and pages of its own."""
    page = vault.page()
    for service in ("Syncthing", "OneDrive"):
        (vault / hand_edits.conflict_name("MEMORY.md", service)).write_text(f"typed once\n{page}")
    (vault / "MEMORY.md").write_text(f"typed once\n{page}")
    name = Path(next(path for path in vault.session(7).values() if "--manifest" in path)).name
    for service in ("Obsidian Sync", "ownCloud"):
        (vault.memory / hand_edits.conflict_name(name, service)).write_bytes((vault.memory / name).read_bytes())
    vault.reindex()
    before = tree(vault.root)
    assert not [path for path in before if "onflict" in path or "LAPTOP" in path]
    vault.reindex()
    assert tree(vault.root) == before and "typed once" in vault.page()


# ── order and time ──


def test_in_whatever_order_files_arrive_the_end_is_the_same(tmp_path: Path) -> None:
    dumps = set()
    orders = list(itertools.permutations(["manifest", "summary", "transcript", "MEMORY.md"]))
    for number, order in enumerate(orders[:: len(orders) // 4]):
        vault = Vault(tmp_path / f"{number}" / "vault")
        vault.reindex()
        elsewhere = Vault(tmp_path / f"{number}" / "elsewhere")
        elsewhere.session(1)
        for part in order:
            path = part if part == "MEMORY.md" else path_of(part)
            raw = (
                managed_block.block("# Working Memory\n\n- theirs") if part == path else (elsewhere / path).read_bytes()
            )
            (vault / path).write_bytes(raw)
            assert not hinted(vault, path).trouble
            assert {verdict for (verdict,) in vault.rows("select verdict from files")} <= {"indexed"}
        document = vault.reindex()
        assert not document["problems"] and not document["notes"], order
        assert vault.dump() == vault.dump_from_scratch()
        dumps.add(repr([row for row in vault.dump() if row[0] != "memory_artifacts"]) + vault.page())
    assert len(dumps) == 1


def test_a_checkout_with_other_line_ends_is_the_same_vault(vault: Vault, tmp_path: Path) -> None:
    other = Vault(tmp_path / "windows")
    for path in vault.memory.glob("*.md"):
        raw = path.read_bytes()
        (other.memory / path.name).write_bytes(raw.replace(b"\n", b"\r\n"))
    document = other.reindex()
    assert not document["problems"] and document["counts"]["indexed"] == 6
    assert {note["code"] for note in document["notes"]} == {"crlf"}
    mine, theirs = ([row for row in each.dump() if row[0] == "memory_artifacts"] for each in (vault, other))
    assert mine == theirs
    assert (other / "MEMORY.md").read_bytes() == (vault / "MEMORY.md").read_bytes()


# ── pages of others, markers of merges ──


def test_merge_markers_on_a_page_cost_nobody_a_word(vault: Vault) -> None:
    ours = (vault / "MEMORY.md").read_bytes()
    sides = [b"typed here\n\n" + ours, b"typed there\n\n" + ours.replace(b"# Working", b"# Former")]
    torn = b"<<<<<<< mine\n" + sides[0] + b"=======\n" + sides[1] + b">>>>>>> theirs\n"
    (vault / "MEMORY.md").write_bytes(torn)
    hinted(vault, "MEMORY.md")
    page = (vault / "MEMORY.md").read_bytes()
    kept = b"".join(path.read_bytes() for path in vault.root.glob("MEMORY*.md"))
    assert page.count(managed_block.BEGIN) == 1 and managed_block.is_generated(page)
    assert all(word in kept for word in (b"typed here", b"typed there", b"<<<<<<< mine", b">>>>>>> theirs"))
    before = tree(vault.root)
    vault.reindex()
    assert tree(vault.root) == before


def test_merge_markers_in_a_manifest_are_left_to_the_person(vault: Vault) -> None:
    path = vault / path_of("manifest")
    good = path.read_bytes()
    torn = good.replace(b"\nagent_id", b"\n<<<<<<< mine\nagent_id", 1)
    path.write_bytes(torn)
    assert vault.problems(vault.reindex()) == {path_of("manifest"): ("invalid", "frontmatter-invalid")}
    assert path.read_bytes() == torn and vault.hits("number1x")
    assert f"[[{path_of('summary')}|summary]]" in vault.page()
    path.write_bytes(good)
    assert not vault.reindex()["problems"]
    assert parse(path.read_bytes()).fields["session_id"] == numbered(1)["session_id"]


# ── files that a service keeps elsewhere ──


def test_a_file_that_a_cloud_drive_took_off_the_disk_is_as_it_was_when_it_is_back(vault: Vault) -> None:
    path = vault / path_of("summary")
    stub = path.with_name(f".{path.name}.icloud")
    raw, rows = path.read_bytes(), vault.dump()
    path.unlink()
    stub.write_bytes(b"bplist00")
    document = vault.reindex()
    assert vault.problems(document)[path_of("summary")] == ("violation", "vanished")
    assert vault.problems(document)[f"memory/{stub.name}"] == ("ignored", "conflict-copy")
    assert document["counts"]["tombstones"] == 0
    shutil.move(stub, path)
    path.write_bytes(raw)
    assert not vault.reindex()["problems"] and vault.dump() == rows


def test_a_file_whose_bytes_are_in_the_cloud_is_not_fetched_and_keeps_its_row(
    vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As macOS tells of it: its size stands there, and whoever reads it waits for the network."""
    path = vault / path_of("summary")
    os.utime(path, ns=(0, 10**18))  # else nobody would look at it again
    inode, really = path.stat().st_ino, os.fstat

    class Away:
        def __init__(self, status: os.stat_result) -> None:
            self.status, self.st_flags = status, 0x40000000

        def __getattr__(self, name: str) -> object:
            return getattr(self.status, name)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fstat", lambda handle: Away(it) if (it := really(handle)).st_ino == inode else it)
        document = vault.reindex()
    assert vault.problems(document) == {path_of("summary"): ("invalid", "unreadable")}
    assert "not downloaded" in document["problems"][0]["message"] and path.stat().st_atime_ns == 0
    assert len(vault.hits("number1x")) == 2 and "number 1" in vault.page()
    assert not vault.reindex()["problems"]
