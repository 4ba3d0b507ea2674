"""Renders pages from rows and publishes them under the page lease, only if their bytes differ."""

from __future__ import annotations

import os
import re
import socket
import stat
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace

from signet_sync import __version__
from signet_sync.entities import store as entities_store
from signet_sync.errors import LeaseBusy, SignetSyncError, WorkspaceError, reason
from signet_sync.formats import managed_block
from signet_sync.formats.body import text_sha256
from signet_sync.formats.paths import (
    DEFAULT_AGENT,
    MEMORY,
    SETTINGS,
    agent_folder,
    day_page,
    dream_page,
    head_page,
    month_page,
    page_agent,
)
from signet_sync.formats.snapshot import PAGE_LIMIT, Found, Signature, Trouble
from signet_sync.formats.timestamps import DAY, iso
from signet_sync.memories.score import day_start
from signet_sync.memories.store import memories, promotions
from signet_sync.pages import sections, signet_daemon
from signet_sync.pages.budget import shares
from signet_sync.pages.dreams_page import diary
from signet_sync.pages.memory_page import Projection, Rendered, render, window
from signet_sync.pages.session_log import day_text, month_text
from signet_sync.pages.session_log_stage import SessionLog
from signet_sync.pages.store import candidates as candidates_store
from signet_sync.pages.store import pages
from signet_sync.pages.store.pages import PageState
from signet_sync.settings import model
from signet_sync.settings.model import half_lives
from signet_sync.storage import files
from signet_sync.storage.clock import now_us
from signet_sync.storage.database.connection import Database
from signet_sync.storage.state_dir import process_alive, process_birth
from signet_sync.sync import deriving
from signet_sync.sync.missing_manifests import follow_page
from signet_sync.sync.request import PageOutcome, Pass
from signet_sync.sync.stages import Change, Publisher
from signet_sync.sync.store import composed, passes
from signet_sync.sync.store import counts as counts_store
from signet_sync.sync.store.composed import Composed
from signet_sync.sync.tombstones import store as tombstones_store
from signet_sync.sync.workspace import Workspace
from signet_sync.text.phrases import counted

INDEX_MONTHS = 24
# Tokens of the page leases held by this process.
_HELD: set[str] = set()


class MemoryPages(Publisher):
    """Keeps each agent's MEMORY.md, and the manifests that depend on it, equal to the rows.

    A page is composed when its inputs or its file changed, when a row enters or leaves the window, and when a UTC day
    begins, because scores are computed per day.
    """

    name = "MEMORY.md"

    def mark(self, database: Database, change: Change) -> None:
        """Marks the pages of the agents that changed as stale."""
        composed.forget(database, change.agents)

    def stale(self, run: Pass) -> list[str]:
        """Returns the pages that may differ from their rows, or whose files were touched."""
        wanted = _concerned(run)
        if wanted:
            run.outcome.held = signet_daemon.holds(run.workspace, sorted(wanted))
        return [head_page(agent) for agent in wanted]

    def publish(self, run: Pass, key: str) -> None:
        """Makes a page equal to its rows.

        With `settle_seconds` (the daemon), a page written by another machine's agent stays as long as ours would repeat
        what it said last. Otherwise two machines whose memories, pins or accesses differ would replace each other's
        page for ever.
        """
        _publish_head(run, page_agent(key) or DEFAULT_AGENT)


class LogPages(Publisher):
    """Keeps the session log pages and DREAMS.md equal to the rows; they are less urgent than MEMORY.md."""

    name = "session log"

    def mark(self, database: Database, change: Change) -> None:
        """Marks the pages of the days that changed as stale."""
        pages.mark_stale(database, change.days)

    def stale(self, run: Pass) -> list[str]:
        """Returns the MEMORY.md paths of the agents whose other pages may differ from their rows."""
        return [] if _halted(run) else [head_page(agent) for agent in _concerned(run)]

    def publish(self, run: Pass, key: str) -> None:
        """Makes the agent's session log pages and DREAMS.md equal to their rows."""
        agent_id, patient = page_agent(key) or DEFAULT_AGENT, run.request.settle_seconds > 0
        _follow_log(run, agent_id, patient=patient)
        try:
            if not run.outcome.held or _signature(run.workspace.root, dream_page(agent_id)) is not None:
                _diary_page(run.workspace, agent_id, run.request.now_us, patient=patient)
        except OSError as error:
            raise SignetSyncError(reason(error), path=dream_page(agent_id)) from error


