"""Creates entities, writes their sections, prunes items, changes status, takes an edit back; proposals and guards."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Literal, Unpack

from signet_sync.entities import execute, queries, sections, write
from signet_sync.entities import replay as replaying
from signet_sync.entities import store as entities_store
from signet_sync.entities.documents import edits
from signet_sync.entities.documents.document import EntityDocument, blank, document_of, render, text_of
from signet_sync.entities.documents.escaping import SafeText, fit_title
from signet_sync.entities.events import Actor, Event, Operation, token_of, tokens_in
from signet_sync.entities.execute import Caller, EntityRequest, EntityResult, edit_entity
from signet_sync.entities.observe import FileChanged
from signet_sync.entities.repository import PATTERN, Entity, EntityRepository, FileContent, words
from signet_sync.entities.sections import SectionText, TargetSection
from signet_sync.entities.store import EntityFile
from signet_sync.entities.write import Planned, Sign, event_of
from signet_sync.errors import UsageError
from signet_sync.formats.entity_paths import FILES, EntityPlace, File, Kind, anchor_of, new_id, slug_of
from signet_sync.formats.paths import wikilink
from signet_sync.formats.timestamps import iso
from signet_sync.sync.workspace import Workspace
from signet_sync.text.phrases import count_noun
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


def _request(
    caller: Caller, fields: Mapping[str, Any], redactions: Mapping[str, int] | None = None, *, actor: Actor = "agent"
) -> EntityRequest:
    """Makes the request of a call; `actor` is the one that most often makes such a request."""
    return EntityRequest(caller.get("actor", actor), caller["now_us"], caller.get("key"), fields, redactions or {})


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
    named, redactions = sections.clean(name, lines=False)
    edge = None if relation is None else flatten(sections.clean(relation, lines=False)[0], 60)
    fields = {"op": "create", "kind": kind, "name": named, "relation": edge, "between": list(between)}
    request = _request(caller, fields, redactions)

    def act(repo: EntityRepository, sign: Sign) -> Event:
        title = fit_title(named)
        members, slug = _members(repo, kind, edge, between), slug_of(title)
        _refuse_second(repo, kind, title, slug, edge, members)
        place = EntityPlace(agent_id, kind, slug, _unused_id(repo, kind, slug, edge, members))
        of_edge: dict[str, Any] = {"relation": edge, "participants": [row.id for row in members]}
        version, named_as = repo.version(kind), {"title": title, "entity_id": place.id, "agent_id": agent_id}
        of_edge |= {"schema_version": version, "created_at": iso(repo.now_us), **named_as}
        documents: dict[File, EntityDocument] = {
            file: blank(kind, file=file, sections=repo.shapes(kind, file, version), **of_edge) for file in FILES
        }
        for row in members:
            link = SafeText(wikilink(row.path, row.title))
            documents["profile"] = edits.append_item(documents["profile"], "participants", link)
        documents["profile"] = sections.finished(repo, documents["profile"], "profile", ["Created"])
        entity = Entity(place, {file: FileContent(place._replace(file=file)) for file in FILES})
        events = [
            event_of(repo, entity, "create", request.actor, file, document, text={"slug": slug})
            for file, document in documents.items()
        ]
        events[0] = sign(events[0])
        writes = zip(events, entity.files.values(), documents.values(), strict=True)
        with suppress(FileChanged):  # somebody made a file in its place: the next look says what it is
            write.record(repo, list(writes))
        return events[0]

    return execute.run(workspace, agent_id, request, act)


def _members(repo: EntityRepository, kind: Kind, relation: str | None, between: Sequence[str]) -> list[EntityFile]:
    """Returns the participants of a relationship. Raises `UsageError` (`relation-needed`, `unknown-entity`)."""
    if kind != "relationship":
        if relation is not None or between:
            message = f"a {kind} has no type and no participants"
            raise UsageError(message, hint="omit type and between", code="relation-unfit")
        return []
    found = {row.id: row for row in (write.locate(repo, ref) for ref in between)}
    if len(found) < 2 or not relation or not any(map(str.isalnum, relation)):
        message, hint = "a relationship needs a type and two entities", "--type protects --between ID ID"
        raise UsageError(message, hint=hint, code="relation-needed")
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
    return _write("set", workspace, agent_id, ref, section, text, writer)


def append(
    workspace: Workspace, agent_id: str, ref: str, section: str, text: str, **writer: Unpack[Writer]
) -> EntityResult:
    """Appends a paragraph to a narrative section or an item to a list; Evidence quotes `evidence` (`PATH#LINE`).

    Raises as `set_section`, and `UsageError` `evidence-cap` for an eighth item of Evidence without a rationale.
    """
    return _write("append", workspace, agent_id, ref, section, text, writer)


def _write(
    op: str, workspace: Workspace, agent_id: str, ref: str, section: str, text: str, writer: Writer
) -> EntityResult:
    """Writes a text into a section, or proposes it to a person: then `event_id` identifies the proposal.

    Approval does what would have been done; planning it now reports errors that it would meet.
    """
    said, redactions = sections.clean(text)
    empties = op == "set" and not said.strip()
    proposes = bool(writer.get("propose")) and not empties
    why = sections.clean_reason(writer.get("reason"), required=empties)
    given = {name: writer.get(name) for name in ("rationale", "evidence", "expect", "reason")}
    fields = {"op": f"propose {op}" if proposes else op, "ref": ref, "section": section, "text": said, **given}
    request = _request(writer, fields, redactions)
    wanted = SectionText(op, said, writer.get("rationale"), writer.get("evidence"))

    def plan(repo: EntityRepository, entity: Entity) -> Planned:
        where, actor = sections.find_target(repo, entity, section, writer.get("expect")), request.actor
        if not proposes:
            sections.refuse_guarded(entity, where, actor)
        if empties:
            sections.require_narrative(where)
            after, line = (
                edits.replace(where.document, where.name, SafeText("")),
                f"{where.section.heading} emptied: {why}",
            )
            more: dict[str, Any] = {"material": line, "text": {"reason": why}}
            return sections.plan_edit(repo, entity, where, after, op="clear", actor=actor, **more)
        if not proposes:
            return sections.plan_text(repo, entity, where, wanted, actor)
        of_form = replace(wanted, op=op if where.form == "narrative" else "append")
        planned, _ = sections.plan_text(repo, entity, where, of_form, actor)
        lines = sum(bool(line.strip()) for line in text_of(where.section).splitlines())
        effect = {"append": "adds a paragraph", "append_item": "adds an item"}.get(
            planned.op, f"replaces {count_noun(lines, 'line')}" if lines else "writes the first text"
        )
        proposed = {"op": planned.op, "proposed": said, "source": wanted.evidence, "effect": effect}
        proposed |= {name: planned.said(name) for name in ("rationale", "evidence", "warnings")}
        return event_of(repo, entity, "propose", actor, where.file, section=where.name, text=proposed), None

    return edit_entity(workspace, agent_id, ref, request, plan)


def prune(
    workspace: Workspace, agent_id: str, ref: str, section: str, item: str, *, reason: str, **caller: Unpack[Caller]
) -> EntityResult:
    """Removes an item (by key or number) from a list section; the event keeps its text. Raises as `set_section`.

    A pattern in a user's Overview can be pruned, too; it does not come back.
    """
    why = sections.clean_reason(reason, required=True)
    request = _request(caller, {"op": "prune", "ref": ref, "section": section, "item": item, "reason": why})

    def plan(repo: EntityRepository, entity: Entity) -> Planned:
        where = sections.find_target(repo, entity, section)
        sections.refuse_guarded(entity, where, request.actor)
        named = [one for one in edits.items(where.section) if item in (one.key, str(one.number))]
        if where.form != "list" and not any(one.text.startswith(PATTERN) for one in named):
            hint = "only list items can be pruned; replace a narrative with entity set"
            raise UsageError(f"{where.section.heading} is not a list", hint=hint, code="section-form")
        after, gone = edits.prune_item(where.document, where.name, item)
        said = {"reason": why, "gone": gone}
        return sections.plan_edit(repo, entity, where, after, op="prune_item", actor=request.actor, text=said)

    return edit_entity(workspace, agent_id, ref, request, plan)


# ── the whole entity ──


def set_status(
    workspace: Workspace, agent_id: str, ref: str, status: str, *, reason: str | None = None, **caller: Unpack[Caller]
) -> EntityResult:
    """Sets an entity's status, a word or a few; `deprecated` needs a reason. Raises as `set_section`."""
    wanted = flatten(sections.clean(status, lines=False)[0], _STATUS_LENGTH).casefold()
    if not any(map(str.isalnum, wanted)):
        raise UsageError("the status is empty", hint="use a word: active, resting, …", code="text-empty")
    leaves = wanted == DEPRECATED
    why = sections.clean_reason(reason, required=leaves)
    request = _request(caller, {"op": "status", "ref": ref, "status": wanted, "reason": why})

    def plan(repo: EntityRepository, entity: Entity) -> Planned:
        sections.refuse_guarded(entity, None, request.actor)
        before = str(entity.profile.fields.get("status") or "active")
        gone = ("deprecated_at", "deprecated_reason")
        marked = {"deprecated_at": iso(repo.now_us), "deprecated_reason": why} if leaves else {}
        after = edits.with_fields(entity.profile, {"status": wanted, **marked}, gone=() if leaves else gone)
        line = f"Deprecated: {why}" if leaves else f"Status: {before} → {wanted}" + (f" ({why})" if why else "")
        after = sections.finished(repo, after, "profile", [line] if before != wanted or leaves else [])
        op: Operation = "deprecate" if leaves else "status"
        return event_of(repo, entity, op, request.actor, "profile", after, text={"reason": why}), after

    return edit_entity(workspace, agent_id, ref, request, plan)


