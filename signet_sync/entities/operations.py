"""Creates entities, writes their sections, prunes items, changes status, takes an edit back; proposals and guards."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Required, Unpack

from signet_sync.entities import queries, sections, write
from signet_sync.entities import replay as replaying
from signet_sync.entities import store as entities_store
from signet_sync.entities.documents import edits
from signet_sync.entities.documents.document import EntityDocument, document_of, render, text_of
from signet_sync.entities.documents.escaping import SafeText, fit_title
from signet_sync.entities.events import Actor, Event, Operation, token_of, tokens_in
from signet_sync.entities.execute import Caller, EntityRequest, EntityResult, edit_entity, run
from signet_sync.entities.log import new_ulid
from signet_sync.entities.queries import Proposal
from signet_sync.entities.repository import PATTERN, Entity, EntityRepository, FileContent, words
from signet_sync.entities.sections import TargetSection
from signet_sync.entities.store import EntityFile
from signet_sync.entities.write import EditPlan, Stamp
from signet_sync.errors import UsageError
from signet_sync.formats.entity_paths import FILES, EntityPlace, File, Kind, anchor_of, new_id, slug_of
from signet_sync.formats.timestamps import iso
from signet_sync.formats.wikilinks import wikilink
from signet_sync.sync.workspace import Workspace
from signet_sync.text.phrases import counted
from signet_sync.text.sentences import flatten

Guard = Literal["pin", "unpin", "lock", "unlock"]
DEPRECATED = "deprecated"
_STATUS_LENGTH = 40


class Writer(Caller, total=False):
    """Who asks for a text, and what it rests on: a rationale, `PATH#LINE` of an artifact.

    `expect` is the hash of the section as the writer has read it, `reason` why it is emptied; with `propose` a person
    is to decide.
    """

    rationale: str | None
    evidence: str | None
    expect: str | None
    reason: str | None
    propose: bool


class _Required(Caller):
    reason: Required[str]


@dataclass(frozen=True, slots=True)
class SectionText:
    """A text for a section, who writes it, and what it rests on."""

    text: str
    actor: Actor
    rationale: str | None = None
    evidence: str | None = None


# ── new entities ──


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
    title = sections.clean_line(name)
    type_of_edge = None if relation is None else flatten(sections.clean_line(relation).text, 60)
    fields = {"kind": kind, "name": title.text, "relation": type_of_edge, "between": list(between)}
    request = EntityRequest.of("create", caller, fields, title.redactions)

    def act(repo: EntityRepository) -> tuple[Event, Entity]:
        return _created(repo, kind, fit_title(title.text), type_of_edge, between, request.stamp(agent_id))

    return run(workspace, agent_id, request, act)


def _created(
    repo: EntityRepository, kind: Kind, title: str, relation: str | None, between: Sequence[str], stamp: Stamp
) -> tuple[Event, Entity]:
    members, slug = _members(repo, kind, relation, between), slug_of(title)
    _refuse_second(repo, kind, title, slug, relation, members)
    place = EntityPlace(repo.agent_id, kind, slug, _unused_id(repo, kind, slug, relation, members))
    version = repo.version(kind)
    of_edge: dict[str, Any] = {"relation": relation, "participants": [row.id for row in members]}
    documents: dict[File, EntityDocument] = {
        file: repo.blank(place._replace(file=file), version, title=title, **of_edge) for file in FILES
    }
    for row in members:
        link = SafeText(wikilink(row.path, row.title))
        documents["profile"] = edits.append_item(documents["profile"], "participants", link)
    documents["profile"] = sections.finished(repo, documents["profile"], "profile", ["Created"])
    seen = {file: FileContent(place._replace(file=file)) for file in FILES}
    entity = Entity(place, seen, {})
    return write.create(repo, entity, documents, stamp), entity


def _members(repo: EntityRepository, kind: Kind, relation: str | None, between: Sequence[str]) -> list[EntityFile]:
    """Returns the participants of a relationship. Raises `UsageError` (`relation-needed`, `unknown-entity`)."""
    if kind != "relationship":
        if relation is not None or between:
            raise UsageError(
                f"a {kind} has no type and no participants", hint="omit type and between", code="relation-unfit"
            )
        return []
    found = {row.id: row for row in (write.locate(repo, ref) for ref in between)}
    if len(found) < 2 or not relation or not any(map(str.isalnum, relation)):
        raise UsageError(
            "a relationship needs a type and two entities",
            hint="--type protects --between ID ID",
            code="relation-needed",
        )
    if any(row.kind == "relationship" for row in found.values()):
        raise UsageError("a relationship is between users and parts", hint="name two", code="relation-needed")
    return list(found.values())


def _unused_id(repo: EntityRepository, kind: Kind, slug: str, relation: str | None, members: list[EntityFile]) -> str:
    """Returns an unused id: a name may be used again, an id never."""
    seed = [repo.agent_id, slug] if not members else [repo.agent_id, relation or "", *sorted(r.id for r in members)]
    for number in range(10_000):
        made = new_id(kind, *seed, *([str(number)] if number else []))
        if not repo.log.of(made) and not repo.places([made]):
            return made
    raise UsageError("no id is left for this name", hint="choose another name", code="entity-exists")


def _refuse_second(
    repo: EntityRepository, kind: Kind, title: str, slug: str, relation: str | None, members: Sequence[EntityFile]
) -> None:
    """Refuses a second entity of a name, or relationship of a pair and type. Deprecated ones do not count."""
    for row in entities_store.entities(repo.workspace.database, repo.agent_id):
        if row.kind != kind or row.status == DEPRECATED:
            continue
        if kind == "relationship":
            same = set(row.participants) == {r.id for r in members} and _folded(row.type) == _folded(relation)
        else:
            same = row.slug == slug or _folded(row.title) == _folded(title)
        if same:
            hint = f"change it by its id: {row.id}"
            raise UsageError(f"{row.title} already exists", path=row.path, hint=hint, code="entity-exists")


def _folded(text: str | None) -> str:
    return " ".join((text or "").casefold().split())


# ── sections ──


def set_section(
    workspace: Workspace, agent_id: str, ref: str, section: str, text: str, **writer: Unpack[Writer]
) -> EntityResult:
    """Replaces the text of a narrative section; an empty text with a reason empties it.

    `ref` is an id, a prefix of one, a slug or a title; `section` an anchor or heading, for notes with the prefix
    `notes/`. Raises `UsageError`: `unknown-entity`, `ambiguous-entity`, `section-unknown`, `section-changed`,
    `section-form` (a list or log), `section-locked`, `section-pinned`, `section-cap` (no rationale), `reason-missing`,
    `entity-drifted`, `idempotency-conflict`.
    """
    if writer.get("propose") and text.strip():
        return _proposed(workspace, agent_id, ref, section, text, writer)
    request, said = _text_request("set", writer, ref, section, text)
    why = None if said.text.strip() else sections.require_reason(writer.get("reason"))

    def plan(repo: EntityRepository, entity: Entity) -> EditPlan:
        where = sections.open_target(repo, entity, section, request.actor, writer.get("expect"))
        if why is None:
            return _plan_set(repo, where, said)
        _require_narrative(where)
        after = edits.replace(where.document, where.name, SafeText(""))
        line = f"{where.section.heading} emptied: {why}"
        return sections.plan_edit(repo, where, after, op="clear", actor=said.actor, material=line, text={"reason": why})

    return edit_entity(workspace, agent_id, ref, request, plan)


def append(
    workspace: Workspace, agent_id: str, ref: str, section: str, text: str, **writer: Unpack[Writer]
) -> EntityResult:
    """Appends a paragraph to a narrative section or an item to a list; Evidence quotes `evidence` (`PATH#LINE`).

    Raises as `set_section`, and `UsageError` `evidence-cap` for an eighth item of Evidence without a rationale.
    """
    if writer.get("propose"):
        return _proposed(workspace, agent_id, ref, section, text, writer, appends=True)
    request, said = _text_request("append", writer, ref, section, text)

    def plan(repo: EntityRepository, entity: Entity) -> EditPlan:
        where = sections.open_target(repo, entity, section, request.actor, writer.get("expect"))
        return _plan_append(repo, where, said)

    return edit_entity(workspace, agent_id, ref, request, plan)


def prune(
    workspace: Workspace, agent_id: str, ref: str, section: str, item: str, **caller: Unpack[_Required]
) -> EntityResult:
    """Removes an item (by key or number) from a list section; the event keeps its text. Raises as `set_section`.

    A pattern in a user's Overview can be pruned, too; it does not come back.
    """
    why = sections.require_reason(caller["reason"])
    fields = {"ref": ref, "section": section, "item": item, "reason": why}
    request = EntityRequest.of("prune", caller, fields)

    def plan(repo: EntityRepository, entity: Entity) -> EditPlan:
        where = sections.open_target(repo, entity, section, request.actor)
        known = edits.items(where.section)
        if where.form != "list" and not any(
            one.text.startswith(PATTERN) for one in known if item in (one.key, str(one.number))
        ):
            raise UsageError(
                f"{where.section.heading} is not a list",
                hint="only list items can be pruned; replace a narrative with entity set",
                code="section-form",
            )
        after, gone = edits.prune_item(where.document, where.name, item)
        return sections.plan_edit(
            repo, where, after, op="prune_item", actor=request.actor, text={"reason": why, "gone": gone}
        )

    return edit_entity(workspace, agent_id, ref, request, plan)


def _text_request(op: str, writer: Writer, ref: str, section: str, text: str) -> tuple[EntityRequest, SectionText]:
    """Makes the request to write a text into a section, and the text without secrets. Raises `UsageError`."""
    said = sections.clean(text)
    rationale, evidence = writer.get("rationale"), writer.get("evidence")
    given = {"rationale": rationale, "evidence": evidence}
    given |= {"expect": writer.get("expect"), "reason": writer.get("reason")}
    request = EntityRequest.of(op, writer, {"ref": ref, "section": section, "text": said.text} | given, said.redactions)
    return request, SectionText(said.text, request.actor, rationale, evidence)


def _require_narrative(where: TargetSection) -> None:
    if where.form != "narrative":
        raise UsageError(
            f"{where.section.heading} is a {where.form}", hint="append an item, or prune one", code="section-form"
        )


def _plan_set(repo: EntityRepository, where: TargetSection, said: SectionText, **more: Any) -> EditPlan:
    """Plans a new text of a narrative section. Raises `UsageError`."""
    _require_narrative(where)
    draft = sections.narrative(repo, said.text, said.evidence)
    after = edits.replace(where.document, where.name, draft.text)
    # The first text of a section is no material change.
    line = f"{where.section.heading} rewritten" if where.is_core and not sections.is_empty(where) else None
    given: dict[str, Any] = {"op": "set", "actor": said.actor, **more}
    return sections.plan_edit(repo, where, after, draft=draft, rationale=said.rationale, material=line, **given)


def _plan_append(
    repo: EntityRepository, where: TargetSection, said: SectionText, token: str | None = None, **more: Any
) -> EditPlan:
    """Plans another paragraph of a narrative, or another item of a list. Raises `UsageError`."""
    ulid = new_ulid(repo.now_us)
    if where.form == "narrative":
        draft = sections.narrative(repo, said.text, said.evidence)
        after = edits.append(where.document, where.name, draft.text)
    else:
        draft = sections.item(repo, where, said.text, said.evidence, token or token_of(ulid))
        after = edits.append_item(where.document, where.name, draft.text)
    op: Operation = "append" if where.form == "narrative" else "append_item"
    given: dict[str, Any] = {"op": op, "actor": said.actor, "event_id": ulid, **more}
    return sections.plan_edit(repo, where, after, draft=draft, rationale=said.rationale, **given)


# ── the whole entity ──


def set_status(
    workspace: Workspace, agent_id: str, ref: str, status: str, *, reason: str | None = None, **caller: Unpack[Caller]
) -> EntityResult:
    """Sets an entity's status, a word or a few; `deprecated` needs a reason. Raises as `set_section`."""
    wanted = flatten(sections.clean_line(status).text, _STATUS_LENGTH).casefold()
    if not any(map(str.isalnum, wanted)):
        raise UsageError("the status is empty", hint="use a word: active, resting, …", code="text-empty")
    leaves = wanted == DEPRECATED
    why = sections.require_reason(reason) if leaves else sections.clean_reason(reason)
    request = EntityRequest.of("status", caller, {"ref": ref, "status": wanted, "reason": why})

    def plan(repo: EntityRepository, entity: Entity) -> EditPlan:
        sections.refuse_guarded(entity, None, request.actor)
        before = str(entity.profile.fields.get("status") or "active")
        gone = ("deprecated_at", "deprecated_reason")
        marked = {"deprecated_at": iso(repo.now_us), "deprecated_reason": why} if leaves else {}
        after = edits.with_fields(entity.profile, {"status": wanted, **marked}, gone=() if leaves else gone)
        line = f"Deprecated: {why}" if leaves else f"Status: {before} → {wanted}" + (f" ({why})" if why else "")
        after = sections.finished(repo, after, "profile", [line] if before != wanted or leaves else [])
        op: Operation = "deprecate" if leaves else "status"
        return EditPlan(op=op, file="profile", after=after, text={"reason": why})

    return edit_entity(workspace, agent_id, ref, request, plan)


