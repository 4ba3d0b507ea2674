"""`hook`, `note`, `session`, `transcript`: what harnesses and agents call, hidden from people.

An end, a compaction and turns are answered as JSON in any case.
"""

from __future__ import annotations

import os
import sys
from typing import BinaryIO

import click

from signet_sync.app.ask import run_hook
from signet_sync.capture.harnesses import registry
from signet_sync.cli.main import Context, emit, open_to_write
from signet_sync.cli.parsing import Group, command, read_json, stdin_text
from signet_sync.digest.reports import hand_over
from signet_sync.formats.paths import display
from signet_sync.log import logger
from signet_sync.sessions.input import CompactionInput, SessionInput, compaction_input, session_input, turn_of
from signet_sync.sessions.live import operations as live
from signet_sync.sessions.model_proposals import proposer
from signet_sync.settings import model
from signet_sync.settings.model_choice import may_ask_model
from signet_sync.storage.locations import now_us

_LABELS = ("Outcome:", "Decided:", "Next:", "Blocked:", "Tried:")
_ENOUGH = 16 * 1024  # bytes of a note


@command(hidden=True)
@click.argument("harness", metavar=f"[{'|'.join(registry.names())}]")
@click.option("--strict", is_flag=True, help="Exit 2 and print the reason if the event could not be handled.")
def hook(context: Context, harness: str, strict: bool) -> int:
    """Handle an event of a harness's hook: its JSON on stdin, on stdout what the harness expects.

    Called by harnesses. It always exits with 0, so that no session fails because of it; errors are written to
    logs/hook.log of the state folder.
    """
    # Run before click is imported; here for whom calls click itself, and for its help.
    place = [] if context.workspace_flag is None else ["--workspace", context.workspace_flag]
    return run_hook([*place, "hook", harness, *(["--strict"] if strict else [])])


@command("--json")
@click.argument("lines", metavar="LINE...", nargs=-1, required=True)
def note(context: Context, lines: tuple[str, ...]) -> None:
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
    document = {"lines": [{"label": line.label, "text": line.text} for line in said]}
    context.answer(document, f"understood: {', '.join(f'{one.label}: {display(one.text)}' for one in said)}")


# ── ends and compactions ──

_END = """Write the end of a session: transcript, summary, manifest, rows and MEMORY.md.

\b
The input is one JSON document. Only session_id and transcript are required:
  {"session_id": str, "transcript": str, "transcript_is": "whole"|"tail",
   "agent_id": "default", "session_key": str|null, "project": str|null, "harness": str|null,
   "captured_at": time|null, "started_at": time|null, "ended_at": time|null,
   "summary": str|null, "memory_sentence": str|null, "idempotency_key": str|null}

\b
transcript       the whole session so far: what earlier endings contain is not written again;
                 with "transcript_is": "tail" only what follows the last ending
captured_at      names the files; ISO 8601, UTC if no zone is given (default: now)
session_key      the harness's name for the session, if it is not its id
summary          default: a digest of the transcript
project          the folder in which it worked; sessions of one repository are of one project
memory_sentence  the session's line in MEMORY.md; generated if it is missing or says too little
idempotency_key  a repeated key returns the first answer and writes nothing

Secrets are redacted before anything is written.

\b
Example:
  echo '{"session_id": "s1", "transcript": "# Fix the queue"}' | signet-sync session end --input -
"""

_COMPACT = """Write the summary that a harness made of a session when it compacted its context.

\b
The input is the document of `signet-sync session end --help` with "compaction" (str) in place of
"transcript", "transcript_is" and "summary".

\b
Example:
  echo '{"session_id": "s1", "compaction": "# Kept"}' | signet-sync session compact --input -
"""


session = Group("session", help="Write a session's end or compaction into the vault.", hidden=True)
_input = click.option(
    "--input",
    "source",
    type=click.File("rb"),
    metavar="FILE|-",
    required=True,
    help="The JSON document; - reads it from stdin.",
)


@command("--json", of=session, hidden=True, help=_END, short_help="Write the end of a session.")
@_input
def end(context: Context, source: BinaryIO) -> None:
    _write(context, session_input(read_json(source, "session end"), now_us=context.now_us))


@command("--json", of=session, hidden=True, help=_COMPACT, short_help="Write what a compaction kept of a session.")
@_input
def compact(context: Context, source: BinaryIO) -> None:
    _write(context, compaction_input(read_json(source, "session compact"), now_us=context.now_us))


def _write(context: Context, given: SessionInput | CompactionInput) -> None:
    from signet_sync.sessions import operations as sessions_operations  # not for --help

    settings = context.settings(anyway=True)
    if may_ask_model(settings):
        context.log_to_person()
    with context.open_workspace(settings=settings) as workspace:
        propose = proposer(settings, os.environ)
        answer = sessions_operations.write(workspace, given, now_us=context.now_us, propose=propose)
        if settings.history_enabled:
            from signet_sync.history import operations as history_operations  # off by default

            history_operations.close_sessions(workspace, now_us())
    emit(answer)


@command(of=session, name="take-spool", hidden=True)
@click.option("--sweep", is_flag=True, help="Also look for forgotten transcripts.")
@click.option("--stay", is_flag=True, help="Do so for each byte on stdin, an s for --sweep.")
def take_spool(context: Context, sweep: bool, stay: bool) -> None:
    """Capture what hooks have spooled; the agent and the hooks call this."""
    from signet_sync import log  # with the parsers of harnesses: not for the end of a session
    from signet_sync.app.daemon import identify_installation
    from signet_sync.capture import intake
    from signet_sync.capture.worker import rounds
    from signet_sync.history import operations as history_operations

    ours = identify_installation()
    for wanted in rounds() if stay else [sweep]:
        if stay and identify_installation() not in (ours, None):
            return  # the agent starts the other version
        if os.path.isdir(context.root) and not os.path.isdir(context.state().path):
            continue  # the workspace was ejected since this was started
        settings, remarks = model.load(context.root, anyway=True)
        with open_to_write(context.root, settings, database=context.chosen_database) as workspace:
            log.set_up(settings.log_level, folder=workspace.state.logs, name="intake")
            for remark in remarks:
                logger.warning("{}", remark)
            intake.run_capture(workspace, now_us=now_us, sweep=wanted)
            history_operations.close_sessions(workspace, now_us())
            for text in workspace.events:
                logger.warning("{}", text)


# ── turns of a running session ──

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

A turn may also have project and harness, as in session end; the last one that has them counts.

Either all lines are recorded or none; when the command returns they are on disk, without secrets. They are kept until
a transcript of the session contains them: its end adds what its own transcript lacks.

\b
--session-id tells sessions apart if the harness uses one key for many (agent:main:main): the
end of one then does not affect the turns of the others.
"""


transcript = Group("transcript", help="Record the turns of a running session.", hidden=True)


@command("--agent", "--json", of=transcript, hidden=True, help=_APPEND, short_help="Record turns of a running session.")
@click.option("--session-key", "key", metavar="KEY", required=True, help="The harness's name for the session.")
@click.option("--session-id", metavar="ID", help="The session's id, if several sessions share the key.")
def append(context: Context, key: str, session_id: str | None) -> None:
    # Read before anything is opened, because a harness may be slow.
    lines = enumerate(sys.stdin.buffer, 1)
    turns = [turn_of(line, number, now_us=context.now_us) for number, line in lines if not line.isspace()]
    with context.open_workspace(settings=context.settings(anyway=True)) as workspace:
        answer = live.append(workspace, turns, agent_id=context.agent, session_key=key, session_id=session_id)
    emit(answer)
