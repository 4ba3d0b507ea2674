"""Makes the lines of MEMORY.md's sections, in words: threads, facts, memories, pins, entities, each with its score."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from typing import NamedTuple

from signet_sync.formats.filename import artifact_name
from signet_sync.formats.handle import short_handle
from signet_sync.formats.lazy_pattern import late
from signet_sync.formats.paths import file_of, running_session
from signet_sync.formats.statement import SECTION_OF
from signet_sync.formats.timestamps import DAY, short_day
from signet_sync.formats.wikilinks import wikilink
from signet_sync.memories.promotion_views import DreamedView
from signet_sync.memories.score import UNUSED, Use, day_start, score
from signet_sync.pages.statements import contains, words_of
from signet_sync.text.phrases import counted
from signet_sync.text.sentences import basename, escape, flatten, is_template, page_cell, shortened

SECTIONS: tuple[tuple[str, str], ...] = (
    ("projects", "## Active Projects & Threads"),
    ("decisions", "## Decisions & Constraints"),
    ("people", "## People & Relationships"),
    ("blockers", "## Open Blockers & Technical Notes"),
    ("dreamed", "## Dreamed"),
)

QUIET_AFTER = 14 * DAY
TEXT_LENGTH = 280
NEXT_LENGTH = 160
QUIET_LENGTH = 140
PIN = "📌 "

# The label of a line whose kind its section does not show.
_PREFIXES = {"next": "next: ", "question": "question: ", "preference": "preference: ", "blocker": "blocker: "}
# What would start a heading, a quote, a fence, a list or a task inside the list item that shows the text, or look like
# a pin of ours.
_BLOCK = late(r"^(?:(?:#{1,6}|[-*+]|\d{1,9}[.)]|\[[ xX]\])(?:[ \t]+|$)|>[ \t]*|~{3,}[ \t]*|📌\ufe0f?[ \t]*)+")
_HANDLE = late(r"\^(?=[a-z]-)")
# Where the sentence of a session names what blocks it.
_BLOCKED = late(r"[;.,]\s+blocked:\s+")
# Where it names what is left, which its line may say as its next step.
_LEFT = late(r"[;.,]\s+(?:open|next):\s+")
# Where a sentence may end before its end: between its clauses; a comma may stand in a list.
_CLAUSE_END = late(r"[;:.!?。；！？](?=\s)|[。；](?=.)|\s[–—]\s|\s(?=because |since |so that |weil |porque )")
_COMMA = late(r",(?=\s)|[，、](?=.)")
_LABEL_END = late(r"[;.,]\s+(?:blocked|open|next)$")
_OWN_FILE = late(r"^[A-Za-z2-7][a-z2-7]{15}--(?:summary|transcript|compaction)\.md: ")
_ENDS = (".", "!", "?", "…", "。", "！", "？")

# A page is rendered again with every change and most of its texts stay the same; the cache holds those of a few pages.
_kept = lru_cache(maxsize=1_000)


NAME_LENGTH = 60  # characters of a project's name


class ThreadView(NamedTuple):
    """A thread as page sections show it, by its newest session. Instants are microseconds since 1970 UTC.

    `blocker` is the first that its newest sessions leave open. `planned_by` and `blocked_by` are the nodes of the
    sessions that said the next action and this blocker, "" for the newest session, whose node is `newest`. `name` is
    the project's, if not the last part of its identity (`distinct_names`).
    """

    id: str
    project: str | None
    session_key: str | None
    harness: str | None
    status: str
    sessions: int
    latest_us: int
    sample: str
    next_action: str | None
    path: str
    blocker: str | None = None
    planned_by: str = ""
    blocked_by: str = ""
    newest: str = ""
    name: str = ""


class FactView(NamedTuple):
    """An active fact, and the last artifact that states it."""

    id: str
    aspect: str
    text: str
    project: str | None
    latest_us: int
    path: str
    name: str = ""
    speaker: str = ""

    @property
    def is_running(self) -> bool:
        """Returns whether a running session states it last."""
        return running_session(self.path) is not None


class MemoryView(NamedTuple):
    """A memory that a person or agent asked to be remembered."""

    id: str
    type: str
    content: str
    created_us: int


class PinnedView(NamedTuple):
    """A pinned node of the graph, and the artifact with the words of its label."""

    id: str
    source_type: str
    label: str
    project: str | None
    latest_us: int
    path: str | None


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


class SectionInputs(NamedTuple):
    """All that page sections may show of an agent, in any order; by id, what was used, pinned and promoted.

    `unread` counts by section what was not even read, because a page has no room for so many; where there may be more
    than it says, the section is in `cut`.
    """

    threads: Sequence[ThreadView] = ()
    facts: Sequence[FactView] = ()
    memories: Sequence[MemoryView] = ()
    nodes: Sequence[PinnedView] = ()
    uses: Mapping[str, Use] = {}
    dreamed: Mapping[str, DreamedView] = {}
    entities: Sequence[EntityEntry] = ()
    unread: Mapping[str, int] = {}
    cut: frozenset[str] = frozenset()


class SectionLine(NamedTuple):
    """The text of one candidate, without bullet, link and handle.

    `own` is its statement: the line is left out if the page says that already. `parts` follow the text, each with its
    statement, unless they were said. `sentence` may contain what other lines would say. `grouped` is the text below a
    heading with its project's name.
    """

    own: str
    text: str
    parts: tuple[tuple[str, str], ...] = ()
    sentence: str = ""
    grouped: str = ""


class SectionCandidate(NamedTuple):
    """What may be shown, and its score; `make_line` makes its line, which is not needed for most.

    `project` is what it is about, `path` the artifact that states it. `group` is a heading inside the section, and
    `place` the order below it, lowest first. `newest` is the node of the session of a thread whose words are shown,
    `name` the project's for a heading, if not the last part of its identity.
    """

    section: str
    id: str
    at_us: int
    score: float
    pinned: bool
    make_line: Callable[[], SectionLine]
    project: str = ""
    path: str | None = None
    group: str = ""
    place: float = 0.0
    newest: str = ""
    name: str = ""

    @property
    def bullet(self) -> str:
        """Returns the beginning of the line."""
        return f"- {PIN}" if self.pinned else "- "


def candidates(seen: SectionInputs, now_us: int) -> list[SectionCandidate]:
    """Returns a candidate for everything seen, scored for the UTC day of `now_us`."""
    today = day_start(now_us)

    def valued(
        kind: str,
        section: str,
        thing_id: str,
        at_us: int,
        make_line: Callable[[], SectionLine],
        project: str | None = None,
        path: str | None = None,
        *,
        remembered: bool = False,
    ) -> SectionCandidate:
        use = seen.uses.get(thing_id, UNUSED)
        value = score(
            kind,
            at_us,
            today,
            accesses=use.accesses,
            last_access_us=use.last_us,
            pinned=use.pinned,
            remembered=remembered,
        )
        return SectionCandidate(section, thing_id, at_us, value, use.pinned, make_line, project or "", path)

    names = distinct_names([*(v.project for v in seen.threads), *(v.project for v in seen.facts)])
    facts = [v._replace(name=names.get(v.project or "", "")) for v in seen.facts]
    return [
        *(
            valued("thread", "projects", v.id, v.latest_us, partial(_of_thread, v, today), v.project, v.path)._replace(
                newest=v.newest
            )
            for v in (one._replace(name=names.get(one.project or "", "")) for one in seen.threads)
            if not (_says_nothing(v) and today - v.latest_us > QUIET_AFTER) or seen.uses.get(v.id, UNUSED).pinned
        ),
        *(
            valued(
                v.aspect,
                section_of(v.aspect),
                v.id,
                v.latest_us,
                partial(_of_fact, v, today),
                v.project,
                file_of(v.path),
            )._replace(name=v.name)
            for v in facts
        ),
        *(_memory(v, today, seen.dreamed.get(v.id), valued) for v in seen.memories),
        *(
            valued("node", "projects", v.id, v.latest_us, partial(_of_node, v, today), v.project, v.path)
            for v in seen.nodes
        ),
        # Entities are curated by hand, so they count as remembered, like memories.
        *(
            valued("person", "people", v.id, v.updated_us, partial(_of_entity, v), remembered=True)
            for v in seen.entities
        ),
    ]


def _says_nothing(view: ThreadView) -> bool:
    return is_template(view.sample) and not (view.next_action or view.blocker)


def _memory(
    view: MemoryView, today_us: int, dreamed: DreamedView | None, valued: Callable[..., SectionCandidate]
) -> SectionCandidate:
    """Returns a memory in the section of its type; a promoted one in *Dreamed*, dated by its promotion."""
    if dreamed is None:
        section, make_line = section_of(view.type), partial(_of_memory, view, today_us)
        return valued(view.type, section, view.id, view.created_us, make_line, remembered=True)
    at_us, make_line = max(view.created_us, dreamed.at_us), partial(_of_dream, view, dreamed)
    promoted = valued(view.type, "dreamed", view.id, at_us, make_line, remembered=True)
    return promoted._replace(group=dreamed.heading, place=-dreamed.score)


@_kept
def _of_thread(view: ThreadView, today_us: int) -> SectionLine:
    lead, parts = _thread_parts(view, today_us)
    return SectionLine(view.id, lead, parts, plain(view.sample, 1_000))


@_kept
def _of_fact(view: FactView, today_us: int) -> SectionLine:
    text = plain(view.text)
    return SectionLine(text, fact_line(view, today_us), grouped=fact_line(view, today_us, grouped=True))


def _of_memory(view: MemoryView, today_us: int) -> SectionLine:
    return SectionLine(plain(view.content), memory_line(view, today_us))


def _of_dream(view: MemoryView, dreamed: DreamedView) -> SectionLine:
    return SectionLine(plain(view.content), dreamed_line(view, dreamed))


def _of_node(view: PinnedView, today_us: int) -> SectionLine:
    return SectionLine(view.id, pinned_line(view, today_us))


def _of_entity(view: EntityEntry) -> SectionLine:
    return SectionLine(view.id, entity_line(view))


def thread_line(view: ThreadView, today_us: int, *, at_hand: bool = False) -> str:
    """Returns `**lantern** (Mar 28, 4 sessions): Its outcome. Blocked: … Next: …`; all of it if `at_hand`."""
    lead, parts = _thread_parts(view, today_us, at_hand=at_hand)
    return "".join([lead, *(text for _, text in parts)])


def _thread_parts(view: ThreadView, today_us: int, *, at_hand: bool = False) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Returns a thread's outcome, then what blocks it and what is next, each with its statement.

    A thread at rest has only its outcome, unless it is `at_hand`. A status is named if the parts do not show it.
    What an earlier session said has a handle of that session, so that its removal finds the line.
    """
    name, day = thread_name(view), short_day(view.latest_us, today_us)
    status = "open" if view.status == "done" and (view.next_action or view.blocker) else view.status
    outcome, named = without_blocker(view.sample)
    outcome = "" if is_template(outcome) else without_name(outcome, basename(view.project))
    if view.next_action and (left := _LEFT.search(outcome)):
        outcome = outcome[: left.start()]
    if today_us - view.latest_us > QUIET_AFTER and not at_hand:
        about = f"done, {day}" if status == "done" else f"quiet since {day}"
        return f"**{name}** ({about}){_said(clause(plain(outcome), QUIET_LENGTH))}", ()
    blocker = _blocker(view, named)
    steps = [
        ("Blocked", blocker and plain(blocker), view.blocked_by if blocker == view.blocker else ""),
        ("Next", view.next_action and plain(view.next_action, NEXT_LENGTH), view.planned_by),
    ]
    parts = tuple(
        (text, f" {label}: {_ended(text)}{f' {short_handle(by)}' if by else ''}") for label, text, by in steps if text
    )
    implied = {"settled", "question-only", *(["blocked"] if blocker else []), *(["open"] if parts else [])}
    about = _listed(
        "" if status in implied else status,
        day,
        counted(view.sessions, "session") if view.sessions > 1 else "",
    )
    return f"**{name}** ({about}){_said(plain(outcome))}", parts


