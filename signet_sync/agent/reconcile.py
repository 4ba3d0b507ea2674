"""One pass: look, read what changed, judge, apply in one transaction, enforce tombstones, then project.

Watcher, timer, CLI and CI all come through `run_pass`, over different sets of paths. A pass after a crash is an
ordinary pass: it looks at the disk and does what is left to do.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import apsw

from signet_sync import journal, state
from signet_sync import reconcile as desk
from signet_sync.agent import (
    copied_manifests,
    copied_tombstones,
    copies,
    flows,
    live,
    projection,
    purge,
    retention,
    scrub,
)
from signet_sync.agent.displaced import keep_displaced
from signet_sync.agent.entities import tending
from signet_sync.agent.flows import Flow
from signet_sync.agent.garbage import uncollected
from signet_sync.agent.manifests import rebuild_missing
from signet_sync.agent.perils import Perils
from signet_sync.agent.workspace import Workspace, back_up, require_root
from signet_sync.contracts import digests
from signet_sync.contracts.bodies import utf8
from signet_sync.contracts.names import artifact_name, carried_token, tombstone_name
from signet_sync.contracts.noise import NoiseRule
from signet_sync.contracts.observed import Found, Snapshot, Trouble
from signet_sync.contracts.places import MEMORY, TOMBSTONES
from signet_sync.contracts.sanitizer import sanitizer_stamp
from signet_sync.contracts.timestamps import iso
from signet_sync.contracts.tokens import token_of
from signet_sync.errors import DatabaseCorrupt, DatabaseError, Interrupted, RevisionConflict, WorkspaceError, reason
from signet_sync.index import (
    artifacts,
    captures,
    events,
    gardens,
    lines,
    merges,
    overview,
    redactions,
    tombstones,
    violations,
)
from signet_sync.index.database import is_odd, translate
from signet_sync.reconcile import Bench, Cliff, CliffRule, Judgement, Known, Row, Seal, Survey, Tombstones
from signet_sync.storage.database.tables import native_tables
from signet_sync.sync import deriving, outbox
from signet_sync.sync.stages import MANIFEST, SESSION, Change, Source
from signet_sync.vault import files, scan
from signet_sync.vault import tombstones as tombstone_files
from signet_sync.vault.layout import folder

if TYPE_CHECKING:
    from signet_sync.contracts.artifacts import Tombstone

BATCH = 1024
_STRAY = f"{MEMORY}/.signet-"
FUTURE_NS = 3600 * 10**9
THREADED = 400
# Fewer rows of the outbox are worked off at once, of whatever age their sessions are.
_MUCH = 1_000


@dataclass(frozen=True, slots=True)
class Request:
    """What a pass is asked to do. `paths` None: everything. `now_us` is microseconds since 1970 UTC.

    With `settle_seconds` (the daemon), a file that is younger and looks broken, or a name that is gone and not yet
    `confirmed`, is left for another look: it may be half-written, or half of a rename. `patience` is how long another
    command's pass is waited for, in seconds; then `WorkspaceError` (`busy`). With `resume` write flows whose caller
    died are finished. A `wary` one writes down what it has in hand, should it die of it. What follows from sessions
    before `since_us` is left in the outbox.
    """

    now_us: int
    paths: frozenset[str] | None = None
    rebuild: bool = False
    accept_removals: bool = False
    settle_seconds: float = 0.0
    confirmed: frozenset[str] = frozenset()
    reread: frozenset[str] = frozenset()
    project: bool = True
    progress: Callable[[int, int], None] | None = None
    should_stop: Callable[[], bool] = lambda: False
    patience: float = 60.0
    resume: bool = True
    wary: bool = False
    since_us: int = 0


@dataclass(slots=True)
class Outcome:
    """What a pass found and did; `agent.report` turns it into the shapes of the command line."""

    full: bool
    scanned: int = 0
    read: int = 0
    unchanged: int = 0
    removed_rows: int = 0
    tombstones: int = 0
    tombstoned: list[Judgement] = field(default_factory=list)
    rebuilt_manifests: list[str] = field(default_factory=list)
    rewritten: set[str] = field(default_factory=set)
    unsettled: frozenset[str] = frozenset()
    cliff: Cliff | None = None
    change: Change = field(default_factory=Change)
    pages: dict[str, projection.PageOutcome] = field(default_factory=dict)
    held: str = ""
    deferred: bool = False
    trouble: list[str] = field(default_factory=list)
    elapsed_ms: float = 0.0
    seen: Snapshot | None = None


def run_pass(workspace: Workspace, request: Request) -> Outcome:
    """One pass over everything or over hinted paths. Raises `WorkspaceError`, `DatabaseError`, `Interrupted`."""
    with state.workspace_lock(workspace.state, request.patience):
        outcome = run_locked(workspace, request)
        if outcome.full and outcome.cliff is None:
            purge.resume(workspace)
        return outcome


def run_locked(workspace: Workspace, request: Request) -> Outcome:
    """A pass by somebody who holds the workspace's lock already."""
    started = time.perf_counter()
    if request.paths is not None and deriving.is_stale(workspace.database, workspace.pipeline):
        # Nobody has looked at all of it since the database was made or an upgrade emptied its tables: pages of what a
        # few paths tell would hide all the rest.
        request = replace(request, paths=None)
    if request.paths is None and not workspace.touch_nothing:
        # First, because taking away a second link changes the signature of the file that a crash left published.
        if waiting := keep_displaced(workspace, request.now_us):
            workspace.events.append(waiting)
        state.sweep(workspace.state)
    try:
        live.settle(workspace)
    except OSError as error:
        workspace.events.append(f"live turns cannot be read or written now, the next pass tries again: {error}")
    resumes = request.resume and not workspace.touch_nothing
    begun = _resume(workspace, accepted=request.accept_removals) if resumes else []
    if begun and request.paths is not None:
        request = replace(request, paths=request.paths.union(*(flow.paths for flow in begun)))
    try:
        outcome = _pass(workspace, request)
        if outcome.cliff is None:
            for flow in begun:
                flow.reconciled = True
                _go_on_with(workspace, flow)
            if begun and outcome.full:
                back_up(workspace, iso(request.now_us))  # the flows' answers are newer than the pass's backup
    finally:
        for flow in begun:
            flow.held.release()
    outcome.elapsed_ms = (time.perf_counter() - started) * 1000
    return outcome


