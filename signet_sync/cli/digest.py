"""`digest`: what happened on a day or in a week, by project, as Markdown."""

from __future__ import annotations

import click

from signet_sync.cli.main import Context, agent_option, json_option, now_option, pass_context
from signet_sync.cli.parsing import Command, Moment
from signet_sync.errors import UsageError
from signet_sync.formats.ids import require_agent
from signet_sync.formats.timestamps import DAY
from signet_sync.pages import notes, period, period_operations


@click.command(cls=Command)
@click.option("--week", is_flag=True, help="The last seven days (the default).")
@click.option("--day", is_flag=True, help="Today.")
@click.option("--since", metavar="TIME", type=Moment(), help="From this day or time on, or of so long: 3w.")
@click.option("--project", metavar="PROJECT", help="Only this project: its name, path or origin.")
@click.option(
    "--into",
    metavar="FILE",
    help="Write it into this Markdown file of the workspace, a daily note for example; what you wrote stays.",
)
@agent_option
@now_option
@json_option
@pass_context
def digest(context: Context, week: bool, day: bool, since: int | None, project: str | None, into: str | None) -> int:
    """Print what happened, by project: sessions, decisions, blockers, what was remembered and promoted.

    Days are in UTC. --into replaces its own text in the file, between two marks, and leaves the rest; removing a
    session or a memory later deletes its lines there, too. Private memories are printed, and never written into a file.
    """
    require_agent(context.agent)
    if week + day + (since is not None) > 1:
        raise click.UsageError("--week, --day and --since cannot be combined")
    to_us = (context.now_us // DAY + 1) * DAY
    from_us = to_us - (1 if day else 7) * DAY
    if since is not None:
        if since >= to_us:
            raise UsageError("--since is no day up to today", hint="write it as 2026-03-28", code="bad-date")
        from_us = since
    seen = period_operations.read(context.place(), context.agent, from_us, to_us, project, private=into is None)
    document = period.document(context.agent, seen)
    if into is not None:
        path, wrote = notes.write(context.place(), into, period.text_of(seen, level=2), context.now_us)
        document |= {"path": path, "changed": wrote}
        context.answer(document, lambda: context.say(f"{path} {'written' if wrote else 'unchanged'}"))
        return 0
    context.answer(document, lambda: click.echo(period.text_of(seen)))
    return 0
