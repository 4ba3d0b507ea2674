"""Makes the vault on which each operation of the crash table begins."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import artifacts_fixture as made
import signet_database
from signet_writer import Signet
from workbench import NOW, Vault, numbered, path_of, to_another_version

from signet_sync.app.workspace import open_to_write
from signet_sync.entities import operations as entities
from signet_sync.formats.ids import token_of
from signet_sync.formats.timestamps import DAY, SECOND, parse_instant
from signet_sync.memories import operations as memories_operations
from signet_sync.memories.store import promotions
from signet_sync.recall import pinning
from signet_sync.sessions import operations as sessions_operations
from signet_sync.sessions.input import Turn, session_input
from signet_sync.sessions.live import operations as live
from signet_sync.settings.model import Settings
from signet_sync.storage.database.connection import Database
from signet_sync.storage.database.tables import NODES
from signet_sync.sync import engine
from signet_sync.sync.store import counts, passes
from signet_sync.sync.workspace import Request, Workspace

NOW_US = parse_instant(NOW) or 0
# Made up, and never to be found in a byte that we write.
SECRET = "ghp_" + "Zx9Yw8Vu7Ts6Rq5Po4Nm3Lk2Ji1Hg0Fe9Dc8"
LEAKED = "ghp_" + "Qa1Ws2Ed3Rf4Tg5Yh6Uj7Ik8Ol9Pz0Xc1Vb2"
QUOTED = "zqlanternmill"
MOMENT = "2026-03-29T11:30:00.000Z"
Prepare = Callable[[Path], None]
Told = dict[str, Any] | None  # what whoever runs the operation has to know


def keep(vault: Vault, folder: Path, told: Told = None) -> None:
    """Keeps workspace and state as the operation finds them."""
    shutil.copytree(vault.root, folder / "before")
    shutil.copytree(os.environ["SIGNET_STATE"], folder / "state-before")
    (folder / "prepared.json").write_text(json.dumps(told or {}))


def ground(*steps: Callable[[Vault], Told]) -> Prepare:
    """Makes a vault step by step, and keeps it."""

    def make(folder: Path) -> None:
        vault, told = Vault(folder / "vault"), {}
        for step in steps:
            told |= step(vault) or {}
        keep(vault, folder, told)

    return make


def reindexed(vault: Vault) -> None:
    vault.reindex()


# ── sessions of other programs ──


def three(vault: Vault) -> None:
    """Three sessions, and a page of a person's; not yet indexed."""
    for number in (1, 2, 3):
        vault.session(number)
    (vault / "MEMORY.md").write_bytes(b"# What I wrote myself\n")


def indexed(vault: Vault) -> None:
    """The same, indexed, and counts of what was found."""
    three(vault)
    vault.reindex()
    vault.hits("number1x")


def _only_named(vault: Vault) -> None:
    """This machine has not indexed them: the workspace has its id from another one."""
    three(vault)
    with open_to_write(str(vault.root), Settings()):
        pass
    shutil.rmtree(os.environ["SIGNET_STATE"])
    os.makedirs(os.environ["SIGNET_STATE"])


def _damaged(vault: Vault) -> None:
    """A database with a page of nonsense in its middle, and native rows that stand nowhere else but in the backup."""
    with open_to_write(str(vault.root), Settings()) as workspace:
        pinning.pin(workspace, "default", remember(workspace, "Tests run before every push."), NOW_US)
    vault.reindex()
    with vault.database() as database:
        page = database.value("select rootpage from sqlite_schema where name = 'memory_artifacts'")
        size = database.value("pragma page_size")
    raw = bytearray(vault.db.read_bytes())
    raw[(page - 1) * size : page * size] = b"\xff" * size
    vault.db.write_bytes(raw)
    for companion in vault.db.parent.glob(f"{vault.db.name}-*"):
        companion.unlink()
    vault.session(4)


def _changed_and_gone(vault: Vault) -> None:
    """A sealed file that was changed and one that is gone."""
    changed = vault / path_of("summary", 1)
    changed.write_bytes(changed.read_bytes() + b"edited\n")
    (vault / path_of("transcript", 2)).unlink()


def _leaked(vault: Vault) -> Told:
    """A session of another program that holds a secret in every file, and a copy that was kept of a page with it."""
    three(vault)
    paths = vault.session(4, **numbered(4) | {"body": f"# Fourth\n\n- The lantern of number4x opens with {LEAKED}.\n"})
    with open(vault / paths["manifest"], "a", encoding="utf-8") as manifest:
        manifest.write(f"what I wrote beside it: {LEAKED}\n")
    (vault / "MEMORY.user-20260328T101010000Z.md").write_text(f"mine, and {LEAKED}\n")
    return {"session": numbered(4)["session_id"]}