def guard(
    op: Guard, workspace: Workspace, agent_id: str, ref: str, section: str | None = None, **caller: Unpack[Caller]
) -> EntityResult:
    """Pins or locks a section (None: the whole entity) against an agent's writes, or takes that back.

    A pin means that the section matters as it is. Raises `UsageError`: `actor-refused` for an agent, and as
    `set_section`.
    """
    field = "pins" if op.endswith("pin") else "locks"
    request = EntityRequest.of(op, caller, {"ref": ref, "section": section}, actor="person").require_person()

    def plan(repo: EntityRepository, entity: Entity) -> EditPlan:
        everything = section is None or section.strip() == sections.WHOLE
        where = None if everything or section is None else sections.find_target(repo, entity, section)
        name = sections.guard_name(where)
        kept = [one for one in words(entity.profile.fields.get(field)) if anchor_of(one) != anchor_of(name)]
        after = edits.with_fields(entity.profile, {field: kept if op.startswith("un") else [*kept, name]})
        named = where.name if where is not None and where.file == "profile" else None
        after = sections.finished(repo, after, "profile", [])
        return EditPlan(op=op, file="profile", section=named, after=after, text={"name": name})

    return edit_entity(workspace, agent_id, ref, request, plan)


# ── proposals ──


def _proposed(
    workspace: Workspace, agent_id: str, ref: str, section: str, text: str, writer: Writer, *, appends: bool = False
) -> EntityResult:
    """Proposes a text to a person; `event_id` identifies the proposal.

    Approval does what `set_section` or `append` would have done; planning it now reports errors that it would meet.
    """
    request, said = _text_request("propose append" if appends else "propose", writer, ref, section, text)
    effect = ""

    def plan(repo: EntityRepository, entity: Entity) -> EditPlan:
        nonlocal effect
        where = sections.find_target(repo, entity, section, writer.get("expect"))
        planned = _plan_append(repo, where, said) if appends or where.form != "narrative" else _plan_set(
            repo, where, said
        )  # fmt: skip
        lines = sum(bool(line.strip()) for line in text_of(where.section).splitlines())
        effect = {"append": "adds a paragraph", "append_item": "adds an item"}.get(
            planned.op, f"replaces {counted(lines, 'line')}" if lines else "writes the first text"
        )
        proposed = {"op": planned.op, "proposed": said.text, "source": said.evidence}
        kept = {"rationale": planned.text.get("rationale"), "evidence": planned.text.get("evidence")}
        return EditPlan(
            op="propose", file=where.file, section=where.name, text=proposed | kept, warnings=planned.warnings
        )

    return edit_entity(workspace, agent_id, ref, request, plan)._replace(effect=effect)


