"""Remembers until when a model that failed is not asked, for vectors of texts and for those of queries."""

from typing import NamedTuple

from signet_sync.embeddings import store
from signet_sync.formats.timestamps import SECOND, iso
from signet_sync.storage.database.connection import Database


class Rest(NamedTuple):
    """What is not asked for, and for how long (microseconds)."""

    kind: str
    length: int


MAKING, ASKING = Rest("embeddings", 900 * SECOND), Rest("similar", 300 * SECOND)


def rests(database: Database, rest: Rest, now_us: int) -> bool:
    """Returns whether no model is asked now, because it failed."""
    # Later than its length allows: the clock was set back.
    return iso(now_us) < (store.rests_until(database, rest.kind) or "") <= iso(now_us + rest.length)


def begin(database: Database, rest: Rest, now_us: int) -> None:
    """Records a failure, in a transaction of its own."""
    with database.transaction():
        store.set_rests_until(database, rest.kind, iso(now_us + rest.length))