def _quoting(vault: Vault) -> Told:
    """A session, and a later one that quotes it; nothing else says what both say."""
    three(vault)
    body = f"# Third\n\n- The spare key of {QUOTED} lies under the third stone behind the mill.\n"
    vault.session(6, **numbered(6) | {"body": body})
    vault.session(5, **numbered(5) | {"body": body.replace("# Third", "# Fifth\n\nIt said once:")})
    return {"session": numbered(6)["session_id"]}


def _backlog(vault: Vault) -> None:
    """Rows of seven sessions, and what follows from the newest two: the rest waits in the outbox for idle time."""
    for number in range(1, 8):
        vault.session(number)
    few, engine.FEW_SOURCES = engine.FEW_SOURCES, 1
    try:
        with open_to_write(str(vault.root), Settings()) as workspace:
            engine.run_pass(workspace, Request(now_us=NOW_US, since_us=NOW_US - 2 * DAY))
            assert passes.has_waiting(workspace.database)
    finally:
        engine.FEW_SOURCES = few


def _garden(vault: Vault) -> None:
    """A user and a part with a line in it."""
    with open_to_write(str(vault.root), Settings()) as workspace:
        before = {"now_us": NOW_US - SECOND}
        entities.create(workspace, "default", "user", "Mina", **before)
        entities.create(workspace, "default", "part", "Inner Critic", **before)
        entities.append(workspace, "default", "inner-critic", "highlights", "It stops at five.", **before)


def _without(*numbers: int, key: str | None = None) -> Callable[[Vault], None]:
    """Some of three sessions were removed; with a key it is that of all."""

    def step(vault: Vault) -> None:
        for number in (1, 2, 3):
            vault.session(number, **({"session_key": key} if key else {}))
        vault.reindex()
        for number in numbers:
            name = numbered(number)["session_id"]
            answer = vault.call("remove", name, "--reason", "asked for", "--yes", "--quoting", "keep", "--now", NOW)
            assert answer.code == 0, answer
            vault.reindex()

    return step


new = ground(_only_named)
plain = ground(indexed)
damaged = ground(indexed, _damaged)
to_restore = ground(indexed, _changed_and_gone)
to_accept = ground(indexed, _changed_and_gone, reindexed)
leaked, quoting = ground(_leaked, reindexed), ground(_quoting, reindexed)
backlog = ground(_backlog)
garden = ground(indexed, _garden, reindexed)
of_a_removal = ground(_without(2))
of_a_shared_removal = ground(_without(1, 2, key="agent:main:main"))


# ── a session of ours that runs ──

FIRST_WORDS = (
    "## User\n\nWhy does the queue of lantern never drain?\n\n## Assistant\n\nsrc/queue.py retries for ever.\n"
)
MORE_WORDS = "\n## User\n\nBound it.\n\n## Assistant\n\nDone: five attempts, then src/queue.py gives up.\n"
SUMMARY = "# Queue\n\n## Decisions\n\n- lantern bounds the retry loop of src/queue.py at five attempts.\n"
SENTENCE = "Bounded the retry loop of src/queue.py in lantern at five attempts so that the queue drains in the end."
THIRD = {
    "session_id": "5e551003-0000-4000-8000-000000000003",
    "session_key": "agent:main/third",
    "project": "/home/me/lantern",
    "harness": "codex",
}
FOURTH = {**THIRD, "session_id": "5e551004-0000-4000-8000-000000000004", "session_key": None}
WITH_A_SECRET = f"{FIRST_WORDS}\nThe key was {SECRET} then.\n"
DOCUMENTS: dict[str, dict[str, Any]] = {
    "end": {
        **FOURTH,
        "captured_at": MOMENT,
        "ended_at": MOMENT,
        "transcript": WITH_A_SECRET,
        "summary": SUMMARY,
        "memory_sentence": SENTENCE,
    },
    "segment": {**THIRD, "captured_at": MOMENT, "transcript": FIRST_WORDS + MORE_WORDS, "summary": SUMMARY},
    "compaction": {**THIRD, "captured_at": MOMENT, "compaction": f"{SUMMARY}\nThe key was {SECRET} then.\n"},
    "first compaction": {**FOURTH, "agent_id": "nova", "captured_at": MOMENT, "compaction": SUMMARY},
}


def _running(vault: Vault) -> None:
    """Two sessions of other programs and one of ours that still runs, with live turns."""
    for number in (1, 2):
        vault.session(number)
    with open_to_write(str(vault.root), Settings()) as workspace:
        third = {**THIRD, "captured_at": "2026-03-26T10:03:00.000Z", "transcript": FIRST_WORDS, "summary": SUMMARY}
        sessions_operations.write(workspace, session_input(third, now_us=NOW_US), now_us=NOW_US)
        said = [Turn(1, "user", "Bound it.", MOMENT), Turn(2, "assistant", "The heron of lantern waits.", MOMENT)]
        live.append(workspace, said, agent_id="default", session_key=THIRD["session_key"])
        live.append(workspace, said[:1], agent_id="default", session_key="somebody else's")
        of_the_fourth = {"agent_id": "nova", "session_key": FOURTH["session_id"]}
        live.append(workspace, said, **of_the_fourth)
    vault.reindex()


