"""The database under faults: calls that fail, bits that flip, files that are none, readers that stay, hostile input.

What is derived comes again from the files; what is native comes from the pages that can be read, and from the backup.
"""

from __future__ import annotations

import errno
import json
import os
import random
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import apsw
import artifacts_fixture as made
import pytest
from crash_runner import KEPT, arm_below, forked
from invariants import broken, standing
from operation_vaults import keep
from recovery import Ground
from workbench import NOW, Vault, call, numbered

from signet_sync.app.workspace import open_workspace
from signet_sync.errors import DatabaseCorrupt
from signet_sync.settings import model
from signet_sync.storage.database import tables
from signet_sync.storage.database.connection import Database, is_suspect
from signet_sync.storage.locations import now_us
from signet_sync.sync.database import DatabaseSupervisor

PAGE = 4096
# Rows that may be newer than the backup, or are in none.
UNSAVED = {"recall_events", "node_telemetry"}


NOW_IS = ("--now", NOW)
MEMORY = "Lantern wicks are trimmed on Mondays by the keeper of src/queue.py."
TURNS = [
    {"turn": number, "role": "user", "text": f"Turn {number} of what still runs.", "at": NOW} for number in range(4)
]


# ── the vault ──


def prepare(folder: Path) -> Ground:
    """Sessions, one of them removed, and native rows of every kind that people make, some newer than the backup."""
    vault = Vault(folder / "vault")
    for number in (1, 2, 3):
        vault.session(number)
    vault.put(made.compaction(**numbered(1)))
    vault.reindex()
    assert vault.call("remove", numbered(3)["session_id"], "--reason", "asked for", "--yes", *NOW_IS).code == 0
    kept = vault.call("remember", MEMORY, "--tag", "oil", "--json")
    assert vault.call("pin", kept.json["id"]).code == 0
    turns = "".join(json.dumps(turn) + "\n" for turn in TURNS).encode()
    assert vault.call("transcript", "append", "--session-key", "live-one", given=turns).code == 0
    vault.reindex()
    # Hits and accesses, which no command backs up by itself.
    assert vault.call("recall", "wicks", "--json").code == 0
    assert vault.hits("number2x") and vault.hits("number1x")
    with vault.database(readonly=False) as database:
        database.close()  # as between two commands: the log is written back
    keep(vault, folder)
    return Ground(folder)


# Marks of the moment, counters' values and what a pass finds again are no loss.
PASSING = ("passes", "backups", "history_told", "live_files", "memory_md_heads", "violations", "garden_drift")
KEYS = {
    "node_telemetry": "agent_id, id",
    "seals": "path, digest, text_sha256",
    "memory_artifact_tombstones": "agent_id, session_token, reason",
    "recall_events": "agent_id, memory_id, query, at_us",
    "memories": "agent_id, id, type, content, tags, private, created_at",
}


