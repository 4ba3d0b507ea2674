"""Looks at the files of a vault; reads files, judges them and writes their rows, in batches in the open transaction."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress

from signet_sync.errors import PathEscape, WorkspaceError, reason
from signet_sync.formats.frontmatter import pack_seal
from signet_sync.formats.paths import MEMORY, TOMBSTONES, display
from signet_sync.formats.snapshot import STRANGE_NAME, Found, Ground, Signature, Snapshot, Trouble
from signet_sync.storage import writing
from signet_sync.storage.files import folder, kind_of, read_settled, signature_of, split_checked, split_path, status_at
from signet_sync.sync import planner
from signet_sync.sync.index_records import MANIFEST, SESSION, Judgement, Known, Row, Source
from signet_sync.sync.planner import JudgeContext
from signet_sync.sync.store import artifacts, texts, violations
from signet_sync.sync.workspace import Outcome, Pass, Workspace


def scan(root: str) -> Snapshot:
    """Lists everything in `memory/` and `memory/tombstones/`: one scandir and one stat per file, nothing opened."""
    files: dict[str, Signature] = {}
    odd: dict[str, str] = {}
    try:
        with folder(root, MEMORY) as descriptor:
            _collect(descriptor, MEMORY, files, odd)
    except (OSError, WorkspaceError) as error:
        return Snapshot(True, *_ground_of(error))
    try:
        with folder(root, TOMBSTONES) as descriptor:
            _collect(descriptor, TOMBSTONES, files, odd)
    except (FileNotFoundError, WorkspaceError):
        pass  # another kind of entry under this name was seen in `memory/`
    except OSError as error:
        odd[TOMBSTONES] = f"it cannot be read: {error.strerror}"
    return Snapshot(True, "present", "", files, odd)


def _ground_of(error: OSError | WorkspaceError) -> tuple[Ground, str]:
    if isinstance(error, FileNotFoundError):
        return "missing", "there is no folder `memory/`"
    return "refused", error.message if isinstance(
        error, WorkspaceError
    ) else f"`memory/` cannot be read: {error.strerror}"


def _collect(descriptor: int, where: str, files: dict[str, Signature], odd: dict[str, str]) -> None:
    with os.scandir(descriptor) as entries:
        for entry in entries:
            path = f"{where}/{entry.name}"
            try:
                _sort(path, entry.stat(follow_symlinks=False), files, odd)
            except FileNotFoundError:
                continue
            except OSError as error:
                odd[display(path)] = f"it cannot be looked at: {error.strerror}"


def _sort(path: str, status: os.stat_result, files: dict[str, Signature], odd: dict[str, str]) -> None:
    if not path.isprintable():
        odd[display(path)] = STRANGE_NAME
    elif stat.S_ISREG(status.st_mode):
        files[path] = signature_of(status)
    else:
        odd[display(path)] = kind_of(status.st_mode)


def glance(root: str, paths: Iterable[str]) -> Snapshot:
    """Returns the state of some paths only: one stat each. A path outside the two folders is left out."""
    asked = frozenset(p for p in paths if p.rpartition("/")[0] in (MEMORY, TOMBSTONES) and _names_something(p))
    files: dict[str, Signature] = {}
    odd: dict[str, str] = {}
    try:
        with folder(root, MEMORY):
            pass
    except (OSError, WorkspaceError) as error:
        return Snapshot(False, *_ground_of(error), asked=asked)
    for path in asked:
        where, name = split_path(path)
        try:
            with folder(root, where) as descriptor:
                status = status_at(descriptor, name)
        except (FileNotFoundError, NotADirectoryError, WorkspaceError):
            continue
        except OSError as error:
            odd[display(path)] = f"it cannot be looked at: {error.strerror}"
            continue
        if status is not None:
            _sort(path, status, files, odd)
    return Snapshot(False, "present", "", files, odd, asked)


def _names_something(path: str) -> bool:
    try:
        split_checked(path)
    except PathEscape:
        return False
    return True


# ── reading and judging ──


def judge_and_pack(path: str, found: Found | Trouble, judging: JudgeContext) -> Judgement:
    """Judges a file; a new seal holds its bytes in the stored form."""
    judgement = planner.judge(path, found, judging)
    if not judging.keeps:
        return judgement._replace(raw=None)
    if judgement.seal is None or judgement.raw is None:
        return judgement
    return judgement._replace(seal=judgement.seal._replace(packed=pack_seal(judgement.raw)), raw=None)


FUTURE_NS = 3600 * 10**9
# From so many files or sources on, full text gets more memory.
BULK_FROM = 400
# Files, and bytes of files, that are judged before their rows are written.
BATCH = 256
_BATCH_BYTES = 8 << 20


def read_and_write(run: Pass, paths: Iterable[str], judging: JudgeContext, known: dict[str, Known]) -> set[str]:
    """Reads, judges and writes in batches; returns the paths that are left for a later look."""
    workspace, request, outcome = run.workspace, run.request, run.outcome
    paths, unsettled = sorted(paths), set[str]()
    if not paths:
        return unsettled
    much = len(paths) > BULK_FROM
    settle_ns = int(request.settle_seconds * 1e9)
    young_ns = request.now_us * 1000 - settle_ns
    # A time far in the future comes from a clock that was set back; such a file would be young forever.
    future_ns = request.now_us * 1000 + FUTURE_NS
    if much:
        texts.tune_for_bulk(workspace.database, bulk=True)
    for batch in judge_paths(run, paths, judging):
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
        write_verdicts(run, judgements, known)
    if much:
        texts.tune_for_bulk(workspace.database, bulk=False)
    return unsettled


def judge_paths(
    run: Pass, paths: Sequence[str], judging: JudgeContext
) -> Iterator[Iterator[tuple[str, Judgement | None]]]:
    """Yields batches of paths and judgements, None for a file that is unsettled, and reports progress.

    Sorted names keep the files of a session together, and the folder's index is read once.
    """
    seen, taken = run.outcome.seen, 0
    with ExitStack() as stack:
        memory = None
        with suppress(FileNotFoundError):
            memory = stack.enter_context(folder(run.workspace.root, MEMORY))
        for batch in _batches(sorted(paths), seen.files if seen is not None else {}):
            yield ((path, _judge(run, memory, path, judging)) for path in batch)
            taken += len(batch)
            run.request.go_on()
            if run.request.progress is not None:
                run.request.progress(taken, len(paths))


def _judge(run: Pass, memory: int | None, path: str, judging: JudgeContext) -> Judgement | None:
    """Reads and judges a file; None if it is unsettled."""
    try:
        if memory is None:
            return None
        found = read_settled(memory, path.rpartition("/")[2], run.workspace.settings.max_file_bytes)
        if isinstance(found, Trouble) and found.code in ("gone", "unsettled"):
            return None
        judgement = judge_and_pack(path, found, judging)
    except MemoryError:  # it must not keep the other files out of the index
        found = Trouble("unreadable", "there is not enough memory to read it")
        judgement = judge_and_pack(path, found, judging)
    except Exception as error:
        error.add_note(path)
        raise
    if judgement.sealed is not None and not run.workspace.touch_nothing:
        return _redact_again(run.workspace, judgement, found, judging, run.outcome)
    return judgement


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
        replaced = writing.replace(workspace.root, path, sealed, found.raw)
    except (OSError, WorkspaceError) as error:
        outcome.trouble.append(f"{path}: what was redacted came back, and cannot be taken out now: {reason(error)}")
        return judgement
    if replaced.displaced is not None:
        return judgement  # it was saved again meanwhile: the next pass looks at it
    workspace.events.append(f"{path}: a version of before its redaction stood there; it is redacted again")
    return judge_and_pack(path, Found(sealed, replaced.signature), judging)


def unlink(workspace: Workspace, judgement: Judgement, outcome: Outcome) -> bool:
    try:
        writing.unlink(workspace.root, judgement.path)
    except (OSError, WorkspaceError) as error:
        outcome.trouble.append(f"{judgement.path}: a removed session's file cannot be deleted: {error}")
        return False
    outcome.tombstoned.append(judgement)
    return True


def write_verdicts(run: Pass, by_path: Mapping[str, Judgement], known: Mapping[str, Known]) -> None:
    """Writes rows, full text, seals and verdicts of a batch, by the requested paths, into the open transaction."""
    database, request, outcome, judgements = run.database, run.request, run.outcome, by_path.values()
    change = outcome.change
    # If all files moved, everything is updated anyway.
    whole = request.rebuild or (outcome.full and not known)
    before = artifacts.rows_by_path(database, [j.path for j in judgements if j.path in known])

    def is_changed(judgement: Judgement) -> bool:
        row, earlier = judgement.row, known.get(judgement.path)
        if row != before.get(judgement.path):
            return True
        # A manifest's file; but those under a tombstone's token are read in every pass.
        moved = earlier is None or earlier.signature != judgement.signature
        return row is not None and row.source_kind == "manifest" and moved

    def touch(row: Row) -> None:
        if not whole:
            kind = MANIFEST if row.source_kind == "manifest" else SESSION
            change.sources.add(Source(kind, row.agent_id, row.session_token, row.session_id))

    changed = {j.path: j for j in judgements if is_changed(j)}
    first_id = artifacts.next_row_id(database)
    stale = [path for path in changed if path in before]
    artifacts.delete_rows(database, stale)
    for path in stale:
        touch(before[path])
    # After old rows are deleted: their texts may come from the old seals.
    artifacts.store_seals(database, [j.seal for j in judgements if j.seal is not None])
    artifacts.insert_rows(database, list(changed.values()), first_id)
    # The caller's strings: those in a worker's answer are copies.
    change.paths.update(path for path in by_path if path in changed)
    for row in (judgement.row for judgement in changed.values()):
        if row is not None:
            touch(row)
            if row.source_kind != "manifest":
                change.agents.add(row.agent_id)
    news = (
        j for j in judgements
        if j.path in changed or j.path in request.reread or known.get(j.path) != Known(j.signature, j.verdict, j.code)
    )  # fmt: skip
    artifacts.store_files(database, list(news))
    redacted = [j.path for j in judgements if j.redacted and j.row is not None]
    violations.record_redactions(database, redacted, run.now_iso, "redacted on another machine")
