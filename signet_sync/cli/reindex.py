"""`reindex`: runs one full pass, the same as the agent's."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import click

from signet_sync.cli.main import Context, open_to_write
from signet_sync.cli.parsing import command
from signet_sync.storage.locations import now_us
from signet_sync.text.phrases import count_noun

if TYPE_CHECKING:
    from signet_sync.sync.workspace import Workspace


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
    document = run_pass(context, **asked)
    if context.as_json or not context.quiet:
        context.answer(document, lambda: _show(document))
    if document["halted"]:
        return 5
    counts = document["counts"]
    wrong = counts["invalid"] or counts["violation"] or counts["tombstoned"] or document["entity_drift"]
    return 1 if strict and wrong else 0


def run_pass(
    context: Context,
    *,
    full: bool = False,
    index_only: bool = False,
    accept_removals: bool = False,
) -> dict[str, Any]:
    """Runs a full pass; returns the document of `reindex --json`. Raises `SignetSyncError`, `OSError`."""
    from signet_sync.integrity import report  # the pass: not loaded by the help, nor by who shows problems
    from signet_sync.sync.engine import run_pass_mending
    from signet_sync.sync.workspace import Request

    instant = context.now_us
    settings, database = context.settings(), context.chosen_database
    with open_to_write(context.root, settings, database=database, touch_nothing=index_only) as workspace:
        with context.progress("indexing") as advance:
            request = Request(now_us=instant, rebuild=full, accept_removals=accept_removals, progress=advance)
            outcome = run_pass_mending(workspace, request)
        if not index_only and outcome.cliff is None and _take_spool(context, workspace):
            outcome = run_pass_mending(workspace, Request(now_us=instant))
        return report.describe_pass(workspace, outcome, instant, rebuild=full)


def _take_spool(context: Context, workspace: Workspace) -> bool:
    """Captures what hooks spooled, if no agent has done so; returns whether anything was written."""
    from signet_sync.capture import spool

    if not spool.has_jobs(workspace.state.spool):
        return False
    from signet_sync.capture.worker import due  # nearly always the agent has taken them

    if next(due(workspace, now_us()), None) is None:
        return False
    from signet_sync.capture import intake  # parsers of transcripts

    context.log_to_person()
    done = intake.run_capture(workspace, now_us=now_us)
    written = sum(captured.has_written for captured in done.captured)
    failed = f", {len(done.failed)} failed" if done.failed else ""
    context.say(f"{count_noun(written, 'session')} captured from hooks{failed}")
    return written > 0


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
