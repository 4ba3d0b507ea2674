"""Returns what a session gets at its start, what it got, and a handoff."""

import os
from collections.abc import Iterator
from typing import Any

from signet_sync.capture import injections
from signet_sync.errors import DatabaseError, UsageError
from signet_sync.formats.handle import handle
from signet_sync.formats.managed_block import neutral
from signet_sync.formats.paths import display, head_page
from signet_sync.formats.timestamps import day_of, iso
from signet_sync.pages.board import SessionContext
from signet_sync.pages.context import add_files, name_project, wrap
from signet_sync.pages.project_context import project_text
from signet_sync.pages.sections import plain
from signet_sync.pages.store import views
from signet_sync.storage.database.connection import Database
from signet_sync.storage.locations import now_us, write_program
from signet_sync.sync.read_only import IndexPlace, open_index
from signet_sync.sync.store import sessions
from signet_sync.text.phrases import QUOTED, QuotedSession
from signet_sync.text.sentences import drop_rest
from signet_sync.text.token_estimate import estimate_tokens

Document = dict[str, Any]

_PASSAGE = 400  # characters of a transcript

# Of a handoff: tokens, with our marks; characters of the outcome and of other lines; the last commits and pull requests
# of a session, and the files with most edits.
HANDOFF_LIMIT = 1_500
_OUTCOME, _LINE = 400, 160
_COMMITS, _REQUESTS, _FILES = 8, 4, 20


def compose_at_start(
    place: IndexPlace,
    agent_id: str,
    *,
    shared: bool = False,
    budget: int | None = None,
    project: str | None = None,
    called: str | None = None,
    now: int | None = None,
) -> Document:
    """Returns the document of `context --json` on the project at a path, and what is said beside it.

    `called` is a recorded project's name, path or origin, which comes before the path.
    `now` is in microseconds since 1970 (default: the present). With `shared` the identity files only. In at most
    `budget` tokens (else the setting). If the index cannot be read, MEMORY.md takes the place of what is made of it.
    Raises `UsageError` for a project that is not recorded, `WorkspaceError`.
    """
    trouble, made, pages = [], SessionContext("", (), ()), [] if shared else [head_page(agent_id)]
    limit = place.settings().context_budget_tokens if budget is None else budget
    # Opening the index also finishes a removal that was interrupted.
    try:
        with open_index(place) as database:
            if not shared:
                name, belongs = name_project(project)
                if called is not None and (project is None or _find_projects(database, agent_id, called, project)):
                    chosen = _require_projects(database, agent_id, called, project)
                    name, belongs, project = min(chosen), chosen.__contains__, min(chosen)
                instant = now_us() if now is None else now
                seen = views.project_inputs(database, agent_id, instant, belongs, project)
                made, pages = project_text(seen, name, instant, limit, estimate_tokens), []
    except DatabaseError as error:
        if os.path.exists(place.database):
            trouble = [f"the index cannot be read: {error.message}"]
    composed = add_files(made, place.root, pages, limit, estimate_tokens)
    context = {
        "agent_id": agent_id,
        "scope": "shared" if shared else "main",
        "tokens": estimate_tokens(composed.text),
        "text": composed.text,
        "sources": composed.sources,
    }
    return {"context": context, "troubles": [*trouble, *composed.troubles]}


def last(place: IndexPlace, agent_id: str, session_id: str) -> Document:
    """Returns the document of `context --last --json`: what hooks injected into a session, in today's words.

    It is the one whose id is given (of one with files a beginning is enough), else the newest. The text of what is no
    longer there is None; `files` and `quotes` count whole files and quotes. Raises `UsageError` if nothing is recorded.
    """
    from signet_sync.graph.store import neighbours  # slow imports, not needed at a session's start
    from signet_sync.pages.prompt_context import words_of

    folder = place.state()
    newest = [one for one in injections.list_changed(folder, 0) if one.agent_id == agent_id] if not session_id else []
    with open_index(place) as database:
        record = injections.read(folder, agent_id, session_id) or max(newest, key=lambda one: one.at, default=None)
        if record is None and session_id:
            session_id = sessions.one(database, agent_id, session_id).session_id
            record = injections.read(folder, agent_id, session_id)
        if record is None:
            what = f"nothing was told yet to {f'session {display(session_id)}' if session_id else f'agent {agent_id}'}"
            hint = "with hooks a session is told something at its start, and that is known for 30 days: hooks status"
            raise UsageError(what, hint=hint, code="unknown-session")
        texts = words_of(database, agent_id, record.ids)
        for one in record.at_prompts:
            if one.startswith("k-") and (chunk := neighbours.node(database, agent_id, one)) is not None:
                texts[one] = neighbours.node_text(database, chunk)[:_PASSAGE]
    start = dict.fromkeys(one for one in record.at_start if one in record.ids)
    return {
        "session_id": session_id or None,
        "told_at": iso(int(record.at * 1e6)),
        "files": sum(not one for one in record.at_start),
        "quotes": sum(one.startswith(QUOTED) for one in record.at_start),
        "start": [{"id": one, "text": texts.get(one)} for one in start],
        "prompts": [{"id": one, "text": texts.get(one)} for one in record.at_prompts],
    }