def _concerned(run: Pass) -> list[str]:
    """Returns the agents whose pages may have to change."""
    outcome, database = run.outcome, run.database
    if not _halted(run) and _is_away(run.workspace):
        return []
    if outcome.full:
        former = (state.agent_id for state in pages.page_states(database).values())
        wanted = {*counts_store.agents(database), *former}
    else:
        wanted = outcome.change.agents | {agent for agent, _ in outcome.change.days}
        touched = {path: agent for path in run.request.paths or () if (agent := page_agent(path)) is not None}
        known = counts_store.agents(database) if not wanted.issuperset(touched.values()) else ()
        for path, agent in touched.items():
            if (
                agent in known
                or pages.page_state(database, path) is not None
                or _generated(run.workspace, path) is not None
            ):
                wanted.add(agent)
    return sorted(wanted, key=lambda agent: (agent != DEFAULT_AGENT, agent))


def _halted(run: Pass) -> str:
    """Returns why passes are halted, or "". A pass over some paths cannot lift a halt set by a full pass."""
    if run.outcome.cliff is not None:
        return run.outcome.cliff.message
    return "" if run.outcome.full else passes.halt_message(run.database)


def _publish_head(run: Pass, agent_id: str) -> None:
    workspace, database, outcome = run.workspace, run.database, run.outcome
    now_us, halted, held = run.request.now_us, _halted(run), bool(run.outcome.held)
    patient = run.request.settle_seconds > 0
    path = head_page(agent_id)
    stamp = _stamp(workspace, agent_id, halted)
    fresh = None if held or agent_id in outcome.change.agents else _fresh(workspace, agent_id, stamp, now_us)
    if fresh is not None:
        outcome.pages[agent_id] = fresh
        return
    rendered, in_window, next_us = compose(workspace, agent_id, now_us, halted)
    page = PageOutcome(path, False, in_window, rendered.rows, rendered.clipped, rendered.tokens)
    if held:
        tells = not halted and _is_ours_and_tells(workspace, agent_id, path)
        changed = tells and _write_page(
            workspace,
            agent_id,
            rendered.text,
            next_us,
            Composed("", now_us, 0, 0, 0, 0),
            lambda: False,
            must_exist=True,
            patient=False,
        )
        outcome.pages[agent_id] = replace(page, changed=changed)
        return
    gone = in_window == 0 and agent_id not in counts_store.agents(database)
    text = None if gone else rendered.text

    def follow() -> bool:
        if halted:
            return False
        rewritten, trouble = follow_page(
            workspace,
            agent_id,
            rendered.shown,
            pages.shown_manifests(database, agent_id),
            lambda agent, token, session: pages.manifest_of(database, agent, token, session),
            lambda: gone or _stands(workspace, path, rendered.text),
        )
        outcome.rewritten.update(rewritten)
        outcome.trouble += trouble
        return not trouble

    figures = in_window, rendered.rows, rendered.clipped, rendered.tokens
    known = Composed(stamp, now_us, *figures)
    changed = _write_page(workspace, agent_id, text, next_us, known, follow, must_exist=bool(halted), patient=patient)
    if not gone:
        outcome.pages[agent_id] = replace(page, changed=changed)


def _follow_log(run: Pass, agent_id: str, *, patient: bool) -> None:
    """Makes the session log pages equal to the rows."""
    days = None
    if not run.outcome.full:
        days = sorted({day for agent, day in run.outcome.change.days if agent == agent_id}, reverse=True)
    blocked = _ledger_pages(
        run.workspace, agent_id, days, run.request.now_us, patient=patient, standing=bool(run.outcome.held)
    )
    run.outcome.trouble += blocked
    run.outcome.deferred |= bool(blocked)