def review(
    workspace: Workspace,
    agent_id: str,
    proposal: str,
    *,
    approve: bool,
    reason: str | None = None,
    **caller: Unpack[Caller],
) -> EntityResult:
    """Applies a proposal (given by its event's id, a prefix of it, or its `ev:…`), or closes it.

    Raises `UsageError`: `unknown-proposal`, `actor-refused`, and as `set_section`.
    """
    op: Operation = "approve" if approve else "reject"
    why = sections.clean_reason(reason)
    request = EntityRequest.of(op, caller, {"proposal": proposal, "reason": why}, actor="person").require_person()

    def act(repo: EntityRepository) -> tuple[Event, Entity]:
        found = queries.find_proposal(repo, proposal)
        entity = write.load(repo, found.entity_id)
        where = sections.find_target(repo, entity, found.section)
        facts = {"proposal": found.id}
        plan = EditPlan(op="reject", file=where.file, section=where.name, facts=facts, text={"reason": why})
        if approve:
            plan = _approved(repo, where, found, request.actor, facts, why)
        return write.write(repo, entity, plan, request.stamp(agent_id)), entity

    return run(workspace, agent_id, request, act)


def _approved(
    repo: EntityRepository,
    where: TargetSection,
    found: Proposal,
    actor: Actor,
    facts: Mapping[str, Any],
    why: str | None,
) -> EditPlan:
    said = SectionText(found.text, actor, found.rationale, found.source)
    more: dict[str, Any] = {"op": "approve", "facts": facts, "text": {"reason": why}}
    if found.op == "set":
        return _plan_set(repo, where, said, **more)
    # An item of Evidence names the proposal's event.
    return _plan_append(repo, where, said, token_of(found.id), **more)


