"""Reads and writes bundles: native rows as JSON Lines, readable for people and other tools.

The first line is a header. The last line has the row count and the checksum of all lines before it, so that cut or
changed files are detected. In between is one row per line. Equal rows give equal bytes: the lines of a table are
sorted, events by time, and the time of writing is not recorded.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, create_model
from pydantic.functional_validators import AfterValidator

from signet_sync.formats.filename import is_artifact_path
from signet_sync.formats.timestamps import iso, parse_instant
from signet_sync.storage.database import table as database_table
from signet_sync.storage.database.older import rows_of
from signet_sync.storage.database.table import PATTERNS, Escaped, Instant, Table, When, bare, is_bytes, is_json
from signet_sync.storage.database.tables import TABLES, backed_up
from signet_sync.text.sanitizer import sanitize_line, sanitize_transcript_v2
from signet_sync.text.stored_names import storable_path

FORMAT = "signet-sync bundle"
VERSION = 1
# Of 0.1.0: forgotten and accepted entries as keys and values.
_KEYS = "marks"
LONGEST_LINE = 128 * 1024 * 1024  # bytes

Stored = dict[str, Any]  # a row as SQLite stores it


class BundleProblem(ValueError):
    """A line is invalid; `line` counts from 1, `cut`: the end of the file is missing.

    `newer`: a newer signet-sync wrote the file.
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
    """Sanitizes every text in a JSON value."""
    if isinstance(value, str):
        return sanitize_transcript_v2(value)
    if isinstance(value, list):
        return [_texts(one) for one in value]
    if isinstance(value, dict):
        return {_plain(key): _texts(one) for key, one in value.items()}
    return value


def _from(least: int, below: int) -> Any:
    return Annotated[int, Field(ge=least, lt=below)]


# The required form of values by column type. Words pass the sanitizer before they reach a row, also imported ones.
_MATCHING = {kind: Annotated[str, StringConstraints(pattern=pattern)] for kind, pattern in PATTERNS.items()}
_Said = Annotated[str, AfterValidator(_plain), AfterValidator(sanitize_line)]
_Text = Annotated[str, AfterValidator(_plain)]
_When = Annotated[str, AfterValidator(_instant)]
_CHECKS: dict[Any, Any] = {
    **_MATCHING,
    str: _Text,
    database_table.Text: _Text,
    database_table.Artifact: Annotated[str, AfterValidator(_plain), AfterValidator(_artifact)],
    database_table.Body: Annotated[str, AfterValidator(_plain), AfterValidator(sanitize_transcript_v2)],
    database_table.Count: _from(0, 2**63),
    Instant: _from(0, 253_402_300_800_000_000),  # up to the year 9999
    database_table.Micros: _from(0, 253_402_300_800_000_000),
    database_table.Number: _from(-(2**63), 2**63),  # the integers that SQLite stores
    database_table.Outside: Annotated[str, AfterValidator(_plain), AfterValidator(storable_path)],
    database_table.SanitizedLine: _Said,
    When: _When,
    **dict.fromkeys((bytes, database_table.FileBytes), str),  # base64
}


def _checked(kind: Any) -> Any:
    """Converts a column's type to that of the field in a line, with its checks."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return Union[tuple(_checked(one) for one in inner)]  # noqa: UP007
    if is_json(kind):
        listed = issubclass(origin, list)
        return list[_checked(inner[0])] if listed else Annotated[kind, AfterValidator(_texts)]  # type: ignore[misc]
    return _CHECKS.get(kind, kind)


class _Strict(BaseModel):
    # Fields of newer versions are reported and skipped.
    model_config = ConfigDict(extra="ignore", strict=True, allow_inf_nan=False)


class _Key(_Strict):
    key: Annotated[str, StringConstraints(pattern="^(?:gone|accepted):")]
    value: str


def tables() -> tuple[str, ...]:
    """Lists the tables whose rows a bundle contains, in order."""
    return tuple(one.name for one in backed_up())


def model(name: str) -> type[BaseModel]:
    """Returns the model of a table's lines. Raises `KeyError` for a table that is not backed up."""
    if not TABLES[name].row:
        raise KeyError(name)
    return _model(TABLES[name])


@cache
def _model(declared: Table) -> type[BaseModel]:
    columns: dict[str, Any] = {
        column: (_checked(kind), None if NoneType in get_args(kind) else ...) for column, kind in declared.types.items()
    }
    return create_model(declared.name, __base__=_Strict, **columns)


class Header(_Strict):
    """The first line. `as_of` is the newest instant in a row; `seals`: whether their bytes are included."""

    format: Literal["signet-sync bundle"]
    version: Annotated[int, Field(ge=1)]
    workspace: _Text
    agents: list[_MATCHING[database_table.Agent]]  # type: ignore[valid-type]
    as_of: _When | None = None
    seals: bool = True


class BundleRow(NamedTuple):
    """A row of a bundle: its line number, its table, its columns as SQLite stores them."""

    line: int
    table: str
    values: Stored


@dataclass(slots=True)
class Bundle:
    """The content of a bundle; `unknown` counts what this version does not know, by table or by table and field."""

    header: Header
    rows: list[BundleRow] = field(default_factory=list)
    unknown: dict[str, int] = field(default_factory=dict)


# ── paths of one machine ──

Places = Sequence[tuple[str, str]]  # a folder's placeholder, and the folder


def portable(path: str, places: Places) -> str:
    """Replaces one of the folders at a path's beginning by its placeholder, since folders differ between machines."""
    for name, folder in places:
        if path.startswith(folder.rstrip("/") + "/"):
            return f"{name}/{path[len(folder.rstrip('/')) + 1 :]}"
    return path


