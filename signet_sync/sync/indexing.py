"""Indexes files: scan, plan, and one transaction with rows, full text, seals and verdicts."""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

from signet_sync.errors import WorkspaceError
from signet_sync.formats.body import text_sha256
from signet_sync.formats.filename import is_artifact_path
from signet_sync.formats.paths import MEMORY
from signet_sync.formats.snapshot import Snapshot
from signet_sync.storage import files
from signet_sync.storage.files import require_root
from signet_sync.sync import deriving, planner, reading
from signet_sync.sync.index_records import SESSION, Change, Judgement, Known, NoiseRule, Source
from signet_sync.sync.planner import CLIFF_MINIMUM, JudgeContext, Plan, Tombstones
from signet_sync.sync.reading import read_and_write
from signet_sync.sync.store import artifacts, counts, passes, violations
from signet_sync.sync.store import tombstones as tombstones_store
from signet_sync.sync.tombstones import InForce, count_covered, enforce, read_in_force, remove_covered
from signet_sync.sync.workspace import Deriver, Eraser, Outcome, Pass, Request, Workspace
from signet_sync.text import digest_mark
from signet_sync.text.sanitizer import sanitizer_stamp

# Files that a first index reads first, the newest ones: with their page they answer while the others are read. Then
# those that it makes durable at a time: what is killed loses no more. Fewer than so many are read at once.
NEWEST, PART, MANY = 600, 50_000, 3_000


class Look(NamedTuple):
    """What is on disk, what was known of it, the removals in force, the plan, and what judging needs."""

    snapshot: Snapshot
    known: dict[str, Known]
    removals: InForce
    plan: Plan
    judging: JudgeContext


def look(run: Pass, *, from_scratch: bool = False) -> Look:
    """Scans what a pass was asked to look at, makes tombstones in files and index agree, and plans.

    `from_scratch` ignores what was known before. The pass looks at more where its paths do not show enough. Nothing is
    written over a vault that may not be written: a check calls only this before it judges.
    """
    workspace, database = run.workspace, run.database
    require_root(workspace.root)
    while True:
        request = run.request
        snapshot, known = _scan(run, from_scratch=from_scratch)
        reread = request.reread
        if known and artifacts.sanitizer_of_rows(database) != _rules(workspace):
            # These rows were made by another sanitizer or other settings: each file that is looked at is read again.
            reread = reread.union(snapshot.files)
        removals = read_in_force(workspace, snapshot, {} if request.rebuild else known, run.now_iso)
        if request.paths is not None and not removals.aliases <= request.paths:
            run.look_at(removals.aliases)
            continue
        some_gone = snapshot.ground != "present" or any(path not in snapshot.files for path in known)
        plan = planner.plan(
            snapshot,
            known,
            removals.tombstones,
            reread=reread | removals.aliases,
            covered_rows=count_covered(workspace, removals.tombstones, known, snapshot),
            indexed=None if snapshot.everything or not some_gone else counts.count_indexed(database),
            halts=not request.accept_removals,
        )
        plan.cliff = plan.cliff or run.cliff
        if snapshot.everything or (plan.cliff is None and len(plan.gone) < CLIFF_MINIMUM):
            break
        # A few given paths cannot show whether the whole folder is gone: look at all of it before dropping rows.
        run.request = request._replace(paths=None)
    run.request = request._replace(reread=reread)
    run.outcome.tombstones = len(removals.tombstones.tombstones)
    run.outcome.scanned, run.outcome.cliff = plan.scanned, plan.cliff
    run.outcome.unchanged = max(plan.unchanged - run.outcome.read, 0)
    if snapshot.ground == "refused" and plan.cliff is None:
        raise WorkspaceError(snapshot.ground_message, path=MEMORY, hint="signet-sync doctor says how to put it right")
    return Look(snapshot, known, removals, plan, _judge_context(run, removals.tombstones))


