"""Shows the overview: state of the agent, sessions a day, problems, latest sessions, beginning of MEMORY.md."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from signet_sync.admin.status import Advice, advice, standing
from signet_sync.errors import SignetSyncError
from signet_sync.formats.paths import head_page
from signet_sync.formats.timestamps import day_of
from signet_sync.integrity.report import hint_for
from signet_sync.pages import readable
from signet_sync.pages.store import pages
from signet_sync.recall.store import session_list
from signet_sync.storage.database.connection import Database
from signet_sync.sync.read_only import reading
from signet_sync.sync.store import counts
from signet_sync.web.charts.calendar import Calendar, calendar
from signet_sync.web.layout import tone_of
from signet_sync.web.link_targets import LinkTarget, targets
from signet_sync.web.live_sessions import Running, every
from signet_sync.web.page_lines import PageSection, sections
from signet_sync.web.request import View, ViewRequest, WebPage

LATEST = 8  # sessions
WRONG = 5  # files
HEAD = 2  # lines of each section of MEMORY.md
PAGE = 400_000  # characters of MEMORY.md
_WRONG = ("invalid", "violation", "tombstoned")
_MADE = {"init": "the command makes it; --workspace names another one", "reindex": "the command makes it"}
_LEDGER = "Session Ledger"  # the beginning of the heading after which MEMORY.md lists what the overview shows elsewhere


class FileProblem(NamedTuple):
    """A file with a problem, and what a person can do about it."""

    path: str
    verdict: str
    message: str
    hint: str


class IndexSummary(NamedTuple):
    """What the index contains of the agent."""

    sessions: int
    artifacts: int
    days: Calendar
    latest: list[session_list.Entry]
    running: list[Running]
    wrong: list[FileProblem]
    notes: list[tuple[str, int]]


def show(ask: ViewRequest) -> WebPage:
    """Shows the first page; it works in any state of the workspace, and shows what to do."""
    status = standing(ask.site.place)
    data: dict[str, Any] = {
        "status": status,
        "tone": tone_of(status["state"], running=status["running"], responding=status["responding"]),
        "advice": [(one, ask.site.place.command_line(one.words) if one.words else "") for one in _advice(ask, status)],
        "held": None,
        "head": [],
        "targets": {},
        "shown_wrong": WRONG,
    }
    if status["readable"]:
        data["head"] = _head(read_page(ask))
        with reading(ask.site.place) as database:
            data["held"] = _held(database, ask)
            data["targets"] = targets(database, ask.agent, data["head"])
    return WebPage("overview", "Overview", data)


def _advice(ask: ViewRequest, status: dict[str, Any]) -> list[Advice]:
    """Returns what a person should do now, most important first."""
    told = []
    if status["trouble"]:
        message, _, remedy = status["trouble"].partition(": ")
        words = _first_step(ask, status)
        told.append(Advice(not status["readable"], message, _MADE.get(words, remedy), words))
    told += advice(status)
    if status["state"] == "stopped" and status["readable"] and not status["stale_heartbeat"]:
        remedy = "the command keeps it going as long as it runs; signet-sync service install keeps it going for good"
        told.append(Advice(False, "no agent runs, so what changes in the vault is not taken in", remedy, "run"))
    for name in status["set_aside"]:
        told.append(Advice(False, f"a damaged database was moved aside: {name}", "doctor says what to do", "doctor"))
    intake = status["intake"]
    if intake["given_up"] or intake["refused"]:
        message = f"from harnesses: {intake['given_up']} given up, {intake['refused']} endings refused"
        told.append(Advice(False, message, "the log says why", "logs intake"))
    return told


def _first_step(ask: ViewRequest, status: dict[str, Any]) -> str:
    """Returns the command that creates a missing workspace or index."""
    if not os.path.lexists(ask.site.place.root):
        return "init"
    return "" if os.path.exists(status["database"]) else "reindex"


def _held(database: Database, ask: ViewRequest) -> IndexSummary:
    sessions, artifacts = counts.counts_of(database, ask.agent)
    wrong = [
        FileProblem(one.path, one.verdict, one.message, hint_for(one.code, one.path))
        for one in counts.problems(database)
        if one.verdict in _WRONG and one.agent_id in (None, ask.agent)
    ]
    notes = Counter(one.code for one in counts.notes(database, ask.now_us) if one.agent_id in (None, ask.agent))
    return IndexSummary(
        sessions,
        artifacts,
        calendar(pages.days(database, ask.agent), day_of(ask.now_us)),
        session_list.page(database, ask.agent, session_list.Filter(), limit=LATEST).entries,
        every(database, ask.agent)[:LATEST],
        wrong,
        notes.most_common(),
    )


def read_page(ask: ViewRequest) -> list[PageSection]:
    """Returns the sections of the agent's MEMORY.md; empty if there is none."""
    try:
        found = readable.read(ask.site.place, ask.agent, head_page(ask.agent), PAGE)
    except SignetSyncError:
        return []
    return sections(found.text)


def _head(page: list[PageSection]) -> list[PageSection]:
    """Returns the first lines of the sections that no other part of the overview shows."""
    shown = []
    for section in page:
        if section.heading.startswith(_LEDGER):
            break
        items = [line for line in section.lines if line.item][:HEAD]
        if items and section.level:
            shown.append(section._replace(lines=items))
    return shown


def page(ask: ViewRequest) -> WebPage:
    """Shows the whole of MEMORY.md, with links to our pages."""
    found = read_page(ask)
    with reading(ask.site.place) as database:
        led: Mapping[str, LinkTarget] = targets(database, ask.agent, found)
    return WebPage("page", "MEMORY.md", {"sections": found, "targets": led, "path": head_page(ask.agent)})


VIEWS: list[tuple[str, str, View]] = [("/", "overview", show), ("/page", "page", page)]
