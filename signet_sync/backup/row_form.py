"""Checks rows of a backup before they are taken over: each value has the form of its column, words are sanitized."""

from __future__ import annotations

import json
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, create_model
from pydantic.functional_validators import AfterValidator

from signet_sync.formats.filename import is_artifact_path
from signet_sync.formats.timestamps import parse_instant
from signet_sync.storage.database import table as database_table
from signet_sync.storage.database.table import PATTERNS, Escaped, Table, bare, is_json
from signet_sync.storage.database.tables import TABLES
from signet_sync.text.sanitizer import sanitize_line, sanitize_transcript_v2
from signet_sync.text.stored_names import storable_path

Stored = dict[str, Any]  # a row as SQLite stores it


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


def _make_range(least: int, below: int) -> Any:
    return Annotated[int, Field(ge=least, lt=below)]


# The required form of values by column type. Words pass the sanitizer before they reach a row, also restored ones.
_Said = Annotated[str, AfterValidator(_plain), AfterValidator(sanitize_line)]
_Text = Annotated[str, AfterValidator(_plain)]
_CHECKS: dict[Any, Any] = {
    **{kind: Annotated[str, StringConstraints(pattern=pattern)] for kind, pattern in PATTERNS.items()},
    str: _Text,
    database_table.Text: _Text,
    database_table.Artifact: Annotated[str, AfterValidator(_plain), AfterValidator(_artifact)],
    database_table.Body: Annotated[str, AfterValidator(_plain), AfterValidator(sanitize_transcript_v2)],
    database_table.Count: _make_range(0, 2**63),
    database_table.Instant: _make_range(0, 253_402_300_800_000_000),  # up to the year 9999
    database_table.Micros: _make_range(0, 253_402_300_800_000_000),
    database_table.Number: _make_range(-(2**63), 2**63),  # the integers that SQLite stores
    database_table.Outside: Annotated[str, AfterValidator(_plain), AfterValidator(storable_path)],
    database_table.SanitizedLine: _Said,
    database_table.When: Annotated[str, AfterValidator(_instant)],
    **dict.fromkeys((bytes, database_table.FileBytes), bytes),
}


def _check_type(kind: Any) -> Any:
    """Converts a column's type to that of a field of the model, with its checks."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return Union[tuple(_check_type(one) for one in inner)]  # noqa: UP007
    if is_json(kind):
        listed = issubclass(origin, list)
        return list[_check_type(inner[0])] if listed else Annotated[kind, AfterValidator(_texts)]  # type: ignore[misc]
    return _CHECKS.get(kind, kind)


class _Strict(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True, allow_inf_nan=False)


def model(declared: Table) -> type[BaseModel]:
    """Returns the model of a table's rows: lists, booleans and the like as such."""
    columns: dict[str, Any] = {
        column: (_check_type(kind), None if NoneType in get_args(kind) else ...)
        for column, kind in declared.types.items()
    }
    return create_model(declared.name, __base__=_Strict, **columns)


@cache
def _model_of(name: str) -> type[BaseModel]:
    return model(TABLES[name])


def validate(name: str, values: Stored) -> Stored | None:
    """Returns a row with its words sanitized; None if signet-sync cannot have written it."""
    kinds = {column: bare(kind) for column, kind in TABLES[name].types.items()}
    given = dict(values)
    try:
        for column, kind in kinds.items():
            if given.get(column) is not None and (is_json(kind) or kind is bool):
                given[column] = json.loads(given[column]) if is_json(kind) else bool(given[column])
        checked = _model_of(name).model_validate(given).model_dump()
    except (ValueError, TypeError, RecursionError):
        return None
    for column, kind in kinds.items():
        if checked.get(column) is not None:
            if is_json(kind):
                checked[column] = json.dumps(checked[column], ensure_ascii=get_origin(kind) is Escaped)
            elif kind is bool:
                checked[column] = int(checked[column])
    return {column: checked[column] for column in values}
