"""Shows problems with files: sealed ones that changed or disappeared, with remedies; others that are not indexed."""

from __future__ import annotations

from typing import Any

from signet_sync.entities import store as entities_store
from signet_sync.formats.filename import find_carried_token
from signet_sync.integrity.report import hint_for
from signet_sync.pages import conflict_copies
from signet_sync.storage.database.connection import Database
from signet_sync.sync.read_only import reading
from signet_sync.sync.store import counts, sessions, violations
from signet_sync.web.markdown import LinkTarget
from signet_sync.web.request import View, ViewRequest, WebPage, portion

SEALED = 60  # sealed files on a page
SHOWN = 8  # files of one code, unless that code is requested
OF_CODE = 200

# Problems that a person has to solve come first.
_TONES = {"invalid": "bad", "violation": "bad", "tombstoned": "warn", "ignored": "warn"}
_ORDER = [*_TONES]
# Not a problem.
_LEFT_ALONE = ("foreign-name", "temporary")


def problems(request: ViewRequest) -> WebPage:
    """Shows all problems; with `code` every file of one code."""
    code = request.query.get("code")
    with reading(request.site.place) as database:
        batches = violations.batches(database, request.agent)[::-1]
        groups = _groups(request, database, {one.path for batch in batches for one in batch.files}, code)
        drifted = len(entities_store.drift(database, request.agent))
        led = _find_links(database, request, [path for group in groups for path, _ in group["files"].rows])
    found = [{"found_at": batch.found_at, **one._asdict()} for batch in batches for one in batch.files if not code]
    data = {
        "sealed": portion(found, request.query.get("page"), SEALED),
        "groups": groups,
        "led": led,
        "others": sum(group["files"].total for group in groups),
        "code": code,
        "drifted": drifted,
    }
    return WebPage("violations", "Problems", data)


def _find_links(database: Database, request: ViewRequest, paths: list[str]) -> dict[str, LinkTarget]:
    """Returns where files that are not indexed can be read: on the page of their session."""
    found = {}
    for path in paths:
        token = find_carried_token(path)
        held = sessions.find(database, request.agent, token) if token else []
        if len(held) == 1:
            given = {"token": held[0].session_token, "session": held[0].session_id, "path": path}
            found[path] = LinkTarget("session", given)
    return found


def _groups(request: ViewRequest, database: Database, sealed: set[str], wanted: str | None) -> list[dict[str, Any]]:
    """Returns what is not indexed by its code, by urgency: files of the agent, and those whose agent is unknown."""
    found: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for one in counts.problems(database):
        if one.agent_id in (None, request.agent) and one.path not in sealed:
            found.setdefault((one.verdict, one.code), []).append((one.path, one.message))
    # Copies of pages, which no row has.
    for copy in conflict_copies.find(request.site.place.root):
        if copy.agent_id == request.agent:
            said = f"a copy of {copy.original}, with text that is not in it"
            found.setdefault(("ignored", "conflict-copy"), []).append((copy.path, said))
    groups = []
    for (verdict, code), rows in found.items():
        if wanted not in (None, code):
            continue
        alone = code in _LEFT_ALONE
        messages = {message for _, message in rows}
        shown = portion(rows, request.query.get("page") if wanted else None, OF_CODE if wanted else SHOWN)
        groups.append(
            {
                "verdict": verdict,
                "code": code,
                "tone": "quiet" if alone else _TONES[verdict],
                "message": messages.pop() if len(messages) == 1 else "",
                "hint": "" if alone else hint_for(code, "PATH"),
                "files": shown,
            }
        )
    return sorted(groups, key=lambda one: (one["code"] in _LEFT_ALONE, _ORDER.index(one["verdict"]), one["code"]))


VIEWS: list[tuple[str, str, View]] = [("/violations", "violations", problems)]
