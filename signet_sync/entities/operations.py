"""Creates entities, writes their sections, prunes items, changes status, takes an edit back; proposals and guards.

Each operation is done once for a key, under the workspace's lock; patterns of relationships and MEMORY.md follow it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal, NamedTuple, Required, TypedDict, Unpack

from signet_sync.entities import document, observe, own_edits, queries, replay, sections
from signet_sync.entities import store as entities_store
from signet_sync.entities.agent_text import SafeText, fit_title
from signet_sync.entities.document import EntityDocument, blank
from signet_sync.entities.events import Actor, Event, Operation, canonical, token_of
from signet_sync.entities.observe import Write
from signet_sync.entities.repository import PATTERN, Entity, EntityRepository, FileContent, words
from signet_sync.entities.store import EntityFile, fold
from signet_sync.errors import UsageError
from signet_sync.formats.body import text_sha256
from signet_sync.formats.entity_paths import FILES, EntityPlace, File, Kind, anchor_of, kind_of, new_id, slug_of
from signet_sync.formats.paths import head_page, wikilink
from signet_sync.formats.timestamps import iso
from signet_sync.storage import state_dir
from signet_sync.sync import deriving, engine
from signet_sync.sync.workspace import Request, Workspace
from signet_sync.text.sentences import flatten

Guard = Literal["pin", "unpin", "lock", "unlock"]
DEPRECATED = "deprecated"
_STATUS_LENGTH = 40
_NO_SECTIONS = (replay.HEAD, replay.LEAD, replay.LOG)


class Caller(TypedDict, total=False):
    """Who asks, and when (microseconds since 1970 UTC); an idempotency `key` makes a repeated request harmless."""

    actor: Actor
    now_us: Required[int]
    key: str | None


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


class EntityResult(NamedTuple):
    """A recorded operation: entity, event, its `ev:…`, and the file it concerns.

    `before` and `after` are hashes of the section (None without one): `after` is what the next edit may `expect`.
    `replayed`: it was done earlier under the same idempotency key. `waiting` is the reason why MEMORY.md does not show
    it yet.
    """

    id: str
    event_id: str
    section: str | None
    before: str | None
    after: str | None
    warnings: tuple[str, ...]
    path: str
    token: str
    replayed: bool = False
    redactions: Mapping[str, int] = {}
    waiting: str = ""

    def document(self) -> dict[str, Any]:
        """Returns the JSON document of the result."""
        return {name: value for name, value in self._asdict().items() if name != "waiting"}


# ── a request ──


def require(actor: Actor, who: str, what: str) -> None:
    """Raises `UsageError` (`actor-refused`) unless a maintainer, or at least a person, asks for it."""
    if actor not in (("maintainer",) if who == "maintainer" else ("person", "maintainer")):
        raise UsageError(f"only a {who} can {what}", hint=f"--actor {who}", code="actor-refused")


def _run(
    workspace: Workspace,
    agent_id: str,
    caller: Caller,
    fields: Mapping[str, Any],
    plan: Callable[[EntityRepository], Sequence[Write]],
    redactions: Mapping[str, int] | None = None,
) -> EntityResult:
    """Carries out what `plan` returns, once for an idempotency key; `fields` are all that makes two requests equal."""
    key, now_us, request = caller.get("key"), caller["now_us"], None
    if key is not None:  # it may contain anything: events store only its digest
        key = text_sha256(f"entity\n{agent_id}\n{key}")
        request = text_sha256(canonical({"actor": caller["actor"], **fields}))
    with state_dir.workspace_lock(workspace.state):
        before = entities_store.page_inputs(workspace.database, agent_id)
        if deriving.stale(workspace.database, workspace.pipeline):
            # The vault was not scanned yet, but evidence refers to its files, and the page shows them.
            engine.run_locked(workspace, Request(now_us=now_us))
        repo = EntityRepository(workspace, agent_id, now_us)
        observe.look(repo)
        known = repo.log.events(f'"key":"{key}"') if key is not None else []
        for event in (one for one in known if one.key == key):
            if event.request != request:
                message, hint = "this idempotency key was used for another request", "use a different key for each"
                raise UsageError(message, hint=f"{hint} request", code="idempotency-conflict")
            return result_of(repo, event)._replace(replayed=True)
        (event, seen, after), *more = plan(repo)
        event = replace(event, key=key, request=request)
        observe.write(repo, (event, seen, after), *more)
        if kind_of(event.entity_id or "") != "part" or event.op in ("deprecate", "status"):
            own_edits.update_patterns(repo)
        done = result_of(repo, event)
        return done._replace(redactions=dict(redactions or {}), waiting=update_page(repo, before))


def update_page(repo: EntityRepository, before: frozenset[tuple[object, ...]]) -> str:
    """Updates MEMORY.md if its lines about entities changed; returns why it has to wait, or an empty string."""
    workspace, page = repo.workspace, head_page(repo.agent_id)
    if entities_store.page_inputs(workspace.database, repo.agent_id) == before:
        return ""
    outcome = engine.run_locked(workspace, Request(now_us=repo.now_us, paths=frozenset({page}), resume=False))
    if outcome.held:
        return f"{page} was not updated: {outcome.held}"
    return f"{page} will be updated by the next pass: {outcome.trouble[0]}" if outcome.trouble else ""


def result_of(repo: EntityRepository, event: Event) -> EntityResult:
    """Makes the answer for an event."""
    file: File = event.file or "profile"
    rows = entities_store.files_of(repo.workspace.database, repo.agent_id, event.entity_id or "")
    section = f"notes/{event.section}" if event.section is not None and file == "notes" else event.section
    path, warnings = next((row.path for row in rows if row.file == file), ""), tuple(event.text_part("warnings") or ())
    of_section = section, event.before, event.after
    return EntityResult(event.entity_id or "", event.id, *of_section, warnings, path, event.token)


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
    actor = caller.setdefault("actor", "agent")
    named, redactions = sections.clean(name, lines=False)
    edge = None if relation is None else flatten(sections.clean(relation, lines=False)[0], 60)

    def plan(repo: EntityRepository) -> list[Write]:
        title = fit_title(named)
        members, slug = _find_members(repo, kind, edge, between), slug_of(title)
        _refuse_second(repo, kind, title, slug, edge, members)
        # A name may be used again, an id never.
        seed = [agent_id, edge or "", *sorted(row.id for row in members)] if members else [agent_id, slug]
        ids = (new_id(kind, *seed, *([str(number)] if number else [])) for number in range(10_000))
        unused = next((one for one in ids if not repo.log.events_of(one) and not repo.places([one])), None)
        if unused is None:
            raise UsageError("no id is left for this name", hint="choose another name", code="entity-exists")
        given: dict[str, Any] = {"title": title, "entity_id": unused, "agent_id": agent_id}
        given |= {"relation": edge, "participants": [row.id for row in members], "created_at": iso(repo.now_us)}
        documents: dict[File, EntityDocument] = {file: blank(kind, file=file, **given) for file in FILES}
        profile = documents["profile"]
        for row in members:
            profile = document.append_item(profile, "participants", SafeText(wikilink(row.path, row.title)))
        documents["profile"] = sections.finish(repo, profile, "profile", ["Created"])
        place = EntityPlace(agent_id, kind, slug, unused)
        entity = Entity(place, {file: FileContent(place._replace(file=file)) for file in FILES})
        return [observe.plan(repo, entity, "create", actor, file, made) for file, made in documents.items()]

    fields = {"op": "create", "kind": kind, "name": named, "relation": edge, "between": list(between)}
    return _run(workspace, agent_id, caller, fields, plan, redactions)


def _find_members(repo: EntityRepository, kind: Kind, relation: str | None, between: Sequence[str]) -> list[EntityFile]:
    """Returns the participants of a relationship. Raises `UsageError` (`relation-needed`, `unknown-entity`)."""
    if kind != "relationship":
        if relation is not None or between:
            message = f"a {kind} has no type and no participants"
            raise UsageError(message, hint="omit type and between", code="relation-unfit")
        return []
    found = {row.id: row for row in (observe.locate(repo, ref) for ref in between)}
    if len(found) < 2 or not relation or not any(map(str.isalnum, relation)):
        message, hint = "a relationship needs a type and two entities", "--type protects --between ID ID"
        raise UsageError(message, hint=hint, code="relation-needed")
    if any(row.kind == "relationship" for row in found.values()):
        raise UsageError("a relationship is between users and parts", hint="name two", code="relation-needed")
    return list(found.values())


def _refuse_second(
    repo: EntityRepository, kind: Kind, title: str, slug: str, relation: str | None, members: Sequence[EntityFile]
) -> None:
    """Refuses a second entity of a name, or relationship of a pair and type. Deprecated ones do not count."""

    for row in entities_store.entities(repo.workspace.database, repo.agent_id):
        if row.kind != kind or row.status == DEPRECATED:
            continue
        if kind == "relationship":
            same = set(row.participants) == {r.id for r in members} and fold(row.type or "") == fold(relation or "")
        else:
            same = row.slug == slug or fold(row.title) == fold(title)
        if same:
            hint = f"change it by its id: {row.id}"
            raise UsageError(f"{row.title} already exists", path=row.path, hint=hint, code="entity-exists")


# ── sections ──


def _write(
    op: str, workspace: Workspace, agent_id: str, ref: str, section: str, text: str, **writer: Unpack[Writer]
) -> EntityResult:
    """Writes a text into a section, or proposes it to a person: then `event_id` identifies the proposal.

    `ref` is an id, a prefix of one, a slug or a title; `section` an anchor or heading, for notes with the prefix
    `notes/`. Approval does what would have been done; planning it now reports errors that it would meet. Raises
    `UsageError`: `unknown-entity`, `ambiguous-entity`, `section-unknown`, `section-changed`, `section-form` (a list or
    log), `section-locked`, `section-pinned`, `section-cap` (no rationale), `evidence-cap`, `reason-missing`,
    `entity-drifted`, `idempotency-conflict`.
    """
    actor = writer.setdefault("actor", "agent")
    said, redactions = sections.clean(text)
    empties = op == "set" and not said.strip()
    proposes = bool(writer.get("propose")) and not empties
    why = sections.clean_reason(writer.get("reason"), required=empties)
    rationale, source = writer.get("rationale"), writer.get("evidence")

    def plan(repo: EntityRepository) -> list[Write]:
        entity = observe.load(repo, ref)
        where = sections.find_target(entity, section, writer.get("expect"))
        if not proposes:
            sections.refuse_guarded(entity, where, actor)
        if empties:
            sections.require_narrative(where)
            after = document.replace(where.document, where.section.name, SafeText(""))
            more: dict[str, Any] = {"material": f"{where.section.heading} emptied: {why}", "text": {"reason": why}}
            return [sections.plan_edit(repo, where, after, "clear", actor, **more)]
        replaces = op == "set" and (where.form == "narrative" or not proposes)
        planned = sections.plan_text(repo, where, said, actor, replaces=replaces, source=source, rationale=rationale)
        if not proposes:
            return [planned]
        event, *_ = planned
        proposed = {"op": event.op, "proposed": said, "source": source}
        proposed |= {name: event.text_part(name) for name in ("rationale", "evidence", "warnings")}
        return [observe.plan(repo, entity, "propose", actor, where.file, section=where.section.name, text=proposed)]

    given = {name: writer.get(name) for name in ("rationale", "evidence", "expect", "reason")}
    fields = {"op": f"propose {op}" if proposes else op, "ref": ref, "section": section, "text": said, **given}
    return _run(workspace, agent_id, writer, fields, plan, redactions)


# Replaces the text of a narrative section; an empty text with a reason empties it.
set_section = partial(_write, "set")
# Appends a paragraph to a narrative section or an item to a list; Evidence quotes `evidence` (`PATH#LINE`).
append = partial(_write, "append")


def prune(
    workspace: Workspace, agent_id: str, ref: str, section: str, item: str, *, reason: str, **caller: Unpack[Caller]
) -> EntityResult:
    """Removes an item (by key or number) from a list section; the event keeps its text. Raises as `set_section`.

    A pattern in a user's Overview can be pruned, too; it does not come back.
    """
    actor, why = caller.setdefault("actor", "agent"), sections.clean_reason(reason, required=True)

    def plan(repo: EntityRepository) -> list[Write]:
        where = sections.find_target(observe.load(repo, ref), section)
        sections.refuse_guarded(where.entity, where, actor)
        named = [one for one in document.items(where.section) if item in (one.key, str(one.number))]
        if where.form != "list" and not any(one.text.startswith(PATTERN) for one in named):
            hint = "only list items can be pruned; replace a narrative with entity set"
            raise UsageError(f"{where.section.heading} is not a list", hint=hint, code="section-form")
        after, gone = document.prune_item(where.document, where.section.name, item)
        return [sections.plan_edit(repo, where, after, "prune_item", actor, text={"reason": why, "gone": gone})]

    fields = {"op": "prune", "ref": ref, "section": section, "item": item, "reason": why}
    return _run(workspace, agent_id, caller, fields, plan)


# ── the whole entity ──


def set_status(
    workspace: Workspace, agent_id: str, ref: str, status: str, *, reason: str | None = None, **caller: Unpack[Caller]
) -> EntityResult:
    """Sets an entity's status, a word or a few; `deprecated` needs a reason. Raises as `set_section`."""
    actor = caller.setdefault("actor", "agent")
    wanted = flatten(sections.clean(status, lines=False)[0], _STATUS_LENGTH).casefold()
    if not any(map(str.isalnum, wanted)):
        raise UsageError("the status is empty", hint="use a word: active, resting, …", code="text-empty")
    leaves = wanted == DEPRECATED
    why = sections.clean_reason(reason, required=leaves)

    def plan(repo: EntityRepository) -> list[Write]:
        entity = observe.load(repo, ref)
        sections.refuse_guarded(entity, None, actor)
        before = str(entity.profile.fields.get("status") or "active")
        gone = () if leaves else ("deprecated_at", "deprecated_reason")
        marked = {"deprecated_at": iso(repo.now_us), "deprecated_reason": why} if leaves else {}
        after = document.with_fields(entity.profile, {"status": wanted, **marked}, gone=gone)
        line = f"Deprecated: {why}" if leaves else f"Status: {before} → {wanted}" + (f" ({why})" if why else "")
        after = sections.finish(repo, after, "profile", [line] if before != wanted or leaves else [])
        op: Operation = "deprecate" if leaves else "status"
        return [observe.plan(repo, entity, op, actor, "profile", after, text={"reason": why})]

    return _run(workspace, agent_id, caller, {"op": "status", "ref": ref, "status": wanted, "reason": why}, plan)


