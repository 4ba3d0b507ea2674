"""Reads files, judges them and writes their rows, in batches in the open transaction."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import Any

from signet_sync.errors import WorkspaceError, reason
from signet_sync.formats.paths import MEMORY
from signet_sync.formats.seal import pack
from signet_sync.formats.snapshot import Found, Signature, Trouble
from signet_sync.formats.timestamps import iso
from signet_sync.storage import files
from signet_sync.storage.files import Vault
from signet_sync.storage.safe_paths import folder
from signet_sync.sync import planner
from signet_sync.sync.index_records import Seal
from signet_sync.sync.planner import JudgeContext, Judgement, Known, Row
from signet_sync.sync.quarantine import Quarantine
from signet_sync.sync.request import Outcome, Pass, Request
from signet_sync.sync.stages import MANIFEST, SESSION, Alive, Source
from signet_sync.sync.store import artifacts, redactions, texts
from signet_sync.sync.workers import Given, Workers
from signet_sync.sync.workspace import Workspace


def read(vault: Vault | None, path: str, limit: int) -> Found | Trouble:
    """Reads a file of the open folder `memory/`; if it changes meanwhile, reads it again, a few times."""
    if vault is None:
        return Trouble("gone", "its folder is gone")
    return vault.read(path.rpartition("/")[2], limit)


def is_unsettled(found: Found | Trouble) -> bool:
    """Returns whether a file cannot be judged now: it is gone, or changes while it is read."""
    return isinstance(found, Trouble) and found.code in ("gone", "unsettled")


def judge_and_pack(path: str, found: Found | Trouble, judging: JudgeContext) -> Judgement:
    """Judges a file; a new seal holds its bytes in the stored form."""
    judgement = planner.judge(path, found, judging)
    if not judging.keeps:
        return judgement._replace(raw=None)
    if judgement.seal is None or judgement.raw is None:
        return judgement
    return judgement._replace(seal=judgement.seal._replace(packed=pack(judgement.raw)), raw=None)


class FileJudge:
    """Judges files in a worker, by their paths and seals."""

    def __init__(self, root: str, judging: JudgeContext) -> None:
        self._root = root
        self._judge_context = judging._replace(seal_of=_no_seal)
        self._vault: Vault | None = None

    def __call__(self, asked: tuple[str, Seal | None]) -> Judgement | None:
        """Returns None if the pass itself has to look: the file is unsettled, or has to be redacted again."""
        path, seal = asked
        if self._vault is None:
            with folder(self._root, MEMORY) as descriptor:
                self._vault = files.DiskVault(os.dup(descriptor))  # open as long as the worker runs
        found = read(self._vault, path, self._judge_context.max_file_bytes)
        if is_unsettled(found):
            return None
        judging = self._judge_context if seal is None else self._judge_context._replace(seal_of=lambda _: seal)
        judgement = judge_and_pack(path, found, judging)
        return None if judgement.sealed is not None else judgement


def _no_seal(_path: str) -> Seal | None:
    return None


FUTURE_NS = 3600 * 10**9
# From so many files or sources on, full text gets more memory.
BULK_FROM = 400
# From so many files or sessions on, workers judge and derive: each loads and compiles what the pass has loaded, a
# quarter of a second, which is a third of the work on a thousand files.
WORKERS_FROM, DERIVERS_FROM = 3_000, 1_000
# Files, and bytes of files, that are judged before their rows are written; and how many batches are judged ahead.
BATCH = 256
_BATCH_BYTES = 8 << 20
_AHEAD = 3


def read_and_write(
    run: Pass, paths: Iterable[str], judging: JudgeContext, known: dict[str, Known], quarantine: Quarantine
) -> set[str]:
    """Reads, judges and writes in batches; returns the paths that are left for a later look."""
    workspace, request, outcome = run.workspace, run.request, run.outcome
    paths, unsettled = sorted(paths), set[str]()
    if not paths:
        return unsettled
    much = len(paths) > BULK_FROM
    writer = VerdictWriter(workspace, request, known, outcome)
    settle_ns = int(request.settle_seconds * 1e9)
    young_ns = request.now_us * 1000 - settle_ns
    # A time far in the future comes from a clock that was set back; such a file would be young forever.
    future_ns = request.now_us * 1000 + FUTURE_NS
    if much:
        texts.tune_for_bulk(workspace.database, bulk=True)
    for batch in judge_paths(run, paths, judging, quarantine):
        request.go_on()
        judgements: dict[str, Judgement] = {}
        for path, judgement in batch:
            if judgement is None:
                unsettled.add(path)
                continue
            # By ctime: programs that copy or synchronize files set mtime to its value elsewhere.
            young = judgement.signature is not None and young_ns < judgement.signature.ctime_ns < future_ns
            if settle_ns and young and judgement.verdict in ("invalid", "violation"):
                unsettled.add(path)
                continue
            if judgement.unlink and not workspace.touch_nothing and unlink(workspace, judgement, outcome):
                judgement = judgement._replace(row=None)
            if judgement.redacted:
                workspace.events.append(f"{path}: it was redacted elsewhere; the old bytes are deleted here too")
            outcome.read += 1
            judgements[path] = judgement
        writer.write(judgements)
    quarantine.all_read()
    if much:
        texts.tune_for_bulk(workspace.database, bulk=False)
    return unsettled


def judge_paths(
    run: Pass, paths: Sequence[str], judging: JudgeContext, quarantine: Quarantine
) -> Iterator[Iterator[tuple[str, Judgement | None]]]:
    """Yields batches of paths and judgements, None for a file that is unsettled, and reports progress.

    If there are many files, the pass's workers judge the next batches meanwhile. Sorted names keep the files of a
    session together, and the folder's index is read once.
    """
    taken = 0

    def alive() -> None:
        run.request.go_on()
        if run.request.progress is not None:
            run.request.progress(taken, len(paths))

    with ExitStack() as stack:
        vault = None
        with suppress(FileNotFoundError):
            vault = stack.enter_context(files.reading(run.workspace.vault, MEMORY))
        spread = len(paths) > WORKERS_FROM
        reader = _JudgementReader(run, judging, quarantine, vault, run.workers if spread else Workers(0))
        for batch, judgements in reader.batches(sorted(paths), alive):
            yield judgements
            taken += len(batch)
            alive()


class _JudgementReader:
    """Yields the judgements of files in order: those of workers, and its own for what workers leave unanswered."""

    def __init__(
        self,
        run: Pass,
        judging: JudgeContext,
        quarantine: Quarantine,
        vault: Vault | None,
        workers: Workers,
    ) -> None:
        self._run = run
        self._workspace = run.workspace
        self._judge_context = judging
        self._quarantine = quarantine
        self._vault = vault
        self._workers = workers
        self._judge = FileJudge(run.workspace.root, judging)
        self._any_seals = artifacts.seals_exist(run.database)
        self._ahead = _AHEAD if workers else 0

    def batches(
        self, paths: Sequence[str], alive: Alive
    ) -> Iterator[tuple[list[str], Iterator[tuple[str, Judgement | None]]]]:
        """Yields batches of paths with their judgements, None for a file that is unsettled."""
        seen = self._run.outcome.seen
        ahead: deque[tuple[list[str], Given[str, Any, Judgement]]] = deque()
        for batch in _batches(paths, seen.files if seen is not None else {}):
            ahead.append((batch, self._given(batch)))
            if len(ahead) > self._ahead:
                yield ahead[0][0], self._taken(*ahead.popleft(), alive)
        while ahead:
            yield ahead[0][0], self._taken(*ahead.popleft(), alive)

    def _given(self, batch: Sequence[str]) -> Given[str, Any, Judgement]:
        """Gives a batch to the workers, without quarantined files."""
        seals = artifacts.seals_of(self._workspace.database, batch) if self._workers and self._any_seals else {}
        root = self._workspace.vault
        asked = ((path, (path, seals.get(path))) for path in batch if self._quarantine.left_alone(root, path) is None)
        return self._workers.give(self._judge, asked)

    def _taken(
        self, batch: Sequence[str], given: Given[str, Any, Judgement], alive: Alive
    ) -> Iterator[tuple[str, Judgement | None]]:
        answers = dict(given.answers(alive))
        for path in batch:
            judgement = answers.pop(path, None)
            if judgement is None:
                if path in given.deadly:
                    self._quarantine.died_of(self._workspace.root, path)
                judgement = self._judged_here(path)
            else:
                self._quarantine.took(path, _size(judgement))
            yield path, judgement

    def _judged_here(self, path: str) -> Judgement | None:
        self._quarantine.hold(path)
        root, limit = self._workspace.vault, self._workspace.settings.max_file_bytes
        found = self._quarantine.left_alone(root, path) or read(self._vault, path, limit)
        if is_unsettled(found):
            return None
        try:
            judgement = judge_and_pack(path, found, self._judge_context)
        except Exception as error:
            error.add_note(path)
            raise
        self._quarantine.took(path, _size(judgement))
        if judgement.sealed is not None and not self._workspace.touch_nothing:
            return _redact_again(self._workspace, judgement, found, self._judge_context, self._run.outcome)
        return judgement


def _size(judgement: Judgement) -> int:
    """Returns the number of bytes that were read."""
    return judgement.signature.size if judgement.signature is not None and judgement.code != "too-large" else 0


def _batches(paths: Iterable[str], signatures: Mapping[str, Signature]) -> Iterator[list[str]]:
    batch: list[str] = []
    size = 0
    for path in paths:
        batch.append(path)
        size += signatures[path].size if path in signatures else 0
        if len(batch) == BATCH or size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _redact_again(
    workspace: Workspace, judgement: Judgement, found: Found | Trouble, judging: JudgeContext, outcome: Outcome
) -> Judgement:
    """Replaces a file from before its redaction (another machine, a copy, an interrupted flow) by the redacted one."""
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
    return judge_and_pack(path, Found(sealed, replaced.signature), judging)


def unlink(workspace: Workspace, judgement: Judgement, outcome: Outcome) -> bool:
    try:
        files.unlink(workspace.root, judgement.path)
    except (OSError, WorkspaceError) as error:
        outcome.trouble.append(f"{judgement.path}: a removed session's file cannot be deleted: {error}")
        return False
    outcome.tombstoned.append(judgement)
    return True


class VerdictWriter:
    """Writes batches of judgements into the open transaction."""

    def __init__(self, workspace: Workspace, request: Request, known: dict[str, Known], outcome: Outcome) -> None:
        self._database = workspace.database
        self._request = request
        self._known = known
        self._change = outcome.change
        # If all files moved, everything is updated anyway.
        self._whole = request.rebuild or (outcome.full and not known)
        self._next_id = artifacts.next_row_id(workspace.database)

    def write(self, by_path: Mapping[str, Judgement]) -> None:
        """Writes rows, full text, seals and verdicts of a batch, by the requested paths."""
        database, judgements = self._database, by_path.values()
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
        # After old rows are deleted: their texts may come from the old seals.
        artifacts.store_seals(database, [j.seal for j in judgements if j.seal is not None])
        self._next_id = artifacts.insert_rows(database, changed, self._next_id)
        changed_paths = {j.path for j in changed}
        # The caller's strings: those in a worker's answer are copies.
        self._change.paths.update(path for path in by_path if path in changed_paths)
        for judgement in changed:
            row = judgement.row
            if row is not None:
                self._touch(row)
                if row.source_kind != "manifest":
                    self._change.agents.add(row.agent_id)
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
        for judgement in judgements:
            if judgement.redacted and judgement.row is not None:
                at, why = iso(self._request.now_us), "redacted on another machine"
                redactions.record(database, [judgement.path], at, why)

    def _moved(self, judgement: Judgement) -> bool:
        """Returns whether the file changed: files under a tombstone's token are read in every pass."""
        before = self._known.get(judgement.path)
        return before is None or before.signature != judgement.signature

    def _touch(self, row: Row) -> None:
        if self._whole:
            return
        kind = MANIFEST if row.source_kind == "manifest" else SESSION
        self._change.sources.add(Source(kind, row.agent_id, row.session_token, row.session_id))
