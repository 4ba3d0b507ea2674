"""`import`: adds past sessions from a harness's own folder to the vault."""

from __future__ import annotations

import os
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

import click

from signet_sync.cli.main import Context, counted, emit, json_option, pass_context, resolve_now
from signet_sync.formats.paths import display

if TYPE_CHECKING:
    from signet_sync.capture.intake import IntakeResult
    from signet_sync.capture.stores.transcripts import TranscriptSource

_SHOWN = 12


@click.command("import")
@click.argument("harness")
@click.argument("path", required=False)
@click.option(
    "--agent", metavar="ID", help="Whose sessions these are (else SIGNET_AGENT_ID, agents.projects, default)."
)
@click.option("--again", is_flag=True, help="Read transcripts again that have not changed since they were read.")
@json_option
@pass_context
def import_(context: Context, harness: str, path: str | None, agent: str | None, again: bool, as_json: bool) -> None:
    """Write past sessions of a harness into the vault.

    HARNESS is claude-code, codex, gemini, opencode or openclaw; PATH a transcript or a folder of them, else the
    harness's own folder. What the vault has already is not written again, so an import that was interrupted goes on
    where it stopped. Sessions that may still be going on (changed in the last 15 minutes, or what `capture.idle` says)
    are left for later, unless PATH names them.
    """
    from signet_sync.app.workspace import opened
    from signet_sync.capture import intake
    from signet_sync.capture.stores import transcripts
    from signet_sync.errors import UsageError
    from signet_sync.formats.ids import agent_for
    from signet_sync.formats.paths import AGENT_ID
    from signet_sync.sessions.model_proposals import proposer

    now_us = resolve_now(None)
    context.log_to_person()
    settings = context.settings()
    if agent is None:
        # Raises for an invalid agent before anything is read.
        agent_for(None, os.environ, settings.agents_projects)
    elif AGENT_ID.fullmatch(agent) is None:
        raise UsageError(
            "--agent does not name an agent",
            hint="use lower-case letters, digits, - and _, at most 64, a letter or digit first",
            code="agent-invalid",
        )
    sources = list(transcripts.sources(harness, where=path))
    done = intake.IntakeResult()
    skipped: list[dict[str, str]] = []
    with opened(context.root, settings, database=context.chosen_database) as workspace:
        propose = proposer(settings, context.root, os.environ)
        bar = _bar(len(sources), as_json or context.quiet)
        with bar as advance:
            for source in sources:
                if intake.is_read(workspace, source, agent) and not again:
                    skipped.append({"path": source.path, "reason": "read before, unchanged since"})
                elif path is None and now_us - source.mtime_ns // 1000 < settings.capture_idle * 1_000_000:
                    skipped.append({"path": source.path, "reason": _recent(settings.capture_idle)})
                else:
                    intake.capture_one(workspace, source, done, now_us=now_us, agent_id=agent, propose=propose)
                advance()
        for text in workspace.events:
            context.say(text)
    document = _document(harness, sources, done, skipped)
    if as_json:
        emit(document)
    else:
        _tell(document, path)
    if done.failed:
        click.get_current_context().exit(1)


def _recent(idle: float) -> str:
    return f"changed in the last {idle / 60:.0f} minutes, may still be going on; name it as PATH to take it now"


def _bar(length: int, silent: bool) -> Any:
    from contextlib import nullcontext

    if silent or length < 5 or not sys.stderr.isatty():
        return nullcontext(lambda: None)
    from rich.console import Console
    from rich.progress import Progress

    class Bar(Progress):
        def __enter__(self) -> Any:
            super().__enter__()
            task = self.add_task("Importing", total=length)
            return lambda: self.advance(task)

    return Bar(console=Console(stderr=True))


def _document(
    harness: str, sources: list[TranscriptSource], done: IntakeResult, skipped: list[dict[str, str]]
) -> dict[str, Any]:
    redactions: Counter[str] = Counter()
    for captured in done.captured:
        redactions.update(captured.redactions)
    nothing = [
        {"path": captured.source.path, "reason": captured.remark or "nothing new"}
        for captured in done.captured
        if not captured.wrote
    ]
    return {
        "harness": harness,
        "transcripts": len(sources),
        "sessions": len({(c.agent_id, c.session_id) for c in done.captured if c.wrote}),
        "segments": [path for captured in done.captured for path in captured.segments],
        "compactions": [path for captured in done.captured for path in captured.compactions],
        "nothing": nothing + skipped,
        "failed": done.failed,
        "redactions": dict(sorted(redactions.items())),
    }


def _tell(document: dict[str, Any], path: str | None) -> None:
    if not document["transcripts"]:
        where = path or f"the folder of {document['harness']}"
        click.echo(f"No transcripts in {display(where)}.")
        return
    written = f"{counted(len(document['segments']), 'segment')} of {counted(document['sessions'], 'session')}"
    click.echo(
        f"{counted(document['transcripts'], 'transcript')}: {written} and "
        f"{counted(len(document['compactions']), 'compaction')} written."
    )
    # Numbers in the reasons differ from file to file.
    reasons = Counter(entry["reason"].partition(": ")[0] for entry in document["nothing"])
    for reason, number in reasons.most_common():
        click.echo(f"  {number:>5}  {reason}")
    for text in document["failed"][:_SHOWN]:
        click.echo(f"  failed: {display(text)}", err=True)
    if len(document["failed"]) > _SHOWN:
        click.echo(f"  … and {len(document['failed']) - _SHOWN} more", err=True)
    if document["redactions"]:
        rules = ", ".join(f"{rule} {count}" for rule, count in document["redactions"].items())
        click.echo(f"Redacted: {rules}")
