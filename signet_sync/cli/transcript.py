"""`transcript append`: keeps the turns of a running session, one line of JSON each."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from signet_sync.cli.main import Context, agent_option, counted, emit, json_option, pass_context, resolve_now
from signet_sync.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

MIB = 1024 * 1024
LINE_LIMIT = 8 * MIB
TOTAL_LIMIT = 64 * MIB

_APPEND = """Keep turns of a session that runs, so that they can be asked for at once.

\b
Each line of stdin is one turn:
  {"turn": 0, "role": "user", "text": "Why does the queue never drain?", "at": "2026-03-28T22:34:06.792Z"}

\b
turn  its number in the session, from 0 on; the same turn again is known already and changes nothing,
      other words under a number that is taken are refused
role  who said it: user, assistant, tool …
text  what was said
at    when; ISO 8601, UTC where no zone is given

All lines are kept, or none; when the answer comes they are on the disk. Secrets are redacted before anything is
written. The turns stay until a transcript of the session holds them: a compaction writes what was said so far,
the session's end puts in what its own transcript lacks, marked as live.

\b
--session-id says which session it is where the harness has one key for many (agent:main:main):
its end then leaves the turns of the others alone.
"""


@click.group()
def transcript() -> None:
    """Keep what is said in a session while it runs."""


@transcript.command(help=_APPEND, short_help="Keep turns of a running session.")
@click.option("--session-key", "key", metavar="KEY", required=True, help="What the harness calls the session.")
@click.option("--session-id", metavar="ID", help="Its own id, where many sessions have this key.")
@agent_option
@json_option
@pass_context
def append(context: Context, key: str, session_id: str | None, agent: str, as_json: bool) -> None:
    from signet_sync.app.workspace import opened
    from signet_sync.formats.turn import turn_of
    from signet_sync.sessions import live

    now_us = resolve_now(None)
    if sys.stdin.isatty():
        context.say("reading turns from the keyboard, one line of JSON each; Ctrl-D ends")
    # Read before anything is opened, because a harness may be slow.
    turns = [turn_of(line, number, now_us=now_us) for number, line in _lines(sys.stdin.buffer)]
    with opened(context.root, context.settings(anyway=True), database=context.chosen_database) as workspace:
        answer = live.append(workspace, turns, agent_id=agent, session_key=key, session_id=session_id)
        for text in workspace.events:
            context.say(text)
    if as_json:
        emit(answer)
    else:
        _tell(answer)


def _lines(stream: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Yields the lines that are not blank, with their numbers from 1. Raises `UsageError` if the input is too long."""
    total = number = 0
    while line := stream.readline(LINE_LIMIT + 1):
        number += 1
        total += len(line)
        if len(line) > LINE_LIMIT:
            raise _too_much(f"line {number} is longer than {LINE_LIMIT // MIB} MiB", "one line is one turn")
        if total > TOTAL_LIMIT:
            raise _too_much(
                f"there are more than {TOTAL_LIMIT // MIB} MiB up to line {number}", "append them in several calls"
            )
        if not line.isspace():
            yield number, line


def _too_much(message: str, hint: str) -> UsageError:
    return UsageError(message, hint=f"nothing was written; {hint}", code="input-invalid")


def _tell(answer: dict[str, Any]) -> None:
    known = f", {answer['duplicates']} known already" if answer["duplicates"] else ""
    click.echo(f"{counted(answer['appended'], 'turn')} appended{known}; {answer['turns']} kept until the session ends")
    if answer["redactions"]:
        rules = ", ".join(f"{rule} {count}" for rule, count in sorted(answer["redactions"].items()))
        click.echo(f"Redacted: {rules}")
