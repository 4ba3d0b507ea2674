"""Makes rows follow from rows: what moved passes through the derivers in their order, in batches that can be resumed.

An update and a rebuild are one path: a rebuild empties tables and updates all sources.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import nullcontext
from typing import Any

from signet_sync.index.database import LARGE_LOG, Database, log_size
from signet_sync.sync import outbox
from signet_sync.sync.stages import Alive, Change, Deriver, Pipeline, Source


def stale(database: Database, pipeline: Pipeline) -> list[Deriver]:
    """Gives the derivers whose rows were made by other rules, or not yet, and those behind them."""
    made = dict(database.execute("select name, version from derivers"))
    found: list[Deriver] = []
    names: set[str] = set()
    for deriver in pipeline.derivers:
        if made.get(deriver.name) != deriver.version or names.intersection(deriver.after):
            found.append(deriver)
            names.add(deriver.name)
    return found


def is_stale(database: Database, pipeline: Pipeline) -> bool:
    """Says whether some rows were made by other rules, or not yet."""
    return bool(stale(database, pipeline))


def queue(database: Database, pipeline: Pipeline, moved: Collection[Source]) -> None:
    """Has all rows follow what moved. In the caller's transaction; `drain` comes after it."""
    for deriver in pipeline.derivers:
        outbox.put(database, deriver.name, sorted(source for source in moved if source.kind in deriver.kinds))


def rebuild(database: Database, derivers: Iterable[Deriver]) -> None:
    """Empties the tables of derivers and has them follow all their sources. In the caller's transaction."""
    for deriver in derivers:
        deriver.clear(database)
        outbox.put(database, deriver.name, deriver.sources(database))
        database.execute(
            "insert or replace into derivers(name, version, rebuilding) values(?, ?, 1)",
            (deriver.name, deriver.version),
        )


def follow(database: Database, pipeline: Pipeline, moved: Collection[Source], *, alive: Alive = lambda: None) -> Change:
    """Makes all rows follow what moved, in the caller's transaction."""
    queue(database, pipeline, moved)
    return drain(database, pipeline, alive=alive)


def drain(
    database: Database, pipeline: Pipeline, *, since_us: int = 0, batches: int = -1, alive: Alive = lambda: None
) -> Change:
    """Makes rows follow what is in the outbox, of nothing before an instant; gives what moved.

    A transaction a batch, unless the caller has one: killed between two, the next call goes on. At most so many
    `batches`, where that is no negative number.
    """
    change = Change()
    while batches and _work(database, pipeline, since_us, change, alive):
        batches -= 1
        if not database.connection.in_transaction and log_size(database.path) > LARGE_LOG:
            database.checkpoint()
    return change


def _work(database: Database, pipeline: Pipeline, since_us: int, change: Change, alive: Alive) -> bool:
    """One batch through all derivers that wait for its sources; False where nothing waits."""
    place, sources, more = _next(database, pipeline, since_us)
    if not sources:
        return False
    prepared: dict[str, Any] = {}
    batch: dict[str, list[Source]] = {}
    for deriver in pipeline.derivers[place:]:
        if mine := [source for source in sources if source.kind in deriver.kinds]:
            alive()
            batch[deriver.name] = mine
            prepared[deriver.name] = deriver.prepare(database, mine, prepared, alive)
    alive()
    with nullcontext() if database.connection.in_transaction else database.transaction():
        moved = Change()
        for deriver in pipeline.derivers[place:]:
            given = batch.get(deriver.name, [])
            if given:
                moved.add(deriver.update(database, prepared[deriver.name], alive))
                outbox.take(database, deriver.name, given)
            if not more:
                # What those before it moved: of a backlog it is put into the outbox, to be followed once.
                _follow_at_once(database, deriver, moved, alive)
        if more:
            queue(database, pipeline, moved.sources)
        for publisher in pipeline.publishers:
            publisher.mark(database, moved)
        change.add(moved)
        _finish(database, pipeline, change)
    return True


def _next(database: Database, pipeline: Pipeline, since_us: int) -> tuple[int, list[Source], bool]:
    """The place of the first deriver for which something waits, what it is, and whether there is more of it."""
    for place, deriver in enumerate(pipeline.derivers):
        found = outbox.newest(database, deriver.name, deriver.batch + 1, since_us)
        if found:
            return place, found[: deriver.batch], len(found) > deriver.batch
    return 0, [], False


def _follow_at_once(database: Database, deriver: Deriver, moved: Change, alive: Alive) -> None:
    if mine := sorted(source for source in moved.sources if source.kind in deriver.kinds):
        moved.add(deriver.update(database, deriver.prepare(database, mine, {}, alive), alive))


def _finish(database: Database, pipeline: Pipeline, change: Change) -> None:
    rebuilding = {name for (name,) in database.execute("select name from derivers where rebuilding = 1")}
    for deriver in pipeline.derivers:
        if outbox.waits(database, deriver.name):
            continue
        deriver.finish(database, None if deriver.name in rebuilding else change)
        if deriver.name in rebuilding:
            database.execute("update derivers set rebuilding = 0 where name = ?", (deriver.name,))
