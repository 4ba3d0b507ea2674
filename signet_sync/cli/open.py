"""`open`: prints one session with its segments, paths and lineage, or the source of an event token."""

from __future__ import annotations

from typing import Any

import click

from signet_sync.cli.main import Context, agent_option, counted, emit, json_option, pass_context
from signet_sync.formats.paths import display
from signet_sync.recall.open_session import describe, newest_paths, running
from signet_sync.sync.read_only import count_artifacts, reading


@click.command("open")
@click.argument("session")
@click.option(
    "--path",
    "wanted",
    type=click.Choice(["summary", "transcript", "manifest", "compaction"]),
    help="Print only the newest path of this kind.",
)
@agent_option
@json_option
@pass_context
def open_(context: Context, session: str, wanted: str | None, agent: str, as_json: bool) -> int:
    """Show a session and how it ended (its status), by key, id, token or unambiguous prefix; of a token ev:… its event
    and the line it rests on."""
    from signet_sync.errors import UsageError

    if session.startswith("ev:"):
        from signet_sync.cli.entity.read import show_source

        show_source(context, agent, session, wanted, as_json)
        return 0
    with reading(context.place()) as database:
        document = running(database, agent, session) or describe(database, agent, session)
    paths = newest_paths(document)
    count_artifacts(context.place(), [(agent, path) for path in dict.fromkeys(paths.values())])
    if wanted is not None:
        if wanted not in paths:
            has = f"it has: {', '.join(paths)}" if paths else "they are written when it ends"
            raise UsageError(f"the session has no {wanted}", hint=has, code="no-such-file")
        click.echo(paths[wanted])
    elif as_json:
        emit(document)
    else:
        _show(document)
    return 0


def _show(document: dict[str, Any]) -> None:
    click.secho(display(document["session_key"] or document["session_id"]), bold=True)
    click.echo(f"  {display(document['sentence'])}")
    for label in ("status", "session_id", "session_token", "project", "harness"):
        click.echo(f"  {label.replace('_', ' ')}: {display(document[label] or '–')}")
    for number, segment in enumerate(document["segments"], 1):
        ended = segment["ended_at"]
        told = f", ended {ended}" if ended and ended != segment["captured_at"] else ""
        click.echo(f"  segment {number}: {segment['captured_at']}{told}")
        for kind in ("summary", "transcript"):
            if segment[kind]:
                click.echo(f"    {segment[kind]}")
    for path in document["compactions"]:
        click.echo(f"  compaction: {path}")
    click.echo(f"  manifest: {document['manifest'] or '–'}")
    if document["live"]:
        click.echo(f"  live: {counted(document['live'], 'turn')}")
    odd = {path: code for path, code in document["verdicts"].items() if code != "indexed"}
    for path, code in odd.items():
        click.secho(f"  {code}: {path}", fg="red")
