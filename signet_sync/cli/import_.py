"""`import` and `restore`: add past sessions of a harness to the vault, and give one back to it.

The parsers are loaded in the function: completion does without.
"""

from __future__ import annotations

import os
import shlex
from collections import Counter
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import click

from signet_sync.cli.main import Context, agent_option, json_option, pass_context, show_redactions
from signet_sync.cli.parsing import Command, OfWorkspace, SharedOption
from signet_sync.cli.reindex import progress_bar
from signet_sync.errors import UsageError
from signet_sync.formats.ids import agent_for
from signet_sync.formats.paths import AGENT_ID, display
from signet_sync.text.phrases import count_noun

if TYPE_CHECKING:
    from signet_sync.capture.intake import Intake
    from signet_sync.capture.transcripts import TranscriptSource

_SHOWN = 12
# What the vault holds already is no file that was not taken.
HELD = ("read before, unchanged since", "nothing new", "nothing new since it was captured")
_SHOW_BAR = 5  # transcripts


@click.command("import", cls=Command)
@click.argument("harness")
@click.argument("path", required=False)
@click.option(
    "--agent",
    cls=SharedOption,
    metavar="ID",
    help="The agent of the sessions (default: SIGNET_AGENT_ID, agents.projects, default).",
)
@click.option("--again", is_flag=True, help="Also read transcripts that have not changed since they were read.")
@json_option
@pass_context
def import_(context: Context, harness: str, path: str | None, agent: str | None, again: bool) -> None:
    """Write past sessions of a harness into the vault.

    HARNESS is one that `hooks status` lists; PATH is a transcript or a folder of them (default: the harness's own
    folder). What the vault already contains is not written again, so an interrupted import continues where it stopped.
    Sessions that may still be running (changed in the last 15 minutes, see `capture.idle`) are skipped, unless PATH
    names them.
    """
    document = bring(context, harness, path, agent, again=again)
    context.answer(document, lambda: _show(document, path))
    if document["failed"]:
        click.get_current_context().exit(1)


def bring(
    context: Context,
    harness: str,
    path: str | None = None,
    agent: str | None = None,
    *,
    again: bool = False,
    since_ns: int = 0,
    until_ns: int | None = None,
) -> dict[str, Any]:
    """Writes past sessions of a harness into the vault; returns the document of `import --json`.

    Of a part of them, by their last change, other files are named with the oldest. Raises `SignetSyncError`, `OSError`.
    """
    from signet_sync.capture import intake, transcripts
    from signet_sync.sessions.model_proposals import proposer

    context.log_to_person()
    settings = context.settings()
    if agent is None:
        # Raises for an invalid agent before anything is read.
        agent_for((), os.environ, settings.agents_projects)
    elif AGENT_ID.fullmatch(agent) is None:
        raise UsageError(
            "--agent is not a valid agent id",
            hint="use lower-case letters, digits, - and _, at most 64, a letter or digit first",
            code="agent-invalid",
        )
    sources, others = transcripts.files(harness, where=path)
    sources = [one for one in sources if since_ns <= one.mtime_ns and (until_ns is None or one.mtime_ns < until_ns)]
    others = [] if since_ns else others
    skipped = [{"path": other, "reason": reason} for other, reason in others]
    idle = settings.capture_idle
    recent = f"changed in the last {idle / 60:.0f} minutes, may still be running; give it as PATH to import it now"
    show_bar = len(sources) >= _SHOW_BAR and not (context.as_json or context.quiet)
    propose = proposer(settings, context.root, os.environ)
    with context.opened(settings=settings) as workspace, progress_bar(harness, show=show_bar) as advance:
        done = intake.Intake(workspace, lambda: context.now_us, propose)
        with done.pages_at_end():
            for number, source in enumerate(sources, 1):
                if not again and (known := intake.outcome_of(workspace.database, source, agent)):
                    skipped.append({"path": source.path, "reason": known})
                elif path is None and _is_recent(source, context.now_us, idle):
                    skipped.append({"path": source.path, "reason": recent})
                else:
                    done.capture_one(source, agent)
                if advance is not None:
                    advance(number, len(sources))
    return _document(harness, sources, done, skipped)


