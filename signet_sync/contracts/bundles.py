"""Bundles: native rows as JSON Lines, for a person to read and for another tool; the shape of every line.

The first line is a header, the last one counts the rows and holds the checksum of all lines before it, so that a file
that was cut off or changed is noticed. In between stands one row a line. Equal rows make equal bytes: the lines of a
table are sorted, events by their time, and nothing says when the file was written.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError
from pydantic.functional_validators import AfterValidator

from signet_sync.contracts.identities import AGENT_ID
from signet_sync.contracts.names import TOKEN, is_artifact_path
from signet_sync.contracts.places import storable
from signet_sync.contracts.sanitizer import sanitize_line, sanitize_transcript_v2
from signet_sync.contracts.timestamps import iso, parse_instant

FORMAT = "signet-sync bundle"
VERSION = 1
# What is known of forgotten memories and accepted files, from the table `meta`.
MARKS = "marks"
LONGEST_LINE = 128 * 1024 * 1024  # bytes

Stored = dict[str, Any]  # a row as SQLite holds it


class BundleProblem(ValueError):
    """A line is not what it should be; `line` counts from 1, `cut` says that the end of the file is missing.

    `newer` says that a newer signet-sync wrote the file.
    """

    def __init__(self, line: int, message: str, *, cut: bool = False, newer: bool = False) -> None:
        super().__init__(message)
        self.line = line
        self.message = message
        self.cut = cut
        self.newer = newer


def _plain(text: str) -> str:
    if "\0" in text or any("\ud800" <= letter <= "\udfff" for letter in text):
        raise ValueError("holds a character that no text holds")
    return text


def _instant(text: str) -> str:
    if parse_instant(text) is None:
        raise ValueError("is not an ISO 8601 date and time")
    return text


def _artifact(path: str) -> str:
    if not is_artifact_path(path):
        raise ValueError("is not the path of an artifact")
    return path


def _texts(value: Any) -> Any:
    """Every text in what JSON gave, sanitized."""
    if isinstance(value, str):
        return sanitize_transcript_v2(value)
    if isinstance(value, list):
        return [_texts(one) for one in value]
    if isinstance(value, dict):
        return {_plain(key): _texts(one) for key, one in value.items()}
    return value


Text = Annotated[str, AfterValidator(_plain)]
Agent = Annotated[str, StringConstraints(pattern=rf"^(?:{AGENT_ID.pattern})$")]
Token = Annotated[str, StringConstraints(pattern=rf"^(?:{TOKEN.pattern})$")]
Hash = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Id = Annotated[str, StringConstraints(pattern=r"^[skcaetfmxupr]-[a-z2-7]{12}$")]
MemoryId = Annotated[str, StringConstraints(pattern=r"^m-[a-z2-7]{12}$")]
SweepId = Annotated[str, StringConstraints(pattern=r"^[0-9]{8}T[0-9]{9}Z$")]
Day = Annotated[str, StringConstraints(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$")]
When = Annotated[str, AfterValidator(_instant)]
Artifact = Annotated[str, AfterValidator(_plain), AfterValidator(_artifact)]
Number = Annotated[int, Field(ge=-(2**63), lt=2**63)]  # what SQLite holds
Count = Annotated[int, Field(ge=0, lt=2**63)]
Micros = Annotated[int, Field(ge=0, lt=253_402_300_800_000_000)]  # up to the year 9999
# Words that somebody said: nothing reaches a row before the sanitizer, wherever it comes from.
Said = Annotated[str, AfterValidator(_plain), AfterValidator(sanitize_line)]
Outside = Annotated[str, AfterValidator(_plain), AfterValidator(storable)]
Body = Annotated[str, AfterValidator(_plain), AfterValidator(sanitize_transcript_v2)]


class _Strict(BaseModel):
    # What a newer version adds is told and left.
    model_config = ConfigDict(extra="ignore", strict=True, allow_inf_nan=False)


class Seal(_Strict):
    """What an artifact was when it was first seen; `packed` are its bytes, zstd and base64."""

    path: Artifact
    agent_id: Agent
    session_token: Token
    session_id: Text
    kind: Literal["summary", "transcript", "compaction"]
    digest: Hash
    body_sha256: Hash
    file_sha256: Hash
    sealed_at: When
    packed: str | None = None


class Removal(_Strict):
    """A tombstone."""

    agent_id: Agent
    session_token: Token
    removed_at: When
    reason: Said
    removed_paths: list[Artifact]
    session_ids: list[Text] | None = None


class Accesses(_Strict):
    """How often an artifact was asked for."""

    agent_id: Agent
    source_path: Artifact
    accesses: Count
    last_accessed_at: When


class Answer(_Strict):
    """What the end of a session was answered."""

    agent_id: Agent
    flow_key: Text
    kind: Text
    request_sha256: Text
    session_token: Token
    session_id: Text
    answer: Annotated[dict[str, Any], AfterValidator(_texts)]
    refused: Count
    at: When


class Capture(_Strict):
    """A transcript of a harness that was read; a path below the home folder begins with `~/`."""

    harness: Text
    path: Outside
    session_id: Outside
    size: Number
    mtime_ns: Number
    agent_id: Agent | Literal[""]
    outcome: Said
    conversation: Outside
    at: When


class Memory(_Strict):
    """What somebody asked to be remembered."""

    agent_id: Agent
    id: MemoryId
    type: Literal["preference", "decision", "constraint", "person", "blocker", "note"]
    content: Body
    tags: list[Said]
    private: bool
    created_at: When
    concept_tags: list[Said] | None = None


class Source(_Strict):
    """Where a memory comes from; token and session empty: a person's own word."""

    agent_id: Agent
    memory_id: MemoryId
    session_token: Token | Literal[""]
    session_id: Text
    at: When


