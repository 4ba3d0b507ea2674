"""Reads and writes manifests, a session's one mutable file, by compare-and-swap on the revision."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

from signet_sync.errors import RevisionConflict
from signet_sync.formats.artifact_fastpath import MANIFEST_FIELDS, MANIFEST_KEYS, manifest_fields
from signet_sync.formats.artifact_record import REPOSITORY_FIELDS, FieldProblem
from signet_sync.formats.body import HASH_SCOPE, body_sha256, normalize
from signet_sync.formats.frontmatter import (
    HEAD_LIMIT,
    Document,
    FrontmatterProblem,
    open_source,
    parse,
    unknown_entries,
    write,
)
from signet_sync.formats.snapshot import Found, Signature
from signet_sync.storage import files

RETRIES = 5


def text_of(fields: Mapping[str, Any], body: str, unknown: Mapping[str, Any] | None = None) -> bytes:
    """Formats a manifest: fields in model order, hash of the body, then unknown keys; the body is unchanged."""
    ordered = {name: fields.get(name) for name in MANIFEST_FIELDS}
    ordered["content_sha256"] = body_sha256(normalize(body))
    ordered["hash_scope"] = HASH_SCOPE
    ordered.update({name: fields[name] for name in REPOSITORY_FIELDS if name in fields})
    ordered.update(unknown or {})
    return write(ordered, body.removesuffix("\n"))


def read(root: str, path: str, limit: int) -> tuple[Found, Document, dict[str, Any]] | None:
    """Returns a manifest with its document and fields; None if it cannot be read or is not a manifest."""
    found = files.read(root, path, limit)
    if not isinstance(found, Found):
        return None
    try:
        document = parse(found.raw)
        return found, document, manifest_fields(document.head)
    except (FrontmatterProblem, FieldProblem):
        return None


def swap(
    root: str,
    path: str,
    change: Callable[[dict[str, Any], str], tuple[dict[str, Any], str] | None],
    lock: Callable[[], AbstractContextManager[None]],
    *,
    limit: int,
    sync_folder: bool = True,
) -> tuple[bytes, Signature] | None:
    """Changes a manifest under its session's lock: read, change, compare, write `revision + 1`.

    Without `sync_folder` the caller syncs the folder, once for several (`files.sync_folders`). `change` gets the fields
    and the body and returns both, or None if nothing is to be written. An unreadable manifest is left alone (None).
    Raises `RevisionConflict` after a bounded number of lost races.
    """
    for _ in range(RETRIES):
        with lock():
            known = read(root, path, limit)
            if known is None:
                return None
            found, document, before = known
            changed = change(dict(before), document.body)
            if changed is None:
                return None
            fields, body = changed
            fields["revision"] = before["revision"] + 1
            data = text_of(fields, body, dict(unknown_entries(document.head, MANIFEST_KEYS)))
            if len(open_source(data).head) > HEAD_LIMIT // 4 and not _is_readable(data):
                return None  # a person's own keys make it too large: written, it could not be read again
            if files.read(root, path, limit) != found:
                continue
            replaced = files.replace(root, path, data, found.raw, sync_folder=sync_folder)
            if replaced.displaced is None:
                return data, replaced.signature
    raise RevisionConflict(
        "the manifest kept changing while it was written", path=path, hint="it is tried again by itself"
    )


def _is_readable(data: bytes) -> bool:
    try:
        parse(data)
    except FrontmatterProblem:
        return False
    return True
