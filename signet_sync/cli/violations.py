"""`violations`: sealed files that changed or went, shown with a diff, restored from the seal or accepted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from signet_sync.cli import Context, agreed, counted, emit, json_option, now_option, pass_context, resolve_now

if TYPE_CHECKING:
    from signet_sync.agent.workspace import Workspace
    from signet_sync.index.violations import Batch


@click.group()
def violations() -> None:
    """Sealed files that changed or went: show, restore, accept."""


def _refreshed(workspace: Workspace, instant: int) -> None:
    """The verdicts as the disk has them now: nobody heals by yesterday's list."""
    from signet_sync.agent.reconcile import Request, run_pass

    run_pass(workspace, Request(now_us=instant, project=False))


@violations.command("list")
@json_option
@pass_context
def list_(context: Context, as_json: bool) -> int:
    """Every open violation; files that one save changed stand together."""
    from signet_sync.agent.asking import reading
    from signet_sync.index.violations import batches

    with reading(context.place()) as database:
        found = batches(database)
    if as_json:
        emit({"violations": [_document(batch) for batch in found]})
        return 0
    if not found:
        click.echo("no open violations")
    for batch in found:
        several = f" ({len(batch.files)} files in one save)" if len(batch.files) > 1 else ""
        click.secho(f"found {batch.found_at}{several}", bold=True)
        for one in batch.files:
            click.echo("  " + click.style(one.code, fg="red") + f"  {one.path}\n    {one.message}")
    if found:
        click.echo("signet-sync violations show PATH · restore PATH (or --all) · accept PATH --reason …")
    return 0


def _document(batch: Batch) -> dict[str, Any]:
    return {
        "found_at": batch.found_at,
        "files": [
            {"path": one.path, "code": one.code, "message": one.message, "restorable": one.restorable}
            for one in batch.files
        ],
    }


@violations.command()
@click.argument("path")
@json_option
@pass_context
def show(context: Context, path: str, as_json: bool) -> int:
    """The difference between the sealed text and the present one."""
    from signet_sync.agent.asking import reading
    from signet_sync.agent.violations import difference

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


@violations.command()
@click.argument("path", required=False)
@click.option("--all", "everything", is_flag=True, help="Restore every open violation.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@now_option
@json_option
@pass_context
def restore(context: Context, path: str | None, everything: bool, yes: bool, now: str | None, as_json: bool) -> int:
    """Write the sealed bytes back."""
    from signet_sync.agent import violations as agent
    from signet_sync.agent.reconcile import Request, run_pass
    from signet_sync.agent.workspace import opened
    from signet_sync.errors import UsageError

    if (path is None) == (not everything):
        raise click.UsageError("give one PATH, or --all")
    instant = resolve_now(now)
    failed: list[str] = []
    with opened(context.root, context.settings(), database=context.chosen_database) as workspace:
        _refreshed(workspace, instant)
        paths = [v.path for batch in agent.listed(workspace) for v in batch] if everything else [path or ""]
        if everything and paths:
            agreed(f"restore {counted(len(paths), 'file')} to the sealed content?", yes=yes, as_json=as_json)
        restored = []
        for one in paths:
            try:
                agent.restore(workspace, one)
            except UsageError as error:
                if not everything:
                    raise
                failed.append(f"{one}: {error.message}")
                continue
            restored.append(one)
        run_pass(workspace, Request(now_us=instant))
    if as_json:
        emit({"restored": restored, "failed": failed})
    else:
        for one in restored:
            click.echo(f"restored {one}")
        for line in failed:
            click.secho(f"not restored {line}", fg="red")
    return 1 if failed else 0


@violations.command()
@click.argument("path")
@click.option("--reason", required=True, help="Why the new content is right; kept with the seal.")
@now_option
@json_option
@pass_context
def accept(context: Context, path: str, reason: str, now: str | None, as_json: bool) -> int:
    """Seal what the file holds now."""
    from signet_sync.agent import violations as agent
    from signet_sync.agent.reconcile import Request, run_pass
    from signet_sync.agent.workspace import opened

    instant = resolve_now(now)
    with opened(context.root, context.settings(), database=context.chosen_database) as workspace:
        _refreshed(workspace, instant)
        agent.accept(workspace, path, reason, instant)
        run_pass(workspace, Request(now_us=instant, reread=frozenset({path})))
    if as_json:
        emit({"accepted": path, "reason": reason})
    else:
        click.echo(f"accepted {path}")
    return 0