def _pass(workspace: Workspace, request: Request) -> Outcome:
    with _building(workspace, request):
        outcome = _index(workspace, request)
    _derive(workspace, request, outcome)
    _go_on(request)
    if outcome.full and outcome.cliff is None:
        _mend_text(workspace)
    if not workspace.touch_nothing:
        if outcome.cliff is None:
            _tend(workspace, request, outcome)
            _clean_up(workspace, request, outcome)
        if request.project:
            _project(workspace, request, outcome)
    elif outcome.full and outcome.cliff is None:
        tending.mirror(workspace, request.now_us)
    if outcome.full and outcome.cliff is None:
        _remember_pass(workspace, request, outcome)
    return outcome


def index_paths(workspace: Workspace, request: Request) -> Outcome:
    """Disk to rows for some paths, no pages; by somebody who holds the workspace's lock."""
    outcome = _index(workspace, request)
    _derive(workspace, request, outcome)
    return outcome


def work_off(workspace: Workspace, request: Request) -> bool:
    """Makes rows follow a batch of what a pass left in the outbox; says whether more is left.

    Raises `WorkspaceError` (`busy`), `DatabaseError`.
    """
    with state.workspace_lock(workspace.state, request.patience):
        deriving.drain(workspace.database, workspace.pipeline, batches=1, alive=partial(_alive, request, 1))
        return outbox.any_waits(workspace.database)


def _resume(workspace: Workspace, *, accepted: bool) -> list[Flow]:
    """Write flows whose caller died, walked as far as they go without rows.

    None where the vault's files are away, and nobody has `accepted` that: the first file written into a missing folder
    would hide it from the cliff.
    """
    if not journal.keys(workspace.state.journal):
        return []
    away = not any(map(_is_artifact, scan.names(workspace.root) or ()))
    if away and not accepted and overview.indexed_count(workspace.database):
        return []
    return [flow for flow in flows.resume(workspace) if _go_on_with(workspace, flow)]


def _go_on_with(workspace: Workspace, flow: Flow) -> bool:
    """Walks a flow; one that cannot go on now is left to the next pass and does not hold up this one."""
    try:
        flows.advance(workspace, flow)
    except (OSError, WorkspaceError, RevisionConflict) as error:
        workspace.events.append(f"a write flow could not be finished, the next pass tries again: {error}")
        flow.held.release()
        return False
    return True


def run_pass_mending(workspace: Workspace, request: Request) -> Outcome:
    """A pass for a command: a damaged database is moved aside, and the pass made over a new one.

    Where all that is derived is made anew, every page is looked at, and closely what is not derived.
    """
    try:
        if request.rebuild:
            with state.workspace_lock(workspace.state, request.patience):
                workspace.examine(native_tables())
        return run_pass(workspace, request)
    except (apsw.Error, DatabaseError) as error:
        damage = _damage(workspace, error)
        if damage is None:
            raise
    except (ValueError, TypeError, LookupError) as error:
        # A bit that flipped inside of a value shows in no check; whatever is derived can be made again.
        if request.rebuild:
            raise
        workspace.events.append(f"rows were not as they were written ({_where(error)}); all are made anew")
        return run_pass_mending(workspace, replace(request, rebuild=True))
    with state.workspace_lock(workspace.state):
        workspace.exchange_damaged(damage)
    return run_pass(workspace, request)


