"""`digest`: what happened on a day or in a week, by project, as Markdown."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import click

from signet_sync.cli.main import Context, agent_option, json_option, now_option, pass_context
from signet_sync.cli.parsing import Command
from signet_sync.formats.ids import require_agent
from signet_sync.formats.timestamps import instant_of
from signet_sync.pages import operations, period


@click.command(cls=Command)
@click.option(
    "--day",
    type=click.DateTime(["%Y-%m-%d"]),
    is_flag=False,
    flag_value=datetime.min.replace(tzinfo=UTC),
    metavar="[DAY]",
    help="Today, or this day (2026-03-28).",
)
@click.option("--utc", is_flag=True, help="Count days in UTC instead of in this machine's time zone.")
@click.option("--project", metavar="PROJECT", help="Only this project: its name, path or origin.")
@agent_option
@now_option
@json_option
@pass_context
def digest(context: Context, day: datetime | None, utc: bool, project: str | None) -> int:
    """Print what happened in the last seven days, by project: sessions, decisions, blockers, what was remembered.

    Days are those of this machine's time zone. To see another week, say with --now at which time it ends.
    """
    require_agent(context.agent)
    zone = UTC if utc else None
    ends = context.now_us
    if day is not None and day.tzinfo is None:
        noon = day + timedelta(hours=12)
        ends = instant_of((noon.replace(tzinfo=UTC) if utc else noon).astimezone(UTC))
    seen = operations.days(context.place(), context.agent, ends, 7 if day is None else 1, project, zone)
    context.answer(period.document(context.agent, seen), lambda: click.echo(period.text_of(seen)))
    return 0