def guard(
    op: Guard, workspace: Workspace, agent_id: str, ref: str, section: str | None = None, **caller: Unpack[Caller]
) -> EntityResult:
    """Pins or locks a section (None: the whole entity) against an agent's writes, or takes that back.

    A pin means that the section matters as it is. Raises `UsageError`: `actor-refused` for an agent, and as
    `set_section`.
    """
    field = "pins" if op.endswith("pin") else "locks"
    request = _request(caller, {"op": op, "ref": ref, "section": section}, actor="person")
    execute.require(request.actor, "person", op)

    def plan(repo: EntityRepository, entity: Entity) -> Planned:
        everything = section is None or section.strip() == sections.WHOLE
        where = None if everything or section is None else sections.find_target(repo, entity, section)
        name = sections.guard_name(where)
        kept = [one for one in words(entity.profile.fields.get(field)) if anchor_of(one) != anchor_of(name)]
        after = edits.with_fields(entity.profile, {field: kept if op.startswith("un") else [*kept, name]})
        named = where.name if where is not None and where.file == "profile" else None
        after = sections.finished(repo, after, "profile", [])
        event = event_of(repo, entity, op, request.actor, "profile", after, section=named, text={"name": name})
        return event, after

    return edit_entity(workspace, agent_id, ref, request, plan)