def _scan(run: Pass, *, from_scratch: bool) -> tuple[Snapshot, dict[str, Known]]:
    """Returns what is on disk of what the pass was asked to look at, and what was known of it."""
    request, root = run.request, run.workspace.root
    snapshot = reading.scan(root) if request.paths is None else reading.glance(root, request.paths)
    run.outcome.full, run.outcome.seen = snapshot.everything, snapshot
    asked = None if snapshot.everything else snapshot.asked
    known = {} if from_scratch else artifacts.list_known_files(run.database, asked, seen=snapshot.files)
    if request.rebuild:
        # Files ignored for their name are not read again, so only the plan can report them.
        known = {path: before for path, before in known.items() if before.verdict != "ignored"}
    return snapshot, known


def index(run: Pass) -> None:
    """Indexes what moved among the paths that a pass was asked to look at."""
    workspace, database = run.workspace, run.database
    snapshot, known, removals, plan, judging = look(run)
    request = run.request
    if plan.cliff is not None:
        passes.halt(database, plan.cliff.message)
        return
    if snapshot.ground != "present" and not (request.accept_removals and snapshot.ground == "missing"):
        return
    if request.rebuild:
        # Other paths to read: entries under an artifact's name that are no files, copies that carry a removed session's
        # token.
        others = [path for path in plan.read if path in snapshot.odd or not is_artifact_path(path)]
        plan.read = sorted(path for path in snapshot.files if is_artifact_path(path)) + others
        run.outcome.unchanged = 0
    _leave_older(run, plan, known)
    if request.accept_removals and snapshot.everything:
        present = snapshot.files.keys() | snapshot.odd.keys()
        gone = [path for path in violations.list_sealed_paths(database) if path not in present]
        judging = judging._replace(accepted_gone=judging.accepted_gone | frozenset(gone))
    if removals.tombstones and not workspace.touch_nothing:
        enforce(workspace, plan, judging, run.outcome)
    # What is no news is left; a transaction is begun only if something moved.
    known = {} if request.rebuild else known
    plan.gone = [path for path in plan.gone if _is_news(path, known, judging)]
    found = [*plan.judged, *removals.judged]
    plan.judged = [j for j in found if known.get(j.path) != Known(j.signature, j.verdict, j.code)]
    pipeline, removed, full = workspace.pipeline, judging.tombstones.tombstones, run.outcome.full
    erasing = bool(removed) and tombstones_store.is_unscrubbed(database)
    if erasing and passes.has_waiting(database):
        run.outcome.change.add(deriving.drain(database, pipeline))
    over = full and (passes.is_halted(database) or passes.get(database, "unread"))
    stale = deriving.stale(database, pipeline) if full else []
    if plan.read or plan.judged or plan.gone or request.rebuild or erasing or over or stale:
        gathered = [(one, one.gather(run, removed)) for one in pipeline.erasers] if erasing else []
        _write(run, plan, judging, known, gathered, stale)
    if run.outcome.read:
        run.outcome.seen = None  # no longer needed: everything found is written


def _leave_older(run: Pass, plan: Plan, known: dict[str, Known]) -> None:
    """Leaves all but the newest files of a first index for later, and records how many: they are read by further calls.

    Between two parts the pass derives and shows what it has; after a crash the next one continues.
    """
    all_at_once = not run.outcome.full or run.request.rebuild or run.request.reread
    first = not all_at_once and (not known or passes.get(run.database, "unread"))
    most = PART if known else NEWEST
    run.outcome.unread = 0
    if first and len(plan.read) > max(most, MANY):
        plan.read.sort()
        run.outcome.unread = len(plan.read) - most
        del plan.read[:-most]


