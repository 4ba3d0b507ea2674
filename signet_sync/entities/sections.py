"""Prepares text for a section: sanitizes and fits it, quotes evidence, and checks caps, locks and pins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from signet_sync.entities import evidence
from signet_sync.entities.documents import edits
from signet_sync.entities.documents.document import (
    DocumentSection,
    EntityDocument,
    body_sha,
    find,
    reread,
    text_of,
)
from signet_sync.entities.documents.escaping import TEXT_LIMIT, fit, fit_item, log_item
from signet_sync.entities.documents.lint import size_of, too_long
from signet_sync.entities.events import Actor, Operation, token_of
from signet_sync.entities.evidence import Evidence
from signet_sync.entities.log import new_ulid
from signet_sync.entities.repository import Entity, EntityRepository, words
from signet_sync.entities.write import Planned, event_of
from signet_sync.errors import UsageError
from signet_sync.formats.entity_paths import COMMON, File, Shape, anchor_of
from signet_sync.formats.snapshot import Found
from signet_sync.formats.timestamps import iso
from signet_sync.storage import files
from signet_sync.sync.store import artifacts
from signet_sync.text.sanitizer import redact, sanitize_counted, sanitize_line, sanitize_line_counted
from signet_sync.text.sentences import flatten

WHOLE = "*"
_EVIDENCE_HINT = f"name the line and say why it matters: {evidence.EXAMPLE}"
_NOTES = "notes/"
_COMMON = {shape.anchor for shape in COMMON}


# ── texts of a caller ──


@dataclass(frozen=True, slots=True)
class SectionText:
    """A text for a section without secrets, and what it rests on; `op` is `set` or `append`."""

    op: str
    text: str
    rationale: str | None = None
    evidence: str | None = None


def clean(text: str, *, lines: bool = True) -> tuple[str, Mapping[str, int]]:
    """Sanitizes a text of several lines, or of one; counts replacements. Raises `UsageError` (`text-too-long`)."""
    # Keeps the sanitizer from processing a large file passed by mistake.
    if len(text) > TEXT_LIMIT * 4:
        message = f"the text has {len(text):,} characters, at most {TEXT_LIMIT:,}"
        raise UsageError(message, hint="keep what matters here and link the rest", code="text-too-long")
    return sanitize_counted(text) if lines else sanitize_line_counted(text)


def clean_reason(reason: str | None, *, required: bool = False) -> str | None:
    """Sanitizes a reason and puts it on one line. Raises `UsageError` (`reason-missing`) if there must be one."""
    kept = None if reason is None else flatten(clean(reason, lines=False)[0]) or None
    if required and not any(map(str.isalnum, kept or "")):
        raise UsageError("the reason is empty", hint="give the reason in a sentence", code="reason-missing")
    return kept


# ── the section ──


@dataclass(frozen=True, slots=True)
class TargetSection:
    """A section of an entity to be changed; `shape` is None if the schema does not define it."""

    file: File
    document: EntityDocument
    section: DocumentSection
    shape: Shape | None

    @property
    def name(self) -> str:
        """Returns its name in `edits` and in the event log."""
        return self.section.anchor or self.section.heading

    @property
    def form(self) -> str:
        """Returns its form; a section that the schema does not define is a narrative."""
        return self.shape.form if self.shape is not None else "narrative"

    @property
    def is_core(self) -> bool:
        """Checks whether it is a core section of its kind: rewriting one is a material change."""
        return self.file == "profile" and self.shape is not None and self.shape.anchor not in _COMMON


def find_target(repo: EntityRepository, entity: Entity, name: str, expect: str | None = None) -> TargetSection:
    """Finds a section by name: `identity`, `Open Questions`, `notes/inbox`.

    Raises `UsageError`: `section-unknown`, and `section-changed` if its hash is not the one to `expect`.
    """
    file: File = "notes" if name.strip().casefold().startswith(_NOTES) else "profile"
    document = entity.files[file].document
    if document is None:
        raise UsageError("the entity has no notes", hint="entity create makes them", code="section-unknown")
    section = find(document, name.strip()[len(_NOTES) :] if file == "notes" else name)
    if expect is not None and body_sha(section) != expect:
        message = f"{section.heading} has changed since it was read"
        raise UsageError(message, hint="read it again", code="section-changed")
    known = {shape.anchor: shape for shape in repo.shapes(entity.place.kind, file, document)}
    return TargetSection(file, document, section, known.get(section.anchor or ""))


def guard_name(where: TargetSection | None) -> str:
    """Returns a section's name in `pins` and `locks` of the frontmatter; `*` is the whole entity."""
    if where is None:
        return WHOLE
    return f"{_NOTES}{where.name}" if where.file == "notes" else where.name


