"""The operations that are ended early at every step, each on a vault of three sessions: one table for all faults.

`python operations.py NAME FOLDER` runs one of them on FOLDER/vault, put there from FOLDER/before, with SIGNET_STATE as
it was for `prepare`. It ends with 0 where it is done; who asked finds `answer.json` in the working folder.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

sys.path.extend(map(str, Path(__file__).resolve().parents[1].iterdir()))

import artifacts_fixture as made
from flow_runner import LATER, NOW, NOW_US, Scenario, done, passed, scenarios
from workbench import Vault, numbered

from signet_sync.app.workspace import opened
from signet_sync.cli.remove import refresh
from signet_sync.entities import operations
from signet_sync.errors import UsageError, WorkspaceError
from signet_sync.formats.timestamps import DAY, SECOND
from signet_sync.memories import operations as memories_operations
from signet_sync.privacy import quotes as privacy_quotes
from signet_sync.privacy import redact, remove
from signet_sync.recall import pinning
from signet_sync.settings.model import Settings
from signet_sync.storage import files
from signet_sync.sync import engine, outbox
from signet_sync.sync.request import Request
from signet_sync.sync.workspace import Workspace

Prepared = dict[str, object]
KEY = "once"
LEAKED = "ghp_" + "Qa1Ws2Ed3Rf4Tg5Yh6Uj7Ik8Ol9Pz0Xc1Vb2"
QUOTED = "zqlanternmill"
ROLE = "Keeps the queue of lantern from retrying for ever, and says so when it gives up."


@dataclass(frozen=True)
class Operation:
    """One operation: what it is, how its vault is made, what is run, and what may be left where it is ended early."""

    name: str
    what: str
    prepare: Callable[[Path], None]
    scenario: Callable[[Prepared], Scenario]

    def prepared(self, folder: Path) -> Prepared:
        """Reads what the preparation left for the run."""
        found = json.loads((folder / "prepared.json").read_text())
        assert isinstance(found, dict)
        return found

    def run(self, folder: Path) -> int:
        """Runs it on FOLDER/vault; 0 when it answered."""
        return self.scenario(self.prepared(folder)).work(folder / "vault")


def prepare(name: str, folder: Path) -> Operation:
    """Makes FOLDER/before, FOLDER/state-before and FOLDER/prepared.json; FOLDER/vault is the workspace itself.

    The workspace must be put back in FOLDER/vault and the state where SIGNET_STATE points to: elsewhere it is a copy.
    """
    folder.mkdir(parents=True, exist_ok=True)
    OPERATIONS[name].prepare(folder)
    return OPERATIONS[name]


# ── vaults ──


def _of_flows(scenario: str) -> Callable[[Path], None]:
    """Two sessions of other programs and one of ours that still runs."""

    def make(folder: Path) -> None:
        import test_crash_matrix

        test_crash_matrix.prepare(folder, scenario)

    return make


def _of_memory(scenario: str) -> Callable[[Path], None]:
    """Three sessions of one thread, with memories, pins, hits and live turns."""

    def make(folder: Path) -> None:
        import test_crash_memory

        test_crash_memory.prepare(folder, scenario)

    return make


def _keep(vault: Vault, folder: Path, prepared: Prepared) -> None:
    shutil.copytree(vault.root, folder / "before")
    shutil.copytree(os.environ["SIGNET_STATE"], folder / "state-before")
    (folder / "prepared.json").write_text(json.dumps(prepared))


def _three(folder: Path) -> Vault:
    vault = Vault(folder / "vault")
    for number in (1, 2, 3):
        vault.session(number)
    (vault / "MEMORY.md").write_bytes(b"# What I wrote myself\n")
    vault.reindex()
    return vault


def _plain(folder: Path) -> None:
    _keep(_three(folder), folder, {})


def _damaged(folder: Path) -> None:
    """A database with a page of nonsense in its middle, and native rows that stand nowhere else but in the backup."""
    vault = _three(folder)
    vault.hits("number1x")
    given = {"kind": "fact", "tags": (), "private": False, "session": None, "now_us": NOW_US}
    with opened(str(vault.root), Settings()) as workspace:
        kept = memories_operations.remember(workspace, "default", "Tests run before every push.", **given).memory.id
        pinning.pin(workspace, "default", kept, NOW_US)
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
    _keep(vault, folder, {})


def _with_a_stone(folder: Path) -> None:
    """A tombstone that another machine has written for a session that is here with all its traces."""
    _of_memory("removal")(folder)
    place = folder / "before" / "memory" / "tombstones"
    place.mkdir(exist_ok=True)
    name, raw = made.tombstone(session_id=numbered(2)["session_id"])
    (place / name).write_bytes(raw)


def _leaked(folder: Path) -> None:
    """A session of another program that holds a secret in every file, and a copy that was kept of a page with it."""
    vault = _three(folder)
    paths = vault.session(4, **numbered(4) | {"body": f"# Fourth\n\n- The lantern of number4x opens with {LEAKED}.\n"})
    with open(vault / paths["manifest"], "a", encoding="utf-8") as manifest:
        manifest.write(f"what I wrote beside it: {LEAKED}\n")
    (vault / "MEMORY.user-20260328T101010000Z.md").write_text(f"mine, and {LEAKED}\n")
    vault.reindex()
    _keep(vault, folder, {"session": numbered(4)["session_id"]})


def _quoting(folder: Path) -> None:
    """A session, and a later one that quotes it; nothing else says what both say."""
    vault = _three(folder)
    body = f"# Third\n\n- The spare key of {QUOTED} lies under the third stone behind the mill.\n"
    vault.session(6, **numbered(6) | {"body": body})
    vault.session(5, **numbered(5) | {"body": body.replace("# Third", "# Fifth\n\nIt said once:")})
    vault.reindex()
    _keep(vault, folder, {"session": numbered(6)["session_id"]})


def _with_a_backlog(folder: Path) -> None:
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
    _keep(vault, folder, {})


def _garden(folder: Path) -> None:
    vault = _three(folder)
    with opened(str(vault.root), Settings()) as workspace:
        operations.create(workspace, "default", "part", "Inner Critic", now_us=NOW_US - SECOND)
        operations.append(
            workspace, "default", "inner-critic", "highlights", "It stops at five.", now_us=NOW_US - SECOND
        )
    vault.reindex()
    _keep(vault, folder, {})


# ── what is run ──


def _publish(workspace: Workspace) -> None:
    """One new file, and a pass."""
    name, raw = made.summary(**numbered(4))
    path = f"memory/{name}"
    with suppress(FileExistsError):
        files.create_once(workspace.root, path, raw)
    assert (Path(workspace.root) / path).read_bytes() == raw
    engine.run_pass(workspace, Request(now_us=NOW_US))


def _work_off(workspace: Workspace) -> None:
    """What the agent does in idle time, in batches of two sessions, and the pass that publishes what came of it."""
    for deriver in workspace.pipeline.derivers:
        deriver.batch = 2
    while engine.work_off(workspace, Request(now_us=NOW_US)):
        pass
    engine.run_pass(workspace, Request(now_us=NOW_US))


def _edit(workspace: Workspace) -> None:
    operations.set_section(workspace, "default", "inner-critic", "role", ROLE, now_us=NOW_US, key=KEY)


def _redact(prepared: Prepared) -> Callable[[Workspace], object]:
    def ask(workspace: Workspace) -> None:
        refresh(workspace, NOW_US)
        paths = redact.selected(workspace, "default", str(prepared["session"]))
        left = redact.redact(workspace, paths, "it leaked", NOW_US).left
        if left:
            raise WorkspaceError(left[0].message, path=left[0].path)

    return ask


def _remove_quoted(prepared: Prepared) -> Callable[[Workspace], object]:
    def ask(workspace: Workspace) -> None:
        refresh(workspace, NOW_US)
        try:
            plans = remove.plan(workspace, "default", str(prepared["session"]))
        except UsageError as error:
            if error.code == "unknown-session":
                return  # it was removed already
            raise
        quotes = privacy_quotes.quoted(workspace, plans)
        privacy_quotes.redact(workspace, quotes, "private", NOW_US)
        for plan in plans:
            remove.remove(workspace, plan, "private", NOW_US, quoted_in=quotes.paths)

    return ask


def _flow(scenario: str) -> Callable[[Prepared], Scenario]:
    return lambda prepared: scenarios(prepared)[scenario]


def _words(prepared: Prepared) -> tuple[str, ...]:
    words = prepared["words"]
    assert isinstance(words, dict)
    return tuple(words["removal"])


_ALL = (
    Operation(
        "publish",
        "one new artifact, and the pass that indexes it",
        _plain,
        lambda _: Scenario(done(_publish), tidies=True),
    ),
    Operation(
        "backlog",
        "what follows from older sessions, batch by batch in idle time",
        _with_a_backlog,
        lambda _: Scenario(done(_work_off, answers=False), flow=False),
    ),
    Operation("session end", "transcript, summary, manifest, row and page", _of_flows("end"), _flow("end")),
    Operation("compaction", "a compaction of a running session", _of_flows("compaction"), _flow("compaction")),
    Operation("live turns", "turns of a running session appended", _of_memory("append"), _flow("append")),
    Operation(
        "manifest update",
        "a manifest written anew and the references of the others moved by a month that passed",
        _of_flows("manifests"),
        lambda _: Scenario(passed("reindex", "--now", LATER), flow=False, now=LATER),
    ),
    Operation(
        "projection",
        "MEMORY.md with a person's words around it, and a ledger page that was lost",
        _of_flows("projection"),
        _flow("projection"),
    ),
    Operation("removal", "a session removed with all its traces", _of_memory("removal"), _flow("removal")),
    Operation(
        "redaction",
        "a secret taken out of the sealed files of a session, its manifest and a kept copy",
        _leaked,
        lambda prepared: Scenario(done(_redact(prepared)), piecemeal=True, tidies=True, gone=(LEAKED,), rewrites=True),
    ),
    Operation(
        "removal of what is quoted",
        "a session removed, its passages taken out of the sealed file of another one",
        _quoting,
        lambda asked: Scenario(done(_remove_quoted(asked)), piecemeal=True, tidies=True, gone=(QUOTED,), rewrites=True),
    ),
    Operation("migration", "a database of version 0.1.0", _of_memory("0.1.0"), _flow("0.1.0")),
    Operation("rebuild", "the database is lost: files and the backup give it back", _of_flows("full"), _flow("full")),
    Operation(
        "repair",
        "the database is damaged: moved aside, built anew, its native rows brought back",
        _damaged,
        lambda _: Scenario(passed("reindex", "--now", NOW), flow=False),
    ),
    Operation(
        "tombstone",
        "a tombstone that another machine wrote is enforced",
        _with_a_stone,
        lambda prepared: Scenario(passed("reindex", "--now", NOW), flow=False, gone=_words(prepared)),
    ),
    Operation("dream sweep", "memories recalled often rise", _of_memory("dream"), _flow("dream")),
    Operation(
        "entity edit",
        "a section of an entity's profile set under a key",
        _garden,
        lambda _: Scenario(done(_edit), tidies=True),
    ),
)  # fmt: skip
OPERATIONS: dict[str, Operation] = {operation.name: operation for operation in _ALL}


def main() -> int:
    """See the module."""
    return OPERATIONS[sys.argv[1]].run(Path(sys.argv[2]))


if __name__ == "__main__":
    sys.exit(main())
