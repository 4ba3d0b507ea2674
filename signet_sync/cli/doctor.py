"""`doctor`: checks the installation end to end, with a remedy for each finding; `--fix` applies the safe ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import click

from signet_sync.admin.doctor.fix import apply
from signet_sync.admin.doctor.run import Finding, examine
from signet_sync.cli.main import Context, json_option, pass_context
from signet_sync.cli.parsing import Command
from signet_sync.formats.paths import display

_MARKS = {"ok": ("✓", "green"), "warning": ("!", "yellow"), "problem": ("✗", "red")}


@click.command(cls=Command)
@click.option("--fix", is_flag=True, help="Apply the safe remedies, report what was done, and check again.")
@json_option
@pass_context
def doctor(context: Context, fix: bool) -> int:
    """Check the installation end to end. Exit 1 if there are problems.

    --fix repairs our own files, rows, service and hooks; what belongs to you or to the whole machine is only reported.
    """
    findings = examine(context.root, context.database_path())
    fixed: dict[str, object] = {"fixed": [], "failed": []} if fix else {}
    if fix and any(finding.fix for finding in findings):
        fixed = _fix(context, {finding.name for finding in findings if finding.fix})
        findings = examine(context.root, context.database_path())
    sound = all(finding.level != "problem" for finding in findings)
    document = {"ok": sound, "findings": [asdict(finding) for finding in findings], **fixed}
    context.answer(document, lambda: _show(findings, quiet=context.quiet, may_fix=not fix))
    return 0 if sound else 1


def _fix(context: Context, names: set[str]) -> dict[str, object]:
    """Applies the safe remedies and prints them; returns them for JSON."""
    if not context.as_json:
        context.log_to_person()
    fixes = apply(context.root, context.database_path(), names)
    if not context.as_json:
        for line in fixes.done:
            click.echo(click.style("fixed: ", fg="green") + display(line))
        for line in fixes.failed:
            click.echo(click.style("not fixed: ", fg="red") + display(line))
        if fixes.done or fixes.failed:
            click.echo()
    return {"fixed": fixes.done, "failed": fixes.failed}


def _show(findings: Sequence[Finding], *, quiet: bool, may_fix: bool) -> None:
    for finding in findings:
        if quiet and finding.level == "ok":
            continue
        mark, colour = _MARKS[finding.level]
        name = finding.name.replace("-", " ")
        click.echo(click.style(f"{mark} ", fg=colour) + display(f"{name}: {finding.message}"))
        for number, line in enumerate(finding.remedy.split("\n") if finding.remedy else ()):
            click.echo(f"    {' ' if number else '→'} {display(line)}")
    if may_fix and any(finding.fix for finding in findings):
        click.echo("signet-sync doctor --fix repairs what can be repaired safely")
    if any(finding.level == "problem" for finding in findings):
        click.secho("problems were found", fg="red", bold=True)
    elif any(finding.level == "warning" for finding in findings):
        click.secho("no problems, but warnings (marked !)", fg="yellow", bold=True)
    elif not quiet:
        click.secho("everything is in order", fg="green", bold=True)
