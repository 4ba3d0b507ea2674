"""Reads an artifact's typed values, either by one pattern of the written form or by the full models.

The models of `formats.artifact` are the contract. Nearly every file is in the written form, whose whole frontmatter can
be validated by one regular expression; only others pay for YAML. Both agree (differential test).
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import Any

from signet_sync.formats.artifact import (
    REPOSITORY_FIELDS,
    FieldProblem,
    Instant,
    Record,
    RecordedRepository,
    digest_of,
    validate,
)
from signet_sync.formats.body import HASH_SCOPE
from signet_sync.formats.frontmatter import HEAD_LIMIT, read
from signet_sync.formats.lazy_pattern import late
from signet_sync.formats.timestamps import parse_instant

# A text that is not blank and holds neither quote nor backslash: it begins with a letter or with a sign of ASCII.
_FIRST = r"[!#-\[\]-~\w]"
_TEXT = rf'"({_FIRST}[^\x00-\x1f"\\]*)"'
# A sentence with a quotation is common: it may hold escaped quotes, but no other escape.
_SENTENCE = rf'"((?:{_FIRST}|\\")[^\x00-\x1f"\\]*(?:\\"[^\x00-\x1f"\\]*)*)"'
_ITEM = _TEXT.replace("(", "").replace(")", "")
_NULLABLE = rf"(?:null|{_TEXT})"
_TIME = r'"([0-9-]{10}T[0-9:.]{12}Z)"'  # `parse_instant` looks at the rest
_NULLABLE_TIME = rf"(?:null|{_TIME})"
_IDENTITY = (
    rf"agent_id: {_TEXT}\nsession_id: {_TEXT}\nsession_key: {_NULLABLE}\nproject: {_NULLABLE}\nharness: {_NULLABLE}\n"
    rf"captured_at: {_TIME}\nstarted_at: {_NULLABLE_TIME}\nended_at: {_NULLABLE_TIME}\n"
)
_REPOSITORY = rf'(?:\nrepository_root: {_TEXT}\nrepository_origin: {_NULLABLE}\nrepository_path: (?:""|{_TEXT}))?'
_CONTENT = (
    rf"manifest_path: {_TEXT}\nsource_node_id: {_NULLABLE}\n"
    rf'content_sha256: "([0-9a-f]{{64}})"\nhash_scope: "{re.escape(HASH_SCOPE)}"\n'
    rf'memory_sentence: {_SENTENCE}\nmemory_sentence_version: {_TEXT}\nmemory_sentence_quality: "(ok|fallback)"\n'
    rf"memory_sentence_generated_at: {_TIME}{_REPOSITORY}"
)
_FORMS = {
    "summary": rf'kind: "summary"\n{_IDENTITY}{_CONTENT}',
    "compaction": rf'kind: "compaction"\n{_IDENTITY}{_CONTENT}',
    "transcript": rf'kind: "transcript"\n{_IDENTITY}{_CONTENT}\nsanitizer_version: {_TEXT}'
    rf"(?:\nsanitizer_rules: {_NULLABLE})?",
    "manifest": rf'kind: "manifest"\n{_IDENTITY}summary_path: {_NULLABLE}\ntranscript_path: {_NULLABLE}\n'
    rf"compaction_path: {_NULLABLE}\nmemory_md_refs:((?:\n  - {_ITEM})*)\nupdated_at: {_TIME}\n"
    rf'revision: ([0-9]{{1,15}})\ncontent_sha256: "[0-9a-f]{{64}}"\nhash_scope: {_TEXT}{_REPOSITORY}',
}


@cache
def _written(kind: str) -> re.Pattern[str]:
    """Returns the pattern of a kind's written form; each takes longer to compile than most modules to import."""
    return re.compile(_FORMS[kind])


def read_record(kind: str, head: str) -> Record:
    """Reads the record of a frontmatter. Raises `FrontmatterProblem` and `FieldProblem`, `kind-mismatch` first."""
    record = read_written_record(kind, head)
    return record if record is not None else read_full_record(kind, head)


