"""Models artifacts: every field with its type, and what is wrong in a file that does not fit."""

from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

from signet_sync.formats.body import HASH_SCOPE, js_trim
from signet_sync.formats.filename import TOKEN, is_artifact_path
from signet_sync.formats.timestamps import parse_instant

LEDGER_HEADING = "Session Ledger (Last 30 Days)"
SENTENCE_VERSION = "memory_sentence_v1"
TOMBSTONE_VERSION = 1
SESSION_FIELDS = ("agent_id", "session_id", "session_key", "project", "harness")
# Only sessions in a repository have these, so that other files stay as they were.
REPOSITORY_FIELDS = ("repository_root", "repository_origin", "repository_path", "repository_branch")


class Instant(NamedTuple):
    """A timestamp as written, and its microseconds since 1970 UTC."""

    text: str
    micros: int


class FieldProblem(ValueError):
    """A field that is absent or wrong; `code` is a verdict's code, the message names the field."""

    def __init__(self, code: str, field: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.field = field


class RecordedRepository(NamedTuple):
    """The repository that a session worked in, as its files name it; see `host.repository`."""

    root: str | None
    origin: str | None
    path: str | None
    branch: str | None


def repository_fields(
    root: str | None, origin: str | None, path: str | None, branch: str | None
) -> dict[str, str | None]:
    """Returns the fields by which a session's files name its repository; none if it worked in none."""
    return dict(zip(REPOSITORY_FIELDS, (root, origin, path or "", branch), strict=True)) if root else {}


_T = TypeVar("_T")


class _Wrong(ValueError):
    """A value that does not fit; says what is wrong, without the value: it may be a person's words."""

    def __init__(self, what: str, code: str = "field-invalid") -> None:
        super().__init__(what)
        self.code = code


# ── values ──


def _text(value: object) -> str:
    if value is None:
        raise _Wrong("is null", "field-missing")
    if not isinstance(value, str):
        raise _Wrong("is not a text")
    if not js_trim(value):
        raise _Wrong("is blank")
    return value


def _nullable_text(value: object) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise _Wrong("is not a text")
    return value if js_trim(value) else None


def _instant(value: object) -> Instant:
    text = js_trim(_text(value))
    micros = parse_instant(text)
    if micros is None:
        raise _Wrong("is not an ISO 8601 date and time")
    return Instant(text, micros)


def _nullable_instant(value: object) -> Instant | None:
    return None if _nullable_text(value) is None else _instant(value)


_HEX = frozenset("0123456789abcdef")


def _digest(value: object) -> str:
    text = js_trim(_text(value)).lower()
    if len(text) != 64 or not _HEX.issuperset(text):
        raise _Wrong("is not a SHA-256 in 64 hex digits")
    return text


def _texts(value: object) -> tuple[str, ...]:
    if value is None:
        return ()
    if isinstance(value, str):
        return (value,) if js_trim(value) else ()
    if not isinstance(value, (list, tuple)) or not all(isinstance(item, str) for item in value):
        raise _Wrong("is not a list of texts")
    return tuple(value)


def _count(value: object) -> int:
    if value is None:
        return 0
    text = str(value)
    if isinstance(value, (list, dict)) or not text.isascii() or not text.isdigit() or len(text) > 15:
        raise _Wrong("is not a whole number")
    return int(text)


def _token(value: object) -> str:
    text = _text(value)
    if not TOKEN.fullmatch(text):
        raise _Wrong("is not a session token of 16 base32 letters")
    return text


def _one_of(*allowed: str) -> Callable[[object], str]:
    def read(value: object) -> str:
        if (text := _text(value)) not in allowed:
            raise _Wrong("is none of the allowed values")
        return text

    return read


def _artifacts(value: object) -> tuple[str, ...]:
    """Keeps only artifacts, which alone are removed; other paths that a file or a backup names are dropped."""
    return tuple(path for path in _texts(value) if is_artifact_path(path))


# ── models ──

_REQUIRED = object()


class _Field:
    """Says how a field of a file is read, and what it is where the file has none."""

    def __init__(self, read: Callable[[object], Any], default: object) -> None:
        self.read, self.default = read, default

    def __set_name__(self, owner: "type[_FileModel]", name: str) -> None:
        owner.FIELDS = {**owner.FIELDS, name: self}


def _field(read: Callable[[object], _T], default: object = _REQUIRED) -> _T:
    field: Any = _Field(read, default)
    return field  # type: ignore[no-any-return]


class _FileModel:
    """What all files of the vault have in common: unknown keys are ignored, values never change."""

    FIELDS: ClassVar[dict[str, _Field]] = {}
    links: ClassVar[tuple[str, ...]] = ()

    def __init__(self, values: Mapping[str, Any]) -> None:
        vars(self).update(values)

    @classmethod
    def read(cls, fields: Mapping[str, Any]) -> Self:
        """Reads the fields of a file. Raises `FieldProblem` for the first wrong one."""
        values = {}
        for name, field in cls.FIELDS.items():
            if name not in fields and field.default is _REQUIRED:
                raise FieldProblem("field-missing", name, f"the field `{name}` is missing")
            try:
                values[name] = field.read(fields[name]) if name in fields else field.default
            except _Wrong as error:
                raise FieldProblem(error.code, name, f"the field `{name}` {error}") from None
        return cls(values)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a file's values do not change")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(other) == vars(self)

    def __hash__(self) -> int:
        return hash(tuple(vars(self).values()))

    def replace(self, **values: Any) -> Self:
        """Returns the same with other values."""
        return type(self)(vars(self) | values)

    def digest(self) -> str:
        """Returns SHA-256 of the known fields, typed: timestamps as instants, blank as null, hashes in lower case."""
        values = [value for name, value in vars(self).items() if name not in REPOSITORY_FIELDS]
        typed = [one.micros if isinstance(one, Instant) else one for one in (*values, *(self.repository() or ()))]
        return sha256(ascii(typed).encode()).hexdigest()  # `ascii`: the same whatever Python's Unicode tables

    def repository(self) -> RecordedRepository | None:
        """Returns the repository of the session, if any field names it."""
        found = RecordedRepository(*(vars(self).get(name) for name in REPOSITORY_FIELDS))
        return found if any(found) else None

    def fields(self) -> dict[str, Any]:
        """Returns the fields in model order as they are written; a repository's and the rules' only if there are."""
        absent = REPOSITORY_FIELDS if self.repository() is None else ()
        written = {
            name: value.text if isinstance(value, Instant) else list(value) if isinstance(value, tuple) else value
            for name, value in vars(self).items()
            if name not in absent and (value is not None or name != "sanitizer_rules")
        }
        return written if absent else {**written, "repository_path": written["repository_path"] or ""}


class _OfSession(_FileModel):
    """The fields with which an artifact and a manifest begin."""

    kind = _field(_text)
    agent_id = _field(_text)
    session_id = _field(_text)
    session_key = _field(_nullable_text, None)
    project = _field(_nullable_text, None)
    harness = _field(_nullable_text, None)
    captured_at = _field(_instant)
    started_at = _field(_nullable_instant, None)
    ended_at = _field(_nullable_instant, None)

    # What a manifest has not.
    source_node_id: str | None = None
    content_sha256: str | None = None
    memory_sentence: str | None = None
    memory_sentence_quality: str | None = None
    # What nothing else has.
    memory_md_refs: tuple[str, ...] = ()
    revision: int | None = None

    def targets(self) -> tuple[tuple[str, str], ...]:
        """Returns the links to other files, by the names of their fields."""
        return tuple((field, target) for field in self.links if (target := getattr(self, field)) is not None)


class Content(_OfSession):
    """The frontmatter of an immutable artifact."""

    links: ClassVar[tuple[str, ...]] = ("manifest_path",)

    manifest_path = _field(_text)
    source_node_id = _field(_nullable_text, None)
    content_sha256 = _field(_digest)
    hash_scope = _field(_one_of(HASH_SCOPE))
    memory_sentence = _field(_text)
    memory_sentence_version = _field(_text)
    memory_sentence_quality = _field(_one_of("ok", "fallback"))
    memory_sentence_generated_at = _field(_instant)
    repository_root = repository_origin = repository_path = repository_branch = _field(_nullable_text, None)


class Transcript(Content):
    """The sanitized words of a session or of one of its segments."""

    sanitizer_version = _field(_text)
    sanitizer_rules = _field(_nullable_text, None)


class Manifest(_OfSession):
    """The one mutable file of a session: its identity and its newest links."""

    links: ClassVar[tuple[str, ...]] = ("summary_path", "transcript_path", "compaction_path")

    summary_path = _field(_nullable_text, None)
    transcript_path = _field(_nullable_text, None)
    compaction_path = _field(_nullable_text, None)
    memory_md_refs = _field(_texts, ())
    updated_at = _field(_instant)
    revision = _field(_count, 0)
    repository_root = repository_origin = repository_path = repository_branch = _field(_nullable_text, None)


class Tombstone(_FileModel):
    """A removed session: no content, no sentence, no project."""

    kind = _field(_one_of("tombstone"))
    agent_id = _field(_text)
    session_token = _field(_token)
    removed_at = _field(_instant)
    reason = _field(_text)
    removed_paths = _field(_artifacts, ())
    tombstone_version = _field(_count, TOMBSTONE_VERSION)
    session_ids = _field(_texts, ())

    @property
    def key(self) -> tuple[str, str]:
        """Returns agent and token, which no two tombstones in force share."""
        return self.agent_id, self.session_token

    @property
    def scope(self) -> tuple[str, str, tuple[str, ...]]:
        """Returns agent, token and session ids; without ids every session of the token."""
        return self.agent_id, self.session_token, self.session_ids

    def covers(self, agent_id: str | None, session_id: str | None) -> bool:
        """Returns whether the tombstone covers a file of this token; if agent or id are unknown, the token decides."""
        if agent_id is not None and agent_id != self.agent_id:
            return False
        return not self.session_ids or session_id is None or session_id in self.session_ids

    def includes(self, other: "Tombstone") -> bool:
        """Returns whether it covers all that another one of the same token covers, and was written no earlier."""
        wider = not self.session_ids or (bool(other.session_ids) and {*other.session_ids} <= {*self.session_ids})
        files = {*other.removed_paths} <= {*self.removed_paths}
        return wider and files and other.removed_at.micros <= self.removed_at.micros

    def join(self, other: "Tombstone") -> "Tombstone":
        """Joins two of the same token, equally on every machine: the later one, covering what both cover."""
        later = max(self, other, key=lambda tombstone: (tombstone.removed_at.micros, tombstone.reason))
        everything = not (self.session_ids and other.session_ids)
        return later.replace(
            removed_paths=tuple(sorted({*self.removed_paths, *other.removed_paths})),
            session_ids=() if everything else tuple(sorted({*self.session_ids, *other.session_ids})),
        )


MODELS: dict[str, type[Content] | type[Manifest]] = {
    "summary": Content,
    "transcript": Transcript,
    "compaction": Content,
    "manifest": Manifest,
}


MANIFEST_FIELDS = tuple(name for name in Manifest.FIELDS if name not in REPOSITORY_FIELDS)
MANIFEST_KEYS = frozenset((*Manifest.FIELDS, "content_sha256", "hash_scope"))


def read_artifact(kind: str, fields: Mapping[str, Any]) -> "Content | Manifest":
    """Returns the typed artifact of a file whose name is of a kind. Raises `FieldProblem`, `kind-mismatch` first."""
    found = fields.get("kind")
    if isinstance(found, str) and found.strip() and found.strip() != kind:
        raise FieldProblem("kind-mismatch", "kind", f"the field `kind` says something else than the name, {kind}")
    return validate(kind, fields)


def validate(kind: str, fields: Mapping[str, Any]) -> Content | Manifest:
    """Returns the typed artifact of a kind. Raises `FieldProblem` for the first wrong field, in model order."""
    return MODELS[kind].read(fields)