# What decides something, in words that only live turns have.
DECIDING = (
    ("user", "The queue of lantern loses jobs when the broker restarts. Please look into src/queue.py."),
    ("assistant", "The jobs are only in memory. I can keep them in Redis or in Postgres. Which one should it use?"),
    ("user", "From now on use Postgres for the queue of lantern instead of Redis."),
    ("assistant", "I am at it.\n\nDecided: From now on use Postgres for the queue of lantern instead of Redis"),
)


def deciding(workspace: Workspace) -> None:
    """Live turns of a session that decide something."""
    place = {name: FOURTH[name] for name in ("project", "harness")}
    turns = [Turn(number, role, text, MOMENT, place) for number, (role, text) in enumerate(DECIDING, 1)]
    live.append(workspace, turns, agent_id="default", session_key=FOURTH["session_id"])


def _with_a_decision(vault: Vault) -> None:
    with open_to_write(str(vault.root), Settings()) as workspace:
        deciding(workspace)
    vault.reindex()
    assert vault.rows("select count(*) from statements where artifact < 0") == [(1,)]


def _written_around(vault: Vault) -> None:
    """A page that a person wrote around, and one of the session log that is gone."""
    vault.session(4)
    (vault / "MEMORY.md").write_bytes(b"# Mine\n" + (vault / "MEMORY.md").read_bytes() + b"mine too\n")
    next(vault.root.glob("ledger/*/*/*.md")).unlink()


def _without_a_database(vault: Vault) -> None:
    vault.session(4)
    for place in vault.state.glob("signet-sync.db*"):
        place.unlink()


def _without_a_manifest(vault: Vault) -> None:
    (vault / path_of("manifest", 1)).unlink()


running = ground(_running)
having_decided = ground(_running, _with_a_decision)
written_around = ground(_running, _written_around)
without_a_database = ground(_running, _without_a_database)
without_a_manifest = ground(_running, _without_a_manifest)


# ── memories, pins, counts, live turns ──

# What session 2 alone has said, and what is to be forgotten: no file may hold these once they are gone.
REMOVED_WORDS = ("number2x", "step number 2", "zzremoved")
FORGOTTEN_WORDS = ("zzforget", "deploys on fridays")
FORGOTTEN = "Zzforget: nobody deploys on Fridays, whatever the queue of lantern says."
REMOVED = "Zzremoved: this came from the second session of lantern alone."


def remember(workspace: Workspace, text: str, session: str | None = None) -> str:
    """Remembers a statement; gives its id."""
    given: dict[str, Any] = {"kind": "fact", "tags": (), "private": False, "now_us": NOW_US, "session": session}
    return memories_operations.remember(workspace, "default", text, **given).memory.id


def _arcs_and_nodes(database: Database, session_id: str) -> list[str]:
    """Handles of the arc and of a session's nodes."""
    sql = f"select id from {NODES} where kind = 'arc' or session_id = ? order by id"
    handles = [row[0] for row in database.execute(sql, (session_id,))]
    assert len(handles) >= 3
    return handles


def _recalled(vault: Vault) -> None:
    """Every memory was found by three queries, one of them in its own words."""
    with open_to_write(str(vault.root), Settings()) as workspace:
        rows = list(workspace.database.execute("select id, content from memories order by id"))
        for memory_id, content in rows:
            for query in ("the queue", "lantern", content):
                promotions.record(workspace.database, "default", query, [(memory_id, 1.0)], NOW_US)
    vault.reindex()


def _risen_and_quoted(vault: Vault) -> None:
    """What is to go has risen, was typed into our part of the page, and is in backups of other days."""
    _recalled(vault)
    with open_to_write(str(vault.root), Settings()) as workspace:
        memories_operations.dream(workspace, "default", NOW_US - DAY)
    vault.reindex()
    words = f"> {FORGOTTEN}\n> {REMOVED}\n> {numbered(2)['memory_sentence']}\n"
    (vault / "MEMORY.md").write_text(vault.page().replace("## ", f"{words}\n## ", 1))
    shutil.copy(next(vault.state.rglob("native-*.db")), vault.state / "backups" / "native-20260301.db")


def _of_other_rules(vault: Vault) -> None:
    with vault.database(readonly=False) as database, database.transaction():
        database.execute("delete from session_summaries where kind = 'arc'")
        database.execute("update statements set text = 'of other rules'")
        database.execute("update derivers set version = '0' where name = 'graph'")