# ── taking back ──


def undo(workspace: Workspace, agent_id: str, event: str, **caller: Unpack[Caller]) -> EntityResult:
    """Takes one edit back, given by its event's id or `ev:…`: what it changed says again what it said before.

    Later edits of other parts stay. Raises `UsageError`: `unknown-event`, `undo-refused` (it changed no text, a
    removal took the text, or a later edit changed the same passage), and as `set_section`.
    """
    wanted = next(iter(tokens_in(event)), event.strip().upper())
    request = EntityRequest.of("undo", caller, {"event": wanted})

    def act(repo: EntityRepository) -> tuple[Event, Entity]:
        found = repo.log.event(wanted)
        if found is None or found.entity_id is None:
            raise UsageError(
                f"agent {agent_id} has no event {event.strip()[:60]}", hint="entity log", code="unknown-event"
            )
        entity = write.load(repo, found.entity_id)
        return write.write(
            repo, entity, _plan_undo(repo, entity, found, request.actor), request.stamp(agent_id)
        ), entity

    return run(workspace, agent_id, request, act)


def _plan_undo(repo: EntityRepository, entity: Entity, event: Event, actor: Actor) -> EditPlan:
    parts, file = event.said(replaying.PARTS), event.file
    if not isinstance(parts, Mapping) or file is None or file not in entity.documents:
        raise UsageError("the event holds no edit that could be taken back", hint="entity log", code="undo-refused")
    document = entity.documents[file]
    names = replaying.names_of(document)
    bodies = dict(zip(names, document.sections, strict=True))
    after, named = document, [name for name in parts if name in bodies and name != "change-log"]
    for name in named:
        sections.refuse_guarded(entity, TargetSection(file, document, bodies[name], None), actor)
        at, old, new = parts[name]
        body = _taken_back(bodies[name].body, at, old, new)
        if body is None:
            raise UsageError(
                f"{bodies[name].heading} was changed again since", hint=f"entity log {entity.id}", code="undo-refused"
            )
        after = replace(
            after,
            sections=tuple(replace(one, body=body) if each == name else one
                           for each, one in zip(names, after.sections, strict=True)),
        )  # fmt: skip
    fields = _fields_before(document, event)
    if fields:
        sections.refuse_guarded(entity, None, actor)
        changed = {key: value for key, value in fields.items() if value is not _GONE}
        after = edits.with_fields(after, changed, gone=fields.keys() - changed.keys())
    if after == document:
        raise UsageError("the event holds no edit that could be taken back", hint="entity log", code="undo-refused")
    what = ", ".join(bodies[name].heading for name in named) or ", ".join(fields)
    core = sections.find_target(repo, entity, named[0]).is_core if named and file == "profile" else bool(fields)
    lines = [f"{what}: the edit of {event.at[:10]} was taken back"] if core else []
    after = sections.finished(repo, after, file, lines)
    section = named[0] if len(named) == 1 else None
    return EditPlan(op="undo", file=file, section=section, after=after, facts={"of": event.id})


