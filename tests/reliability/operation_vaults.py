"""Makes the vault on which each operation of the crash table begins."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import artifacts_fixture as made
import other_memories
import signet_database
from signet_writer import Signet
from workbench import NOW, Vault, numbered, to_another_version

from signet_sync.app.workspace import opened
from signet_sync.entities import operations as entities
from signet_sync.formats.ids import token_of
from signet_sync.formats.timestamps import DAY, SECOND, parse_instant
from signet_sync.formats.turn import Turn
from signet_sync.memories import operations as memories_operations
from signet_sync.memories import promotion
from signet_sync.memories.store import recall_events
from signet_sync.recall import pinning
from signet_sync.sessions import live
from signet_sync.sessions import operations as sessions_operations
from signet_sync.sessions.input import session_input
from signet_sync.settings.model import Settings
from signet_sync.storage.database.connection import Database
from signet_sync.storage.database.tables import NODES
from signet_sync.sync import engine, outbox
from signet_sync.sync.store import counts
from signet_sync.sync.workspace import Request, Workspace

NOW_US = parse_instant(NOW) or 0
# Made up, and never to be found in a byte that we write.
SECRET = "ghp_" + "Zx9Yw8Vu7Ts6Rq5Po4Nm3Lk2Ji1Hg0Fe9Dc8"
LEAKED = "ghp_" + "Qa1Ws2Ed3Rf4Tg5Yh6Uj7Ik8Ol9Pz0Xc1Vb2"
QUOTED = "zqlanternmill"
MOMENT = "2026-03-29T11:30:00.000Z"
Prepare = Callable[[Path], None]


def keep(vault: Vault, folder: Path, prepared: dict[str, Any] | None = None) -> None:
    """Keeps workspace and state as the operation finds them."""
    shutil.copytree(vault.root, folder / "before")
    shutil.copytree(os.environ["SIGNET_STATE"], folder / "state-before")
    (folder / "prepared.json").write_text(json.dumps(prepared or {}))


def _three(folder: Path) -> Vault:
    vault = Vault(folder / "vault")
    for number in (1, 2, 3):
        vault.session(number)
    (vault / "MEMORY.md").write_bytes(b"# What I wrote myself\n")
    return vault


# ── sessions of other programs ──


def new(folder: Path) -> None:
    """Three sessions that this machine has not indexed: the workspace has its id from another one."""
    vault = _three(folder)
    with opened(str(vault.root), Settings()):
        pass
    shutil.rmtree(os.environ["SIGNET_STATE"])
    os.makedirs(os.environ["SIGNET_STATE"])
    keep(vault, folder)


def plain(folder: Path) -> None:
    """Three sessions, indexed, and counts of what was found."""
    vault = _three(folder)
    vault.reindex()
    vault.hits("number1x")
    keep(vault, folder)


def damaged(folder: Path) -> None:
    """A database with a page of nonsense in its middle, and native rows that stand nowhere else but in the backup."""
    vault = _three(folder)
    vault.reindex()
    vault.hits("number1x")
    with opened(str(vault.root), Settings()) as workspace:
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
    keep(vault, folder)


def _changed_and_gone(folder: Path) -> Vault:
    vault = _three(folder)
    vault.reindex()
    changed = vault / _path_of("summary", 1)
    changed.write_bytes(changed.read_bytes() + b"edited\n")
    (vault / _path_of("transcript", 2)).unlink()
    return vault


def _path_of(kind: str, number: int) -> str:
    who = {name: value for name, value in numbered(number).items() if name in ("session_id", "captured_at")}
    return made.path_for(kind, **who)


def to_restore(folder: Path) -> None:
    """A sealed file that was changed, one that is gone, and a folder in the place of a third."""
    vault = _changed_and_gone(folder)
    replaced = vault / _path_of("transcript", 1)
    replaced.unlink()
    replaced.mkdir()
    (replaced / "in-its-place.txt").write_text("mine")
    keep(vault, folder)


def to_accept(folder: Path) -> None:
    """A sealed file that was changed and one that is gone, both known as violations."""
    vault = _changed_and_gone(folder)
    vault.reindex()
    keep(vault, folder)


def leaked(folder: Path) -> None:
    """A session of another program that holds a secret in every file, and a copy that was kept of a page with it."""
    vault = _three(folder)
    paths = vault.session(4, **numbered(4) | {"body": f"# Fourth\n\n- The lantern of number4x opens with {LEAKED}.\n"})
    with open(vault / paths["manifest"], "a", encoding="utf-8") as manifest:
        manifest.write(f"what I wrote beside it: {LEAKED}\n")
    (vault / "MEMORY.user-20260328T101010000Z.md").write_text(f"mine, and {LEAKED}\n")
    vault.reindex()
    keep(vault, folder, {"session": numbered(4)["session_id"]})


def quoting(folder: Path) -> None:
    """A session, and a later one that quotes it; nothing else says what both say."""
    vault = _three(folder)
    body = f"# Third\n\n- The spare key of {QUOTED} lies under the third stone behind the mill.\n"
    vault.session(6, **numbered(6) | {"body": body})
    vault.session(5, **numbered(5) | {"body": body.replace("# Third", "# Fifth\n\nIt said once:")})
    vault.reindex()
    keep(vault, folder, {"session": numbered(6)["session_id"]})


def backlog(folder: Path) -> None:
    """Rows of seven sessions, and what follows from the newest two: the rest waits in the outbox for idle time."""
    vault = Vault(folder / "vault")
    for number in range(1, 8):
        vault.session(number)
    few, engine.FEW_SOURCES = engine.FEW_SOURCES, 1
    try:
        with opened(str(vault.root), Settings()) as workspace:
            engine.run_pass(workspace, Request(now_us=NOW_US, since_us=NOW_US - 2 * DAY))
            assert outbox.any_waits(workspace.database)
    finally:
        engine.FEW_SOURCES = few
    keep(vault, folder)


def garden(folder: Path) -> None:
    """A user and a part with a line in it."""
    vault = _three(folder)
    vault.reindex()
    with opened(str(vault.root), Settings()) as workspace:
        before = {"now_us": NOW_US - SECOND}
        entities.create(workspace, "default", "user", "Mina", **before)
        entities.create(workspace, "default", "part", "Inner Critic", **before)
        entities.append(workspace, "default", "inner-critic", "highlights", "It stops at five.", **before)
    vault.reindex()
    keep(vault, folder)


def of_a_removal(folder: Path) -> None:
    """A session that was removed."""
    vault = _three(folder)
    vault.reindex()
    _remove(vault, 2)
    keep(vault, folder)


def of_a_shared_removal(folder: Path) -> None:
    """Two removed sessions under the key of a third."""
    vault = Vault(folder / "vault")
    for number in (1, 2, 3):
        vault.session(number, session_key="agent:main:main")
    vault.reindex()
    for number in (1, 2):
        _remove(vault, number)
    keep(vault, folder)


def _remove(vault: Vault, number: int) -> None:
    name = numbered(number)["session_id"]
    answer = vault.call("remove", name, "--reason", "asked for", "--yes", "--quoting", "keep", "--now", NOW)
    assert answer.code == 0, answer
    vault.reindex()


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
    "digest": {**FOURTH, "transcript": WITH_A_SECRET, "idempotency_key": "once"},
    "segment": {**THIRD, "captured_at": MOMENT, "transcript": FIRST_WORDS + MORE_WORDS, "summary": SUMMARY},
    "parts": {**FOURTH, "captured_at": MOMENT, "transcript": FIRST_WORDS + MORE_WORDS * 90, "summary": SUMMARY},
    "compaction": {**THIRD, "captured_at": MOMENT, "compaction": f"{SUMMARY}\nThe key was {SECRET} then.\n"},
    "first compaction": {**FOURTH, "agent_id": "nova", "captured_at": MOMENT, "compaction": SUMMARY},
}


def _without_a_manifest(vault: Vault, first: dict[str, str]) -> None:
    (vault / first["manifest"]).unlink()


def _with_a_page_written_around(vault: Vault, _: object) -> None:
    vault.session(4)
    (vault / "MEMORY.md").write_bytes(b"# Mine\n" + (vault / "MEMORY.md").read_bytes() + b"mine too\n")
    next(vault.root.glob("ledger/*/*/*.md")).unlink()


def _without_a_database(vault: Vault, _: object) -> None:
    vault.session(4)
    for place in vault.state.glob("signet-sync.db*"):
        place.unlink()


def running(vary: Callable[[Vault, dict[str, str]], None] | None = None) -> Prepare:
    """Two sessions of other programs and one of ours that still runs, with live turns."""

    def make(folder: Path) -> None:
        vault = Vault(folder / "vault")
        first = vault.session(1)
        vault.session(2)
        with opened(str(vault.root), Settings()) as workspace:
            third = {**THIRD, "captured_at": "2026-03-26T10:03:00.000Z", "transcript": FIRST_WORDS, "summary": SUMMARY}
            sessions_operations.end(workspace, session_input(third, now_us=NOW_US), now_us=NOW_US)
            said = [Turn(1, "user", "Bound it.", MOMENT), Turn(2, "assistant", "The heron of lantern waits.", MOMENT)]
            live.append(workspace, said, agent_id="default", session_key=THIRD["session_key"])
            live.append(workspace, said[:1], agent_id="default", session_key="somebody else's")
            of_the_fourth = {"agent_id": "nova", "session_key": FOURTH["session_id"]}
            live.append(workspace, said, **of_the_fourth)
        vault.reindex()
        if vary is not None:
            vary(vault, first)
        keep(vault, folder)

    return make


without_a_manifest = running(_without_a_manifest)
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


def _with_a_decision(vault: Vault, _: object) -> None:
    with opened(str(vault.root), Settings()) as workspace:
        deciding(workspace)
    vault.reindex()
    assert vault.rows("select count(*) from statements where artifact < 0") == [(1,)]


having_decided = running(_with_a_decision)
written_around = running(_with_a_page_written_around)
without_a_database = running(_without_a_database)


# ── memories, pins, counts, live turns ──

RUNNING = {"session_id": "5e551003-0000-4000-8000-000000000003", "session_key": "agent:main/third"}
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


def _recalled(vault: Vault, dreams: bool) -> None:
    """Every memory was found by three queries, one of them in its own words; `dreams` lets them rise."""
    with opened(str(vault.root), Settings()) as workspace:
        rows = list(workspace.database.execute("select id, content from memories order by id"))
        for memory_id, content in rows:
            for query in ("the queue", "lantern", content):
                recall_events.record(workspace.database, "default", query, [(memory_id, 1.0)], NOW_US)
        if dreams:
            promotion.dream(workspace, "default", NOW_US - DAY)
    vault.reindex()


def _risen_and_quoted(vault: Vault) -> None:
    """What is to go has risen, was typed into our part of the page, and is in backups of other days."""
    _recalled(vault, dreams=True)
    words = f"> {FORGOTTEN}\n> {REMOVED}\n> {numbered(2)['memory_sentence']}\n"
    (vault / "MEMORY.md").write_text(vault.page().replace("## ", f"{words}\n## ", 1))
    shutil.copy(next(vault.state.rglob("native-*.db")), vault.state / "backups" / "native-20260301.db")


def _before_the_first_dream(vault: Vault) -> None:
    _recalled(vault, dreams=False)
    with vault.database(readonly=False) as database, database.transaction():
        database.execute("update memories set concept_tags = null")
        database.execute("insert into recall_events select null, agent_id, id, 'of old', 1, 0 from memories")


def _of_other_rules(vault: Vault) -> None:
    with vault.database(readonly=False) as database, database.transaction():
        database.execute("delete from session_summaries where kind = 'arc'")
        database.execute("update statements set text = 'of other rules'")
        database.execute("update derivers set version = '0' where name = 'graph'")


def remembering(vary: Callable[[Vault], object] | None = None) -> Prepare:
    """Three sessions of one thread with its arc, memories, pins, counts and live turns."""

    def make(folder: Path) -> None:
        vault = Vault(folder / "vault")
        for number in (1, 2, 4):
            vault.session(number)
        vault.reindex()
        prepared: dict[str, Any] = {"remove": numbered(2)["session_id"]}
        with opened(str(vault.root), Settings()) as workspace:
            prepared["pin"] = remember(workspace, "Tests run before every push.")
            prepared["forget"] = remember(workspace, FORGOTTEN)
            remember(workspace, REMOVED, session=prepared["remove"])
            for handle in (prepared["forget"], *_arcs_and_nodes(workspace.database, prepared["remove"])):
                pinning.pin(workspace, "default", handle, NOW_US)
                counts.count_ids(workspace.database, "default", [handle], NOW[:10])
            said = "select id from statements where newest = 1 order by at_us, id"
            prepared["say"], second, *_ = [one for (one,) in workspace.database.execute(said)]
            pinning.mark(workspace, "default", second, "done", NOW_US)
            turn = Turn(1, "user", "Bound it.", MOMENT)
            live.append(workspace, [turn], agent_id="default", session_key=RUNNING["session_key"])
            live.append(workspace, [turn], agent_id="default", session_key="somebody else's")
            of_the_removed = turn._replace(text=f"Once more: {REMOVED}")
            live.append(workspace, [of_the_removed], agent_id="default", session_key=prepared["remove"])
        vault.reindex()
        if vary is not None:
            vary(vault)
        keep(vault, folder, prepared)

    return make


risen = remembering(_risen_and_quoted)
recalled = remembering(lambda vault: _recalled(vault, dreams=False))
dreamed = remembering(lambda vault: _recalled(vault, dreams=True))
before_the_first_dream = remembering(_before_the_first_dream)
of_another_version = remembering(to_another_version)
of_other_rules = remembering(_of_other_rules)


def with_a_stone(folder: Path) -> None:
    """A tombstone that another machine has written for a session that is here with all its traces."""
    risen(folder)
    place = folder / "before" / "memory" / "tombstones"
    place.mkdir(exist_ok=True)
    name, raw = made.tombstone(session_id=numbered(2)["session_id"])
    (place / name).write_bytes(raw)


def beside_signet(folder: Path) -> None:
    """Three sessions, and a database of Signet outside: it removed one of them, and knows of things with secrets.

    A harness calls Signet.
    """
    vault = _three(folder)
    vault.reindex()
    _fed_to_signet()
    token = token_of("default", numbered(2)["session_id"])
    keep(vault, folder, {"from": str(_of_signet(folder, removed=token))})


def _of_signet(folder: Path, removed: str | None = None) -> Path:
    signet = signet_database.Database(folder / "signet/memory/memories.db")
    if removed is not None:
        stone = {"agent_id": "default", "session_token": removed, "removed_at": NOW, "reason": "private"}
        signet.put("memory_artifact_tombstones", **stone)
    shared = {"session_key": "of-signet", "created_at": "2026-03-20T10:00:00.000Z", "harness": "codex"}
    signet.put("session_transcripts", content=f"User: Bound it.\nAssistant: With {SECRET}, it is.", **shared)
    signet.put("session_summaries", id="s", content="# Loop\n\n- lantern bounds it.\n", **shared)
    signet.put("session_summaries", id="t", content="# More\n\n- zqxmore is kept.\n", **shared)
    signet.memory(1, f"Drain the lantern before {SECRET} is turned.", pinned=1)
    signet.memory(2, "The lantern of zqxlamp is lit.", source_id="of-signet")
    signet.memory(3, "The lantern of zqxradio is heard.", agent_id="scout")
    return signet.close().path.rename(folder / "signet.db")


def with_a_removal_of_signet(folder: Path) -> None:
    """Signet's record that it removed a session that is here with all its traces."""
    risen(folder)
    Signet(folder / "before").record(made.token_for(session_id=numbered(2)["session_id"]))


