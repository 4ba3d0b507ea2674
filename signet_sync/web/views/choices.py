"""Offers what a person may mean while typing: answers of recall in the head, places and commands in the palette."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from signet_sync.entities import store as entities_store
from signet_sync.recall.store import session_list
from signet_sync.storage.database.connection import Database
from signet_sync.sync.read_only import reading
from signet_sync.text.sentences import basename
from signet_sync.web.answers import answers
from signet_sync.web.commands import WORDS, command_line
from signet_sync.web.layout import DOES, NAVIGATION
from signet_sync.web.link_targets import LinkTarget
from signet_sync.web.request import View, ViewRequest, WebPage
from signet_sync.web.words import KINDS

ANSWERS = 8
FEW = 6  # of a kind
_LONGEST = 1_000  # characters of what is typed
# What each does, and its words.
_COMMANDS = (
    ("Show the state of the workspace", ("status",)),
    ("Check all files", ("check",)),
    ("Bring the index up to date", ("reindex",)),
    ("Look for trouble", ("doctor",)),
    ("Promote memories now", ("dream",)),
    ("Remember something", ("remember", WORDS)),
    ("Pin to the top of MEMORY.md", ("pin", WORDS)),
    ("Remove a pin", ("unpin", WORDS)),
    ("Forget a memory", ("forget", WORDS)),
    ("List changed files", ("violations", "list")),
    ("Show what a handle leads to", ("expand", WORDS)),
    ("Show a session's files", ("open", WORDS)),
    ("Remove a session", ("remove", WORDS)),
    ("Print what a session starts with", ("context",)),
    ("What happened this week", ("digest", "--week")),
    ("Save memories and pins", ("backup", "create")),
    ("See whether hooks are installed", ("hooks", "status")),
    ("Start the agent with every login", ("service", "install")),
    ("Set up the vault of Obsidian", ("obsidian", "setup")),
    ("Read the log", ("logs",)),
)
# Those that take `--agent`.
_OWN_AGENT = ("dream", "remember", "pin", "unpin", "forget", "expand", "open", "remove", "context", "digest")
# What the page itself does; each leads to its confirmation.
_ACTIONS = (("Remember something…", "remember"), ("Start a full pass…", "reindex"))


class Choice(NamedTuple):
    """What can be chosen: its words, a note, and where it leads or which command it copies."""

    text: str
    note: str
    target: LinkTarget | None
    command: str = ""


class ChoiceGroup(NamedTuple):
    """Choices of one kind."""

    heading: str
    choices: list[Choice]


def choices(request: ViewRequest) -> WebPage:
    """Shows what fits the words `q`: with `of=places` views, sessions, entities, projects, commands; else answers."""
    words = request.query.get("q", "").strip().encode("utf-8", "replace").decode()[:_LONGEST]
    with reading(request.site.place) as database:
        if request.query.get("of") == "places":
            groups = _places(database, request, words)
        else:
            groups = [ChoiceGroup("Answers", _answers(database, request, words))]
    return WebPage("choices", "Choices", {"groups": [group for group in groups if group.choices], "words": words})


def _answers(database: Database, request: ViewRequest, words: str) -> list[Choice]:
    return [Choice(one.text, one.kind, one.target) for one in answers(database, request, words, ANSWERS) if one.target]


def _places(database: Database, request: ViewRequest, words: str) -> list[ChoiceGroup]:
    fits = _fitting(words)
    views = [
        Choice(label, DOES.get(view, "") if words else "", LinkTarget(view, {}))
        for view, label, _ in NAVIGATION
        if fits(f"{label} {DOES.get(view, '')}")
    ]
    actions = [
        Choice(does, "", LinkTarget("do", {"action": name})) for does, name in _ACTIONS if fits(f"{does} {name}")
    ]
    listed = session_list.page(database, request.agent, session_list.SessionFilter(words), limit=FEW)
    sessions = [
        Choice(
            one.sentence or one.session_key or one.session_id,
            f"{one.day} {basename(one.project or '')}".strip(),
            LinkTarget("session", {"token": one.session_token, "session": one.session_id}),
        )
        for one in listed.entries
        if not listed.loose
    ]
    entities = [
        Choice(title, KINDS.get(kind, kind), LinkTarget("entity", {"entity": entity}))
        for entity, title, kind in entities_store.titled(database, request.agent, words, FEW)
    ]
    projects = (
        Choice(basename(project), f"{sessions:,} sessions", LinkTarget("sessions", {"project": project}))
        for project, sessions in session_list.projects(database, request.agent)
        if project is not None and fits(basename(project))
    )
    return [
        ChoiceGroup("Views", views),
        ChoiceGroup("Do", actions),
        ChoiceGroup("Projects", _first(projects)),
        ChoiceGroup("Entities", entities),
        ChoiceGroup("Sessions", sessions),
        ChoiceGroup("Copy a command", _commands(request, words, fits)),
    ]


def _commands(request: ViewRequest, words: str, fits: Callable[[str], bool]) -> list[Choice]:
    found = []
    for does, given in _COMMANDS:
        if fits(f"{does} {' '.join(given)}"):
            command = command_line(request, *given, own_agent=given[0] in _OWN_AGENT)
            found.append(Choice(does, command, None, command))
    if words:
        command = command_line(request, "recall", words)
        return [*found[: FEW - 1], Choice("Recall this in a terminal", command, None, command)]
    return found[:FEW]


def _fitting(words: str) -> Callable[[str], bool]:
    """Returns whether a text contains all of some words."""
    wanted = words.casefold().split()
    return lambda text: all(word in text.casefold() for word in wanted)


def _first(found: Iterable[Choice]) -> list[Choice]:
    return [one for one, _ in zip(found, range(FEW), strict=False)]


VIEWS: list[tuple[str, str, View]] = [("/choices", "choices", choices)]
