"""One pass: look, read what changed, judge, apply in one transaction, enforce tombstones, then project.

Watcher, timer, CLI and CI all come through `run_pass`, over different sets of paths. A pass after a crash is an
ordinary pass: it looks at the disk and does what is left to do.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import apsw

from signet_sync import journal, state
from signet_sync import reconcile as desk
from signet_sync.agent import (
    copied_manifests,
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
from signet_sync.agent.manifests import rebuild_missing
from signet_sync.contracts import digests
from signet_sync.contracts.bodies import utf8
from signet_sync.contracts.names import artifact_name
from signet_sync.contracts.noise import NoiseRule
from signet_sync.contracts.observed import Snapshot
from signet_sync.contracts.places import MEMORY
from signet_sync.contracts.sanitizer import sanitizer_stamp
from signet_sync.contracts.timestamps import iso
from signet_sync.errors import DatabaseCorrupt, DatabaseError, RevisionConflict, WorkspaceError
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
from signet_sync.reconcile import Bench, Cliff, CliffRule, Judgement, Known, Survey, Tombstones
from signet_sync.storage.database.tables import native_tables
from signet_sync.sync import deriving, outbox
from signet_sync.sync.garbage import uncollected
from signet_sync.sync.quarantine import Quarantine
from signet_sync.sync.reading import THREADED, read_and_write
from signet_sync.sync.removals import covered, enforce, in_force
from signet_sync.sync.request import Outcome, Request
from signet_sync.sync.stages import SESSION, Change, Source
from signet_sync.sync.workspace import Workspace, back_up
from signet_sync.vault import files, scan
from signet_sync.vault.layout import require_root

if TYPE_CHECKING:
    pass

_STRAY = f"{MEMORY}/.signet-"
# Fewer rows of the outbox are worked off at once, of whatever age their sessions are.
_MUCH = 1_000


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
    request.go_on()
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
        deriving.drain(workspace.database, workspace.pipeline, batches=1, alive=partial(request.alive, 1))
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
    stones, stone_judgements, aliases = in_force(
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
        covered_rows=covered(workspace, stones, known, snapshot),
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
        enforce(workspace, plan, bench, outcome)
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
    perils = Quarantine(workspace.state.path, wary=request.wary, anew=request.rebuild and not request.wary)
    with perils.watched(), database.transaction():
        events.forget_queries(database, asked)
        tombstones.remember_lines(database, lines)
        loose = tombstones.forget_marks(database, bench.tombstones.stones)
        if request.rebuild:
            database.reset_derived()
        read_and_write(workspace, request, plan.read, bench, known, outcome, unsettled, perils)
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
        request.go_on()
        deriving.rebuild(database, workspace.pipeline.derivers if whole else stale)
        deriving.queue(database, workspace.pipeline, change.sources)
        if pending:
            # What nothing stands behind any more is told by the rows that follow.
            change.add(deriving.drain(database, workspace.pipeline, alive=partial(request.alive, len(plan.read))))
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
        alive = partial(request.alive, outcome.read)
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
