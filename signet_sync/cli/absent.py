"""Reports that what a command names does not exist, before reporting a missing option, which would not help."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from signet_sync.entities import queries
from signet_sync.errors import DatabaseError
from signet_sync.integrity.operations import difference
from signet_sync.sync.read_only import reading
from signet_sync.sync.store.artifacts import seal_of

if TYPE_CHECKING:
    from signet_sync.cli.main import Context


def check_named(error: click.MissingParameter, context: Context) -> None:
    """Raises `UsageError` or `WorkspaceError` if the thing that the command names is known to be absent."""
    if error.ctx is None or not isinstance(error.param, click.Option):
        return
    with suppress(DatabaseError):  # without an index it is unknown
        _check(context, error.ctx.command_path.split()[1:], error.ctx.params)


def _check(context: Context, command: list[str], arguments: Mapping[str, Any]) -> None:
    if command[:1] == ["entity"] and "ref" in arguments:
        with queries.open_read_only(context.place(), context.agent, context.now_us) as repository:
            queries.require_row(repository, arguments["ref"])
    elif command == ["violations", "accept"] and len(arguments.get("paths", ())) == 1:
        (path,) = arguments["paths"]
        if any(sign in path for sign in "*?["):
            return
        with reading(context.place()) as database:
            if seal_of(database, path) is None:  # a sealed one may have just changed
                difference(database, context.root, path, 0)
