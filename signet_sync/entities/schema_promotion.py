"""Extends the schema of an agent's entities: a field under Extensions becomes a section of its kind."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from signet_sync.entities import execute, observe, section_edits, write_ahead
from signet_sync.entities import store as entities_store
from signet_sync.entities.documents import edits
from signet_sync.entities.documents.document import DocumentSection, EntityDocument, blank, find
from signet_sync.entities.documents.escaping import SafeText, blocks
from signet_sync.entities.event_log.events import Actor
from signet_sync.entities.repository import Entity, EntityRepository, version_of
from signet_sync.entities.results import PromotedField
from signet_sync.entities.write_ahead import EditPlan
from signet_sync.errors import UsageError
from signet_sync.formats.entity_paths import COMMON, KINDS, Kind, Shape, anchor_of, shapes
from signet_sync.storage import state_dir
from signet_sync.sync.workspace import Workspace
from signet_sync.text.sentences import flatten

_EXTENSIONS = "extensions"
_ANCHOR = re.compile(r"[a-z0-9][a-z0-9-]{0,63}", re.ASCII)


def promote(
    workspace: Workspace, agent_id: str, field: str, kind: Kind | None = None, *, actor: Actor, now_us: int
) -> PromotedField:
    """Makes `### field` of Extensions a section of a kind (None: the one kind that has it), and migrates the files.

    Raises `UsageError`: `actor-refused` for any actor but a maintainer, `unknown-field`, `ambiguous-field`,
    `field-exists`.
    """
    if actor != "maintainer":
        raise UsageError("only a maintainer can change the schema", hint="--actor maintainer", code="actor-refused")
    wanted = " ".join(section_edits.clean_line(field).text.lstrip("#").split())
    with state_dir.workspace_lock(workspace.state):
        repo = EntityRepository(workspace, agent_id, now_us)
        observe.examine_all(repo)
        entities = list(_entities(repo))
        kind, heading = _find_field(entities, wanted, kind)
        rule = _rule(repo, kind, heading)
        event_id = rule[1] if rule else _record(repo, kind, heading)
        version, shape = _shape(repo, kind, heading)
        migrated = [entity.seen["profile"].path for entity in entities if _migrate(repo, entity, kind, version, shape)]
        if rule and not migrated:
            raise UsageError(
                f"{heading} is already a section of every {kind}", hint="set it like any other", code="field-exists"
            )
        return PromotedField(event_id, kind, shape.anchor, heading, version, tuple(migrated))


def _entities(repo: EntityRepository) -> Iterator[Entity]:
    """Yields every entity that does not wait for a maintainer."""
    waiting = {one.entity_id for one in repo.drift()}
    for row in entities_store.entities(repo.workspace.database, repo.agent_id):
        if row.id not in waiting:
            yield execute.load(repo, row.id)


def _find_field(entities: list[Entity], field: str, kind: Kind | None) -> tuple[Kind, str]:
    """Returns the kind that has the field, and its heading as written there. Raises `UsageError`."""
    found: dict[Kind, str] = {}
    for entity in entities:
        name = next((name for name, *_ in fields_of(entity.profile) if name.casefold() == field.casefold()), None)
        if name is not None and kind in (None, entity.kind):
            found.setdefault(entity.kind, name)
        for shape in entity.profile.sections:
            if shape.heading.casefold() == field.casefold() and kind in (None, entity.kind):
                found.setdefault(entity.kind, shape.heading)
    if len(found) == 1:
        return next(iter(found.items()))
    if found:
        kinds = ", ".join(one for one in KINDS if one in found)
        raise UsageError(
            f"several kinds have {field[:60]!r}: {kinds}", hint="choose one with --kind", code="ambiguous-field"
        )
    raise UsageError(
        f"no entity has `### {field[:60]}` under Extensions",
        hint="agents write new fields there first",
        code="unknown-field",
    )


def fields_of(document: EntityDocument) -> list[tuple[str, int, int]]:
    """Returns name and lines (from, to) of each `###` field of Extensions; lines count from the section's body."""
    try:
        body = find(document, _EXTENSIONS).body
    except UsageError:
        return []
    tokens = blocks(body)
    heads = [
        (tokens[at + 1].content.strip(), token.map[0])
        for at, token in enumerate(tokens)
        if token.type == "heading_open" and token.tag == "h3" and not token.level and token.map
    ]
    ends = [*(start for _, start in heads[1:]), len(body.split("\n"))][: len(heads)]
    return [(name, start, end) for (name, start), end in zip(heads, ends, strict=True)]