class Pin(_Strict):
    """What is pinned."""

    agent_id: Agent
    id: Id
    pinned_at: When


class NodeAccesses(_Strict):
    """How often a memory, fact, thread or summary was asked for."""

    agent_id: Agent
    id: Id
    accesses: Count
    last_day: Day
    before: Count
    before_day: Day | None = None


class RecallEvent(_Strict):
    """A hit of `recall` on a memory; `at_us` is microseconds since 1970 UTC."""

    agent_id: Agent
    memory_id: MemoryId
    query: Said
    score: float
    at_us: Micros


class Sweep(_Strict):
    """A sweep of dreams."""

    agent_id: Agent
    sweep_id: SweepId
    at_us: Micros
    candidates: Count
    promoted: Count
    skipped: Count


class Promotion(_Strict):
    """What rose in a sweep, and why."""

    agent_id: Agent
    memory_id: MemoryId
    sweep_id: SweepId
    score: float
    recall_count: Count
    frequency: float
    relevance: float
    recency: float
    diversity: float
    consolidation: float
    unique_days: Count
    queries: Count
    last_us: Micros


class Chain(_Strict):
    """The end of an agent's ledger of entities as last known."""

    agent_id: Agent
    last_hash: Text
    last_id: Text
    events: Count


class HandedTurn(_Strict):
    """A turn of a session that still runs, as it was handed over."""

    agent_id: Agent
    session_key: Text
    session_id: Text
    turn: Count
    role: Said
    content: Body
    at: When


class Mark(_Strict):
    """That a memory was forgotten (its hash), or why a changed file was accepted, or one redacted."""

    key: Annotated[str, StringConstraints(pattern=r"^(?:gone:[0-9a-f]{32}|(?:accepted|redacted):memory/[^/]+)$")]
    value: Said


ROWS: dict[str, type[_Strict]] = {
    "seals": Seal,
    "memory_artifact_tombstones": Removal,
    "artifact_telemetry": Accesses,
    "flow_results": Answer,
    "captures": Capture,
    "memories": Memory,
    "memory_sources": Source,
    "pins": Pin,
    "node_telemetry": NodeAccesses,
    "recall_events": RecallEvent,
    "dream_sweeps": Sweep,
    "memory_promotions": Promotion,
    "garden_chain": Chain,
    "session_transcripts": HandedTurn,
    MARKS: Mark,
}
# Columns that hold JSON, and whether letters beyond ASCII are escaped in them.
_JSON: dict[tuple[str, str], bool] = {
    ("memory_artifact_tombstones", "removed_paths"): True,
    ("memory_artifact_tombstones", "session_ids"): True,
    ("flow_results", "answer"): False,
    ("memories", "tags"): False,
    ("memories", "concept_tags"): False,
}
_TIMES = ("sealed_at", "removed_at", "last_accessed_at", "at", "created_at", "pinned_at")


