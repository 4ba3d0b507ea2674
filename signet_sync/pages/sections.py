"""Makes the page sections of MEMORY.md: threads, facts, memories, pins as lines, ranked by score, within a budget."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from typing import NamedTuple

from signet_sync.formats.fact import SECTION_OF
from signet_sync.formats.filename import artifact_name
from signet_sync.formats.handle import handle
from signet_sync.formats.lazy_pattern import late
from signet_sync.formats.timestamps import DAY, day_of
from signet_sync.formats.wikilinks import wikilink
from signet_sync.memories.promotion_views import DreamedView
from signet_sync.memories.score import UNUSED, Use, day_start, rank, score
from signet_sync.text.phrases import counted
from signet_sync.text.sentences import basename, content_words, flatten, flatten_cell
from signet_sync.text.token_estimate import estimate_tokens, page_tokens

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
PIN = "📌 "

# The label of a line whose kind its section does not show.
_PREFIXES = {"next": "next: ", "question": "question: ", "preference": "preference: ", "blocker": "blocker: "}
# What would start a heading, a quote, a fence, a list or a task inside the list item that shows the text, or look like
# a pin of ours.
_BLOCK = late(r"^(?:(?:#{1,6}|[-*+]|\d{1,9}[.)]|\[[ xX]\])(?:[ \t]+|$)|>[ \t]*|~{3,}[ \t]*|📌\ufe0f?[ \t]*)+")
_HANDLE = late(r"\^(?=[a-z]-)")
_MENTIONED = 3  # content words that a session's sentence shares with a blocker

# A page is rendered again with every change and most of its texts stay the same; the cache holds those of a few pages.
_kept = lru_cache(maxsize=1_000)


class ThreadView(NamedTuple):
    """A thread as page sections show it, by its newest session. Instants are microseconds since 1970 UTC."""

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


class FactView(NamedTuple):
    """An active fact, and the last artifact that states it."""

    id: str
    aspect: str
    text: str
    project: str | None
    latest_us: int
    path: str


class MemoryView(NamedTuple):
    """A memory that a person or agent asked to be remembered."""

    id: str
    type: str
    content: str
    created_us: int


class PinnedView(NamedTuple):
    """A pinned node of the graph; `path` is None for a condensation."""

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
    """All that page sections may show of an agent, in any order; by id, what was used, pinned and promoted."""

    threads: Sequence[ThreadView] = ()
    facts: Sequence[FactView] = ()
    memories: Sequence[MemoryView] = ()
    nodes: Sequence[PinnedView] = ()
    uses: Mapping[str, Use] = {}
    dreamed: Mapping[str, DreamedView] = {}
    entities: Sequence[EntityEntry] = ()


class SectionLine(NamedTuple):
    """The text of one candidate, without bullet and handle.

    `statements` are those in it, its own first: the line is left out if its own is on the page already, and replaced by
    `short` if one of the others is.
    """

    statements: tuple[str, ...]
    text: str
    short: str


class SectionCandidate(NamedTuple):
    """What may be shown, and its score; `make_line` makes its line, which is not needed for most.

    `group` is a heading inside the section, and `place` the order below it, lowest first.
    """

    section: str
    id: str
    at_us: int
    score: float
    pinned: bool
    make_line: Callable[[], SectionLine]
    group: str = ""
    place: float = 0.0

    @property
    def line(self) -> str:
        """Returns the whole line, without its handle."""
        return f"{self.bullet}{self.make_line().text}"

    @property
    def bullet(self) -> str:
        """Returns the beginning of the line."""
        return f"- {PIN}" if self.pinned else "- "


class FilledSections(NamedTuple):
    """Lines by section, the ids that they show, and the tokens that they and their headings cost."""

    lines: dict[str, list[str]]
    shown: frozenset[str]
    tokens: int


def candidates(seen: SectionInputs, now_us: int, half_lives: Mapping[str, float]) -> list[SectionCandidate]:
    """Returns a candidate for everything seen, scored for the UTC day of `now_us`; half-lives are days by kind.

    A blocker that a later session of its project mentions is left out: that session has its present state.
    """
    today = day_start(now_us)

    def valued(
        kind: str,
        section: str,
        thing_id: str,
        at_us: int,
        make_line: Callable[[], SectionLine],
        *,
        remembered: bool = False,
    ) -> SectionCandidate:
        use = seen.uses.get(thing_id, UNUSED)
        value = score(
            kind,
            at_us,
            today,
            half_lives=half_lives,
            accesses=use.accesses,
            last_access_us=use.last_us,
            pinned=use.pinned,
            remembered=remembered,
        )
        return SectionCandidate(section, thing_id, at_us, value, use.pinned, make_line)

    threads: dict[str, list[ThreadView]] = {}
    for thread in seen.threads:
        threads.setdefault((thread.project or "").casefold(), []).append(thread)
    facts = [v for v in seen.facts if seen.uses.get(v.id, UNUSED).pinned or not _mentioned_since(v, threads)]
    return [
        *(valued("thread", "projects", v.id, v.latest_us, partial(_of_thread, v, today)) for v in seen.threads),
        *(valued(v.aspect, _section(v.aspect), v.id, v.latest_us, partial(_of_fact, v)) for v in facts),
        *(_memory(v, seen.dreamed.get(v.id), valued) for v in seen.memories),
        *(valued("node", "projects", v.id, v.latest_us, partial(_of_node, v)) for v in seen.nodes),
        # Entities are curated by hand, so they count as remembered, like memories.
        *(
            valued("person", "people", v.id, v.updated_us, partial(_of_entity, v), remembered=True)
            for v in seen.entities
        ),
    ]


def _mentioned_since(view: FactView, threads: Mapping[str, Sequence[ThreadView]]) -> bool:
    """Returns whether the newest session of a thread of the same project mentions an earlier session's blocker."""
    if view.aspect != "blocker" or not view.project:
        return False
    return any(
        thread.latest_us > view.latest_us and len(_words(view.text) & _words(thread.sample)) >= _MENTIONED
        for thread in threads.get(view.project.casefold(), ())
    )


