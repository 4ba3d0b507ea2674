"""Reads what stands behind hits: statements with what they are about, artifacts with their bodies, nodes of places."""

import json
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from signet_sync.formats.handle import make_place_id
from signet_sync.formats.timestamps import parse_instant
from signet_sync.storage.database.connection import Database
from signet_sync.storage.database.tables import path_of
from signet_sync.sync.store.texts import Place, text_of

_MOST_TOGETHER = 300  # passages of one row of full text: each has a letter


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
        """Returns the words of a passage."""
        return self.sentence if place.start < 0 else self.content[place.start : place.end]

    @property
    def said(self) -> str:
        """Returns the words of all its passages."""
        return "\n".join(self.words(one) for one in self.passages.values() if one.voice != "tool")


class NodeAt(NamedTuple):
    """The graph node that covers a place of an artifact, and when it ends."""

    id: str
    at_us: int


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


def artifact(database: Database, number: int, rows_of_text: Sequence[int], last: int) -> FoundArtifact | None:
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


def is_answered(database: Database, place: int, last: int) -> bool:
    """Returns whether an agent says something after a passage of a text that ends with the passage `last`."""
    later = "select exists(select 1 from passages where id > ? and id <= ? and voice = 'agent')"
    return bool(database.value(later, (place, last)))


def node_at(database: Database, agent_id: str, path: str, place: int) -> NodeAt | None:
    """Returns the node that covers a place of an artifact: of a transcript the chunk there."""
    for node_id, at_us, kind, length in database.execute(
        "select n.id, n.latest_us, n.source_type, n.end from memory_artifacts a"
        " join session_summaries n on n.artifact = a.id where a.source_path = ? and n.agent_id = ?",
        (path, agent_id),
    ):
        return NodeAt(make_place_id(node_id, max(place, 0), length) if kind == "chunk" else node_id, at_us)
    return None