def replaced_by_signet(folder: Path) -> None:
    """Signet's page in place of ours, and its texts in the manifests; a person has decided that they are ours."""
    vault = _three(folder)
    vault.reindex()
    signet = Signet(vault.root)
    signet.page("## Open Threads\n\n- a thread of its own\n")
    signet.render_manifests()
    vault.reindex()
    (vault / "signet-sync.toml").write_text("[projection]\ntakeover = true\n")
    keep(vault, folder)


def harness() -> Path:
    """Where a harness has its settings: beside the state, so that they are put back with it."""
    return Path(os.environ["SIGNET_STATE"]) / "claude"


def _fed_to_signet() -> None:
    """A harness that calls Signet and has its tools, with what else a person has in its settings."""
    hook = {"type": "command", "command": "signet hook session-end -H claude-code"}
    hooks = {"SessionEnd": [{"hooks": [hook]}], "Stop": [{"hooks": [{"type": "command", "command": "say done"}]}]}
    harness().mkdir()
    (harness() / "settings.json").write_text(json.dumps({"model": "opus", "hooks": hooks}, indent=4))
    servers = {"signet": {"command": "signet", "args": ["mcp"]}, "mine": {"command": "mine"}}
    (harness() / ".claude.json").write_text(json.dumps({"mcpServers": servers}))


