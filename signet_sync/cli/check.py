"""`check` and `violations`: verdicts of every file, for people and CI; sealed files that changed, and what heals them.

The rules are loaded in the functions: the help does without.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from signet_sync.cli.main import Context
from signet_sync.cli.parsing import Group, OfWorkspace, command
from signet_sync.cli.reindex import show_counts, show_problems
from signet_sync.errors import DatabaseError
from signet_sync.storage.database.connection import Database
from signet_sync.sync.read_only import open_index
from signet_sync.sync.store.violations import list_accepted_gone, list_open
from signet_sync.text.phrases import count_noun

if TYPE_CHECKING:
    from collections.abc import Callable

    from signet_sync.integrity.operations import BatchResult


@command("--now", "--json")
@click.option("--with-index", is_flag=True, help="Also compare with the seals of the index (opened read-only).")
@click.option("--strict", is_flag=True, help="Notes fail the check, except broken links to git-ignored files.")
def check(context: Context, strict: bool, with_index: bool) -> int:
    """Validate every file of the vault by itself. Exit 1 if a file is invalid, was changed, or should be gone.

    A workspace's own settings change no verdict and cannot run anything, so a pull request can be checked safely.
    """
    from signet_sync.integrity import check as integrity_check

    database = None
    if with_index:
        try:
            database = Database(context.database_path(), readonly=True)
        except FileNotFoundError as error:
            message, hint = "there is no index to compare with", "run signet-sync reindex first"
            raise DatabaseError(message, path=str(error), hint=hint) from None
    with context.progress("checking") as advance:
        checked = integrity_check.check(context.root, now_us=context.now_us, database=database, progress=advance)
    document = integrity_check.document(context.root, checked, context.now_us, strict=strict)
    for note in document["notes"]:
        if note["code"] == "setting-ignored":
            context.say(f"warning: {note['path']}: {note['message']}")
    context.answer(document, lambda: _show_check(document))
    return 0 if document["ok"] else 1


def _show_check(document: dict[str, Any]) -> None:
    show_counts(document["counts"])
    for note in document["notes"]:
        if note["code"] == "unchecked":
            click.secho(f"  {note['message']}", fg="yellow")
    failing = [{**note, "verdict": "note", "hint": ""} for note in document["notes"] if "fails" in note]
    show_problems([*document["problems"], *failing], [note for note in document["notes"] if "fails" not in note])
    click.secho("ok" if document["ok"] else "not ok", fg="green" if document["ok"] else "red", bold=True)


# ── violations ──

violations = Group("violations", help="List, restore or accept sealed files that changed or disappeared.")


@command("--json", of=violations, name="list")
@click.argument("path", type=OfWorkspace(), required=False)
@click.option("--accepted", is_flag=True, help="List accepted absences, which can still be restored from their seals.")
def list_(context: Context, path: str | None, accepted: bool) -> None:
    """List every open violation. Of PATH, show what changed since it was sealed."""
    if path is not None:
        from signet_sync.integrity.operations import difference  # slow import, which the list does without

        limit = context.settings().max_file_bytes
        with open_index(context.place()) as database:
            text = difference(database, context.root, path, limit).render()
        if not text and not context.as_json:
            context.say("the texts differ only in what is never shown: secrets, control characters, line endings")
        context.answer({"path": path, "diff": text}, partial(click.echo, text, nl=False))
        return
    with open_index(context.place()) as database:
        gone, found = (list_accepted_gone(database), []) if accepted else ([], list_open(database))

    def show_accepted() -> None:
        for past in gone:
            lost = "" if past.restorable else "; its sealed bytes are deleted, too"
            click.echo(f"{past.path}\n    accepted {past.at}: {past.reason}{lost}")
        click.echo(f"{count_noun(len(gone), 'file')} accepted as gone")

    def show() -> None:
        for one in found:
            click.echo(click.style(one.code, fg="red") + f"  {one.path}\n    {one.message}; found {one.found_at}")
        if found:
            click.echo("signet-sync violations list PATH · restore PATH · accept PATH --reason …")
            click.echo("for several files: their paths, or --all")
            click.echo("to remove the whole session instead: signet-sync remove SESSION")
            return
        click.echo(f"no open violations as of the last pass; to look again: {context.command_line('reindex')}")

    if accepted:
        context.answer({"accepted": [one._asdict() for one in gone]}, show_accepted)
        return
    fields = ("path", "code", "message", "found_at", "restorable", "acceptable")
    listed = [{name: getattr(one, name) for name in fields} for one in found]
    context.answer({"violations": listed}, show)


_paths = click.argument("paths", type=OfWorkspace(), metavar="[PATH]...", nargs=-1)
_all = click.option("--all", "everything", is_flag=True, help="Every open violation.")


@command("--yes", "--now", "--json", of=violations)
@_paths
@_all
@click.option("--accepted", is_flag=True, help="Those whose absence was accepted.")
def restore(context: Context, paths: tuple[str, ...], everything: bool, yes: bool, accepted: bool) -> int:
    """Write the sealed bytes back; a changed text is replaced and not kept.

    `violations list PATH` prints the change before. What is no file (a link, a folder) has to be moved away first.

    Files whose absence was accepted are restored by PATH or --accepted. If one of several fails, that is reported and
    the rest continues; run the same command again for what is left.
    """
    from signet_sync.integrity import operations  # as above

    if bool(paths) + everything + accepted != 1:
        raise click.UsageError("give PATHs or --all, or --accepted")
    ask = _make_question(context, "restore {} to the sealed content", yes or len(paths) == 1)
    with context.open_workspace() as workspace:
        settled = operations.restore(workspace, paths, context.now_us, ask, accepted=accepted)
    return _answer_settled(context, settled, "restored", {})


@command("--yes", "--now", "--json", of=violations)
@_paths
@_all
@click.option("--reason", required=True, help="Why it is right as it is; kept with the seal.")
def accept(context: Context, paths: tuple[str, ...], everything: bool, yes: bool, reason: str) -> int:
    """Seal the present content of a file, or accept that it is gone.

    The seal of a file that is gone stays: violations list --accepted shows it, and restore PATH brings it back.
    If one of several fails, that is reported and the rest continues.
    """
    from signet_sync.integrity import operations  # as above

    if bool(paths) == everything:
        raise click.UsageError("give PATHs or --all")
    ask = _make_question(context, "accept {} as they are", yes or len(paths) == 1)
    with context.open_workspace() as workspace:
        settled = operations.accept(workspace, paths, reason, context.now_us, ask)
    return _answer_settled(context, settled, "accepted", {"reason": reason})


def _make_question(context: Context, question: str, yes: bool) -> Callable[[int], None]:
    return lambda count: context.confirm(f"{question.format(count_noun(count, 'file'))}?", yes=yes)


def _answer_settled(context: Context, settled: BatchResult, what: str, more: dict[str, object]) -> int:
    def show() -> None:
        for one in settled.done:
            click.echo(f"{what} {one}")
        for path, why in settled.failed.items():
            click.secho(f"not {what} {path}: {why}", fg="red")

    failed = [f"{path}: {why}" for path, why in settled.failed.items()]
    context.answer({what: settled.done, "failed": failed, **more}, show)
    return 1 if settled.failed else 0
