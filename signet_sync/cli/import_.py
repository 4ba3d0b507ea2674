"""`import`, `restore`, `migrate`: bring in past sessions of a harness, give one back, bring over what others remember.

The parsers are loaded in the functions: the help does without.
"""

from __future__ import annotations

import os
import shlex
from collections import Counter
from contextlib import closing
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import click

from signet_sync.cli.main import Context, show_by_hand, show_redactions
from signet_sync.cli.parsing import OfWorkspace, SharedOption, command
from signet_sync.formats.ids import agent_for, require_agent
from signet_sync.formats.paths import display
from signet_sync.migration import claude_mem, signet
from signet_sync.storage.database.connection import Database
from signet_sync.storage.files import require_root
from signet_sync.text.phrases import count_noun

if TYPE_CHECKING:
    from signet_sync.capture.transcripts import TranscriptSource
    from signet_sync.migration.items import Report

_SHOWN = 12
# What the vault holds already is no file that was not taken.
HELD = ("read before, unchanged since", "nothing new", "nothing new since it was captured")


@command("--json", name="import")
@click.argument("harness")
@click.argument("path", required=False)
@click.option(
    "--agent",
    cls=SharedOption,
    field="agent_flag",
    metavar="ID",
    help="The agent of the sessions (default: SIGNET_AGENT_ID, agents.projects, default).",
)
@click.option("--again", is_flag=True, help="Also read transcripts that have not changed since they were read.")
def import_(context: Context, harness: str, path: str | None, again: bool) -> int:
    """Write past sessions of a harness into the vault.

    HARNESS is one that `hooks status` lists; PATH is a transcript or a folder of them (default: the harness's own
    folder). What the vault already contains is not written again, so an interrupted import continues where it stopped.
    Sessions that may still be running (changed in the last 15 minutes, see `capture.idle`) are skipped, unless PATH
    names them.
    """
    document = bring(context, harness, path, context.agent_flag, again=again)
    context.answer(document, lambda: _show_brought(document, path))
    return 1 if document["failed"] else 0


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
    # Raises for an invalid agent before anything is read.
    if agent is None:
        agent_for((), os.environ, settings.agents_projects)
    else:
        require_agent(agent)
    sources, others = transcripts.files(harness, path)
    sources = [one for one in sources if since_ns <= one.mtime_ns and (until_ns is None or one.mtime_ns < until_ns)]
    skipped = [{"path": other, "reason": reason} for other, reason in ([] if since_ns else others)]
    idle = settings.capture_idle
    recent = f"changed in the last {idle / 60:.0f} minutes, may still be running; give it as PATH to import it now"
    propose = proposer(settings, os.environ)
    with context.open_workspace(settings=settings) as workspace, context.progress(harness) as advance:
        done = intake.Intake(workspace, lambda: context.now_us, propose)
        with done.defer_pages():
            for number, source in enumerate(sources, 1):
                if not again and (known := intake.outcome_of(workspace.database, source, agent)):
                    skipped.append({"path": source.path, "reason": known})
                elif path is None and _is_recent(source, context.now_us, idle):
                    skipped.append({"path": source.path, "reason": recent})
                else:
                    done.capture_one(source, agent)
                if advance is not None:
                    advance(number, len(sources))
    redactions: Counter[str] = Counter()
    for captured in done.captured:
        redactions.update(captured.redactions)
    nothing = [
        {"path": captured.source.path, "reason": captured.remark or "nothing new"}
        for captured in done.captured
        if not captured.has_written
    ]
    return {
        "harness": harness,
        "transcripts": len(sources),
        "sessions": len({(c.agent_id, c.session_id) for c in done.captured if c.has_written}),
        "segments": [path for captured in done.captured for path in captured.segments],
        "compactions": [path for captured in done.captured for path in captured.compactions],
        "nothing": nothing + skipped,
        "failed": done.failed,
        "redactions": dict(sorted(redactions.items())),
    }


def find_unread(context: Context, harness: str) -> tuple[list[TranscriptSource], int]:
    """Returns the transcripts of a harness that `bring` would read; counts those it skips as they may still grow.

    Raises `SignetSyncError`, `OSError`.
    """
    from signet_sync.capture import intake, transcripts

    idle = context.settings().capture_idle
    sources = [source for source in transcripts.sources(harness) if not source.is_model_call]
    if sources and os.path.exists(context.database_path()):
        with closing(Database(context.database_path(), readonly=True)) as database:
            sources = [one for one in sources if not intake.outcome_of(database, one)]
    ended = [one for one in sources if not _is_recent(one, context.now_us, idle)]
    return ended, len(sources) - len(ended)


def _is_recent(source: TranscriptSource, now_us: int, idle: float) -> bool:
    return now_us - source.mtime_ns // 1000 < idle * 1_000_000


def group_by_reason(nothing: list[dict[str, str]]) -> dict[str, list[dict[str, str]]]:
    """Groups the files of which nothing is in the vault by the kind of their reason, whose numbers differ."""
    left = sorted((one for one in nothing if one["reason"] not in HELD), key=itemgetter("reason", "path"))
    return {kind: list(some) for kind, some in groupby(left, key=lambda one: one["reason"].partition(": ")[0])}


