"""For maintainers: settles files that drifted, and makes fields of Extensions sections of the schema."""

import difflib
import re
from collections.abc import Iterator
from dataclasses import replace as but
from typing import Any, Literal, NamedTuple

from signet_sync.entities import observe, operations, replay, sections
from signet_sync.entities import store as entities_store
from signet_sync.entities.agent_text import SafeText, blocks
from signet_sync.entities.document import (
    DocumentProblem,
    DocumentSection,
    EntityDocument,
    document_of,
    find,
    opening_of,
    parse,
    put_body,
    render,
    replace,
    with_fields,
)
from signet_sync.entities.events import Actor
from signet_sync.entities.finding import Finding
from signet_sync.entities.observe import LEDGER
from signet_sync.entities.operations import EntityResult
from signet_sync.entities.repository import EntityRepository, FileContent, version_of
from signet_sync.errors import UsageError
from signet_sync.formats.body import text_sha256
from signet_sync.formats.entity_paths import (
    COMMON,
    KINDS,
    EntityPlace,
    Kind,
    Shape,
    anchor_of,
    kind_of,
    parse_path,
    shapes,
)
from signet_sync.storage import state_dir, writing
from signet_sync.sync.workspace import Workspace
from signet_sync.text.sanitizer import redact
from signet_sync.text.sentences import flatten

# The name by which a maintainer refers to the event log itself if its end was lost.
LOG = "ledger"
Keep = Literal["file", "events"]
_EXTENSIONS = "extensions"
_ANCHOR = re.compile(r"[a-z0-9][a-z0-9-]{0,63}", re.ASCII)
_FENCE = re.compile(r"\ufeff?---[ \t]*\r?\n.*?\n---[ \t]*(?:\r?\n|\Z)", re.DOTALL)


# ── drift ──


class Resolution(NamedTuple):
    """What settling one drifted file would do: `before` is on disk (None: nothing), `after` will be."""

    drift: Finding
    before: str | None
    after: str | None

    def diff(self) -> str:
        """Returns the change as a unified diff."""
        path = self.drift.path
        old, new = ((text or "").splitlines() for text in (self.before, self.after))
        return "\n".join(difflib.unified_diff(old, new, path, path, lineterm=""))


def preview(workspace: Workspace, agent_id: str, ref: str, keep: Keep, now_us: int) -> list[Resolution]:
    """Returns what `resolve` would do with each drifted file of an entity. Raises as `resolve`."""
    with state_dir.workspace_lock(workspace.state):
        return _plan_resolutions(EntityRepository(workspace, agent_id, now_us), ref, keep)


def resolve(
    workspace: Workspace, agent_id: str, ref: str, keep: Keep, *, actor: Actor, now_us: int
) -> list[EntityResult]:
    """Ends the drift of an entity's files: the file counts, made readable again, or what the events say.

    The text that goes stays in the event log. Raises `UsageError`: `actor-refused` for any actor but a maintainer,
    `not-drifted`, `file-unreadable`, `events-incomplete` (what is to be kept does not exist).
    """
    operations.require(actor, "maintainer", "resolve drift")
    with state_dir.workspace_lock(workspace.state):
        before = entities_store.page_inputs(workspace.database, agent_id)
        repo = EntityRepository(workspace, agent_id, now_us)
        wanted = _plan_resolutions(repo, ref, keep)
        done = [_settle(repo, one) for one in wanted]
        observe.examine(repo, {one.drift.id for one in wanted} - {LEDGER}, doubtful=None)
        waiting = operations.update_page(repo, before)
        return [one._replace(waiting=waiting) for one in done]


def _plan_resolutions(repo: EntityRepository, ref: str, keep: Keep) -> list[Resolution]:
    observe.look(repo, None)
    name = ref.strip()
    # A missing entity needs its full id.
    wanted = LEDGER if name == LOG else name if kind_of(name) is not None else observe.locate(repo, name).id
    found = []
    for drift in (one for one in repo.drift() if one.id == wanted):
        place = parse_path(drift.path)
        if place is None or drift.code == "id-twice":
            found.append(Resolution(drift, None, None))
            continue
        seen, state = repo.read(place), repo.state(place.id).files.get(place.file)
        want = state.text if state is not None else None
        text = None if seen.raw is None else redact(seen.raw.decode("utf-8", "replace"))[0]
        if keep == "events" and want is None:
            message, hint = "its events do not contain the file", "keep the file, or restore the event log from a copy"
            raise UsageError(message, path=drift.path, hint=hint, code="events-incomplete")
        kept = want if keep == "events" else _repair(text, place, want) if text is not None else None
        if kept is None:
            hint = "keep the events, or correct it first"
            raise UsageError("there is no file to keep", path=drift.path, hint=hint, code="file-unreadable")
        found.append(Resolution(drift, text, kept))
    if not found:
        raise UsageError("nothing of it has drifted", hint="signet-sync entity check", code="not-drifted")
    return found


