"""Composes what a hook prints: at a session's start, on a prompt, before an edit or command, after a failure.

A harness waits for it, so only what is needed is imported. What a session got is recorded
(`capture.injections`), so that it gets nothing twice.
"""

from __future__ import annotations

import os
import re
import time
from contextlib import AbstractContextManager, contextmanager, suppress
from itertools import accumulate
from typing import TYPE_CHECKING

from signet_sync.capture import injections
from signet_sync.capture.harnesses import registry
from signet_sync.capture.hook import REQUEST
from signet_sync.capture.injections import HookSession, Injection, Injections, Moment
from signet_sync.errors import DatabaseError, WorkspaceError
from signet_sync.formats.filename import tombstone_name
from signet_sync.formats.handle import handle
from signet_sync.formats.lazy_pattern import late
from signet_sync.formats.managed_block import neutral
from signet_sync.formats.paths import RUNNING, TOMBSTONES, head_page
from signet_sync.formats.timestamps import short_day
from signet_sync.host.repository import resolve, small_text
from signet_sync.memories.score import day_start
from signet_sync.pages import context
from signet_sync.pages.board import SessionContext
from signet_sync.pages.context import INJECTED_BUDGET, PromptHit
from signet_sync.pages.sections import StatementView, plain
from signet_sync.text.token_estimate import estimate_tokens

if TYPE_CHECKING:
    from collections.abc import Iterator

    from signet_sync.pages.board import Size
    from signet_sync.storage.database.connection import Database

RESUMED = "resume"  # the only start after which a session still has what it got before
_LONGEST = 1.0  # seconds that the search at a prompt may take
_PATIENCE_MS = 500  # while the index is being written
_FILE_LIMIT = 64 * 1024  # bytes of a harness's own instructions


def answer_start(session: HookSession, source: str | None, budget: int) -> Injection:
    """Returns the context of a session's start, marked as data; "" after a resume, where it still has what it got.

    In some harnesses it returns "", and the session gets it at its next prompt.
    """
    if source == RESUMED and session.id and _read_record(session).at_start:
        return Injection("")
    if registry.facts(session.harness).starts_at_prompts and session.id:
        with suppress(OSError, WorkspaceError):  # if it cannot be recorded, the session gets it now
            with _record(session) as record:
                record.due = True
            return Injection("")
    return _begin_context(session, budget)[0]


def answer_prompt(session: HookSession, words: str, budget: int) -> Injection:
    """Returns what memory holds on a prompt, marked as data; "" if it holds nothing worth it, or gave it before.

    With "" for words, and otherwise before that, what the session did not get at its start. `record` raises `OSError`
    if it cannot be recorded: the same would come with each prompt.
    """
    if not session.id:
        return Injection("")
    held = _read_record(session)
    begun, given = Injection(""), held.ids
    if held.due:
        begun, given = _begin_context(session, budget)
    hits = _find_hits(session, words, given) if words else []

    def say(without: set[str]) -> tuple[str, list[PromptHit]]:
        some = [hit for hit in hits if hit.id not in without]
        limit = INJECTED_BUDGET - estimate_tokens(context.wrap("-", session.root, session.program))
        text, kept = context.lay_out_hits(some, limit, estimate_tokens)
        return "\n".join(filter(None, [begun.text, context.wrap(text, session.root, session.program)])), kept

    def record() -> str:
        begun.record()
        with _record(session) as record:
            text, kept = say(record.ids - given)
            record.at_prompts += [hit.id for hit in kept]
            record.characters += len(text)
        return text

    return Injection(say(set())[0], record) if hits else begun


def _begin_context(session: HookSession, budget: int) -> tuple[Injection, set[str]]:
    """Returns the context of a start, and the ids in it."""
    request = REQUEST if session.hands_over() else ""
    composed = _compose_context(session, budget, request)
    text = context.wrap(composed.text, session.root, session.program, request)

    def record() -> str:
        # If it cannot be recorded now, the session may get something twice.
        with suppress(OSError, WorkspaceError):
            if session.id:
                injections.expire(session.folder, time.time())
                with _record(session) as record:
                    record.due, record.at_start, record.at_prompts = False, [*composed.ids], []
                    record.characters += len(text)
        return text

    return Injection(text, record), {one for one in composed.ids if one}


def _read_record(session: HookSession) -> Injections:
    held = injections.read(session.folder, session.agent_id, session.id)
    return held or Injections(session.agent_id, session.harness)


