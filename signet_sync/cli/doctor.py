"""`doctor`: checks the installation end to end, with a remedy for each finding; `--fix` applies the safe ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from signet_sync.cli.main import Context, emit, json_option, pass_context

if TYPE_CHECKING:
    from collections.abc import Sequence

    from signet_sync.admin.doctor.run import Finding

_MARKS = {"ok": ("✓", "green"), "warning": ("!", "yellow"), "problem": ("✗", "red")}


@click.command()
@click.option("--fix", is_flag=True, help="Apply the safe remedies, say what was done, and look again.")
@json_option
@pass_context
def doctor(context: Context, fix: bool, as_json: bool) -> int:
    """Check the installation end to end. Exit 1 where something needs a hand.

    With --fix our own files, rows, service and hooks are mended; what is yours, or of the whole machine, is only told.
    """
    from dataclasses import asdict

    from signet_sync.admin.doctor.run import examine

    findings = examine(context.root, context.database_path())
    document: dict[str, object] = {"fixed": [], "failed": []} if fix else {}
    if fix and any(finding.fix for finding in findings):
        document = _heal(context, {finding.name for finding in findings if finding.fix}, as_json)
        findings = examine(context.root, context.database_path())
    sound = all(finding.level != "problem" for finding in findings)
    if as_json:
        emit({"ok": sound, "findings": [asdict(finding) for finding in findings], **document})
    else:
        _show(findings, quiet=context.quiet, may_fix=not fix)
    return 0 if sound else 1


def _heal(context: Context, names: set[str], as_json: bool) -> dict[str, object]:
    """Applies the safe remedies and prints them; returns them for JSON."""
    from signet_sync.admin.doctor.fix import apply
    from signet_sync.formats.paths import display

    if not as_json:
        context.log_to_person()
    fixes = apply(context.root, context.database_path(), names)
    if not as_json:
        for line in fixes.done:
            click.echo(click.style("fixed: ", fg="green") + display(line))
        for line in fixes.failed:
            click.echo(click.style("not fixed: ", fg="red") + display(line))
        if fixes.done or fixes.failed:
            click.echo()
    return {"fixed": fixes.done, "failed": fixes.failed}


def _show(findings: Sequence[Finding], *, quiet: bool, may_fix: bool) -> None:
    from signet_sync.formats.paths import display

    for finding in findings:
        if quiet and finding.level == "ok":
            continue
        mark, colour = _MARKS[finding.level]
        name = finding.name.replace("-", " ")
        click.echo(click.style(f"{mark} ", fg=colour) + display(f"{name}: {finding.message}"))
        if finding.remedy:
            click.echo(f"    → {display(finding.remedy)}")
    if may_fix and any(finding.fix for finding in findings):
        click.echo("signet-sync doctor --fix mends what is safe to mend")
    if any(finding.level == "problem" for finding in findings):
        click.secho("something needs a hand", fg="red", bold=True)
    elif any(finding.level == "warning" for finding in findings):
        click.secho("nothing is broken; what is marked ! may need a hand", fg="yellow", bold=True)
    elif not quiet:
        click.secho("all is well", fg="green", bold=True)