def _where(error: Exception) -> str:
    """What went wrong in which line: were it a slip of ours and no damage, that is what has to be told."""
    from traceback import extract_tb

    frame = extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} at {os.path.basename(frame.filename)}:{frame.lineno}"


def _damage(workspace: Workspace, error: apsw.Error | DatabaseError) -> DatabaseCorrupt | None:
    """The damage that an error tells of, by itself or when every page is looked at."""
    told = translate(error, workspace.database.path) if isinstance(error, apsw.Error) else error
    if isinstance(told, DatabaseCorrupt):
        return told
    if is_odd(error):
        try:
            workspace.examine()
        except DatabaseCorrupt as found:
            return found
    return None


def _is_much(workspace: Workspace) -> bool:
    """Whether there is nothing in the index and much in the vault; a small first index is as quick with its journal."""
    if workspace.database.value("select exists(select 1 from files)"):
        return False
    return len(scan.names(workspace.root) or ()) > THREADED


@contextmanager
def _building(workspace: Workspace, request: Request) -> Iterator[None]:
    """A first index goes without a journal on disk, and without the garbage collector."""
    building = request.paths is None and _is_much(workspace) and workspace.database.begin_build()
    try:
        with uncollected(wanted=building):
            yield
    finally:
        if building:
            workspace.database.end_build()


def _go_on(request: Request) -> None:
    if request.should_stop():
        raise Interrupted("the pass was asked to stop", hint="nothing was lost; the next pass starts over")


def _alive(request: Request, of: int) -> None:
    """In the midst of what takes long when all is read: the pass is told to end, and tells that it lives."""
    _go_on(request)
    if request.progress is not None:
        request.progress(of, of)


def _index(workspace: Workspace, request: Request) -> Outcome:
    """Disk to rows: everything of a pass that happens before pages."""
    require_root(workspace.root)
    database = workspace.database
    snapshot = scan.scan(workspace.root) if request.paths is None else scan.glance(workspace.root, request.paths)
    strays = any(path.startswith(_STRAY) for path in snapshot.files)
    if strays and not workspace.touch_nothing and files.sweep(workspace.root, beside=(MEMORY,)):
        # A second link of a published file went: its signature is another one now.
        snapshot = scan.scan(workspace.root) if request.paths is None else scan.glance(workspace.root, request.paths)
    outcome = Outcome(full=snapshot.everything, seen=snapshot)
    known = artifacts.known_files(database, None if snapshot.everything else snapshot.asked)
    if request.rebuild:
        # What is ignored for its name is not read again, so that nothing but the survey tells of it.
        known = {path: before for path, before in known.items() if before.verdict != "ignored"}
    if known and artifacts.sanitizer_of_rows(database) != _rules(workspace):
        # Another sanitizer or other settings made these rows: each that is looked at is made anew, changed or not.
        request = replace(request, reread=request.reread.union(snapshot.files))
    stones, stone_judgements, aliases = _tombstones(
        workspace, snapshot, {} if request.rebuild else known, iso(request.now_us)
    )
    outcome.tombstones = len(stones.stones)
    accepted = request.accept_removals and snapshot.ground == "missing"
    rule = (
        None
        if request.accept_removals
        else CliffRule(workspace.settings.cliff_fraction, workspace.settings.cliff_minimum)
    )
    plan = desk.survey(
        snapshot,
        known,
        stones,
        reread=request.reread | aliases,
        covered_rows=_covered(workspace, stones, known, snapshot),
        indexed=None if snapshot.everything or not _some_gone(snapshot, known) else overview.indexed_count(database),
        rule=rule,
    )
    if not snapshot.everything and (plan.cliff is not None or len(plan.gone) >= workspace.settings.cliff_minimum):
        # A few hinted paths cannot tell whether the whole folder went: look at all of it before believing them.
        return _index(workspace, replace(request, paths=None))
    outcome.scanned = plan.scanned
    outcome.unchanged = plan.unchanged
    outcome.cliff = plan.cliff
    if plan.cliff is not None:
        _remember_halt(workspace, plan.cliff)
        return outcome
    if snapshot.ground != "present" and not accepted:
        if snapshot.ground == "refused":
            raise WorkspaceError(
                snapshot.ground_message, path=MEMORY, hint="signet-sync doctor says how to put it right"
            )
        return outcome
    if request.rebuild:
        # And what else was to be read: odd files under an artifact's name, copies that carry a removed session's token.
        others = [path for path in plan.read if path in snapshot.odd or not _is_artifact(path)]
        plan.read = sorted(path for path in snapshot.files if _is_artifact(path)) + others
        outcome.unchanged = 0
    bench = _bench(workspace, request, stones)
    if request.accept_removals and snapshot.everything:
        present = snapshot.files.keys() | snapshot.odd.keys()
        gone = [path for path in violations.sealed_paths(database) if path not in present]
        bench = replace(bench, accepted_gone=bench.accepted_gone | frozenset(gone))
    if stones and not workspace.touch_nothing:
        _enforce(workspace, plan, bench, outcome)
    before = {} if request.rebuild else known
    with uncollected(wanted=len(plan.read) > THREADED):
        _apply(workspace, request, plan, stone_judgements, bench, before, outcome)
    return outcome


