"""Lets people pin and lock sections against agents' writes, and answer agents' proposals."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Literal, Unpack

from signet_sync.entities import operations, proposals, section_edits
from signet_sync.entities.documents import edits
from signet_sync.entities.documents.document import text_of
from signet_sync.entities.event_log.events import Event, Operation
from signet_sync.entities.evidence import token_for
from signet_sync.entities.execute import Caller, EntityRequest, Writer, edit_entity, load, run_request
from signet_sync.entities.operations import SectionText
from signet_sync.entities.repository import Entity, EntityRepository, words
from signet_sync.entities.results import EntityResult, Proposal
from signet_sync.entities.section_edits import TargetSection
from signet_sync.entities.write_ahead import EditPlan, write
from signet_sync.errors import UsageError
from signet_sync.formats.entity_paths import anchor_of
from signet_sync.sync.workspace import Workspace
from signet_sync.text.phrases import counted

Guard = Literal["pin", "unpin", "lock", "unlock"]


def guard(
    op: Guard, workspace: Workspace, agent_id: str, ref: str, section: str | None = None, **caller: Unpack[Caller]
) -> EntityResult:
    """Pins or locks a section (None: the whole entity) against an agent's writes, or undoes that.

    A pin means that the section matters as it is. Raises `UsageError`: `actor-refused` for an agent, and as
    `operations.set_section`.
    """
    field = "pins" if op.endswith("pin") else "locks"
    request = _of_person(op, caller, {"ref": ref, "section": section})

    def plan(repo: EntityRepository, entity: Entity, ulid: str) -> EditPlan:
        everything = section is None or section.strip() == section_edits.WHOLE
        where = None if everything or section is None else section_edits.find_target(repo, entity, section)
        name = section_edits.guard_name(where)
        kept = [one for one in words(entity.profile.fields.get(field)) if anchor_of(one) != anchor_of(name)]
        after = edits.with_fields(entity.profile, {field: kept if op.startswith("un") else [*kept, name]})
        return EditPlan(
            op=op,
            file="profile",
            section=where.name if where is not None and where.file == "profile" else None,
            after=section_edits.finished(repo, after, "profile", []),
            extra={"name": name},
        )

    return edit_entity(workspace, agent_id, ref, request, plan)


pin, unpin = partial(guard, "pin"), partial(guard, "unpin")
lock, unlock = partial(guard, "lock"), partial(guard, "unlock")


def propose(
    workspace: Workspace, agent_id: str, ref: str, section: str, text: str, **writer: Unpack[Writer]
) -> EntityResult:
    """Proposes a text to a person, for a section that an agent may not write; `event_id` identifies the proposal.

    Approval sets a narrative section to the text, or appends it to a list as an item. Raises as
    `operations.set_section`.
    """
    request, said = operations.text_request("propose", writer, ref, section, text)

    effect = ""

    def plan(repo: EntityRepository, entity: Entity, ulid: str) -> EditPlan:
        nonlocal effect
        where = section_edits.find_target(repo, entity, section)
        effect = _effect(where)
        wanted: Operation = "set" if where.form == "narrative" else "append_item"
        # Planning the change now reports errors that approval would meet.
        if wanted == "set":
            plan = operations.plan_set(repo, entity, where, said)
        else:
            plan = operations.plan_append(repo, entity, where, said, token_for(ulid))
        extra = {"op": wanted, "text": said.text, "source": said.evidence}
        return replace(plan, op="propose", after=None, lint=(), extra=extra)

    return edit_entity(workspace, agent_id, ref, request, plan)._replace(effect=effect)


def _effect(where: TargetSection) -> str:
    """Returns what approving a proposal for a section does."""
    if where.form != "narrative":
        return "adds an item"
    lines = sum(bool(line.strip()) for line in text_of(where.section).splitlines())
    return f"replaces {counted(lines, 'line')}" if lines else "writes the first text"


def approve(workspace: Workspace, agent_id: str, proposal: str, **caller: Unpack[Caller]) -> EntityResult:
    """Applies a proposal (given by its event's id, a prefix of it, or its `ev:…`).

    Raises `UsageError`: `unknown-proposal`, `actor-refused`, and as `operations.set_section`.
    """
    request = _of_person("approve", caller, {"proposal": proposal})

    def plan(repo: EntityRepository, entity: Entity, where: TargetSection, found: Proposal) -> EditPlan:
        said, extra = SectionText(found.text, request.actor, found.rationale, found.source), {"proposal": found.id}
        if found.op == "set":
            return operations.plan_set(repo, entity, where, said, op="approve", extra=extra)
        # An item of Evidence names the proposal's event.
        return operations.plan_append(repo, entity, where, said, token_for(found.id), op="approve", extra=extra)

    return _answer(workspace, agent_id, proposal, request, plan)


def reject(
    workspace: Workspace, agent_id: str, proposal: str, *, reason: str | None = None, **caller: Unpack[Caller]
) -> EntityResult:
    """Closes a proposal; it stays in the event log. Raises as `approve`."""
    why = section_edits.clean_reason(reason)
    request = _of_person("reject", caller, {"proposal": proposal, "reason": why})

    def plan(repo: EntityRepository, entity: Entity, where: TargetSection, found: Proposal) -> EditPlan:
        return EditPlan(op="reject", file=where.file, section=where.name, extra={"proposal": found.id}, reason=why)

    return _answer(workspace, agent_id, proposal, request, plan)


def _answer(
    workspace: Workspace,
    agent_id: str,
    proposal: str,
    request: EntityRequest,
    plan: Callable[[EntityRepository, Entity, TargetSection, Proposal], EditPlan],
) -> EntityResult:
    """Carries out a person's answer to a proposal."""

    def act(repo: EntityRepository) -> tuple[Event, Entity]:
        found = proposals.one(repo, proposal)
        entity = load(repo, found.entity_id)
        where = section_edits.find_target(repo, entity, found.section)
        return write(repo, entity, plan(repo, entity, where, found), request.stamp(agent_id)), entity

    return run_request(workspace, agent_id, request, act)


def _of_person(op: str, caller: Caller, fields: Mapping[str, Any]) -> EntityRequest:
    """Makes a request that only people may make. Raises `UsageError` (`actor-refused`)."""
    request = EntityRequest.of(op, caller, fields, actor="person")
    if request.actor not in ("person", "maintainer"):
        raise UsageError(f"only a person can {op}", hint="--actor person", code="actor-refused")
    return request