def _stamp(workspace: Workspace, agent_id: str, halted: str) -> str:
    """Names the inputs of MEMORY.md other than rows; a transaction that moves rows clears the stored stamp."""
    settings = workspace.settings
    shares_of = settings.share_head, settings.share_ledger, settings.share_index
    budget = settings.budget_tokens, *shares_of, settings.window_days, half_lives(settings)
    inputs = __version__, warning(workspace, agent_id, halted), budget
    return text_sha256(repr(inputs))


def _fresh(workspace: Workspace, agent_id: str, stamp: str, now_us: int) -> PageOutcome | None:
    """Returns the known outcome of a MEMORY.md if neither its inputs, its file nor the rows in the window changed."""
    path, before = head_page(agent_id), composed.of(workspace.database, agent_id)
    if before is None or before.stamp != stamp or before.at_us > now_us:
        return None
    state = pages.page_state(workspace.database, path)
    if state is None or state.inputs_sha256 == "" or not now_us < (state.next_us or 1 << 62):
        return None
    if state.signature is None or state.signature != _signature(workspace.root, path):
        return None
    return PageOutcome(path, False, before.sessions_in_window, before.rows_rendered, before.rows_clipped, before.tokens)


def compose(workspace: Workspace, agent_id: str, now_us: int, halted: str = "") -> tuple[Rendered, int, int | None]:
    """Returns an agent's page as text, the number of sessions in its window, and the next instant that changes it."""
    database, settings = workspace.database, workspace.settings
    first, last = window(now_us, settings.window_days)
    in_window = pages.count_in_window(database, agent_id, first, last)
    candidates = sections.candidates(candidates_store.seen(database, agent_id, now_us), now_us, half_lives(settings))
    projection = Projection(
        agent_id,
        warning(workspace, agent_id, halted),
        candidates,
        in_window,
        pages.window_months(database, agent_id, first, last),
        lambda limit: pages.window_rows(database, agent_id, first, last, limit),
        pages.months(database, agent_id, INDEX_MONTHS),
        lambda limit: candidates_store.lineage(database, agent_id, now_us, limit),
    )
    budget = shares(settings.budget_tokens, settings.share_head, settings.share_ledger, settings.share_index)
    changes = [
        pages.next_change(database, agent_id, now_us, settings.window_days * DAY),
        candidates_store.next_change(database, agent_id, now_us),
        # Scores are computed per UTC day.
        day_start(now_us) + DAY if candidates else None,
    ]
    next_us = min((instant for instant in changes if instant is not None), default=None)
    return render(projection, budget), in_window, next_us


def is_current(workspace: Workspace, agent_id: str) -> bool:
    """Returns whether an agent's pages equal what its rows give now, or are held back anyway."""
    database = workspace.database
    if signet_daemon.holds(workspace, [agent_id]):
        return True
    if any(state.inputs_sha256 == "" for state in pages.page_states(database, agent_id).values()):
        return False
    stamp = _stamp(workspace, agent_id, passes.halt_message(database))
    return _fresh(workspace, agent_id, stamp, now_us()) is not None


def _is_away(workspace: Workspace) -> bool:
    """Returns whether the vault disappeared during a pass: no page is created on an unmounted disk's mount point.

    The next full pass detects it and halts.
    """
    return files.look(workspace.root, MEMORY) is None and counts_store.indexed_count(workspace.database) > 0