def _said(outcome: str) -> str:
    return f": {_ended(outcome)}" if outcome else "."


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


def without_name(sentence: str, name: str) -> str:
    """Returns a sentence without what is in front: the project's name, which its line shows anyway, or a file's.

    Sentences of sessions whose project had a name like a common word begin with their own file.
    """
    sentence = _OWN_FILE.sub("", sentence)
    start = f"{name}: "
    return sentence[len(start) :] if name and sentence.casefold().startswith(start.casefold()) else sentence


def without_blocker(sample: str) -> tuple[str, str]:
    """Splits a session's sentence into its outcome and what it says that blocks it."""
    mark = _BLOCKED.search(sample)
    return (sample, "") if mark is None else (sample[: mark.start()], sample[mark.end() :])


def _blocker(view: ThreadView, named: str) -> str:
    """Returns what blocks a thread: in full where its sentence has the beginning only."""
    known = view.blocker or ""
    if not named:
        return known if view.status == "blocked" else ""
    return known if contains(words_of(known), words_of(named)) else named


def clause(text: str, width: int) -> str:
    """Shortens a flattened text to at most `width` characters: to its first clauses if they are half of that."""
    if len(text) <= width:
        return text
    for end in (_CLAUSE_END, _COMMA):
        if ends := [found.start() for found in end.finditer(text, width // 2, width)]:
            return _LABEL_END.sub("", text[: ends[-1]].rstrip())
    return shortened(text, width)


def _ended(text: str) -> str:
    return text if text.endswith(_ENDS) else f"{text.rstrip(' ,;:')}."


def fact_line(view: FactView, today_us: int, *, grouped: bool = False) -> str:
    """Returns `… (lantern, Mar 28)`, after `next: ` or another label of its aspect; `grouped` without its project.

    One of a running session names that.
    """
    day = short_day(view.latest_us, today_us)
    project = "" if grouped else _cell(view.name or basename(view.project))
    where = _listed(project, day, "in a running session" if view.is_running else "")
    return f"{_PREFIXES.get(view.aspect, '')}{plain(view.text)} ({where})"


def memory_line(view: MemoryView, today_us: int) -> str:
    """Returns `… (remembered Mar 28)`, after `preference: ` or another label of its type."""
    return f"{_PREFIXES.get(view.type, '')}{plain(view.content)} (remembered {short_day(view.created_us, today_us)})"


def dreamed_line(view: MemoryView, dreamed: DreamedView) -> str:
    """Returns `… _(score=0.42, hits=5, days=3)_`, the form of the specification."""
    why = f"_(score={dreamed.score:.2f}, hits={dreamed.hits}, days={dreamed.days})_"
    return f"{_PREFIXES.get(view.type, '')}{plain(view.content)} {why}"


def pinned_line(view: PinnedView, today_us: int) -> str:
    """Returns `… (summary, lantern, Mar 28)`."""
    where = _listed(view.source_type, _cell(basename(view.project)), short_day(view.latest_us, today_us))
    return f"{plain(view.label)} ({where})"


def entity_line(view: EntityEntry) -> str:
    """Returns `**Inner Critic** (protector): …`: its type and status, if the title does not say the type."""
    title = _cell(view.title, 80)
    kind = _cell(view.type or "", 40)
    about = _listed(
        "" if kind.casefold() in title.casefold() else kind, "" if view.status == "active" else _cell(view.status, 40)
    )
    sentence = f": {plain(view.sentence)}" if view.sentence else ""
    return f"**{title}**{f' ({about})' if about else ''}{sentence}"


def link_to(path: str) -> str:
    """Returns a wikilink to an artifact, with its kind as label."""
    name = artifact_name(path.rpartition("/")[2])
    return wikilink(path, name.kind if name is not None else "source")


def inert(text: str) -> str:
    """Returns text without handles, so that only ours can be expanded."""
    return _HANDLE.sub("^ ", text)


def section_of(kind: str) -> str:
    """Returns the section of a fact's aspect or a memory's type."""
    return SECTION_OF.get(kind, SECTION_OF["note"])


def plain(text: str, limit: int = TEXT_LENGTH) -> str:
    """Returns text fit for a list item: on one line, opening no block, containing no handle."""
    return inert(escape(_BLOCK.sub("", flatten(text, limit), 1)))


def _cell(text: str, limit: int = NAME_LENGTH) -> str:
    return inert(page_cell(text, limit))


def _listed(*parts: str) -> str:
    return ", ".join(part for part in parts if part)