def handoff(
    place: IndexPlace, agent_id: str, *, session: str | None, project: str | None, folder: str | None, now_us: int
) -> Document:
    """Returns the text on a session, or on the newest one of a project (name, path or origin), for `handoff --json`.

    `folder` is where work goes on. Raises `UsageError` if there is no such session or project.
    """
    from signet_sync.digest.quotes import words_of  # slow imports, not needed at a session's start
    from signet_sync.graph.store import nodes
    from signet_sync.pages.at_hand import SESSIONS
    from signet_sync.recall.open_session import describe_one, transcripts
    from signet_sync.statements import store as statements_store
    from signet_sync.sync.store.texts import text_at

    with open_index(place) as database:
        if session is not None:
            ref = sessions.one(database, agent_id, session)
            at = nodes.place_of(database, ref[:3])
            thread = nodes.summary_of(database, agent_id, at.thread_id) if at is not None else None
            of = thread.project if thread is not None else None
            seen = views.project_inputs(database, agent_id, now_us, lambda one: bool(one) and one == of)
            # Now, because quotes are stored of recent sessions only.
            said = words_of([text_at(database, path) for path in transcripts(database, ref)]).quotes
            quoted = QuotedSession(at.latest_us if at is not None else now_us, said) if said else None
            seen = seen._replace(quoted=quoted, earlier=(), others=())
        else:
            own = _require_projects(database, agent_id, project or "", folder)
            seen = views.project_inputs(database, agent_id, now_us, own.__contains__, folder)
            newest = nodes.newest_sessions(database, agent_id, seen.threads[0].id, SESSIONS)
            at = next((one for one in newest if one.node_id == seen.threads[0].newest), newest[0])
            ref = sessions.one(database, agent_id, at.session_id)
        told = describe_one(database, ref)
        if at is not None:
            told["status"] = statements_store.read_status(database, agent_id, at.node_id, told["status"])
    program = write_program(place.root, agent_id)
    day, itself = (day_of(at.latest_us), at.node_id) if at is not None else ("", "-")
    head = [neutral(line) for line in _list_deeds(told, day, f" {handle(itself)}" if day else "")]
    left = HANDOFF_LIMIT - sum(estimate_tokens(line) + 1 for line in (wrap("-", place.root, program), *head))
    name = seen.threads[0].project or "" if seen.threads else ""
    rest = project_text(seen, name, now_us, left, estimate_tokens, skip=lambda line: line.session == itself).text
    text = wrap("\n".join(filter(None, [*head, rest])), place.root, program)
    known = {name: told[name] for name in ("agent_id", "session_id", "session_token", "project", "harness")}
    return {**known, "tokens": estimate_tokens(text), "text": text}


def _list_deeds(told: Document, day: str, cited: str) -> Iterator[str]:
    """Yields the lines of what a session came to and did."""
    when = f", {day}" if day else ""
    yield f"=== Handed over: session {told['session_token']}{when}, {told['status'] or 'open'} ==="
    # What it left is below, as long as it is open.
    yield f"{plain(drop_rest(told['sentence']), _OUTCOME)}{cited}"
    for one in told["commits"][-_COMMITS:]:
        name = f"commit {one['commit']}".rstrip()  # git may have printed no name
        yield f"- {name}: {plain(one['subject'], _LINE)}"
    for one in told["pull_requests"][-_REQUESTS:]:
        yield f"- pull request #{one['number']}: {plain(one['title'], _LINE)}{' (merged)' if one['merged'] else ''}"
    if files := sorted(told["files"], key=lambda one: -one["edits"]):
        more = f" and {len(files) - _FILES} more" if len(files) > _FILES else ""
        yield f"- changed: {', '.join(plain(one['path'], _LINE) for one in files[:_FILES])}{more}"


def _require_projects(database: Database, agent_id: str, project: str, path: str | None) -> set[str]:
    """Returns the recorded projects that a name, path or origin means. Raises `UsageError` if there are none."""
    chosen = _find_projects(database, agent_id, project, path)
    if not chosen:
        known = views.projects(database, agent_id)
        hint = f"known: {', '.join(map(display, known[:8])) or 'none yet'}"
        raise UsageError(f"no session belongs to the project {display(project)}", hint=hint, code="unknown-project")
    return chosen


def _find_projects(database: Database, agent_id: str, project: str, path: str | None) -> set[str]:
    """Returns the projects that a name means, by the last parts of an identity, and those at a path."""
    _, is_at = name_project(path)
    end = f"/{project.rstrip('/').casefold()}"
    known = views.projects(database, agent_id)
    return {one for one in known if f"/{one.rstrip('/').casefold()}".endswith(end) or is_at(one)}