def local(path: str, places: Places) -> str:
    """Replaces a placeholder by this machine's folder."""
    for name, folder in places:
        if path.startswith(f"{name}/"):
            return f"{folder.rstrip('/')}/{path[len(name) + 1 :]}"
    return path


# ── writing ──


def lines(rows: Iterable[tuple[str, Stored]], workspace: str, *, seals: bool) -> Iterator[bytes]:
    """Yields the lines of a bundle, each with its line end; tables in order, the lines of each sorted."""
    by_table: dict[str, list[tuple[int, bytes]]] = {table: [] for table in tables()}
    agents: set[str] = set()
    newest = 0
    for table, values in rows:
        moments = _of_type(Instant, table, values)
        by_table[table].append((max(moments, default=0), _line({"table": table, **_line_of(table, values)})))
        agents.add(values.get("agent_id") or "")
        moments += [parse_instant(text) or 0 for text in _of_type(When, table, values)]
        newest = max([newest, *moments])
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


def _types(name: str) -> dict[str, Any]:
    return TABLES[name].types if name in TABLES else {}


def _of_type(kind: Any, name: str, values: Stored) -> list[Any]:
    """Returns the values of all columns of a type, without empty ones."""
    return [values[column] for column, one in _types(name).items() if one is kind and values.get(column)]


def _line_of(name: str, values: Stored) -> Stored:
    """Converts a row to the form of a line: lists as lists, bytes as base64."""
    converted = dict(values)
    for column, kind in ((column, bare(kind)) for column, kind in _types(name).items()):
        value = values.get(column)
        if is_json(kind) and value is not None:
            converted[column] = json.loads(value)
            if get_args(kind)[0] is database_table.Artifact:  # older versions also recorded other paths here
                converted[column] = [one for one in converted[column] if isinstance(one, str) and is_artifact_path(one)]
        elif kind is bool and value is not None:
            converted[column] = bool(value)
        elif is_bytes(kind) and isinstance(value, bytes):
            converted[column] = base64.b64encode(value).decode("ascii")
    return converted


# ── reading ──


def read(raw_lines: Iterable[bytes]) -> Bundle:
    """Reads a bundle from its lines. Raises `BundleProblem`; an incomplete bundle is rejected as a whole."""
    checksum = sha256()
    bundle: Bundle | None = None
    number = 0
    ended = False
    for number, raw in enumerate(raw_lines, 1):
        line = (raw.removeprefix(b"\xef\xbb\xbf") if number == 1 else raw).rstrip(b"\r\n")
        if ended:
            if line:
                raise BundleProblem(number, "there is text after the last line")
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
        raise BundleProblem(number + 1, f"the last line is missing, after {len(bundle.rows)} rows", cut=True)
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
    name = document.pop("table", None)
    if not isinstance(name, str):
        raise BundleProblem(number, "it names no table")
    if name == _KEYS:
        name, document = _of_key(number, document)
    if name not in tables():
        bundle.unknown[name] = bundle.unknown.get(name, 0) + 1
        return
    wanted = model(name)
    for column in document.keys() - wanted.model_fields.keys():
        bundle.unknown[f"{name}.{column}"] = bundle.unknown.get(f"{name}.{column}", 0) + 1
    try:
        bundle.rows.append(BundleRow(number, name, _stored(name, wanted.model_validate(document).model_dump())))
    except ValidationError as error:
        raise BundleProblem(number, f"{name}: {_first_fault(error)}") from None
    except RecursionError:
        raise BundleProblem(number, f"{name}: it is nested too deeply") from None
    except ValueError as error:
        raise BundleProblem(number, f"{name}.{error}") from None


def _of_key(number: int, document: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Converts an old line of key and value to today's table and row."""
    try:
        key = _Key.model_validate(document)
    except ValidationError as error:
        raise BundleProblem(number, f"{_KEYS}: {_first_fault(error)}") from None
    table, row = next(rows_of({key.key: key.value}))
    return table, {column: row[column] for column in TABLES[table].types}


def _stored(name: str, values: Stored) -> Stored:
    """Converts a row to what SQLite stores. Raises `ValueError` for invalid base64."""
    for column, kind in ((column, bare(kind)) for column, kind in _types(name).items()):
        value = values.get(column)
        if value is None:
            continue
        if is_json(kind):
            values[column] = json.dumps(value, ensure_ascii=get_origin(kind) is Escaped)
        elif kind is bool:
            values[column] = int(value)
        elif is_bytes(kind):
            try:
                values[column] = base64.b64decode(value, validate=True)
            except binascii.Error:
                raise ValueError(f"{column}: it is not base64") from None
    return values


def validated(name: str, values: Stored) -> Stored | None:
    """Returns a row as a bundle would import it, words sanitized; None if signet-sync cannot have written it."""
    kinds = _types(name)
    texts = {column: value for column, value in values.items() if not is_bytes(kinds.get(column))}
    try:
        read_back = _stored(name, model(name).model_validate(_line_of(name, texts)).model_dump())
    except (ValueError, TypeError, RecursionError):
        return None
    return {column: read_back[column] if column in texts else values[column] for column in values}


def _check_end(number: int, end: object, checksum: str, bundle: Bundle) -> None:
    totals = end if isinstance(end, dict) else {}
    count = len(bundle.rows) + sum(many for name, many in bundle.unknown.items() if "." not in name)
    if totals.get("rows") != count:
        raise BundleProblem(number, f"it announces {totals.get('rows')} rows, but there are {count}")
    if totals.get("sha256") != checksum:
        raise BundleProblem(number, "the checksum differs: a line before it was changed")


def _first_fault(error: ValidationError) -> str:
    """Describes the first validation error."""
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"]) or "the line"
    return f"{place}: {first['msg'].removeprefix('Value error, ')}"