def _rule(repo: EntityRepository, kind: Kind, heading: str) -> tuple[int, str] | None:
    """Returns version and event of an existing rule, so that an interrupted migration continues."""
    for event in repo.log.events_holding('"op":"schema"'):
        match event.payload if event.entity_id is None else None:
            case {"kind": of, "anchor": anchor, "version": int(version)} if (of, anchor) == (kind, anchor_of(heading)):
                return version, event.id
    return None


def _shape(repo: EntityRepository, kind: Kind, heading: str) -> tuple[int, Shape]:
    return next((version, shape) for version, shape in repo.rules(kind) if shape.anchor == anchor_of(heading))


def _record(repo: EntityRepository, kind: Kind, heading: str) -> str:
    anchor = anchor_of(heading)
    if any(shape.anchor == anchor for shape in shapes(kind)):
        raise UsageError(f"{heading} is already a section of every {kind}", hint="set it", code="field-exists")
    if flatten(heading, 60) != heading or anchor.strip("-") != anchor or not _ANCHOR.fullmatch(anchor):
        raise UsageError(
            f"{heading[:60]!r} cannot be the heading of a section",
            hint="name the field in letters, digits and blanks first",
            code="field-invalid",
        )
    rule = {
        "kind": kind, "field": heading, "anchor": anchor, "heading": heading, "version": repo.version(kind) + 1
    }  # fmt: skip
    event = repo.record("schema", "maintainer", rule)
    write_ahead.update_rows(repo)
    return event.id


def _migrate(repo: EntityRepository, entity: Entity, kind: Kind, version: int, shape: Shape) -> bool:
    """Gives a file the section, with the field's text from Extensions, in an ordinary event."""
    if entity.kind != kind or version_of(entity.profile) >= version:
        return False
    after = edits.with_fields(_with_field_moved(entity, shape), {"schema_version": version})
    lines = [f"Schema {version}: {shape.heading} became a section"]
    plan = EditPlan(
        op="schema",
        file="profile",
        section=shape.anchor,
        after=section_edits.finished(repo, after, "profile", lines),
        extra={"version": version},
    )
    # Running the command again continues with a file that was being edited.
    return write_ahead.write_as("maintainer", repo, entity, plan) is not None


def _with_field_moved(entity: Entity, shape: Shape) -> EntityDocument:
    document = entity.profile
    text = ""
    named = [one for one in fields_of(document) if one[0].casefold() == shape.heading.casefold()]
    if named:
        _, start, end = named[0]
        lines = find(document, _EXTENSIONS).body.split("\n")
        text = "\n".join(lines[start + 1 : end]).strip("\n")
        body = "\n".join([*lines[:start], *lines[end:]])
        document = edits.put_body(document, _EXTENSIONS, body)
    document = replace(document, sections=_with_section(document, shape))
    return edits.replace(document, shape.anchor, SafeText(text)) if text.strip() else document


def _with_section(document: EntityDocument, shape: Shape) -> tuple[DocumentSection, ...]:
    """Returns the sections with the new one after those of its kind; one with its heading gets its anchor."""
    fresh = blank("part", title="x", entity_id="", agent_id="", created_at="", sections=(shape, shape)).sections[0]
    sections = list(document.sections)
    same = [at for at, one in enumerate(sections) if one.heading.casefold() == shape.heading.casefold()]
    if same:
        sections[same[0]] = replace(fresh, body=sections[same[0]].body)
    else:
        common = {one.anchor for one in COMMON}
        sections.insert(next((at for at, one in enumerate(sections) if one.anchor in common), len(sections)), fresh)
    return tuple(sections)
