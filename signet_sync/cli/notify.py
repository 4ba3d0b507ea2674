"""`notify`: sends one line to the person through the channels of `[notify]`; for a test, and for a failed unit."""

from __future__ import annotations

import click

from signet_sync.app.notifications import send
from signet_sync.cli.main import Context, emit, json_option, pass_context
from signet_sync.cli.parsing import Command
from signet_sync.errors import ConfigError, UsageError
from signet_sync.settings import model


@click.command(cls=Command)
@click.argument("text", required=False)
@click.option("--unit", metavar="NAME", help="Report that this service failed (called by its OnFailure=).")
@json_option
@pass_context
def notify(context: Context, text: str | None, unit: str | None) -> int:
    """Send TEXT like the agent's notifications, to the desktop or a program (notify.desktop, notify.command).

    To test whether notifications arrive: signet-sync notify "Hello"
    """
    if (text is None) == (unit is None):
        raise click.UsageError("give a TEXT, or --unit NAME")
    if unit is not None:
        text = f"the service {unit} failed and is not restarted: signet-sync doctor"
        click.echo(f"{text}, signet-sync logs", err=True)
    assert text is not None
    context.log_to_person()
    try:
        desktop, command = model.notification_settings()
    except ConfigError:
        if unit is None:
            raise
        desktop, command = False, ()  # the settings may be the cause of the failure; the journal has the line
    ways = [way for way, is_set in (("desktop", desktop), ("command", bool(command))) if is_set]
    if not ways and unit is None:
        raise UsageError(
            "neither notify.desktop nor notify.command is set",
            path=model.user_file(),
            hint="add there: [notify] and below it: desktop = true",
        )
    troubles = send(text, desktop, command)
    if context.as_json:
        emit({"text": text, "ways": ways, "troubles": troubles})
    for trouble in troubles:
        context.say(f"not sent: {trouble}")
    return 1 if troubles and unit is None else 0
