"""`recall`: finds what answers a question, from memories and facts down to transcripts."""

from __future__ import annotations

from collections.abc import Sequence

import click

from signet_sync.capture.catch_up import catch_up
from signet_sync.cli.main import Context, agent_option, json_option, now_option, one_line, pass_context
from signet_sync.cli.parsing import Command, Moment
from signet_sync.embeddings.meaning import Meaning
from signet_sync.errors import UsageError
from signet_sync.formats.snapshot import LARGEST
from signet_sync.recall import operations as recall_operations
from signet_sync.recall.as_text import handle_of
from signet_sync.recall.operations import RankedHit
from signet_sync.recall.store.hits import Period
from signet_sync.sync.read_only import reading
from signet_sync.sync.store import counts

# What people call the tiers of hits.
_TIERS = {"thread": "project", "node": "session", "curated": "entity"}


@click.command(cls=Command)
@click.argument("query", nargs=-1, required=True)
@click.option("--limit", type=click.IntRange(1, 100), default=10, show_default=True, help="Maximum number of hits.")
@click.option(
    "--since", metavar="TIME", type=Moment(), help="Only what is of this day or time, or later; or so long: 3w."
)
@click.option("--until", metavar="TIME", type=Moment(ends=True), help="Only what is of this day or time, or earlier.")
@agent_option
@now_option
@json_option
@pass_context
def recall(context: Context, query: tuple[str, ...], limit: int, since: int | None, until: int | None) -> int:
    """Find what answers a question: the best first, from memories and facts to the words of transcripts.

    Running sessions are read first, and the hits shown are counted.

    Memories that are found often, by several queries, are promoted into MEMORY.md: see dream.
    """
    words = " ".join(query)
    period = None
    if since is not None or until is not None:
        period = Period(since or 0, LARGEST if until is None else until)
    catch_up(context.place(), context.agent)
    meaning = Meaning(context.place(anyway=True), context.now_us)
    with reading(context.place()) as database:
        hits = recall_operations.recall(
            database, words, agent_id=context.agent, limit=limit, period=period, meaning=meaning
        )
        wrong = None if hits else counts.unknown(database, context.agent)
    context.say(meaning.trouble)
    recall_operations.count_hits(context.place(), context.agent, words, hits, context.now_us)
    context.answer({"query": words, "hits": [hit._asdict() for hit in hits]}, lambda: _show(context, hits, wrong))
    return 0


def _show(context: Context, hits: Sequence[RankedHit], wrong: UsageError | None) -> None:
    if not hits:
        context.say("nothing found" if wrong is None else f"nothing found: {one_line(wrong)}")
    for hit in hits:
        click.echo(click.style(f"{_TIERS.get(hit.tier, hit.tier):<10}", bold=True) + f" {hit.text}")
        click.echo(click.style(f"{'':10} {hit.why}", dim=True))
        click.echo(click.style(f"{'':10} {' '.join(filter(None, [handle_of(hit.id), hit.path]))}", dim=True))