def _rules(workspace: Workspace) -> str:
    """Names what a row is made by besides its file: sanitizer, gate and rules, and settings that say more is noise."""
    rule, made_by = workspace.noise, f"{sanitizer_stamp()} digest {digests.VERSION}"
    if rule == NoiseRule():
        return made_by
    more = sorted(set(rule.projects)), sorted(set(rule.sessions))
    return f"{made_by} noise {sha256(utf8(repr(more))).hexdigest()[:16]}"


def _some_gone(snapshot: Snapshot, known: dict[str, Known]) -> bool:
    """Whether a hinted path that was indexed is not there: only then does the size of the index matter."""
    return snapshot.ground != "present" or any(path not in snapshot.files for path in known)


def _bench(workspace: Workspace, request: Request, stones: Tombstones) -> Bench:
    database = workspace.database
    sealed = artifacts.seals_exist(database)
    return Bench(
        stones,
        workspace.noise,
        (lambda path: artifacts.seal_of(database, path)) if sealed else (lambda _: None),
        iso(request.now_us),
        workspace.settings.max_file_bytes,
        frozenset(one.path for one in violations.accepted_gone(database)) if sealed else frozenset(),
        redacted=redactions.paths(database),
    )


def _is_artifact(path: str) -> bool:
    where, _, name = path.rpartition("/")
    return where == MEMORY and artifact_name(name) is not None


def _tombstones(
    workspace: Workspace, snapshot: Snapshot, known: dict[str, Known], now_iso: str
) -> tuple[Tombstones, list[Judgement], frozenset[str]]:
    """The tombstones in force from files and mirror; either one suffices, the lost one is written again.

    Also gives the paths that a new tombstone makes worth another look although nothing about them changed.
    """
    database = workspace.database
    mirrored = {(s.agent_id, s.session_token): s for s in tombstones.mirrored(database)}
    judged: list[Judgement] = []
    fresh: dict[tuple[str, str], Tombstone] = {}
    unreadable: list[tuple[str, str]] = []
    for path, what in snapshot.odd.items():
        parts = tombstone_name(path.removeprefix(f"{TOMBSTONES}/"))
        if path.startswith(f"{TOMBSTONES}/") and parts is not None:
            judged.append(desk.judge_tombstone(path, Trouble("not-a-file", f"a {what} stands under its name"))[0])
            if parts not in mirrored:
                unreadable.append(parts)
    for path, signature in snapshot.files.items():
        if not path.startswith(f"{TOMBSTONES}/"):
            continue
        name = path.rpartition("/")[2]
        before = known.get(path)
        parts = tombstone_name(name)
        if before is not None and before.signature == signature and before.verdict == "tombstone" and parts in mirrored:
            continue
        judgement, stone = desk.judge_tombstone(path, files.read(workspace.root, path, 1 << 20))
        judged.append(judgement)
        if stone is not None:
            fresh[stone.agent_id, stone.session_token] = stone
        elif judgement.verdict == "invalid" and parts is not None and parts not in mirrored:
            unreadable.append(parts)
    copied = copied_tombstones.take_in(workspace, snapshot.files.keys(), {**mirrored, **fresh})
    moved = copied.gone.union(tombstone_files.path_of(*key) for key in copied.stones)
    judged = [judgement for judgement in judged if judgement.path not in moved]
    fresh |= copied.stones
    if not workspace.touch_nothing:
        # Rows, seals and the rest go by the mirror: it holds what the names say until the files can be read.
        fresh.update({parts: tombstones.by_name(*parts, now_iso) for parts in unreadable})
        unreadable.clear()
    for stone in tombstone_files.lifted(workspace.root, {**mirrored, **fresh}.values()):
        path = _let_go(workspace, stone)
        judged = [judgement for judgement in judged if judgement.path != path]
        for known_ones in (mirrored, fresh):
            known_ones.pop((stone.agent_id, stone.session_token), None)
    news = [stone for key, stone in fresh.items() if mirrored.get(key) != stone]
    if news and not workspace.touch_nothing:
        with database.transaction(durable=True):
            tombstones.mirror(database, news)
    mirrored.update(fresh)
    if not workspace.touch_nothing and snapshot.ground == "present":
        present = snapshot.files.keys() | snapshot.odd.keys()
        for (agent_id, token), stone in mirrored.items():
            path = tombstone_files.path_of(agent_id, token)
            if path not in present and (snapshot.everything or path in snapshot.asked):
                tombstone_files.put(workspace.root, stone)
                status = files.look(workspace.root, path)
                judged.append(Judgement(path, "tombstone", signature=files.signature_of(status) if status else None))
    # Whoever removes a session writes the mirror himself: until its scrub a tombstone is a new one.
    pending = tombstones.pending(database) if mirrored else frozenset()
    news += [stone for key, stone in mirrored.items() if key in pending and stone not in news]
    again = _aliases(workspace, news)
    if news:
        # No row says whose an invalid file is.
        again.update(path for path, before in known.items() if before.verdict == "invalid")
    return Tombstones(list(mirrored.values()), by_name=unreadable), judged, frozenset(again)