def feeds_signet(folder: Path) -> bool:
    """Whether the harness does; what is not Signet's stands whole beside it."""
    settings, servers = (json.loads((folder / name).read_text()) for name in ("settings.json", ".claude.json"))
    hooks = settings.pop("hooks")
    assert settings == {"model": "opus"} and "Stop" in hooks and "mine" in servers["mcpServers"]
    found = {"SessionEnd" in hooks, "signet" in servers["mcpServers"]}
    assert len(found) == 1
    return found.pop()


def beside_claude_mem(folder: Path) -> None:
    """A vault, and a database of claude-mem outside with what is not here, some of it secret."""
    vault = _three(folder)
    vault.reindex()
    keep(vault, folder, {"from": str(_of_claude_mem(folder))})


def _of_claude_mem(folder: Path) -> Path:
    shared = {"memory_session_id": "s", "project": "lantern", "created_at": "2026-03-20T10:00:00.000Z"}
    observed = [
        shared | {"type": "decision", "title": f"Zzwick {number} is turned", "text": f"With {SECRET}."}
        for number in range(3)
    ]
    return other_memories.claude_mem(folder / "claude-mem.db", observed, [shared | {"learned": "Zzwick smokes."}])


def with_a_backup(folder: Path) -> None:
    """A vault whose memories are in a backup and nowhere else."""
    vault = _three(folder)
    vault.reindex()
    with opened(str(vault.root), Settings()) as workspace:
        pinning.pin(workspace, "default", remember(workspace, "Tests run before every push."), NOW_US)
        remember(workspace, "The lantern of staging is blue.")
    vault.reindex()
    place = folder / "kept.backup"
    assert vault.call("backup", "create", str(place), "--now", NOW).code == 0
    with vault.database(readonly=False) as database, database.transaction():
        for table in ("memory_sources", "memories", "node_telemetry"):
            database.execute(f"delete from {table}")
    for made_before in vault.state.glob("backups/*"):
        made_before.unlink()
    vault.reindex()
    keep(vault, folder, {"backup": str(place)})
