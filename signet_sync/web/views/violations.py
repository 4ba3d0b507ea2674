"""Shows problems with files: sealed ones that changed or disappeared, with remedies; others that are not indexed."""

from __future__ import annotations

from typing import Any

from signet_sync.entities import store as entities_store
from signet_sync.formats.filename import carried_token
from signet_sync.integrity.report import hint_for
from signet_sync.pages import conflict_copies
from signet_sync.storage.database.connection import Database
from signet_sync.sync.read_only import reading
from signet_sync.sync.store import counts, sessions, violations
from signet_sync.web.markdown import LinkTarget
from signet_sync.web.request import Portion, View, ViewRequest, WebPage, portion

SEALED = 60  # sealed files on a page
SHOWN = 8  # files of one code, unless that code is requested
OF_CODE = 200

# Problems that a person has to solve come first.
_TONES = {"invalid": "bad", "violation": "bad", "tombstoned": "warn", "ignored": "warn"}
_ORDER = [*_TONES]
_COPY = ("ignored", "conflict-copy")
# Not a problem.
_LEFT_ALONE = ("foreign-name", "temporary")


def problems(request: ViewRequest) -> WebPage:
    """Shows all problems; with `code` every file of one code."""
    code = request.query.get("code")
    with reading(request.site.place) as database:
        batches = [] if code else violations.batches(database, request.agent)[::-1]
        groups = [_group(database, request, one, code) for one in _groups(database, request) if code in (None, one[1])]
        drifted = len(entities_store.drift(database, request.agent))
        led = _led(database, request, [path for group in groups for path, _ in group["files"].rows])
    found = [{"found_at": batch.found_at, **one._asdict()} for batch in batches for one in batch.files]
    data = {
        "sealed": portion(found, request.query.get("page"), SEALED),
        "groups": groups,
        "led": led,
        "others": sum(group["files"].total for group in groups),
        "code": code,
        "drifted": drifted,
    }
    return WebPage("violations", "Problems", data)


def _led(database: Database, request: ViewRequest, paths: list[str]) -> dict[str, LinkTarget]:
    """Returns where files that are not indexed can be read: on the page of their session."""
    found = {}
    for path in paths:
        token = carried_token(path)
        held = sessions.find(database, request.agent, token) if token else []
        if len(held) == 1:
            given = {"token": held[0].session_token, "session": held[0].session_id, "path": path}
            found[path] = LinkTarget("session", given)
    return found


def _groups(database: Database, request: ViewRequest) -> list[tuple[str, str, int, str, list[tuple[str, str]]]]:
    """Returns verdict, code, number, common message and files without a row of what is not indexed, by urgency.

    They are files of the agent, and those whose agent is unknown.
    """
    copies = [
        (one.path, f"a copy of {one.original}, with text that is not in it")
        for one in conflict_copies.find(request.site.place.root)
        if one.agent_id == request.agent
    ]
    known = {
        (one.verdict, one.code): (one.files, one.message)
        for one in counts.problem_groups(database, request.agent, violations=False)
    }
    if copies:
        known[_COPY] = known.get(_COPY, (0, ""))[0], ""
    found = [(*key, *value, copies if key == _COPY else []) for key, value in known.items()]
    return sorted(found, key=lambda one: (one[1] in _LEFT_ALONE, _ORDER.index(one[0]), one[1]))


def _group(
    database: Database,
    request: ViewRequest,
    found: tuple[str, str, int, str, list[tuple[str, str]]],
    wanted: str | None,
) -> dict[str, Any]:
    verdict, code, files, message, more = found
    page, size = (request.query.get("page"), OF_CODE) if wanted else (None, SHOWN)
    chosen = portion(range(files + len(more)), page, size)
    rows = counts.problems_of(database, request.agent, verdict, code, chosen.first, size)
    rows += more[max(chosen.first - files, 0) :]
    alone = code in _LEFT_ALONE
    return {
        "verdict": verdict,
        "code": code,
        "tone": "quiet" if alone else _TONES[verdict],
        "message": message,
        "hint": "" if alone else hint_for(code, "PATH"),
        "files": Portion(rows[:size], chosen.number, chosen.first, chosen.total),
    }


VIEWS: list[tuple[str, str, View]] = [("/violations", "violations", problems)]