def _let_go(workspace: Workspace, stone: Tombstone) -> str:
    """Follows an undo that was made here and cut off, or on another machine; gives the tombstone's path.

    Should another removal stand there by now, its file is left to whoever looks at it.
    """
    path = tombstone_files.path_of(stone.agent_id, stone.session_token)
    if not workspace.touch_nothing:
        found = files.read(workspace.root, path, 1 << 20)
        if isinstance(found, Found) and desk.judge_tombstone(path, found)[1] == stone:
            files.retract(workspace.root, path, found.raw)
        with workspace.database.transaction(durable=True):
            tombstones.lift(workspace.database, stone.agent_id, stone.session_token)
            captures.forget_removed(workspace.database)
    return path


def _aliases(workspace: Workspace, news: Sequence[Tombstone]) -> set[str]:
    """Files of newly removed sessions whose names carry the token of the session's other identity (id or key)."""
    found: set[str] = set()
    for agent_id in {stone.agent_id for stone in news}:
        tokens = {stone.session_token for stone in news if stone.agent_id == agent_id}
        for path, token, session_id, key in artifacts.identities(workspace.database, agent_id):
            others = {token_of(agent_id, identity) for identity in (session_id, key) if identity} - {token}
            if others & tokens:
                found.add(path)
    return found


def _covered(workspace: Workspace, stones: Tombstones, known: dict[str, Known], snapshot: Snapshot) -> int:
    """How many indexed files are gone because a tombstone says so."""
    if not stones:
        return 0
    tokens = stones.tokens
    gone = [
        p for p, k in known.items() if k.verdict == "indexed" and p not in snapshot.files and carried_token(p) in tokens
    ]
    rows = artifacts.rows_by_path(workspace.database, gone)
    return sum(1 for row in rows.values() if stones.cover(row.session_token, row.agent_id, row.session_id))


def _enforce(workspace: Workspace, plan: Survey, bench: Bench, outcome: Outcome) -> None:
    """Deletes files of removed sessions that came back, before anything of them is indexed."""
    tokens = bench.tombstones.tokens
    kept: list[str] = []
    for path in plan.read:
        if carried_token(path) not in tokens:
            kept.append(path)
            continue
        judgement = desk.judge(path, files.read(workspace.root, path, workspace.settings.max_file_bytes), bench)
        if not judgement.unlink:
            kept.append(path)
        elif _unlink(workspace, judgement, outcome):
            plan.gone.append(path)
        else:
            plan.judged.append(replace(judgement, message="its session was removed, but the file cannot be deleted"))
    plan.read = kept


def _unlink(workspace: Workspace, judgement: Judgement, outcome: Outcome) -> bool:
    try:
        files.unlink(workspace.root, judgement.path)
    except (OSError, WorkspaceError) as error:
        outcome.trouble.append(f"{judgement.path}: a removed session's file cannot be deleted: {error}")
        return False
    outcome.tombstoned.append(judgement)
    return True