def read_full_record(kind: str, head: str) -> Record:
    """Reads the record of any readable frontmatter, by the models."""
    fields = read(head)
    found = fields.get("kind")
    if isinstance(found, str) and found.strip() and found.strip() != kind:
        raise FieldProblem("kind-mismatch", "kind", f"the name says {kind}, the frontmatter says another kind")
    return validate(kind, fields).record()


MANIFEST_FIELDS = (
    "kind", "agent_id", "session_id", "session_key", "project", "harness", "captured_at", "started_at", "ended_at",
    "summary_path", "transcript_path", "compaction_path", "memory_md_refs", "updated_at", "revision",
)  # fmt: skip
MANIFEST_KEYS = frozenset((*MANIFEST_FIELDS, "content_sha256", "hash_scope", *REPOSITORY_FIELDS))


def manifest_fields(head: str) -> dict[str, Any]:
    """Reads the fields of a manifest in model order, as written. Raises `FrontmatterProblem`, `FieldProblem`."""
    if read_written_record("manifest", head) is None:
        return validate("manifest", read(head)).fields()
    given = read(head)
    fields = {name: given[name] for name in (*MANIFEST_FIELDS, *REPOSITORY_FIELDS) if name in given}
    return {**fields, "memory_md_refs": list(given["memory_md_refs"] or ()), "revision": int(given["revision"])}


def read_written_record(kind: str, head: str) -> Record | None:
    """Reads the record of a frontmatter that is exactly in the written form, else None."""
    match = _written(kind).fullmatch(head)
    if match is None or len(head) > HEAD_LIMIT // 4:
        return None
    return _manifest(match) if kind == "manifest" else _content(kind, match)


@lru_cache(maxsize=1024)
def _instant(text: str | None) -> Instant | None:
    if text is None:
        return None
    micros = parse_instant(text)
    return Instant(text, micros) if micros is not None else None


def _content(kind: str, match: re.Match[str]) -> Record | None:
    values: tuple[str | None, ...] = match.groups()
    agent_id, session_id, key, project, harness, captured, started, ended, manifest_path, node, sha, *sentence = values
    captured_at, started_at, ended_at = _instant(captured), _instant(started), _instant(ended)
    text, version, quality, generated, root, origin, path, *sanitizer = sentence
    repository = RecordedRepository(root, origin, path) if root is not None else None
    generated_at = _instant(generated)
    text = text.replace('\\"', '"') if text is not None and "\\" in text else text
    if captured_at is None or generated_at is None or (started and not started_at) or (ended and not ended_at):
        return None
    typed = [kind, agent_id, session_id, key, project, harness, captured_at, started_at, ended_at, manifest_path, node]
    typed += [sha, HASH_SCOPE, text, version, quality, generated_at, *sanitizer, *(repository or ())]
    assert agent_id is not None and session_id is not None and manifest_path is not None
    links = (("manifest_path", manifest_path),)
    return Record(
        kind, agent_id, session_id, key, project, harness, captured_at, started_at, ended_at, links, node, sha,
        text, quality, (), None, digest_of(typed), repository,
    )  # fmt: skip


_REF = late(r'\n  - "([^"]*)"')


def _manifest(match: re.Match[str]) -> Record | None:
    values: tuple[str | None, ...] = match.groups()
    agent_id, session_id, key, project, harness, captured, started, ended, summary, transcript, compaction = values[:11]
    refs, updated, revision, _, root, origin, path = values[11:]
    captured_at, started_at, ended_at = _instant(captured), _instant(started), _instant(ended)
    if captured_at is None or _instant(updated) is None or (started and not started_at) or (ended and not ended_at):
        return None
    assert agent_id is not None and session_id is not None and refs is not None and revision is not None
    links = (("summary_path", summary), ("transcript_path", transcript), ("compaction_path", compaction))
    targets = tuple((field, target) for field, target in links if target is not None)
    return Record(
        "manifest", agent_id, session_id, key, project, harness, captured_at, started_at, ended_at, targets,
        None, None, None, None, tuple(_REF.findall(refs)), int(revision), "",
        RecordedRepository(root, origin, path) if root is not None else None
    )  # fmt: skip