def _show_brought(document: dict[str, Any], path: str | None) -> None:
    nothing, failed = document["nothing"], document["failed"]
    if not (document["transcripts"] or nothing):
        where = path or f"the folder of {document['harness']}"
        click.echo(f"No transcripts in {display(where)}.")
        return
    click.echo(
        f"{count_noun(document['transcripts'], 'transcript')}: {count_noun(len(document['segments']), 'segment')} of "
        f"{count_noun(document['sessions'], 'session')} and {count_noun(len(document['compactions']), 'compaction')} "
        "written."
    )
    for reason, number in Counter(entry["reason"] for entry in nothing if entry["reason"] in HELD).most_common():
        click.echo(f"  {number:>5}  {reason}")
    for kind, some in group_by_reason(nothing).items():
        click.echo(f"  {len(some):>5}  not taken, {kind}:")
        for one in some[:_SHOWN]:
            click.echo(f"         {display(one['path'])}{display(one['reason'].removeprefix(kind))}")
        if len(some) > _SHOWN:
            click.echo(f"         … and {len(some) - _SHOWN} more: --json names all")
    for text in failed:
        click.echo(f"  failed: {display(text)}", err=True)
    show_redactions(document["redactions"])


@command("--agent", "--json")
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
def restore(context: Context, session: str, harness: str) -> None:
    """Write a session in its harness's own format, so that the harness resumes it, though it deleted its file.

    It has the words of both, calls and what these gave back as the vault keeps them. Thinking and images are not in it,
    nor what was redacted or left out.
    """
    from signet_sync.capture.restore import restore as write
    from signet_sync.sync.read_only import open_index

    with open_index(context.place()) as database:
        done = write(database, context.agent, session, harness, os.getcwd())
    lost = [("redaction", done["redacted"]), ("image", done["images"]), ("cut result", done["cut"])]
    missing = ", ".join(["thinking", *(count_noun(number, name) for name, number in lost if number)])
    context.answer(
        done,
        f"restored {count_noun(done['turns'], 'turn')} to {done['path']}\nnot in it: {missing}\n"
        f"go on with: cd {shlex.quote(done['folder'])} && {done['command']}",
    )


# ── migrate ──

_HELP = """Bring over what another program remembers, each thing once.

\b
signet      PATH is a memories.db, or the workspace that has one (default: this one)
claude-mem  observations and session summaries: PATH is claude-mem.db, or its folder

Repeated, the command brings what is new since. Secrets are redacted, and everything is accounted for. Nothing but
PATH is opened, a database read-only. Sessions that Signet removed are removed here, after a question.

A backup is written before; `backup restore FILE --replace` goes back to its memories.
"""


@command("--dry-run", "--yes", "--now", "--json", help=_HELP, short_help="Bring over what another program remembers.")
@click.argument("program", type=click.Choice(["signet", "claude-mem"]), metavar="PROGRAM")
@click.argument("path", required=False)
@click.option("--accept-removals", is_flag=True, help="Also if Signet removed most of the sessions that are here.")
def migrate(context: Context, program: str, path: str | None, dry_run: bool, yes: bool, accept_removals: bool) -> int:
    require_root(context.root)
    if program == "signet":
        return _migrate_signet(context, path, dry_run, yes, accept_removals)
    if path is None:
        raise click.UsageError(f"migrate {program} needs a PATH")
    with context.open_workspace(touch_nothing=dry_run, lasting=not dry_run) as workspace:
        found = claude_mem.migrate(workspace, path, context.now_us, write=not dry_run)
    context.answer(found.document(), lambda: _show_report(context, found))
    return 0


def _migrate_signet(context: Context, place: str | None, dry_run: bool, yes: bool, accept_removals: bool) -> int:
    from signet_sync.pages.others import daemon_pid

    path = signet.find_database(context.root, place)

    def ask(number: int) -> None:
        context.confirm(f"Remove {count_noun(number, 'session')} that Signet removed?", yes=yes)

    with context.open_workspace(touch_nothing=dry_run, lasting=not dry_run) as workspace:
        found = signet.migrate(
            workspace, path, context.now_us, write=not dry_run, confirm=ask, accept_removals=accept_removals
        )
    left = ["take Signet's hooks, MCP servers and plug-ins out of your coding agents"]
    if (pid := daemon_pid(context.root)) is not None:
        left.append(f"stop Signet's daemon, beside which MEMORY.md and manifests are held back: kill {pid}")

    def show() -> None:
        _show_report(context, found)
        show_by_hand(left)

    context.answer(found.document() | {"by_hand": left}, show)
    return 0


def _show_report(context: Context, found: Report) -> None:
    did = ("Would bring from" if found.dry_run else "Brought from") if found.is_new else "Nothing new in"
    click.echo(f"{did} {display(found.place)}:")
    for line in found.lines():
        click.echo(display(line))
    show_redactions(found.redactions)
    if found.backup:
        going = context.command_line(f"backup restore {shlex.quote(found.backup)} --replace")
        click.echo(display(f"To go back to the memories of before: {going}"))
