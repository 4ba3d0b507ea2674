"""Creates entities, sets and extends sections, prunes items, and changes status or name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

from signet_sync.entities import create as entities_create
from signet_sync.entities import section_edits
from signet_sync.entities.documents import edits
from signet_sync.entities.documents.document import EntityDocument, text_of
from signet_sync.entities.documents.escaping import fit_item
from signet_sync.entities.event_log.events import Actor, Operation
from signet_sync.entities.evidence import token_for
from signet_sync.entities.execute import Caller, EntityRequest, Writer, edit_entity, run_request
from signet_sync.entities.repository import Entity, EntityRepository
from signet_sync.entities.results import EntityResult
from signet_sync.entities.section_edits import TargetSection
from signet_sync.entities.write_ahead import EditPlan
from signet_sync.errors import UsageError
from signet_sync.formats.entity_paths import Kind
from signet_sync.formats.timestamps import iso
from signet_sync.sync.workspace import Workspace
from signet_sync.text.sentences import flatten

_STATUS_LENGTH = 40
DEPRECATED = "deprecated"


@dataclass(frozen=True, slots=True)
class SectionText:
    """A text for a section, who writes it, and what it rests on: a rationale, `PATH#LINE` of an artifact."""

    text: str
    actor: Actor
    rationale: str | None
    evidence: str | None


def create(
    workspace: Workspace,
    agent_id: str,
    kind: Kind,
    name: str,
    *,
    relation: str | None = None,
    between: Sequence[str] = (),
    **caller: Unpack[Caller],
) -> EntityResult:
    """Creates an entity with profile and notes; a relationship has a type (`relation`) `between` two or more entities.

    Raises `UsageError`: `entity-exists`, `text-empty`, `relation-needed`, `unknown-entity`, `idempotency-conflict`.
    """
    title = section_edits.clean_line(name)
    kind_of_edge = None if relation is None else flatten(section_edits.clean_line(relation).text, 60)
    fields = {"kind": kind, "name": title.text, "relation": kind_of_edge, "between": list(between)}
    request = EntityRequest.of("create", caller, fields, title.redactions)
    return run_request(
        workspace,
        agent_id,
        request,
        lambda repo: entities_create.create_entity(
            repo, kind, title.text, kind_of_edge, between, request.stamp(agent_id)
        ),
    )


def set_section(
    workspace: Workspace, agent_id: str, ref: str, section: str, text: str, **writer: Unpack[Writer]
) -> EntityResult:
    """Replaces the text of a narrative section; `ref` is an id, a prefix of one, a slug or a title.

    `section` is an anchor or heading, for notes with the prefix `notes/`. `evidence` is `PATH#LINE` of an artifact.
    Raises `UsageError`: `unknown-entity`, `ambiguous-entity`, `section-unknown`, `section-form` (a list or log),
    `section-locked`, `section-pinned`, `section-cap` (no rationale), `entity-drifted`, `idempotency-conflict`.
    """
    request, said = text_request("set", writer, ref, section, text)

    def plan(repo: EntityRepository, entity: Entity, ulid: str) -> EditPlan:
        return plan_set(repo, entity, section_edits.open_target(repo, entity, section, request.actor), said)

    return edit_entity(workspace, agent_id, ref, request, plan)


def append(
    workspace: Workspace, agent_id: str, ref: str, section: str, text: str, **writer: Unpack[Writer]
) -> EntityResult:
    """Appends a paragraph to a narrative section or an item to a list; Evidence quotes `evidence` (`PATH#LINE`).

    Raises as `set_section`, and `UsageError` `evidence-cap` for an eighth item of Evidence without a rationale.
    """
    request, said = text_request("append", writer, ref, section, text)

    def plan(repo: EntityRepository, entity: Entity, ulid: str) -> EditPlan:
        where = section_edits.open_target(repo, entity, section, request.actor)
        return plan_append(repo, entity, where, said, token_for(ulid))

    return edit_entity(workspace, agent_id, ref, request, plan)


def prune(
    workspace: Workspace, agent_id: str, ref: str, section: str, item: str, *, reason: str, **caller: Unpack[Caller]
) -> EntityResult:
    """Removes an item (by key or number) from a list section; the event keeps its text. Raises as `set_section`."""
    why = section_edits.require_reason(reason)
    request = EntityRequest.of("prune", caller, {"ref": ref, "section": section, "item": item, "reason": why})

    def plan(repo: EntityRepository, entity: Entity, ulid: str) -> EditPlan:
        where = section_edits.open_target(repo, entity, section, request.actor)
        if where.form != "list":
            raise UsageError(
                f"{where.section.heading} is not a list",
                hint="only list items can be pruned; replace a narrative with entity set; a log only grows",
                code="section-form",
            )
        after, gone = edits.prune_item(where.document, where.name, item)
        draft = section_edits.Draft(fit_item(why))
        return section_edits.plan_edit(
            repo, entity, where, after, draft, op="prune_item", actor=request.actor, reason=why, extra={"gone": gone}
        )

    return edit_entity(workspace, agent_id, ref, request, plan)


def deprecate(workspace: Workspace, agent_id: str, ref: str, *, reason: str, **caller: Unpack[Caller]) -> EntityResult:
    """Marks an entity as no longer in use, with the reason; its files are kept. Raises as `set_section`."""
    why = section_edits.require_reason(reason)
    request = EntityRequest.of("deprecate", caller, {"ref": ref, "reason": why})

    def plan(repo: EntityRepository, entity: Entity, ulid: str) -> EditPlan:
        fields = {"status": DEPRECATED, "deprecated_at": iso(repo.now_us), "deprecated_reason": why}
        after = edits.with_fields(entity.profile, fields)
        return _plan_profile(repo, entity, request, "deprecate", after, f"Deprecated: {why}", reason=why)

    return edit_entity(workspace, agent_id, ref, request, plan)


def set_status(
    workspace: Workspace, agent_id: str, ref: str, status: str, *, reason: str | None = None, **caller: Unpack[Caller]
) -> EntityResult:
    """Sets an entity's status, a word or a few. Raises as `set_section`."""
    wanted = flatten(section_edits.clean_line(status).text, _STATUS_LENGTH).casefold()
    why = section_edits.clean_reason(reason)
    if not any(map(str.isalnum, wanted)):
        raise UsageError("the status is empty", hint="use a word: active, resting, …", code="text-empty")
    if wanted == DEPRECATED:
        return deprecate(workspace, agent_id, ref, reason=reason or "", **caller)
    request = EntityRequest.of("status", caller, {"ref": ref, "status": wanted, "reason": why})

    def plan(repo: EntityRepository, entity: Entity, ulid: str) -> EditPlan:
        before = str(entity.profile.fields.get("status") or "active")
        after = edits.with_fields(entity.profile, {"status": wanted}, gone=("deprecated_at", "deprecated_reason"))
        line = f"Status: {before} → {wanted}" + (f" ({why})" if why else "") if before != wanted else None
        return _plan_profile(repo, entity, request, "status", after, line, reason=why)

    return edit_entity(workspace, agent_id, ref, request, plan)


