"""Shows the overview (before there is any, how to begin), MEMORY.md, settings, and problems with files."""

import os
from itertools import groupby
from typing import Any

from signet_sync.admin.status import Advice, advice, status_document
from signet_sync.entities import store as entities_store
from signet_sync.errors import SignetSyncError
from signet_sync.formats.paths import head_page
from signet_sync.formats.snapshot import PAGE_LIMIT, Found
from signet_sync.formats.timestamps import local_day
from signet_sync.integrity.report import hint_for
from signet_sync.pages import conflict_copies
from signet_sync.pages.context import decode_beginning
from signet_sync.recall.store import session_list
from signet_sync.settings import model
from signet_sync.storage import files
from signet_sync.storage.database.connection import Database
from signet_sync.sync.index_records import PROBLEMS
from signet_sync.sync.read_only import open_index
from signet_sync.sync.store import counts, violations
from signet_sync.text.sanitizer import sanitize_line, sanitize_transcript_v2
from signet_sync.web.link_targets import PageSection, sections, targets
from signet_sync.web.lists import list_running_sessions
from signet_sync.web.request import ViewRequest, WebPage, portion, tone_of

LATEST = 12  # sessions
_TOP = 2  # level of the headings that need no other to be understood
HEAD = 4  # lines of each section of MEMORY.md
PAGE = 400_000  # bytes of MEMORY.md
_LEDGER = "Session Ledger"  # the beginning of the heading after which MEMORY.md lists what the overview shows elsewhere
SEALED = 60  # sealed files on a page
SHOWN = 20  # files of one code; the command `check` lists all

# Problems that a person has to solve come first.
_TONES = {"invalid": "bad", "violation": "bad", "tombstoned": "warn", "ignored": "warn"}
_ORDER = [*_TONES]
# Not a problem.
_LEFT_ALONE = ("foreign-name", "temporary")


def show(request: ViewRequest) -> WebPage:
    """Shows the first page; it works in any state of the workspace, and shows what to do."""
    status = status_document(request.site.place)
    data: dict[str, Any] = {
        "status": status,
        "tone": tone_of(status["state"], running=status["running"], responding=status["responding"]),
        "advice": [
            (one, request.site.place.command_line(one.words) if one.words else "") for one in _advice(request, status)
        ],
        "held": None,
        "head": [],
        "targets": {},
    }
    if status["readable"]:
        data["head"] = _head(read_page(request))
        with open_index(request.site.place) as database:
            data["held"] = _describe_held(database, request)
            data["targets"] = targets(database, request.agent, data["head"])
    return WebPage("overview", "Overview", data)


def welcome(request: ViewRequest) -> WebPage | None:
    """Returns the overview in place of any other view while there is nothing to show; None once there is an index."""
    started = os.path.isdir(request.site.place.root) and os.path.exists(request.site.place.database)
    return None if started else show(request)


def _advice(request: ViewRequest, status: dict[str, Any]) -> list[Advice]:
    """Returns what a person should do now, most important first."""
    found = []
    if status["trouble"]:
        message, _, remedy = status["trouble"].partition(": ")
        exists = os.path.lexists(request.site.place.root)
        words = "setup" if not exists else "" if os.path.exists(status["database"]) else "reindex"
        found.append(Advice(not status["readable"], message, remedy, words))
    found += advice(status)
    if status["state"] == "stopped" and status["readable"] and not status["stale_heartbeat"]:
        remedy = "the command runs one in the foreground; signet-sync service install starts one with every login"
        found.append(Advice(False, "no agent is running, so changes in the vault are not indexed", remedy, "run"))
    intake = status["intake"]
    if intake["given_up"]:
        message = f"from harnesses: {intake['given_up']} given up"
        found.append(Advice(False, message, "see the log", "logs intake"))
    return found


