"""`check`: prints the verdicts of every file, for people and for CI; only reads the vault.

The rules are loaded in the functions: completion does without.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import closing
from typing import TYPE_CHECKING, Any

import click

from signet_sync.cli.formats import check as formats_check
from signet_sync.cli.main import Context, emit, json_option, now_option, pass_context
from signet_sync.cli.parsing import Command, SharedOption
from signet_sync.cli.reindex import progress_bar, show_problems
from signet_sync.errors import DatabaseError, SignetSyncError, UsageError
from signet_sync.storage.database.connection import Database
from signet_sync.text.phrases import counted

if TYPE_CHECKING:
    from signet_sync.integrity.check import CheckResult

FORMATS = ["text", "json", "sarif", "github"]


@click.command(cls=Command)
@click.option("--format", "form", type=click.Choice(FORMATS), default="text", show_default=True)
@click.option("--with-index", is_flag=True, help="Also compare with the seals of the index (opened read-only).")
@click.option(
    "--changed-since", "since", metavar="REV", help="Only files that changed in git since REV, compared with it."
)
@click.option("--pages", is_flag=True, help="Also check that every MEMORY.md says what its artifacts say.")
@click.option("--sarif", type=click.Path(), metavar="FILE", help="Also write a SARIF log to FILE.")
@click.option(
    "--summary", type=click.Path(), metavar="FILE", help="Append a Markdown table to FILE, for the page of a CI job."
)
@click.option("--strict", is_flag=True, help="Notes fail the check, except broken links to git-ignored files.")
@click.option("--agent", cls=SharedOption, metavar="ID", help="Only the artifacts of this agent.")
@now_option
@json_option
@pass_context
def check(
    context: Context,
    /,
    form: str,
    sarif: str | None,
    summary: str | None,
    strict: bool,
    **asked: Any,
) -> int:
    """Validate every file of the vault by itself. Exit 1 if a file is invalid, was changed, or should be gone.

    A workspace's own settings change no verdict and cannot run anything, so a pull request can be checked safely.
    """
    from signet_sync.integrity import check as integrity_check

    form = "json" if context.as_json else form
    try:
        checked = _checked(context, progress=form == "text" and not context.quiet, **asked)
        sealed = _restorable(context, checked)
        document = integrity_check.document(context.root, checked, context.now_us, strict=strict, sealed=sealed)
        below = _below(context.root)
        if sarif is not None:
            _write(sarif, f"{formats_check.sarif(document, below)}\n")
        if summary is not None:
            _write(summary, formats_check.summary(document, below), append=True)
    except SignetSyncError as error:
        if form != "github":
            raise
        click.echo(formats_check.failure(error))
        return error.exit_code
    # Annotations contain them; another line in a job's log could be mistaken for a command.
    for note in document["notes"] if form != "github" else ():
        if note["code"] == "setting-ignored":
            context.say(f"warning: {note['path']}: {note['message']}")
    if form == "json":
        emit(document)
    elif form == "text":
        _show(document)
    elif text := formats_check.FORMATS[form](document, below):
        click.echo(text)
    return 0 if document["ok"] else 1


def _checked(
    context: Context,
    *,
    with_index: bool,
    since: str | None,
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
            since=since,
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


def _below(root: str) -> str:
    """Returns the prefix for paths of annotations, which are relative to the current folder, the top of a checkout."""
    relative = os.path.relpath(os.path.realpath(root), os.path.realpath(os.getcwd()))
    return "" if relative == "." or relative.startswith("..") else f"{relative}/"


def _write(path: str, text: str, *, append: bool = False) -> None:
    """Writes a report to the named file; does not follow a link, which a checkout may contain."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_APPEND
    try:
        with open(os.open(path, flags, 0o666), "wb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise OSError(errno.EINVAL, "not a regular file")
            if not append:
                file.truncate(0)
            file.write(text.encode("utf-8", "backslashreplace"))
    except OSError as error:
        why = "there is a symlink" if error.errno == errno.ELOOP else error.strerror
        raise UsageError(
            f"the report cannot be written: {why}", path=path, hint="name a new file in an existing folder"
        ) from None


def _show(document: dict[str, Any]) -> None:
    counts = document["counts"]
    click.echo(
        f"{counts['indexed']} valid · {counts['invalid']} invalid · {counted(counts['violation'], 'violation')}"
        f" · {counts['tombstoned']} should be gone · {counted(counts['tombstones'], 'tombstone')}"
        f" · {counts['ignored']} ignored"
    )
    for note in document["notes"]:
        if note["code"] == "unchecked":
            click.secho(f"  {note['message']}", fg="yellow")
    failing = [{**note, "verdict": "note", "hint": ""} for note in document["notes"] if "fails" in note]
    show_problems([*document["problems"], *failing], [note for note in document["notes"] if "fails" not in note])
    click.secho("ok" if document["ok"] else "not ok", fg="green" if document["ok"] else "red", bold=True)