def _plan_profile(
    repo: EntityRepository,
    entity: Entity,
    request: EntityRequest,
    op: Operation,
    after: EntityDocument,
    line: str | None,
    **more: Any,
) -> EditPlan:
    """Plans a change of a whole profile; `line` is its entry in the change log. Raises `UsageError`."""
    section_edits.refuse_guarded(entity, None, request.actor)
    after = section_edits.finished(repo, after, "profile", [line] if line else [])
    return EditPlan(op=op, file="profile", after=after, **more)


# ── plans that proposals use too ──


def text_request(op: str, writer: Writer, ref: str, section: str, text: str) -> tuple[EntityRequest, SectionText]:
    """Makes the request to write a text into a section, and the text without secrets. Raises `UsageError`."""
    said = section_edits.clean(text)
    rationale, evidence = writer.get("rationale"), writer.get("evidence")
    fields = {"ref": ref, "section": section, "text": said.text, "rationale": rationale, "evidence": evidence}
    request = EntityRequest.of(op, writer, fields, said.redactions)
    return request, SectionText(said.text, request.actor, rationale, evidence)


def plan_set(
    repo: EntityRepository,
    entity: Entity,
    where: TargetSection,
    said: SectionText,
    *,
    op: Operation = "set",
    extra: Mapping[str, Any] | None = None,
) -> EditPlan:
    """Plans a new text of a narrative section. Raises `UsageError`."""
    if where.form != "narrative":
        raise UsageError(
            f"{where.section.heading} is a {where.form}", hint="append an item, or prune one", code="section-form"
        )
    draft = section_edits.narrative(repo, said.text, said.evidence)
    after = edits.replace(where.document, where.name, draft.text)
    # The first text of a section is no material change.
    material = f"{where.section.heading} rewritten" if where.is_core and text_of(where.section) else None
    return section_edits.plan_edit(
        repo, entity, where, after, draft, op=op, actor=said.actor, rationale=said.rationale, material=material,
        extra=extra,
    )  # fmt: skip


def plan_append(
    repo: EntityRepository,
    entity: Entity,
    where: TargetSection,
    said: SectionText,
    token: str,
    *,
    op: Operation | None = None,
    extra: Mapping[str, Any] | None = None,
) -> EditPlan:
    """Plans another paragraph of a narrative, or another item of a list or log. Raises `UsageError`."""
    if where.form == "narrative":
        draft = section_edits.narrative(repo, said.text, said.evidence)
        after = edits.append(where.document, where.name, draft.text)
    else:
        draft = section_edits.item(repo, where, said.text, said.evidence, token)
        after = edits.append_item(where.document, where.name, draft.text)
    done: Operation = op or ("append" if where.form == "narrative" else "append_item")
    return section_edits.plan_edit(
        repo, entity, where, after, draft, op=done, actor=said.actor, rationale=said.rationale, extra=extra
    )
