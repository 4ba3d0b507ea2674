"""`check`: prints the verdicts of every file, for people and for CI; only reads the vault."""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING, Any

import click

from signet_sync.cli.main import Context, counted, emit, json_option, now_option, pass_context, resolve_now
from signet_sync.errors import SignetSyncError, UsageError

if TYPE_CHECKING:
    from signet_sync.integrity.check import CheckResult

FORMATS = ["text", "json", "sarif", "github", "junit", "baseline"]


@click.command()
@click.option("--format", "form", type=click.Choice(FORMATS), default="text", show_default=True)
@click.option("--with-index", is_flag=True, help="Compare with the seals of the index too (opened read-only).")
@click.option(
    "--changed-since", "since", metavar="REV", help="Read only what changed in git since REV, and compare with it."
)
@click.option("--pages", is_flag=True, help="The rows of every MEMORY.md, too: they are what their artifacts say.")
@click.option(
    "--baseline",
    type=click.Path(),
    metavar="FILE",
    help="Known problems (made by --format baseline): told, no failure.",
)
@click.option("--sarif", type=click.Path(), metavar="FILE", help="Write a SARIF log there, too.")
@click.option("--junit", type=click.Path(), metavar="FILE", help="Write a JUnit report there, too.")
@click.option(
    "--summary", type=click.Path(), metavar="FILE", help="Append a table in Markdown, for the page of a CI job."
)
@click.option("--strict", is_flag=True, help="Notes fail too, except broken links to git-ignored files.")
@click.option("--agent", metavar="ID", help="Judge this agent's artifacts only.")
@now_option
@json_option
@pass_context
def check(
    context: Context,
    form: str,
    with_index: bool,
    since: str | None,
    pages: bool,
    baseline: str | None,
    sarif: str | None,
    junit: str | None,
    summary: str | None,
    strict: bool,
    agent: str | None,
    now: str | None,
    as_json: bool,
) -> int:
    """Judge every file of the vault by itself. Exit 1 where something is invalid, violated or should be gone.

    A workspace's own settings change no verdict, and none of them can run anything: a pull request may be checked.
    """
    form = "json" if as_json else form
    instant = resolve_now(now)
    try:
        checked = _checked(context, form, with_index, since, pages, baseline, agent, instant)
        return _told(context, checked, form, {"sarif": sarif, "junit": junit}, summary, strict, instant)
    except SignetSyncError as error:
        if form != "github":
            raise
        from signet_sync.cli.formats import check as formats_check

        click.echo(formats_check.failure(error))
        return error.exit_code


def _checked(
    context: Context,
    form: str,
    with_index: bool,
    since: str | None,
    pages: bool,
    baseline: str | None,
    agent: str | None,
    instant: int,
) -> CheckResult:
    from signet_sync.cli.reindex import progress_bar
    from signet_sync.integrity import check as integrity_check

    known = _known(baseline) if baseline is not None else frozenset()
    database = None
    if with_index:
        from signet_sync.errors import DatabaseError
        from signet_sync.storage.database.connection import Database

        try:
            database = Database(context.database_path(), readonly=True, traceless=True)
        except FileNotFoundError as error:
            raise DatabaseError(
                "there is no index to compare with", path=str(error), hint="run signet-sync reindex first"
            ) from None
    with progress_bar("checking", show=form == "text" and not context.quiet) as advance:
        return integrity_check.check(
            context.root,
            now_us=instant,
            agent=agent,
            database=database,
            since=since,
            pages=pages,
            known=known,
            progress=advance,
        )


def _told(
    context: Context,
    checked: CheckResult,
    form: str,
    reports: dict[str, str | None],
    summary: str | None,
    strict: bool,
    instant: int,
) -> int:
    """Prints the findings in the requested form and writes the named files; returns the exit code."""
    from signet_sync.cli.formats import check as formats_check
    from signet_sync.integrity import check as integrity_check

    document = integrity_check.document(context.root, checked, instant, strict=strict)
    below = _below(context.root)
    # Annotations contain them; another line in a job's log could be mistaken for a command.
    for note in document["notes"] if form != "github" else ():
        if note["code"] == "setting-ignored":
            context.say(f"warning: {note['path']}: {note['message']}")
    for name, place in reports.items():
        if place is not None:
            _write(place, f"{formats_check.FORMATS[name](document, below)}\n")
    if summary is not None:
        _write(summary, formats_check.summary(document, below), append=True)
    if form == "json":
        emit(document)
    elif form == "text":
        _text(document)
    elif form == "baseline":
        click.echo(formats_check.baseline(document), nl=False)
        return 0
    elif text := formats_check.FORMATS[form](document, below):
        click.echo(text)
    return 0 if document["ok"] else 1


def _below(root: str) -> str:
    """Returns the prefix for paths of annotations, which are relative to the current folder, the top of a checkout."""
    relative = os.path.relpath(os.path.realpath(root), os.path.realpath(os.getcwd()))
    return "" if relative == "." or relative.startswith("..") else f"{relative}/"


def _known(path: str) -> frozenset[tuple[str, str]]:
    from signet_sync.formats import baseline

    try:
        with open(path, "rb") as file:
            return baseline.read(file.read(1 << 24))
    except OSError as error:
        raise UsageError(
            f"the baseline cannot be read: {error.strerror}",
            path=path,
            hint=f"make one with: signet-sync check --format baseline > {path}",
        ) from None
    except baseline.BaselineProblem as problem:
        raise UsageError(
            str(problem), path=path, hint=f"make it anew with: signet-sync check --format baseline > {path}"
        ) from None


def _write(path: str, text: str, *, append: bool = False) -> None:
    """Writes a report to the named file; does not follow a link, which a checkout may contain."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_APPEND
    try:
        with open(os.open(path, flags, 0o666), "wb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise OSError(errno.EINVAL, "it is no plain file")
            if not append:
                file.truncate(0)
            file.write(text.encode("utf-8", "backslashreplace"))
    except OSError as error:
        why = "a symlink stands there" if error.errno == errno.ELOOP else error.strerror
        raise UsageError(
            f"the report cannot be written: {why}", path=path, hint="name a new file, in a folder that is there"
        ) from None


def _text(document: dict[str, Any]) -> None:
    from signet_sync.cli.reindex import show_problems

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
    problems = [p for p in document["problems"] if "known" not in p]
    show_problems([*problems, *failing], [note for note in document["notes"] if "fails" not in note])
    if known := sum("known" in p for p in document["problems"]):
        click.echo(f"{counted(known, 'problem')} of the baseline, left out")
    if document["mended"]:
        click.echo(f"{counted(len(document['mended']), 'problem')} of the baseline mended: make it anew")
    click.secho("ok" if document["ok"] else "not ok", fg="green" if document["ok"] else "red", bold=True)
