"""Composes what another agent needs to go on with a session: how it stands, what was done, what holds; with handles."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from signet_sync.digest.quotes import words_of
from signet_sync.formats.handle import handle
from signet_sync.formats.managed_block import neutral
from signet_sync.formats.timestamps import day_of
from signet_sync.graph.store import nodes
from signet_sync.graph.threads import ThreadSession
from signet_sync.pages.context import wrap
from signet_sync.pages.operations import projects_called
from signet_sync.pages.project_context import project_text
from signet_sync.pages.sections import plain
from signet_sync.pages.store.branches import SESSIONS
from signet_sync.pages.store.project_inputs import project_inputs
from signet_sync.recall.open_session import describe_one, transcripts
from signet_sync.statements.store import rows
from signet_sync.storage.locations import write_program
from signet_sync.sync.read_only import IndexPlace, reading
from signet_sync.sync.store import sessions
from signet_sync.sync.store.texts import text_at
from signet_sync.text.phrases import QuotedSession
from signet_sync.text.sentences import drop_rest
from signet_sync.text.token_estimate import estimate_tokens

LIMIT = 1_500  # tokens, with our marks
_OUTCOME, _LINE = 400, 160  # characters
_COMMITS, _REQUESTS, _FILES = 8, 4, 20  # the last ones of a session, and its files with most edits


def handoff(
    place: IndexPlace, agent_id: str, *, session: str | None, project: str | None, folder: str | None, now_us: int
) -> dict[str, Any]:
    """Returns the text on a session, or on the newest one of a project (name, path or origin), for `handoff --json`.

    `folder` is where work goes on. Raises `UsageError` if there is no such session or project.
    """
    with reading(place) as database:
        own = None if session is not None else projects_called(database, agent_id, project or "", folder)
        if own is None:
            ref = sessions.one(database, agent_id, session or "")
            at = nodes.place_of(database, ref[:3])
            thread = nodes.summary_of(database, agent_id, at.thread_id) if at is not None else None
            of = thread.project if thread is not None else None
            seen = project_inputs(database, agent_id, now_us, lambda one: bool(one) and one == of)
            # Now, because quotes are stored of recent sessions only.
            said = words_of([text_at(database, path) for path in transcripts(database, ref)]).quotes
            quoted = (QuotedSession(at.latest_us if at is not None else now_us, said),) if said else ()
            seen = seen._replace(quoted=quoted, earlier=(), others=())
        else:
            seen = project_inputs(database, agent_id, now_us, own.__contains__, folder)
            newest = nodes.newest_sessions(database, agent_id, seen.threads[0].id, SESSIONS)
            at = next((one for one in newest if one.node_id == seen.threads[0].newest), newest[0])
            ref = sessions.one(database, agent_id, at.session_id)
        document = describe_one(database, ref)
        if at is not None:
            document["status"] = rows.read_status(database, agent_id, at.node_id, document["status"])
    program = write_program(place.root, agent_id)
    head = [neutral(line) for line in _deeds(document, at)]
    left = LIMIT - sum(estimate_tokens(line) + 1 for line in (wrap("-", place.root, program), *head))
    name, itself = seen.threads[0].project or "" if seen.threads else "", at.node_id if at is not None else "-"
    rest = project_text(seen, name, now_us, left, estimate_tokens, skip=lambda line: line.session == itself).text
    text = wrap("\n".join(filter(None, [*head, rest])), place.root, program)
    known = {name: document[name] for name in ("agent_id", "session_id", "session_token", "project", "harness")}
    return {**known, "tokens": estimate_tokens(text), "text": text}


def _deeds(document: dict[str, Any], at: ThreadSession | None) -> Iterator[str]:
    """Yields the lines of what a session came to and did."""
    day = f", {day_of(at.latest_us)}" if at is not None else ""
    cited = f" {handle(at.node_id)}" if at is not None else ""
    yield f"=== Handed over: session {document['session_token']}{day}, {document['status'] or 'open'} ==="
    # What it left is below, as long as it is open.
    yield f"{plain(drop_rest(document['sentence']), _OUTCOME)}{cited}"
    for one in document["commits"][-_COMMITS:]:
        name = f"commit {one['commit']}".rstrip()  # git may have printed no name
        yield f"- {name}: {plain(one['subject'], _LINE)}"
    for one in document["pull_requests"][-_REQUESTS:]:
        yield f"- pull request #{one['number']}: {plain(one['title'], _LINE)}{' (merged)' if one['merged'] else ''}"
    files = sorted(document["files"], key=lambda one: -one["edits"])
    if files:
        more = f" and {len(files) - _FILES} more" if len(files) > _FILES else ""
        yield f"- changed: {', '.join(plain(one['path'], _LINE) for one in files[:_FILES])}{more}"
