"""Defines what index and planner need of an artifact; cheap to import, unlike the models of `formats.artifact`."""

from hashlib import sha256
from typing import Any, NamedTuple

LEDGER_HEADING = "Session Ledger (Last 30 Days)"
SENTENCE_VERSION = "memory_sentence_v1"
TOMBSTONE_VERSION = 1
# Only sessions in a repository have these, so that other files stay as they were.
REPOSITORY_FIELDS = ("repository_root", "repository_origin", "repository_path")


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


class Record(NamedTuple):
    """What the index and the planner need of an artifact; `digest` covers every known field, typed."""

    kind: str
    agent_id: str
    session_id: str
    session_key: str | None
    project: str | None
    harness: str | None
    captured_at: Instant
    started_at: Instant | None
    ended_at: Instant | None
    links: tuple[tuple[str, str], ...]
    source_node_id: str | None
    content_sha256: str | None
    memory_sentence: str | None
    memory_sentence_quality: str | None
    refs: tuple[str, ...]
    revision: int | None
    digest: str
    repository: RecordedRepository | None = None


def repository_fields(root: str | None, origin: str | None, path: str | None) -> dict[str, str | None]:
    """Returns the fields by which a session's files name its repository; none if it worked in none."""
    return dict(zip(REPOSITORY_FIELDS, (root, origin, path or ""), strict=True)) if root else {}


def digest_of(values: list[Any]) -> str:
    """Returns the SHA-256 of typed values: texts with their length, instants and numbers as integers, blank as null."""
    parts = [
        "~"
        if value is None
        else f"{value.micros}@"
        if type(value) is Instant
        else f"{len(value)}:{value}"
        if type(value) is str
        else repr(value)
        for value in values
    ]
    return sha256("".join(parts).encode("utf-8", "surrogatepass")).hexdigest()