_GONE = object()


def _taken_back(body: str, at: int, old: str, new: str) -> str | None:
    """Returns a section's body without a change; None if the changed passage is not there as it was left."""
    if body[at : at + len(new)] == new and (new or body[:at].endswith("\n") or not at):
        return body[:at] + old + body[at + len(new) :]
    passage, former = new.strip("\n"), old.strip("\n")
    if not passage:
        kept = body.rstrip("\n")
        return f"{kept}\n{former}{body[len(kept) :] or chr(10)}"
    found = list(re.finditer(rf"^{re.escape(passage)}$\n?", body, re.MULTILINE))
    if len(found) != 1:
        return None
    return body[: found[0].start()] + (f"{former}\n" if former else "") + body[found[0].end() :]


def _fields_before(document: EntityDocument, event: Event) -> dict[str, Any]:
    """Returns the fields that an event changed, as they were, without the time of the last change."""
    splice = (event.said(replaying.PARTS) or {}).get(replaying.HEAD)
    if not splice:
        return {}
    head = _taken_back_head(document.head, splice)
    before = document_of(head + render(document)[len(document.head) :]) if head is not None else None
    if before is None:
        return {}
    keys = (document.fields.keys() | before.fields.keys()) - {"updated_at"}
    changed = {key for key in keys if document.fields.get(key) != before.fields.get(key)}
    return {key: before.fields.get(key, _GONE) for key in sorted(changed)}


def _taken_back_head(head: str, splice: Sequence[Any]) -> str | None:
    """Returns the frontmatter without a change, whose lines about other things may have changed since."""
    _, old, new = splice
    lines = [line for line in str(new).splitlines(keepends=True) if not line.startswith("updated_at:")]
    earlier = [line for line in str(old).splitlines(keepends=True) if not line.startswith("updated_at:")]
    text = "".join(lines)
    return head.replace(text, "".join(earlier)) if text and head.count(text) == 1 else None
