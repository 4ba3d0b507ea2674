"""For maintainers: settles files that drifted, and makes fields of Extensions sections of the schema."""

import difflib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from signet_sync.entities import execute, observe, sections, write
from signet_sync.entities import replay as replaying
from signet_sync.entities import store as entities_store
from signet_sync.entities.documents import edits
from signet_sync.entities.documents.document import (
    DocumentProblem,
    DocumentSection,
    EntityDocument,
    document_of,
    find,
    opening_of,
    parse,
    render,
)
from signet_sync.entities.documents.escaping import SafeText, blocks
from signet_sync.entities.events import Actor
from signet_sync.entities.execute import EntityRequest, EntityResult
from signet_sync.entities.observe import LEDGER
from signet_sync.entities.repository import Entity, EntityRepository, FileContent, version_of
from signet_sync.entities.store import DriftedFile
from signet_sync.entities.write import EditPlan
from signet_sync.errors import UsageError
from signet_sync.formats.body import text_sha256, utf8
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
from signet_sync.storage import rename, state_dir
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

    drift: DriftedFile
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
        repo = EntityRepository(workspace, agent_id, now_us)
        observe.look(repo, None)
        return [_resolution(repo, drift, keep) for drift in _queued(repo, ref)]


def resolve(
    workspace: Workspace, agent_id: str, ref: str, keep: Keep, *, actor: Actor, now_us: int
) -> list[EntityResult]:
    """Ends the drift of an entity's files: the file counts, made readable again, or what the events say.

    The text that goes stays in the event log. Raises `UsageError`: `actor-refused` for any actor but a maintainer,
    `not-drifted`, `file-unreadable`, `events-incomplete` (what is to be kept does not exist).
    """
    EntityRequest("resolve drift", actor, now_us, None, {}).require_maintainer()
    with state_dir.workspace_lock(workspace.state):
        before = entities_store.page_inputs(workspace.database, agent_id)
        repo = EntityRepository(workspace, agent_id, now_us)
        observe.look(repo, None)
        wanted = [_resolution(repo, drift, keep) for drift in _queued(repo, ref)]
        done = [_settled(repo, one) for one in wanted]
        observe.examine(repo, {one.drift.entity_id for one in wanted} - {LEDGER}, doubtful=None)
        waiting = execute.update_page(repo, before)
        return [one._replace(waiting=waiting) for one in done]


def _queued(repo: EntityRepository, ref: str) -> list[DriftedFile]:
    name = ref.strip()
    # A missing entity needs its full id.
    wanted = name if kind_of(name) is not None or name == LOG else write.locate(repo, name).id
    wanted = LEDGER if name == LOG else wanted
    found = [one for one in repo.drift() if one.entity_id == wanted]
    if not found:
        raise UsageError("nothing of it has drifted", hint="signet-sync entity check", code="not-drifted")
    return found


def _resolution(repo: EntityRepository, drift: DriftedFile, keep: Keep) -> Resolution:
    place = parse_path(drift.path)
    if place is None or drift.code == "id-twice":
        return Resolution(drift, None, None)
    seen, state = repo.read(place), repo.state(place.id).files.get(place.file)
    want = state.text if state is not None else None
    found = seen.raw.decode("utf-8", "replace") if seen.raw is not None else None
    text = None if found is None else redact(found)[0]
    if keep == "events":
        if want is None:
            hint = "keep the file, or restore the event log from a copy"
            raise UsageError("its events do not contain the file", path=drift.path, hint=hint, code="events-incomplete")
        return Resolution(drift, text, want)
    kept = None if text is None else _repaired(text, place, want)
    if kept is None:
        hint = "keep the events, or correct it first"
        raise UsageError("there is no file to keep", path=drift.path, hint=hint, code="file-unreadable")
    return Resolution(drift, text, kept)


def _repaired(text: str, place: EntityPlace, want: str | None) -> str | None:
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
        fields = {"kind": place.kind, "id": place.id, "agent_id": place.agent_id}
        version = known.fields.get("schema_version") if known is not None else document.fields.get("schema_version")
        changes = {key: value for key, value in (fields | {"schema_version": version}).items()
                   if document.fields.get(key) != value}  # fmt: skip
        return render(edits.with_fields(document, changes)) if changes else text
    return None