def warning(workspace: Workspace, agent_id: str, halted: str = "") -> str:
    """Returns the warning line about a halt, open violations and drifted entities; empty when there are none."""
    count = workspace.database.value(
        "select count(*) from violations v cross join seals s on s.path = v.path where s.agent_id = ?", (agent_id,)
    )
    if halted:
        return f"signet-sync is halted, nothing was dropped ({halted}): signet-sync status"
    told = []
    if count:
        what = counted(count, "file of this vault was", "files of this vault were")
        told.append(f"{what} changed or lost after being sealed: signet-sync violations list")
    drifted = len(entities_store.drift(workspace.database, agent_id))
    if drifted:
        what = counted(drifted, "entity file is", "entity files are")
        told.append(f"{what} not what was recorded: signet-sync entity drift")
    # Only the workspace's settings file counts: user settings differ between machines, but the page is shared.
    if not told and model.broken_values(workspace.root):
        told.append(f"{SETTINGS} is broken, its last good settings or defaults count: signet-sync doctor")
    return "; ".join(told)


def _ledger_pages(
    workspace: Workspace, agent_id: str, moved: list[str] | None, now_us: int, *, patient: bool, standing: bool = False
) -> list[str]:
    """Writes day and month pages: those of the `moved` days or (None) all that are not as we left them.

    With `standing`, no page is created and existing ones are updated.

    The transaction that moved a session also marked its pages stale, so neither a crash nor a hold loses them. With
    `patient`, a page stays in which another machine's agent says more than ours would: that machine may have sealed a
    file that arrived here damaged. Returns the problems with paths that are no regular files; other pages are written
    anyway.
    """
    database = workspace.database
    blocked: list[str] = []
    if deriving.waits(database, workspace.pipeline, SessionLog.name):
        return blocked  # no page may be partial or removed too early: wait until the last row is derived
    if moved is None:
        counts = pages.days(database, agent_id)
        states = pages.page_states(database, agent_id)
        wanted = _unlike(workspace, agent_id, counts, states)
    else:
        counts = {}
        states = {}
        wanted = moved
        for month in {day[:7] for day in moved}:
            counts |= pages.days(database, agent_id, month)
        for path in {page for day in moved for page in (day_page(agent_id, day), month_page(agent_id, day[:7]))}:
            state = pages.page_state(database, path)
            if state is not None:
                states[path] = state
    folders: set[str] = set()
    written: list[tuple[str, PageState]] = []

    def bring(path: str, text: str | None) -> None:
        status = files.look(workspace.root, path)
        if status is not None and not stat.S_ISREG(status.st_mode):
            blocked.append(f"{path}: the page could not be written: a {files.kind_of(status.st_mode)} stands there")
            return
        state = states.get(path)
        if standing and _signature(workspace.root, path) is None:
            return
        _ledger_page(workspace, agent_id, path, text, state, folders, written, now_us, patient=patient)

    for day in wanted:
        text = day_text(agent_id, day, pages.day_lines(database, agent_id, day)) if day in counts else None
        bring(day_page(agent_id, day), text)
    for month in sorted({day[:7] for day in wanted}, reverse=True):
        inside = [(day, count) for day, count in counts.items() if day[:7] == month]
        text = month_text(agent_id, month, inside) if inside else None
        bring(month_page(agent_id, month), text)
    if moved is None:
        expected = {day_page(agent_id, day) for day in counts} | {month_page(agent_id, day[:7]) for day in counts}
        for path in states.keys() - expected - {head_page(agent_id), dream_page(agent_id)}:
            bring(path, None)
    files.sync_folders(workspace.root, folders)
    if written:
        with database.transaction():
            for path, state in written:
                pages.store_page(database, path, state)
    return blocked


_MEMORY = re.compile(rb"\^(m-[a-z0-9]+)")

# Change this when the same rows give a different DREAMS.md.
_DIARY = "1"


