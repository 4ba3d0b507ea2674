"""`check`: prints the verdicts of every file, for people and for CI; only reads the vault.

The rules are loaded in the functions: completion does without.
"""

from __future__ import annotations

import os
from contextlib import closing
from typing import TYPE_CHECKING, Any

import click

from signet_sync.cli.main import Context, emit, json_option, now_option, pass_context
from signet_sync.cli.parsing import Command, SharedOption
from signet_sync.cli.reindex import progress_bar, show_problems
from signet_sync.errors import DatabaseError, SignetSyncError
from signet_sync.storage.database.connection import Database
from signet_sync.text.phrases import count_noun

if TYPE_CHECKING:
    from signet_sync.integrity.check import CheckResult

# The levels of GitHub's annotations; files of other programs are none: a checkout is full of them.
_LEVELS = {"ignored": "warning", "note": "notice"}
_SILENT = ("foreign-name", "temporary")


@click.command(cls=Command)
@click.option("--format", "form", type=click.Choice(["text", "json", "github"]), default="text", show_default=True)
@click.option("--with-index", is_flag=True, help="Also compare with the seals of the index (opened read-only).")
@click.option("--pages", is_flag=True, help="Also check that every MEMORY.md says what its artifacts say.")
@click.option("--strict", is_flag=True, help="Notes fail the check, except broken links to git-ignored files.")
@click.option("--agent", cls=SharedOption, metavar="ID", help="Only the artifacts of this agent.")
@now_option
@json_option
@pass_context
def check(
    context: Context,
    /,
    form: str,
    strict: bool,
    **asked: Any,
) -> int:
    """Validate every file of the vault by itself. Exit 1 if a file is invalid, was changed, or should be gone.

    A workspace's own settings change no verdict and cannot run anything, so a pull request can be checked safely.
    """
    from signet_sync.integrity import check as integrity_check

    form = "json" if context.as_json else form
    try:
        checked = _run_check(context, progress=form == "text" and not context.quiet, **asked)
        sealed = _restorable(context, checked)
        document = integrity_check.document(context.root, checked, context.now_us, strict=strict, sealed=sealed)
    except SignetSyncError as error:
        if form != "github":
            raise
        where, remedy = (f" {sign} {text}" if text else "" for sign, text in (("in", error.path), ("→", error.hint)))
        click.echo(
            f"::error title={_escape(error.code, in_property=True)}::{_escape(f'{error.message}{where}{remedy}')}"
        )
        return error.exit_code
    # Annotations contain them; another line in a job's log could be mistaken for a command.
    for note in document["notes"] if form != "github" else ():
        if note["code"] == "setting-ignored":
            context.say(f"warning: {note['path']}: {note['message']}")
    if form == "json":
        emit(document)
    elif form == "text":
        _show(document)
    else:
        _annotate(document, context.root)
    return 0 if document["ok"] else 1


def _run_check(
    context: Context,
    *,
    with_index: bool,
    pages: bool,
    agent: str | None,
    progress: bool,
) -> CheckResult:
    from signet_sync.integrity import check as integrity_check

    database = None
    if with_index:
        try:
            database = Database(context.database_path(), readonly=True, traceless=True)
        except FileNotFoundError as error:
            raise DatabaseError(
                "there is no index to compare with", path=str(error), hint="run signet-sync reindex first"
            ) from None
    with progress_bar("checking", show=progress) as advance:
        return integrity_check.check(
            context.root,
            now_us=context.now_us,
            agent=agent,
            database=database,
            pages=pages,
            progress=advance,
        )


def _restorable(context: Context, checked: CheckResult) -> frozenset[str]:
    """Returns the invalid files that the index could restore; none if there is no index that can be read."""
    from signet_sync.integrity import check as integrity_check

    if all(judgement.verdict != "invalid" for judgement in checked.judgements):
        return frozenset()
    try:
        with closing(Database(context.database_path(), readonly=True, traceless=True)) as database:
            return integrity_check.restorable(database, checked)
    except (OSError, SignetSyncError):
        return frozenset()


def _annotate(document: dict[str, Any], root: str) -> None:
    """Prints annotations of GitHub, one line each: no text of a file can end a line.

    Their paths are relative to the current folder, the top of a checkout.
    """
    relative = os.path.relpath(os.path.realpath(root), os.path.realpath(os.getcwd()))
    below = "" if relative == "." or relative.startswith("..") else f"{relative}/"
    notes = ({**note, "verdict": "invalid" if "fails" in note else "note", "hint": ""} for note in document["notes"])
    for found in (*document["problems"], *notes):
        if found["code"] not in _SILENT:
            text = found["message"] + (f" → {found['hint']}" if found["hint"] else "")
            path, code = (_escape(one, in_property=True) for one in (below + found["path"], found["code"]))
            level = _LEVELS.get(found["verdict"], "error")
            click.echo(f"::{level} file={path},line={found.get('line', 1)},title={code}::{_escape(text)}")


def _escape(text: str, *, in_property: bool = False) -> str:
    text = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return text.replace(":", "%3A").replace(",", "%2C") if in_property else text


def _show(document: dict[str, Any]) -> None:
    counts = document["counts"]
    click.echo(
        f"{counts['indexed']} valid · {counts['invalid']} invalid · {count_noun(counts['violation'], 'violation')}"
        f" · {counts['tombstoned']} should be gone · {count_noun(counts['tombstones'], 'tombstone')}"
        f" · {counts['ignored']} ignored"
    )
    for note in document["notes"]:
        if note["code"] == "unchecked":
            click.secho(f"  {note['message']}", fg="yellow")
    failing = [{**note, "verdict": "note", "hint": ""} for note in document["notes"] if "fails" in note]
    show_problems([*document["problems"], *failing], [note for note in document["notes"] if "fails" not in note])
    click.secho("ok" if document["ok"] else "not ok", fg="green" if document["ok"] else "red", bold=True)