def _settled(repo: EntityRepository, one: Resolution) -> EntityResult:
    """Records a decision, then carries it out."""
    drift, place = one.drift, parse_path(one.drift.path)
    database = repo.workspace.database
    if place is None or one.after is None:
        facts = {"accepted": drift.found_sha256} if drift.entity_id == LEDGER else None
        of = drift.entity_id or None
        (event,) = repo.append(repo.event("resolve", "maintainer", entity_id=of, facts=facts, text={"was": drift.code}))
        if place is not None:  # a second folder of the entity: its files stay, under a name that no entity has
            name = f"{place.slug} (copy)"
            while not rename.move_away(repo.workspace.root, place.folder, name):
                name += "+"
        with database.transaction(durable=True):
            entities_store.clear_drift(database, [drift.path])
            repo.remember_log_end()
        return execute.result_of(repo, event)
    seen = repo.read(place)
    displaced = one.before if one.before != one.after else None
    (event,) = repo.append(
        repo.event(
            "resolve", "maintainer", entity_id=place.id, file=place.file, found=text_sha256(one.before or ""),
            left=text_sha256(one.after), text={replaying.WHOLE: one.after, "displaced": displaced, "slug": place.slug},
        )
    )  # fmt: skip
    if seen.raw is None and seen.code != "gone":  # a link, a folder, a pipe is in its place
        while not rename.move_away(repo.workspace.root, place.path, f"{place.file}.displaced-{event.id}"):
            pass
        seen = FileContent(place)
    if utf8(one.after) != seen.raw:
        try:
            observe.put(repo, seen, one.after)
        except observe.FileChanged:
            raise observe.busy(place.path) from None
    with database.transaction(durable=True):
        entities_store.clear_drift(database, [drift.path])
        repo.remember_log_end()
    return execute.result_of(repo, event)


# ── schema ──


@dataclass(frozen=True, slots=True)
class PromotedField:
    """A field that became a section of a kind, the schema version of that change, and the migrated files."""

    event_id: str
    kind: Kind
    anchor: str
    heading: str
    version: int
    migrated: tuple[str, ...]


def promote(
    workspace: Workspace, agent_id: str, field: str, kind: Kind | None = None, *, actor: Actor, now_us: int
) -> PromotedField:
    """Makes `### field` of Extensions a section of a kind (None: the one kind that has it), and migrates the files.

    Raises `UsageError`: `actor-refused` for any actor but a maintainer, `unknown-field`, `ambiguous-field`,
    `field-exists`, `field-invalid`.
    """
    EntityRequest("change the schema", actor, now_us, None, {}).require_maintainer()
    wanted = " ".join(sections.clean_line(field).text.lstrip("#").split())
    with state_dir.workspace_lock(workspace.state):
        repo = EntityRepository(workspace, agent_id, now_us)
        observe.look(repo, None)
        drifted = {one.entity_id for one in repo.drift()}
        rows = entities_store.entities(workspace.database, agent_id)
        entities = [write.load(repo, row.id) for row in rows if row.id not in drifted]
        kind, heading = _find_field(entities, wanted, kind)
        event_id = _rule_event(repo, kind, heading)
        is_new = event_id is None
        event_id = event_id or _record_rule(repo, kind, heading)
        version, shape = next(
            (version, shape) for version, shape in repo.rules(kind) if shape.anchor == anchor_of(heading)
        )
        migrated = [entity.place.path for entity in entities if _migrate(repo, entity, kind, version, shape)]
        if not is_new and not migrated:
            raise UsageError(
                f"{heading} is already a section of every {kind}", hint="set it like any other", code="field-exists"
            )
        return PromotedField(event_id, kind, shape.anchor, heading, version, tuple(migrated))


def fields_of(document: EntityDocument) -> Iterator[tuple[str, int, int]]:
    """Yields heading and lines (start, end) of each `###` field of Extensions."""
    section = next((one for one in document.sections if one.anchor == _EXTENSIONS), None)
    if section is None:
        return
    found = [
        (token.map[0], tokens[at + 1].content.strip())
        for tokens in [blocks(section.body)]
        for at, token in enumerate(tokens)
        if token.type == "heading_open" and token.tag == "h3" and not token.level and token.map
    ]
    ends = [start for start, _ in found[1:]] + [section.body.count("\n") + 1] * bool(found)
    for (start, heading), end in zip(found, ends, strict=True):
        yield heading, start, end


