"""`violations`: shows sealed files that changed or disappeared, restores or accepts them."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from signet_sync.cli.main import Context, confirm, json_option, now_option, pass_context
from signet_sync.cli.parsing import Group, OfWorkspace
from signet_sync.sync.read_only import reading
from signet_sync.sync.store.violations import AcceptedGone, Batch, accepted_gone, batches
from signet_sync.text.phrases import counted

if TYPE_CHECKING:
    from signet_sync.integrity.operations import BatchResult, ViolationFilter


@click.group(cls=Group)
def violations() -> None:
    """List, restore or accept sealed files that changed or disappeared."""


@violations.command("list")
@click.argument("path", type=OfWorkspace(), required=False)
@click.option("--accepted", is_flag=True, help="List accepted absences, which can still be restored from their seals.")
@json_option
@pass_context
def list_(context: Context, path: str | None, accepted: bool) -> int:
    """List every open violation; what one pass found is one batch. Of PATH, show what changed since it was sealed."""
    if path is not None:
        return _answer_difference(context, path)
    with reading(context.place()) as database:
        if accepted:
            gone = accepted_gone(database)
            context.answer({"accepted": [one._asdict() for one in gone]}, lambda: _show_accepted(gone))
        else:
            found = batches(database)
            context.answer({"violations": [_document(batch) for batch in found]}, lambda: _show(found, context))
    return 0


def _document(batch: Batch) -> dict[str, Any]:
    fields = ("path", "code", "message", "restorable", "acceptable")
    files = [{name: getattr(one, name) for name in fields} for one in batch.files]
    return {"id": batch.id, "found_at": batch.found_at, "files": files}


def _show_accepted(gone: list[AcceptedGone]) -> None:
    for past in gone:
        lost = "" if past.restorable else "; its sealed bytes are deleted, too"
        click.echo(f"{past.path}\n    accepted {past.at}: {past.reason}{lost}")
    click.echo(f"{counted(len(gone), 'file')} accepted as gone")


def _show(found: list[Batch], context: Context) -> None:
    for batch in found:
        several = f" ({len(batch.files)} files found in one pass) · --batch {batch.id}" if len(batch.files) > 1 else ""
        click.secho(f"found {batch.found_at}{several}", bold=True)
        for one in batch.files:
            click.echo("  " + click.style(one.code, fg="red") + f"  {one.path}\n    {one.message}")
    if found:
        click.echo("signet-sync violations list PATH · restore PATH · accept PATH --reason …")
        click.echo("for several files: a pattern instead of PATH, --batch ID, --vanished, or --all")
        click.echo("to remove the whole session instead: signet-sync remove SESSION")
    else:
        click.echo(f"no open violations{_as_of(context)}")


def _as_of(context: Context) -> str:
    """Returns up to when it is known, and what looks again if no agent runs."""
    from signet_sync.admin.status import last_full_pass  # only where there is nothing to list

    last, running = last_full_pass(context.place())
    look = "" if running else f": {context.command_line('reindex')}"
    return f" as of the last pass {last}{look}" if last else look


def _answer_difference(context: Context, path: str) -> int:
    from signet_sync.integrity.operations import difference  # slow import, which the list does without

    limit = context.settings().max_file_bytes
    with reading(context.place()) as database:
        text = difference(database, context.root, path, limit).unified()

    def show_text() -> None:
        click.echo(text, nl=False)
        if not text:
            context.say("the texts differ only in what is never shown: secrets, control characters, line endings")

    context.answer({"path": path, "diff": text}, show_text)
    return 0


def _choosing(command: Callable[..., int]) -> Callable[..., int]:
    """Adds the options that select violations, passed to the command as a `ViolationFilter`."""

    @wraps(command)
    def chosen_by(
        context: Context,
        paths: tuple[str, ...],
        everything: bool,
        vanished: bool,
        batch: str | None,
        accepted: bool = False,
        **own: Any,
    ) -> int:
        from signet_sync.integrity.operations import ViolationFilter  # as above

        if accepted and (everything or vanished or batch):
            raise click.UsageError("--accepted cannot be combined with --all, --vanished or --batch")
        if not (paths or everything or vanished or batch or accepted):
            raise click.UsageError("give a PATH or PATTERN, --batch ID, --vanished, or --all")
        if everything and (paths or vanished or batch):
            raise click.UsageError("--all cannot be combined with PATH, --vanished or --batch")
        return command(context, ViolationFilter(paths, everything, vanished, batch, accepted), **own)

    decorated: Callable[..., int] = chosen_by
    for decorate in (
        pass_context,
        json_option,
        now_option,
        click.option("--yes", is_flag=True, help="Do not ask for confirmation when several are selected."),
        click.option("--batch", metavar="ID", help="Those of one batch; list shows its id."),
        click.option("--vanished", is_flag=True, help="Those whose files disappeared."),
        click.option("--all", "everything", is_flag=True, help="Every open violation."),
        click.argument("paths", type=OfWorkspace(), metavar="[PATH|PATTERN]...", nargs=-1),
    ):
        decorated = decorate(decorated)
    return decorated


def _asking(context: Context, question: str, yes: bool) -> Callable[[int], None]:
    return lambda count: confirm(context, f"{question.format(counted(count, 'file'))}?", yes=yes)


def _answer(context: Context, settled: BatchResult, what: str, **more: object) -> int:
    def show() -> None:
        for one in settled.done:
            click.echo(f"{what} {one}")
            if one in settled.kept:
                click.echo(f"  the previous content is kept as {settled.kept[one]}")
        for path, why in settled.failed.items():
            click.secho(f"not {what} {path}: {why}", fg="red")

    failed = [f"{path}: {why}" for path, why in settled.failed.items()]
    context.answer({what: settled.done, "failed": failed, **more}, show)
    return 1 if settled.failed else 0


@violations.command()
@_choosing
@click.option("--accepted", is_flag=True, help="Those whose absence was accepted.")
def restore(context: Context, which: ViolationFilter, yes: bool) -> int:
    """Write the sealed bytes back; a changed text is replaced and not kept.

    `violations list PATH` prints the change before. What is no file (a link, a folder) is moved aside and kept.

    A PATTERN (* ? [ ]) selects every open violation that it matches by name or, with a slash in it, by path. Files
    whose absence was accepted are restored by PATH or --accepted. If one of several fails, that is reported and the
    rest continues; run the same command again for what is left.
    """
    from signet_sync.integrity import settling  # as above

    ask = _asking(context, "restore {} to the sealed content", yes or which.is_one)
    with context.opened() as workspace:
        settled = settling.restore(workspace, which, context.now_us, ask)
    return _answer(context, settled, "restored", kept=settled.kept)


@violations.command()
@_choosing
@click.option("--reason", required=True, help="Why it is right as it is; kept with the seal.")
def accept(context: Context, which: ViolationFilter, yes: bool, reason: str) -> int:
    """Seal the present content of a file, or accept that it is gone.

    The seal of a file that is gone stays: violations list --accepted shows it, and restore PATH brings it back.
    PATTERN and failures are treated as by restore.
    """
    from signet_sync.integrity import settling  # as above

    ask = _asking(context, "accept {} as they are", yes or which.is_one)
    with context.opened() as workspace:
        settled = settling.accept(workspace, which, reason, context.now_us, ask)
    accepted = settled.done[0] if which.is_one else settled.done
    return _answer(context, settled, "accepted", accepted=accepted, reason=reason)