def _record(session: HookSession) -> AbstractContextManager[Injections]:
    """Gives the record of what a session got, to change it. Raises `OSError`."""
    return injections.update_record(session.folder, session.agent_id, session.harness, session.id)


def _compose_context(session: HookSession, budget: int, request: str) -> SessionContext:
    """Returns what a session gets at its start; nothing of memory while a removal is unfinished."""
    room = context.room(session.root, session.program, request)
    budget = min(budget, room)
    made, pages = SessionContext("", (), ()), [] if session.shared else [head_page(session.agent_id)]

    def size(line: str) -> int:
        # A harness limits characters as well: those of the budget's share of the room count as a token.
        return max(estimate_tokens(line), -(-len(line) * budget // room))

    try:
        if not session.shared:
            made, pages = _tell_project(session, budget, size), []
    except RemovalUnfinished:
        pages = []
    except NoIndex:
        pass  # MEMORY.md takes its place
    return context.add_files(made, session.root, pages, budget, size, _read_harness_texts(session))


def _read_harness_texts(session: HookSession) -> set[str]:
    """Returns the texts that the harness gives the session anyway: of its home and the repository."""
    facts, told = registry.facts(session.harness), set[str]()
    places = [*facts.homes(os.environ)]
    if folder := session.project:
        found = resolve(folder)
        above = f"/{found.path}".count("/") if found is not None and found.path else 0
        places += accumulate([folder, *[""] * above], lambda place, _: os.path.dirname(place))
    for place in places:
        for name in facts.instructions:
            with suppress(OSError, ValueError):
                told.add((small_text(os.path.join(place, name), _FILE_LIMIT) or "").strip())
    return told


def _tell_project(session: HookSession, budget: int, size: Size) -> SessionContext:
    """Returns the text on the project at hand. Raises `NoIndex`.

    What the session says now is left out: it knows that, for no compaction has taken it.
    """
    with _readable_index(session) as database:
        from signet_sync.pages.at_hand import marks
        from signet_sync.pages.project_context import project_text
        from signet_sync.pages.store import views

        name, belongs = context.name_project(session.project)
        now_us = time.time_ns() // 1000
        seen = views.project_inputs(database, session.agent_id, now_us, belongs, session.project)
        deeds = views.deeds(database, session.agent_id, [one.id for one in seen.statements])
    stale = marks(session.project, seen.statements, deeds)
    own = RUNNING + session.id
    return project_text(seen, name, now_us, budget, size, skip=lambda line: line.path == own, marks=stale)


def _find_hits(session: HookSession, words: str, given: set[str]) -> list[PromptHit]:
    found: list[PromptHit] = []
    with suppress(NoIndex), _readable_index(session, _LONGEST) as database:
        from signet_sync.pages.prompt_context import choose_hits

        name, belongs = context.name_project(session.project)
        place = belongs if name else None
        shared, session_id = session.shared, session.id
        found = choose_hits(database, session.agent_id, words, place, shared=shared, session_id=session_id, given=given)
    return found


# ── at an edit, a command or a failure ──

MOMENT_BUDGET = 140  # tokens, with the marks around it
_LONGEST_MOMENT = 0.02  # seconds that the index may take
_TEXT = 240  # characters of a statement

# A name that a file of many folders has says nothing without its folder.
_DISTINCT = late(r"[\w]+[_-][\w.]+|[a-z]+[A-Z]\w+|\w{13,}")
_QUOTED = late(r"\"([^\"]{4,200})\"")
_PARTS = late(r"&&|\|\||;|\n|\|")
_LOOKS = frozenset("ls cat cd echo grep rg find sed head tail pwd wc which git rm mv cp mkdir touch sleep true".split())
# What names an error and nothing else: ERR_PNPM_UNEXPECTED_STORE, TS2352, E0308.
_ERROR = late(r"\b[A-Z][A-Z0-9]+(?:_[A-Z0-9]+)+\b|\b(?:TS|SC|E|CS|C)\d{3,5}\b")
_QUOTE = 14  # characters of a statement's quote that an error has


def answer_moment(session: HookSession, moment: Moment) -> Injection:
    """Returns what is known of exactly this file, command or error, between marks; "" for nothing.

    A standing statement or a dead end has to name it; each once a session.
    """
    if not session.id or session.shared or not session.project:
        return Injection("")
    from signet_sync.pages.at_hand import marks
    from signet_sync.pages.store import views
    from signet_sync.sync.store import sessions

    given, now_us = _read_record(session).ids, time.time_ns() // 1000
    mark, view = "", None
    with suppress(NoIndex), _readable_index(session, _LONGEST_MOMENT) as database:
        name, belongs = context.name_project(session.project)
        found = views.list_standing(database, session.agent_id, now_us, belongs) if name else []
        of_paths = sessions.projects(database, {one.path for one in found})
        for one in found:
            itself = one.path == RUNNING + session.id or of_paths.get(one.path, ("",))[0] == session.id
            if one.id not in given and not itself and names(one, moment):
                mark = marks(session.project, [one], views.deeds(database, session.agent_id, [one.id])).get(one.id, "")
                view = one
                break
    if view is None:
        return Injection("")
    who = "" if view.kind == "tried" else f" ({view.speaker})"
    line = f"- {view.kind}{who}, {short_day(view.latest_us, day_start(now_us))}: {plain(view.text, _TEXT)}{mark}"
    text = context.wrap(neutral(f"{line} {handle(view.id)}"), session.root, session.program)
    if estimate_tokens(text) > MOMENT_BUDGET:
        return Injection("")

    def record() -> str:
        with suppress(OSError), _record(session) as written:
            written.at_prompts.append(view.id)
            written.characters += len(text)
        return text

    return Injection(text, record)


def names(view: StatementView, moment: Moment) -> bool:
    """Returns whether a statement names exactly the file, the command or the error of a moment."""
    if moment.error and _names_error(view.text, moment):
        return True
    tried = _QUOTED.match(view.text) if view.kind == "tried" else None
    if moment.command:
        return _names_command(view.text, moment.command, tried[1] if tried else None)
    if tried:
        return False  # it is of a command
    from signet_sync.pages.at_hand import PATH

    named = PATH.findall(view.text)[: 1 if view.kind == "decision" else None]  # others a question names in passing
    return any(_is_file(one, path) for path in moment.path.split(", ") if path for one in named)


def _is_file(name: str, path: str) -> bool:
    name = name.rstrip(".").removeprefix("./")
    if "/" in name.strip("/"):
        return f"/{path}".endswith(f"/{name.lstrip('~/')}")
    return _DISTINCT.match(name) is not None and os.path.basename(path) == name


def _names_command(text: str, command: str, tried: str | None) -> bool:
    """Returns whether a dead end is of a part of a command line; of any other statement whether it has its words."""
    from signet_sync.digest.statements import core_of

    parts = set(map(core_of, [command, *_PARTS.split(command)])) - {""}
    if tried:
        return tried in parts
    said = [part for part in parts if len(part.split()) > (2 if part.split()[0] in _LOOKS else 1)]
    return any(re.search(rf"(?<![\w./-]){re.escape(part)}(?![\w/-])", text) for part in said)


def _names_error(text: str, moment: Moment) -> bool:
    codes = set(_ERROR.findall(text))
    if codes and codes & set(_ERROR.findall(moment.error)):
        return True
    return any(len(quote) >= _QUOTE and quote in moment.error for quote in _QUOTED.findall(text))


# ── the index ──


class NoIndex(Exception):
    """There is no index that can be read now."""


class RemovalUnfinished(NoIndex):
    """A removal has begun and not ended: neither the index nor a page may be shown."""


@contextmanager
def _readable_index(session: HookSession, seconds: float | None = None) -> Iterator[Database]:
    """Opens a session's index read-only, with little patience; a query may take so many `seconds`.

    Raises `NoIndex`, also where the index fails inside the block.
    """
    if not os.path.exists(session.database):
        raise NoIndex
    import apsw  # only if there is an index

    from signet_sync.storage.database.connection import Database  # as above
    from signet_sync.sync.store.sessions import is_half_enforced  # as above

    try:
        database = Database(session.database, readonly=True, wait_ms=_PATIENCE_MS)
    except (FileNotFoundError, DatabaseError):
        raise NoIndex from None
    try:
        if is_half_enforced(database) or _has_new_tombstones(database, session.root):
            raise RemovalUnfinished
        if seconds is not None:
            until = time.monotonic() + seconds
            database.connection.set_progress_handler(lambda: time.monotonic() > until, 20_000)
        yield database
    except (apsw.Error, DatabaseError):
        raise NoIndex from None
    finally:
        database.connection.close()


def _has_new_tombstones(database: Database, root: str) -> bool:
    """Returns whether a tombstone lies in the workspace that no pass has read yet."""
    try:
        names = {f"{TOMBSTONES}/{name}" for name in os.listdir(os.path.join(root, TOMBSTONES)) if tombstone_name(name)}
    except OSError:
        return False
    from signet_sync.sync.store.sessions import verdicts  # as above

    return len(verdicts(database, [*names])) < len(names)
