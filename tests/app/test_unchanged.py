"""The answer of a pass that would find nothing to do, from a snapshot: it is what the pass itself would have said."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from functools import partial
from hashlib import sha256

import pytest
from workbench import NOW, Vault, contents, numbered, sampled, tree

from signet_sync.app import unchanged
from signet_sync.cli import reindex_pass
from signet_sync.storage.database.tables import TABLES, full_text
from signet_sync.sync.store.passes import set_version

LATER = "2026-03-29T23:59:59.999Z"
SECOND = 10**6


@pytest.fixture(autouse=True)
def told(monkeypatch):
    """Whether each `reindex` was answered by the snapshot; clocks of file systems need no longer rest here."""
    answers, ask = [], unchanged.answer

    def asked(look, now_us):
        document = ask(look, now_us)
        answers.append(document is not None)
        return document

    monkeypatch.setattr(unchanged, "YOUNG_NS", 20_000_000)
    monkeypatch.setattr(unchanged, "answer", asked)
    return answers


@pytest.fixture
def vault(tmp_path, told):
    vault = settled(tmp_path / "vault")
    told.clear()
    return vault


def settled(place):
    """Three sessions, a removed one, an entity, a memory; a pass has found nothing to do and left its snapshot."""
    vault = Vault(place)
    for number in (1, 2, 3, 4):
        vault.session(number)
    vault.reindex()
    for words in (
        ("remove", numbered(4)["session_id"], "--reason", "asked for", "--yes"),
        ("entity", "create", "user", "Ada"),
        ("remember", "the lantern queue is drained at night"),
    ):
        answer = vault.call(*words, "--now", NOW)
        assert answer.code == 0, answer
    rest(vault)
    return vault


def rest(vault, now=NOW):
    """Full passes until one leaves a snapshot."""
    for _ in range(4):
        time.sleep(0.03)
        vault.reindex(now=now)
        if snapshot(vault).exists():
            return
    raise AssertionError("no snapshot")


def snapshot(vault):
    return vault.db.with_name(vault.db.name + unchanged.SNAPSHOT)


def without_time(document):
    return {key: value for key, value in document.items() if key != "elapsed_ms"}


def rows(vault):
    """All that stands in the database, table by table."""
    with vault.database() as database:
        return {name: list(database.execute(f"select * from {name}")) for name in TABLES if name not in full_text()}


def everything(vault):
    backups = vault.state / "backups"
    return contents(vault.root), rows(vault), sorted(os.listdir(backups)) if backups.exists() else []


def same_as_without(vault, told, now=NOW):
    """One `reindex`; where the snapshot answered, a pass over the same says the same and finds nothing to write."""
    answer = vault.call("reindex", "--json", "--now", now)
    if not told[-1]:
        return False
    before = everything(vault)
    snapshot(vault).unlink()
    again = vault.call("reindex", "--json", "--now", now)
    assert told[-1] is False
    assert (answer.code, without_time(answer.json)) == (again.code, without_time(again.json))
    assert everything(vault) == before
    return True


def test_where_nothing_changed_the_snapshot_answers_and_nothing_is_written(vault, told):
    before = [tree(place, but={"last-pass.json"}) for place in (vault.root, vault.state)]
    document = vault.reindex(now=LATER)
    assert told == [True]
    assert document["now"] == LATER and document["counts"]["unchanged"] == document["counts"]["indexed"]
    assert json.loads((vault.state / "last-pass.json").read_text()) == {"last_full_pass": LATER}
    assert [tree(place, but={"last-pass.json"}) for place in (vault.root, vault.state)] == before
    assert same_as_without(vault, told, LATER)


def test_what_asks_for_more_than_a_look_is_done(vault, told):
    for more in ("--full", "--index-only", "--accept-removals", "--agent=default"):
        vault.call("reindex", "--json", "--now", NOW, more)
    assert told == []


def test_no_module_of_a_pass_is_loaded(vault):
    code = (
        "import sys; from signet_sync.cli.main import run; "
        f"run(['--workspace', {str(vault.root)!r}, 'reindex', '-h'][:3] + ['--json', '--now', {NOW!r}]); "
        "print(*sorted(name for name in sys.modules if name.partition('.')[0] in ('signet_sync', 'apsw', 'pydantic',"
        " 'loguru', 'yaml', 'frontmatter', 'markdown_it', 'rich')), file=sys.stderr)"
    )
    environ = {**os.environ, "PYTHONPATH": os.getcwd()}
    for _ in range(4):
        time.sleep(0.12)
        done = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=True)
    loaded = set(done.stderr.split())
    assert json.loads(done.stdout)["counts"]["read"] == 0
    assert "signet_sync.app.unchanged" in loaded
    assert loaded.isdisjoint({"apsw", "pydantic", "loguru", "yaml", "frontmatter", "markdown_it", "rich"})
    assert not any(name.startswith(("signet_sync.storage.database", "signet_sync.sync")) for name in loaded)


def test_one_that_is_damaged_or_no_file_takes_the_full_way(vault, told, tmp_path):
    place, raw = snapshot(vault), snapshot(vault).read_bytes()
    (tmp_path / "kept").write_bytes(raw)
    whole = json.loads(raw.partition(b"\n")[2])
    forged = json.dumps(whole | {"until_us": "tomorrow"}).encode()
    cases = {
        "empty": partial(place.write_bytes, b""), "torn": partial(place.write_bytes, raw[:-1]),
        "flipped": partial(place.write_bytes, raw.replace(b'"unchanged": 9', b'"unchanged": 8', 1)),
        "forged": partial(place.write_bytes, sha256(forged).hexdigest().encode() + b"\n" + forged),
        "pipe": partial(os.mkfifo, place), "folder": partial(os.mkdir, place),
        "link": partial(os.symlink, tmp_path / "kept", place),
    }  # fmt: skip
    assert cases["flipped"].args[0] != raw
    for name, put in cases.items():
        place.unlink(missing_ok=True)
        put()
        document = vault.reindex()
        assert told[-1] is False and document["counts"]["indexed"] == 9, name
        with suppress(OSError):
            place.rmdir()
        place.unlink(missing_ok=True)
        place.write_bytes(raw)
        vault.reindex()
        assert told[-1] is True, f"after {name} it is as before"


def test_another_program_takes_the_full_way(vault, told, monkeypatch):
    vault.reindex()
    monkeypatch.setattr("signet_sync.__version__", "9.9.9")
    vault.reindex()
    assert told == [True, False]


def test_a_young_file_leaves_none(vault, told, monkeypatch):
    monkeypatch.setattr(unchanged, "YOUNG_NS", 10**12)
    snapshot(vault).unlink()
    vault.reindex()
    vault.reindex()
    assert told == [False, False] and not snapshot(vault).exists()


def test_none_stands_in_a_vault(tmp_path, told):
    vault = Vault(tmp_path / "vault")
    vault.session(1)
    for _ in range(3):
        time.sleep(0.03)
        vault.call("--db", vault.root / "own.db", "reindex", "--json", "--now", NOW)
    assert not any(told) and not list(vault.root.rglob("*.snapshot"))


def test_a_commit_drops_it_before_it_counts(vault):
    with vault.database(readonly=False) as database:
        assert snapshot(vault).exists()
        with database.transaction():
            set_version(database, "of a test", "1")
            assert snapshot(vault).exists()
        assert not snapshot(vault).exists()


def by_another_command(vault):
    with vault.database(readonly=False) as other, other.transaction():
        set_version(other, "of a test", "1")


def test_what_changes_during_a_pass_leaves_none(vault, monkeypatch):
    ask = reindex_pass.lasts_until
    for change in (by_another_command, lambda vault: lines_added(vault / "MEMORY.md"), None):
        rest(vault)
        time.sleep(0.03)
        snapshot(vault).unlink()

        def meanwhile(*given, change=change):
            if change is not None:
                change(vault)
            return ask(*given)

        with monkeypatch.context() as patch:
            patch.setattr(reindex_pass, "lasts_until", meanwhile)
            vault.reindex()
        assert snapshot(vault).exists() is (change is None)


def in_place(path):
    """Another content of the same length under the same times, as far as a program can."""
    before = path.stat()
    with path.open("r+b") as handle:
        raw = handle.read()
        handle.seek(len(raw) // 2)
        handle.write(bytes([raw[len(raw) // 2] ^ 1]))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def one_of(found, which):
    found = sorted(path for path in found if path.is_file())
    return found[which % len(found)]


def an_artifact(vault, which):
    return one_of(vault.memory.iterdir(), which)


def a_page(vault, which):
    return one_of([*vault.root.glob("*.md"), *vault.root.glob("ledger/**/*.md")], which)


def an_entity(vault, which):
    return one_of((vault.root / "entities").rglob("*"), which)


def exchanged(vault):
    other = vault.db.with_name("other")
    shutil.copy(vault.db, other)
    other.rename(vault.db)


def lost(vault):
    for suffix in ("", "-wal", "-shm"):
        vault.db.with_name(vault.db.name + suffix).unlink(missing_ok=True)


def by_hand(vault, sql):
    with vault.database(readonly=False) as database:
        database.connection.set_commit_hook(None)
        database.execute(sql)


def journalled(vault):
    (vault.state / "journal").mkdir(exist_ok=True)
    (vault.state / "journal" / "0123456789abcdef.json").write_text("{}")


def lines_added(path, text="a line of a person\n"):
    with path.open("a") as handle:
        handle.write(text)


CHANGES = {
    "artifact edited in place": lambda vault, which: in_place(an_artifact(vault, which)),
    "artifact deleted": lambda vault, which: an_artifact(vault, which).unlink(),
    "artifacts new": lambda vault, which: vault.session(20 + which % 20),
    "memory a link": lambda vault, which: (vault.memory.rename(vault.root / "elsewhere"),
     vault.memory.symlink_to(vault.root / "elsewhere")),
    "removal": lambda vault, which: vault.call("remove", numbered(1 + which % 3)["session_id"], "--reason",
     "asked for", "--yes"),
    "page edited": lambda vault, which: lines_added(a_page(vault, which)),
    "entity edited": lambda vault, which: lines_added(an_entity(vault, which)),
    "settings": lambda vault,
     which: (vault / "signet-sync.toml").write_text(f"[projection]\nbudget_tokens = {600 + which}\n"),
    "remember": lambda vault, which: vault.call("remember", f"the {which}th lantern is blue"),
    "database exchanged": lambda vault, which: exchanged(vault),
    "database lost": lambda vault, which: lost(vault),
    "row by hand": lambda vault, which: by_hand(vault, "delete from files where path like '%manifest%'"),
    "journal": lambda vault, which: journalled(vault),
    "daemon of others": lambda vault, which: ((vault / ".daemon").mkdir(exist_ok=True),
     (vault / ".daemon" / "pid").write_text(str(os.getppid()))),
    "displaced": lambda vault, which: (vault / ".signet" / "tmp" / "x").write_text("x"),
    "nothing": lambda vault, which: None,
}  # fmt: skip


@pytest.mark.parametrize("change", sampled(sorted(CHANGES), 5))
def test_no_change_of_a_kind_is_missed(tmp_path, told, monkeypatch, change):
    """The snapshot answers only where nothing changed; and each answer is that of a pass."""
    monkeypatch.setenv("SIGNET_STATE", str(tmp_path / "state"))
    vault = settled(tmp_path / "vault")
    CHANGES[change](vault, 1)
    assert same_as_without(vault, told) is (change == "nothing")
    time.sleep(0.03)
    same_as_without(vault, told)