def record(run: Pass, paths: Iterable[str]) -> None:
    """Indexes what the pass itself has written or deleted, so that no later pass has to look at it."""
    wanted = frozenset(paths)
    if not wanted:
        return
    database = run.database
    inner = run.request._replace(rebuild=False, settle_seconds=0.0, reread=frozenset(), progress=None)
    known = artifacts.list_known_files(database, wanted)
    judging = _judge_context(run, Tombstones(tombstones_store.list_mirrored(database)))
    seen = reading.glance(run.workspace.root, wanted)
    present = wanted & (seen.files.keys() | seen.odd.keys()) if seen.ground == "present" else wanted
    moved = Outcome()
    writing = Pass(run.workspace, inner, moved)
    with database.transaction():
        read_and_write(writing, present, judging, known)
        _drop(writing, *_judge_gone(inner, sorted(known.keys() - present), judging, set()), known)
        _links(run, moved.change)
        moved.change.agents |= violations.follow_verdicts(database, run.now_iso)
        move(run, moved.change)
    run.outcome.change.add(moved.change)
    run.outcome.trouble += moved.trouble


def move(run: Pass, change: Change) -> None:
    """Queues rows and marks pages that depend on what moved. In the transaction in which it moved."""
    deriving.queue(run.database, run.workspace.pipeline, change.sources)
    for publisher in run.workspace.pipeline.publishers:
        publisher.mark(run.database, change)


def _rules(workspace: Workspace) -> str:
    """Names the rules that rows depend on besides files: sanitizer, digest version, and settings for noise."""
    rule, made_by = workspace.noise, f"{sanitizer_stamp()} digest {digest_mark.VERSION}"
    if rule == NoiseRule():
        return made_by
    more = sorted(set(rule.projects)), sorted(set(rule.sessions))
    return f"{made_by} noise {text_sha256(repr(more))[:16]}"


def _judge_context(run: Pass, tombstones: Tombstones) -> JudgeContext:
    database = run.database
    return JudgeContext(
        tombstones,
        run.workspace.noise,
        partial(artifacts.seal_of, database),
        run.now_iso,
        frozenset(one.path for one in violations.list_accepted_gone(database)),
        redacted=violations.list_redacted_paths(database),
    )


def _write(
    run: Pass,
    plan: Plan,
    judging: JudgeContext,
    known: dict[str, Known],
    gathered: Sequence[tuple[Eraser, Any]],
    stale: Sequence[Deriver],
) -> None:
    """Writes rows, full text, seals, verdicts and links in one transaction.

    Each step needs those before it: what is removed leaves no seal to be judged by, judging tells what moved, and links
    and violations follow the verdicts.
    """
    workspace, database, request, outcome = run.workspace, run.database, run.request, run.outcome
    pipeline, removed, change = workspace.pipeline, judging.tombstones.tombstones, outcome.change
    first = not (outcome.full or artifacts.knows_files(database))
    whole = request.rebuild or (outcome.full and not known)
    # Every file of a first index was read: one that is sealed and of which there is no verdict is missing.
    complete = whole or (outcome.full and bool(passes.get(database, "unread")))
    with database.transaction():
        conclusions = [eraser.erase(run, removed, found) for eraser, found in gathered]
        touched, rows = remove_covered(database, removed, pipeline.erasers)
        if request.rebuild:
            database.reset_derived()
        unsettled = read_and_write(run, plan.read, judging, known)
        _drop_gone(run, plan, judging, known, unsettled, complete=complete)
        outcome.removed_rows += rows
        change.sources.update(Source(SESSION, *session) for session in touched)
        change.agents.update(agent for agent, _, _ in touched)
        request.go_on()
        deriving.rebuild(database, pipeline, pipeline.derivers if whole else stale)
        if not whole:
            deriving.queue(database, pipeline, change.sources)
        if gathered:  # after a removal nothing waits: what has lost its source goes
            change.add(deriving.drain(database, pipeline, alive=partial(request.alive, len(plan.read))))
            for conclude in filter(None, conclusions):
                conclude()
        _links(run, change)
        if request.accept_removals:
            paths = [path for path in violations.list_sealed_paths(database) if path in judging.accepted_gone]
            violations.accept_gone(database, paths, run.now_iso, "reindex --accept-removals")
        change.agents.update(violations.follow_verdicts(database, run.now_iso))
        _record_state(run, whole=whole, settled=(outcome.full or first) and not unsettled)
        for publisher in pipeline.publishers:
            publisher.mark(database, change)
    outcome.unsettled = frozenset(unsettled)