class Header(_Strict):
    """The first line. `as_of` is the newest instant that a row tells of; `seals`: whether their bytes are there."""

    format: Literal["signet-sync bundle"]
    version: Annotated[int, Field(ge=1)]
    workspace: Text
    agents: list[Agent]
    as_of: When | None = None
    seals: bool = True


class Row(NamedTuple):
    """A row of a bundle: the line it stands on, its table, its columns as SQLite holds them."""

    line: int
    table: str
    values: Stored


@dataclass(slots=True)
class Bundle:
    """What was read: `unknown` counts what this version does not know, by table or by table and field."""

    header: Header
    rows: list[Row] = field(default_factory=list)
    unknown: dict[str, int] = field(default_factory=dict)


# ── paths of one machine ──

Places = Sequence[tuple[str, str]]  # what stands for a folder, and the folder


def portable(path: str, places: Places) -> str:
    """A path below one of the places by that place's name: the home of another machine has another one."""
    for name, folder in places:
        if path.startswith(folder.rstrip("/") + "/"):
            return f"{name}/{path[len(folder.rstrip('/')) + 1 :]}"
    return path


def local(path: str, places: Places) -> str:
    """The same path on this machine."""
    for name, folder in places:
        if path.startswith(f"{name}/"):
            return f"{folder.rstrip('/')}/{path[len(name) + 1 :]}"
    return path


# ── writing ──


def lines(rows: Iterable[tuple[str, Stored]], workspace: str, *, seals: bool) -> Iterator[bytes]:
    """The lines of a bundle, each with its end; tables in their order, the lines of one sorted."""
    by_table: dict[str, list[tuple[int, bytes]]] = {table: [] for table in ROWS}
    agents: set[str] = set()
    newest = 0
    for table, values in rows:
        by_table[table].append((values.get("at_us") or 0, _line({"table": table, **_told(table, values)})))
        agents.add(values.get("agent_id") or "")
        newest = max(newest, _newest(values))
    head = {
        "format": FORMAT,
        "version": VERSION,
        "workspace": workspace,
        "agents": sorted(agents - {""}),
        "as_of": iso(newest) if newest else None,
        "seals": seals,
    }
    checksum = sha256()
    count = 0
    for line in (_line(head), *(line for table in by_table.values() for _, line in sorted(table))):
        checksum.update(line)
        count += 1
        yield line
    yield _line({"end": {"rows": count - 1, "sha256": checksum.hexdigest()}})