def refuse_guarded(entity: Entity, where: TargetSection | None, actor: Actor) -> None:
    """Raises `UsageError` if the actor may not write a section, or (None) the entity.

    `section-locked`, `section-pinned`: a person protected it from agents; `section-form`: it is the change log.
    """
    if where is not None and where.form == "log" and actor != "observer":
        message = "the change log is written with each change, and by nobody"
        raise UsageError(message, hint="entity log", code="section-form")
    if actor in ("person", "maintainer"):
        return
    for field, word in (("locks", "locked"), ("pins", "pinned")):
        # People may write headings.
        kept = {anchor_of(" ".join(name.split())) for name in words(entity.profile.fields.get(field))}
        if WHOLE in kept or (where is not None and anchor_of(guard_name(where)) in kept):
            what = f"the section {where.section.heading}" if where is not None and WHOLE not in kept else "the entity"
            hint = "propose the change (--propose)"
            raise UsageError(f"{what} is {word} by a person", hint=hint, code=f"section-{word}")


# ── texts for it ──


def plan_text(
    repo: EntityRepository,
    entity: Entity,
    where: TargetSection,
    said: SectionText,
    actor: Actor,
    *,
    token: str | None = None,
    **more: Any,
) -> Planned:
    """Plans a new text of a narrative, another paragraph of it, or another item of a list; Evidence quotes a line.

    `more` are fields of the event. Raises `UsageError`: `section-form`, `evidence-missing` if an item of Evidence names
    no line, `evidence-unquoted` if its quote is not in the line, and as `plan_edit`.
    """
    ulid, notes, material = new_ulid(repo.now_us), tuple[str, ...](), None
    place, quote = quote_source(repo, said.evidence) if said.evidence is not None else (None, None)
    op: Operation = "set" if said.op == "set" else "append" if where.form == "narrative" else "append_item"
    if op == "set":
        require_narrative(where)
    if op != "append_item":
        fitted, notes = fit(said.text)
        after = (edits.replace if op == "set" else edits.append)(where.document, where.name, fitted)
        # The first text of a section is no material change.
        if op == "set" and where.is_core and text_of(where.section):
            material = f"{where.section.heading} rewritten"
    else:
        fitted = fit_item(said.text)
        if where.shape is not None and where.shape.anchor == "evidence":
            if place is None or quote is None:
                message = "an item of Evidence must quote a line of an artifact"
                raise UsageError(message, hint=_EVIDENCE_HINT, code="evidence-missing")
            own = evidence.read_item(fitted)
            if own is not None and not evidence.stands_in(own.quote, quote):
                message = f"{place} does not contain {own.quote[:80]!r}"
                raise UsageError(message, hint=_EVIDENCE_HINT, code="evidence-unquoted")
            quote, why = (own.quote, own.why) if own is not None else (quote, str(fitted))
            item = Evidence(quote, why, place.rpartition("#")[0], token or token_of(ulid))
            fitted = evidence.item_text(item)
        after = edits.append_item(where.document, where.name, fitted)
    text = {"evidence": [place] if place is not None else [], "warnings": list(notes), **more.pop("text", {})}
    more = {"op": op, "id": ulid, **more}
    return plan_edit(
        repo, entity, where, after, actor=actor, rationale=said.rationale, material=material, text=text, **more
    )


