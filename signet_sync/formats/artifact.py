"""Models artifacts: every field with its type, and what is wrong in a file that does not fit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, PlainValidator, ValidationError
from pydantic_core import PydanticCustomError

from signet_sync.formats.artifact_record import (
    REPOSITORY_FIELDS,
    TOMBSTONE_VERSION,
    FieldProblem,
    Instant,
    Record,
    RecordedRepository,
    digest_of,
)
from signet_sync.formats.body import HASH_SCOPE, js_trim
from signet_sync.formats.filename import TOKEN, is_artifact_path
from signet_sync.formats.timestamps import parse_instant


def _missing() -> PydanticCustomError:
    return PydanticCustomError("field_missing", "is null")


def _text(value: object) -> str:
    if value is None:
        raise _missing()
    if not isinstance(value, str):
        raise PydanticCustomError("wrong_type", "is not a text")
    if not js_trim(value):
        raise PydanticCustomError("blank", "is blank")
    return value


def _nullable_text(value: object) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise PydanticCustomError("wrong_type", "is not a text")
    return value if js_trim(value) else None


def _instant(value: object) -> Instant:
    text = js_trim(_text(value))
    micros = parse_instant(text)
    if micros is None:
        raise PydanticCustomError("timestamp", "is not an ISO 8601 date and time")
    return Instant(text, micros)


def _nullable_instant(value: object) -> Instant | None:
    return None if _nullable_text(value) is None else _instant(value)


_HEX = frozenset("0123456789abcdef")


def _digest(value: object) -> str:
    text = js_trim(_text(value)).lower()
    if len(text) != 64 or not _HEX.issuperset(text):
        raise PydanticCustomError("digest", "is not a SHA-256 in 64 hex digits")
    return text


def _scope(value: object) -> str:
    text = _text(value)
    if text != HASH_SCOPE:
        raise PydanticCustomError("hash_scope", f"is not {HASH_SCOPE}")
    return text


def _texts(value: object) -> tuple[str, ...]:
    if value is None:
        return ()
    if isinstance(value, str):
        return (value,) if js_trim(value) else ()
    if not isinstance(value, (list, tuple)) or not all(isinstance(item, str) for item in value):
        raise PydanticCustomError("wrong_type", "is not a list of texts")
    return tuple(value)


def _count(value: object) -> int:
    if value is None:
        return 0
    text = str(value)
    if isinstance(value, (list, dict)) or not text.isascii() or not text.isdigit() or len(text) > 15:
        raise PydanticCustomError("whole_number", "is not a whole number")
    return int(text)


def _token(value: object) -> str:
    text = _text(value)
    if not TOKEN.fullmatch(text):
        raise PydanticCustomError("token", "is not a session token of 16 base32 letters")
    return text


Text = Annotated[str, PlainValidator(_text)]
NullableText = Annotated[str | None, PlainValidator(_nullable_text)]
InstantField = Annotated[Instant, PlainValidator(_instant)]
NullableInstant = Annotated[Instant | None, PlainValidator(_nullable_instant)]
Digest = Annotated[str, PlainValidator(_digest)]
Texts = Annotated[tuple[str, ...], PlainValidator(_texts)]
Count = Annotated[int, PlainValidator(_count)]


class _FileModel(BaseModel):
    """What all files of the vault have in common: unknown keys are ignored, values never change."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    links: ClassVar[tuple[str, ...]] = ()

    def digest(self) -> str:
        """Returns SHA-256 of the known fields, typed: timestamps as instants, blank as null, hashes in lower case."""
        values = self.__dict__
        names = [name for name in type(self).model_fields if name not in REPOSITORY_FIELDS]
        return digest_of([*(values[name] for name in names), *(self.repository() or ())])

    def repository(self) -> RecordedRepository | None:
        """Returns the repository of the session, if any field names it."""
        found = RecordedRepository(*(self.__dict__.get(name) for name in REPOSITORY_FIELDS))
        return found if any(found) else None

    def fields(self) -> dict[str, Any]:
        """Returns the fields in model order as they are written; a repository's and the rules' only if there are."""
        absent = REPOSITORY_FIELDS if self.repository() is None else ()
        written = {
            name: value.text if isinstance(value, Instant) else list(value) if isinstance(value, tuple) else value
            for name, value in self.__dict__.items()
            if name not in absent and (value is not None or name != "sanitizer_rules")
        }
        return written if absent else {**written, "repository_path": written["repository_path"] or ""}


class _OfSession(_FileModel):
    """The fields with which an artifact and a manifest begin."""

    kind: Text
    agent_id: Text
    session_id: Text
    session_key: NullableText = None
    project: NullableText = None
    harness: NullableText = None
    captured_at: InstantField
    started_at: NullableInstant = None
    ended_at: NullableInstant = None

    def _targets(self) -> tuple[tuple[str, str], ...]:
        return tuple((field, target) for field in self.links if (target := getattr(self, field)) is not None)