def _remembering(vault: Vault) -> Told:
    """Three sessions of one thread with its arc, memories, pins, counts and live turns."""
    for number in (1, 2, 4):
        vault.session(number)
    vault.reindex()
    told: dict[str, Any] = {"remove": numbered(2)["session_id"]}
    with open_to_write(str(vault.root), Settings()) as workspace:
        told["pin"] = remember(workspace, "Tests run before every push.")
        told["forget"] = remember(workspace, FORGOTTEN)
        remember(workspace, REMOVED, session=told["remove"])
        for handle in (told["forget"], *_arcs_and_nodes(workspace.database, told["remove"])):
            counts.count_ids(workspace.database, "default", [handle], NOW[:10])
            if handle[0] in "fm":
                pinning.pin(workspace, "default", handle, NOW_US)
        said = "select id from statements where newest = 1 order by at_us, id"
        told["say"], second, *_ = [one for (one,) in workspace.database.execute(said)]
        pinning.mark(workspace, "default", second, "done", NOW_US)
        turn = Turn(1, "user", "Bound it.", MOMENT)
        live.append(workspace, [turn], agent_id="default", session_key=THIRD["session_key"])
        live.append(workspace, [turn], agent_id="default", session_key="somebody else's")
        of_the_removed = turn._replace(text=f"Once more: {REMOVED}")
        live.append(workspace, [of_the_removed], agent_id="default", session_key=told["remove"])
    vault.reindex()
    return told


def _with_a_stone(vault: Vault) -> None:
    """A tombstone that another machine has written for a session that is here with all its traces."""
    vault.put(made.tombstone(session_id=numbered(2)["session_id"]), "memory/tombstones")


def _with_a_record(vault: Vault) -> None:
    """Signet's record that it removed such a session."""
    Signet(vault.root).record(made.token_for(session_id=numbered(2)["session_id"]))


remembering = ground(_remembering)
risen = ground(_remembering, _risen_and_quoted)
recalled = ground(_remembering, _recalled)
of_another_version = ground(_remembering, to_another_version)
of_other_rules = ground(_remembering, _of_other_rules)
with_a_stone = ground(_remembering, _risen_and_quoted, _with_a_stone)
with_a_removal_of_signet = ground(_remembering, _risen_and_quoted, _with_a_record)


# ── beside Signet, and other programs ──


def _beside_signet(vault: Vault) -> Told:
    """A database of Signet outside, which removed one of the sessions and knows of things with secrets."""
    folder = vault.root.parent
    signet = signet_database.Database(folder / "signet/memory/memories.db")
    stone = {"agent_id": "default", "session_token": token_of("default", numbered(2)["session_id"])}
    signet.put("memory_artifact_tombstones", **stone, removed_at=NOW, reason="private")
    shared = {"session_key": "of-signet", "created_at": "2026-03-20T10:00:00.000Z", "harness": "codex"}
    signet.put("session_transcripts", content=f"User: Bound it.\nAssistant: With {SECRET}, it is.", **shared)
    signet.put("session_summaries", id="s", content="# Loop\n\n- lantern bounds it.\n", **shared)
    signet.put("session_summaries", id="t", content="# More\n\n- zqxmore is kept.\n", **shared)
    signet.memory(1, f"Drain the lantern before {SECRET} is turned.", pinned=1)
    signet.memory(2, "The lantern of zqxlamp is lit.", source_id="of-signet")
    signet.memory(3, "The lantern of zqxradio is heard.", agent_id="scout")
    return {"from": str(signet.close().path.rename(folder / "signet.db"))}


def _replaced_by_signet(vault: Vault) -> None:
    """Signet's page in place of ours, and its texts in the manifests; a person has decided that they are ours."""
    signet = Signet(vault.root)
    signet.page("## Open Threads\n\n- a thread of its own\n")
    signet.render_manifests()
    vault.reindex()
    (vault / "signet-sync.toml").write_text("[projection]\ntakeover = true\n")


def _with_a_backup(vault: Vault) -> Told:
    """Memories that are in a backup and nowhere else."""
    with open_to_write(str(vault.root), Settings()) as workspace:
        pinning.pin(workspace, "default", remember(workspace, "Tests run before every push."), NOW_US)
        remember(workspace, "The lantern of staging is blue.")
    vault.reindex()
    place = vault.root.parent / "kept.backup"
    assert vault.call("backup", "create", str(place), "--now", NOW).code == 0
    with vault.database(readonly=False) as database, database.transaction():
        for table in ("memory_sources", "memories", "node_telemetry"):
            database.execute(f"delete from {table}")
    for made_before in vault.state.glob("backups/*"):
        made_before.unlink()
    vault.reindex()
    return {"backup": str(place)}


beside_signet = ground(indexed, _beside_signet)
replaced_by_signet = ground(indexed, _replaced_by_signet)
with_a_backup = ground(indexed, _with_a_backup)
