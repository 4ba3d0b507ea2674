"""`session end` and `session compact`: read a JSON document and print one."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import click

from signet_sync.cli.main import Context, emit, json_option, pass_context, resolve_now
from signet_sync.errors import UsageError

_END = """Write the end of a session: transcript, summary, manifest, rows and MEMORY.md.

\b
The input is one JSON document. Only session_id and transcript are required:
  {"session_id": str, "transcript": str, "transcript_is": "whole"|"tail",
   "agent_id": "default", "session_key": str|null, "project": str|null, "harness": str|null,
   "captured_at": time|null, "started_at": time|null, "ended_at": time|null,
   "summary": str|null, "memory_sentence": str|null, "idempotency_key": str|null}

\b
transcript       all that was said so far: what earlier endings keep is not written again;
                 with "transcript_is": "tail" what was said since the last ending
captured_at      names the files; ISO 8601, UTC where no zone is given; now where it is left out
session_key      what the harness calls the session, where that is not its id
summary          a digest of the transcript is made where it is left out
memory_sentence  the session's line in MEMORY.md; made where it is left out or says too little
idempotency_key  the same key again gives the first answer and writes nothing

Secrets are redacted before anything is written.

\b
Example:
  echo '{"session_id": "s1", "transcript": "# Fix the queue"}' | signet-sync session end --input -
"""

_COMPACT = """Write what a harness kept of a session when it compacted its context.

\b
The input is the document of `signet-sync session end --help` with "compaction" (str) in place of
"transcript", "transcript_is" and "summary".

\b
Example:
  echo '{"session_id": "s1", "compaction": "# Kept"}' | signet-sync session compact --input -
"""


@click.group()
def session() -> None:
    """Write a session's end or compaction into the vault."""


_input = click.option(
    "--input", "source", metavar="FILE|-", required=True, help="The JSON document; - reads it from stdin."
)
_agent = click.option("--agent", metavar="ID", help="Whose memory, where the document names no agent (else: default).")


@session.command(help=_END, short_help="Write the end of a session.")
@_input
@_agent
@json_option
@pass_context
def end(context: Context, source: str, agent: str | None, as_json: bool) -> None:
    _write(context, source, agent, as_json, kind="end")


@session.command(help=_COMPACT, short_help="Write what was kept of a session at a compaction.")
@_input
@_agent
@json_option
@pass_context
def compact(context: Context, source: str, agent: str | None, as_json: bool) -> None:
    _write(context, source, agent, as_json, kind="compact")


@session.command("take-spool", hidden=True)
@click.option("--sweep", is_flag=True, help="Look for forgotten transcripts, too.")
@pass_context
def take_spool(context: Context, sweep: bool) -> None:
    """Work off what hooks have spooled; the agent and the hooks call this."""
    from loguru import logger

    from signet_sync import log
    from signet_sync.app.workspace import opened
    from signet_sync.capture import intake
    from signet_sync.history import operations as history_operations
    from signet_sync.settings import model
    from signet_sync.storage.clock import now_us

    settings, remarks = model.load(context.root, anyway=True)
    with opened(context.root, settings, database=context.chosen_database) as workspace:
        log.set_up(
            settings.log_level,
            folder=workspace.state.logs,
            rotation_bytes=settings.log_rotation_bytes,
            keep=settings.log_keep,
            name="intake",
        )
        for remark in remarks:
            logger.warning("{}", remark)
        intake.run_capture(workspace, now_us=now_us, sweep=sweep)
        told = len(workspace.events)
        history_operations.close_sessions(workspace, now_us())
        for text in workspace.events[told:]:
            logger.warning("{}", text)


def _write(context: Context, source: str, agent: str | None, as_json: bool, *, kind: str) -> None:
    document = read_input(source, f"session {kind}")
    if agent is not None and isinstance(document, dict):
        if document.get("agent_id", agent) != agent:
            raise UsageError("--agent and the document name different agents", hint="leave one of them out")
        document["agent_id"] = agent
    from signet_sync.app.workspace import opened
    from signet_sync.sessions import operations as sessions_operations
    from signet_sync.sessions.input import SessionInput, compaction_input, session_input
    from signet_sync.sessions.model_proposals import proposer
    from signet_sync.settings.model import asks_anybody

    now_us = resolve_now(None)
    given = session_input(document, now_us=now_us) if kind == "end" else compaction_input(document, now_us=now_us)
    settings = context.settings(anyway=True)
    if asks_anybody(settings):
        context.log_to_person()
    with opened(context.root, settings, database=context.chosen_database) as workspace:
        propose = proposer(settings, context.root, os.environ)
        if isinstance(given, SessionInput):
            answer = sessions_operations.end(workspace, given, now_us=now_us, propose=propose)
        else:
            answer = sessions_operations.compact(workspace, given, now_us=now_us, propose=propose)
        if settings.history_enabled:
            from signet_sync.history import operations as history_operations

            history_operations.close_sessions(workspace, resolve_now(None))
        for text in workspace.events:
            context.say(text)
    if as_json:
        emit(answer)
        return
    _tell(answer)


def read_input(source: str, command: str) -> Any:
    """Parses JSON from a file, or from stdin for `-`. Raises `UsageError`, which refers to the help of `command`."""
    try:
        if source == "-":
            raw = sys.stdin.buffer.read()
        else:
            with open(source, "rb") as handle:
                raw = handle.read()
    except OSError as error:
        raise UsageError(
            f"the input cannot be read: {error.strerror}", path=source, hint="give a file, or - for stdin"
        ) from None
    try:
        return json.loads(raw.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        problem = f"the input is not UTF-8: byte {error.start}"
    except json.JSONDecodeError as error:
        problem = f"the input is not JSON: {error}"
    except RecursionError:
        problem = "the input is not JSON that can be read: it is nested too deeply"
    except ValueError:
        problem = "the input is not JSON that can be read: a number has too many digits"
    raise UsageError(
        problem,
        path=None if source == "-" else source,
        hint=f"see signet-sync {command} --help for its shape",
        code="input-invalid",
    )


def _tell(answer: dict[str, Any]) -> None:
    if answer["idempotent_replay"]:
        click.echo("Nothing new: this was written before.")
    for kind in ("summary", "transcript", "compaction", "manifest"):
        if answer.get(kind):
            click.echo(f"{kind:<11} {answer[kind]}")
    click.echo(answer["sentence"])
    redactions = sum(answer["redactions"].values())
    if redactions:
        rules = ", ".join(f"{rule} {count}" for rule, count in sorted(answer["redactions"].items()))
        click.echo(f"Redacted: {rules}")
