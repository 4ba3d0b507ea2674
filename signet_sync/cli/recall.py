"""`recall`: finds what answers a question, from memories and facts down to transcripts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from signet_sync.capture.catch_up import catch_up
from signet_sync.cli.main import Context, agent_option, emit, json_option, now_option, pass_context, resolve_now
from signet_sync.sync.read_only import reading

if TYPE_CHECKING:
    from collections.abc import Sequence

    from signet_sync.recall.operations import RecallHit


@click.command()
@click.argument("query", nargs=-1, required=True)
@click.option("--limit", type=click.IntRange(1, 100), default=10, show_default=True)
@agent_option
@now_option
@json_option
@pass_context
def recall(context: Context, query: tuple[str, ...], limit: int, agent: str, now: str | None, as_json: bool) -> int:
    """Find what answers a question: memories and facts first, then threads and summaries, transcripts last.

    What is found often, by several queries, rises into MEMORY.md: see dream.
    """
    from signet_sync.recall import operations as recall_operations

    instant = resolve_now(now)
    words = " ".join(query)
    catch_up(context.place(), agent)
    with reading(context.place()) as database:
        hits = recall_operations.recall(database, words, agent_id=agent, limit=limit)
    recall_operations.count_hits(context.place(), agent, words, hits, instant)
    if as_json:
        emit({"query": words, "hits": [hit._asdict() for hit in hits]})
    elif hits:
        _show(hits)
    else:
        context.say("nothing found")
    return 0


def _show(hits: Sequence[RecallHit]) -> None:
    for hit in hits:
        handle = hit.id if "#" in hit.id else f"^{hit.id}"
        click.echo(click.style(f"{hit.tier:<10}", bold=True) + f" {hit.text}")
        click.echo(click.style(f"{'':10} {hit.why}", dim=True))
        click.echo(click.style(f"{'':10} {' '.join(filter(None, [handle, hit.path]))}", dim=True))
