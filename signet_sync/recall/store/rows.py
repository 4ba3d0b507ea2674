"""Reads which passages have a word, which texts they belong to, and what stands behind hits: statements, artifacts."""

import json
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import apsw

from signet_sync.formats.handle import make_place_id
from signet_sync.formats.timestamps import LAST_US, parse_instant
from signet_sync.recall.query import Term
from signet_sync.storage.database.batches import WHOLE
from signet_sync.storage.database.connection import Database
from signet_sync.storage.database.tables import path_of
from signet_sync.sync.store.texts import ARTIFACT, LINE, PRIVATE_LINE, WITHIN, Place, range_of, text_of
from signet_sync.text.index_words import project_word

_TEXT = (
    "t.first, t.last, t.tier, coalesce(t.name, a.source_path),"
    # A session that was written under two tokens, or two ids, is one.
    f" coalesce(t.name, coalesce({WHOLE}, a.session_id) || ' ' || coalesce(a.harness, '')), t.artifact, t.at_us,"
    " t.private, t.text"
)
_NAMED = "left join memory_artifacts a on a.id = t.artifact"
_MOST_TOGETHER = 300  # passages of one row of full text: each has a letter


class Period(NamedTuple):
    """A time that hits are limited to, both ends included. Microseconds since 1970 UTC."""

    since_us: int
    until_us: int

    def holds(self, at_us: int) -> bool:
        return self.since_us <= at_us <= self.until_us


class Within(NamedTuple):
    """What is searched: an agent's memory, or what others may read of it; of a time; of the project with this name."""

    agent_id: str
    shared: bool = False
    period: Period | None = None
    project: str | None = None

    def holds(self, at_us: int) -> bool:
        """Returns whether an instant is in the period; numbers of texts tell the second only."""
        return self.period is None or self.period.holds(at_us)


class FoundText(NamedTuple):
    """A text: the numbers of its passages, what it is (`session`, `memory`, `statement`, `entity`), its path or id.

    `session` is that of an artifact, `words` are a statement's.
    """

    first: int
    last: int
    tier: Literal["session", "memory", "statement", "entity"]
    name: str
    session: str
    artifact: int | None
    at_us: int
    private: int
    words: str | None

    @property
    def whose(self) -> tuple[bool, str]:
        """Returns what texts of one session, or one statement, have alike."""
        return self.artifact is None, self.session

    @property
    def is_transcript(self) -> bool:
        """Returns whether its words are those that were said."""
        return self.name.endswith("--transcript.md")


def ranges(database: Database, within: Within) -> list[tuple[int, int]]:
    """Returns the ranges of numbers that the texts have which are searched; empty ones are left out."""
    kinds = [LINE] if within.shared else [ARTIFACT, LINE, PRIVATE_LINE]
    since, until = within.period or (0, LAST_US)
    some = [kinds] if within.period is None else [[kind] for kind in kinds]
    found = (range_of(database, within.agent_id, since, until, one) for one in some)
    return [one for one in found if one[0] <= one[1]]


def newest(database: Database, within: Sequence[tuple[int, int]], most: int) -> list[tuple[int, int]]:
    """Returns the ranges without what is older than the newest `most` texts of each."""
    begun = "select first from texts where first between ? and ? order by first desc limit 1 offset ?"
    return [(database.value(begun, (*one, most)) or one[0], one[1]) for one in within]


def firsts(database: Database, within: Sequence[tuple[int, int]]) -> list[int]:
    """Returns the first passages of the texts in some ranges, in order."""
    sql = "select json_group_array(first) from (select first from texts where first between ? and ? order by first)"
    return [number for one in within for number in json.loads(database.value(sql, one))]


def count_all(database: Database, agent_id: str) -> int:
    return database.value("select texts from text_owners where agent_id = ?", (agent_id,)) or 0


def count(database: Database, within: Sequence[tuple[int, int]]) -> int:
    """Returns the number of texts in some ranges, at the cost of reading them."""
    return sum(database.value("select count(*) from texts where first between ? and ?", one) for one in within)


def passages_with(
    database: Database,
    terms: Sequence[Term],
    within: Sequence[tuple[int, int]],
    most: int = -1,
    project: str | None = None,
) -> list[int]:
    """Returns the passages that have all terms, in order; of a project if it is given.

    Of a range there are at most `most`; if so many are found, those behind it are not read.
    """
    wanted = [_expression(database, term) for term in terms]
    wanted += [] if project is None else [f'"{project_word(project)}"']
    return _find_passages(database, "said", " AND ".join(wanted), within, most)


def find_printed(database: Database, term: Term, within: Sequence[tuple[int, int]], most: int = -1) -> list[int]:
    """Returns the passages behind which tools printed a term, likewise."""
    return _find_passages(database, "printed", _expression(database, term), within, most)


def _expression(database: Database, term: Term) -> str:
    """Returns the FTS5 expression that finds a term: words that all are in a row, in any of its forms."""
    forms = [" AND ".join(f'"{word}"' for word in _words(database, form)) for form in term.forms]
    begun = [f'"{word}" *' for word in _words(database, term.prefix)[-1:]]
    return "(" + " OR ".join(f"({form})" for form in [*forms, *begun] if form) + ")"


