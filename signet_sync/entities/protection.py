"""Lets people pin and lock sections against agents' writes, and answer agents' proposals."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Literal

from signet_sync.entities import operations, proposals, section_edits
from signet_sync.entities.documents import edits
from signet_sync.entities.event_log.events import Actor, Event, Operation
from signet_sync.entities.evidence import token_for
from signet_sync.entities.execute import Ask, carry_out, load, perform
from signet_sync.entities.repository import Entity, Garden, words
from signet_sync.entities.results import Done, Proposal
from signet_sync.entities.write_ahead import Plan, write
from signet_sync.errors import UsageError
from signet_sync.formats.entity_paths import anchor_of
from signet_sync.sync.workspace import Workspace

Guard = Literal["pin", "unpin", "lock", "unlock"]


def guard(
    op: Guard,
    workspace: Workspace,
    agent_id: str,
    ref: str,
    section: str | None = None,
    *,
    actor: Actor = "person",
    now_us: int,
    key: str | None = None,
) -> Done:
    """Pins or locks a section (None: the whole entity) against an agent's writes, or undoes that.

    A pin means that the section matters as it is. Raises `UsageError`: `actor-refused` for an agent, and as
    `operations.set_section`.
    """
    _require_person(actor, op)
    field = "pins" if op.endswith("pin") else "locks"
    ask = Ask(op=op, actor=actor, now_us=now_us, key=key, request={"ref": ref, "section": section})

    def plan(garden: Garden, entity: Entity, ulid: str) -> Plan:
        everything = section is None or section.strip() == section_edits.WHOLE
        where = None if everything or section is None else section_edits.spot(garden, entity, section)
        name = section_edits.guard_name(where)
        kept = [one for one in words(entity.profile.fields.get(field)) if anchor_of(one) != anchor_of(name)]
        after = edits.with_fields(entity.profile, {field: kept if op.startswith("un") else [*kept, name]})
        return Plan(
            op=op,
            file="profile",
            section=where.name if where is not None and where.file == "profile" else None,
            after=section_edits.finished(garden, after, "profile", []),
            extra={"name": name},
        )

    return perform(workspace, agent_id, ref, ask, plan)


pin, unpin = partial(guard, "pin"), partial(guard, "unpin")
lock, unlock = partial(guard, "lock"), partial(guard, "unlock")


def propose(
    workspace: Workspace,
    agent_id: str,
    ref: str,
    section: str,
    text: str,
    *,
    actor: Actor = "agent",
    rationale: str | None = None,
    evidence: str | None = None,
    now_us: int,
    key: str | None = None,
) -> Done:
    """Proposes a text to a person, for a section that an agent may not write; `event_id` identifies the proposal.

    Approval sets a narrative section to the text, or appends it to a list as an item. Raises as
    `operations.set_section`.
    """
    said = section_edits.clean(text)
    request = {"ref": ref, "section": section, "text": said.text, "rationale": rationale, "evidence": evidence}
    ask = Ask(op="propose", actor=actor, now_us=now_us, key=key, request=request, redactions=said.redactions)

    def plan(garden: Garden, entity: Entity, ulid: str) -> Plan:
        where = section_edits.spot(garden, entity, section)
        # Planning the change now reports errors that approval would meet.
        if where.form == "narrative":
            wanted: Operation = "set"
            plan = operations.setting(
                garden, entity, where, said.text, actor=actor, rationale=rationale, evidence=evidence
            )
        else:
            wanted = "append_item"
            plan = operations.adding(
                garden, entity, where, said.text, token_for(ulid), actor=actor, rationale=rationale, evidence=evidence
            )
        extra = {"op": wanted, "text": said.text, "source": evidence}
        return replace(plan, op="propose", after=None, lint=(), extra=extra)

    return perform(workspace, agent_id, ref, ask, plan)


def approve(
    workspace: Workspace,
    agent_id: str,
    proposal: str,
    *,
    actor: Actor = "person",
    now_us: int,
    key: str | None = None,
) -> Done:
    """Applies a proposal (given by its event's id, a prefix of it, or its `ev:…`).

    Raises `UsageError`: `unknown-proposal`, `actor-refused`, and as `operations.set_section`.
    """
    _require_person(actor, "approve")
    ask = Ask(op="approve", actor=actor, now_us=now_us, key=key, request={"proposal": proposal})

    def act(garden: Garden) -> tuple[Event, Entity]:
        found = proposals.one(garden, proposal)
        entity = load(garden, found.entity_id)
        where = section_edits.spot(garden, entity, found.section)
        stamp = ask.stamp(agent_id)
        return write(garden, entity, _plan(garden, entity, where, found, actor), stamp), entity

    return carry_out(workspace, agent_id, ask, act)


def reject(
    workspace: Workspace,
    agent_id: str,
    proposal: str,
    *,
    reason: str | None = None,
    actor: Actor = "person",
    now_us: int,
    key: str | None = None,
) -> Done:
    """Closes a proposal; it stays in the event log. Raises as `approve`."""
    _require_person(actor, "reject")
    why = section_edits.said(reason)
    ask = Ask(op="reject", actor=actor, now_us=now_us, key=key, request={"proposal": proposal, "reason": why})

    def act(garden: Garden) -> tuple[Event, Entity]:
        found = proposals.one(garden, proposal)
        entity = load(garden, found.entity_id)
        where = section_edits.spot(garden, entity, found.section)
        plan = Plan(op="reject", file=where.file, section=where.name, extra={"proposal": found.id}, reason=why)
        return write(garden, entity, plan, ask.stamp(agent_id)), entity

    return carry_out(workspace, agent_id, ask, act)


def _plan(garden: Garden, entity: Entity, where: section_edits.Spot, found: Proposal, actor: Actor) -> Plan:
    """Plans a proposal's change as it was proposed; an item of Evidence names the proposal's event."""
    extra = {"proposal": found.id}
    if found.op == "set":
        return operations.setting(
            garden, entity, where, found.text, actor=actor, rationale=found.rationale, evidence=found.source,
            op="approve", extra=extra,
        )  # fmt: skip
    return operations.adding(
        garden, entity, where, found.text, token_for(found.id), actor=actor, rationale=found.rationale,
        evidence=found.source, op="approve", extra=extra,
    )  # fmt: skip


def _require_person(actor: Actor, what: str) -> None:
    if actor not in ("person", "maintainer"):
        raise UsageError(f"{what} is a person's word, not an agent's", hint="--actor person", code="actor-refused")
