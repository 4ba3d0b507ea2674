"""`note`: takes the lines with which an agent hands its work over; the session's transcript records the call."""

from __future__ import annotations

import click

from signet_sync.cli.main import Context, json_option, pass_context
from signet_sync.cli.parsing import Command, stdin_text
from signet_sync.digest.notes import hand_over
from signet_sync.formats.paths import display

_LABELS = ("Outcome:", "Decided:", "Next:", "Blocked:", "Tried:")
_ENOUGH = 16 * 1024  # bytes


@click.command(cls=Command)
@click.argument("lines", metavar="LINE...", nargs=-1, required=True)
@json_option
@pass_context
def note(context: Context, lines: tuple[str, ...]) -> int:
    """Hand work over to the next session, for agents: what came out, what was decided, what is next, what waits.

    \b
    LINE begins with Outcome:, Decided:, Next:, Blocked: or Tried:, or is - to read lines from stdin.
    Nothing is written now: the transcript of the session has the call, and its digest reads it.

    \b
    Example:
      signet-sync note "Outcome: the lamp burns again" "Next: oil the door"
    """
    words = (f"\n{one}" if one.startswith(_LABELS) else f" {one}" for one in lines)
    said = hand_over(stdin_text(_ENOUGH) if lines == ("-",) else "".join(words))
    context.answer(
        {"lines": [{"label": line.label, "text": line.text} for line in said]},
        lambda: click.echo(f"understood: {', '.join(f'{one.label}: {display(one.text)}' for one in said)}"),
    )
    return 0