def _diary_page(workspace: Workspace, agent_id: str, now_us: int, *, patient: bool) -> None:
    """Makes DREAMS.md equal to the promotion history; entries of other machines' agents stay in it.

    With `patient`, a page written by another machine's agent stays until ours has something new to say.
    """
    database, path = workspace.database, dream_page(agent_id)
    mark = promotions.fingerprint(database, agent_id)
    gone = any(agent == agent_id for agent, _ in memories.forgotten(database))
    before = pages.page_state(database, path)
    inputs = text_sha256(f"{_DIARY} {mark}")
    same = before is not None and before.inputs_sha256 == inputs
    if before is not None and same and not gone and before.signature == _signature(workspace.root, path):
        return
    found = files.read(workspace.root, path, PAGE_LIMIT)
    raw = found.raw if isinstance(found, Found) else b""
    existing = managed_block.generated(raw)
    told = _forgotten_on(database, agent_id, raw)
    if not mark and not told:
        return
    published = found.signature if isinstance(found, Found) else None
    if not (patient and same and existing is not None and not told):
        text = diary(promotions.sweeps(database, agent_id), existing, told)
        folders: set[str] = set()
        published, _ = _publish(workspace, path, text, now_us, folders)
        files.sync_folders(workspace.root, folders)
    with database.transaction():
        pages.store_page(database, path, PageState(agent_id, published, inputs, None))


def clean_diaries(workspace: Workspace, now_us: int) -> str:
    """Removes forgotten memories from every DREAMS.md, from entries of other machines too.

    Returns why a page that cannot be written now still contains one, or "".
    """
    forgotten = memories.forgotten(workspace.database)
    trouble = ""
    for agent_id in sorted({agent_id for agent_id, _ in forgotten}):
        path = dream_page(agent_id)
        found = files.read(workspace.root, path, PAGE_LIMIT)
        ids = [memory_id.encode() for agent, memory_id in forgotten if agent == agent_id]
        if not (isinstance(found, Found) and any(memory_id in found.raw for memory_id in ids)):
            continue
        try:
            _diary_page(workspace, agent_id, now_us, patient=False)
        except (OSError, SignetSyncError) as error:
            trouble = f"{path}: the page could not be written: {reason(error)}"
    return trouble


def _unlike(workspace: Workspace, agent_id: str, counts: dict[str, int], states: dict[str, PageState]) -> list[str]:
    """Returns the days whose page or month page is stale, missing, or not the file that we left."""

    present = files.signatures(workspace.root, states)

    def fits(path: str) -> bool:
        before = states.get(path)
        return before is not None and before.inputs_sha256 != "" and before.signature == present.get(path)

    months = {month: fits(month_page(agent_id, month)) for month in {day[:7] for day in counts}}
    return [day for day in counts if not fits(day_page(agent_id, day)) or not months[day[:7]]]


def _ledger_page(
    workspace: Workspace,
    agent_id: str,
    path: str,
    text: str | None,
    before: PageState | None,
    folders: set[str],
    written: list[tuple[str, PageState]],
    now_us: int,
    *,
    patient: bool,
) -> None:
    if text is None:
        _withdraw(workspace, path)
        return
    inputs = text_sha256(text)
    if before is not None and before.inputs_sha256 == inputs and before.signature == _signature(workspace.root, path):
        return
    signature = None
    if patient and before is not None and before.inputs_sha256 == inputs:
        signature = _of_one_that_says_more(workspace, agent_id, path, text)
    if signature is None:
        signature, _ = _publish(workspace, path, text, now_us, folders)
    written.append((path, PageState(agent_id, signature, inputs, None)))


def _of_one_that_says_more(workspace: Workspace, agent_id: str, path: str, text: str) -> Signature | None:
    """Returns the signature of a page that another machine's agent wrote, if that page is to stay.

    The page with more lines wins, then the one with more characters, then the one that sorts later: every machine keeps
    the same page.
    """
    found = files.read(workspace.root, path, PAGE_LIMIT)
    there = managed_block.generated(found.raw) if isinstance(found, Found) else None
    if not isinstance(found, Found) or there is None or _tells_of_what_went(workspace, agent_id, found.raw):
        return None
    says_more = (there.count("\n"), len(there), there) > (text.count("\n"), len(text), text)
    return found.signature if says_more else None