def require_narrative(where: TargetSection) -> None:
    """Raises `UsageError` (`section-form`) for a list or log."""
    if where.form != "narrative":
        hint = "append an item, or prune one"
        raise UsageError(f"{where.section.heading} is a {where.form}", hint=hint, code="section-form")


def quote_source(repo: EntityRepository, source: str) -> tuple[str, str]:
    """Returns `PATH#LINE` in its stored form, and the text of the line without secrets.

    Raises `UsageError`: `evidence-invalid`, `evidence-unknown` (no artifact of this agent), `evidence-empty`.
    """
    path, _, number = source.strip().rpartition("#")
    number = number.removeprefix("L")
    if not path or not (number.isascii() and number.isdigit() and 0 < len(number) < 9 and int(number)):
        hint = "write memory/…--summary.md#12"
        raise UsageError(f"{source[:80]!r} does not name a line", hint=hint, code="evidence-invalid")
    row = artifacts.rows_by_path(repo.workspace.database, [path]).get(path)
    found = files.read(repo.workspace.root, path, repo.workspace.settings.max_file_bytes)
    if row is None or row.agent_id != repo.agent_id or not isinstance(found, Found):
        message = f"{path[:120]} is not an artifact of agent {repo.agent_id}"
        hint = "evidence must be a file of a session; signet-sync recall finds them"
        raise UsageError(message, hint=hint, code="evidence-unknown")
    text = found.raw.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")
    lines = text.split("\n")
    line = lines[int(number) - 1] if int(number) <= len(lines) else ""
    bare = sanitize_line(line)
    # A line inside a secret that spans several lines looks harmless by itself.
    hidden = bare.strip() == line.strip() and line not in redact(text)[0].split("\n")
    quote = "" if hidden else bare.lstrip("#>-*+ ")
    if not any(map(str.isalnum, quote)):
        message = f"line {number} of {path} contains nothing to quote"
        raise UsageError(message, hint="name another line", code="evidence-empty")
    return f"{path}#{int(number)}", quote


def plan_edit(
    repo: EntityRepository,
    entity: Entity,
    where: TargetSection,
    after: EntityDocument,
    *,
    op: Operation,
    actor: Actor,
    rationale: str | None = None,
    material: str | None = None,
    text: Mapping[str, Any] | None = None,
    **fields: Any,
) -> Planned:
    """Plans a change of one section. `material` is its line in the change log, `fields` are of the event.

    A section that grows beyond its soft cap is warned of; an agent needs a rationale, and Evidence does. Raises
    `UsageError`: `section-cap`, `evidence-cap`, `rationale-invalid`.
    """
    said, lines = dict(text or {}), [material] if material is not None else []
    why = None if rationale is None else evidence.read_rationale(clean(rationale, lines=False)[0])
    shape, now = where.shape, find(after, where.name)
    over = list(too_long(now, shape)) if shape is not None else []
    if shape is not None and over and size_of(now, shape) > size_of(where.section, shape):
        bound = where.file == "profile" and shape.form != "log" and (shape.anchor == "evidence" or actor == "agent")
        if why is None and bound:
            hint = 'prune it first, or give --rationale "why: …; until: …; plan: …"'
            code = "evidence-cap" if shape.anchor == "evidence" else "section-cap"
            raise UsageError(over[0].message, hint=hint, code=code)
        said["warnings"] = [*said.get("warnings", ()), *(finding.message for finding in over)]
        if why is not None:
            reasons = why.text()
            lines.append(f"{where.section.heading} is above its soft cap. {reasons[:1].upper()}{reasons[1:]}")
    said["rationale"] = None if why is None else why.text()
    after = finished(repo, after, where.file, lines)
    return event_of(repo, entity, op, actor, where.file, after, section=where.name, text=said, **fields), after


def finished(repo: EntityRepository, after: EntityDocument, file: File, lines: list[str]) -> EntityDocument:
    """Completes a file before writing: adds material changes to its change log, sets its time, checks its structure."""
    for line in lines if file == "profile" else ():
        after = edits.append_item(after, "change-log", log_item(iso(repo.now_us), line))
    return reread(edits.with_fields(after, {"updated_at": iso(repo.now_us)}))