def waiting(context: Context, harness: str) -> tuple[list[TranscriptSource], int]:
    """Returns the transcripts of a harness that `bring` would read; counts those it skips as they may still grow.

    Raises `SignetSyncError`, `OSError`.
    """
    from signet_sync.capture import intake, transcripts
    from signet_sync.storage.database.connection import Database

    idle = context.settings().capture_idle
    sources = [source for source in transcripts.sources(harness) if not source.is_model_call]
    if sources and os.path.exists(context.database_path()):
        database = Database(context.database_path(), readonly=True)
        try:
            sources = [one for one in sources if not intake.outcome_of(database, one)]
        finally:
            database.connection.close()
    ended = [one for one in sources if not _is_recent(one, context.now_us, idle)]
    return ended, len(sources) - len(ended)


def _is_recent(source: TranscriptSource, now_us: int, idle: float) -> bool:
    return now_us - source.mtime_ns // 1000 < idle * 1_000_000


def _document(
    harness: str, sources: list[TranscriptSource], done: Intake, skipped: list[dict[str, str]]
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


def not_taken(nothing: list[dict[str, str]]) -> dict[str, list[dict[str, str]]]:
    """Groups the files of which nothing is in the vault by the kind of their reason, whose numbers differ."""
    left = sorted((one for one in nothing if one["reason"] not in HELD), key=itemgetter("reason", "path"))
    return {kind: list(some) for kind, some in groupby(left, key=lambda one: one["reason"].partition(": ")[0])}


def _show(document: dict[str, Any], path: str | None) -> None:
    if not (document["transcripts"] or document["nothing"]):
        where = path or f"the folder of {document['harness']}"
        click.echo(f"No transcripts in {display(where)}.")
        return
    written = f"{count_noun(len(document['segments']), 'segment')} of {count_noun(document['sessions'], 'session')}"
    click.echo(
        f"{count_noun(document['transcripts'], 'transcript')}: {written} and "
        f"{count_noun(len(document['compactions']), 'compaction')} written."
    )
    nothing = document["nothing"]
    for reason, number in Counter(entry["reason"] for entry in nothing if entry["reason"] in HELD).most_common():
        click.echo(f"  {number:>5}  {reason}")
    for kind, some in not_taken(nothing).items():
        click.echo(f"  {len(some):>5}  not taken, {kind}:")
        for one in some[:_SHOWN]:
            click.echo(f"         {display(one['path'])}{display(one['reason'].removeprefix(kind))}")
        if len(some) > _SHOWN:
            click.echo(f"         … and {len(some) - _SHOWN} more: --json names all")
    for text in document["failed"][:_SHOWN]:
        click.echo(f"  failed: {display(text)}", err=True)
    if len(document["failed"]) > _SHOWN:
        click.echo(f"  … and {len(document['failed']) - _SHOWN} more", err=True)
    show_redactions(document["redactions"])


@click.command(cls=Command)
@click.argument("session", type=OfWorkspace())
@click.option(
    "--to-harness",
    "harness",
    metavar="HARNESS",
    is_flag=False,
    flag_value="",
    default="",
    help="Which one (default: that of the session): claude-code or codex.",
)
@agent_option
@json_option
@pass_context
def restore(context: Context, session: str, harness: str) -> int:
    """Write a session in its harness's own format, so that the harness resumes it, though it deleted its file.

    It has the words of both, calls and what these gave back as the vault keeps them. Thinking and images are not in it,
    nor what was redacted or left out.
    """
    from signet_sync.capture.restore import restore as write
    from signet_sync.sync.read_only import reading

    with reading(context.place()) as database:
        done = write(database, context.agent, session, harness, os.getcwd())

    def show() -> None:
        lost = [("redaction", done["redacted"]), ("image", done["images"]), ("cut result", done["cut"])]
        missing = ", ".join(["thinking", *(count_noun(number, name) for name, number in lost if number)])
        click.echo(f"restored {count_noun(done['turns'], 'turn')} to {done['path']}")
        click.echo(f"not in it: {missing}")
        click.echo(f"go on with: cd {shlex.quote(done['folder'])} && {done['command']}")

    context.answer(done, show)
    return 0
