"""Formats a purge of the git history, for the commands that offer `--purge-history`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from signet_sync.text.phrases import counted

if TYPE_CHECKING:
    from signet_sync.history.purge import Begun
    from signet_sync.history.purge_plan import PurgeResult


def document(done: PurgeResult) -> dict[str, object]:
    """Returns the result of a purge, for JSON."""
    return {name: None if value == "" else value for name, value in done._asdict().items()}


def is_waiting(done: PurgeResult | None) -> bool:
    """Returns whether a purge was requested and is not done."""
    return done is not None and not done.is_done


def show(done: PurgeResult, again: str) -> None:
    """Prints the result of a purge, and how to request it `again` if it was refused."""
    if done.waiting:
        click.secho(f"  the git history still contains the text; every pass tries again: {done.waiting}", fg="red")
    elif done.refused:
        click.secho(f"  the git history was not purged: {done.refused}", fg="red")
        click.secho(f"  then run: signet-sync {again} --purge-history", fg="red")
    elif done.nothing:
        click.echo(f"  nothing to purge: {done.nothing}")
    else:
        commits, objects = counted(done.commits, "commit"), counted(done.objects, "object")
        click.echo(f"  git history: {commits} rewritten, {objects} deleted")
        for path in done.left:
            click.secho(f"  not written by signet-sync, its history still contains text of it: {path}", fg="yellow")


def preview_document(purge: Begun | PurgeResult) -> dict[str, Any]:
    """Returns what a purge would do, for JSON."""
    from signet_sync.history.purge import Begun  # slow import, which the help has no use for

    document: dict[str, Any] = {"commits": 0, "versions": 0, "messages": 0, "refused": None, "nothing": None}
    if isinstance(purge, Begun):
        return document | purge._asdict()
    return document | {"refused": purge.refused or None, "nothing": purge.nothing or None}


def show_preview(purge: Begun | PurgeResult) -> None:
    """Prints what a purge would do."""
    would = preview_document(purge)
    if refused := would["refused"] or would["nothing"]:
        click.echo(f"git history: nothing would be rewritten: {refused}")
        return
    commits, messages = counted(would["commits"], "commit"), counted(would["messages"], "message")
    versions = f"{counted(would['versions'], 'version')} of files"
    click.echo(f"git history: {commits} would be rewritten, for {versions} and {messages}")
