"""Prepares text for a section: sanitizes and fits it, quotes evidence, and checks caps, locks and pins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from signet_sync.entities import evidence
from signet_sync.entities.documents import edits
from signet_sync.entities.documents.document import (
    DocumentProblem,
    DocumentSection,
    EntityDocument,
    body_sha,
    find,
    reread,
    text_of,
)
from signet_sync.entities.documents.escaping import TEXT_LIMIT, SafeText, fit, fit_item, log_item
from signet_sync.entities.documents.lint import size_of, too_long
from signet_sync.entities.events import Actor, Operation
from signet_sync.entities.evidence import Evidence, Rationale
from signet_sync.entities.repository import Entity, EntityRepository, words
from signet_sync.entities.write import EditPlan
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
class CleanText:
    """A text without secrets, and the number of replacements by rule."""

    text: str
    redactions: Mapping[str, int]


def clean(text: str) -> CleanText:
    """Sanitizes a text of several lines. Raises `UsageError` (`text-too-long`)."""
    return CleanText(*sanitize_counted(_require_short(text)))


def clean_line(text: str) -> CleanText:
    """Sanitizes a text of one line. Raises `UsageError` (`text-too-long`)."""
    return CleanText(*sanitize_line_counted(_require_short(text)))


def clean_reason(text: str | None) -> str | None:
    """Sanitizes a reason and puts it on one line; returns None for an empty one."""
    return None if text is None else flatten(sanitize_line(_require_short(text))) or None


def require_reason(reason: str | None) -> str:
    """Does the same for a required reason. Raises `UsageError` (`reason-missing`)."""
    kept = clean_reason(reason)
    if kept is None or not any(map(str.isalnum, kept)):
        raise UsageError("the reason is empty", hint="give the reason in a sentence", code="reason-missing")
    return kept


def _require_short(text: str) -> str:
    # Keeps the sanitizer from processing a large file passed by mistake.
    if len(text) > TEXT_LIMIT * 4:
        raise UsageError(
            f"the text has {len(text):,} characters, at most {TEXT_LIMIT:,}",
            hint="keep what matters here and link the rest",
            code="text-too-long",
        )
    return text


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
    document = entity.documents.get(file)
    if document is None:
        raise UsageError("the entity has no notes", hint="entity create makes them", code="section-unknown")
    section = find(document, name.strip()[len(_NOTES) :] if file == "notes" else name)
    if expect is not None and body_sha(section) != expect:
        raise UsageError(
            f"{section.heading} has changed since it was read", hint="read it again", code="section-changed"
        )
    known = {shape.anchor: shape for shape in repo.shapes(entity.place.kind, file, document)}
    return TargetSection(file, document, section, known.get(section.anchor or ""))


def open_target(
    repo: EntityRepository, entity: Entity, name: str, actor: Actor, expect: str | None = None
) -> TargetSection:
    """Finds a section that the actor may write. Raises as `find_target`, `refuse_guarded`, and for the change log."""
    where = find_target(repo, entity, name, expect)
    if where.form == "log" and actor != "observer":
        raise UsageError(
            "the change log is written with each change, and by nobody", hint="entity log", code="section-form"
        )
    refuse_guarded(entity, where, actor)
    return where


def guard_name(where: TargetSection | None) -> str:
    """Returns a section's name in `pins` and `locks` of the frontmatter; `*` is the whole entity."""
    if where is None:
        return WHOLE
    return f"{_NOTES}{where.name}" if where.file == "notes" else where.name


def refuse_guarded(entity: Entity, where: TargetSection | None, actor: Actor) -> None:
    """Raises `UsageError` (`section-locked`, `section-pinned`) if a person protected the section from agents."""
    if actor in ("person", "maintainer"):
        return
    for field, word in (("locks", "locked"), ("pins", "pinned")):
        # People may write headings.
        kept = {anchor_of(" ".join(name.split())) for name in words(entity.profile.fields.get(field))}
        if WHOLE in kept or (where is not None and anchor_of(guard_name(where)) in kept):
            what = f"the section {where.section.heading}" if where is not None and WHOLE not in kept else "the entity"
            raise UsageError(
                f"{what} is {word} by a person", hint="propose the change (--propose)", code=f"section-{word}"
            )


# ── texts for it ──


@dataclass(frozen=True, slots=True)
class Draft:
    """A text ready for a section: a narrative or an item, notes on changes made in it, and its sources."""

    text: SafeText
    notes: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()


def narrative(repo: EntityRepository, text: str, source: str | None) -> Draft:
    """Prepares a narrative, with the line of an artifact that supports it (`PATH#LINE`). Raises `UsageError`."""
    fitted, notes = fit(text)
    return Draft(fitted, notes, () if source is None else (quote_source(repo, source)[0],))


