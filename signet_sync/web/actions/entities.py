"""Approves or rejects what an agent proposes for an entity; keeps agents from changing an entity."""

from typing import NamedTuple, get_args

from signet_sync.entities import operations, queries
from signet_sync.entities.operations import EntityResult, Guard
from signet_sync.entities.queries import EntityView, Proposal
from signet_sync.errors import UsageError
from signet_sync.web.action import Action, ActionCall, ActionPlan, ActionResult, FormField, ViewLink, digest
from signet_sync.web.formatting import difference
from signet_sync.web.markdown import Prose
from signet_sync.web.request import ViewRequest


class _Asked(NamedTuple):
    """A proposal, its entity, and the present text of its section."""

    proposal: Proposal
    entity: EntityView
    heading: str
    present: str


def _asked(request: ViewRequest) -> _Asked:
    with queries.open_read_only(request.site.place, request.agent, request.now_us) as repo:
        found = queries.find_proposal(repo, request.query.get("proposal", ""))
        entity = queries.view(repo, repo.require(found.entity_id))
    section = next((one for one in entity.sections if one.name == found.section), None)
    if section is None:
        raise UsageError(
            f"{entity.title} has no section {found.section} any more",
            hint="reject the proposal at a terminal: signet-sync entity review reject",
            code="section-unknown",
        )
    return _Asked(found, entity, section.heading, section.text)


def _approve(request: ViewRequest) -> ActionPlan:
    asked = _asked(request)
    proposal, title = asked.proposal, asked.entity.title
    sets = proposal.op == "set"
    why = [f"The agent gives as its reason: {proposal.rationale}"] if proposal.rationale else []
    more = "paragraph" if proposal.op == "append" else "item"
    change = "gets the text below" if sets else f"gets one more {more}, the text below"
    return ActionPlan(
        title="Approve this proposal?",
        button="Approve",
        sentences=[
            f"The section {asked.heading} of {title} {change}, as your own change.",
            "The event log records it; the previous text stays there." if sets else "The event log records it.",
            *why,
        ],
        prose=None if sets else Prose(proposal.text),
        difference=(
            ("What changes in the section", difference(asked.present.strip("\n"), proposal.text.strip("\n")))
            if sets
            else None
        ),
        back=_back(asked),
        state=_state(asked),
        command=request.command("entity", "review", "approve", proposal.id),
    )


def _reject(request: ViewRequest) -> ActionPlan:
    asked = _asked(request)
    return ActionPlan(
        title="Reject this proposal?",
        button="Reject",
        sentences=[
            f"The section {asked.heading} of {asked.entity.title} stays as it is.",
            "The proposal waits no longer; its text and your reason stay in the event log.",
        ],
        prose=Prose(asked.proposal.text),
        fields=(FormField("reason", "Reason", hint="may be left empty"),),
        back=_back(asked),
        state=_state(asked),
        command=request.command("entity", "review", "reject", asked.proposal.id),
    )


def _back(asked: _Asked) -> ViewLink:
    return ViewLink("The entity", "entity", {"entity": asked.entity.id})


def _state(asked: _Asked) -> object:
    return [asked.proposal.id, digest(asked.present), asked.entity.drifted]


def _do_approve(call: ActionCall) -> ActionResult:
    proposal, at = call.request.query["proposal"], call.request.now_us
    done = operations.review(call.workspace, call.request.agent, proposal, approve=True, actor="person", now_us=at)
    return _result(call, done, "Approved")


def _do_reject(call: ActionCall) -> ActionResult:
    done = operations.review(
        call.workspace,
        call.request.agent,
        call.request.query["proposal"],
        approve=False,
        reason=call.words.get("reason", "").strip() or None,
        actor="person",
        now_us=call.request.now_us,
    )
    return _result(call, done, "Rejected")


def _result(call: ActionCall, done: EntityResult, title: str) -> ActionResult:
    said = [f"The event {done.event_id} records it.", *(f"{one}." for one in done.warnings)]
    if done.waiting:
        said.append(f"{done.waiting}.")
    return ActionResult(title, said, (call.plan.back, ViewLink("Entities", "entities")))


# ── what agents may change ──

_GUARDS: dict[str, tuple[str, str, str]] = {
    "pin": (
        "Pin this entity?",
        "Pin it",
        "It matters as it is: agents may only propose changes from now on.",
    ),
    "unpin": ("Remove the pin of this entity?", "Remove the pin", "Agents may change it again, unless it is locked."),
    "lock": (
        "Lock this entity?",
        "Lock it",
        "Only people write it: agents may only propose changes from now on.",
    ),
    "unlock": (
        "Remove the lock of this entity?",
        "Remove the lock",
        "Agents may change it again, unless it is pinned.",
    ),
}


def _guard(request: ViewRequest) -> ActionPlan:
    wanted, op = request.query.get("entity", ""), request.query.get("op", "")
    if op not in _GUARDS:
        raise UsageError("there is no such action", hint="use the buttons of the views", code="unknown-action")
    with queries.open_read_only(request.site.place, request.agent, request.now_us) as repo:
        entity = queries.view(repo, repo.require(wanted))
    title, button, said = _GUARDS[op]
    return ActionPlan(
        title=title,
        button=button,
        prose=Prose(entity.title),
        sentences=[said, "Pins and locks of single sections stay. The event log records it."],
        back=ViewLink("The entity", "entity", {"entity": entity.id}),
        state=[entity.id, sorted(entity.pins), sorted(entity.locks), entity.drifted],
        command=request.command("entity", "protect", op, entity.id),
        computed=entity.id,
    )


def _do_guard(call: ActionCall) -> ActionResult:
    op: Guard = next(one for one in get_args(Guard) if one == call.request.query["op"])
    done = operations.guard(
        op, call.workspace, call.request.agent, call.plan.computed, actor="person", now_us=call.request.now_us
    )
    titles: dict[Guard, str] = {"pin": "Pinned", "unpin": "Pin removed", "lock": "Locked", "unlock": "Lock removed"}
    return _result(call, done, titles[op])


ACTIONS = (
    Action("approve", ("proposal",), _approve, _do_approve),
    Action("reject", ("proposal",), _reject, _do_reject),
    Action("guard", ("entity", "op"), _guard, _do_guard),
)