def _repair(text: str, place: EntityPlace, want: str | None) -> str | None:
    """Returns a file's text made an entity file of this entity again; None if that does not work.

    Its frontmatter and title come from the events where they cannot be read; a second section of one anchor loses it.
    """
    known = document_of(want)
    for _ in range(len(text.splitlines()) + 3):
        try:
            document = parse(text)
        except DocumentProblem as problem:
            if problem.code.startswith("frontmatter") and known is not None:
                text = known.head + _FENCE.sub("", text, count=1)
            elif problem.code == "title-missing" and known is not None:
                head = _FENCE.match(text)
                text = text[: head.end()] + known.lead + text[head.end() :].lstrip("\n") if head else known.head + text
            elif problem.code == "section-twice" and problem.line:
                lines = text.split("\n")
                del lines[problem.line]
                text = "\n".join(lines)
            else:
                return None
            continue
        version = (known or document).fields.get("schema_version")
        fields = {"kind": place.kind, "id": place.id, "agent_id": place.agent_id, "schema_version": version}
        changes = {key: value for key, value in fields.items() if document.fields.get(key) != value}
        return render(with_fields(document, changes)) if changes else text
    return None


def _settle(repo: EntityRepository, one: Resolution) -> EntityResult:
    """Records a decision, then carries it out."""
    drift, place, root = one.drift, parse_path(one.drift.path), repo.workspace.root
    document = document_of(one.after)
    if place is None or one.after is None or document is None:
        facts = {"accepted": drift.sha256} if drift.id == LEDGER else None
        event = repo.event("resolve", "maintainer", entity_id=drift.id or None, facts=facts, text={"was": drift.code})
        repo.append(event)
        if place is not None:  # a second folder of the entity: its files stay, under a name that no entity has
            name = f"{place.slug} (copy)"
            while not writing.move_away(root, place.folder, name):
                name += "+"
        with repo.workspace.database.transaction(durable=True):
            entities_store.clear_drift(repo.workspace.database, [drift.path])
            repo.remember_log_end()
        return operations.result_of(repo, event)
    seen, displaced = repo.read(place), one.before if one.before != one.after else None
    said = {replay.WHOLE: one.after, "displaced": displaced, "slug": place.slug}
    hashes = {"found": text_sha256(one.before or ""), "left": text_sha256(one.after)}
    event = repo.event("resolve", "maintainer", entity_id=place.id, file=place.file, text=said, **hashes)
    if seen.raw is None and not seen.is_gone:  # a link, a folder, a pipe is in its place
        while not writing.move_away(root, place.path, f"{place.file}.displaced-{event.id}"):
            pass
        seen = FileContent(place)
    try:
        observe.record(repo, [(event, seen, document)])
    except observe.FileChanged:
        raise observe.busy(place.path) from None
    return operations.result_of(repo, event)


# ── schema ──


class PromotedField(NamedTuple):
    """A field that became a section of a kind, as `entity promote --json` shows it; `migrated` are files."""

    id: str
    event_id: str
    kind: Kind
    section: str
    heading: str
    schema_version: int
    migrated: tuple[str, ...]


def promote(
    workspace: Workspace, agent_id: str, field: str, kind: Kind | None = None, *, actor: Actor, now_us: int
) -> PromotedField:
    """Makes `### field` of Extensions a section of a kind (None: the one kind that has it), and migrates the files.

    Running it again continues with a file that waited. Raises `UsageError`: `actor-refused` for any actor but a
    maintainer, `unknown-field`, `ambiguous-field`, `field-exists`, `field-invalid`.
    """
    operations.require(actor, "maintainer", "change the schema")
    wanted = " ".join(sections.clean(field, lines=False)[0].lstrip("#").split())
    with state_dir.workspace_lock(workspace.state):
        repo = EntityRepository(workspace, agent_id, now_us)
        observe.look(repo, None)
        ids = [row.id for row in entities_store.entities(workspace.database, agent_id)]
        kind, heading = _find_field(repo, ids, wanted, kind)
        anchor = anchor_of(heading)
        known = [
            event.id
            for event in repo.log.events('"op":"schema"')
            if event.entity_id is None and (event.said("kind"), event.said("anchor")) == (kind, anchor)
        ]
        event_id = known[0] if known else _record_rule(repo, kind, heading)
        version, shape = next((version, shape) for version, shape in repo.rules(kind) if shape.anchor == anchor)
        migrated = []
        for entity_id in (one for one in ids if kind_of(one) == kind):
            entity = observe.load_quietly(repo, entity_id)
            if entity is None or version_of(entity.profile) >= version:
                continue
            after = with_fields(_move_field(entity.profile, shape), {"schema_version": version})
            after = sections.finish(repo, after, "profile", [f"Schema {version}: {shape.heading} became a section"])
            named: dict[str, Any] = {"section": anchor, "facts": {"version": version}}
            observe.write(repo, observe.plan(repo, entity, "schema", "maintainer", "profile", after, **named))
            migrated.append(entity.place.path)
        if known and not migrated:
            message = f"{heading} is already a section of every {kind}"
            raise UsageError(message, hint="set it like any other", code="field-exists")
        return PromotedField(anchor, event_id, kind, anchor, heading, version, tuple(migrated))


