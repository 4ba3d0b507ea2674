"""`remove` and `redact`: take a session, or secrets of sealed files, out for good, after listing them and asking."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from signet_sync.cli.main import Context, show_remedy
from signet_sync.cli.parsing import OfWorkspace, command
from signet_sync.errors import UsageError
from signet_sync.formats.paths import display, head_page
from signet_sync.text.phrases import count_noun
from signet_sync.text.sanitizer import sanitize_line
from signet_sync.text.sentences import flatten

if TYPE_CHECKING:
    from signet_sync.entities.erase import TakenLine
    from signet_sync.privacy.redact import RedactResult
    from signet_sync.privacy.remove import RemoveResult, SessionRemoval
    from signet_sync.sync.workspace import Workspace


@command("--dry-run", "--yes", "--agent", "--now", "--json")
@click.argument("session", type=OfWorkspace())
@click.option("--reason", help="Why; recorded in the tombstone.  [required to remove]")
@click.option(
    "--quoting",
    type=click.Choice(["redact", "keep"]),
    help="What to do with passages that other sessions quote: redact or keep them.",
)
@click.option("--undo", is_flag=True, help="Lift a removal: the session may return; deleted files stay deleted.")
def remove(
    context: Context, session: str, reason: str | None, dry_run: bool, yes: bool, quoting: str | None, undo: bool
) -> int:
    """Remove a session to the last byte: an id covers that session, a key or name all of its sessions.

    The name is the 16 characters by which its files are called.

    Other sessions may quote it: contain text that it said first. Their files are listed, and nothing is removed until
    --quoting says what to do with them: redact replaces each passage by [REDACTED:removed], with a new hash and seal;
    keep leaves them. A session that still runs cannot be redacted before it has ended.

    Text that people wrote stays, and is listed. The workspace's git history is not changed; if it still contains the
    session, the answer says how to forget it.

    --undo lets the session return, here and on every machine that the vault is synced to. It restores nothing by
    itself: put the files into memory/ again, or let the harness's transcript be read again.
    """
    reason = sanitize_line(reason or "") or None  # a blank reason counts as none
    if undo and (reason is not None or quoting is not None):
        raise click.UsageError("--undo cannot be combined with --reason or --quoting")
    if not (undo or dry_run) and reason is None:
        raise click.UsageError("--reason is required; it is recorded in the tombstone")
    from signet_sync.privacy import quotes  # slow imports, which the help has no use for
    from signet_sync.privacy import remove as removals

    redacting = quoting == "redact"
    with context.open_workspace(touch_nothing=dry_run) as workspace:
        if undo:
            _lift(context, workspace, session, dry_run=dry_run)
            return 0
        if not dry_run:
            removals.refresh(workspace, context.now_us)
        plans = removals.plan(workspace, context.agent, session)
        quoted = quotes.find_quotes(workspace, plans)
        if dry_run:
            _preview(context, workspace, plans, quoted.places)
            return 0
        assert reason is not None
        if quoted.places and quoting is None:
            raise _refuse_quoted(quoted.places)
        redacted = quoted.paths if redacting else ()

        def list_all() -> None:
            _list_sessions(workspace, plans)
            for path in redacted:
                click.echo(f"  passages of it are redacted in: {path}")

        more = f", and redact passages in {count_noun(len(redacted), 'other file')}" if redacted else ""
        files = count_noun(sum(len(plan.paths) for plan in plans), "file")
        context.confirm(f"remove {files}{more} for good?", yes=yes, listing=list_all)
        if redacting:
            quotes.redact(workspace, quoted, reason, context.now_us)
        done = [removals.remove(workspace, one, reason, context.now_us) for one in plans]
    documents = [one._asdict() | {"entity_lines": [line._asdict() for line in one.entity_lines]} for one in done]

    def show() -> None:
        for one in done:
            _show_removed(context, one)
        for path in quoted.places:
            if redacting:
                click.echo(f"  quoted it, redacted: {path}")
            else:
                click.secho(f"  of another session, still quotes it: {display(path)}", fg="yellow")

    context.answer({"removals": documents, "quoted_in": list(quoted.places)}, show)
    return 1 if any(one.pending for one in done) else 0


def _refuse_quoted(paths: Sequence[str]) -> UsageError:
    shown = ", ".join(map(display, paths[:4])) + (f" and {len(paths) - 4} more" if len(paths) > 4 else "")
    return UsageError(
        f"it is quoted in {count_noun(len(paths), 'place')} of other sessions: {shown}; nothing was removed",
        hint="--quoting redact redacts the passages, --quoting keep leaves them; --dry-run lists all of them",
        code="quoted",
        details={"quoted_in": list(paths)},
    )


def _preview(context: Context, workspace: Workspace, plans: list[SessionRemoval], quoted_in: Sequence[str]) -> None:
    from signet_sync.privacy import remove as removals  # as above

    taken = [removals.entity_lines(workspace, one) for one in plans]

    def show() -> None:
        _list_sessions(workspace, plans)
        for path in quoted_in:
            click.echo(f"  of another session, quotes it: {display(path)}")
        for lines in taken:
            _show_taken(lines)
        click.echo("nothing was removed (--dry-run)")

    removed = [
        {
            "agent_id": plan.agent_id,
            "session_token": plan.session_token,
            "session_ids": [ref.session_id for ref in plan.sessions],
            "paths": list(plan.paths),
            "entity_lines": [line._asdict() for line in lines],
        }
        for plan, lines in zip(plans, taken, strict=True)
    ]
    context.answer({"dry_run": True, "removals": removed, "quoted_in": list(quoted_in)}, show)


def _list_sessions(workspace: Workspace, plans: list[SessionRemoval]) -> None:
    from signet_sync.privacy import remove as removals  # as above

    for plan in plans:
        known = removals.describe(workspace, plan)
        for ref in plan.sessions:
            click.secho(f"session {display(ref.session_id)} ({ref.session_token})", bold=True)
            if ref.session_id in known:
                click.echo(f"  {display(known[ref.session_id])}")
        for path in plan.paths:
            click.echo(f"  {path}")
        for path in removals.list_transcripts(workspace, plan):
            click.secho(f"  stays, it is the harness's own: {path}", fg="yellow")


def _show_taken(lines: Sequence[TakenLine]) -> None:
    for line in lines:
        where = " · ".join(filter(None, [display(line.path), line.section]))
        click.echo(f"  from {where}: {flatten(line.text, 160)}")


def _show_removed(context: Context, done: RemoveResult) -> None:
    click.echo(f"removed {count_noun(len(done.removed_paths), 'file')} of {done.session_token}")
    click.echo(f"  tombstone: {done.tombstone}")
    click.echo(f"  to let it return: signet-sync remove --undo {done.session_token}; what was deleted stays deleted")
    _show_taken(done.entity_lines)
    for path in done.pending:
        click.secho(f"  cannot be deleted yet, every pass tries again: {path}", fg="red")
    paths = [*done.removed_paths, head_page(done.agent_id)]
    show_remedy(context, done.git_history, "still contains the text", paths)
    for path in done.foreign:
        click.secho(f"  not changed, still contains text of it: {path}", fg="yellow")


def _lift(context: Context, workspace: Workspace, name: str, *, dry_run: bool) -> None:
    """Lets a session return that was removed."""
    from signet_sync.privacy import remove as removals  # slow import, which the help has no use for

    undo = removals.find_undo(workspace, context.agent, name)
    tombstone = undo.tombstone
    if not dry_run:
        removals.lift(workspace, context.agent, name)
    document = {
        "agent_id": context.agent,
        "session_token": tombstone.session_token,
        "lifted": not dry_run,
        "dry_run": dry_run,
        "tombstone": undo.path,
        "session_ids": list(undo.session_ids) or None,
        "removed_at": tombstone.removed_at.text,
        "removed_paths": list(tombstone.removed_paths),
    }

    def show() -> None:
        title = f"{tombstone.session_token}, removed {tombstone.removed_at.text}: {display(tombstone.reason)}"
        click.secho(title, bold=True)
        for path in tombstone.removed_paths:
            click.echo(f"  {path}")
        lifted = "would be lifted" if dry_run else "was lifted earlier" if undo.earlier else "is lifted"
        click.echo(f"the removal {lifted}; nothing is restored by itself")
        click.echo(f"  put its files into memory/ again, then: {context.command_line('reindex')}")
        click.echo(f"  or read the harness's transcript again: {context.command_line('import HARNESS')}")

    context.answer(document, show)


# ── redact ──


@command("--dry-run", "--yes", "--agent", "--now", "--json")
@click.argument("name", type=OfWorkspace(), metavar="[SESSION]", required=False)
@click.option("--all", "everything", is_flag=True, help="Every artifact of every agent.")
@click.option("--reason", help="Why; kept with the file's seal.  [required to redact]")
def redact(context: Context, name: str | None, everything: bool, reason: str | None, dry_run: bool, yes: bool) -> int:
    """Remove secrets from sealed files: of a session, or (--all) of every file.

    Finds what is recognised as a secret today: in artifacts of other programs, and in our own that are older than a
    rule. Each is replaced by [REDACTED:rule], and the old bytes are deleted from seals, kept copies and backups. The
    files stay valid, and every machine that the vault is synced to follows.

    A secret that others have seen must be changed all the same. Older versions in the workspace's git history are not
    changed; if there are any, the answer says so. If it is interrupted, run the same command again.
    """
    from signet_sync.privacy import redact as redactions  # slow imports, which the help has no use for
    from signet_sync.privacy.remove import refresh

    if (name is None) == (not everything):
        raise click.UsageError("give one SESSION, or --all")
    reason = sanitize_line(reason or "") or None
    if reason is None and not dry_run:
        raise click.UsageError("--reason is required; it is kept with the file's seal")
    with context.open_workspace(touch_nothing=dry_run) as workspace:
        if not dry_run:
            refresh(workspace, context.now_us, "redacted")
        paths = redactions.select_artifacts(workspace, context.agent, name)
        done = coming = redactions.preview(workspace, paths)
        if not dry_run:
            if coming.files:
                question = f"redact {count_noun(len(coming.files), 'file')} for good?"
                context.confirm(question, yes=yes, listing=lambda: _list_redacted(coming))
            done = redactions.redact(workspace, paths, reason or "", context.now_us)
    document = {
        "dry_run": dry_run,
        "redacted": [{"path": one.path, "rules": dict(sorted(one.rules.items()))} for one in done.files],
        "left": [{"path": one.path, "message": one.message, "hint": one.hint or None} for one in done.left],
        "git_history": done.git_history,
    }

    def show() -> None:
        _list_redacted(done)
        if dry_run:
            click.echo("nothing was redacted (--dry-run)")
            return
        click.echo(f"redacted {count_noun(len(done.files), 'file')}")
        paths = [one.path for one in done.files]
        show_remedy(context, done.git_history if paths else None, "contains versions of these files", paths)

    context.answer(document, show)
    return 1 if done.left else 0


def _list_redacted(found: RedactResult) -> None:
    for one in found.files:
        rules = ", ".join(f"{rule} × {count}" for rule, count in sorted(one.rules.items()))
        click.echo(f"  {one.path}: {rules}")
    for left in found.left:
        click.secho(f"  not redacted: {left.path}: {left.message}", fg="red")
        if left.hint:
            click.echo(f"    {left.hint}")
