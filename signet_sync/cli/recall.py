"""`recall`: finds what answers a question, or with `--words` the files that contain every word."""

from __future__ import annotations

from typing import Any

import click

from signet_sync.cli.main import Context, agent_option, json_option, now_option, pass_context
from signet_sync.cli.parsing import Command, Moment
from signet_sync.errors import UsageError
from signet_sync.formats.lazy_pattern import late
from signet_sync.formats.snapshot import LARGEST
from signet_sync.formats.timestamps import local_day
from signet_sync.recall.as_text import handle_of

_COMMIT = late(r"[0-9a-fA-F]{7,64}")


@click.command(cls=Command)
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
@agent_option
@now_option
@json_option
@pass_context
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
) -> int:
    """Find what answers a question: memories, statements and entities, and sessions by what was said in them.

    Running sessions are read first, and the hits shown are counted.

    Memories that are found often, by several queries, are promoted into MEMORY.md: see dream.
    """
    text = " ".join(query)
    period = None if since is None and until is None else [since or 0, LARGEST if until is None else until]
    if sum(map(bool, (query, commit, file))) != 1:
        raise UsageError("give words, or --commit, or --file", hint="signet-sync recall --help shows all of them")
    if commit and not _COMMIT.fullmatch(commit):
        raise UsageError("a commit's name has seven or more hexadecimal digits", hint="git rev-parse HEAD prints one")
    if words or commit or file:
        return _files(context, {"query": text, "commit": commit, "file": file, "limit": limit, "period": period})
    given: dict[str, Any] = {"query": text, "limit": limit, "period": period, "project": project}
    found = context.ask("recall", anyway=True, **given, now_us=context.now_us)
    context.answer({"query": text, "hits": found["hits"]}, lambda: _show(context, found["hits"], found["unknown"]))
    return 0


def _show(context: Context, hits: list[dict[str, Any]], unknown: str) -> None:
    if not hits:
        context.say(f"nothing found: {unknown}" if unknown else "nothing answers this")
    elif not any(hit["known"] for hit in hits):
        context.say("the nearest there is:")
    for hit in hits:
        click.echo(click.style(f"{hit['tier']:<8}", bold=True) + f" {hit['text']}")
        click.echo(click.style(f"{'':8} {hit['why']}", dim=True))
        click.echo(click.style(f"{'':8} {' '.join(filter(None, [handle_of(hit['id']), hit['path']]))}", dim=True))


def _files(context: Context, given: dict[str, Any]) -> int:
    found = context.ask("find_files", **given)

    def show() -> None:
        if not found["files"]:
            context.say(
                f"nothing found: {found['unknown']}"
                if found["unknown"]
                else "no session did this"
                if not given["query"]
                else "no file has every word"
            )
        for file in found["files"]:
            click.echo(click.style(file["path"], bold=True) + f"  {local_day(file['at_us'])}")
            click.echo(f"  {file['snippet']}")

    context.answer({"query": given["query"], "files": found["files"]}, show)
    return 0
