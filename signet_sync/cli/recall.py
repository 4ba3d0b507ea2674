"""`recall`, `expand`, `open`: finds what answers a question, follows a handle of it, shows a session."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from typing import Any

import click

from signet_sync.cli.main import Context
from signet_sync.cli.parsing import Moment, OfWorkspace, command
from signet_sync.errors import UsageError
from signet_sync.formats.lazy_pattern import late
from signet_sync.formats.paths import display
from signet_sync.formats.timestamps import LAST_US, local_day
from signet_sync.recall.as_text import handle_of, list_expanded_lines, newest_paths, session_lines, split_turns

_COMMIT = late(r"[0-9a-fA-F]{7,64}")
_LISTED = 30  # sessions
_TURN = 3  # lines of a terminal


@command("--agent", "--now", "--json")
@click.argument("query", nargs=-1)
@click.option("--limit", type=click.IntRange(1, 1000), default=10, show_default=True, help="Maximum number of hits.")
@click.option(
    "--since", metavar="TIME", type=Moment(), help="Only what is of this day or time, or later; or so long: 3w."
)
@click.option("--until", metavar="TIME", type=Moment(ends=True), help="Only what is of this day or time, or earlier.")
@click.option("--project", metavar="NAME", help="Only what is of this project.")
@click.option("--words", is_flag=True, help="Files of sessions that contain every word, printed by tools too.")
@click.option("--commit", metavar="SHA", default="", help="The session that made this commit.")
@click.option("--file", metavar="PATH", default="", help="The sessions that changed this file.")
def recall(
    context: Context,
    query: tuple[str, ...],
    limit: int,
    since: int | None,
    until: int | None,
    project: str | None,
    words: bool,
    commit: str,
    file: str,
) -> None:
    """Find what answers a question: memories, statements and entities, and sessions by what was said in them.

    Running sessions are read first, and the hits shown are counted.

    Memories that are found often, by several queries, are promoted into MEMORY.md: see dream.
    """
    text = " ".join(query)
    period = None if since is None and until is None else [since or 0, LAST_US if until is None else until]
    if sum(map(bool, (query, commit, file))) != 1:
        raise UsageError("give words, or --commit, or --file", hint="signet-sync recall --help shows all of them")
    if commit and not _COMMIT.fullmatch(commit):
        raise UsageError("a commit's name has seven or more hexadecimal digits", hint="git rev-parse HEAD prints one")
    if words and not query:
        raise UsageError("--words goes with words, not with --commit or --file", hint="omit --words")
    given: dict[str, Any] = {"query": text, "limit": limit, "period": period, "project": project}
    if words or commit or file:
        found = context.ask("find_files", **given, commit=commit, file=file)
        nothing = "no file has every word" if text else "no session did this"
        context.answer({"query": text, "files": found["files"]}, lambda: _show_files(context, found, nothing))
        return
    found = context.ask("recall", anyway=True, **given, now_us=context.now_us)
    context.answer({"query": text, "hits": found["hits"]}, lambda: _show_hits(context, found["hits"], found["unknown"]))


def _show_files(context: Context, found: dict[str, Any], nothing: str) -> None:
    if not found["files"]:
        context.say(f"nothing found: {found['unknown']}" if found["unknown"] else nothing)
    for file in found["files"]:
        click.echo(click.style(file["path"], bold=True) + f"  {local_day(file['at_us'])}\n  {file['snippet']}")


def _show_hits(context: Context, hits: list[dict[str, Any]], unknown: str) -> None:
    if not hits:
        context.say(f"nothing found: {unknown}" if unknown else "nothing answers this")
    elif not any(hit["known"] for hit in hits):
        context.say("the nearest there is:")
    width = max(shutil.get_terminal_size().columns - 9, 20) if sys.stdout.isatty() else 0
    for hit in hits:
        head = click.style(f"{hit['tier']:<8}", bold=True)
        for turn in split_turns(hit):
            speaker = next((one for one in ("User:", "Assistant:") if turn.startswith(one)), "")
            # A program gets all of it.
            lines = textwrap.wrap(turn, width, max_lines=_TURN, placeholder=" …") if width else [turn]
            for line in lines:
                said = line.removeprefix(speaker)
                click.echo(f"{head} {click.style(speaker, bold=True) if said != line else ''}{said}")
                head = f"{'':8}"
        for line in (hit["why"], " ".join(filter(None, [handle_of(hit["id"]), hit["path"]]))):
            click.echo(click.style(f"{'':8} {line}", dim=True))


@command("--agent", "--json")
@click.argument("handle", type=OfWorkspace())
@click.option(
    "--budget",
    type=click.IntRange(1, 1_000_000),
    default=2_000,
    show_default=True,
    metavar="TOKENS",
    help="Most text shown.",
)
def expand(context: Context, handle: str, budget: int) -> None:
    """Follow a handle of MEMORY.md down to the transcript.

    HANDLE is an id or ^handle as on a page, its beginning (six characters or more: t-7c2q), a wikilink or path, or a
    session.
    """
    document = context.ask("expand", handle=handle, budget=budget)
    context.answer(document, "\n".join(list_expanded_lines(document)))


@command("--agent", "--json", name="open")
@click.argument("session", type=OfWorkspace(), required=False)
@click.option(
    "--path",
    "wanted",
    type=click.Choice(["summary", "transcript", "manifest", "compaction"]),
    help="Print only the newest path of this kind, from the root folder on.",
)
def open_(context: Context, session: str | None, wanted: str | None) -> None:
    """Show a session and how it ended (its status), by its name, key, id or the beginning of one; else list sessions.

    For ev:… show this event and the line that is its evidence.
    """
    if session is None:
        _list_sessions(context)
        return
    if session.startswith("ev:"):
        from signet_sync.cli.entity import show_source  # loads the rules for entities

        if wanted is not None:
            raise UsageError("an event has no file of its own", hint="omit --path", code="no-such-file")
        show_source(context, session)
        return
    document = context.ask("open_session", session=session)
    if wanted is not None:
        paths = newest_paths(document)
        if wanted not in paths:
            has = f"it has: {', '.join(paths)}" if paths else "its files are written when it ends"
            raise UsageError(f"the session has no {wanted}", hint=has, code="no-such-file")
        click.echo(os.path.join(context.root, paths[wanted]))
        return
    context.answer(document, "\n".join(session_lines(document)))


def _list_sessions(context: Context) -> None:
    document = context.ask("list_sessions", limit=_LISTED)
    sessions = document["sessions"]
    ended = [one.pop("membership_us") for one in sessions]

    def show() -> None:
        for one, at_us in zip(sessions, ended, strict=True):
            about = f"  {local_day(at_us)}  {display(one['sentence'])}"
            click.echo(click.style(one["session_token"], fg="yellow") + about)
        if not sessions:
            context.say("no sessions to list yet; tests and those of temporary folders never are")
        if document["more"]:
            context.say("older ones: signet-sync recall finds sessions by their words")

    context.answer(document, show)
