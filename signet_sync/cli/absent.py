"""Reports that what a command names does not exist, before reporting a missing option, which would not help."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import click

from signet_sync.cli.main import Context, resolve_now
from signet_sync.errors import DatabaseError
from signet_sync.formats.paths import DEFAULT_AGENT
from signet_sync.sync.read_only import reading


def look(error: click.MissingParameter) -> None:
    """Raises `UsageError` or `WorkspaceError` if the thing that the command names is known to be absent."""
    if error.ctx is None or not isinstance(error.param, click.Option):
        return
    context, said = error.ctx.find_object(Context), error.ctx.params
    words = error.ctx.command_path.split()[1:]
    if context is None:
        return
    with suppress(DatabaseError):  # without an index it is unknown
        _look(context, words, said)


def _look(context: Context, words: list[str], said: Mapping[str, Any]) -> None:
    if words[:1] == ["entity"] and "ref" in said:
        from signet_sync.entities import queries

        with queries.open_read_only(context.place(), said.get("agent") or DEFAULT_AGENT, resolve_now(None)) as entities:
            queries.require_row(entities, said["ref"])
    elif words == ["violations", "accept"] and len(said.get("paths", ())) == 1:
        from signet_sync.integrity.operations import difference
        from signet_sync.sync.store.artifacts import seal_of

        (path,) = said["paths"]
        if any(sign in path for sign in "*?["):
            return
        with reading(context.place()) as database:
            if seal_of(database, path) is None:  # a sealed one may have just changed
                difference(database, context.root, path, 0)
    elif words == ["history", "restore"]:
        from signet_sync.history.git import repository

        with repository.opened(context.root, context.state().key, adopt=context.settings().history_adopt):
            pass
