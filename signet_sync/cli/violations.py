"""`violations`: shows sealed files that changed or disappeared, restores or accepts them."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from signet_sync.cli.main import Context, confirm, json_option, now_option, pass_context
from signet_sync.cli.parsing import Group, OfWorkspace
from signet_sync.sync.read_only import reading
from signet_sync.sync.store.violations import batches, list_accepted_gone
from signet_sync.text.phrases import count_noun

if TYPE_CHECKING:
    from signet_sync.integrity.operations import BatchResult


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
        gone, found = (list_accepted_gone(database), []) if accepted else ([], batches(database))

    def show_accepted() -> None:
        for past in gone:
            lost = "" if past.restorable else "; its sealed bytes are deleted, too"
            click.echo(f"{past.path}\n    accepted {past.at}: {past.reason}{lost}")
        click.echo(f"{count_noun(len(gone), 'file')} accepted as gone")

    def show() -> None:
        for batch in found:
            several = f" ({len(batch.files)} files found in one pass)" if len(batch.files) > 1 else ""
            click.secho(f"found {batch.found_at}{several}", bold=True)
            for one in batch.files:
                click.echo("  " + click.style(one.code, fg="red") + f"  {one.path}\n    {one.message}")
        if found:
            click.echo("signet-sync violations list PATH · restore PATH · accept PATH --reason …")
            click.echo("for several files: their paths, or --all")
            click.echo("to remove the whole session instead: signet-sync remove SESSION")
            return
        # Up to when it is known, and what looks again if no agent runs.
        from signet_sync.admin.status import last_full_pass  # only where there is nothing to list

        last, running = last_full_pass(context.place())
        look = "" if running else f": {context.command_line('reindex')}"
        click.echo(f"no open violations{f' as of the last pass {last}' if last else ''}{look}")

    if accepted:
        context.answer({"accepted": [one._asdict() for one in gone]}, show_accepted)
        return 0
    fields = ("path", "code", "message", "restorable", "acceptable")
    listed = [
        {
            "id": batch.id,
            "found_at": batch.found_at,
            "files": [{name: getattr(one, name) for name in fields} for one in batch.files],
        }
        for batch in found
    ]
    context.answer({"violations": listed}, show)
    return 0


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
    """Adds PATH... and --all to a command, which gets paths; none are all open violations."""

    @wraps(command)
    def chosen(context: Context, paths: tuple[str, ...], everything: bool, accepted: bool = False, **own: Any) -> int:
        if bool(paths) + everything + accepted != 1:
            raise click.UsageError("give PATHs or --all" + (", or --accepted" if "accepted" in own else ""))
        return command(context, paths, **own, **({"accepted": True} if accepted else {}))

    decorated: Callable[..., int] = chosen
    for decorate in (
        pass_context,
        json_option,
        now_option,
        click.option("--yes", is_flag=True, help="Do not ask for confirmation when several are selected."),
        click.option("--all", "everything", is_flag=True, help="Every open violation."),
        click.argument("paths", type=OfWorkspace(), metavar="[PATH]...", nargs=-1),
    ):
        decorated = decorate(decorated)
    return decorated


def _asking(context: Context, question: str, yes: bool) -> Callable[[int], None]:
    return lambda count: confirm(context, f"{question.format(count_noun(count, 'file'))}?", yes=yes)


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
def restore(context: Context, paths: tuple[str, ...], yes: bool, accepted: bool = False) -> int:
    """Write the sealed bytes back; a changed text is replaced and not kept.

    `violations list PATH` prints the change before. What is no file (a link, a folder) is moved aside and kept.

    Files whose absence was accepted are restored by PATH or --accepted. If one of several fails, that is reported and
    the rest continues; run the same command again for what is left.
    """
    from signet_sync.integrity import operations  # as above

    ask = _asking(context, "restore {} to the sealed content", yes or len(paths) == 1)
    with context.opened() as workspace:
        settled = operations.restore(workspace, paths, context.now_us, ask, accepted=accepted)
    return _answer(context, settled, "restored", kept=settled.kept)


@violations.command()
@_choosing
@click.option("--reason", required=True, help="Why it is right as it is; kept with the seal.")
def accept(context: Context, paths: tuple[str, ...], yes: bool, reason: str) -> int:
    """Seal the present content of a file, or accept that it is gone.

    The seal of a file that is gone stays: violations list --accepted shows it, and restore PATH brings it back.
    If one of several fails, that is reported and the rest continues.
    """
    from signet_sync.integrity import operations  # as above

    ask = _asking(context, "accept {} as they are", yes or len(paths) == 1)
    with context.opened() as workspace:
        settled = operations.accept(workspace, paths, reason, context.now_us, ask)
    accepted = settled.done[0] if len(paths) == 1 else settled.done
    return _answer(context, settled, "accepted", accepted=accepted, reason=reason)