def _describe_held(database: Database, request: ViewRequest) -> dict[str, Any]:
    """Returns what the index contains of the agent."""
    sessions, artifacts = counts.counts_of(database, request.agent)
    newest, _ = session_list.page(database, request.agent, limit=LATEST)
    by_day = groupby(newest, key=lambda entry: local_day(entry.membership_us))
    mine = [one for one in counts.problems(database) if one.agent_id in (None, request.agent)]
    today = local_day(request.now_us)
    return {
        "sessions": sessions,
        "artifacts": artifacts,
        "days": [("Today" if day == today else day, list(entries)) for day, entries in by_day],
        "running": list_running_sessions(database, request.agent)[:LATEST],
        "problems": sum(one.verdict in PROBLEMS for one in mine),
    }


def read_page(request: ViewRequest) -> list[PageSection]:
    """Returns the sections of the agent's MEMORY.md; empty if there is none."""
    try:
        with open_index(request.site.place):  # which finishes a removal that was cut off
            found = files.read(request.site.place.root, head_page(request.agent), PAGE_LIMIT)
    except SignetSyncError:
        return []
    return sections(sanitize_transcript_v2(decode_beginning(found.raw, PAGE))) if isinstance(found, Found) else []


def _head(page: list[PageSection]) -> list[PageSection]:
    """Returns the first lines of the sections that no other part of the overview shows."""
    shown, above = [], ""
    for section in page:
        if section.heading.startswith(_LEDGER):
            break
        above = section.heading if section.level <= _TOP else above
        items = [line for line in section.lines if line.item][:HEAD]
        if items and section.level:
            heading = section.heading if section.level <= _TOP else f"{above} · {section.heading}"
            shown.append(section._replace(heading=heading, lines=items))
    return shown


def page(request: ViewRequest) -> WebPage:
    """Shows the whole of MEMORY.md, with links to our pages."""
    found = read_page(request)
    with open_index(request.site.place) as database:
        led = targets(database, request.agent, found)
    return WebPage("page", "MEMORY.md", {"sections": found, "targets": led, "path": head_page(request.agent)})


def settings(request: ViewRequest) -> WebPage:
    """Shows the settings of the workspace, those that somebody changed first."""
    known, remarks = model.list_settings(request.site.place.root)
    rows = [
        {
            "name": one.field.key,
            "value": _show_value(one.value),
            "default": _show_value(one.field.default),
            "origin": one.origin,
            "meaning": one.field.doc.replace("`", ""),
        }
        for one in sorted(known, key=lambda one: one.origin == "default")
    ]
    change = request.command("settings", "NAME", "VALUE", own_agent=False)
    return WebPage("settings", "Settings", {"settings": rows, "remarks": [*map(str, remarks)], "change": change})


def _show_value(value: object) -> str:
    """Returns a value without secrets: somebody may have put a key on the wrong line."""
    text = ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
    return sanitize_line(text.lower() if isinstance(value, bool) else text)


# ── problems ──


def problems(request: ViewRequest) -> WebPage:
    """Shows all problems."""
    with open_index(request.site.place) as database:
        newest = sorted(violations.list_open(database, request.agent), key=lambda one: one.found_at, reverse=True)
        found = [one._asdict() for one in newest]
        groups = _groups(request, database, {one["path"] for one in found})
        drifted = len(entities_store.drift(database, request.agent))
    sealed = portion(found, request.query.get("page"), SEALED)
    data = {
        "sealed": sealed,
        "groups": groups if sealed.before is None else [],
        "others": sum(group["total"] for group in groups),
        "drifted": drifted,
    }
    return WebPage("violations", "Problems", data)


def _groups(request: ViewRequest, database: Database, sealed: set[str]) -> list[dict[str, Any]]:
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
        alone = code in _LEFT_ALONE
        messages = {message for _, message in rows}
        groups.append(
            {
                "verdict": verdict,
                "code": code,
                "tone": "quiet" if alone else _TONES[verdict],
                "message": messages.pop() if len(messages) == 1 else "",
                "hint": "" if alone else hint_for(code, "PATH"),
                "files": rows[:SHOWN],
                "total": len(rows),
            }
        )
    return sorted(groups, key=lambda one: (one["code"] in _LEFT_ALONE, _ORDER.index(one["verdict"]), one["code"]))