# ── proposals ──


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
    request = _request(caller, {"op": op, "proposal": proposal, "reason": why}, actor="person")
    execute.require(request.actor, "person", op)

    def act(repo: EntityRepository, sign: Sign) -> Event:
        found = queries.find_proposal(repo, proposal)
        entity = write.load(repo, found.entity_id)
        where = sections.find_target(repo, entity, found.section)
        more: dict[str, Any] = {"facts": {"proposal": found.id}, "text": {"reason": why}}
        if approve:
            said = SectionText("set" if found.op == "set" else "append", found.text, found.rationale, found.source)
            # An item of Evidence names the proposal's event.
            more |= {"token": token_of(found.id), "op": "approve"}
            planned = sections.plan_text(repo, entity, where, said, request.actor, **more)
        else:
            planned = event_of(repo, entity, "reject", request.actor, where.file, section=where.name, **more), None
        return write.write(repo, entity, planned, sign)

    return execute.run(workspace, agent_id, request, act)


# ── taking back ──


def undo(workspace: Workspace, agent_id: str, event: str, **caller: Unpack[Caller]) -> EntityResult:
    """Takes one edit back, given by its event's id or `ev:…`: what it changed says again what it said before.

    Later edits of other parts stay. Raises `UsageError`: `unknown-event`, `undo-refused` (it changed no text, a
    removal took the text, or a later edit changed the same passage), and as `set_section`.
    """
    wanted = next(iter(tokens_in(event)), event.strip().upper())
    request = _request(caller, {"op": "undo", "event": wanted})

    def act(repo: EntityRepository, sign: Sign) -> Event:
        found = repo.log.event(wanted)
        if found is None or found.entity_id is None:
            message = f"agent {agent_id} has no event {event.strip()[:60]}"
            raise UsageError(message, hint="entity log", code="unknown-event")
        entity = write.load(repo, found.entity_id)
        return write.write(repo, entity, _plan_undo(repo, entity, found, request.actor), sign)

    return execute.run(workspace, agent_id, request, act)