def native(place: Path) -> dict[str, set[tuple[Any, ...]]]:
    """Every native row by what makes it one, whatever the version of the schema."""
    found: dict[str, set[tuple[Any, ...]]] = {}
    connection = apsw.Connection(str(place), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        there = {name for (name,) in connection.execute("select name from sqlite_schema")}
        for table in tables.native_tables():
            if table not in PASSING:
                columns = KEYS.get(table) or ", ".join(tables.TABLES[table].columns or ("*",))
                found[table] = set(connection.execute(f"select {columns} from {table}")) if table in there else set()
    finally:
        connection.close()
    return found


def lost(before: Mapping[str, set[tuple[Any, ...]]], now: Mapping[str, set[tuple[Any, ...]]]) -> dict[str, int]:
    """How many rows of each table are not there any more."""
    return {table: len(rows - now[table]) for table, rows in before.items() if rows - now[table]}


def settings_of(folder: Path) -> dict[str, str]:
    """Where a vault's state and settings are; the state knows the workspace by its place."""
    return {"SIGNET_STATE": str(folder / "state"), "SIGNET_CONFIG": str(folder / "config.toml"), "HOME": str(folder)}


@pytest.fixture(scope="module")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Ground:
    folder = tmp_path_factory.mktemp("ground") / "at"
    with pytest.MonkeyPatch.context() as patch:
        for name, value in settings_of(folder).items():
            patch.setenv(name, value)
        return prepare(folder)


@pytest.fixture
def ground(made_once: Ground, monkeypatch: pytest.MonkeyPatch) -> Ground:
    """The ground as it was made."""
    for name, value in settings_of(made_once.folder).items():
        monkeypatch.setenv(name, value)
    made_once.put_back()
    return made_once


@pytest.fixture
def vault(ground: Ground) -> Vault:
    return Vault(ground.root)


# ── calls that fail below SQLite, and whoever reads (whoever writes: test_crash_points.py) ──


BELOW = {
    "read fails": (errno.EIO, "xRead", 31),
    "open fails": (errno.ENOENT, "xOpen", 1),
    "write fails": (errno.EIO, "xWrite", 13),
    "disk full": (errno.ENOSPC, "xWrite", 13),
}


@pytest.mark.parametrize(
    "fault", [fault if fault == "read fails" else pytest.param(fault, marks=pytest.mark.slow) for fault in BELOW]
)
def test_whoever_reads_over_a_failing_file_system_is_told_plainly_and_nothing_is_lost(
    vault: Vault, ground: Ground, fault: str
) -> None:
    before, stood = native(vault.db), standing(vault)
    code, call, stride = BELOW[fault]

    def struck(words: tuple[str, ...], point: int) -> int:
        sys.unraisablehook = lambda _raised: None  # raised where SQLite asks for no answer
        arm_below(point, code, (call,))
        return said(vault, *words)

    for words in READING[:4]:
        for point in range(1, 1 << 20, stride):
            ground.put_back()
            assert forked(struck, words, point) in (0, 1, 3), (words, point)
            if not Path("killed-at").exists():
                break
            assert vault.call("status", "--json").code == 0 and lost(before, native(vault.db)) == {}, (words, point)
        assert broken(vault, stood) == [], words


# ── bytes that change on the disk ──


def a_bit(page: bytes, luck: random.Random) -> bytes:
    """One bit of a byte that is used."""
    place = luck.choice([place for place, byte in enumerate(page) if byte] or [0])
    return page[:place] + bytes([page[place] ^ 1 << luck.randrange(8)]) + page[place + 1 :]


def no_text(page: bytes, luck: random.Random) -> bytes:
    """Letters that are not UTF-8 any more."""
    letters = {place for place, byte in enumerate(page) if 97 <= byte < 123 and luck.random() < 0.01}
    return bytes(byte | 0x80 if place in letters else byte for place, byte in enumerate(page))


DAMAGE: dict[str, Callable[[bytes, random.Random], bytes]] = {
    "zeros": lambda page, _: bytes(len(page)),
    "a bit": a_bit,
    "no text": no_text,
}


def owners(place: Path) -> dict[int, str]:
    """Table of every page; an index is its table's."""
    connection = apsw.Connection(str(place), flags=apsw.SQLITE_OPEN_READONLY)
    found = dict(
        connection.execute(
            "select d.pageno, coalesce(s.tbl_name, d.name) from dbstat d left join sqlite_schema s using(name)"
        )
    )
    connection.close()
    return {page: name.partition("_fts_")[0] for page, name in found.items()}


def change_page(vault: Vault, page: int, how: str) -> None:
    raw = bytearray(vault.db.read_bytes())
    start = (page - 1) * PAGE
    raw[start : start + PAGE] = DAMAGE[how](bytes(raw[start : start + PAGE]), random.Random(f"{how} {page}"))
    vault.db.write_bytes(raw)


READING = (
    ("status", "--json"), ("recall", "--words", "--json", "number1x"), ("recall", "--json", "wicks"),
    ("doctor", "--json"), ("check", "--with-index", "--json"),
)  # fmt: skip


def said(vault: Vault, *words: str) -> int:
    """Runs a command; whatever it meets is told in plain words."""
    answer = vault.call(*words)
    assert answer.code in (0, 1, 3), (words, answer)
    assert "unexpected" not in answer.out + answer.err, (words, answer)
    return answer.code


def healed(vault: Vault) -> None:
    """What people do: they look, are told what is wrong, and have it rebuilt. Afterwards everything answers."""
    for words in READING:
        said(vault, *words)
    assert vault.call("reindex", "--full", *NOW_IS).code == 0
    for words in READING[1:4]:
        assert said(vault, *words) == 0, words
    assert vault.hits("number1x")


def test_damage_in_what_is_derived_loses_no_native_row(vault: Vault, ground: Ground) -> None:
    pages = {table: page for page, table in sorted(owners(vault.db).items())}
    for table, how, aside in (("texts", "zeros", 1), ("thread_sessions", "no text", 0)):
        ground.put_back()
        before, stood = native(vault.db), standing(vault)
        change_page(vault, pages[table], how)
        healed(vault)
        assert lost(before, native(vault.db)) == {}
        assert broken(vault, stood) == []
        # What is made anew anyway need not be read before.
        assert vault.call("doctor").out.count("moved aside") == aside
        assert len(vault.call("status", "--json").json["set_aside"]) == aside


@pytest.mark.slow
@pytest.mark.parametrize("how", DAMAGE)
def test_damage_in_any_page_is_healed_and_told_how_much_it_cost(vault: Vault, ground: Ground, how: str) -> None:
    """Every page, each in one of the ways."""
    before, stood, of = native(vault.db), standing(vault), owners(vault.db)
    for page in range(1 + list(DAMAGE).index(how), vault.db.stat().st_size // PAGE + 1, len(DAMAGE)):
        ground.put_back()
        change_page(vault, page, how)
        healed(vault)
        owner = of.get(page, "free")
        assert broken(vault, stood) == [], (page, owner)
        cost = lost(before, native(vault.db))
        # A page costs its own rows at most: the newest, which no backup has yet.
        assert set(cost) <= {owner} or owner == "sqlite_schema", (page, owner, cost)


@pytest.mark.slow
def test_a_database_cut_off_anywhere_is_made_anew(vault: Vault, ground: Ground) -> None:
    stood, raw, luck = standing(vault), vault.db.read_bytes(), random.Random(1)
    for length in (0, 1, 99, 512, *range(PAGE, len(raw), 16 * PAGE), *(luck.randrange(len(raw)) for _ in range(8))):
        ground.put_back()
        vault.db.write_bytes(raw[:length])
        healed(vault)
        assert broken(vault, stood) == [], length


@pytest.mark.slow
def test_damage_in_the_log_costs_at_most_what_the_log_held(vault: Vault, ground: Ground) -> None:
    before, luck = native(vault.db), random.Random(2)
    with vault.database() as reader:  # whoever reads keeps the log from being emptied
        reader.execute("begin")
        reader.value("select count(*) from files")
        vault.session(4)
        vault.reindex()
        log, main = Path(f"{vault.db}-wal"), vault.db.read_bytes()
        raw = log.read_bytes()
    stood = standing(vault)
    assert len(raw) > 10 * PAGE
    for place in (*range(0, 64, 14), *(luck.randrange(len(raw)) for _ in range(10))):
        ground.put_back()
        vault.session(4)
        vault.db.write_bytes(main)
        log.write_bytes(raw[:place] + bytes([raw[place] ^ 1 << luck.randrange(8)]) + raw[place + 1 :])
        healed(vault)
        assert broken(vault, stood) == [] and lost(before, native(vault.db)) == {}, place


# ── a damaged page and a reader ──


def test_who_only_reads_leaves_a_note_and_the_next_command_that_writes_looks_at_every_page(vault: Vault) -> None:
    for page, table in owners(vault.db).items():
        if table == "said_data":
            change_page(vault, page, "zeros")
    answer = vault.call("recall", "wicks", "--json")
    assert answer.code == 3 and answer.json["error"]["code"] == "database-corrupt"
    assert answer.json["error"]["path"] == str(vault.db) and "reindex --full" in answer.json["error"]["hint"]
    assert is_suspect(str(vault.db))
    told = vault.call("forget", "m-nothing")
    assert told.code == 2 and "moved aside" in told.err and "read from the damaged database" in told.err
    assert not is_suspect(str(vault.db)) and vault.reindex()
    assert vault.call("recall", "wicks", "--json").json["hits"]


@pytest.mark.parametrize("table", ["session_notes", "garden_days"])
def test_damage_in_pages_that_no_pass_reads_is_found_by_doctor_and_mended_by_the_next_pass(
    vault: Vault, table: str
) -> None:
    """Derived or native, nobody stumbles over it: whoever looks at every page leaves a note for whoever writes."""
    before, stood = native(vault.db), standing(vault)
    change_page(vault, min(page for page, owner in owners(vault.db).items() if owner == table), "zeros")
    assert vault.reindex()["trouble"] == [], "a pass over nothing new does not need it"
    assert vault.call("doctor").code == 1 and is_suspect(str(vault.db))
    assert any("moved aside" in line for line in vault.reindex()["trouble"])
    assert vault.call("doctor", "--json").json["findings"] and not is_suspect(str(vault.db))
    assert broken(vault, stood) == [] and lost(before, native(vault.db)) == {}


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        ("update statements set at_us = '202\x16'", "all are made anew"),
        ("insert into said(said) values('delete-all')", "out of step"),
    ],
)
def test_a_value_that_no_check_can_doubt_is_made_anew(vault: Vault, sql: str, told: str) -> None:
    """SQLite keeps no sums: what still is a number or a text is believed until somebody stumbles over it."""
    with vault.database(readonly=False) as database:
        database.execute(sql)
        database.execute("update pages set inputs_sha256 = ''")
    assert any(told in line for line in vault.reindex()["trouble"])
    assert vault.dump() == vault.dump_from_scratch() and vault.call("recall", "wicks", "--json").json["hits"]


