"""`hooks`: adds signet-sync to the settings of coding agents, and removes it."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from signet_sync.admin import hooks_install
from signet_sync.cli.main import Context, counted, emit, json_option, pass_context, resolve_now
from signet_sync.errors import UsageError
from signet_sync.formats.ids import require_agent
from signet_sync.formats.paths import DEFAULT_AGENT, display
from signet_sync.formats.timestamps import iso
from signet_sync.host.harness_settings.mcp_server import Access
from signet_sync.host.harness_settings.registry import HARNESSES

if TYPE_CHECKING:
    from signet_sync.admin.hooks_install import HookOutcome, Signs
    from signet_sync.host.harness_settings.condition import Condition, Edit, Server

_NAMES = click.Choice([*HARNESSES, hooks_install.AUTO])

harness_argument = click.argument("harness", type=_NAMES, metavar="HARNESS|auto")
dry_run_option = click.option("--dry-run", is_flag=True, help="Show what would change as a diff; write nothing.")


@click.group()
def hooks() -> None:
    """Let your coding agents hand their sessions over, and start with what MEMORY.md knows."""


@hooks.command(short_help="Add the hooks to a harness's settings.")
@harness_argument
@click.option("--trust", is_flag=True, help="Codex: trust the hooks in your place, and show what was trusted.")
@click.option("--mcp", is_flag=True, help="Register the MCP server, too: the memory as tools of the agent.")
@click.option("--agent", "agent_id", metavar="ID", help="With --mcp: whose memory (else the default agent's).")
@click.option("--scope", type=click.Choice(["main", "shared"]), help="With --mcp: how much of it the server gives out.")
@dry_run_option
@json_option
@pass_context
def install(
    context: Context,
    harness: str,
    trust: bool,
    mcp: bool,
    agent_id: str | None,
    scope: str | None,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Add the hooks to a harness's settings; everything else in there stays as it is.

    HARNESS is claude-code, codex, gemini, opencode or openclaw; auto means all whose folder is here. A server that
    --mcp has registered is kept by later calls without it, and points where the hooks do.
    """
    names = _chosen(harness)
    if trust and "codex" not in names:
        raise UsageError("only Codex asks for trust", hint="leave --trust out")
    outcomes = hooks_install.install(
        context.root,
        names,
        now=iso(resolve_now(None)),
        trust=trust,
        access=_access(mcp, agent_id, scope),
        dry_run=dry_run,
    )
    return _answered(context, outcomes, dry_run, as_json, _tell_installed)


@hooks.command(short_help="Take the hooks out again.")
@harness_argument
@dry_run_option
@json_option
@pass_context
def uninstall(context: Context, harness: str, dry_run: bool, as_json: bool) -> int:
    """Take the hooks and the MCP server out of a harness's settings.

    Where nothing else has changed, the very bytes are back.

    HARNESS is claude-code, codex, gemini, opencode or openclaw; auto means all whose folder is here.
    """
    outcomes = hooks_install.uninstall(context.root, _chosen(harness), dry_run=dry_run)
    return _answered(context, outcomes, dry_run, as_json, _tell_uninstalled)


@hooks.command(short_help="Which harnesses are here, are their hooks in place.")
@click.argument("harness", type=_NAMES, metavar="[HARNESS|auto]", default=hooks_install.AUTO)
@json_option
@pass_context
def status(context: Context, harness: str, as_json: bool) -> int:
    """Which harnesses are here, whether their hooks are in place, what keeps them from running, and what came of them.

    A transcript is read when a session ends or compacts; nothing read after that means that its hooks do not run.
    """
    names = list(HARNESSES) if harness == hooks_install.AUTO else [harness]
    found = hooks_install.conditions(context.root, names)
    signs = hooks_install.signs(context.root, names, context.database_path())
    if as_json:
        emit({"harnesses": [_condition_document(condition, signs[condition.harness]) for condition in found]})
        return 0
    for condition in found:
        _tell_condition(condition, signs[condition.harness])
    return 0


def _access(mcp: bool, agent_id: str | None, scope: str | None) -> Access | None:
    if not mcp:
        if agent_id is not None or scope is not None:
            raise UsageError("--agent and --scope are for the MCP server", hint="add --mcp, or leave them out")
        return None
    if agent_id is not None:
        require_agent(agent_id)
    return Access(agent_id, scope)


def _chosen(harness: str) -> list[str]:
    names = hooks_install.chosen(harness)
    if not names:
        raise UsageError(
            "no harness was found on this machine",
            hint=f"name one of them, and its settings are made: {', '.join(HARNESSES)}",
        )
    return names


def _answered(context: Context, outcomes: Sequence[HookOutcome], dry_run: bool, as_json: bool, tell: Any) -> int:
    errors = [outcome.error for outcome in outcomes if outcome.error is not None]
    if errors and len(outcomes) == 1:
        raise errors[0]
    if as_json:
        emit({"workspace": context.root, "dry_run": dry_run, "harnesses": [_document(o, dry_run) for o in outcomes]})
    else:
        for outcome in outcomes:
            if outcome.error is not None:
                _tell_error(outcome)
        good = [outcome for outcome in outcomes if outcome.error is None]
        if dry_run:
            _tell_diff(good)
        else:
            tell(context, good)
    return max((error.exit_code for error in errors), default=0)


# ── for people ──


def _tell_error(outcome: HookOutcome) -> None:
    error = outcome.error
    assert error is not None
    where = f" [{error.path}]" if error.path else ""
    click.echo(display(f"{outcome.harness}: {error.message}{where} — {error.hint}"), err=True)