def _withdraw(workspace: Workspace, path: str) -> None:
    """Removes our block from a page that has nothing to show; the user's text stays, an empty page is deleted.

    Raises `WorkspaceError` if the page was saved meanwhile, `OSError`.
    """
    found = files.read(workspace.root, path, PAGE_LIMIT)
    if isinstance(found, Found):
        rest = managed_block.without_block(found.raw)
        if rest is None:
            saved = not files.retract(workspace.root, path, found.raw)
            files.remove_empty_folders(workspace.root, path.rpartition("/")[0], "")
        else:
            saved = rest != found.raw and files.replace(workspace.root, path, rest, found.raw).displaced is not None
        if saved:
            raise WorkspaceError("somebody saved the page meanwhile", path=path, hint="it is tried again by itself")
    with workspace.database.transaction():
        pages.forget_page(workspace.database, path)


def withdraw_strays(workspace: Workspace) -> None:
    """Removes our block from generated pages that have neither rows to show nor a row of their own.

    A rebuild or a lost database forgets which pages existed; after a removal such a page must not stay. Raises
    `OSError`, `SignetSyncError`.
    """
    for _, path, _ in list(strays(workspace)):
        _withdraw(workspace, path)


def strays(workspace: Workspace) -> Iterator[tuple[str, str, bytes]]:
    """Yields agent, path and bytes of generated pages without rows to show, of any machine and age."""
    known = counts_store.agents(workspace.database)
    for agent_id in sorted({DEFAULT_AGENT, *known, *files.listing(workspace.root, "agents", "")}):
        counts = pages.days(workspace.database, agent_id)
        expected = {page for day in counts for page in (day_page(agent_id, day), month_page(agent_id, day[:7]))}
        if agent_id in known:
            expected.add(head_page(agent_id))
        found = [path for path in on_disk(workspace.root, agent_id) if path not in expected]
        for path in found:
            if (raw := _generated(workspace, path)) is not None:
                yield agent_id, path, raw


def _generated(workspace: Workspace, path: str) -> bytes | None:
    """Returns the bytes of a page that contains a block of ours."""
    found = files.read(workspace.root, path, PAGE_LIMIT)
    if isinstance(found, Found) and managed_block.BEGIN in found.raw and not managed_block.is_signets(found.raw):
        return found.raw
    return None


def on_disk(root: str, agent_id: str) -> list[str]:
    """Returns the existing paths of an agent's pages, including those that signet-sync did not write."""
    ledger = f"{agent_folder(agent_id)}ledger"
    found = [head_page(agent_id)]
    for name in files.listing(root, ledger, ""):
        found.append(f"{ledger}/{name}")
        for month in files.listing(root, f"{ledger}/{name}", ""):
            found += [f"{ledger}/{name}/{month}/{day}" for day in files.listing(root, f"{ledger}/{name}/{month}", "")]
    return [path for path in found if page_agent(path) == agent_id]


def _signature(root: str, path: str) -> Signature | None:
    status = files.look(root, path)
    return files.signature_of(status) if status is not None else None


