"""`doctor`: the installation end to end, each finding with its remedy."""

from __future__ import annotations

import click

from signet_sync.cli import Context, emit, json_option, pass_context


@click.command()
@json_option
@pass_context
def doctor(context: Context, as_json: bool) -> int:
    """Check the installation end to end. Exit 1 where something needs a hand."""
    from dataclasses import asdict

    from signet_sync.agent.doctor import examine

    findings = examine(context.root, context.database_path())
    sound = all(finding.level != "problem" for finding in findings)
    if as_json:
        emit({"ok": sound, "findings": [asdict(finding) for finding in findings]})
        return 0 if sound else 1
    marks = {"ok": ("✓", "green"), "warning": ("!", "yellow"), "problem": ("✗", "red")}
    for finding in findings:
        mark, colour = marks[finding.level]
        click.echo(click.style(f"{mark} ", fg=colour) + f"{finding.name}: {finding.message}")
        if finding.remedy:
            click.echo(f"    → {finding.remedy}")
    if not sound:
        click.secho("something needs a hand", fg="red", bold=True)
    elif any(finding.level == "warning" for finding in findings):
        click.secho("nothing is broken; what is marked ! may need a hand", fg="yellow", bold=True)
    else:
        click.secho("all is well", fg="green", bold=True)
    return 0 if sound else 1
