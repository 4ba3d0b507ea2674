"""`context`, `handoff`, `render`: what a session gets, what another agent needs, what pages say."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import click

from signet_sync.cli.main import Context, find_working_directory
from signet_sync.cli.parsing import OfWorkspace, command
from signet_sync.errors import UsageError
from signet_sync.formats.handle import handle
from signet_sync.formats.ids import require_agent
from signet_sync.storage.files import require_root
from signet_sync.text.phrases import count_noun

REQUEST = "Go on with this work."
_NOTHING = (
    "no context: nothing is known of this folder's project, and there is no identity file in the workspace;"
    " --project NAME prints what is known of another one"
)
_NOTHING_SHARED = "no context: with --scope shared it is the identity files only, and the workspace has none"


@command("--agent", "--now", "--json")
@click.option(
    "--scope",
    type=click.Choice(["main", "shared"]),
    default="main",
    show_default=True,
    help="shared: for a place that others can read: only the identity files.",
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
    help="Print what hooks injected into a session, by its id in the harness (default: the one told something last).",
)
def context(context: Context, scope: str, project: str | None, last: str | None) -> None:
    """Print the context that an agent's session gets at its start.

    Where the project stands, quotes of its last session, what holds, and the workspace's identity files in what the
    setting context.budget_tokens leaves. Without an index, MEMORY.md instead. With --scope shared, the identity files
    only.
    """
    require_agent(context.agent)
    require_root(context.root)
    if last is not None:
        _answer_last(context, last)
        return
    shared = scope == "shared"
    given = os.path.expanduser(project) if project else find_working_directory()
    found = context.ask(
        "context",
        shared=shared,
        project=os.path.abspath(given) if given and (os.path.isabs(given) or os.path.isdir(given)) else None,
        called=given if project and given and not os.path.isabs(given) else None,
        now_us=context.now_us,
    )
    for trouble in found["troubles"]:
        context.say(f"warning: {trouble}")

    def show() -> None:
        if found["context"]["text"]:
            click.echo(found["context"]["text"])
        else:
            context.say(_NOTHING_SHARED if shared else _NOTHING)

    context.answer(found["context"], show)


def _answer_last(context: Context, session_id: str) -> None:
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
        click.echo(f"session {found['session_id'] or 'that was told something last'}, {found['told_at']}")
        show_all("=== At its start ===", found["start"])
        for name, noun in (("quotes", "quote"), ("files", "whole file")):
            if found[name]:
                click.echo(f"and {count_noun(found[name], noun)}{' of the workspace' if name == 'files' else ''}")
        show_all("=== At prompts ===", found["prompts"])

    context.answer(found, show)


@command("--agent", "--now", "--json")
@click.argument("session", type=OfWorkspace(), required=False)
@click.option(
    "--project", metavar="PROJECT", help="Its folder, or its name or origin (default: the working directory)."
)
@click.option("--to", metavar="HARNESS", help="Start this harness here, with the text as its first prompt.")
def handoff(context: Context, session: str | None, project: str | None, to: str | None) -> None:
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
        context.answer(found, found["text"])
        return
    try:
        os.execvp(program[0], [*program, f"{found['text']}\n\n{REQUEST}"])  # noqa: S606
    except OSError as error:
        message = f"{program[0]} cannot be started: {error.strerror}"
        raise UsageError(message, hint="install it, or leave --to out") from None


@command("--agent", "--now")
def render(context: Context) -> None:
    """Print the generated text of an agent's MEMORY.md from the present index."""
    from signet_sync.pages.stage import compose_page  # the pass, which no context needs
    from signet_sync.sync.store import counts

    with context.open_workspace(touch_nothing=True) as workspace:
        known = counts.agents(workspace.database)
        if context.agent not in known:
            hint = f"known agents: {', '.join(known) or 'none yet; run signet-sync reindex'}"
            raise UsageError(f"agent {context.agent!r} has no indexed artifact", hint=hint, code="unknown-agent")
        rendered, _, _ = compose_page(workspace, context.agent, context.now_us)
    click.echo(rendered.text)