def guard(
    op: Guard, workspace: Workspace, agent_id: str, ref: str, section: str | None = None, **caller: Unpack[Caller]
) -> EntityResult:
    """Pins or locks a section (None: the whole entity) against an agent's writes, or takes that back.

    A pin means that the section matters as it is. Raises `UsageError`: `actor-refused` for an agent, and as
    `set_section`.
    """
    field, actor = "pins" if op.endswith("pin") else "locks", caller.setdefault("actor", "person")
    require(actor, "person", op)

    def plan(repo: EntityRepository) -> list[Write]:
        entity, where = observe.load(repo, ref), None
        if section is not None and section.strip() != sections.WHOLE:
            where = sections.find_target(entity, section)
        name = sections.WHOLE if where is None else where.guard_name
        kept = [one for one in words(entity.profile.fields.get(field)) if anchor_of(one) != anchor_of(name)]
        after = document.with_fields(entity.profile, {field: kept if op.startswith("un") else [*kept, name]})
        after = sections.finish(repo, after, "profile", [])
        named = where.section.name if where is not None and where.file == "profile" else None
        return [observe.plan(repo, entity, op, actor, "profile", after, section=named, text={"name": name})]

    return _run(workspace, agent_id, caller, {"op": op, "ref": ref, "section": section}, plan)


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
    why, actor = sections.clean_reason(reason), caller.setdefault("actor", "person")
    require(actor, "person", op)

    def plan(repo: EntityRepository) -> list[Write]:
        found = queries.find_proposal(repo, proposal)
        where = sections.find_target(observe.load(repo, found.entity_id), found.section)
        facts, said = {"proposal": found.id}, {"reason": why}
        if not approve:
            name = where.section.name
            return [observe.plan(repo, where.entity, op, actor, where.file, section=name, facts=facts, text=said)]
        # An item of Evidence names the proposal's event.
        more: dict[str, Any] = {"source": found.source, "rationale": found.rationale, "token": token_of(found.id)}
        more |= {"replaces": found.op == "set", "facts": facts}
        return [sections.plan_text(repo, where, found.text, actor, op=op, said=said, **more)]

    return _run(workspace, agent_id, caller, {"op": op, "proposal": proposal, "reason": why}, plan)