def item(repo: EntityRepository, where: TargetSection, text: str, source: str | None, token: str) -> Draft:
    """Prepares a list item; one of Evidence quotes a line of an artifact and has its event's token.

    Raises `UsageError`: `evidence-missing` if an item of Evidence names no line, `evidence-unquoted` if its quote is
    not in the line.
    """
    place, quote = quote_source(repo, source) if source is not None else (None, None)
    rests = () if place is None else (place,)
    fitted = fit_item(text)
    if where.shape is None or where.shape.anchor != "evidence":
        return Draft(fitted, (), rests)
    if place is None or quote is None:
        raise UsageError(
            "an item of Evidence must quote a line of an artifact", hint=_EVIDENCE_HINT, code="evidence-missing"
        )
    why, said = str(fitted), evidence.read_item(fitted)
    if said is not None:
        if not evidence.stands_in(said.quote, quote):
            raise UsageError(
                f"{place} does not contain {said.quote[:80]!r}", hint=_EVIDENCE_HINT, code="evidence-unquoted"
            )
        quote, why = said.quote, said.why
    return Draft(evidence.item_text(Evidence(quote, why, place.rpartition("#")[0], token)), (), rests)


def quote_source(repo: EntityRepository, source: str) -> tuple[str, str]:
    """Returns `PATH#LINE` in its stored form, and the text of the line without secrets.

    Raises `UsageError`: `evidence-invalid`, `evidence-unknown` (no artifact of this agent), `evidence-empty`.
    """
    path, _, number = source.strip().rpartition("#")
    number = number.removeprefix("L")
    if not path or not (number.isascii() and number.isdigit() and 0 < len(number) < 9 and int(number)):
        raise UsageError(
            f"{source[:80]!r} does not name a line", hint="write memory/…--summary.md#12", code="evidence-invalid"
        )
    row = artifacts.rows_by_path(repo.workspace.database, [path]).get(path)
    found = files.read(repo.workspace.root, path, repo.workspace.settings.max_file_bytes)
    if row is None or row.agent_id != repo.agent_id or not isinstance(found, Found):
        raise UsageError(
            f"{path[:120]} is not an artifact of agent {repo.agent_id}",
            hint="evidence must be a file of a session; signet-sync recall finds them",
            code="evidence-unknown",
        )
    text = found.raw.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")
    lines = text.split("\n")
    line = lines[int(number) - 1] if int(number) <= len(lines) else ""
    bare = sanitize_line(line)
    # A line inside a secret that spans several lines looks harmless by itself.
    hidden = bare.strip() == line.strip() and line not in redact(text)[0].split("\n")
    quote = "" if hidden else bare.lstrip("#>-*+ ")
    if not any(map(str.isalnum, quote)):
        raise UsageError(
            f"line {number} of {path} contains nothing to quote", hint="name another line", code="evidence-empty"
        )
    return f"{path}#{int(number)}", quote


# ── the plan ──


def plan_edit(
    repo: EntityRepository,
    where: TargetSection,
    after: EntityDocument,
    *,
    op: Operation,
    actor: Actor,
    draft: Draft | None = None,
    rationale: str | None = None,
    material: str | None = None,
    text: Mapping[str, Any] | None = None,
    facts: Mapping[str, Any] | None = None,
    event_id: str | None = None,
) -> EditPlan:
    """Plans a change of one section. `material` is its line in the change log. Raises `UsageError`."""
    why = None if rationale is None else evidence.read_rationale(sanitize_line(_require_short(rationale)))
    over = _over_cap(where, after, why, actor)
    override = f"{where.section.heading} is above its soft cap. {_capital(why.text())}" if over and why else None
    return EditPlan(
        op=op,
        file=where.file,
        section=where.name,
        after=finished(repo, after, where.file, [line for line in (material, override) if line]),
        text={
            **(text or {}),
            "rationale": None if why is None else why.text(),
            "evidence": list(draft.evidence) if draft else [],
        },
        facts=facts,
        id=event_id,
        warnings=(*(draft.notes if draft else ()), *over),
    )


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def finished(repo: EntityRepository, after: EntityDocument, file: File, lines: list[str]) -> EntityDocument:
    """Completes a file before writing: adds material changes to its change log, sets its time, checks its structure."""
    if file == "profile":
        for line in lines:
            after = edits.append_item(after, "change-log", log_item(iso(repo.now_us), line))
    after = edits.with_fields(after, {"updated_at": iso(repo.now_us)})
    try:
        return reread(after)
    except DocumentProblem as problem:
        raise UsageError(problem.message, hint=problem.hint, code=problem.code) from None


def _over_cap(where: TargetSection, after: EntityDocument, why: Rationale | None, actor: Actor) -> tuple[str, ...]:
    """Returns warnings for a section that grew beyond its soft cap. Raises `UsageError` if that needs a rationale."""
    if where.shape is None:
        return ()
    section = find(after, where.name)
    found = list(too_long(section, where.shape))
    if not found or size_of(section, where.shape) <= size_of(where.section, where.shape):
        return ()
    is_evidence = where.shape.anchor == "evidence"
    bound = where.file == "profile" and where.shape.form != "log" and (is_evidence or actor == "agent")
    if why is None and bound:
        raise UsageError(
            found[0].message,
            hint='prune it first, or give --rationale "why: …; until: …; plan: …"',
            code="evidence-cap" if is_evidence else "section-cap",
        )
    return tuple(finding.message for finding in found)


def is_empty(where: TargetSection) -> bool:
    """Checks whether a section has no text yet."""
    return not text_of(where.section)
