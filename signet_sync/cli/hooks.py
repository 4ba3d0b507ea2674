"""`hooks`: adds signet-sync to the settings of coding agents, and removes it."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import click

from signet_sync.admin import hooks_install
from signet_sync.admin.hooks_install import HookOutcome
from signet_sync.capture.harnesses import registry
from signet_sync.cli.main import Context, one_line, show_by_hand
from signet_sync.cli.parsing import Group, SharedOption, command
from signet_sync.errors import UsageError
from signet_sync.formats.ids import require_agent
from signet_sync.formats.paths import DEFAULT_AGENT, display
from signet_sync.formats.timestamps import iso
from signet_sync.host.harness_settings.settings_text import Edit, Server
from signet_sync.text.phrases import count_noun

_NAMES = click.Choice([*registry.names(), hooks_install.AUTO])

_harness = click.argument("harness", type=_NAMES, metavar="HARNESS|auto")
hooks = Group(
    "hooks",
    help="Connect coding agents: their sessions are captured, and get what memory holds of their project and prompts.",
)


@command("--dry-run", of=hooks, short_help="Add the hooks to a harness's settings.")
@_harness
@click.option("--mcp", is_flag=True, help="Also register the MCP server, which offers the memory as tools.")
@click.option("--agent", cls=SharedOption, field="agent_flag", metavar="ID", help="With --mcp: whose memory is served.")
@click.option("--scope", type=click.Choice(["main", "shared"]), help="With --mcp: which part of it is served.")
@click.option("--tools", type=click.Choice(["core", "all"]), help="With --mcp: which tools are offered.")
def install(context: Context, harness: str, mcp: bool, dry_run: bool, **given: str | None) -> int:
    """Add the hooks to a harness's settings; everything else in them stays as it is.

    Before the first change a copy of the file is put beside it (.signet-sync.bak). HARNESS is one that
    `hooks status` lists; auto means all whose folder exists. Later calls without --mcp keep a server that --mcp
    registered, and let it use the same workspace as the hooks.
    """
    if context.agent_flag is not None:
        require_agent(context.agent_flag)
        given = {"agent": context.agent_flag, **given}
    flags = [word for option, value in given.items() if value for word in (f"--{option}", value)]
    if flags and not mcp:
        raise UsageError("--agent, --scope and --tools need --mcp", hint="add --mcp, or omit them")
    names, now, wanted = _choose_harnesses(harness), iso(context.now_us), flags if mcp else None
    outcomes = hooks_install.install(context.root, names, now=now, flags=wanted, dry_run=dry_run)

    def show(done: Sequence[HookOutcome]) -> None:
        for outcome in done:
            _show_files(outcome)
            if not outcome.before.found:
                click.echo("  it is not found on this machine: these hooks are for when it is installed")
            click.echo(f"  hooks for {count_noun(len(outcome.events), 'event')}: {', '.join(outcome.events)}")
            _show_server(_describe_server(outcome.server))
        names = [outcome.harness for outcome in done]
        if not names:
            return
        click.echo(f"new sessions are captured into {context.root}; running ones may not use the hooks yet")
        click.echo("they get memory at starts, prompts, edits, commands; off: context.prompts, context.moments = false")
        _show_steps(done)
        for number, name in enumerate(names):
            click.echo(f"{'' if number else 'past sessions:':<14} {context.command_line(f'import {name}')}")
        click.echo(f"to undo:       signet-sync hooks uninstall {names[0] if len(names) == 1 else hooks_install.AUTO}")
        click.echo(f"to check:      {context.command_line('hooks status')}, after a session has ended")

    return _answer(outcomes, dry_run, show)


@command("--dry-run", of=hooks, short_help="Remove the hooks from a harness's settings.")
@_harness
def uninstall(context: Context, harness: str, dry_run: bool) -> int:
    """Remove the hooks and the MCP server from a harness's settings; everything else in them stays as it is.

    HARNESS is one that `hooks status` lists; auto means all whose folder exists.
    """

    def show(done: Sequence[HookOutcome]) -> None:
        for outcome in done:
            if any(edit.kind != "unchanged" for edit in outcome.plan.edits):
                _show_files(outcome)
            else:
                click.echo(f"{outcome.harness}: nothing to remove from {outcome.before.path}")
        _show_steps(done)

    outcomes = hooks_install.uninstall(context.root, _choose_harnesses(harness), dry_run=dry_run)
    return _answer(outcomes, dry_run, show)


def _choose_harnesses(harness: str) -> list[str]:
    if harness not in (*registry.list_hooked(), hooks_install.AUTO):
        raise UsageError(f"{harness} has no hooks", hint=f"signet-sync import {harness} takes its sessions")
    names = hooks_install.choose_harnesses(harness)
    if not names:
        hint = f"name one to create its settings: {', '.join(registry.list_hooked())}"
        raise UsageError("no harness was found on this machine", hint=hint)
    return names


def _answer(outcomes: Sequence[HookOutcome], dry_run: bool, show: Callable[[Sequence[HookOutcome]], None]) -> int:
    errors = [outcome.error for outcome in outcomes if outcome.error is not None]
    if errors and len(outcomes) == 1:
        raise errors[0]
    for outcome in outcomes:
        if outcome.error is not None:
            click.echo(display(f"{outcome.harness}: {one_line(outcome.error)}"), err=True)
    if dry_run:
        changes = "".join(_compare(edit) for outcome in outcomes for edit in outcome.plan.edits)
        click.echo(changes.encode() or "nothing would change", nl=not changes)
    else:
        show([outcome for outcome in outcomes if outcome.error is None])
    return max((error.exit_code for error in errors), default=0)


def _compare(edit: Edit) -> str:
    """Returns an edit as a unified diff."""
    raws = (edit.before, edit.after)
    before, after = ((raw or b"").decode("utf-8", "replace").splitlines(keepends=True) for raw in raws)
    old, new = ("/dev/null" if raw is None else edit.path for raw in raws)
    lines = difflib.unified_diff(before, after, old, new)
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _show_files(outcome: HookOutcome) -> None:
    click.secho(outcome.harness, bold=True)
    for edit in outcome.plan.edits:
        word = "already up to date" if edit.kind == "unchanged" else edit.kind
        click.echo(display(f"  {edit.path}: {word}"))


def _show_steps(outcomes: Sequence[HookOutcome]) -> None:
    show_by_hand([f"{outcome.harness}: {line}" for outcome in outcomes for line in outcome.plan.by_hand])


def _describe_server(server: Server | None) -> dict[str, Any] | None:
    if server is None:
        return None
    return {
        "path": server.path,
        "command": list(server.words),
        "agent_id": server.flag("--agent") or DEFAULT_AGENT,
        "scope": server.flag("--scope"),
    }


def _show_server(document: dict[str, Any] | None) -> None:
    if document:
        scope = f", scope {document['scope']}" if document["scope"] else ""
        click.echo(display(f"  MCP server: memory of {document['agent_id']}{scope}  {document['path']}"))


@command("--json", of=hooks, short_help="Show which harnesses exist and whether their hooks are installed.")
@click.argument("harness", type=_NAMES, metavar="[HARNESS|auto]", default=hooks_install.AUTO)
def status(context: Context, harness: str) -> None:
    """Show which harnesses exist, whether their hooks are installed, what keeps them from running, and their results.

    A transcript is read when a session ends or compacts; if none is read after that, the hooks do not run.
    """
    names = list(registry.list_hooked()) if harness == hooks_install.AUTO else _choose_harnesses(harness)
    read = hooks_install.count_transcripts(context.database_path())
    documents = []
    for condition in hooks_install.conditions(context.root, names):
        count, last = read.get(condition.harness, (0, None))
        own = {
            "installed": condition.is_installed,
            "missing": condition.missing if condition.events else [],
            "asks": condition.asks or None,
            "mcp": _describe_server(condition.server),
            "transcripts_read": count,
            "last_read": last,
        }
        documents.append({key: value for key, value in asdict(condition).items() if key != "server"} | own)

    def show() -> None:
        for one in documents:
            word = "no hooks" if one["found"] else "not found on this machine"
            if one["events"]:
                word = "hooks are installed" if one["installed"] else "some hooks are installed"
            click.echo(display(f"{one['harness']:<12} {word}" + (f"  {one['path']}" if one["found"] else "")))
            if one["events"]:
                click.echo(f"  events: {', '.join(one['events'])}")
            _show_server(one["mcp"])
            if one["events"] or one["transcripts_read"]:
                total = f"last {one['last_read']}, {one['transcripts_read']} in total"
                click.echo(f"  transcripts read: {total if one['last_read'] else 'none yet'}")
            if one["asks"]:
                click.echo(f"  {one['asks']}")
            for problem in one["problems"]:
                click.echo(display(f"  {problem['message']} — {problem['hint']}"))

    context.answer({"harnesses": documents}, show)