def test_a_native_row_that_is_not_as_it_was_written_comes_back_from_the_backup(vault: Vault) -> None:
    before = native(vault.db)
    with vault.database(readonly=False) as database:
        database.execute("update memories set content = replace(content, 'Mondays', 'Nondays')")
        database.execute("update seals set packed = zeroblob(20) where kind = 'summary'")
    vault.reindex("--full")
    assert lost(before, native(vault.db)) == {}


def test_a_table_that_is_only_half_readable_is_read_from_both_ends(tmp_path: Path) -> None:
    vault = Vault(tmp_path / "vault").indexed(1)
    ids = [f"20260101T{number:09}Z" for number in range(2000)]
    with vault.database(readonly=False) as database:
        with database.transaction():
            database.executemany("insert into dream_sweeps values('default', ?, 1, 0, 0, 0)", [(one,) for one in ids])
        database.close()
    leaves = [page for page, table in sorted(owners(vault.db).items()) if table == "dream_sweeps"]
    assert len(leaves) > 10
    change_page(vault, leaves[len(leaves) // 2], "zeros")
    vault.reindex("--full")
    kept = {row[0] for row in vault.rows("select sweep_id from dream_sweeps")}
    assert 1800 < len(kept) < 2000 and {min(ids), max(ids)} <= kept


# ── files that are none of ours ──


def a_log_of_another(place: Path) -> None:
    """Left by another program, whose own database is gone."""
    other = place.with_name("other.db")
    connection = apsw.Connection(str(other))
    for statement in ("pragma journal_mode = wal", "create table contacts(name)", "insert into contacts values('Ada')"):
        list(connection.execute(statement))
    log = Path(f"{other}-wal").read_bytes()
    connection.close()
    other.unlink()
    Path(f"{place}-wal").write_bytes(log)


def flips(byte: int) -> Callable[[Path], object]:
    """Changes a bit of the header."""

    def flip(place: Path) -> None:
        raw = bytearray(place.read_bytes())
        raw[byte] ^= 4
        place.write_bytes(raw)

    return flip


STRANGE: dict[str, Callable[[Path], object]] = {
    "a mark of another program": flips(71),
    "the version of another schema": flips(63),
    "a text": lambda place: place.write_text("Dear diary,\n" * 400),
    "a header of nonsense": lambda place: place.write_bytes(random.Random(3).randbytes(100) + place.read_bytes()[100:]),
    "a huge hole": lambda place: os.truncate(place, 0) or os.truncate(place, 1 << 40),
    "a log of another database": a_log_of_another,
    "nonsense for the log's index": lambda place: Path(f"{place}-shm").write_bytes(random.Random(4).randbytes(32768)),
}
LOSING = ("a mark of another program", "a text", "a header of nonsense", "a huge hole")
RARE = ("a text", "a huge hole", "nonsense for the log's index")


@pytest.mark.parametrize("what", [pytest.param(what, marks=[pytest.mark.slow] * (what in RARE)) for what in STRANGE])
def test_a_strange_file_in_the_databases_place_costs_no_row_that_is_saved(vault: Vault, what: str) -> None:
    before, stood = native(vault.db), standing(vault)
    STRANGE[what](vault.db)
    for words in READING[:3]:
        said(vault, *words)
    vault.reindex()
    assert vault.hits("number1x")
    assert broken(vault, stood) == []
    # Of what SQLite cannot read at all comes back what the backup has.
    assert set(lost(before, native(vault.db))) <= (UNSAVED if what in LOSING else set())


# ── a database that somebody planted ──


def planted(place: Path, *statements: str) -> None:
    """A database that says it is ours, with more in it than we put there."""
    Database(str(place)).close()
    connection = apsw.Connection(str(place))
    for statement in statements:
        connection.execute(statement)
    connection.close()


TRAPS = {
    "a trigger": (
        "create trigger trap after insert on files begin delete from seals;"
        " insert into derivers values('caught', 1, 0); end",
    ),
    "a view": ("alter table files rename to theirs", "create view files as select * from theirs"),
    "an instead-of trigger": (
        "alter table links rename to theirs",
        "create view links as select * from theirs",
        "create trigger trap instead of insert on links begin insert into derivers values('caught', 1, 0); end",
    ),
    "a schema that is none": (
        "pragma writable_schema = on",
        "update sqlite_schema set sql = 'create table seals(' where name = 'seals'",
    ),
    "an index on an expression": ("create index trap on files(load_extension('/tmp/x.so'))",),
    "a check that calls": ("create table more(x check(writefile('caught', x)))",),
}


@pytest.mark.parametrize("what", TRAPS)
def test_a_planted_database_runs_nothing_of_its_own(tmp_path: Path, what: str) -> None:
    vault = Vault(tmp_path / "vault")
    vault.session(1)
    place = tmp_path / "checkout" / "signet-sync.db"
    place.parent.mkdir()
    try:
        planted(place, *TRAPS[what])
    except apsw.SQLError:
        pytest.skip("this SQLite does not even let it be made")
    answer = call("--db", place, "--workspace", vault.root, "reindex", "--index-only", "--json", *NOW_IS)
    assert answer.code in (0, 3) and "unexpected" not in answer.out, answer
    connection = apsw.Connection(str(place), flags=apsw.SQLITE_OPEN_READONLY)
    assert connection.execute("select count(*) from derivers where name = 'caught'").get == 0
    if answer.code == 0:
        assert connection.execute("select count(*) from seals").get == 2
    connection.close()
    assert not (tmp_path / "caught").exists()


def test_no_database_in_the_workspace_is_ever_opened(tmp_path: Path) -> None:
    vault = Vault(tmp_path / "vault")
    vault.session(1)
    for where in ("signet-sync.db", ".signet/signet-sync.db", "memory/memories.db", "memory/signet-sync.db"):
        (vault / where).parent.mkdir(exist_ok=True)
        planted(tmp_path / "planted.db")
        shutil.copy(tmp_path / "planted.db", vault / where)
    (vault / "signet-sync.toml").write_text('[database]\npath = "signet-sync.db"\n')
    opened: set[str] = set()
    arm_below(0, None, ("xOpen",), watch=opened.add)
    for words in (("reindex", *NOW_IS), ("recall", "number1x"), ("status",), ("doctor",), ("check", "--with-index")):
        assert vault.call(*words).code in (0, 1)
    KEPT.pop()
    assert opened
    # Signet's own is read in every full pass, for what Signet removed, and stays as it is.
    assert {name for name in opened if name.startswith(str(vault.root))} <= {str(vault / "memory/memories.db")}
    assert (vault / "memory/memories.db").read_bytes() == (tmp_path / "planted.db").read_bytes()
    assert not [name for name in os.listdir(vault / "memory") if name.startswith("memories.db-")]


# ── long readers ──


def test_a_reader_that_stays_keeps_nobody_waiting_and_when_it_goes_the_log_is_small_again(vault: Vault) -> None:
    with vault.database() as reader:
        reader.execute("begin")
        seen = reader.value("select count(*) from memory_artifacts")
        for number in (4, 5):
            vault.session(number)
            vault.reindex()
        log = Path(f"{vault.db}-wal")
        assert log.stat().st_size > 200_000
        assert reader.value("select count(*) from memory_artifacts") == seen, "it still reads what it began with"
        with vault.database(readonly=False) as writer:
            assert not writer.checkpoint(), "nobody is kept waiting"
    assert vault.reindex()
    assert not log.exists() or log.stat().st_size <= 16 << 20
    assert vault.call("status", "--json").json["trouble"] is None


def test_a_page_that_nobody_reads_is_looked_at_once_a_day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vault = Vault(tmp_path / "vault").indexed(1)
    page, size = vault.rows(
        "select rootpage, page_size from sqlite_schema, pragma_page_size where name = 'garden_drift'"
    )[0]
    settings, _ = model.load(str(vault.root))

    def looked() -> bool:
        """Whether the agent's next full pass notices."""
        workspace = open_workspace(str(vault.root), settings)
        try:
            DatabaseSupervisor(workspace).check(deeper=True)
        except DatabaseCorrupt:
            return True
        finally:
            workspace.close()
        return False

    assert not looked()
    with vault.db.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(bytes(size))
    assert not looked()
    later = now_us() + 25 * 3600 * 10**6
    monkeypatch.setattr("signet_sync.sync.database.now_us", lambda: later)
    assert looked()
