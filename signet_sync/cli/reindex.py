"""`reindex`: runs one full pass, the same as the agent's."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from signet_sync.app import unchanged
from signet_sync.cli.main import Context, json_option, now_option, pass_context
from signet_sync.cli.parsing import Command, SharedOption
from signet_sync.text.phrases import count_noun

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@click.command(cls=Command)
@click.option("--full", is_flag=True, help="Rebuild all derived rows; native rows stay.")
@click.option("--index-only", is_flag=True, help="Write nothing but the database (for CI).")
@click.option("--agent", cls=SharedOption, metavar="ID", help="Report only this agent.")
@click.option("--strict", is_flag=True, help="Exit 1 if problems were found.")
@click.option(
    "--accept-removals",
    is_flag=True,
    help="Accept that missing files, and sessions that Signet removed, are gone for good, however many.",
)
@now_option
@json_option
@pass_context
def reindex(
    context: Context, full: bool, index_only: bool, agent: str | None, strict: bool, accept_removals: bool
) -> int:
    """Run one full pass: validate every artifact, update the index, write MEMORY.md and the session log."""
    document = run_pass_if_changed(
        context, full=full, index_only=index_only, agent=agent, accept_removals=accept_removals
    )
    if context.as_json or not context.quiet:
        context.answer(document, partial(show, document))
    if document["halted"]:
        return 5
    counts = document["counts"]
    wrong = counts["invalid"] or counts["violation"] or counts["tombstoned"] or document["entity_drift"]
    return 1 if strict and wrong else 0


def run_pass_if_changed(
    context: Context,
    *,
    full: bool = False,
    index_only: bool = False,
    agent: str | None = None,
    accept_removals: bool = False,
) -> dict[str, Any]:
    """Runs a full pass, if anything has changed since the last one; returns the document of `reindex --json`.

    Raises `SignetSyncError`, `OSError`.
    """
    plain = not (full or index_only or agent or accept_removals)
    current = unchanged.CurrentInputs(context.root, context.chosen_database) if plain else None
    document = unchanged.answer(current, context.now_us) if current is not None else None
    if document is not None:
        return document
    from signet_sync.cli import reindex_pass  # the pass: not loaded if nothing has changed, nor by the help
    from signet_sync.pages import others

    progress = progress_bar("indexing", show=not context.as_json and not context.quiet)
    is_new = context.chosen_database is None and not os.path.exists(context.database_path())
    elsewhere = others.tell_other_memories(context.root, context.state().backups, indexed=False) if is_new else ""
    document = reindex_pass.run(context, current, progress, full, index_only, agent, accept_removals)
    return document | {"trouble": [*document["trouble"], elsewhere]} if elsewhere else document


def show(document: dict[str, Any]) -> None:
    """Prints the outcome of a pass for a person."""
    counts = document["counts"]
    halted = document["halted"]
    if halted:
        click.secho(f"halted: {halted['message']}; nothing was removed", fg="red", bold=True)
        click.echo(f"  {halted['indexed']} indexed files stay available")
        click.echo(f"  {halted['hint']}")
        return
    other = {"unchanged": counts["unchanged"], "of removed sessions": counts["tombstones"]}
    others = ", ".join(f"{number} {what}" for what, number in other.items() if number)
    took = f"{f' ({others})' if others else ''} in {document['elapsed_ms'] / 1000:.2f} s"
    click.echo(f"{counts['indexed']} of {counts['scanned']} files indexed{took}")
    for agent_id, page in document["agents"].items():
        state = "written" if page["changed"] else "unchanged"
        shown = f"{page['rows_rendered']} of {page['sessions_in_window']} sessions"
        click.echo(
            f"  {page['memory_md']} {state} · {agent_id} · {shown} of the last 30 days · {page['tokens']} tokens"
        )
    for line in document["trouble"]:
        click.secho(f"  ! {line}", fg="yellow")
    if document["held"]:
        click.secho(f"  pages and manifests are not written: {document['held']}", fg="yellow")
        click.echo("    signet-sync doctor says how to change that")
    show_problems(document["problems"], document["notes"])
    for one in document["entity_drift"]:
        click.echo("  " + click.style(f"entity {one['code']}", fg="red") + f"  {one['path']}")
        click.echo(f"    {one['message']} → signet-sync entity check")


def show_problems(problems: list[dict[str, str]], notes: list[dict[str, str]], *, limit: int = 40) -> None:
    """Prints problems one by one with remedies, foreign files and notes as counts."""
    foreign = [p for p in problems if p["code"] in ("foreign-name", "temporary")]
    real = [p for p in problems if p not in foreign]
    for problem in real[:limit]:
        colour = "yellow" if problem["verdict"] == "ignored" else "red"
        click.echo("  " + click.style(f"{problem['verdict']} {problem['code']}", fg=colour) + f"  {problem['path']}")
        click.echo(f"    {problem['message']}" + (f" → {problem['hint']}" if problem["hint"] else ""))
    if len(real) > limit:
        click.echo(f"  … and {len(real) - limit} more problems (--json lists them all)")
    if foreign:
        click.echo(f"  {count_noun(len(foreign), 'other file')} in memory/ ignored")
    by_code: dict[str, int] = {}
    for note in notes:
        by_code[note["code"]] = by_code.get(note["code"], 0) + 1
    if by_code:
        click.echo("  notes: " + " · ".join(f"{count} {code}" for code, count in sorted(by_code.items())))


@contextmanager
def progress_bar(what: str, *, show: bool) -> Iterator[Callable[[int, int], None] | None]:
    """Shows a progress bar on a terminal, for work that may take over a second; nothing in a pipe."""
    if not show or not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    with Progress(
        TextColumn(what), BarColumn(), MofNCompleteColumn(), console=Console(stderr=True), transient=True
    ) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
