"""`context` and `handoff`: print what a session gets at its start or at a prompt, and what another agent needs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import click

from signet_sync.cli.main import Context, agent_option, json_option, now_option, pass_context, working_directory
from signet_sync.cli.parsing import Command, OfWorkspace
from signet_sync.errors import UsageError
from signet_sync.formats.handle import handle
from signet_sync.formats.ids import require_agent
from signet_sync.storage.files import require_root
from signet_sync.text.phrases import count_noun

_NOTHING = (
    "no context: nothing is known of this folder's project, and there is no identity file in the workspace;"
    " --project NAME prints what is known of another one"
)
_NOTHING_SHARED = (
    "no context: with --scope shared it is the identity files only, and the workspace has none;"
    " --prompt TEXT prints memories that are not private"
)


@click.command(cls=Command)
@agent_option
@click.option(
    "--scope",
    type=click.Choice(["main", "shared"]),
    default="main",
    show_default=True,
    help="shared: for a place that others can read: identity files, with --prompt also memories that are not private.",
)
@click.option(
    "--prompt", metavar="TEXT", help="Print what memory contains about TEXT instead of the context at the start."
)
@click.option(
    "--project",
    metavar="PROJECT",
    help="The project to start with: its folder, or its name or origin (default: the working directory).",
)
@click.option(
    "--last",
    metavar="[SESSION]",
    is_flag=False,
    flag_value="",
    help="Print what hooks injected into the newest session whose id in the harness begins so (default: of all).",
)
@click.option(
    "--budget",
    type=click.IntRange(min=1),
    metavar="TOKENS",
    help="Most tokens (default: the setting context.budget_tokens, with --prompt 800).",
)
@now_option
@json_option
@pass_context
def context(
    context: Context, scope: str, prompt: str | None, project: str | None, last: str | None, budget: int | None
) -> int:
    """Print the context that an agent's session gets at its start.

    Where the project stands, quotes of its last session, what holds, and the workspace's identity files in what the
    budget leaves. Without an index, MEMORY.md instead. With --scope shared, the identity files only.
    """
    require_agent(context.agent)
    require_root(context.root)
    if last is not None:
        return _show_last(context, last)
    shared = scope == "shared"
    given = os.path.expanduser(project) if project else working_directory()
    if prompt is None:
        found = context.ask(
            "context",
            shared=shared,
            budget=budget,
            project=os.path.abspath(given) if given and (os.path.isabs(given) or os.path.isdir(given)) else None,
            called=given if project and given and not os.path.isabs(given) else None,
            now_us=context.now_us,
        )
    else:
        found = context.ask("prompt_context", prompt=prompt, shared=shared, budget=budget)
    for trouble in found["troubles"]:
        context.say(f"warning: {trouble}")

    def show() -> None:
        if found["context"]["text"]:
            click.echo(found["context"]["text"])
        elif found["crowded"]:
            context.say(f"no section fits into --budget {budget}; increase the budget")
        elif prompt is not None:
            context.say("memory contains nothing about this")
        else:
            context.say(_NOTHING_SHARED if shared else _NOTHING)

    context.answer(found["context"], show)
    return 0


def _show_last(context: Context, session_id: str) -> int:
    from signet_sync.pages import operations as pages_operations  # the agent has loaded it for the others
    from signet_sync.pages.sections import inert
    from signet_sync.text.sentences import flatten

    found = pages_operations.last(context.place(), context.agent, session_id)

    def show_all(title: str, lines: Sequence[dict[str, Any]]) -> None:
        if lines:
            click.echo(title)
        for line in lines:
            if line["text"] is not None:
                click.echo(f"- {inert(flatten(line['text']))} {handle(line['id'])}")
        if gone := sum(line["text"] is None for line in lines):
            click.echo(f"[{count_noun(gone, 'line')} no longer exist]" if gone > 1 else "[1 line no longer exists]")

    def show() -> None:
        click.echo(f"session {found['session_id'] or 'without a turn yet'}")
        show_all("=== At its start ===", found["start"])
        if found["quotes"]:
            click.echo(f"and {count_noun(found['quotes'], 'quote')}")
        if found["files"]:
            click.echo(f"and {count_noun(found['files'], 'whole file')} of the workspace")
        show_all("=== At prompts ===", found["prompts"])

    context.answer(found, show)
    return 0


REQUEST = "Go on with this work."


@click.command(cls=Command)
@click.argument("session", type=OfWorkspace(), required=False)
@click.option(
    "--project", metavar="PROJECT", help="Its folder, or its name or origin (default: the working directory)."
)
@click.option("--to", metavar="HARNESS", help="Start this harness here, with the text as its first prompt.")
@agent_option
@now_option
@json_option
@pass_context
def handoff(context: Context, session: str | None, project: str | None, to: str | None) -> int:
    """Print what another agent needs to go on: how a session ended, what it did, what holds, what is open.

    Most tokens: 1,500; what is known has its handle. Without SESSION the newest one of the project.
    """
    from signet_sync.capture.harnesses import registry  # not to print a context

    program = registry.facts(to).first_prompt if to is not None else ()
    if to is not None and not program:
        able = ", ".join(name for name in registry.names() if registry.facts(name).first_prompt)
        raise UsageError(f"{to} takes no first prompt", hint=f"one of: {able}; or print the text and paste it")
    given = os.path.expanduser(project) if project else os.getcwd()
    folder = os.path.abspath(given) if os.path.isabs(given) or os.path.exists(given) else None
    found = context.ask("handoff", session=session, project=given, folder=folder, now_us=context.now_us)
    if to is None:
        context.answer(found, lambda: click.echo(found["text"]))
        return 0
    try:
        os.execvp(program[0], [*program, f"{found['text']}\n\n{REQUEST}"])  # noqa: S606
    except OSError as error:
        raise UsageError(
            f"{program[0]} cannot be started: {error.strerror}", hint="install it, or leave --to out"
        ) from None
