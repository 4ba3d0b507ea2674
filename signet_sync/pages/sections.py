"""Makes lines of what is known, in words: threads, statements, memories, pins, entities, each with its rank."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from signet_sync.formats.filename import artifact_name
from signet_sync.formats.lazy_pattern import late
from signet_sync.formats.paths import name_running_session, wikilink
from signet_sync.formats.statement import SECTION_OF
from signet_sync.formats.timestamps import DAY, iso, short_day
from signet_sync.memories.score import UNUSED, DreamedView, Use, day_start, rank, score
from signet_sync.pages.board import Line
from signet_sync.text.digest_mark import ASKED
from signet_sync.text.phrases import QuotedSession, count_noun
from signet_sync.text.sentences import (
    basename,
    drop_rest,
    escape,
    flatten,
    is_template,
    page_cell,
    shorten,
)

SECTIONS = {
    "projects": "## Active Projects & Threads",
    "decisions": "## Decisions & Constraints",
    "people": "## People & Relationships",
    "blockers": "## Open Blockers & Technical Notes",
    "dreamed": "## Dreamed",
}

# A step or question that its project did not mention for so long leaves the pages.
_FORGOTTEN_AFTER = 21 * DAY
TEXT_LENGTH = 280
NAME_LENGTH = 60  # characters of a project's name

# The label of a line whose kind its section does not show.
_PREFIXES = {"next": "next: ", "question": "question: ", "preference": "preference: ", "blocker": "blocker: "}
_MARKS = {"agent": " (agent)"}
# What would start a heading, a quote, a fence, a list or a task inside the list item that shows the text, or look like
# a pin of ours.
_BLOCK = late(r"^(?:(?:#{1,6}|[-*+]|\d{1,9}[.)]|\[[ xX]\])(?:[ \t]+|$)|>[ \t]*|~{3,}[ \t]*|📌\ufe0f?[ \t]*)+")
_HANDLE = late(r"\^(?=[a-z]-)")
_ENDED = late(r"[ \t]*\((?:[ \t,;]*\^f-[a-z2-7]{6,12})+\)|[ \t]*(?:\^f-[a-z2-7]{6,12}[ \t,;]*)+(?=\.?$)")
_ONLY_ASKED = late(r"^asked: .*?(?:$|; (?:answered|learned): )", re.IGNORECASE)
_ENDS = (".", "!", "?", "…", "。", "！", "？")


# A page is rendered again with every change, and most of its texts stay the same.
_kept = lru_cache(maxsize=4_000)


class ThreadView(NamedTuple):
    """A thread as page sections show it, by its newest session. Instants are microseconds since 1970 UTC.

    `newest` is the node of that session, `name` the project's, if not the last part of its identity (`distinct_names`);
    `where` names its branch or worktree if others are told apart.
    """

    id: str
    project: str | None
    session_key: str | None
    harness: str | None
    status: str
    sessions: int
    latest_us: int
    sample: str
    path: str
    newest: str = ""
    name: str = ""
    where: str = ""


class StatementView(NamedTuple):
    """A statement, and the last artifact that states it ("" for a memory, whose project may be that of all, "").

    `speaker` is `person`, `agent` or `file`, "" if unknown; `line` is that of the artifact.
    """

    id: str
    kind: str
    text: str
    project: str | None
    latest_us: int
    path: str
    name: str = ""
    speaker: str = ""
    line: int = 0

    @property
    def is_memory(self) -> bool:
        """Returns whether somebody asked to remember it."""
        return self.id.startswith("m-")


class NodeView(NamedTuple):
    """A node of the temporal index. Instants are microseconds since 1970 UTC.

    `path` is the file of a session; of a condensation that of its newest session, whose sentence it has: by it a
    removal knows its line.
    """

    id: str
    thread: str
    earliest_us: int
    latest_us: int
    label: str
    path: str


class EntityEntry(NamedTuple):
    """An entity; `sentence` is about it, empty if its profile has no text yet."""

    id: str
    kind: str
    title: str
    type: str | None
    status: str
    sentence: str
    updated_us: int
    path: str


class BoardInputs(NamedTuple):
    """What a page or context may show, in any order; by id, what is pinned and was used, and what was promoted.

    `statements` has memories, too. A page shows all of an agent, and `more` says that there is more than was read. A
    context has the threads and statements of the project at hand, and what is of no project; `others` are threads of
    other ones, newest first; `warning` is what MEMORY.md warns of; `quoted` is the session that this one continues, and
    `earlier` are node, end and sentence of the newest ones of the project before the one that its thread tells of,
    newest first. `ended` are texts of what no longer holds there: no quote says it.
    """

    threads: Sequence[ThreadView] = ()
    statements: Sequence[StatementView] = ()
    entities: Sequence[EntityEntry] = ()
    uses: Mapping[str, Use] = {}
    dreamed: Mapping[str, DreamedView] = {}
    more: bool = False
    others: Sequence[ThreadView] = ()
    warning: str = ""
    quoted: QuotedSession | None = None
    earlier: Sequence[tuple[str, int, str]] = ()
    ended: Sequence[str] = ()


def candidates(seen: BoardInputs, now_us: int, own: Collection[str] | None = None) -> list[Line]:
    """Returns the lines of everything seen, ranked for the UTC day of `now_us`.

    `own` are the projects at hand (`scope_of`; None: a page), which no statement names. Left out is, unless it is
    pinned: steps and questions that their project did not mention for long; a thread that says nothing.
    """
    today = day_start(now_us)
    views: list[ThreadView | StatementView] = [*seen.threads, *seen.statements]
    newest = {scope_of(view.project): view.latest_us for view in sorted(views, key=lambda view: view.latest_us)}
    names = distinct_names(view.project for view in views)

    def make(kind: str, section: str, one: str, at_us: int, text: str, says: str = "", *, kept: bool = False) -> Line:
        use = seen.uses.get(one, UNUSED)
        value = score(
            kind, at_us, today, accesses=use.accesses, last_access_us=use.last_us, pinned=use.pinned, remembered=kept
        )
        ranked = rank(value, at_us, one, pinned=use.pinned)
        return Line(one, section, text, ranked, says or one, (not use.pinned, False, *ranked))

    threads: list[Line] = []
    for thread in seen.threads:
        named = thread._replace(name=thread.name or names.get(thread.project or "", ""))
        # What was asked for in passing is no statement: what a person decided there is shown as their decision.
        came_out = ASKED.sub("", _ONLY_ASKED.sub("", outcome_of(thread.sample, basename(thread.project))))
        text = thread_line(named, today)
        line = make("thread", "projects", thread.id, thread.latest_us, text)
        if line.is_pinned or not is_template(thread.sample):
            scope = scope_of(thread.project)
            threads.append(
                line._replace(project=scope, path=thread.path, session=thread.newest, sentence=plain(came_out))
            )
    lines = [*threads]
    for view in seen.statements:
        stated = view._replace(name=view.name or names.get(view.project or "", ""))
        section, scope, says = section_of(view.kind), scope_of(view.project), plain(view.text)
        text = statement_line(stated, today, named=own is None or scope not in own)
        # Memories, and entities, which are curated by hand, count as remembered.
        line = make(view.kind, section, view.id, view.latest_us, text, says, kept=view.is_memory)
        is_forgotten = view.kind in ("next", "question") and newest[scope] - view.latest_us > _FORGOTTEN_AFTER
        if is_forgotten and not line.is_pinned:
            continue
        # What one session says is in the order in which it says it.
        ranked = *line.rank[:3], f"{view.line:06}{view.id}"
        by_agent = view.speaker in _MARKS or view.text.endswith("(agent)")
        line = line._replace(
            rank=ranked, project=scope, path=view.path or None, place=(not line.is_pinned, by_agent, *ranked)
        )
        promoted = seen.dreamed.get(view.id)
        lines.append(line if promoted is None else _show_promoted(line, view, says, promoted))
    lines += (make("person", "people", one.id, one.updated_us, entity_line(one), kept=True) for one in seen.entities)
    # Each thread is followed by the next steps of its project.
    ordered = dict.fromkeys(one.project for one in sorted(threads, key=lambda one: one.rank) if not one.is_pinned)
    order = {project: number for number, project in enumerate(ordered)}
    return [
        one._replace(place=(not one.is_pinned, order.get(one.project, len(order)), one.id[0] != "t", *one.rank))
        if one.section == "projects"
        else one
        for one in lines
    ]


def _show_promoted(line: Line, view: StatementView, says: str, promoted: DreamedView) -> Line:
    swept = iso(promoted.at_us)
    why = f"_(score={promoted.score:.2f}, hits={promoted.hits}, days={promoted.days})_"  # as specified
    return line._replace(
        section="dreamed",
        text=f"{_PREFIXES.get(view.kind, '')}{says} {why}",
        group="" if line.is_pinned else f"### {swept[:10]} {swept[11:16]} UTC",
        place=(not line.is_pinned, -promoted.at_us, -promoted.score, view.id),
    )


def thread_line(view: ThreadView, today_us: int) -> str:
    """Returns `**lantern** (open, Mar 28, 4 sessions): Its outcome.`."""
    day = short_day(view.latest_us, today_us)
    outcome = plain(clause(outcome_of(view.sample, basename(view.project)), TEXT_LENGTH))
    status = "" if view.status in ("settled", "question-only") else view.status
    about = _list_parts(view.where, status, day, count_noun(view.sessions, "session") if view.sessions > 1 else "")
    said = f": {outcome if outcome.endswith(_ENDS) else outcome.rstrip(' ,;:') + '.'}" if outcome else "."
    return f"**{thread_name(view)}** ({about}){said}"


def outcome_of(sentence: str, name: str) -> str:
    """Returns a session's sentence without its project's name in front, and what it left open; "" for a template."""
    start = f"{name}: "
    if name and sentence.casefold().startswith(start.casefold()):
        sentence = sentence[len(start) :]
    return "" if is_template(sentence) else drop_rest(sentence)


def clause(text: str, width: int) -> str:
    """Shortens a flattened text to at most `width` characters.

    What was asked for goes first; it stands behind what came out.
    """
    return shorten(text if len(text) <= width else ASKED.sub("", text), width)


@_kept
def statement_line(view: StatementView, today_us: int, *, named: bool) -> str:
    """Returns `… (agent) (lantern, Mar 28)`, after `next: ` or another label of its kind.

    Without its project unless `named`. One of a running session names that, and a memory that it was remembered.
    """
    day = f"{'remembered ' if view.is_memory else ''}{short_day(view.latest_us, today_us)}"
    project = _cell(view.name or basename(view.project)) if named else ""
    where = _list_parts(project, day, "in a running session" if name_running_session(view.path) is not None else "")
    text, mark = plain(view.text), _MARKS.get(view.speaker, "") if section_of(view.kind) == "decisions" else ""
    return f"{_PREFIXES.get(view.kind, '')}{text}{'' if text.endswith(mark) else mark} ({where})"


def thread_name(view: ThreadView) -> str:
    """Returns the name of a thread: its project with the key that its sessions share, else that key or harness."""
    project, lineage = _cell(view.name or basename(view.project)), _cell(view.session_key or "")
    if project:
        return f"{project} · {lineage}" if lineage else project
    return lineage or (f"{_cell(view.harness, 40)}, no project" if view.harness else "no project")


def distinct_names(projects: Iterable[str | None]) -> dict[str, str]:
    """Returns names for the projects whose last part is that of another one: with the folders or owners before it."""
    of_name: dict[str, set[str]] = {}
    for project in filter(None, projects):
        of_name.setdefault(basename(project).casefold(), set()).add(project)
    found: dict[str, str] = {}
    for some in of_name.values():
        parts = {project: project.strip("/").split("/") for project in some}
        for count in range(2, max(map(len, parts.values())) + 1) if len(some) > 1 else ():
            names = {project: "/".join(its[-count:]) for project, its in parts.items()}
            if len({name.casefold() for name in names.values()}) == len(some):
                found |= names
                break
    return found


def entity_line(view: EntityEntry) -> str:
    """Returns `**Inner Critic** (protector): …`, with its type and, unless it is active, its status."""
    about = _list_parts(_cell(view.type or "", 40), "" if view.status == "active" else _cell(view.status, 40))
    sentence = f": {plain(view.sentence)}" if view.sentence else ""
    return f"**{_cell(view.title, 80)}**{f' ({about})' if about else ''}{sentence}"


def link_to(path: str) -> str:
    """Returns a wikilink to an artifact, with its kind as label."""
    name = artifact_name(path.rpartition("/")[2])
    return wikilink(path, name.kind if name is not None else "source")


def inert(text: str) -> str:
    """Returns text without handles, so that only ours can be expanded; of those that it ends nothing is left."""
    return _HANDLE.sub("^ ", _ENDED.sub("", text))


def scope_of(project: str | None) -> str:
    """Returns by what the lines of a project are compared: statements and threads may differ in the final slash."""
    return (project or "").strip().rstrip("/")


def section_of(kind: str) -> str:
    """Returns the section of a statement's kind or a memory's type."""
    return SECTION_OF.get(kind, SECTION_OF["note"])


@_kept
def plain(text: str, limit: int = TEXT_LENGTH) -> str:
    """Returns text fit for a list item: on one line, opening no block, containing no handle."""
    return inert(escape(_BLOCK.sub("", flatten(text, limit), 1)))


@_kept
def _cell(text: str, limit: int = NAME_LENGTH) -> str:
    return inert(page_cell(text, limit))


def _list_parts(*parts: str) -> str:
    return ", ".join(part for part in parts if part)