# ── taking back ──


def undo(workspace: Workspace, agent_id: str, event: str, **caller: Unpack[Caller]) -> EntityResult:
    """Takes one edit back, given by its `ev:…`: the passages of sections that it changed are what they were before.

    Raises `UsageError`: `token-invalid`, `unknown-event`, `undo-refused` (it changed no section, a removal took the
    text, or a later edit changed the same passage), and as `set_section`.
    """
    actor = caller.setdefault("actor", "agent")

    def plan(repo: EntityRepository) -> list[Write]:
        taken = queries.source(repo, event).event
        changed = {name: part for name, part in replay.parts_of(taken).items() if name not in _NO_SECTIONS}
        if not changed:
            raise UsageError("the event holds no edit of a section", hint="entity log", code="undo-refused")
        entity, file = observe.load(repo, taken.entity_id or ""), taken.file or "profile"
        before = entity.files[file].document
        assert before is not None  # a file that is gone waits for a maintainer
        within = dict(zip(replay.names_of(before), before.sections, strict=True))
        warnings, rewritten = list[str](), list[str]()
        for name, part in changed.items():
            where = sections.target_of(entity, file, before, within[name]) if name in within else None
            sections.refuse_guarded(entity, where, actor)
            body = replay.take_back(where.section.body, *part) if where is not None else None
            if where is None or body is None:
                hint = f"entity log {entity.place.id} has the text before and after"
                raise UsageError(f"{name} was changed again since", hint=hint, code="undo-refused")
            within[name] = replace(where.section, body=body)
            warnings += sections.growth(where, within[name], actor)
            rewritten += [where.section.heading] if where.is_core else []
        lines = [f"{', '.join(rewritten)}: the edit of {taken.at[:10]} was taken back"] if rewritten else []
        after = sections.finish(repo, replace(before, sections=tuple(within.values())), file, lines)
        of: dict[str, Any] = {"facts": {"of": taken.id}, "text": {"warnings": warnings}}
        of["section"] = within[next(iter(changed))].name if len(changed) == 1 else None
        return [observe.plan(repo, entity, "undo", actor, file, after, **of)]

    return _run(workspace, agent_id, caller, {"op": "undo", "event": event}, plan)