def _drop_gone(
    run: Pass, plan: Plan, judging: JudgeContext, known: dict[str, Known], unsettled: set[str], *, complete: bool
) -> None:
    """Deletes rows of files that are gone or are no artifacts any more, and tells which sealed ones are missing."""
    database, outcome = run.database, run.outcome
    dropped, vanished = _judge_gone(run.request, plan.gone, judging, unsettled)
    _drop(run, dropped, plan.judged + vanished, known)
    outcome.removed_rows += tombstones_store.forget_returned(database)
    missed = {judgement.path for judgement in vanished}
    artifacts.forget_files(database, [one.path for one in outcome.tombstoned if one.path not in missed])
    if complete and not outcome.unread:
        missing = (planner.judge_missing(path, judging) for path in violations.list_unseen(database))
        artifacts.store_files(database, list(filter(None, missing)))


def _record_state(run: Pass, *, whole: bool, settled: bool) -> None:
    """Records what is left to do, and the rules under which all rows were made, or that these are `several`."""
    database, outcome, rules = run.database, run.outcome, _rules(run.workspace)
    if outcome.full:
        passes.put(database, "halted", None)
        passes.put(database, "unread", outcome.unread)
    if outcome.change.paths or whole:
        # Only a full pass that may write looks for them, e.g. after a crash or a pass over a checked-out copy.
        passes.put(database, "manifests_due", 1)
    if artifacts.sanitizer_of_rows(database) != rules:
        for eraser in run.workspace.pipeline.erasers if settled else ():
            eraser.sanitize(database)  # rows that are not made from a file
        artifacts.set_sanitizer_of_rows(database, rules if settled else "several")


def _drop(run: Pass, dropped: Sequence[str], named: Sequence[Judgement], known: dict[str, Known]) -> None:
    """Deletes rows of files that are gone or no longer artifacts, and stores their verdicts."""
    database, change = run.database, run.outcome.change
    touched = artifacts.delete_rows(database, [*dropped, *(j.path for j in named if j.path in known)])
    run.outcome.removed_rows += len(touched)
    change.sources.update(Source(SESSION, *session) for session in touched)
    change.agents.update(agent for agent, _, _ in touched)
    change.paths.update(dropped, (j.path for j in named))
    artifacts.forget_files(database, dropped)
    artifacts.store_files(database, named)


def _is_news(path: str, known: dict[str, Known], judging: JudgeContext) -> bool:
    """Returns whether a missing path was present before, or a tombstone now explains why it vanished."""
    before = known.get(path)
    if before is None or before.code != "vanished":
        return before is not None
    return planner.judge_missing(path, judging) is None


def _judge_gone(
    request: Request, gone: Sequence[str], judging: JudgeContext, unsettled: set[str]
) -> tuple[list[str], list[Judgement]]:
    dropped: list[str] = []
    vanished: list[Judgement] = []
    for path in gone:
        if request.settle_seconds and path not in request.confirmed:
            unsettled.add(path)
            continue
        judgement = planner.judge_missing(path, judging)
        if judgement is None:
            dropped.append(path)
        else:
            vanished.append(judgement)
    return dropped, vanished


def _links(run: Pass, change: Change) -> None:
    """Updates which links are broken, if a source or a target moved, or in a full pass anything."""
    targets = None
    if not run.outcome.full:
        targets = change.paths | artifacts.targets_of(run.database, sorted(change.paths))
    missing = artifacts.list_unresolved_targets(run.database, targets)
    broken = [target for target in missing if not files.exists(run.workspace.root, target)]
    artifacts.mark_broken(run.database, broken, targets)
