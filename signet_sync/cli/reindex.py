"""`reindex`: runs one full pass, the same as the agent's."""

from __future__ import annotations

from collections import Counter
from typing import Any

import click

from signet_sync.app import unchanged
from signet_sync.cli.main import Context
from signet_sync.cli.parsing import command
from signet_sync.text.phrases import count_noun


@command("--now", "--json")
@click.option("--full", is_flag=True, help="Rebuild all derived rows; native rows stay.")
@click.option("--index-only", is_flag=True, help="Write nothing but the database (for CI).")
@click.option("--strict", is_flag=True, help="Exit 1 if problems were found.")
@click.option(
    "--accept-removals",
    is_flag=True,
    help="Accept that missing files, and sessions that Signet removed, are gone for good, however many.",
)
def reindex(context: Context, strict: bool, **asked: Any) -> int:
    """Run one full pass: validate every artifact, update the index, write MEMORY.md and the session log."""
    document = run_pass_if_changed(context, **asked)
    if context.as_json or not context.quiet:
        context.answer(document, lambda: _show(document))
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
    accept_removals: bool = False,
) -> dict[str, Any]:
    """Runs a full pass, if anything has changed since the last one; returns the document of `reindex --json`.

    Raises `SignetSyncError`, `OSError`.
    """
    plain = not (full or index_only or accept_removals)
    current = unchanged.Look(context.root, context.chosen_database) if plain else None
    document = unchanged.answer(current, context.now_us) if current is not None else None
    if document is not None:
        return document
    from signet_sync.cli import reindex_pass  # the pass: not loaded if nothing has changed, nor by the help

    return reindex_pass.run(context, current, full, index_only, accept_removals)


def _show(document: dict[str, Any]) -> None:
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


def show_counts(counts: dict[str, int]) -> None:
    """Prints how many files have each verdict."""
    click.echo(
        f"{counts['indexed']} valid · {counts['invalid']} invalid · {count_noun(counts['violation'], 'violation')}"
        f" · {counts['tombstoned']} should be gone · {counts['ignored']} ignored"
    )


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
    if by_code := Counter(note["code"] for note in notes):
        click.echo("  notes: " + " · ".join(f"{count} {code}" for code, count in sorted(by_code.items())))