def _apply(
    workspace: Workspace,
    request: Request,
    plan: Survey,
    stone_judgements: list[Judgement],
    bench: Bench,
    known: dict[str, Known],
    outcome: Outcome,
) -> None:
    """One transaction: rows, full text, seals, verdicts, ledger rows, links. Nothing is begun where nothing moved."""
    database = workspace.database
    gone = [path for path in plan.gone if _is_news(path, known, bench)]
    named = [j for j in (*plan.judged, *stone_judgements) if known.get(j.path) != Known(j.signature, j.verdict, j.code)]
    change = outcome.change
    pending = bool(bench.tombstones) and tombstones.unscrubbed(database)
    if pending and outbox.any_waits(database):
        # What a removal takes along is told by rows that have followed.
        change.add(deriving.drain(database, workspace.pipeline))
    over = outcome.full and database.meta("halted") is not None
    stale = deriving.stale(database, workspace.pipeline) if outcome.full else []
    if not (plan.read or named or gone or request.rebuild or pending or over or stale):
        return
    unsettled: set[str] = set()
    first = not (outcome.full or database.value("select exists(select 1 from files)"))
    lines: set[str] = set()
    if pending and not workspace.touch_nothing:
        try:
            postponed = False
            if database.meta("halted") is None:
                # What somebody wrote into our part of a page is kept beside it now, where its lines can be told.
                kept = projection.project(workspace, agents=None, days=(), touched=(), now_us=request.now_us)
                outcome.rewritten.update(kept.manifests)
                postponed = kept.deferred
            # While rows tell what the removed sessions said.
            scrub.clean_kept_copies(workspace, bench.tombstones.stones)
        except (OSError, WorkspaceError):  # the scrub says what is wrong
            postponed = True
        if postponed:
            lines = scrub.lines_of_removed(workspace, bench.tombstones.stones)
        # Later it is told by paths and names alone: a disk that fails is waited for, a forbidden file is not.
        with suppress(PermissionError, WorkspaceError):
            scrub.clean_gardens(workspace, bench.tombstones.stones, request.now_us)
    asked = scrub.queries_of_removed(database, bench.tombstones.stones) if pending else set()
    # A person who asks for all of it has every file tried; an agent that rebuilds after damage has not asked.
    perils = Perils(workspace.state.path, wary=request.wary, anew=request.rebuild and not request.wary)
    with perils.watched(), database.transaction():
        events.forget_queries(database, asked)
        tombstones.remember_lines(database, lines)
        loose = tombstones.forget_marks(database, bench.tombstones.stones)
        if request.rebuild:
            database.reset_derived()
        _read_and_write(workspace, request, plan.read, bench, known, outcome, unsettled, perils)
        dropped, vanished = _gone(request, gone, known, bench, unsettled)
        named += vanished
        touched = artifacts.delete_rows(database, [*dropped, *(j.path for j in named if j.path in known)])
        outcome.removed_rows += len(touched)
        change.sources.update(Source(SESSION, *session) for session in touched)
        change.agents.update(agent for agent, _, _ in touched)
        change.paths.update(dropped, (j.path for j in named))
        artifacts.forget_files(database, dropped)
        artifacts.store_files(database, named, request.now_us)
        live.forget_removed(workspace, bench.tombstones.stones)
        removed, rows = tombstones.remove_covered(database, bench.tombstones.stones)
        missed = {judgement.path for judgement in vanished}
        artifacts.forget_files(database, [one.path for one in outcome.tombstoned if one.path not in missed])
        outcome.removed_rows += rows
        change.sources.update(Source(SESSION, *session) for session in removed)
        change.agents.update(agent for agent, _, _ in removed)
        whole = request.rebuild or (not known and outcome.full)
        if whole:
            artifacts.store_files(database, _vanished_seals(workspace, bench), request.now_us)
        _go_on(request)
        deriving.rebuild(database, workspace.pipeline.derivers if whole else stale)
        deriving.queue(database, workspace.pipeline, change.sources)
        if pending:
            # What nothing stands behind any more is told by the rows that follow.
            change.add(deriving.drain(database, workspace.pipeline, alive=partial(_alive, request, len(plan.read))))
            tombstones.forget_loose_marks(database, loose)
        _links(workspace, change, outcome, whole=whole)
        if request.accept_removals:
            gone = [path for path in violations.sealed_paths(database) if path in bench.accepted_gone]
            violations.accept_gone(database, gone, iso(request.now_us), "reindex --accept-removals")
        change.agents.update(_violations(workspace, request))
        if outcome.full:
            database.execute("delete from meta where key = 'halted'")
        if change.paths:
            # A manifest may be missing now; only the next full writing pass looks, after a crash or for CI's pass.
            database.set_meta("manifests", "due")
        if (outcome.full or first) and not unsettled:
            if artifacts.sanitizer_of_rows(database) != _rules(workspace):
                gardens.doubt(database)  # their rows follow in this pass, after those of artifacts
                captures.redact(database)
            artifacts.set_sanitizer_of_rows(database, _rules(workspace))
        elif artifacts.sanitizer_of_rows(database) != _rules(workspace):
            artifacts.set_sanitizer_of_rows(database, "several")  # as many as there were rules
    if outcome.read > THREADED:
        merges.step(database, merges.BULK_STEP)
    outcome.unsettled = frozenset(unsettled)


