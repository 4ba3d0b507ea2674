"""`fleet remove`: finds sessions in many workspaces, writes a plan, and carries it out once it is approved."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from signet_sync.cli.fleet.options import on_engine
from signet_sync.cli.fleet.postgres_url import PostgresUrl
from signet_sync.cli.input import stdin_text
from signet_sync.cli.main import Context, confirm, json_option, now_option, pass_context
from signet_sync.cli.parsing import Command, SharedOption
from signet_sync.cli.reindex import progress_bar
from signet_sync.fleet.engines import Engine
from signet_sync.formats.paths import display
from signet_sync.text.phrases import counted
from signet_sync.text.sanitizer import sanitize_line

if TYPE_CHECKING:
    from signet_sync.fleet.removal.finding import Findings

_LONGEST = 4096  # bytes of a phrase on stdin


@click.command(cls=Command)
@click.argument("targets", type=click.Path(readable=False), metavar="[TARGET...]", nargs=-1)
@click.option("--session", "sessions", metavar="ID", multiple=True, help="A session: its id, key or name. Repeatable.")
@click.option("--project", metavar="P", help="Every session of a project: its origin, path or name.")
@click.option("--phrase", metavar="TEXT", help="Every session that contains a phrase; - reads it from stdin.")
@click.option("--agent", cls=SharedOption, metavar="ID", help="Only sessions of this agent.  [default: every agent]")
@click.option("--reason", help="Why; recorded in the tombstones.  [required for a plan]")
@click.option(
    "--quoting",
    type=click.Choice(["redact", "keep"]),
    help="What to do with passages that other sessions quote: redact or keep them.",
)
@click.option("--plan", "into", metavar="FILE", type=click.Path(), help="Write the plan to this file.")
@click.option("--approve", metavar="FILE", type=click.Path(), help="Approve a plan.")
@click.option("--by", metavar="NAME", help="Who approves it.")
@click.option("--apply", "carry_out", metavar="FILE", type=click.Path(), help="Carry out an approved plan.")
@click.option(
    "--tables",
    type=click.Path(),
    metavar="PLACE",
    help="With --apply: also delete what these tables hold of the workspaces, until fleet index makes it anew.",
)
@click.option("--to", "database", type=PostgresUrl(), metavar="URL", help="The same for tables in PostgreSQL.")
@on_engine
@now_option
@json_option
@pass_context
def remove(
    context: Context,
    targets: tuple[str, ...],
    sessions: tuple[str, ...],
    project: str | None,
    phrase: str | None,
    agent: str | None,
    reason: str | None,
    quoting: str | None,
    into: str | None,
    approve: str | None,
    by: str | None,
    carry_out: str | None,
    tables: str | None,
    database: str | None,
    engine: Engine,
) -> int:
    """Remove sessions in many workspaces: first a plan, then its approval, then --apply.

    With TARGET... it only reads: it lists where the sessions are, and with --plan writes the plan, which contains ids
    and paths, of a phrase only its SHA-256. A name is taken in full, never as its beginning. With --by it asks at a
    terminal whether to approve and apply the plan at once.

    --apply removes from folders as remove does it. In s3:// buckets it writes tombstones and deletes files, each only
    if it has not changed, and writes nothing else. What cannot be removed is listed with what to do instead: revisions
    of git, archives, older versions of objects, quotes.

    --apply may be repeated until everything is gone, also after it was interrupted. It refuses a plan that was changed
    after its approval, or that is older than 7 days and was not begun. What was done is in FILE.journal.jsonl, the
    report in FILE.report.md and FILE.report.json. Exit 1 if something is left.
    """
    modes = sum((approve is not None, carry_out is not None, bool(targets)))
    if modes != 1:
        raise click.UsageError("give TARGET..., --approve FILE or --apply FILE")
    places = [place for place in (tables, database) if place]
    if places and carry_out is None:
        raise click.UsageError("--tables and --to belong to --apply")
    if carry_out is not None:
        return _apply(context, carry_out, engine, places)
    if approve is not None:
        return _approve(context, approve, by)
    return _plan(context, targets, _request(sessions, project, phrase, agent), reason, quoting, into, by, engine)


def _request(sessions: tuple[str, ...], project: str | None, phrase: str | None, agent: str | None) -> Any:
    from signet_sync.fleet.removal.request import RemovalRequest, checked

    if phrase == "-":
        phrase = stdin_text(_LONGEST).strip()
    return checked(RemovalRequest(sessions, project or "", phrase or "", agent))


def _plan(
    context: Context,
    targets: Sequence[str],
    request: Any,
    reason: str | None,
    quoting: str | None,
    into: str | None,
    by: str | None,
    engine: Engine,
) -> int:
    from signet_sync.fleet.removal import operations, plan

    reason = sanitize_line(reason or "") or None
    if into is not None and reason is None:
        raise click.UsageError("--reason is required for a plan; it is recorded in the tombstones")
    with progress_bar("looking", show=not context.as_json and not context.quiet) as advance:
        found = operations.find(targets, request, engine, context.now_us, advance)
    document = plan.document(request, reason or "", quoting, found, context.now_us)
    digest = plan.write(into, document) if into is not None else None
    at_once = (
        into is not None and by is not None and document["workspaces"] and sys.stdin.isatty() and not context.as_json
    )
    context.answer({"plan": into, "plan_sha256": digest, **document}, lambda: _show_plan(found, into))
    if not at_once or into is None:
        return 1 if document["unreachable"] else 0
    confirm(context, f"approve as {sanitize_line(by or '')}, and remove all of this for good?", yes=False)
    plan.approve(into, by or "", context.now_us)
    return _apply(context, into, engine)


def _approve(context: Context, path: str, by: str | None) -> int:
    from signet_sync.fleet.removal import plan

    if by is None:
        raise click.UsageError('--by is required: --by "NAME"')
    approval = plan.approve(path, by, context.now_us)
    document = {"plan": path, "plan_sha256": plan.read(path).digest, "approved_by": approval.by, "at": approval.at}

    def show() -> None:
        click.echo(f"{display(path)} is approved by {approval.by}; to carry it out:")
        click.echo(f"  signet-sync fleet remove --apply {shlex.quote(path)}")

    context.answer(document, show)
    return 0


def _apply(context: Context, path: str, engine: Engine, places: Sequence[str] = ()) -> int:
    from signet_sync.fleet import index  # slow imports, which the other steps do not need
    from signet_sync.fleet.removal import operations

    with progress_bar("removing", show=not context.as_json and not context.quiet) as advance:
        document = operations.apply(path, engine, context.now_us, advance)
    index.drop(
        [row["workspace"] for row in document["workspaces"] if row["state"] == "removed"], places, context.now_us
    )
    context.answer(document, lambda: _show_report(path, document, in_tables=not places))
    return 0 if operations.is_everything_gone(document) else 1


def _show_plan(found: Sequence[Findings], into: str | None) -> None:
    somewhere = [one for one in found if one.sessions]
    for one in somewhere:
        click.secho(display(one.workspace), bold=True)
        for session in one.sessions:
            what = "all sessions" if session.all_sessions else counted(len(session.session_ids), "session")
            click.echo(f"  {what} of {session.session_token}, agent {display(session.agent_id)}")
            for session_id in session.session_ids:
                click.echo(f"    session {display(session_id)}")
            for file in session.files:
                click.echo(f"    {display(file.path)}")
        for path in one.quoted_in:
            click.echo(f"  of another session, quotes it: {display(path)}")
        for path in one.elsewhere:
            click.echo(f"  contains words of it: {display(path)}")
        if one.obstacle:
            click.secho(f"  nothing can be removed here: {one.obstacle}", fg="yellow")
    for one in found:
        if one.unreachable:
            click.secho(f"{display(one.workspace)}: not read: {one.unreachable}", fg="red")
    sessions = sum(len(session.session_ids) for one in somewhere for session in one.sessions)
    files = sum(len(session.files) for one in somewhere for session in one.sessions)
    where = f"{len(somewhere)} of {counted(len(found), 'workspace')}"
    click.echo(f"{counted(sessions, 'session')} and {counted(files, 'file')} in {where}; nothing was removed")
    if into is not None and somewhere:
        click.echo(f'to approve it: signet-sync fleet remove --approve {shlex.quote(into)} --by "NAME"')


def _show_report(path: str, document: dict[str, Any], *, in_tables: bool) -> None:
    for row in document["workspaces"]:
        files = counted(len(row["files"]), "file")
        done = row["state"] in ("removed", "nothing-left")
        click.secho(f"{display(row['workspace'])}: {row['state']}, {files} gone", fg=None if done else "red")
        if row["message"]:
            click.echo(f"  {display(row['message'])}")
        for one in row["remains"]:
            click.secho(f"  remains: {display(one)}", fg="yellow")
    for one in document["unreachable"]:
        click.secho(f"{display(one['workspace'])}: was not read for the plan; plan again", fg="red")
    click.echo(f"report: {display(path)}.report.md")
    if any(row["state"] == "removed" for row in document["workspaces"]):
        said = "tables have it until these are indexed again" if in_tables else "the tables lack these until then"
        click.echo(f"{said}: signet-sync fleet index")
    if any(row["state"] in ("pending", "unreachable") for row in document["workspaces"]):
        click.echo(f"to do what is left: signet-sync fleet remove --apply {shlex.quote(path)}")