class Content(_OfSession):
    """The frontmatter of an immutable artifact."""

    links: ClassVar[tuple[str, ...]] = ("manifest_path",)

    manifest_path: Text
    source_node_id: NullableText = None
    content_sha256: Digest
    hash_scope: Annotated[str, PlainValidator(_scope)]
    memory_sentence: Text
    memory_sentence_version: Text
    memory_sentence_quality: Annotated[Literal["ok", "fallback"], BeforeValidator(_text)]
    memory_sentence_generated_at: InstantField
    repository_root: NullableText = None
    repository_origin: NullableText = None
    repository_path: NullableText = None

    def record(self) -> Record:
        """Returns the typed values that the planner works with."""
        return Record(
            self.kind, self.agent_id, self.session_id, self.session_key, self.project, self.harness,
            self.captured_at, self.started_at, self.ended_at, self._targets(), self.source_node_id,
            self.content_sha256, self.memory_sentence, self.memory_sentence_quality, (), None, self.digest(),
            self.repository(),
        )  # fmt: skip


class Summary(Content):
    """The narrative of a session or of one of its segments."""


class Compaction(Content):
    """A summary that a harness made to shorten a session's context."""


class Transcript(Content):
    """The sanitized words of a session or of one of its segments."""

    sanitizer_version: Text
    sanitizer_rules: NullableText = None


class Manifest(_OfSession):
    """The one mutable file of a session: its identity and its newest links."""

    links: ClassVar[tuple[str, ...]] = ("summary_path", "transcript_path", "compaction_path")

    summary_path: NullableText = None
    transcript_path: NullableText = None
    compaction_path: NullableText = None
    memory_md_refs: Texts = ()
    updated_at: InstantField
    revision: Count = 0
    repository_root: NullableText = None
    repository_origin: NullableText = None
    repository_path: NullableText = None

    def record(self) -> Record:
        """Returns the typed values that the planner works with; a manifest changes, so it has no digest."""
        return Record(
            self.kind, self.agent_id, self.session_id, self.session_key, self.project, self.harness,
            self.captured_at, self.started_at, self.ended_at, self._targets(), None, None, None, None,
            self.memory_md_refs, self.revision, "", self.repository()
        )  # fmt: skip


def _artifacts(paths: tuple[str, ...]) -> tuple[str, ...]:
    """Keeps only artifacts, which alone are removed; other paths that a file or a backup names are dropped."""
    return tuple(path for path in paths if is_artifact_path(path))


class Tombstone(_FileModel):
    """A removed session: no content, no sentence, no project."""

    kind: Annotated[Literal["tombstone"], BeforeValidator(_text)]
    agent_id: Text
    session_token: Annotated[str, PlainValidator(_token)]
    removed_at: InstantField
    reason: Text
    removed_paths: Annotated[Texts, AfterValidator(_artifacts)] = ()
    tombstone_version: Count = TOMBSTONE_VERSION
    session_ids: Texts = ()

    def covers(self, agent_id: str | None, session_id: str | None) -> bool:
        """Returns whether the tombstone covers a file of this token; if agent or id are unknown, the token decides."""
        if agent_id is not None and agent_id != self.agent_id:
            return False
        return not self.session_ids or session_id is None or session_id in self.session_ids

    def includes(self, other: Tombstone) -> bool:
        """Returns whether it covers all that another one of the same token covers, and was written no earlier."""
        wider = not self.session_ids or (bool(other.session_ids) and {*other.session_ids} <= {*self.session_ids})
        files = {*other.removed_paths} <= {*self.removed_paths}
        return wider and files and other.removed_at.micros <= self.removed_at.micros

    def joined(self, other: Tombstone) -> Tombstone:
        """Joins two of the same token, equally on every machine: the later one, covering what both cover."""
        later = max(self, other, key=lambda tombstone: (tombstone.removed_at.micros, tombstone.reason))
        everything = not (self.session_ids and other.session_ids)
        return later.model_copy(
            update={
                "removed_paths": tuple(sorted({*self.removed_paths, *other.removed_paths})),
                "session_ids": () if everything else tuple(sorted({*self.session_ids, *other.session_ids})),
            }
        )


MODELS: dict[str, type[Content] | type[Manifest]] = {
    "summary": Summary,
    "transcript": Transcript,
    "compaction": Compaction,
    "manifest": Manifest,
}


def validate(kind: str, fields: Mapping[str, Any]) -> Content | Manifest:
    """Returns the typed artifact of a kind. Raises `FieldProblem` for the first wrong field, in model order."""
    try:
        return MODELS[kind].model_validate(fields)
    except ValidationError as error:
        raise _problem(error) from None


def validate_tombstone(fields: Mapping[str, Any]) -> Tombstone:
    """Returns the typed tombstone. Raises `FieldProblem`."""
    try:
        return Tombstone.model_validate(fields)
    except ValidationError as error:
        raise _problem(error) from None


def _problem(error: ValidationError) -> FieldProblem:
    """Returns the first problem, without the value: an error text must not contain a person's words."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    field = str(first["loc"][0]) if first["loc"] else "frontmatter"
    if first["type"] == "missing":
        return FieldProblem("field-missing", field, f"the field `{field}` is missing")
    if first["type"] == "field_missing":
        return FieldProblem("field-missing", field, f"the field `{field}` is null")
    message = first["msg"] if first["type"] != "literal_error" else "is none of the allowed values"
    return FieldProblem("field-invalid", field, f"the field `{field}` {message}")