def _words(database: Database, form: str) -> list[str]:
    """Returns the words of a form as FTS5 tells them: adjacent ones are refused, and it knows fewer letters."""
    if form.isascii():
        return form.split()
    words = database.connection.fts5_tokenizer("unicode61", ["remove_diacritics", "2"])
    found = words(form.encode(), apsw.FTS5_TOKENIZE_DOCUMENT, None, include_offsets=False, include_colocated=False)
    return [*map(str, found)]


def _find_passages(
    database: Database, table: str, expression: str, within: Sequence[tuple[int, int]], most: int
) -> list[int]:
    if expression.startswith("()"):  # of letters that FTS5 does not know
        return []
    found: list[int] = []
    for one in within:
        if 0 <= most <= len(found):
            break
        # As one text: thousands of rows of one number each cost twice as much.
        rows = f"select rowid from {table} where {table} match ? and rowid between ? and ? limit ?"
        found += json.loads(database.value(f"select json_group_array(rowid) from ({rows})", (expression, *one, most)))
    return found


def minutes(passages: Sequence[int]) -> int:
    """Returns in how many minutes passages are, which is about the number of their texts."""
    return len({number >> WITHIN for number in passages})


def texts_of(database: Database, passages: Sequence[int]) -> Iterator[tuple[FoundText, int, int]]:
    """Yields the texts to which passages belong, with the passages and their lengths in characters."""
    rows = database.execute(
        f"select {_TEXT}, j.value, coalesce(p.size, length(t.text)) from json_each(?) j"
        f" cross join texts t on t.first = (select max(first) from texts where first <= j.value) {_NAMED}"
        " left join passages p on p.id = j.value",
        (json.dumps(passages),),
    )
    for *text, place, length in rows:
        yield FoundText(*text), place, length or 0


# ── what stands behind hits ──


class Statement(NamedTuple):
    """A statement as shown. `about` names the project or entity as shown to the user; `kind` is its type.

    `words` are those by which an entity is found.
    """

    id: str
    kind: str
    about: str | None
    shown: str
    path: str | None
    at_us: int
    words: str = ""


class FoundArtifact(NamedTuple):
    """An artifact with its body and the passages that were asked for, by number."""

    path: str
    kind: str
    project: str | None
    at_us: int
    sentence: str
    content: str
    passages: dict[int, Place]

    def words(self, place: Place) -> str:
        return self.sentence if place.start < 0 else self.content[place.start : place.end]

    @property
    def spoken_text(self) -> str:
        """Returns the words of all its passages."""
        return "\n".join(self.words(one) for one in self.passages.values() if one.voice != "tool")


# By tier, the columns of a `Statement` by ids, in their order. A statement is about its project's path (null if it is
# the agent's own), an entity about its title.
_STATEMENTS = {
    "memory": """select m.id, m.type, nullif(m.project, ''), m.content, null, m.created_at from json_each(?2) j
        cross join memories m on m.agent_id = ?1 and m.id = j.value""",
    "statement": f"""select f.id, f.kind, nullif(f.project, ''), f.text, {path_of("f.artifact")}, f.at_us
        from json_each(?2) j cross join statements f on f.agent_id = ?1 and f.id = j.value
        where f.newest = 1 and f.status = 'open'""",
    "entity": """select g.id, iif(g.status = 'active', g.kind, g.status || ' ' || g.kind), g.title, g.line,
        g.path, g.updated_us, g.text from json_each(?2) j
        cross join garden_files g on g.agent_id = ?1 and g.id = j.value and g.file = 'profile'
        order by j.key, g.path desc""",
}


def statements(database: Database, agent_id: str, tier: str, ids: Sequence[str]) -> Iterator[Statement]:
    """Yields the statements of a tier; of an entity whose folder was copied, the first by path."""
    rows = {row[0]: row for row in database.execute(_STATEMENTS[tier], (agent_id, json.dumps(ids)))}
    for one, kind, about, shown, path, at, *words in rows.values():
        yield Statement(one, kind, about, shown, path, parse_instant(at) or 0 if isinstance(at, str) else at, *words)


def read_artifact(database: Database, number: int, rows_of_text: Sequence[int], last: int) -> FoundArtifact | None:
    """Returns an artifact with the passages of some rows of full text, and those after them; None if it is gone."""
    found: dict[int, Place] = {}
    for first in rows_of_text:
        places = "select id, start, end, turn, voice, size from passages where id between ? and ? order by id"
        for one, *place in database.execute(places, (first, min(first + _MOST_TOGETHER, last))):
            found[one] = Place(*place)
            if one > first and found[one].size:
                break
    rows = database.execute(
        "select a.source_path, a.source_kind, a.project, a.membership_us,"
        f" coalesce(a.ledger_sentence, a.memory_sentence, ''), {text_of('a')} from memory_artifacts a where a.id = ?",
        (number,),
    )
    for path, kind, project, at_us, sentence, content in rows:
        return FoundArtifact(path, kind, project, at_us, sentence, content, found)
    return None


def node_at(database: Database, agent_id: str, path: str, place: int) -> tuple[str, int] | None:
    """Returns the node that covers a place of an artifact, of a transcript the chunk there, and when it ends."""
    for node_id, at_us, kind, length in database.execute(
        "select n.id, n.latest_us, n.source_type, n.end from memory_artifacts a"
        " join session_summaries n on n.artifact = a.id where a.source_path = ? and n.agent_id = ?",
        (path, agent_id),
    ):
        return make_place_id(node_id, max(place, 0), length) if kind == "chunk" else node_id, at_us
    return None
