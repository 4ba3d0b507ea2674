"""Stores vectors, of lines and of groups of an artifact's turns, and which model made them.

An artifact's vectors are complete with that of its last group; until then the next run goes on behind the last one.
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from signet_sync.embeddings import RULES
from signet_sync.storage.database.connection import Database
from signet_sync.sync.store import passes
from signet_sync.sync.store.bodies import text_of

_VERSION = "1"  # of how texts are cut and given to the model
_BLOCK = 2_000  # vectors; twice as fast as blocks that no cache of a processor can hold


class StoredModel(NamedTuple):
    """The model that made all vectors."""

    dimensions: int
    id: str


class EmbeddedText(NamedTuple):
    """A line, or characters `start` to `end` of an artifact: of the one its number is given, of the other None."""

    agent_id: str
    artifact: int | None
    line: int | None
    start: int
    end: int
    complete: bool


# ── the model ──


def model_of(database: Database) -> StoredModel | None:
    """Returns the model that made the vectors; None if there are none, or other rules made them."""
    version, _, rest = (passes.version_of(database, RULES) or "").partition(" ")
    dimensions, _, name = rest.partition(" ")
    return StoredModel(int(dimensions), name) if version == _VERSION and dimensions.isdigit() else None


def set_model(database: Database, model: StoredModel) -> None:
    """Records the model. In the caller's transaction."""
    passes.set_version(database, RULES, f"{_VERSION} {model.dimensions} {model.id}")


def clear(database: Database) -> None:
    """Deletes every vector. In the caller's transaction."""
    database.execute("delete from embeddings")
    database.execute("delete from derivers where name = ?", (RULES,))


def is_any(database: Database) -> bool:
    """Returns whether there is a vector, or a record of a model."""
    exists = "exists(select 1 from embeddings)"
    return bool(database.value(f"select {exists} or exists(select 1 from derivers where name = ?)", (RULES,)))


# ── what has no vector yet ──


def lines_left(database: Database, limit: int) -> list[tuple[str, int, str]]:
    """Returns agent, number and text of lines without a vector, the newest first."""
    return list(
        database.execute(
            "select l.agent_id, l.first, l.text from texts l left join embeddings e on e.line = l.first"
            " where l.artifact is null and e.line is null order by l.at_us desc limit ?",
            (limit,),
        )
    )


def artifacts_left(database: Database) -> list[int]:
    """Returns the artifacts without all their vectors, the newest first."""
    rows = database.execute(
        "select a.id from memory_artifacts a where a.source_kind <> 'manifest' and not exists("
        "select 1 from embeddings e where e.artifact = a.id and e.complete) order by a.membership_us desc, a.id desc"
    )
    return [row[0] for row in rows]


def artifact(database: Database, number: int) -> tuple[str, str, int] | None:
    """Returns agent and text of an artifact, and up to where it has vectors; None if it is gone."""
    for row in database.execute(
        f"select a.agent_id, {text_of('a')}, coalesce((select max(end) from embeddings where artifact = a.id), 0)"
        " from memory_artifacts a where a.id = ?",
        (number,),
    ):
        return row[0], row[1], row[2]
    return None


def line(database: Database, number: int) -> str | None:
    """Returns the text of a line; None if it is gone."""
    found: str | None = database.value("select text from texts where first = ?", (number,))
    return found


# ── vectors ──


def put(database: Database, rows: Iterable[tuple[EmbeddedText, bytes]]) -> None:
    """Writes vectors. In the caller's transaction."""
    database.executemany(
        "insert or replace into embeddings(agent_id, artifact, line, start, end, complete, vector)"
        " values(?, ?, ?, ?, ?, ?, ?)",
        [(*text, vector) for text, vector in rows],
    )


def count(database: Database) -> int:
    """Returns the number of vectors of all agents."""
    found: int = database.value("select count(*) from embeddings")
    return found


def size(database: Database) -> tuple[int, int]:
    """Returns the number of vectors and their bytes."""
    rows: tuple[int, int] = next(database.execute("select count(*), coalesce(sum(length(vector)), 0) from embeddings"))
    return rows


def left(database: Database) -> int:
    """Returns how many lines and artifacts have no vectors yet."""
    lines = (
        "select count(*) from texts l where l.artifact is null"
        " and not exists(select 1 from embeddings e where e.line = l.first)"
    )
    found: int = database.value(lines)
    return found + len(artifacts_left(database))


def rests_until(database: Database, kind: str) -> str | None:
    """Returns until when no requests of a kind are sent, after a failure (ISO 8601 UTC)."""
    found: str | None = database.value("select until from model_rests where kind = ?", (kind,))
    return found


def set_rests_until(database: Database, kind: str, until: str) -> None:
    """Stores until when no requests of a kind are sent. In the caller's transaction."""
    database.execute("insert or replace into model_rests(kind, until) values(?, ?)", (kind, until))


def blocks(database: Database, agent_id: str, dimensions: int) -> Iterator[tuple[list[EmbeddedText], bytes]]:
    """Yields an agent's vectors, many at a time, with what each was made of."""
    rows = database.execute(
        "select agent_id, artifact, line, start, end, complete, vector from embeddings"
        " where agent_id = ? and length(vector) = ?",
        (agent_id, 2 * dimensions),
    )
    while some := list(islice(rows, _BLOCK)):
        yield [EmbeddedText._make(row[:-1]) for row in some], b"".join(row[-1] for row in some)
