"""Stores the vectors of texts: a row has those of one text by one model, and goes with the text.

The row of a text belongs to a range of numbers that says whose it is (`sync.store.texts.range_of`).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from signet_sync.storage.database.connection import Database
from signet_sync.sync.store import passes
from signet_sync.sync.store.bodies import text_of

_USED = "vectors"  # under this name the model is recorded whose vectors answer
_MOST = 2_000  # vectors of a text: of a long session its beginning


def used_model(database: Database) -> str:
    """Returns the key of the model whose vectors answer; "" without one."""
    return passes.version_of(database, _USED) or ""


def use_model(database: Database, key: str) -> None:
    """Lets the vectors of a model answer, and deletes those of others; with "" all. In a transaction of its own."""
    with database.transaction():
        database.execute("delete from vectors where model <> ?", (key,))
        passes.set_version(database, _USED, key)


def made_of(database: Database) -> dict[str, int]:
    """Returns how many texts have vectors, by the key of the model."""
    return dict(database.execute("select model, count(*) from vectors group by model"))


def to_make(database: Database) -> tuple[int, int]:
    """Returns how many texts there are, and how many passages, each with a vector, they have in all."""
    return next(
        database.execute(
            "select (select count(*) from texts), (select count(*) from texts where artifact is null)"
            " + (select count(*) from passages where size > 0 and voice <> 'tool')"
        )
    )


def texts_left(database: Database, key: str, most: int) -> list[int]:
    """Returns texts that have no vectors of a model, the newest first."""
    rows = database.execute(
        "select t.first from texts t where not exists(select 1 from vectors v where v.text = t.first and v.model = ?)"
        " order by t.at_us desc limit ?",
        (key, most),
    )
    return [number for (number,) in rows]


def said_in(database: Database, number: int) -> list[tuple[int, str]]:
    """Returns what a text says, by its rows of full text: their numbers within it, and their words."""
    text: str | None = database.value("select text from texts where first = ?", (number,))
    if text is not None:
        return [(0, text)]
    stored = f"select t.last, coalesce(a.memory_sentence, ''), {text_of('a')} from texts t"
    for last, sentence, content in database.execute(
        f"{stored} join memory_artifacts a on a.id = t.artifact where t.first = ?", (number,)
    ):
        said: dict[int, str] = {}
        row = 0
        places = "select id, start, end, size from passages where id between ? and ? and voice <> 'tool' order by id"
        for one, start, end, size in database.execute(places, (number, last)):
            row = one - number if size else row
            words = sentence if start < 0 else content[start:end]
            said[row] = f"{said[row]}\n{words}" if row in said else words
        return list(islice(said.items(), _MOST))
    return []


def put(database: Database, number: int, key: str, said: Sequence[tuple[int, str]], rows: bytes) -> None:
    """Stores the vectors of what a text said, if it still does. In a transaction of its own."""
    with database.transaction():
        if said_in(database, number) == said:
            database.execute("insert or replace into vectors(text, model, rows) values(?, ?, ?)", (number, key, rows))


def is_any(database: Database) -> bool:
    """Returns whether there is a vector, or a record of a model."""
    return bool(used_model(database) or database.value("select exists(select 1 from vectors)"))
