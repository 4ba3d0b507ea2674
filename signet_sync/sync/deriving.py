"""Updates derived rows and publishes files: what moved goes through the derivers in their order, in batches.

Batches can be resumed. An update and a rebuild use the same code: a rebuild empties tables and updates all sources.
"""

from collections.abc import Collection, Iterable
from contextlib import nullcontext
from itertools import islice
from typing import Any

from signet_sync.errors import LeaseBusy, SignetSyncError, reason
from signet_sync.storage.database.connection import LARGE_LOG, Database, log_size
from signet_sync.sync.index_records import MANIFEST, SESSION, Change, Source
from signet_sync.sync.store import artifacts, passes, sessions, texts
from signet_sync.sync.workspace import Alive, Deriver, Maintenance, Pass, Pipeline, Publisher

# Sources that are put into the outbox by one statement.
_AT_ONCE = 1_000


def stale(database: Database, pipeline: Pipeline) -> list[Deriver]:
    """Returns the derivers whose rows were made under another version or not yet, and those that come after them."""
    made = dict(database.execute("select name, version from derivers"))
    found: list[Deriver] = []
    names: set[str] = set()
    for deriver in pipeline.derivers:
        if made.get(deriver.name) != deriver.version or names.intersection(deriver.after):
            found.append(deriver)
            names.add(deriver.name)
    return found


def queue(database: Database, pipeline: Pipeline, moved: Collection[Source]) -> None:
    """Puts what moved into the outbox. In the caller's transaction; `drain` processes it."""
    # A session that moved is processed together with its manifest.
    moved = set(moved)
    of_sessions = [one.session for one in moved if one.kind == SESSION]
    moved.update(Source(SESSION, *other) for other in sessions.find_under_other_names(database, of_sessions))
    left = {one for one in moved if one.kind != MANIFEST or one._replace(kind=SESSION) not in moved}
    for deriver in pipeline.derivers:
        mine = sorted(source for source in left if source.kind in deriver.kinds)
        passes.queue_sources(database, deriver.name, mine)
        left.difference_update(mine)


def rebuild(database: Database, pipeline: Pipeline, derivers: Iterable[Deriver]) -> None:
    """Empties the tables of derivers and queues all their sources. In the caller's transaction."""
    names = [deriver.name for deriver in pipeline.derivers]
    queued: set[str] = set()
    for deriver in derivers:
        deriver.clear(database)
        before, kinds = names[: names.index(deriver.name)], set[str]()
        # All sources of the other kinds are already queued for an earlier deriver.
        mine = (source for source in deriver.sources(database) if source.kind not in queued)
        while some := list(islice(mine, _AT_ONCE)):
            passes.queue_sources(database, deriver.name, some, before=before)
            kinds.update(source.kind for source in some)
        queued |= kinds
        database.execute(
            "insert or replace into derivers(name, version, rebuilding) values(?, ?, 1)",
            (deriver.name, deriver.version),
        )


def find_unfinished(database: Database, pipeline: Pipeline) -> set[str]:
    """Returns the derivers that have sources of their kinds left, queued for themselves or for an earlier one."""
    left = passes.list_waiting(database)
    found: set[str] = set()
    before: set[str] = set()
    for deriver in pipeline.derivers:
        before.add(deriver.name)
        if any(name in before and kind in deriver.kinds for name, kind in left):
            found.add(deriver.name)
    return found


def drain(
    database: Database, pipeline: Pipeline, *, since_us: int = 0, batches: int = -1, alive: Alive = lambda: None
) -> Change:
    """Processes the outbox down to `since_us`, each batch by all derivers that process its sources; returns what moved.

    Each batch is a transaction, unless the caller has one open: if the process is killed between two batches, the next
    call continues. `batches` limits their number; a negative number is no limit. Of what moved only the number of
    sources is returned: a whole vault derives millions, and nobody needs to know which ones.
    """
    change = Change()
    while batches:
        # A batch is of the first deriver for which a source is queued.
        queued = {name for (name, _), at_us in passes.list_waiting(database).items() if at_us >= since_us}
        place = next((place for place, one in enumerate(pipeline.derivers) if one.name in queued), None)
        if place is None:
            break
        derivers, batches = pipeline.derivers[place:], batches - 1
        first = derivers[0]
        sources = passes.list_newest(database, first.name, first.batch, since_us)
        prepared: dict[str, Any] = {}
        batch: dict[str, list[Source]] = {}
        for deriver in derivers:
            if mine := [source for source in sources if source.kind in deriver.kinds]:
                alive()
                batch[deriver.name] = mine
                prepared[deriver.name] = deriver.prepare(database, mine, prepared, alive)
        alive()
        with nullcontext() if database.connection.in_transaction else database.transaction():
            passes.take_sources(database, sources)
            left = {key: at_us for key, at_us in passes.list_waiting(database).items() if at_us >= since_us}
            more = any(name == first.name for name, _ in left)
            kinds = {kind for _, kind in left}
            moved, later = Change(), set[Source]()
            for deriver in derivers:
                if deriver.name in batch:
                    moved.add(deriver.update(database, prepared[deriver.name], alive))
                # What earlier derivers moved, or this one: the root of a repository moves other sessions, say.
                further = sorted(source for source in moved.sources if source.kind in deriver.kinds)
                if deriver.waits and (more or kinds & deriver.kinds):
                    later.update(further)
                elif further:
                    moved.add(deriver.update(database, deriver.prepare(database, further, {}, alive), alive))
            queue(database, pipeline, later)
            for publisher in pipeline.publishers:
                publisher.mark(database, moved)
            unfinished = find_unfinished(database, pipeline)
            for (name,) in list(database.execute("select name from derivers where rebuilding = 1")):
                if name not in unfinished:
                    database.execute("update derivers set rebuilding = 0 where name = ?", (name,))
        moved.derived, moved.sources = len(moved.sources), set()
        change.add(moved)
        if not database.connection.in_transaction and log_size(database.path) > LARGE_LOG:
            database.checkpoint()
    return change


def publish(run: Pass, publishers: Iterable[Publisher]) -> None:
    """Publishes what is stale, unless it waits for others; a file that cannot be written now does not hold these up."""
    workspace = run.workspace
    if workspace.unshown is not None and not run.outcome.full:
        workspace.unshown.add(run.outcome.change)
        return
    for publisher in publishers if run.request.project and not workspace.touch_nothing else ():
        for key in publisher.stale(run):
            try:
                publisher.publish(run, key)
            except LeaseBusy as busy:
                run.outcome.deferred = True
                run.outcome.trouble.append(busy.message)
            except (OSError, SignetSyncError) as error:
                run.outcome.deferred = True
                path = (error.path if isinstance(error, SignetSyncError) else None) or key
                run.outcome.trouble.append(f"{path}: the page could not be written: {reason(error)}")


class FullText(Maintenance):
    """Compares full text with its rows."""

    name = "full text"
    database_only = True

    def run(self, run: Pass) -> None:
        """Rebuilds what is out of step."""
        if not texts.is_in_step(run.database):
            with run.database.transaction():
                texts.rebuild(run.database, artifacts.read_every_row(run.database))
            run.workspace.events.append("full text was out of step with its rows and is built anew")