def _line(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"


def _newest(values: Stored) -> int:
    return max([values.get("at_us") or 0, *(parse_instant(values[name]) or 0 for name in _TIMES if values.get(name))])


def _told(table: str, values: Stored) -> Stored:
    """A row as a line tells it: lists as lists, bytes as base64."""
    told = dict(values)
    for column, value in values.items():
        if (table, column) in _JSON and value is not None:
            told[column] = json.loads(value)
    if table == "memories":
        told["private"] = bool(values["private"])
    if table == "memory_artifact_tombstones":  # what an older version took in of others
        told["removed_paths"] = [
            path for path in told["removed_paths"] if isinstance(path, str) and is_artifact_path(path)
        ]
    if isinstance(values.get("packed"), bytes):
        told["packed"] = base64.b64encode(values["packed"]).decode("ascii")
    return told


# ── reading ──


def read(raw_lines: Iterable[bytes]) -> Bundle:
    """A bundle from its lines. Raises `BundleProblem`: nothing of one that is not whole is believed."""
    checksum = sha256()
    bundle: Bundle | None = None
    number = 0
    ended = False
    for number, raw in enumerate(raw_lines, 1):
        line = (raw.removeprefix(b"\xef\xbb\xbf") if number == 1 else raw).rstrip(b"\r\n")
        if ended:
            if line:
                raise BundleProblem(number, "something stands behind the last line")
            continue
        document = _document(number, line)
        if bundle is None:
            bundle = Bundle(_header(document))
        elif "end" in document:
            _check_end(number, document["end"], checksum.hexdigest(), bundle)
            ended = True
        else:
            _take(bundle, number, document)
        checksum.update(line + b"\n")
    if bundle is None:
        raise BundleProblem(1, "it is empty", cut=True)
    if not ended:
        raise BundleProblem(number + 1, f"the last line is missing, {len(bundle.rows)} rows are there", cut=True)
    return bundle


def _document(number: int, line: bytes) -> dict[str, Any]:
    try:
        document = json.loads(line)
    except (ValueError, RecursionError):
        raise BundleProblem(number, "it is not JSON, or it was cut off", cut=number > 1) from None
    if not isinstance(document, dict):
        raise BundleProblem(number, "it is not a JSON object")
    return document


def _header(document: dict[str, Any]) -> Header:
    if document.get("format") != FORMAT:
        raise BundleProblem(1, "it is not the first line of a bundle")
    version = document.get("version")
    if isinstance(version, int) and version > VERSION:
        message = f"a newer signet-sync wrote the bundle (version {version}, this one knows {VERSION})"
        raise BundleProblem(1, message, newer=True)
    try:
        return Header.model_validate(document)
    except ValidationError as error:
        raise BundleProblem(1, _first_fault(error)) from None


def _take(bundle: Bundle, number: int, document: dict[str, Any]) -> None:
    table = document.pop("table", None)
    if not isinstance(table, str):
        raise BundleProblem(number, "it names no table")
    model = ROWS.get(table)
    if model is None:
        bundle.unknown[table] = bundle.unknown.get(table, 0) + 1
        return
    for name in document.keys() - model.model_fields.keys():
        bundle.unknown[f"{table}.{name}"] = bundle.unknown.get(f"{table}.{name}", 0) + 1
    try:
        bundle.rows.append(Row(number, table, _stored(table, model.model_validate(document).model_dump())))
    except ValidationError as error:
        raise BundleProblem(number, f"{table}: {_first_fault(error)}") from None
    except RecursionError:
        raise BundleProblem(number, f"{table}: it is nested too deeply") from None
    except ValueError:
        raise BundleProblem(number, f"{table}.packed: it is not base64") from None


def _stored(table: str, values: Stored) -> Stored:
    """A row as SQLite holds it. Raises `ValueError` (`binascii.Error`) for bytes that are none."""
    for column in values:
        if (table, column) in _JSON and values[column] is not None:
            values[column] = json.dumps(values[column], ensure_ascii=_JSON[table, column])
    if table == "memories":
        values["private"] = int(values["private"])
    if values.get("packed") is not None:
        try:
            values["packed"] = base64.b64decode(values["packed"], validate=True)
        except binascii.Error as error:
            raise ValueError(str(error)) from error
    return values


def sound(table: str, values: Stored) -> Stored | None:
    """A row from elsewhere as a bundle would take it in, its words sanitized; None where no signet-sync writes such."""
    bare = {column: value for column, value in values.items() if column != "packed"}
    try:
        read_back = _stored(table, ROWS[table].model_validate(_told(table, bare)).model_dump())
    except (ValueError, TypeError, RecursionError):
        return None
    return {column: read_back[column] if column in bare else values[column] for column in values}


def _check_end(number: int, end: object, checksum: str, bundle: Bundle) -> None:
    told = end if isinstance(end, dict) else {}
    count = len(bundle.rows) + sum(many for name, many in bundle.unknown.items() if "." not in name)
    if told.get("rows") != count:
        raise BundleProblem(number, f"it tells of {told.get('rows')} rows, {count} are there")
    if told.get("sha256") != checksum:
        raise BundleProblem(number, "the checksum is another one: a line before it was changed")


def _first_fault(error: ValidationError) -> str:
    """The first thing that is wrong, in words."""
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"]) or "the line"
    return f"{place}: {first['msg'].removeprefix('Value error, ')}"
