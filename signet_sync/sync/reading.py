"""Reads files, judges them and writes their rows, in batches in the open transaction."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace

from signet_sync import reconcile as desk
from signet_sync.contracts.observed import Found, Trouble
from signet_sync.contracts.places import MEMORY
from signet_sync.contracts.timestamps import iso
from signet_sync.errors import WorkspaceError, reason
from signet_sync.index import (
    artifacts,
    redactions,
)
from signet_sync.reconcile import Bench, Judgement, Known, Row, Seal
from signet_sync.sync.quarantine import Quarantine
from signet_sync.sync.request import Outcome, Request
from signet_sync.sync.stages import MANIFEST, SESSION, Change, Source
from signet_sync.sync.workspace import Workspace
from signet_sync.vault import files
from signet_sync.vault.layout import folder

BATCH = 1024
FUTURE_NS = 3600 * 10**9
THREADED = 400


def read_and_write(
    workspace: Workspace,
    request: Request,
    paths: Sequence[str],
    bench: Bench,
    known: dict[str, Known],
    outcome: Outcome,
    unsettled: set[str],
    perils: Quarantine,
) -> None:
    """Reads, judges and writes in batches; with many files full text and seals are made beside the reading."""
    if not paths:
        return
    # In order of names the files of a session come together, and the folder's index is walked once.
    paths = sorted(paths)
    writer = Writer(workspace, request, known, outcome.change, threaded=len(paths) > THREADED)
    writer.look_up(paths[:BATCH])
    bench = replace(bench, seal_of=writer.seal_of)
    settle_ns = int(request.settle_seconds * 1e9)
    young_ns = request.now_us * 1000 - settle_ns
    # A time far ahead comes from a clock that was set back; such a file would be young for ever.
    future_ns = request.now_us * 1000 + FUTURE_NS
    with ExitStack() as stack:
        stack.callback(writer.rest)
        with suppress(FileNotFoundError):
            writer.descriptor = stack.enter_context(folder(workspace.root, MEMORY))
        for start in range(0, len(paths), BATCH):
            request.go_on()
            judgements: list[Judgement] = []
            for path in paths[start : start + BATCH]:
                perils.hold(path)
                found = perils.left_alone(workspace.root, path) or _read(
                    writer.descriptor, path, workspace.settings.max_file_bytes
                )
                if isinstance(found, Trouble) and found.code in ("gone", "unsettled"):
                    unsettled.add(path)
                    continue
                judgement = desk.judge(path, found, bench)
                perils.took(path, found)
                # By ctime: programs that copy or synchronise set mtime to what it was elsewhere.
                young = judgement.signature is not None and young_ns < judgement.signature.ctime_ns < future_ns
                if settle_ns and young and judgement.verdict in ("invalid", "violation"):
                    unsettled.add(path)
                    continue
                if judgement.sealed is not None and not workspace.touch_nothing:
                    judgement = _redacted_again(workspace, judgement, found, bench, outcome)
                if judgement.unlink and not workspace.touch_nothing and unlink(workspace, judgement, outcome):
                    judgement = replace(judgement, row=None)
                if judgement.redacted:
                    workspace.events.append(f"{path}: it was redacted elsewhere; the old bytes are let go here, too")
                outcome.read += 1
                judgements.append(judgement)
            writer.write(judgements, paths[start + BATCH : start + 2 * BATCH])
            if request.progress is not None:
                request.progress(min(start + BATCH, len(paths)), len(paths))
        perils.all_read()
        writer.finish()


def _redacted_again(
    workspace: Workspace, judgement: Judgement, found: Found | Trouble, bench: Bench, outcome: Outcome
) -> Judgement:
    """Puts the redacted file in the place of the one of before: from another machine, a copy, or a flow cut off."""
    path, sealed = judgement.path, judgement.sealed
    assert sealed is not None and isinstance(found, Found)
    try:
        replaced = files.replace(workspace.root, path, sealed, found.raw)
    except (OSError, WorkspaceError) as error:
        outcome.trouble.append(f"{path}: what was redacted came back, and cannot be taken out now: {reason(error)}")
        return judgement
    if replaced.displaced is not None:
        return judgement  # it was saved again meanwhile: the next pass looks at it
    workspace.events.append(f"{path}: a version of before its redaction stood there; it is redacted again")
    return desk.judge(path, Found(sealed, replaced.signature), bench)


def unlink(workspace: Workspace, judgement: Judgement, outcome: Outcome) -> bool:
    try:
        files.unlink(workspace.root, judgement.path)
    except (OSError, WorkspaceError) as error:
        outcome.trouble.append(f"{judgement.path}: a removed session's file cannot be deleted: {error}")
        return False
    outcome.tombstoned.append(judgement)
    return True


def _read(descriptor: int | None, path: str, limit: int) -> Found | Trouble:
    if descriptor is None:
        return Trouble("gone", "its folder is gone")
    name = path.rpartition("/")[2]
    for _ in range(3):
        found = files.read_at(descriptor, name, limit)
        if not (isinstance(found, Trouble) and found.code == "unsettled"):
            break
    return found


class Writer:
    """Writes batches of judgements into the open transaction.

    With many files a helper thread makes the full text of the batch before, while the next one is read: FTS5's one long
    statement holds no interpreter lock. Meanwhile the connection is the helper's alone: what judging the next batch
    needs of it, the seals, is looked up before.
    """

    def __init__(
        self,
        workspace: Workspace,
        request: Request,
        known: dict[str, Known],
        change: Change,
        *,
        threaded: bool,
    ) -> None:
        self.descriptor: int | None = None
        self._database = workspace.database
        self._request = request
        self._known = known
        self._change = change
        self._threaded = threaded
        self._next_id = artifacts.next_row_id(workspace.database)
        self._thread: threading.Thread | None = None
        self._failure: BaseException | None = None
        self._seals: dict[str, Seal] = {}
        self._any_seals = artifacts.seals_exist(self._database)
        if threaded:
            artifacts.tune_for_bulk(self._database, bulk=True)

    def look_up(self, paths: Sequence[str]) -> None:
        """Gets the seals of the batch that is judged next."""
        self._seals = artifacts.seals_of(self._database, paths) if self._any_seals else {}

    def seal_of(self, path: str) -> Seal | None:
        """The seal of a path of that batch."""
        return self._seals.get(path)

    def write(self, judgements: Sequence[Judgement], following: Sequence[str]) -> None:
        """Takes one batch; `following` are the paths of the next one."""
        self._join()
        database = self._database
        before = artifacts.rows_by_path(database, [j.path for j in judgements if j.path in self._known])
        changed = [
            j
            for j in judgements
            if j.row != before.get(j.path) or (j.row is not None and j.row.source_kind == "manifest" and self._moved(j))
        ]
        stale = [j.path for j in changed if j.path in before]
        artifacts.delete_rows(database, stale)
        for path in stale:
            self._touch(before[path])
        first = self._next_id
        self._next_id = artifacts.insert_rows(database, changed, first, iso(self._request.now_us))
        for judgement in changed:
            self._change.paths.add(judgement.path)
            row = judgement.row
            if row is not None:
                self._touch(row)
                if row.source_kind != "manifest":
                    self._change.agents.add(row.agent_id)
        changed_paths = {j.path for j in changed}
        artifacts.store_files(
            database,
            [
                j
                for j in judgements
                if j.path in changed_paths
                or j.path in self._request.reread
                or self._known.get(j.path) != Known(j.signature, j.verdict, j.code)
            ],
            self._request.now_us,
        )
        artifacts.store_seals(
            database,
            [j.seal._replace(packed=desk.pack(j.raw)) for j in judgements if j.seal is not None and j.raw is not None],
        )
        for judgement in judgements:
            if judgement.redacted and judgement.row is not None:
                at, why = iso(self._request.now_us), "redacted on another machine"
                redactions.record(database, judgement.row.agent_id, [judgement.path], at, why)
        self.look_up(following)
        if self._threaded:
            self._thread = threading.Thread(target=self._beside, args=(first, self._next_id), name="full-text")
            database.lent_to = self._thread
            self._thread.start()
        else:
            artifacts.index_text(database, first, self._next_id)

    def finish(self) -> None:
        """Waits for the helper."""
        self._join()
        if self._threaded:
            artifacts.tune_for_bulk(self._database, bulk=False)

    def rest(self) -> None:
        """Waits for the helper after whatever went wrong: it must not write into a transaction that is rolled back."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None
            self._database.lent_to = None

    def _moved(self, judgement: Judgement) -> bool:
        """Whether the file is another one than before: under a tombstone's token all files are read in every pass."""
        before = self._known.get(judgement.path)
        return before is None or before.signature != judgement.signature

    def _touch(self, row: Row) -> None:
        kind = MANIFEST if row.source_kind == "manifest" else SESSION
        self._change.sources.add(Source(kind, row.agent_id, row.session_token, row.session_id))

    def _beside(self, first: int, following: int) -> None:
        try:
            artifacts.index_text(self._database, first, following)
        except BaseException as error:  # noqa: BLE001 - carried to the thread that owns the transaction
            self._failure = error

    def _join(self) -> None:
        self.rest()
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