@_kept
def _words(text: str) -> frozenset[str]:
    return frozenset(content_words(text))


def _memory(view: MemoryView, dreamed: DreamedView | None, valued: Callable[..., SectionCandidate]) -> SectionCandidate:
    """Returns a memory in the section of its type; a promoted one in *Dreamed*, dated by its promotion."""
    if dreamed is None:
        section = _section(view.type)
        return valued(view.type, section, view.id, view.created_us, partial(_of_memory, view), remembered=True)
    at_us, make_line = max(view.created_us, dreamed.at_us), partial(_of_dream, view, dreamed)
    promoted = valued(view.type, "dreamed", view.id, at_us, make_line, remembered=True)
    return promoted._replace(group=dreamed.heading, place=-dreamed.score)


@_kept
def _of_thread(view: ThreadView, today_us: int) -> SectionLine:
    text = thread_line(view, today_us)
    if not view.next_action:
        return SectionLine((view.id,), text, text)
    return SectionLine(
        (view.id, _statement(view.next_action)), text, thread_line(view._replace(next_action=None), today_us)
    )


@_kept
def _of_fact(view: FactView) -> SectionLine:
    return _single(_statement(view.text), fact_line(view))


def _of_memory(view: MemoryView) -> SectionLine:
    return _single(_statement(view.content), memory_line(view))


def _of_dream(view: MemoryView, dreamed: DreamedView) -> SectionLine:
    return _single(_statement(view.content), dreamed_line(view, dreamed))


def _of_node(view: PinnedView) -> SectionLine:
    return _single(view.id, pinned_line(view))


def _of_entity(view: EntityEntry) -> SectionLine:
    return _single(view.id, entity_line(view))


def _single(statement: str, text: str) -> SectionLine:
    return SectionLine((statement,), text, text)


def thread_line(view: ThreadView, today_us: int) -> str:
    """Returns `**lantern** (codex) · open, 4 sessions, last 2026-03-28: …; next: … [[…|summary]]`."""
    project, lineage = _cell(basename(view.project)), _cell(view.session_key or "")
    harness = f" ({_cell(view.harness, 40)})" if view.harness else ""
    more = f" · {lineage}" if project and lineage else ""
    status = "quiet" if today_us - view.latest_us > QUIET_AFTER else view.status
    count = counted(view.sessions, "session")
    summary = plain(view.sample)
    if view.next_action:
        summary = f"{summary.rstrip('.')}; next: {plain(view.next_action, NEXT_LENGTH)}"
    name = project or lineage or "no project"
    return (
        f"**{name}**{harness}{more} · {status}, {count}, last {day_of(view.latest_us)}: {summary} {link_to(view.path)}"
    )


def fact_line(view: FactView) -> str:
    """Returns `… (lantern, 2026-03-28) [[…|summary]]`, after `next: ` or another label of its aspect."""
    where = _listed(_cell(basename(view.project)), day_of(view.latest_us))
    return f"{_PREFIXES.get(view.aspect, '')}{plain(view.text)} ({where}) {link_to(view.path)}"


def memory_line(view: MemoryView) -> str:
    """Returns `… (remembered 2026-03-28)`, after `preference: ` or another label of its type."""
    return f"{_PREFIXES.get(view.type, '')}{plain(view.content)} (remembered {day_of(view.created_us)})"


