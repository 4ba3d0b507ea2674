"""`check`: the verdicts of every file, for people and for CI; the vault is only read."""

from __future__ import annotations

import os
from typing import Any

import click

from signet_sync.cli import Context, counted, emit, json_option, now_option, pass_context, resolve_now

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
    summary: str | None,
    strict: bool,
    agent: str | None,
    now: str | None,
    as_json: bool,
) -> int:
    """Judge every file of the vault by itself. Exit 1 where something is invalid, violated or should be gone."""
    from signet_sync.agent import check as agent_check
    from signet_sync.cli import check_formats
    from signet_sync.cli.reindex import progress_bar

    form = "json" if as_json else form
    instant = resolve_now(now)
    known = _known(baseline) if baseline is not None else frozenset()
    database = None
    if with_index:
        from signet_sync.errors import DatabaseError
        from signet_sync.index.database import Database

        try:
            database = Database(context.database_path(), readonly=True, traceless=True)
        except FileNotFoundError as error:
            raise DatabaseError(
                "there is no index to compare with", path=str(error), hint="run signet-sync reindex first"
            ) from None
    with progress_bar("checking", show=form == "text" and not context.quiet) as advance:
        checked = agent_check.check(
            context.root,
            context.settings(),
            now_us=instant,
            agent=agent,
            database=database,
            since=since,
            pages=pages,
            known=known,
            progress=advance,
        )
    document = agent_check.document(context.root, checked, instant, strict=strict)
    below = _below(context.root)
    if form == "json":
        emit(document)
    elif form == "text":
        _text(document)
    elif form == "baseline":
        click.echo(check_formats.baseline(document), nl=False)
        return 0
    elif text := check_formats.FORMATS[form](document, below):
        click.echo(text)
    if summary is not None:
        _append(summary, check_formats.summary(document, below))
    return 0 if document["ok"] else 1


def _below(root: str) -> str:
    """What stands before the paths of annotations: they count from where the command runs, the top of a checkout."""
    relative = os.path.relpath(os.path.realpath(root), os.path.realpath(os.getcwd()))
    return "" if relative == "." or relative.startswith("..") else f"{relative}/"


def _known(path: str) -> frozenset[tuple[str, str]]:
    from signet_sync.contracts import baselines
    from signet_sync.errors import UsageError

    try:
        with open(path, "rb") as file:
            return baselines.read(file.read(1 << 24))
    except OSError as error:
        raise UsageError(
            f"the baseline cannot be read: {error.strerror}",
            path=path,
            hint=f"make one with: signet-sync check --format baseline > {path}",
        ) from None
    except baselines.BaselineProblem as problem:
        raise UsageError(
            str(problem), path=path, hint=f"make it anew with: signet-sync check --format baseline > {path}"
        ) from None


def _append(path: str, text: str) -> None:
    from signet_sync.errors import UsageError

    try:
        with open(path, "a", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise UsageError(
            f"the summary cannot be written: {error.strerror}", path=path, hint="give --summary a file that can be"
        ) from None


def _text(document: dict[str, Any]) -> None:
    from signet_sync.cli.reindex import show_problems

    counts = document["counts"]
    click.echo(
        f"{counts['indexed']} valid · {counts['invalid']} invalid · {counted(counts['violation'], 'violation')}"
        f" · {counts['tombstoned']} should be gone · {counted(counts['tombstones'], 'tombstone')}"
        f" · {counts['ignored']} ignored"
    )
    show_problems([p for p in document["problems"] if "known" not in p], document["notes"])
    if known := sum("known" in p for p in document["problems"]):
        click.echo(f"{counted(known, 'problem')} of the baseline, left out")
    if document["mended"]:
        click.echo(f"{counted(len(document['mended']), 'problem')} of the baseline mended: make it anew")
    click.secho("ok" if document["ok"] else "not ok", fg="green" if document["ok"] else "red", bold=True)
