"""Composes what a hook prints: the context at a session's start, what memory holds on a prompt; nothing twice.

A harness waits for it, so only what is needed is imported. What a session got is recorded (`capture.injections`).
"""

from __future__ import annotations

import time
from contextlib import AbstractContextManager, suppress
from functools import partial

from signet_sync.capture import injections, notes
from signet_sync.capture.hook import STARTS_AT_PROMPTS
from signet_sync.capture.hook_session import HookSession
from signet_sync.formats.paths import running_session
from signet_sync.pages import context, own_project, session_context
from signet_sync.pages.context import INJECTED_BUDGET, MOST_INJECTED, PromptHit
from signet_sync.pages.session_context import SessionContext
from signet_sync.pages.store.readable_index import RemovalUnfinished, readable_index

TYPE_CHECKING = False  # same as in `typing`, without importing it
if TYPE_CHECKING:
    from collections.abc import Callable

    from signet_sync.capture.injections import Injections
    from signet_sync.pages.board import Line
    from signet_sync.pages.project_context import ProjectInputs
    from signet_sync.storage.database.connection import Database

RESUMED = "resume"  # the only start after which a session still has what it got before
_LONGEST = 1.0  # seconds that the search at a prompt may take


def at_start(session: HookSession, source: str | None, budget: int) -> str:
    """Returns the context of a session's start, marked as data; after a resume only what it did not get yet.

    In some harnesses it returns "", and the session gets it at its next prompt.
    """
    if session.harness in STARTS_AT_PROMPTS and session.id:
        with suppress(OSError):  # if it cannot be recorded, the session gets it now
            with _record(session) as record:
                if source != RESUMED or not record.due:
                    record.due = source or "startup"
            return ""
    return _begun(session, source, budget)


def _begun(session: HookSession, source: str | None, budget: int) -> str:
    if source != RESUMED or not session.id:
        composed = _composed(session, None, budget)
        if session.id:
            # If it cannot be recorded now, the session may get something twice.
            with suppress(OSError):
                injections.expire(session.folder, time.time())
                with _record(session) as record:
                    record.drop()
                    record.add_lines(composed.lines, composed.left_out)
        return context.wrapped(composed.text, session.root, _request(session))
    try:
        with _record(session) as record:
            composed = _composed(session, record, budget)
            record.add_lines(composed.lines, composed.left_out)
    except OSError:
        composed = _composed(session, injections.read(session.folder, session.agent_id, session.id), budget)
    return context.wrapped(composed.text, session.root)


def at_prompt(session: HookSession, words: str, budget: int) -> str:
    """Returns what memory holds on a prompt, marked as data; "" if it holds nothing worth it, or gave it before.

    With "" for words, and otherwise before that, what the session did not get at its start. Raises `OSError` if it
    cannot be recorded.
    """
    if not session.id:
        return ""
    texts = [_overdue(session, budget) if session.harness in STARTS_AT_PROMPTS else "", _found(session, words)]
    return "\n".join(filter(None, texts))


def _overdue(session: HookSession, budget: int) -> str:
    """Returns the context of a start that waited for a prompt."""
    held = injections.read(session.folder, session.agent_id, session.id)
    if held is None or not held.due:
        return ""
    with _record(session) as record:
        record.due = ""
    return _begun(session, held.due, budget)


def _found(session: HookSession, words: str) -> str:
    if not words:
        return ""
    from signet_sync.text.token_estimate import estimate_tokens

    held = injections.read(session.folder, session.agent_id, session.id)
    hits = _hits(session, words, set() if held is None else held.ids)
    limit = INJECTED_BUDGET - estimate_tokens(context.wrapped("-", session.root))
    with _record(session) as record:
        known = record.ids
        fresh = [hit for hit in hits if hit.id not in known]
        text, kept = context.recalled(fresh, limit, estimate_tokens, MOST_INJECTED)
        record.at_prompts += [hit.id for hit in kept]
    return context.wrapped(text, session.root)


def _record(session: HookSession) -> AbstractContextManager[Injections]:
    return injections.updating(session.folder, session.agent_id, session.harness, session.id)


def _composed(session: HookSession, record: Injections | None, budget: int) -> SessionContext:
    """Returns what `record` (None: nothing) does not contain yet; nothing of memory while a removal is unfinished."""
    from signet_sync.text.token_estimate import estimate_tokens

    shared, seen, own = session.shared, None, set[str]()
    if not shared:
        try:
            seen, own = _inputs(session, of_itself=record is not None)
        except RemovalUnfinished:
            shared = True

    def known(text: str) -> bool:
        return record is not None and record.knows(text)

    def skip(line: Line) -> bool:
        return known(line.text) or line.path in own

    def compose(limit: int) -> SessionContext:
        return session_context.compose(
            session.root,
            session.agent_id,
            shared=shared,
            limit=limit,
            size=estimate_tokens,
            memory=None if seen is None else session_context.of_rows(seen, session.project, _now_us(), skip, known),
            known=known,
        )

    return session_context.fit(compose, budget, context.room(session.root, _request(session)))


def _request(session: HookSession) -> str:
    return notes.REQUEST if session.hands_over() else ""


def _inputs(session: HookSession, *, of_itself: bool) -> tuple[ProjectInputs | None, set[str]]:
    """Returns what the context may show, None if the index cannot be read; and the sources that are the session's own.

    Its files only if asked for, `of_itself`.
    """
    seen, own = None, set[str]()
    with readable_index(session.database, session.root) as database:
        if database is not None:
            from signet_sync.pages.store import project_inputs

            _, belongs = _own(session, database)
            itself = session.id if of_itself else ""
            found = project_inputs.project_inputs(
                database, session.agent_id, _now_us(), belongs, session.project, itself
            )
            paths = {view.path for views in (found.threads, found.facts, found.personal) for view in views}
            if not of_itself:
                # What it says now it knows: no compaction has taken that.
                paths = {path for path in paths if running_session(path) is not None}
            sessions = project_inputs.sessions_of(database, paths)
            own = {path for path, session_id in sessions.items() if session_id == session.id}
            seen = found
    return seen, own


def _own(session: HookSession, database: Database) -> tuple[str, Callable[[str | None], bool]]:
    from signet_sync.pages.store.project_inputs import recorded_origin

    return own_project.of_path(session.project, partial(recorded_origin, database, session.agent_id))


def _hits(session: HookSession, words: str, given: set[str]) -> list[PromptHit]:
    found: list[PromptHit] = []
    with suppress(RemovalUnfinished), readable_index(session.database, session.root) as database:
        if database is not None:
            from signet_sync.pages.prompt_context import worth_injecting

            until = time.monotonic() + _LONGEST
            database.connection.set_progress_handler(lambda: time.monotonic() > until, 20_000)
            name, belongs = _own(session, database)
            found = worth_injecting(
                database,
                session.agent_id,
                words,
                belongs if name else None,
                shared=session.shared,
                session_id=session.id,
                given=given,
            )
    return found


def _now_us() -> int:
    return time.time_ns() // 1000
