"""Starts a full pass."""

from __future__ import annotations

from signet_sync.sync.engine import run_pass_mending
from signet_sync.sync.request import Request
from signet_sync.web.action import Action, ActionCall, ActionPlan, ActionResult, ViewLink
from signet_sync.web.formatting import counted
from signet_sync.web.request import ViewRequest

_LINKS = (ViewLink("Overview", "overview"), ViewLink("Problems", "violations"))
_SHOWN = 20


def _reindex(request: ViewRequest) -> ActionPlan:
    return ActionPlan(
        title="Start a full pass?",
        button="Start the pass",
        sentences=[
            "Every file of memory/ is looked at, for all agents, and what is new or changed is read.",
            "Then the index is brought up to date, and MEMORY.md and the session log are written where they differ.",
            "No sealed file is changed. The running agent does the same by itself.",
        ],
        back=_LINKS[0],
        state=None,
        command=request.command("reindex", own_agent=False),
    )


def _do_reindex(call: ActionCall) -> ActionResult:
    workspace = call.workspace
    outcome = run_pass_mending(workspace, Request(now_us=call.request.now_us, should_stop=call.should_stop))
    if outcome.cliff is not None:
        said = [f"It halted: {outcome.cliff.message}. Nothing was removed.", f"What to do: {outcome.cliff.hint}."]
        return ActionResult("The pass halted", said, _LINKS, well=False)
    pages = sorted(page.path for page in outcome.pages.values() if page.changed)
    trouble = [*workspace.events, *outcome.trouble, *([outcome.held] if outcome.held else [])]
    said = [
        f"{counted(outcome.scanned, 'file')} looked at, {counted(outcome.read, 'file')} read.",
        f"Written: {', '.join(pages)}." if pages else "No page had to be written.",
        *(f"{text}." for text in trouble[:_SHOWN]),
    ]
    return ActionResult("The pass has ended", said, _LINKS, well=not trouble)


ACTIONS = (Action("reindex", (), _reindex, _do_reindex),)