def _find_field(entities: Sequence[Entity], wanted: str, kind: Kind | None) -> tuple[Kind, str]:
    """Returns the kind and the heading of a field. Raises `UsageError` (`unknown-field`, `ambiguous-field`)."""
    found = {
        (entity.place.kind, heading)
        for entity in entities
        for heading in (*(one for one, *_ in fields_of(entity.profile)), *(s.heading for s in entity.profile.sections))
        if heading.casefold() == wanted.casefold() and kind in (None, entity.place.kind)
    }
    kinds = {one for one, _ in found}
    if len(kinds) == 1:
        return min(found)
    if not kinds:
        hint = "it has to be a ### heading under Extensions"
        raise UsageError(f"no entity has the field {wanted[:60]!r}", hint=hint, code="unknown-field")
    named = " and ".join(one for one in KINDS if one in kinds)
    raise UsageError(f"entities of several kinds have the field: {named}", hint="give --kind", code="ambiguous-field")


def _rule_event(repo: EntityRepository, kind: Kind, heading: str) -> str | None:
    for event in repo.log.events('"op":"schema"'):
        if event.entity_id is None and (event.said("kind"), event.said("anchor")) == (kind, anchor_of(heading)):
            return event.id
    return None


def _record_rule(repo: EntityRepository, kind: Kind, heading: str) -> str:
    anchor = anchor_of(heading)
    if any(shape.anchor == anchor for shape in shapes(kind)):
        raise UsageError(f"{heading} is already a section of every {kind}", hint="set it", code="field-exists")
    if flatten(heading, 60) != heading or anchor.strip("-") != anchor or not _ANCHOR.fullmatch(anchor):
        raise UsageError(
            f"{heading[:60]!r} cannot be the heading of a section",
            hint="name the field in letters, digits and blanks first",
            code="field-invalid",
        )
    rule = {"kind": kind, "anchor": anchor, "heading": heading, "version": repo.version(kind) + 1}
    (event,) = repo.append(repo.event("schema", "maintainer", text=rule))
    with repo.workspace.database.transaction(durable=True):
        repo.remember_log_end()
    return event.id


def _migrate(repo: EntityRepository, entity: Entity, kind: Kind, version: int, shape: Shape) -> bool:
    """Gives a file the section, with the field's text from Extensions, in an ordinary event."""
    if entity.place.kind != kind or version_of(entity.profile) >= version:
        return False
    after = edits.with_fields(_with_field_moved(entity.profile, shape), {"schema_version": version})
    lines = [f"Schema {version}: {shape.heading} became a section"]
    after = sections.finished(repo, after, "profile", lines)
    plan = EditPlan(op="schema", file="profile", section=shape.anchor, after=after, facts={"version": version})
    # Running the command again continues with a file that was being edited.
    return write.write_own("maintainer", repo, entity, plan) is not None


def _with_field_moved(document: EntityDocument, shape: Shape) -> EntityDocument:
    text = ""
    for heading, start, end in fields_of(document):
        if heading.casefold() == shape.heading.casefold():
            lines = find(document, _EXTENSIONS).body.split("\n")
            text = "\n".join(lines[start + 1 : end]).strip("\n")
            document = edits.put_body(document, _EXTENSIONS, "\n".join([*lines[:start], *lines[end:]]))
            break
    found = list(document.sections)
    fresh = DocumentSection(shape.anchor, shape.heading, opening_of(shape), "\n")
    same = [at for at, one in enumerate(found) if one.heading.casefold() == shape.heading.casefold()]
    if same:
        found[same[0]] = replace(fresh, body=found[same[0]].body)
    else:
        common = {one.anchor for one in COMMON}
        found.insert(next((at for at, one in enumerate(found) if one.anchor in common), len(found)), fresh)
    document = replace(document, sections=tuple(found))
    return edits.replace(document, shape.anchor, SafeText(text)) if text.strip() else document