def _write_page(
    workspace: Workspace,
    agent_id: str,
    text: str | None,
    next_us: int | None,
    known: Composed,
    follow: Callable[[], bool],
    *,
    must_exist: bool,
    patient: bool,
) -> bool:
    """Writes MEMORY.md under its lease if it differs; returns True if bytes were written. Raises `LeaseBusy`.

    `follow` updates what depends on the page, before the page counts as `known`, and returns whether all of it
    succeeded.
    """
    database, path, now_us = workspace.database, head_page(agent_id), known.at_us
    before = pages.page_state(database, path)
    signature = _signature(workspace.root, path)
    if text is None:
        _withdraw(workspace, path)
        follow()
        return before is not None
    if must_exist and signature is None:
        return False
    inputs = text_sha256(text)
    if before is not None and before.signature == signature and before.inputs_sha256 == inputs:
        followed = follow()
        with database.transaction():
            pages.store_page(database, path, before._replace(next_us=next_us))
            composed.store(database, agent_id, known if followed else None)
        return False
    # Leases use real time, whatever `now` the caller renders for.
    clock = time.time_ns() // 1000
    content_hash: str | None = None
    with _own_lease() as token:
        lease = pages.acquire_lease(
            database,
            agent_id,
            token=token,
            owner=f"{socket.gethostname()}:{os.getpid()}:{process_birth(os.getpid())}",
            now_iso=iso(clock),
            expires_iso=iso(clock + int(workspace.settings.lease_seconds * 1_000_000)),
            abandoned=_is_abandoned,
        )
        try:
            found = files.read(workspace.root, path, PAGE_LIMIT)
            if isinstance(found, Found) and (
                managed_block.merge(found.raw, text) == managed_block.Merge(found.raw)
                or (
                    patient
                    and before is not None
                    and before.inputs_sha256 == inputs
                    and managed_block.is_generated(found.raw)
                    and not _tells_of_what_went(workspace, agent_id, found.raw)
                )
            ):
                published: Signature | None = found.signature
                changed = False
            else:
                folders: set[str] = set()
                published, changed = _publish(workspace, path, text, now_us, folders, lease)
                files.sync_folders(workspace.root, folders)
                content_hash = inputs
            followed = follow()
            with database.transaction():
                _require_lease(workspace, path, lease)
                pages.store_page(database, path, PageState(agent_id, published, inputs, next_us))
                composed.store(database, agent_id, known if followed else None)
                pages.release_lease(database, lease, content_hash=content_hash, now_iso=iso(now_us))
        except BaseException:
            with database.transaction():
                pages.release_lease(database, lease, content_hash=content_hash, now_iso=iso(now_us))
            raise
    return changed


def _stands(workspace: Workspace, path: str, text: str) -> bool:
    """Returns whether a page shows this text, and not another machine's, from other rows or another clock."""
    found = files.read(workspace.root, path, PAGE_LIMIT)
    return isinstance(found, Found) and managed_block.merge(found.raw, text) == managed_block.Merge(found.raw)


def _is_ours_and_tells(workspace: Workspace, agent_id: str, path: str) -> bool:
    """Returns whether a page contains a block of ours that shows something removed or forgotten."""
    raw = _generated(workspace, path)
    return raw is not None and _tells_of_what_went(workspace, agent_id, raw)


def _tells_of_what_went(workspace: Workspace, agent_id: str, page: bytes) -> bool:
    """Returns whether a page written by another machine shows a removed session or a forgotten memory."""
    database = workspace.database
    return bool(_forgotten_on(database, agent_id, page) or tombstones_store.told_by(database, agent_id, page))


def _forgotten_on(database: Database, agent_id: str, page: bytes) -> frozenset[str]:
    """Returns the ids of forgotten memories that a page shows."""
    return memories.once_forgotten(database, agent_id, {found.decode() for found in _MEMORY.findall(page)})


@contextmanager
def _own_lease() -> Iterator[str]:
    """Yields a new lease token, registered as held by this process until the context ends."""
    token = uuid.uuid4().hex
    _HELD.add(token)
    try:
        yield token
    finally:
        _HELD.discard(token)


def _is_abandoned(owner: str, token: str) -> bool:
    """Returns whether a lease has no holder: its owner, a process of this machine, died, or is us and released it.

    So no lease has to expire after a crash, or after losing the row that recorded its release. A dead owner's process
    id may since have been reused.
    """
    host, _, process = owner.partition(":")
    pid, _, birth = process.partition(":")
    if host != socket.gethostname() or not pid.isdigit():
        return False
    if not process_alive(int(pid)) or process_birth(int(pid)) != birth:
        return True
    return int(pid) == os.getpid() and token not in _HELD


def _require_lease(workspace: Workspace, path: str, lease: pages.Lease | None) -> None:
    """Raises `LeaseBusy` if the lease was taken over: a process that slept past its end writes nothing."""
    if lease is not None and not pages.still_holds(workspace.database, lease):
        raise LeaseBusy(f"the lease of {path} was taken over", hint="it is tried again by itself")