def _derive(workspace: Workspace, request: Request, outcome: Outcome) -> None:
    """Makes rows follow from rows, those of a pass that was killed as well; before a scrub none may wait."""
    if outcome.cliff is not None or not outbox.any_waits(workspace.database):
        return
    at_once = not outbox.holds(workspace.database, _MUCH) or tombstones.unscrubbed(workspace.database)
    since_us = 0 if at_once else request.since_us
    with uncollected():
        alive = partial(_alive, request, outcome.read)
        outcome.change.add(deriving.drain(workspace.database, workspace.pipeline, since_us=since_us, alive=alive))


def _is_news(path: str, known: dict[str, Known], bench: Bench) -> bool:
    """Whether a gone path was there the last time, or a tombstone now explains what had vanished."""
    before = known.get(path)
    if before is None or before.code != "vanished":
        return before is not None
    return desk.judge_missing(path, before, bench) is None


def _gone(
    request: Request, gone: Sequence[str], known: dict[str, Known], bench: Bench, unsettled: set[str]
) -> tuple[list[str], list[Judgement]]:
    dropped: list[str] = []
    vanished: list[Judgement] = []
    for path in gone:
        if request.settle_seconds and path not in request.confirmed:
            unsettled.add(path)
            continue
        judgement = desk.judge_missing(path, known[path], bench)
        if judgement is None:
            dropped.append(path)
        else:
            vanished.append(judgement)
    return dropped, vanished


def _read_and_write(
    workspace: Workspace,
    request: Request,
    paths: Sequence[str],
    bench: Bench,
    known: dict[str, Known],
    outcome: Outcome,
    unsettled: set[str],
    perils: Perils,
) -> None:
    """Reads, judges and writes in batches; with many files full text and seals are made beside the reading."""
    if not paths:
        return
    # In order of names the files of a session come together, and the folder's index is walked once.
    paths = sorted(paths)
    writer = _Writer(workspace, request, known, outcome.change, threaded=len(paths) > THREADED)
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
            _go_on(request)
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
                if judgement.unlink and not workspace.touch_nothing and _unlink(workspace, judgement, outcome):
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


def _read(descriptor: int | None, path: str, limit: int) -> Found | Trouble:
    if descriptor is None:
        return Trouble("gone", "its folder is gone")
    name = path.rpartition("/")[2]
    for _ in range(3):
        found = files.read_at(descriptor, name, limit)
        if not (isinstance(found, Trouble) and found.code == "unsettled"):
            break
    return found


class _Writer:
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
                told = f"{iso(self._request.now_us)} redacted on another machine"
                redactions.record(database, judgement.row.agent_id, [judgement.path], told)
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


def _vanished_seals(workspace: Workspace, bench: Bench) -> list[Judgement]:
    """Sealed files that are not there, when the memory of earlier verdicts is gone."""
    found = []
    for (path,) in workspace.database.execute(
        "select path from seals where path not in (select path from files) order by path"
    ):
        judgement = desk.judge_missing(path, Known(None, "indexed", ""), bench)
        if judgement is not None:
            found.append(judgement)
    return found


def _links(workspace: Workspace, change: Change, outcome: Outcome, *, whole: bool) -> None:
    """Which link fields lead nowhere; looked at again where a source, a target or (in a full pass) anything moved."""
    if not change.paths and not whole:
        return
    database = workspace.database
    targets = None
    if not outcome.full and not whole:
        targets = change.paths | artifacts.targets_of(database, sorted(change.paths))
    missing = artifacts.unresolved_targets(database, targets)
    broken = [target for target in missing if not _exists(workspace.root, target)]
    artifacts.mark_broken(database, broken, targets)


def _exists(root: str, target: str) -> bool:
    try:
        return files.look(root, target) is not None
    except (OSError, WorkspaceError):
        return False


# The first term is that of the partial index; SQLite does not conclude it from the second.
_VIOLATED = "verdict <> 'indexed' and verdict = 'violation'"


def _violations(workspace: Workspace, request: Request) -> set[str]:
    """Open violations follow the verdicts; what one pass finds together is one batch. Gives the agents concerned."""
    database = workspace.database
    before = violations_open(workspace)
    moment = iso(request.now_us)
    database.execute(
        "insert into violations(path, code, message, found_at, found_sha256, batch)"
        f" select path, code, message, ?, coalesce(found_sha256, ''), ? from files where {_VIOLATED}"
        " on conflict(path) do update set code = excluded.code, message = excluded.message,"
        " found_sha256 = excluded.found_sha256 where code <> excluded.code or found_sha256 <> excluded.found_sha256"
        " or message <> excluded.message",
        (moment, moment),
    )
    database.execute(f"delete from violations where path not in (select path from files where {_VIOLATED})")
    violations.forget_returned(database)
    return {agent for _, agent in before ^ violations_open(workspace) if agent is not None}


