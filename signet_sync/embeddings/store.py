"""Stores the vectors of texts: a row has those of one text, and goes with the text.

The row of a text belongs to a range of numbers that says whose it is (`sync.store.texts.range_of`). What is near to a
question, only the agent can tell: it lends its model to this process.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from signet_sync.storage.database.connection import Database
from signet_sync.sync.store.texts import text_of

if TYPE_CHECKING:
    from signet_sync.embeddings.vectors import Nearness

Tell = Callable[[Database, Sequence[tuple[int, int]], str, bool], "Nearness | None"]
_MOST = 2_000  # vectors of a text: of a long session its beginning


def use_model(database: Database, key: str) -> None:
    """Deletes the vectors of all models but one; with "" all. In a transaction of its own."""
    with database.transaction():
        database.execute("delete from vectors where model <> ?", (key,))


def progress(database: Database) -> str:
    """Returns how far the vectors are, for the user; "" without any."""
    made: int = database.value("select count(*) from vectors")
    return f"{made:,} of {database.value('select count(*) from texts'):,} texts have vectors" if made else ""


def passages(database: Database) -> int:
    """Returns how many passages the texts have, each with a vector to make."""
    found: int = database.value(
        "select (select count(*) from texts where artifact is null)"
        " + (select count(*) from passages where size > 0 and voice <> 'tool')"
    )
    return found


def list_unembedded(database: Database, most: int) -> list[int]:
    """Returns texts that have no vectors, the newest first."""
    return database.column(
        "select t.first from texts t where not exists(select 1 from vectors v where v.text = t.first)"
        " order by t.at_us desc limit ?",
        (most,),
    )


def read_rows(database: Database, number: int) -> list[tuple[int, str]]:
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
        if read_rows(database, number) == said:
            database.execute(
                "insert or replace into vectors(made, text, model, rows)"
                " values(max(?, (select ifnull(max(made), 0) + 1 from vectors)), ?, ?, ?)",
                (time.time_ns(), number, key, rows),
            )


def rows(database: Database) -> Iterable[tuple[int, bytes]]:
    """Yields the texts that have vectors, in order, and these."""
    return database.execute("select text, rows from vectors where length(rows) > 0 order by text")


def state(database: Database) -> tuple[int, int]:
    """Returns what is another one as soon as there are other vectors."""
    return next(database.execute("select (select count(*) from vectors), (select max(made) from vectors)"))


# ── what is near to a question ──

_tell: Tell | None = None


def let_tell(tell: Tell | None) -> None:
    """Lets the agent's model tell it to everything in this process."""
    global _tell
    _tell = tell


def measure_nearness(
    database: Database, ranges: Sequence[tuple[int, int]], question: str, *, at_once: bool = False
) -> Nearness | None:
    """Returns how near the texts of some ranges are to a question; None where no agent's model tells it in time.

    With `at_once` no server is asked.
    """
    return None if _tell is None else _tell(database, ranges, question, at_once)
