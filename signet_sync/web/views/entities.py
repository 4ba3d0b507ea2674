"""Shows an agent's entity files, and one entity: its content and evidence, who may change it, its events."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from signet_sync.entities import proposals, queries
from signet_sync.entities import store as entities_store
from signet_sync.entities.events import Event, tokens_in
from signet_sync.entities.evidence import read_item
from signet_sync.entities.maintenance import LOG
from signet_sync.entities.proposals import Proposal
from signet_sync.entities.queries import EntityFinding, EntitySummary, EntityView, ItemView, SectionView
from signet_sync.entities.repository import EntityRepository
from signet_sync.entities.store import EntityFile
from signet_sync.formats.entity_paths import anchor_of
from signet_sync.formats.timestamps import parse_instant
from signet_sync.storage.database.connection import Database
from signet_sync.sync.store import sessions
from signet_sync.sync.store.sessions import SessionRef
from signet_sync.web.commands import command_line
from signet_sync.web.link_targets import of_names
from signet_sync.web.markdown import Prose
from signet_sync.web.paging import portion
from signet_sync.web.request import View, ViewRequest, WebPage
from signet_sync.web.words import KINDS, done

ENTITIES = 120  # on a page
EVENTS = 40
PROPOSALS = 40
RAW = 100_000  # characters of a file that is shown as it is
_WHOLE = "*"
_KINDS = {"user": "Users", "part": "Parts", "relationship": "Relationships"}


class Card(NamedTuple):
    """An entity in the list, its number of open proposals, and whether one of its files has drifted."""

    entity: EntitySummary
    line: Prose
    proposals: int
    drifted: bool


class EvidenceLink(NamedTuple):
    """The line of an artifact that is the evidence; without `session` the artifact is no longer indexed."""

    path: str
    line: int | None
    session: SessionRef | None


class ShownItem(NamedTuple):
    """An item of a list; evidence has a quote and the reason it matters, any other item its words.

    `at` is when it was written, if the item contains that.
    """

    number: int
    at: str
    prose: Prose | None
    quote: str
    why: str
    source: EvidenceLink | None
    event: Event | None


class ShownSection(NamedTuple):
    """A section for display: a narrative has prose, a list items. `raw` is a file that could not be parsed."""

    name: str
    heading: str
    notes: bool
    prose: Prose | None
    items: Sequence[ShownItem] | None
    pinned: bool
    locked: bool
    log: bool
    raw: str = ""


class ProposalView(NamedTuple):
    """A proposal with the commands that answer it."""

    proposal: Proposal
    prose: Prose
    source: EvidenceLink | None
    approve: str
    reject: str


class Drifted(NamedTuple):
    """A file that needs a maintainer, and the commands that resolve the drift."""

    remark: EntityFinding
    keep_file: str
    keep_events: str


class EventView(NamedTuple):
    """An event, its subject, its evidence, and by section the text before and after."""

    event: Event
    about: str
    sources: Sequence[EvidenceLink]
    texts: Mapping[str, tuple[str, str]]


def entities(request: ViewRequest) -> WebPage:
    """Shows all entities of the agent, by kind."""
    with queries.open_read_only(request.site.place, request.agent, request.now_us) as repo:
        found = queries.list_entities(repo)
        proposed = Counter(one.entity_id for one in proposals.waiting(repo))
        queue = queries.list_drift(repo)
        chain = entities_store.log_end(repo.workspace.database, request.agent)
    drifted = {one.id for one in queue}
    known = {one.id for one in found}
    of_kind = Counter[str](one.kind for one in found)
    shown = portion(found, request.query.get("page"), ENTITIES)
    kinds = [
        (heading, of_kind[kind], [_card(one, proposed, drifted) for one in shown.rows if one.kind == kind])
        for kind, heading in _KINDS.items()
    ]
    return WebPage(
        "entities",
        "Entities",
        {
            "kinds": [one for one in kinds if one[2]],
            "portion": shown,
            # An entity whose profile is gone or unreadable is in no list.
            "lost": [_drifted(request, one) for one in queue if one.id not in known],
            "events": chain.events if chain is not None else 0,
            "create": command_line(request, "entity", "create", "user", "NAME"),
            "verify": command_line(request, "entity", "check", "--log"),
        },
    )


def _card(one: EntitySummary, proposed: Mapping[str, int], drifted: Collection[str]) -> Card:
    return Card(one, Prose(one.line, inline=True), proposed.get(one.id, 0), one.id in drifted)


def entity(request: ViewRequest) -> WebPage:
    """Shows one entity. Raises `UsageError` if the agent has none of this name, or several."""
    with queries.open_read_only(request.site.place, request.agent, request.now_us) as repo:
        row = repo.require(request.path["entity"])
        shown = queries.view(repo, row)
        logged = queries.list_events(repo, row.id)
        page = portion(logged, request.query.get("page"), EVENTS)
        reader = _EntityReader(repo, logged, shown)
        sections = [reader.section(one) for one in shown.sections]
        proposals = [reader.proposal(request, one) for one in shown.proposals[:PROPOSALS]]
        data = {
            "entity": shown,
            "sections": sections,
            "proposals": proposals,
            "more_proposals": max(len(shown.proposals) - PROPOSALS, 0),
            "drifted": [_drifted(request, one) for one in queries.list_drift(repo) if one.id == row.id],
            "lint": queries.lint_files(repo, row),
            "log": page.each(reader.event),
            "beside": _beside(repo, row),
            "pinned": _WHOLE in shown.pins,
            "locked": _WHOLE in shown.locks,
        }
        links = of_names(repo.workspace.database, request.agent, _targets(sections, proposals))
    return WebPage(
        "entity",
        shown.title,
        {
            **data,
            "links": links,
            "kind": KINDS[shown.kind],
            "updated_us": row.updated_us,
            "pin": command_line(request, "entity", "protect", "unpin" if data["pinned"] else "pin", row.id),
            "lock": command_line(request, "entity", "protect", "unlock" if data["locked"] else "lock", row.id),
            "replay": command_line(request, "entity", "check", row.id),
        },
    )


def _drifted(request: ViewRequest, remark: EntityFinding) -> Drifted:
    """Composes the commands, which name the event log if the drift is there."""
    keep_file, keep_events = (
        command_line(request, "entity", "check", remark.id or LOG, "--keep", keep) for keep in ("file", "events")
    )
    return Drifted(remark, keep_file, keep_events)


def _beside(repo: EntityRepository, row: EntityFile) -> list[tuple[str, str]]:
    """Returns ids and titles of a relationship's members, or of the relationships of an entity."""
    database = repo.workspace.database
    return [(one, _title(database, repo.agent_id, one)) for one in entities_store.neighbours(database, row)]


