"""`recall`: finds what answers a question, or with `--words` the files that contain every word."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from signet_sync.capture.catch_up import catch_up
from signet_sync.cli.main import Context, agent_option, json_option, now_option, one_line, pass_context
from signet_sync.cli.parsing import Command, Moment
from signet_sync.embeddings.meaning import Meaning
from signet_sync.errors import UsageError
from signet_sync.formats.snapshot import LARGEST
from signet_sync.formats.timestamps import local_day
from signet_sync.recall.as_text import handle_of
from signet_sync.recall.search import Within
from signet_sync.recall.store.rows import Period
from signet_sync.recall.store.words import files_with
from signet_sync.sync.read_only import count_artifacts, reading
from signet_sync.sync.store import counts

if TYPE_CHECKING:
    from signet_sync.recall.shown import RankedHit


@click.command(cls=Command)
@click.argument("query", nargs=-1, required=True)
@click.option("--limit", type=click.IntRange(1, 1000), default=10, show_default=True, help="Maximum number of hits.")
@click.option(
    "--since", metavar="TIME", type=Moment(), help="Only what is of this day or time, or later; or so long: 3w."
)
@click.option("--until", metavar="TIME", type=Moment(ends=True), help="Only what is of this day or time, or earlier.")
@click.option("--project", metavar="NAME", help="Only what is of this project.")
@click.option("--words", is_flag=True, help="Files of sessions that contain every word, printed by tools too.")
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
) -> int:
    """Find what answers a question: memories, statements and entities, and sessions by what was said in them.

    Running sessions are read first, and the hits shown are counted.

    Memories that are found often, by several queries, are promoted into MEMORY.md: see dream.
    """
    text = " ".join(query)
    period = None
    if since is not None or until is not None:
        period = Period(since or 0, LARGEST if until is None else until)
    if words:
        return _every_word(context, text, limit, period)
    from signet_sync.recall import operations as recall_operations  # slow import; `--words` does not need it

    catch_up(context.place(), context.agent)
    meaning = Meaning(context.place(anyway=True), context.now_us)
    within = Within(context.agent, period=period, project=project)
    with reading(context.place()) as database:
        hits = recall_operations.recall(database, text, within, limit=limit, meaning=meaning)
        wrong = None if hits else counts.unknown(database, context.agent)
    context.say(meaning.trouble)
    recall_operations.count_hits(context.place(), context.agent, text, hits, context.now_us)
    context.answer({"query": text, "hits": [hit._asdict() for hit in hits]}, lambda: _show(context, hits, wrong))
    return 0


def _show(context: Context, hits: Sequence[RankedHit], wrong: UsageError | None) -> None:
    if not hits:
        context.say("nothing answers this" if wrong is None else f"nothing found: {one_line(wrong)}")
    elif not any(hit.known for hit in hits):
        context.say("nothing surely answers this; the nearest:")
    for hit in hits:
        click.echo(click.style(f"{hit.tier:<9}", bold=True) + f" {hit.text}")
        click.echo(click.style(f"{'':9} {hit.why}", dim=True))
        click.echo(click.style(f"{'':9} {' '.join(filter(None, [handle_of(hit.id), hit.path]))}", dim=True))


def _every_word(context: Context, text: str, limit: int, period: Period | None) -> int:
    with reading(context.place()) as database:
        files = files_with(database, text, agent_id=context.agent, period=period, limit=limit)
        wrong = None if files else counts.unknown(database, context.agent)
        count_artifacts(context.place(), [(context.agent, file.path) for file in files])

    def show() -> None:
        if not files:
            context.say("no file has every word" if wrong is None else f"nothing found: {one_line(wrong)}")
        for file in files:
            click.echo(click.style(file.path, bold=True) + f"  {local_day(file.at_us)}")
            click.echo(f"  {file.snippet}")

    context.answer({"query": text, "files": [file._asdict() for file in files]}, show)
    return 0
