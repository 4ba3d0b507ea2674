"""`stats`: counts what an agent remembers, recalls and promotes."""

from __future__ import annotations

import click

from signet_sync.admin.stats import stats as gather
from signet_sync.cli.main import Context, agent_option, json_option, now_option, pass_context
from signet_sync.cli.parsing import Command
from signet_sync.formats.ids import require_agent
from signet_sync.sync.read_only import reading
from signet_sync.text.word_forms import STOP_WORDS


@click.command(cls=Command, short_help="Count what is remembered, recalled and promoted.")
@agent_option
@now_option
@json_option
@pass_context
def stats(context: Context) -> None:
    """Count an agent's memories, promotions, sessions, and what recall found in the last seven days."""
    require_agent(context.agent)
    with reading(context.place()) as database:
        counts = gather(database, context.agent, context.now_us)

    def show() -> None:
        tags = ", ".join(f"{tag} {hits}" for tag, hits in counts.top_concept_tags_7d if tag not in STOP_WORDS)
        for name, value in (
            ("memories", counts.memories),
            ("promoted", counts.promotions),
            ("last dream", counts.last_dream or "never"),
            ("recalled in 7 days", counts.recall_events_7d),
            ("about", tags or "–"),
            ("sessions", counts.sessions),
            ("artifacts", counts.artifacts),
        ):
            click.echo(f"{name:<20} {value}")

    context.answer(counts._asdict(), show)