def _title(database: Database, agent_id: str, entity_id: str) -> str:
    found = entities_store.find(database, agent_id, entity_id)
    return found[0].title if len(found) == 1 else entity_id


def _targets(sections: Iterable[ShownSection], proposals: Iterable[ProposalView]) -> set[str]:
    """Returns the destinations of all links on the page."""
    shown = [one.prose for one in proposals]
    for section in sections:
        shown += [section.prose] if section.prose is not None else []
        shown += [item.prose for item in section.items or () if item.prose is not None]
    return {target for prose in shown for target in prose.targets}


class _EntityReader:
    """One entity while its page is built: its events by token, and the sessions of its evidence."""

    def __init__(self, repo: EntityRepository, logged: Sequence[Event], shown: EntityView) -> None:
        self._repo = repo
        self._events = {one.id: one for one in logged}
        # A person may have written headings.
        self._pins, self._locks = (
            {anchor_of(" ".join(name.split())) for name in names} for names in (shown.pins, shown.locks)
        )
        self._known: dict[str, SessionRef | None] = {}

    def section(self, one: SectionView) -> ShownSection:
        """Returns a section with its items parsed."""
        raw = one.text[:RAW] if not one.name else ""
        items = None if one.items is None else [self._item(item) for item in one.items]
        prose = None if raw or items else Prose(one.text)
        name = anchor_of(one.name)
        return ShownSection(
            one.name,
            one.heading,
            one.name.startswith("notes/"),
            prose,
            items,
            name in self._pins,
            name in self._locks,
            name == "change-log",
            raw,
        )

    def _item(self, item: ItemView) -> ShownItem:
        tokens = tokens_in(item.text)
        event = self._events.get(tokens[-1]) if tokens else None
        evidence = read_item(item.text)
        if evidence is None:
            at, dash, words = item.text.partition(" — ")
            dated = bool(dash) and parse_instant(at) is not None
            prose = Prose(words if dated else item.text, inline=True)
            return ShownItem(item.number, at if dated else "", prose, "", "", None, event)
        rests = event.said("evidence") if event is not None else None
        source = self._source(rests[0]) if rests else None
        if source is None and evidence.path is not None:
            source = self._source(evidence.path)
        return ShownItem(item.number, "", None, evidence.quote, evidence.why, source, event)

    def proposal(self, request: ViewRequest, one: Proposal) -> ProposalView:
        """Returns a proposal with the commands that answer it."""
        prose = Prose(one.text)
        source = self._source(one.source) if one.source else None
        approve, reject = (command_line(request, "entity", "review", word, one.id) for word in ("approve", "reject"))
        return ProposalView(one, prose, source, approve, reject)

    def event(self, one: Event) -> EventView:
        """Returns an event as a line of the log, with the text before and after."""
        sources = [self._source(rests) for rests in one.said("evidence") or ()]
        return EventView(one, done(one.op, one.file or "", one.section or ""), sources, queries.texts_of(one))

    def _source(self, rests: str) -> EvidenceLink:
        """Parses `PATH#LINE`."""
        path, _, line = rests.partition("#")
        if path not in self._known:
            database = self._repo.workspace.database
            self._known[path] = sessions.of_paths(database, self._repo.agent_id, [path]).get(path)
        number = int(line) if line.isascii() and line.isdigit() and len(line) < 10 else None
        return EvidenceLink(path, number, self._known[path])


VIEWS: list[tuple[str, str, View]] = [("/entities", "entities", entities), ("/entities/{entity}", "entity", entity)]
