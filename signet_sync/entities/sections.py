"""Plans edits of a section: cleans and fits the text, quotes evidence, checks caps, locks and pins.

The linter tells where a file deviates from the schema: that is shown to agents and people, no file is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from signet_sync.entities import agent_text, document, observe
from signet_sync.entities.agent_text import fit, fit_item, log_item
from signet_sync.entities.document import DocumentSection, EntityDocument, body_sha, items, text_of
from signet_sync.entities.events import Actor, Operation, token_of
from signet_sync.entities.observe import Write
from signet_sync.entities.repository import Entity, EntityRepository, new_ulid, words
from signet_sync.errors import UsageError
from signet_sync.formats.entity_paths import COMMON, File, Finding, Shape, anchor_of, shapes
from signet_sync.formats.snapshot import Found
from signet_sync.formats.timestamps import iso
from signet_sync.storage import files
from signet_sync.sync.store import artifacts
from signet_sync.text.sanitizer import redact, sanitize_counted, sanitize_line, sanitize_line_counted
from signet_sync.text.sentences import flatten
from signet_sync.text.token_estimate import estimate_tokens

WHOLE = "*"  # the name of the whole entity in `pins` and `locks`
_EVIDENCE_HINT = f"name the line and say why it matters: {agent_text.EXAMPLE}"
_NOTES = "notes/"
_COMMON = {shape.anchor for shape in COMMON}


# ── texts of a caller ──


def clean(text: str, *, lines: bool = True) -> tuple[str, Mapping[str, int]]:
    """Sanitizes a text of several lines, or of one; counts replacements. Raises `UsageError` (`text-too-long`)."""
    # Keeps the sanitizer from processing a large file passed by mistake.
    if len(text) > agent_text.TEXT_LIMIT * 4:
        message = f"the text has {len(text):,} characters, at most {agent_text.TEXT_LIMIT:,}"
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
class Target:
    """A section of an entity to be changed; `shape` is None if the schema does not define it."""

    entity: Entity
    file: File
    document: EntityDocument
    section: DocumentSection
    shape: Shape | None

    @property
    def form(self) -> str:
        """Returns its form; a section that the schema does not define is a narrative."""
        return self.shape.form if self.shape is not None else "narrative"

    @property
    def is_core(self) -> bool:
        """Checks whether it is a core section of its kind: rewriting one is a material change."""
        return self.file == "profile" and self.shape is not None and self.shape.anchor not in _COMMON

    @property
    def guard_name(self) -> str:
        """Returns its name in `pins` and `locks` of the frontmatter."""
        return f"{_NOTES}{self.section.name}" if self.file == "notes" else self.section.name


def find_target(entity: Entity, name: str, expect: str | None = None) -> Target:
    """Finds a section by name: `identity`, `Open Questions`, `notes/inbox`.

    Raises `UsageError`: `section-unknown`, and `section-changed` if its hash is not the one to `expect`.
    """
    file: File = "notes" if name.strip().casefold().startswith(_NOTES) else "profile"
    within = entity.files[file].document
    if within is None:
        raise UsageError("the entity has no notes", hint="entity create makes them", code="section-unknown")
    section = document.find(within, name.strip()[len(_NOTES) :] if file == "notes" else name)
    if expect is not None and body_sha(section) != expect:
        message = f"{section.heading} has changed since it was read"
        raise UsageError(message, hint="read it again", code="section-changed")
    return target_of(entity, file, within, section)


def target_of(entity: Entity, file: File, within: EntityDocument, section: DocumentSection) -> Target:
    """Returns a section of a file of an entity as a target."""
    shape = next((one for one in shapes(entity.place.kind, file) if one.anchor == section.anchor), None)
    return Target(entity, file, within, section, shape)


def refuse_guarded(entity: Entity, where: Target | None, actor: Actor) -> None:
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
        if WHOLE in kept or (where is not None and anchor_of(where.guard_name) in kept):
            what = f"the section {where.section.heading}" if where is not None and WHOLE not in kept else "the entity"
            hint = "propose the change (--propose)"
            raise UsageError(f"{what} is {word} by a person", hint=hint, code=f"section-{word}")


def require_narrative(where: Target) -> None:
    """Raises `UsageError` (`section-form`) for a list or log."""
    if where.form != "narrative":
        hint = "append an item, or prune one"
        raise UsageError(f"{where.section.heading} is a {where.form}", hint=hint, code="section-form")


# ── edits ──


def plan_text(
    repo: EntityRepository,
    where: Target,
    text: str,
    actor: Actor,
    *,
    replaces: bool,
    source: str | None = None,
    op: Operation | None = None,
    token: str | None = None,
    said: Mapping[str, Any] | None = None,
    **more: Any,
) -> Write:
    """Plans a new text of a narrative, another paragraph of it, or another item of a list; Evidence quotes a line.

    `source` is `PATH#LINE`, `token` what an item of Evidence names if not this event, `op` that of the event if it is
    not the edit's, `more` as in `plan_edit`. Raises `UsageError`: `section-form`, `evidence-missing` if an item of
    Evidence names no line, `evidence-unquoted` if its quote is not in the line, and as `plan_edit`.
    """
    ulid, material, name = new_ulid(repo.now_us), None, where.section.name
    place, quote = _quote_source(repo, source) if source is not None else (None, None)
    edit: Operation = "set" if replaces else "append" if where.form == "narrative" else "append_item"
    if edit == "append_item":
        fitted = fit_item(text)
        if where.shape is not None and where.shape.anchor == "evidence":
            if place is None or quote is None:
                message = "an item of Evidence must quote a line of an artifact"
                raise UsageError(message, hint=_EVIDENCE_HINT, code="evidence-missing")
            own = agent_text.read_item(fitted)
            if own is not None and not agent_text.stands_in(own.quote, quote):
                message = f"{place} does not contain {own.quote[:80]!r}"
                raise UsageError(message, hint=_EVIDENCE_HINT, code="evidence-unquoted")
            quote, why = (own.quote, own.why) if own is not None else (quote, str(fitted))
            fitted = agent_text.item_text(quote, why, place.rpartition("#")[0], token or token_of(ulid))
        after = document.append_item(where.document, name, fitted)
    else:
        if replaces:
            require_narrative(where)
        fitted = fit(text)
        after = (document.replace if replaces else document.append)(where.document, name, fitted)
        # The first text of a section is no material change.
        if replaces and where.is_core and text_of(where.section):
            material = f"{where.section.heading} rewritten"
    told = {"evidence": [place] if place is not None else [], **(said or {})}
    return plan_edit(repo, where, after, op or edit, actor, material=material, text=told, id=ulid, **more)


def _quote_source(repo: EntityRepository, source: str) -> tuple[str, str]:
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
    is_hidden = bare.strip() == line.strip() and line not in redact(text)[0].split("\n")
    quote = "" if is_hidden else bare.lstrip("#>-*+ ")
    if not any(map(str.isalnum, quote)):
        message = f"line {number} of {path} contains nothing to quote"
        raise UsageError(message, hint="name another line", code="evidence-empty")
    return f"{path}#{int(number)}", quote


def plan_edit(
    repo: EntityRepository,
    where: Target,
    after: EntityDocument,
    op: Operation,
    actor: Actor,
    *,
    rationale: str | None = None,
    material: str | None = None,
    text: Mapping[str, Any] | None = None,
    **fields: Any,
) -> Write:
    """Plans a change of one section. `material` is its line in the change log, `fields` are of the event.

    A section that grows beyond its soft cap is warned of; an agent needs a rationale, and Evidence does. Raises
    `UsageError`: `section-cap`, `evidence-cap`, `rationale-invalid`.
    """
    said, lines = dict(text or {}), [material] if material is not None else []
    why = None if rationale is None else agent_text.read_rationale(clean(rationale, lines=False)[0])
    name = where.section.name
    said["warnings"] = growth(where, document.find(after, name), actor, explained=why is not None)
    if said["warnings"] and why is not None:
        reasons = why.text()
        lines.append(f"{where.section.heading} is above its soft cap. {reasons[:1].upper()}{reasons[1:]}")
    said["rationale"] = None if why is None else why.text()
    after = finish(repo, after, where.file, lines)
    return observe.plan(repo, where.entity, op, actor, where.file, after, section=name, text=said, **fields)


def growth(where: Target, after: DocumentSection, actor: Actor, *, explained: bool = False) -> list[str]:
    """Returns a warning if a section grows beyond its soft cap; raises `UsageError` if that must be explained."""
    shape = where.shape
    if shape is None or size_of(after, shape) <= size_of(where.section, shape):
        return []
    warnings = [one.message for one in too_long(after, shape)]
    bound = where.file == "profile" and shape.form != "log" and (shape.anchor == "evidence" or actor == "agent")
    if warnings and bound and not explained:
        hint = 'prune it first, or write it with --rationale "why: …; until: …; plan: …"'
        code = "evidence-cap" if shape.anchor == "evidence" else "section-cap"
        raise UsageError(warnings[0], hint=hint, code=code)
    return warnings


def finish(repo: EntityRepository, after: EntityDocument, file: File, lines: list[str]) -> EntityDocument:
    """Completes a file before writing: adds material changes to its change log, sets its time, checks its structure."""
    for line in lines if file == "profile" else ():
        after = document.append_item(after, "change-log", log_item(iso(repo.now_us), line))
    return document.reread(document.with_fields(after, {"updated_at": iso(repo.now_us)}))


# ── the schema ──


def lint(within: EntityDocument, shapes: Sequence[Shape]) -> list[Finding]:
    """Compares a file with the schema (`entity_paths.shapes`): sections that are missing, misnamed or too long."""
    found = list[Finding]()
    present = {name for section in within.sections for name in (section.anchor, section.heading.casefold())}
    for shape in shapes:
        if present.isdisjoint((shape.anchor, shape.heading.casefold())):
            hint = f"write `## {shape.heading}` and `<!-- section {shape.anchor} -->` under it, or close a fence above"
            message = f"the section {shape.heading} is missing"
            found.append(Finding("section-missing", message, hint, anchor=shape.anchor))
    by_anchor: dict[str | None, Shape] = {shape.anchor: shape for shape in shapes}
    by_heading = {shape.heading.casefold(): shape for shape in shapes}
    for section in within.sections:
        known, named = by_anchor.get(section.anchor), by_heading.get(section.heading.casefold())
        if known is not None:
            if section.heading != known.heading:
                message = f"the section `{known.anchor}` is headed {section.heading[:60]}"
                found.append(Finding("heading-wrong", message, f"head it `## {known.heading}`", anchor=known.anchor))
            found += too_long(section, known)
        elif named is not None:
            hint = f"write `<!-- section {named.anchor} -->` under the heading"
            found.append(Finding("anchor-wrong", f"{named.heading} lacks its anchor", hint, anchor=named.anchor))
    return found


def too_long(section: DocumentSection, shape: Shape) -> Iterator[Finding]:
    """Yields one finding, `too-long`, if a section is above its soft cap."""
    size, unit = size_of(section, shape), "tokens" if shape.form == "narrative" else "items"
    if size > shape.soft_cap:
        message = f"{shape.heading} has {size} {unit}; the soft cap is {shape.soft_cap}"
        hint = "prune it, or say why it is kept: `why: …; until: …; plan: …`"
        yield Finding("too-long", message, hint, anchor=shape.anchor)


def size_of(section: DocumentSection, shape: Shape) -> int:
    """Returns how long a section is: tokens of a narrative, items of a list or log."""
    return estimate_tokens(text_of(section)) if shape.form == "narrative" else len(items(section))