def dreamed_line(view: MemoryView, dreamed: DreamedView) -> str:
    """Returns `… _(score=0.42, hits=5, days=3)_`, the form of the specification."""
    why = f"_(score={dreamed.score:.2f}, hits={dreamed.hits}, days={dreamed.days})_"
    return f"{_PREFIXES.get(view.type, '')}{plain(view.content)} {why}"


def pinned_line(view: PinnedView) -> str:
    """Returns `… (summary, lantern, 2026-03-28) [[…|summary]]`; a condensation has no file to link."""
    where = _listed(view.source_type, _cell(basename(view.project)), day_of(view.latest_us))
    return f"{plain(view.label)} ({where}){f' {link_to(view.path)}' if view.path else ''}"


def entity_line(view: EntityEntry) -> str:
    """Returns `**Inner Critic** (part, protector, active): … [[…/profile.md|profile]]`."""
    about = _listed(view.kind, _cell(view.type or "", 40), _cell(view.status, 40))
    sentence = f": {plain(view.sentence)}" if view.sentence else ""
    return f"**{_cell(view.title, 80)}** ({about}){sentence} {wikilink(view.path, 'profile')}"


def link_to(path: str) -> str:
    """Returns a wikilink to an artifact, with its kind as label."""
    name = artifact_name(path.rpartition("/")[2])
    return wikilink(path, name.kind if name is not None else "source")


def fill(entries: Iterable[SectionCandidate], budget: int) -> FilledSections:
    """Returns lines within a budget of tokens, each with its handle: best first, each statement once.

    Pins come first, then the highest score, then the newest, then ids. A line that alone exceeds the budget is skipped;
    the first that no longer fits ends the selection, so that nothing of lower score takes its place. Inside a section
    pins come first, then threads, then the rest, each as ranked; if it has groups, the newest group first.
    """
    chosen: dict[str, list[tuple[SectionCandidate, str]]] = {key: [] for key, _ in SECTIONS}
    groups: set[str] = set()
    shown_statements: set[str] = set()
    shown: set[str] = set()
    used = 0
    for entry in sorted(entries, key=lambda e: rank(e.score, e.at_us, e.id, pinned=e.pinned)):
        if entry.id in shown:
            continue
        statements, text, short = entry.make_line()
        if statements[0] in shown_statements:
            continue
        line = f"{entry.bullet}{text if shown_statements.isdisjoint(statements) else short} {handle(entry.id)}"
        heading = _HEADING_COSTS[entry.section]
        cost = page_tokens(line) + 1
        if entry.group not in groups:
            cost += _group_costs(entry.group)
        if heading + cost > budget:
            continue
        if not chosen[entry.section]:
            cost += heading
        if used + cost > budget:
            break
        used += cost
        groups.add(entry.group)
        chosen[entry.section].append((entry, line))
        shown_statements.update(statements)
        shown.add(entry.id)
    for pairs in chosen.values():
        pairs.sort(key=lambda pair: (not pair[0].pinned, pair[0].place, not pair[0].id.startswith("t-")))
        pairs.sort(key=lambda pair: pair[0].group, reverse=True)
    return FilledSections({key: _grouped(pairs) for key, pairs in chosen.items()}, frozenset(shown), used)


def _grouped(pairs: Iterable[tuple[SectionCandidate, str]]) -> list[str]:
    """Returns the lines of a section, each group below its heading."""
    lines: list[str] = []
    before = ""
    for entry, line in pairs:
        if entry.group != before:
            lines += [*([""] if lines else []), entry.group, ""]
            before = entry.group
        lines.append(line)
    return lines


def _group_costs(group: str) -> int:
    return estimate_tokens(group) + 3 if group else 0


_HEADING_COSTS = {key: estimate_tokens(heading) + 3 for key, heading in SECTIONS}


def inert(text: str) -> str:
    """Returns text without handles, so that only ours can be expanded."""
    return _HANDLE.sub("^ ", text)


def _section(kind: str) -> str:
    return SECTION_OF.get(kind, SECTION_OF["note"])


def _statement(text: str) -> str:
    return plain(text).casefold().rstrip(" .!…")


def plain(text: str, limit: int = TEXT_LENGTH) -> str:
    """Returns text fit for a list item: on one line, opening no block, containing no handle."""
    return inert(_BLOCK.sub("", flatten(text, limit), 1))


def _cell(text: str, limit: int = 60) -> str:
    return inert(flatten_cell(text, limit))


def _listed(*parts: str) -> str:
    return ", ".join(part for part in parts if part)
