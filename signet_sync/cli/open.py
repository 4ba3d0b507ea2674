"""`open`: prints one session with its segments, paths and lineage, or the source of an event token."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from signet_sync.cli.main import Context, agent_option, json_option, pass_context
from signet_sync.cli.parsing import Command, OfWorkspace
from signet_sync.errors import UsageError
from signet_sync.formats.handle import HANDLE, LETTERS, in_words
from signet_sync.formats.paths import display
from signet_sync.formats.timestamps import local_day
from signet_sync.recall.as_text import newest_paths, session_lines

_LISTED = 30


@click.command("open", cls=Command)
@click.argument("session", type=OfWorkspace(), required=False)
@click.option(
    "--path",
    "wanted",
    type=click.Choice(["summary", "transcript", "manifest", "compaction"]),
    help="Print only the newest path of this kind.",
)
@agent_option
@json_option
@pass_context
def open_(context: Context, session: str | None, wanted: str | None) -> int:
    """Show a session and how it ended (its status), by its name, key, id or the beginning of one; else list sessions.

    For ev:… show this event and the line that is its evidence.
    """
    if session is None:
        return _list(context)
    if session.startswith("ev:"):
        from signet_sync.cli.entity.read import show_source  # loads the rules for entities

        show_source(context, session, wanted)
        return 0
    try:
        document = context.ask("open_session", session=session)
    except UsageError as error:
        if error.code == "unknown-session" and HANDLE.fullmatch(session):
            kind = in_words(LETTERS[session.removeprefix("^")[0]])
            error.hint = f"it is a handle ({kind}), which expand follows: {context.command_line(f'expand {session}')}"
        raise
    if wanted is not None:
        paths = newest_paths(document)
        if wanted not in paths:
            has = f"it has: {', '.join(paths)}" if paths else "its files are written when it ends"
            raise UsageError(f"the session has no {wanted}", hint=has, code="no-such-file")
        click.echo(paths[wanted])
    else:
        context.answer(document, lambda: _show(document))
    return 0


def _list(context: Context) -> int:
    document = context.ask("list_sessions", limit=_LISTED)
    sessions, left_out = document["sessions"], document["left_out"]
    ended = [one.pop("membership_us") for one in sessions]

    def show() -> None:
        for one, at_us in zip(sessions, ended, strict=True):
            about = f"  {local_day(at_us)}  {display(one['sentence'])}"
            click.echo(click.style(one["session_token"], fg="yellow") + about)
        if not (sessions or left_out):
            context.say("no sessions yet")
        if document["more"]:
            context.say("older ones: signet-sync recall finds sessions by their words")
        if left_out:
            context.say(f"{left_out:,} more left out: only a greeting, a test, or a temporary folder")

    context.answer(document, show)
    return 0


def _show(document: dict[str, Any]) -> None:
    for line in session_lines(document, bold=partial(click.style, bold=True), red=partial(click.style, fg="red")):
        click.echo(line)