def _tell_diff(outcomes: Sequence[HookOutcome]) -> None:
    texts = [_diff(edit) for outcome in outcomes for edit in outcome.plan.edits if edit.kind != "unchanged"]
    for text in texts:
        click.echo(text.encode(), nl=False)
    if not texts:
        click.echo("nothing would change")


def _tell_installed(context: Context, outcomes: Sequence[HookOutcome]) -> None:
    for outcome in outcomes:
        click.secho(outcome.harness, bold=True)
        _tell_files(outcome)
        click.echo(f"  {counted(len(outcome.events), 'event')} hooked: {', '.join(outcome.events)}")
        if outcome.server is not None:
            click.echo(display(f"  MCP server: {_said(outcome.server)}"))
        if outcome.plan.trusted:
            click.echo("  trusted in your place:")
            for line in outcome.plan.trusted:
                click.echo(f"    {line}")
    if not outcomes:
        return
    names = [outcome.harness for outcome in outcomes]
    click.echo(
        f"sessions that start from now on go into {context.root}; those that are open now may not know the hooks"
    )
    _tell_by_hand(outcomes)
    for number, name in enumerate(names):
        click.echo(f"{'' if number else 'past sessions:':<14} {context.command_line(f'import {name}')}")
    one = names[0] if len(names) == 1 else hooks_install.AUTO
    click.echo(f"to undo:       signet-sync hooks uninstall {one}")
    click.echo(f"does it work:  {context.command_line('hooks status')}, once a session has ended")


def _said(server: Server) -> str:
    scope = server.flag("--scope")
    return f"memory of {server.flag('--agent') or DEFAULT_AGENT}" + (f", scope {scope}" if scope else "")


def _tell_uninstalled(context: Context, outcomes: Sequence[HookOutcome]) -> None:
    del context
    for outcome in outcomes:
        if all(edit.kind == "unchanged" for edit in outcome.plan.edits):
            click.echo(f"{outcome.harness}: there was nothing of signet-sync in {outcome.before.path}")
            continue
        click.secho(outcome.harness, bold=True)
        _tell_files(outcome)
    _tell_by_hand(outcomes)


def _tell_files(outcome: HookOutcome) -> None:
    for edit in outcome.plan.edits:
        word = "already as it should be" if edit.kind == "unchanged" else edit.kind
        click.echo(display(f"  {edit.path}: {word}"))


def _tell_by_hand(outcomes: Sequence[HookOutcome]) -> None:
    lines = [f"  {outcome.harness}: {line}" for outcome in outcomes for line in outcome.plan.by_hand]
    if lines:
        click.secho("left to do by hand:", bold=True)
        for line in lines:
            click.echo(line)


def _tell_condition(condition: Condition, signs: Signs) -> None:
    if condition.installed:
        word = "hooks are in place"
    elif condition.events:
        word = "some hooks are in place"
    else:
        word = "no hooks" if condition.found else "not found on this machine"
    click.echo(display(f"{condition.harness:<12} {word}" + (f"  {condition.path}" if condition.found else "")))
    if condition.events:
        click.echo(f"  events: {', '.join(condition.events)}")
    if condition.server is not None:
        click.echo(display(f"  MCP server: {_said(condition.server)}  {condition.server.path}"))
    if condition.events or signs.transcripts:
        told = f"last {signs.last_read}, {signs.transcripts} in all" if signs.last_read else "none yet"
        click.echo(f"  transcripts read: {told}")
    if signs.last_trouble:
        click.echo(display(f"  last trouble: {signs.last_trouble}"))
    for problem in condition.problems:
        click.echo(display(f"  {problem.message} — {problem.hint}"))


# ── for programs ──


def _diff(edit: Edit) -> str:
    before, after = (
        (raw or b"").decode("utf-8", "replace").splitlines(keepends=True) for raw in (edit.before, edit.after)
    )
    names = (
        edit.path if edit.before is not None else "/dev/null",
        edit.path if edit.after is not None else "/dev/null",
    )
    lines = difflib.unified_diff(before, after, *names)
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _document(outcome: HookOutcome, dry_run: bool) -> dict[str, Any]:
    error = outcome.error
    document: dict[str, Any] = {
        "harness": outcome.harness,
        "files": [{"path": edit.path, "change": edit.kind} for edit in outcome.plan.edits],
        "events": list(outcome.events),
        "mcp": _server_document(outcome.server),
        "trusted": list(outcome.plan.trusted),
        "by_hand": list(outcome.plan.by_hand),
        "error": None
        if error is None
        else {"code": error.code, "message": error.message, "hint": error.hint, "path": error.path},
    }
    if dry_run:
        document["diff"] = "".join(_diff(edit) for edit in outcome.plan.edits)
    return document


def _condition_document(condition: Condition, signs: Signs) -> dict[str, Any]:
    return {
        "harness": condition.harness,
        "found": condition.found,
        "installed": condition.installed,
        "events": list(condition.events),
        "missing": list(condition.missing) if condition.events else [],
        "path": condition.path,
        "workspace": condition.workspace,
        "trusted": condition.trusted,
        "mcp": _server_document(condition.server),
        "transcripts_read": signs.transcripts,
        "last_read": signs.last_read,
        "last_trouble": signs.last_trouble,
        "problems": [{"code": p.code, "message": p.message, "hint": p.hint} for p in condition.problems],
    }


def _server_document(server: Server | None) -> dict[str, Any] | None:
    if server is None:
        return None
    return {
        "path": server.path,
        "command": list(server.words),
        "agent_id": server.flag("--agent") or DEFAULT_AGENT,
        "scope": server.flag("--scope"),
    }
