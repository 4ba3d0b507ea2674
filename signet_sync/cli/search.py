"""`search`: full text over one agent's artifacts; any input is safe."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import click

from signet_sync.cli import Context, agent_option, emit, json_option, pass_context

if TYPE_CHECKING:
    from collections.abc import Iterator

    from signet_sync.index.database import Database

_PATIENCE = 10.0  # seconds that whoever asks waits for a removal


@click.command()
@click.argument("query", nargs=-1, required=True)
@click.option("--kind", type=click.Choice(["summary", "transcript", "compaction", "manifest"]), help="Only this kind.")
@click.option("--limit", type=click.IntRange(1, 1000), default=10, show_default=True)
@click.option("--since", metavar="TIME", help="Only sessions from this day or time on (ISO 8601).")
@click.option("--raw", is_flag=True, help="The query is FTS5 syntax, not plain words.")
@agent_option
@json_option
@pass_context
def search(
    context: Context,
    query: tuple[str, ...],
    kind: str | None,
    limit: int,
    since: str | None,
    raw: bool,
    agent: str,
    as_json: bool,
) -> int:
    """Find artifacts by their words: all of them, else any of them."""
    from signet_sync.index import search as door

    words = " ".join(query)
    with database_for_reading(context) as database:
        hits = door.search(database, words, agent_id=agent, kind=kind, since_us=_since(since), limit=limit, raw=raw)
        count_access(context, [(hit.agent_id, hit.path) for hit in hits])
    if as_json:
        emit({"query": words, "hits": [hit._asdict() for hit in hits]})
        return 0
    if not hits:
        context.say("nothing found")
    for hit in hits:
        when = (hit.ended_at or "")[:10]
        click.echo(click.style(hit.path, bold=True) + (f"  {when}" if when else ""))
        click.echo(f"  {hit.snippet}")
    return 0


def _since(text: str | None) -> int | None:
    from signet_sync.contracts.timestamps import parse_instant

    if text is None:
        return None
    instant = parse_instant(text) or parse_instant(f"{text}T00:00:00Z")
    if instant is None:
        raise click.BadParameter(f"{text!r} is not a day or an ISO 8601 time", param_hint="--since")
    return instant


@contextmanager
def database_for_reading(context: Context) -> Iterator[Database]:
    """The index opened read-only; of damage that is met a note is left for the next pass.

    Raises `WorkspaceError` where there is nothing to index, `DatabaseError` where there is no index yet, or it fails.
    """
    import apsw

    from signet_sync.errors import DatabaseError
    from signet_sync.index import tombstones
    from signet_sync.index.database import noted

    database = _readable(context)
    try:
        if tombstones.half_enforced(database):
            database.connection.close()
            _finish_removal(context)
            database = _readable(context)
        yield database
    except (apsw.Error, DatabaseError) as error:
        raise noted(error, database.path) from error
    finally:
        database.connection.close()


def _readable(context: Context) -> Database:
    from signet_sync.errors import DatabaseError
    from signet_sync.index.database import Database

    path = context.database_path()
    try:
        return Database(path, readonly=True)
    except FileNotFoundError:
        from signet_sync.agent.workspace import require_root

        if context.chosen_database is None:
            require_root(context.root)
        hint = f"run {context.command_line('reindex')} once"
        raise DatabaseError("there is no index yet", path=path, hint=hint) from None


def _finish_removal(context: Context) -> None:
    """Finishes a removal that was cut off: what it covers must not be found any more, whoever asks first.

    Raises `WorkspaceError` where it cannot be finished now.
    """
    from signet_sync.agent import reconcile
    from signet_sync.agent.workspace import opened
    from signet_sync.cli import resolve_now
    from signet_sync.errors import WorkspaceError
    from signet_sync.index import tombstones

    with opened(context.root, context.settings(), database=context.chosen_database) as workspace:
        reconcile.run_pass(workspace, reconcile.Request(now_us=resolve_now(None), patience=_PATIENCE))
        if tombstones.half_enforced(workspace.database):
            raise WorkspaceError(
                "a removal was cut off and cannot be finished now", path=context.root, hint="status says what is halted"
            )


def require_index(context: Context) -> None:
    """Raises `DatabaseError` where there is no index yet, so that a command that only looks makes none."""
    from signet_sync.agent.workspace import require_root

    require_root(context.root)
    with database_for_reading(context):
        pass


def count_access(context: Context, found: list[tuple[str, str]]) -> None:
    """Counts accesses where the database can be written at once; an answer never waits for a counter."""
    from datetime import UTC, datetime

    from signet_sync.contracts.timestamps import instant_of, iso
    from signet_sync.index.telemetry import count_accesses

    with counting(context, wanted=bool(found)) as database:
        if database is not None:
            count_accesses(database, found, iso(instant_of(datetime.now(UTC))))


@contextmanager
def counting(context: Context, *, wanted: bool) -> Iterator[Database | None]:
    """The index opened to count accesses; None where nothing is to be counted or it cannot be written at once."""
    from signet_sync.errors import DatabaseError
    from signet_sync.index.database import Database

    path = context.database_path()
    database = None
    if wanted and path != ":memory:":
        with suppress(DatabaseError, OSError):
            database = Database(path, create=False, wait_ms=200)
    try:
        yield database
    finally:
        if database is not None:
            database.connection.close()
