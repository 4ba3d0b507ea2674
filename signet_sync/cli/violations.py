"""`violations`: shows sealed files that changed or disappeared, restores or accepts them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from signet_sync.cli.main import Context, agreed, counted, emit, json_option, now_option, pass_context, resolve_now

if TYPE_CHECKING:
    from signet_sync.integrity.operations import BatchResult, ViolationFilter
    from signet_sync.sync.store.violations import Batch
    from signet_sync.sync.workspace import Workspace

_Command = TypeVar("_Command", bound=Callable[..., Any])


@click.group()
def violations() -> None:
    """Sealed files that changed or went: show, restore, accept."""


def _refreshed(workspace: Workspace, instant: int) -> None:
    """Updates the verdicts from disk, so that no outdated list is used."""
    from signet_sync.sync.engine import run_pass
    from signet_sync.sync.request import Request

    run_pass(workspace, Request(now_us=instant, project=False))


@violations.command("list")
@click.option("--accepted", is_flag=True, help="Those that went and were accepted; their seals can still be restored.")
@json_option
@pass_context
def list_(context: Context, accepted: bool, as_json: bool) -> int:
    """Every open violation; files that one save changed stand together, as a batch."""
    from signet_sync.sync.read_only import reading
    from signet_sync.sync.store.violations import accepted_gone, batches

    with reading(context.place()) as database:
        found = [] if accepted else batches(database)
        gone = accepted_gone(database)
    if as_json:
        documents = [one._asdict() for one in gone]
        emit({"accepted": documents} if accepted else {"violations": [_document(batch) for batch in found]})
        return 0
    if accepted:
        for past in gone:
            kept = "" if past.restorable else "; its sealed bytes are gone, too"
            click.echo(f"{past.path}\n    accepted {past.at}: {past.reason}{kept}")
        click.echo(f"{counted(len(gone), 'file')} accepted as gone")
        return 0
    if not found:
        click.echo("no open violations")
    for batch in found:
        several = f" ({len(batch.files)} files in one save) · --batch {batch.id}" if len(batch.files) > 1 else ""
        click.secho(f"found {batch.found_at}{several}", bold=True)
        for one in batch.files:
            click.echo("  " + click.style(one.code, fg="red") + f"  {one.path}\n    {one.message}")
    if found:
        click.echo("signet-sync violations show PATH · restore PATH · accept PATH --reason …")
        click.echo("several: a pattern in the place of PATH, --batch ID, --vanished, or --all")
    return 0


def _document(batch: Batch) -> dict[str, Any]:
    return {
        "id": batch.id,
        "found_at": batch.found_at,
        "files": [
            {
                "path": one.path,
                "code": one.code,
                "message": one.message,
                "restorable": one.restorable,
                "acceptable": one.acceptable,
            }
            for one in batch.files
        ],
    }


@violations.command()
@click.argument("path")
@json_option
@pass_context
def show(context: Context, path: str, as_json: bool) -> int:
    """The difference between the sealed text and the present one."""
    from signet_sync.integrity.operations import difference
    from signet_sync.sync.read_only import reading

    limit = context.settings().max_file_bytes
    with reading(context.place()) as database:
        text = difference(database, context.root, path, limit).unified()
    if as_json:
        emit({"path": path, "diff": text})
    elif text:
        click.echo(text, nl=False)
    else:
        context.say("the texts are equal but for what is never shown: secrets, control characters, ends of lines")
    return 0


def _which(function: _Command) -> _Command:
    """Adds the options that choose violations."""
    for decorate in (
        click.option("--yes", is_flag=True, help="Do not ask, where it is about several."),
        click.option("--batch", metavar="ID", help="Those of one batch; list shows its id."),
        click.option("--vanished", is_flag=True, help="Those whose files went."),
        click.option("--all", "everything", is_flag=True, help="Every open violation."),
        click.argument("paths", metavar="[PATH|PATTERN]...", nargs=-1),
    ):
        function = decorate(function)
    return function


def _chosen(
    paths: tuple[str, ...], everything: bool, vanished: bool, batch: str | None, *, accepted: bool = False
) -> ViolationFilter:
    """Returns the choice that the options make. Raises `click.UsageError` if there is none, or more than one."""
    from signet_sync.integrity.operations import ViolationFilter

    which = ViolationFilter(paths, everything, vanished, batch, accepted)
    if accepted and (everything or vanished or batch):
        raise click.UsageError("--accepted goes with no --all, --vanished or --batch")
    if not (paths or everything or vanished or batch or accepted):
        raise click.UsageError("give a PATH or PATTERN, --batch ID, --vanished, or --all")
    if everything and (paths or vanished or batch):
        raise click.UsageError("--all goes with no PATH, --vanished or --batch")
    return which


def _agree(workspace: Workspace, which: ViolationFilter, does: str, *, yes: bool, as_json: bool) -> list[str]:
    """Returns the chosen paths, after a person agreed unless exactly one was named."""
    from signet_sync.integrity.operations import select

    paths = select(workspace.database, which)
    if paths and not which.is_one:
        agreed(f"{does.format(counted(len(paths), 'file'))}?", yes=yes, as_json=as_json)
    return paths


def _tell(settled: BatchResult, what: str, as_json: bool, **more: object) -> int:
    if as_json:
        failed = [f"{path}: {why}" for path, why in settled.failed.items()]
        emit({what: settled.done, "failed": failed, **more})
    else:
        for one in settled.done:
            click.echo(f"{what} {one}")
            if one in settled.kept:
                click.echo(f"  what stood there is kept as {settled.kept[one]}")
        for path, why in settled.failed.items():
            click.secho(f"not {what} {path}: {why}", fg="red")
    return 1 if settled.failed else 0


@violations.command()
@_which
@click.option("--accepted", is_flag=True, help="Those that went and were accepted.")
@now_option
@json_option
@pass_context
def restore(
    context: Context,
    accepted: bool,
    paths: tuple[str, ...],
    everything: bool,
    vanished: bool,
    batch: str | None,
    yes: bool,
    now: str | None,
    as_json: bool,
) -> int:
    """Write the sealed bytes back; what is no file is moved away whole and kept.

    A PATTERN (* ? [ ]) means every open violation that it fits, by its name or, with a slash in it, by its path. Files
    whose absence was accepted come back by PATH or --accepted. Trouble with one of several is told, and the rest goes
    on; the same command again takes up what is left.
    """
    from signet_sync.app.workspace import opened
    from signet_sync.integrity import operations as integrity_operations
    from signet_sync.sync.engine import run_pass
    from signet_sync.sync.request import Request

    which, instant = _chosen(paths, everything, vanished, batch, accepted=accepted), resolve_now(now)
    with opened(context.root, context.settings(), database=context.chosen_database) as workspace:
        _refreshed(workspace, instant)
        wanted = _agree(workspace, which, "restore {} to the sealed content", yes=yes, as_json=as_json)
        if which.is_one:
            kept = integrity_operations.restore(workspace, wanted[0], instant)
            settled = integrity_operations.BatchResult(wanted, {} if kept is None else {wanted[0]: kept})
        else:
            settled = integrity_operations.restore_all(workspace, wanted, instant)
        run_pass(workspace, Request(now_us=instant))
    return _tell(settled, "restored", as_json, kept=settled.kept)


@violations.command()
@_which
@click.option("--reason", required=True, help="Why it is right as it is; kept with the seal.")
@now_option
@json_option
@pass_context
def accept(
    context: Context,
    paths: tuple[str, ...],
    everything: bool,
    vanished: bool,
    batch: str | None,
    yes: bool,
    reason: str,
    now: str | None,
    as_json: bool,
) -> int:
    """Seal what the file holds now; of one that went, settle that it is gone.

    The seal of a file that went stays: violations list --accepted shows it, and restore PATH brings it back. A PATTERN
    means what it does for restore, and trouble with one of several is told likewise.
    """
    from signet_sync.app.workspace import opened
    from signet_sync.integrity import operations as integrity_operations
    from signet_sync.sync.engine import run_pass
    from signet_sync.sync.request import Request

    which, instant = _chosen(paths, everything, vanished, batch), resolve_now(now)
    with opened(context.root, context.settings(), database=context.chosen_database) as workspace:
        _refreshed(workspace, instant)
        wanted = _agree(workspace, which, "accept {} as they are", yes=yes, as_json=as_json)
        if which.is_one:
            integrity_operations.accept(workspace, wanted[0], reason, instant)
            settled = integrity_operations.BatchResult(wanted)
        else:
            settled = integrity_operations.accept_all(workspace, wanted, reason, instant)
        run_pass(workspace, Request(now_us=instant, reread=frozenset(settled.done)))
    told = settled.done[0] if which.is_one else settled.done
    return _tell(settled, "accepted", as_json, accepted=told, reason=reason)
