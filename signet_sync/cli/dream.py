"""`dream` and `stats`: promote memories into MEMORY.md and explain why; count what is stored."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from signet_sync.cli.main import (
    Context,
    agent_option,
    counted,
    emit,
    json_option,
    now_option,
    pass_context,
    resolve_now,
)
from signet_sync.errors import UsageError
from signet_sync.sync.read_only import reading, require_index

if TYPE_CHECKING:
    from signet_sync.memories.promotion import SweepResult
    from signet_sync.memories.promotion_score import Promotion

_DREAM = """Sweep an agent's memories: what recall found often, by several queries, rises into the Dreamed section of
MEMORY.md.

\b
A memory rises with 3 hits by 2 queries (dream.min_…). DREAMS.md tells what rose, when and why;
forget takes a memory out of both again. The background agent (run) sweeps by itself, once a day
(dream.interval); where none runs, this command does. No language model is asked.
"""


@click.command(help=_DREAM, short_help="Promote what was recalled often into MEMORY.md.")
@click.option("--dry-run", is_flag=True, help="Show what would rise; write nothing.")
@agent_option
@now_option
@json_option
@pass_context
def dream(context: Context, dry_run: bool, agent: str, now: str | None, as_json: bool) -> None:
    from signet_sync.app.workspace import opened
    from signet_sync.history import operations as history_operations
    from signet_sync.memories import promotion

    instant = resolve_now(now)
    if context.chosen_database == ":memory:":
        raise UsageError("a database in memory knows of no hits", hint="leave --db :memory: out")
    if dry_run:
        require_index(context.place())
    with opened(context.root, context.settings(), database=context.chosen_database) as workspace:
        swept = promotion.dream(workspace, agent, instant, dry_run=dry_run)
        if swept.promoted and not dry_run:
            history_operations.close_dreams(workspace, instant)
        for line in (*workspace.events, swept.waiting):
            if line:
                context.say(line)
        texts = {} if as_json else _texts(workspace.database, agent, swept)
    if as_json:
        emit(_document(swept))
    else:
        _show(context, swept, texts)


def _document(swept: SweepResult) -> dict[str, object]:
    return {
        "sweep_id": swept.sweep_id,
        "candidates": swept.candidates,
        "skipped_already_promoted": swept.skipped,
        "promoted": [_told(one) for one in swept.promoted],
        "near": [_told(one.memory) | {"lacks": list(one.lacks)} for one in swept.near],
        "dry_run": swept.dry_run,
        "deferred": swept.deferred,
    }


def _told(one: Promotion) -> dict[str, object]:
    return {
        "memory_id": one.memory_id,
        "score": round(one.score, 6),
        "hits": one.signals.recall_count,
        "days": one.signals.unique_days,
        "queries": one.queries,
        "signals": {name: round(value, 6) for name, value in one.signals._asdict().items()},
    }


def _texts(database: object, agent: str, swept: SweepResult) -> dict[str, str]:
    from signet_sync.memories.store import memories
    from signet_sync.storage.database.connection import Database
    from signet_sync.text.sentences import flatten

    assert isinstance(database, Database)
    told = [*swept.promoted, *(one.memory for one in swept.near)]
    found = (memories.get(database, agent, one.memory_id) for one in told)
    return {memory.id: flatten(memory.content, 100) for memory in found if memory is not None}


def _show(context: Context, swept: SweepResult, texts: dict[str, str]) -> None:
    if swept.deferred:
        context.say("another sweep is at work; nothing was done")
        return
    would = "would rise" if swept.dry_run else "rose"
    already = f", {swept.skipped} of them promoted before" if swept.skipped else ""
    found = counted(swept.candidates, "memory", "memories")
    click.echo(f"{found} found by recall so far{already}; {len(swept.promoted)} {would} into MEMORY.md")
    for one in swept.promoted:
        _tell(one, texts)
    if swept.near:
        click.echo("not yet:")
    for near in swept.near:
        _tell(near.memory, texts, f"; lacks {', '.join(near.lacks)}")


def _tell(one: Promotion, texts: dict[str, str], lacks: str = "") -> None:
    queries = counted(one.queries, "query", "queries")
    why = (
        f"score {one.score:.2f}: {counted(one.signals.recall_count, 'hit')} by {queries}"
        f" on {counted(one.signals.unique_days, 'day')}{lacks}"
    )
    click.echo(f"  {texts.get(one.memory_id, '')} " + click.style(f"^{one.memory_id}", fg="cyan"))
    click.echo(click.style(f"    {why}", dim=True))


@click.command(short_help="How much is remembered, recalled and promoted.")
@agent_option
@now_option
@json_option
@pass_context
def stats(context: Context, agent: str, now: str | None, as_json: bool) -> None:
    """Count an agent's memories, promotions, sessions, and what recall found in the last seven days."""
    from signet_sync.admin.stats import stats as gather
    from signet_sync.formats.ids import require_agent
    from signet_sync.text.word_forms import STOP_WORDS

    instant = resolve_now(now)
    require_agent(agent)
    with reading(context.place()) as database:
        told = gather(database, agent, instant)
    if as_json:
        emit(told._asdict())
        return
    tags = ", ".join(f"{tag} {hits}" for tag, hits in told.top_concept_tags_7d if tag not in STOP_WORDS)
    for name, value in (
        ("memories", told.memories),
        ("promoted", told.promotions),
        ("last dream", told.last_dream or "never"),
        ("recalled in 7 days", told.recall_events_7d),
        ("about", tags or "–"),
        ("sessions", told.sessions),
        ("artifacts", told.artifacts),
    ):
        click.echo(f"{name:<20} {value}")
