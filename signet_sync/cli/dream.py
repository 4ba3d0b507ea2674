"""`dream`: promotes memories into MEMORY.md and explains why."""

from __future__ import annotations

import click

from signet_sync.cli.main import Context, agent_option, json_option, now_option, pass_context
from signet_sync.cli.parsing import Command
from signet_sync.errors import UsageError
from signet_sync.history import operations as history_operations
from signet_sync.memories import promotion
from signet_sync.memories.promotion import SweepResult
from signet_sync.memories.promotion_score import Promotion
from signet_sync.memories.store import memories
from signet_sync.sync.read_only import require_index
from signet_sync.text.phrases import count_noun
from signet_sync.text.sentences import flatten

_DREAM = """Sweep an agent's memories: those that recall found often, by several queries, are promoted into MEMORY.md.

\b
A memory is promoted after 3 hits by 2 queries, with a score of dream.min_score. DREAMS.md
records what was promoted, when and why. The background agent (run) sweeps once a day
(dream.interval); where none runs, use this command. No language model is asked.

--undo takes a memory out of the section Dreamed: it stays remembered, and no sweep promotes it
again; --redo puts it back. forget removes a memory altogether.
"""


@click.command(cls=Command, help=_DREAM, short_help="Promote memories that are recalled often into MEMORY.md.")
@click.option("--dry-run", is_flag=True, help="Show what would be promoted; write nothing.")
@click.option("--undo", metavar="ID", help="Take a memory out of Dreamed for good; keep it.")
@click.option("--redo", metavar="ID", help="Put back what --undo took out.")
@agent_option
@now_option
@json_option
@pass_context
def dream(context: Context, dry_run: bool, undo: str | None, redo: str | None) -> None:
    if (undo is not None) + (redo is not None) + dry_run > 1:
        raise UsageError("--undo, --redo and --dry-run exclude each other")
    context.require_database_file()
    memory = redo if undo is None else undo
    if memory is not None:
        with context.opened(lasting=True) as workspace:
            one, changed, waiting = promotion.undo(
                workspace, context.agent, memory, context.now_us, undone=undo is not None
            )
        context.say(waiting)
        document = {"memory_id": one, "undone": undo is not None, "changed": changed}
        if changed:
            told = "is in Dreamed again" if undo is None else "is out of Dreamed, and still remembered"
        else:
            told = "was not taken out" if undo is None else "was taken out of Dreamed before"
        context.answer(document, lambda: click.echo(f"^{one} {told}"))
        return
    if dry_run:
        require_index(context.place())
    with context.opened() as workspace:
        swept = promotion.dream(workspace, context.agent, context.now_us, dry_run=dry_run)
        if swept.promoted and not dry_run:
            history_operations.close_dreams(workspace, context.now_us)
        shown = [] if context.as_json else [*swept.promoted, *(one.memory for one in swept.near)]
        held = (memories.get(workspace.database, context.agent, one.memory_id) for one in shown)
        texts = {memory.id: flatten(memory.content, 100) for memory in held if memory is not None}
    context.say(swept.waiting)
    document = {
        "sweep_id": swept.sweep_id,
        "candidates": swept.candidates,
        "skipped_already_promoted": swept.skipped,
        "promoted": [_promotion_document(one) for one in swept.promoted],
        "near": [_promotion_document(one.memory) | {"lacks": list(one.lacks)} for one in swept.near],
        "dry_run": swept.dry_run,
        "deferred": swept.deferred,
    }
    context.answer(document, lambda: _show(context, swept, texts))


def _promotion_document(one: Promotion) -> dict[str, object]:
    return {
        "memory_id": one.memory_id,
        "score": round(one.score, 6),
        "hits": one.signals.recall_count,
        "days": one.signals.unique_days,
        "queries": one.queries,
        "signals": {name: round(value, 6) for name, value in one.signals._asdict().items()},
    }


def _show(context: Context, swept: SweepResult, texts: dict[str, str]) -> None:
    if swept.deferred:
        context.say("another sweep is running; nothing was done")
        return
    verb = "would be promoted" if swept.dry_run else "promoted"
    already = f", {swept.skipped} of them promoted before" if swept.skipped else ""
    found = count_noun(swept.candidates, "memory", "memories")
    click.echo(f"{found} found by recall{already}; {len(swept.promoted)} {verb} into MEMORY.md")
    for one in swept.promoted:
        _show_promotion(one, texts)
    if swept.near:
        click.echo("not yet:")
    for near in swept.near:
        _show_promotion(near.memory, texts, f"; lacks {', '.join(near.lacks)}")


def _show_promotion(one: Promotion, texts: dict[str, str], lacks: str = "") -> None:
    queries = count_noun(one.queries, "query", "queries")
    why = (
        f"score {one.score:.2f}: {count_noun(one.signals.recall_count, 'hit')} by {queries}"
        f" on {count_noun(one.signals.unique_days, 'day')}{lacks}"
    )
    click.echo(f"  {texts.get(one.memory_id, '')} " + click.style(f"^{one.memory_id}", fg="cyan"))
    click.echo(click.style(f"    {why}", dim=True))