def _entitled(workspace: Workspace, path: str, lease: pages.Lease | None) -> files.Entitled:
    """Returns the guard under which a page is swapped in: it checks the lease while holding the database's write lock.

    Taking the lease over needs the same write lock, so that cannot happen between the check and the swap.
    """

    @contextmanager
    def held() -> Iterator[None]:
        with workspace.database.transaction():
            _require_lease(workspace, path, lease)
            yield

    return nullcontext if lease is None else held


def _publish(
    workspace: Workspace, path: str, text: str, now_us: int, folders: set[str], lease: pages.Lease | None = None
) -> tuple[Signature | None, bool]:
    """Merges text into the file on disk and swaps it in; displaced bytes are kept first, or merged again.

    Raises `LeaseBusy` if the lease was lost before.
    """
    entitled = _entitled(workspace, path, lease)
    for _ in range(5):
        _require_lease(workspace, path, lease)
        found = files.read(workspace.root, path, PAGE_LIMIT)
        if isinstance(found, Trouble) and found.code != "gone":
            raise SignetSyncError(found.message, path=path, hint="check the file; it is left as it is")
        existing = found.raw if isinstance(found, Found) else None
        merged = managed_block.merge(existing, text)
        if merged.data == existing:
            return (found.signature if isinstance(found, Found) else None), False
        if merged.keep is not None:
            if files.is_being_written(workspace.root, path):
                # Half of a save looks like a damaged block; it is not worth a copy.
                raise WorkspaceError("it is being written", path=path, hint="it is tried again by itself")
            if files.read(workspace.root, path, PAGE_LIMIT) != found:
                continue
            keep_copy(workspace, path, *merged.keep, now_us)
        folders.add(path.rpartition("/")[0])
        if existing is None:
            if _is_away(workspace):
                raise WorkspaceError("the vault went meanwhile", path=path, hint="it is tried again by itself")
            # A file that appears meanwhile is newer than ours: create the page only if the path is still free.
            with suppress(FileExistsError):
                signature = files.create_once(workspace.root, path, merged.data, sync_folder=False, entitled=entitled)
                return signature, True
            continue
        replaced = files.replace(workspace.root, path, merged.data, existing, sync_folder=False, entitled=entitled)
        if replaced.displaced is None:
            return replaced.signature, True
        # An editor saved between our read and the swap: its file is back in place and is merged like any other.
    raise SignetSyncError("the page kept changing while it was written", path=path, hint="it is tried again by itself")


def keep_copy(workspace: Workspace, path: str, suffix: str, data: bytes, now_us: int) -> str | None:
    """Keeps displaced bytes beside a page as `NAME.user-<utc>.md` (Signet's own once, as `NAME.signet-<utc>.md`)."""
    folder, _, name = path.rpartition("/")
    stem = name.removesuffix(".md")
    kept = files.listing(workspace.root, folder, f"{stem}.{suffix}-")
    for other in kept:
        found = files.read(workspace.root, f"{folder}/{other}" if folder else other, PAGE_LIMIT)
        if suffix == "signet" or (isinstance(found, Found) and found.raw == data):
            return None
    for target in copy_names(path, suffix, now_us):
        try:
            files.create_once(workspace.root, target, data)
        except FileExistsError:
            continue
        workspace.events.append(f"{path}: what stood there is kept as {target}")
        return target
    raise no_free_name(path)


def copy_names(path: str, suffix: str, now_us: int) -> Iterator[str]:
    """Yields the paths beside a file that a kept copy of it may have."""
    stamp = iso(now_us).replace("-", "").replace(":", "").replace(".", "")
    for number in range(100):
        yield f"{path.removesuffix('.md')}.{suffix}-{stamp}{f'-{number}' if number else ''}.md"


def no_free_name(path: str) -> SignetSyncError:
    """Returns the error for when all names of `copy_names` are taken."""
    return SignetSyncError("no free name for a kept copy", path=path, hint="remove old copies beside it")


def next_instant(workspace: Workspace) -> int | None:
    """Returns the next instant at which some page changes without an event, in microseconds since 1970 UTC."""
    found: int | None = workspace.database.value("select min(next_us) from pages where next_us is not null")
    return found