def violations_open(workspace: Workspace) -> set[tuple[str, str | None]]:
    """Path and agent of every open violation."""
    return {
        (path, agent)
        for path, agent in workspace.database.execute(
            "select v.path, s.agent_id from violations v left join seals s on s.path = v.path"
        )
    }


def _mend_text(workspace: Workspace) -> None:
    """Full text that lost or gained rows is made anew, all of it: an index that finds less than there is lies."""
    database = workspace.database
    for in_step, rebuild in ((artifacts.text_in_step, artifacts.rebuild_text), (lines.in_step, lines.rebuild)):
        if not in_step(database):
            with database.transaction():
                rebuild(database)
            workspace.events.append("full text was out of step with its rows and is built anew")


def _tend(workspace: Workspace, request: Request, outcome: Outcome) -> None:
    """Entity files follow people's hands, and their pages follow them."""
    tended = tending.tend(
        workspace,
        None if outcome.full else request.paths,
        request.now_us,
        settle_seconds=request.settle_seconds,
        confirmed=request.confirmed,
    )
    outcome.change.agents |= tended.agents
    outcome.unsettled |= tended.unsettled
    outcome.trouble += tended.trouble


def _clean_up(workspace: Workspace, request: Request, outcome: Outcome) -> None:
    """After the transaction: missing manifests, the scrub of removed text, the backup."""
    if outcome.full and workspace.database.meta("manifests") is not None:
        outcome.rebuilt_manifests, complete = rebuild_missing(workspace, request.now_us)
        outcome.deferred = not complete
        if outcome.rebuilt_manifests:
            absorb(workspace, request, outcome, outcome.rebuilt_manifests)
    if outcome.full:
        retention.enforce(workspace, request.now_us)
        joined, trouble = copied_manifests.take_in(workspace)
        outcome.rewritten |= joined
        outcome.trouble += [*trouble, *copies.clear(workspace)]
        scrub.seek_returned(workspace)
    if tombstones.unscrubbed(workspace.database):
        scrub.scrub(workspace, iso(request.now_us))
    elif outcome.full:
        back_up(workspace, iso(request.now_us))
    if outcome.rewritten:
        # Written after the look, on the way to a removal: no row tells of them yet.
        absorb(workspace, request, outcome, outcome.rewritten)


def absorb(workspace: Workspace, request: Request, outcome: Outcome, paths: Iterable[str]) -> None:
    """Takes files that we wrote ourselves into the index at once, so that no later pass has to."""
    inner = index_paths(
        workspace,
        replace(request, paths=frozenset(paths), rebuild=False, settle_seconds=0.0, reread=frozenset()),
    )
    outcome.change.sources |= inner.change.sources
    outcome.change.agents |= inner.change.agents
    outcome.change.days |= inner.change.days
    outcome.rewritten |= inner.rewritten


def _project(workspace: Workspace, request: Request, outcome: Outcome) -> None:
    result = projection.project(
        workspace,
        agents=None if outcome.full else outcome.change.agents,
        days=outcome.change.days,
        touched=request.paths or frozenset(),
        now_us=request.now_us,
        halted=outcome.cliff.message if outcome.cliff is not None else "",
        patient=request.settle_seconds > 0,
    )
    outcome.pages = result.pages
    outcome.held = result.held
    outcome.deferred |= result.deferred
    outcome.trouble += result.trouble
    if result.manifests:
        try:
            absorb(workspace, request, outcome, result.manifests)
        except RevisionConflict as error:
            outcome.trouble.append(error.message)


def _remember_pass(workspace: Workspace, request: Request, outcome: Outcome) -> None:
    if not (workspace.touch_nothing or outcome.deferred) and workspace.database.meta("manifests") is not None:
        with workspace.database.transaction():
            workspace.database.execute("delete from meta where key = 'manifests'")
    if workspace.touch_nothing and not workspace.own_place:
        return  # a copy for CI says nothing of the workspace's own index
    path = os.path.join(workspace.state.path, "last-pass.json")
    os.makedirs(workspace.state.path, mode=0o700, exist_ok=True)
    with suppress(OSError):
        state.write_json(path, {"last_full_pass": iso(request.now_us)})


def _remember_halt(workspace: Workspace, cliff: Cliff) -> None:
    database = workspace.database
    value = json.dumps({"would_remove": cliff.would_remove, "indexed": cliff.indexed, "message": cliff.message})
    if database.meta("halted") != value:
        with database.transaction():
            database.set_meta("halted", value)


def clear_halt(workspace: Workspace) -> None:
    """Forgets a halt once the files are back."""
    if workspace.database.meta("halted") is not None:
        with workspace.database.transaction():
            workspace.database.execute("delete from meta where key = 'halted'")


def dump(workspace: Workspace) -> list[tuple[Any, ...]]:
    """The canonical dump of content-linked rows, for parity checks."""
    return artifacts.canonical_dump(workspace.database)