def _plan_undo(repo: EntityRepository, entity: Entity, event: Event, actor: Actor) -> Planned:
    file: File = event.file or "profile"
    after, parts = entity.files[file].document, replaying.parts_of(event)
    nothing = UsageError("the event holds no edit that could be taken back", hint="entity log", code="undo-refused")
    if after is None or not parts:
        raise nothing
    document, shapes = after, {shape.anchor: shape for shape in repo.shapes(entity.place.kind, file, after)}
    bodies = dict(zip(replaying.names_of(document), document.sections, strict=True))
    where = {
        name: TargetSection(file, document, bodies[name], shapes.get(bodies[name].anchor or ""))
        for name in parts
        if name in bodies and name != "change-log"
    }
    for name, target in where.items():
        sections.refuse_guarded(entity, target, actor)
        body = _taken_back(target.section.body, *parts[name])
        if body is None:
            message = f"{target.section.heading} was changed again since"
            raise UsageError(message, hint=f"entity log {entity.id}", code="undo-refused")
        bodies[name] = replace(target.section, body=body)
    after = replace(document, sections=tuple(bodies.values()))
    fields = _fields_before(document, parts)
    if fields:
        sections.refuse_guarded(entity, None, actor)
        changed = {key: value for key, value in fields.items() if value is not _GONE}
        after = edits.with_fields(after, changed, gone=fields.keys() - changed.keys())
    if after == document:
        raise nothing
    what = ", ".join(target.section.heading for target in where.values()) or ", ".join(fields)
    is_core = next((target.is_core for target in where.values()), bool(fields))
    lines = [f"{what}: the edit of {event.at[:10]} was taken back"] if is_core else []
    after = sections.finished(repo, after, file, lines)
    section = next(iter(where)) if len(where) == 1 else None
    return event_of(repo, entity, "undo", actor, file, after, section=section, facts={"of": event.id}), after


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


def _fields_before(document: EntityDocument, parts: Mapping[str, tuple[int, str, str]]) -> dict[str, Any]:
    """Returns the fields that an event changed, as they were, without the time of the last change.

    Nothing if their lines have changed since; lines about other fields may have.
    """
    _, *texts = parts.get(replaying.HEAD, (0, "", ""))
    old, new = (
        "".join(line for line in text.splitlines(keepends=True) if not line.startswith("updated_at:")) for text in texts
    )
    if not new or document.head.count(new) != 1:
        return {}
    before = document_of(document.head.replace(new, old) + render(document)[len(document.head) :])
    if before is None:
        return {}
    keys = (document.fields.keys() | before.fields.keys()) - {"updated_at"}
    changed = {key for key in keys if document.fields.get(key) != before.fields.get(key)}
    return {key: before.fields.get(key, _GONE) for key in sorted(changed)}
