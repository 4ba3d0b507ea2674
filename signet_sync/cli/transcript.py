"""`transcript append`: keeps the turns of a running session, one line of JSON each."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, BinaryIO

import click

from signet_sync.cli.main import Context, agent_option, json_option, pass_context, show_redactions
from signet_sync.cli.parsing import Group
from signet_sync.errors import UsageError
from signet_sync.formats.turn import turn_of
from signet_sync.sessions import live
from signet_sync.text.phrases import counted

MIB = 1024 * 1024
LINE_LIMIT = 8 * MIB
TOTAL_LIMIT = 64 * MIB

_APPEND = """Record turns of a running session, so that they can be searched at once.

\b
Each line of stdin is one turn:
  {"turn": 0, "role": "user", "text": "Why does it never drain?", "at": "2026-03-28T22:34:06Z"}

\b
turn  its number in the session, from 0 on; repeating a turn changes nothing, another text
      under the same number is refused
role  who said it: user, assistant, tool …
text  what was said
at    when; ISO 8601, UTC if no zone is given

The last turn that names where the session works counts, by project, harness, repository_root, repository_origin and
repository_path as in session end. What the session states is then known to other sessions of its project.

Either all lines are recorded or none; when the command returns they are on disk. Secrets are redacted before anything
is written. The turns are kept until a transcript of the session contains them: a compaction writes what was said so
far, the session's end adds what its own transcript lacks, marked as live.

\b
--session-id tells sessions apart if the harness uses one key for many (agent:main:main): the
end of one then does not affect the turns of the others.
"""


@click.group(cls=Group, hidden=True)
def transcript() -> None:
    """Record the turns of a running session."""


@transcript.command(hidden=True, help=_APPEND, short_help="Record turns of a running session.")
@click.option("--session-key", "key", metavar="KEY", required=True, help="The harness's name for the session.")
@click.option("--session-id", metavar="ID", help="The session's id, if several sessions share the key.")
@agent_option
@json_option
@pass_context
def append(context: Context, key: str, session_id: str | None) -> None:
    if sys.stdin.isatty():
        context.say("reading turns from the keyboard, one line of JSON each; Ctrl-D ends")
    # Read before anything is opened, because a harness may be slow.
    turns = [turn_of(line, number, now_us=context.now_us) for number, line in _lines(sys.stdin.buffer)]
    with context.opened(settings=context.settings(anyway=True)) as workspace:
        answer = live.append(workspace, turns, agent_id=context.agent, session_key=key, session_id=session_id)
    context.answer(answer, lambda: _show(answer))


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


def _show(answer: dict[str, Any]) -> None:
    known = f", {answer['duplicates']} already known" if answer["duplicates"] else ""
    click.echo(
        f"{counted(answer['appended'], 'turn')} appended{known}; {answer['turns']} stored until the session ends"
    )
    show_redactions(answer["redactions"])