def _find_field(repo: EntityRepository, ids: list[str], wanted: str, kind: Kind | None) -> tuple[Kind, str]:
    """Returns the kind and the heading of a field. Raises `UsageError` (`unknown-field`, `ambiguous-field`)."""
    found: set[tuple[Kind, str]] = set()
    for entity in filter(None, (observe.load_quietly(repo, one) for one in ids)):
        fields = (heading for heading, *_ in _fields_of(entity.profile))
        headings = [*fields, *(one.heading for one in entity.profile.sections)]
        if kind in (None, entity.place.kind):
            same = (heading for heading in headings if heading.casefold() == wanted.casefold())
            found |= {(entity.place.kind, heading) for heading in same}
    kinds = {one for one, _ in found}
    if not kinds:
        hint = "it has to be a ### heading under Extensions"
        raise UsageError(f"no entity has the field {wanted[:60]!r}", hint=hint, code="unknown-field")
    if len(kinds) > 1:
        message = f"entities of several kinds have the field: {' and '.join(one for one in KINDS if one in kinds)}"
        raise UsageError(message, hint="give --kind", code="ambiguous-field")
    return min(found)


def _record_rule(repo: EntityRepository, kind: Kind, heading: str) -> str:
    anchor = anchor_of(heading)
    if any(shape.anchor == anchor for shape in shapes(kind)):
        raise UsageError(f"{heading} is already a section of every {kind}", hint="set it", code="field-exists")
    if flatten(heading, 60) != heading or anchor.strip("-") != anchor or not _ANCHOR.fullmatch(anchor):
        hint = "name the field in letters, digits and blanks first"
        raise UsageError(f"{heading[:60]!r} cannot be the heading of a section", hint=hint, code="field-invalid")
    rule = {"kind": kind, "anchor": anchor, "heading": heading, "version": repo.version(kind) + 1}
    (event,) = repo.append(repo.event("schema", "maintainer", text=rule))
    with repo.workspace.database.transaction(durable=True):
        repo.remember_log_end()
    return event.id


def _fields_of(document: EntityDocument) -> Iterator[tuple[str, int, int]]:
    """Yields heading and lines (start, end) of each `###` field of Extensions."""
    section = next((one for one in document.sections if one.anchor == _EXTENSIONS), None)
    if section is None:
        return
    tokens = blocks(section.body)
    found = [
        (token.map[0], tokens[at + 1].content.strip())
        for at, token in enumerate(tokens)
        if token.type == "heading_open" and token.tag == "h3" and not token.level and token.map
    ]
    ends = [start for start, _ in found[1:]] + [section.body.count("\n") + 1] * bool(found)
    for (start, heading), end in zip(found, ends, strict=True):
        yield heading, start, end


def _move_field(document: EntityDocument, shape: Shape) -> EntityDocument:
    """Gives a file the section, with the field's text from Extensions, or that of a section of the same heading."""
    text, wanted = "", shape.heading.casefold()
    for start, end in ((start, end) for heading, start, end in _fields_of(document) if heading.casefold() == wanted):
        lines = find(document, _EXTENSIONS).body.split("\n")
        text = "\n".join(lines[start + 1 : end]).strip("\n")
        document = put_body(document, _EXTENSIONS, "\n".join([*lines[:start], *lines[end:]]))
        break
    found = list(document.sections)
    fresh = DocumentSection(shape.anchor, shape.heading, opening_of(shape), "\n")
    same = [at for at, one in enumerate(found) if one.heading.casefold() == wanted]
    if same:
        found[same[0]] = but(fresh, body=found[same[0]].body)
    else:
        common = {one.anchor for one in COMMON}
        found.insert(next((at for at, one in enumerate(found) if one.anchor in common), len(found)), fresh)
    document = but(document, sections=tuple(found))
    return replace(document, shape.anchor, SafeText(text)) if text.strip() else document
