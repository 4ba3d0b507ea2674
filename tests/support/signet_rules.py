"""Signet's line reader and what it asks of a file before it indexes it, written from their description.

Nothing of signet_sync takes part. The reader is strict where Signet is silent: a line that it would misread or drop
fails here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

DECIMAL = re.compile(r"-?\d+(\.\d+)?", re.ASCII)
KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


def scalar(text: str) -> Any:
    """One value as Signet types it."""
    if text.startswith('"') or text in ("null", "true", "false"):
        return json.loads(text)
    assert DECIMAL.fullmatch(text), f"Signet would take this as it stands: {text!r}"
    return json.loads(text)


def signet_reads(raw: bytes) -> tuple[dict[str, Any], str]:
    """Fields and body. The head ends at the first `\\n---\\n`; a line is `key: scalar`, `key:` or `  - scalar`."""
    text = raw.decode("utf-8")
    assert text.startswith("---\n") and "\r" not in text
    closing = text.index("\n---\n", 4)
    found: dict[str, Any] = {}
    items: list[Any] | None = None
    for line in text[4:closing].split("\n"):
        if line.startswith("  - "):
            assert items is not None, f"an item of no list: {line!r}"
            items.append(scalar(line[4:]))
            continue
        key, colon, value = line.partition(":")
        assert colon and KEY.fullmatch(key) and key not in found, f"no key: {line[:80]!r}"
        if value == "":
            items = found[key] = []
            continue
        assert value.startswith(" ") and value[1:2] not in ("", " "), f"no value: {line[:80]!r}"
        items = None
        found[key] = scalar(value[1:])
    return found, text[closing + 5 :]


def normalized(body: str) -> str:
    """A body as Signet hashes it."""
    lines = [line.rstrip(" \t") for line in re.sub("\r\n?", "\n", body).split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    return "\n".join(lines)


def _said(fields: dict[str, Any], *names: str) -> bool:
    return all(isinstance(fields.get(name), str) and fields[name].strip() for name in names)


_KINDS = ("summary", "transcript", "compaction", "manifest")
# All of these hold of what Signet indexes; it drops everything else without a word.
RULES: dict[str, Callable[[str, dict[str, Any], str], bool]] = {
    "one of four kinds": lambda path, fields, body: fields.get("kind") in _KINDS,
    "the kind of its name": lambda path, fields, body: path.endswith(f"--{fields.get('kind')}.md"),
    "lies below memory/": lambda path, fields, body: path.startswith("memory/"),
    "names agent, session and time": lambda path, fields, body: _said(
        fields, "agent_id", "session_id", "captured_at", "hash_scope", "content_sha256"
    ),
    "its scope of hashing": lambda path, fields, body: fields.get("hash_scope") == "body-normalized-v1",
    "the hash of its body": lambda path, fields, body: (
        fields.get("content_sha256") == sha256(normalized(body).encode()).hexdigest()
    ),
    "its version of the sanitizer": lambda path, fields, body: (
        fields.get("kind") != "transcript" or fields.get("sanitizer_version") == "sanitize_transcript_v1"
    ),
    "a manifest below memory/": lambda path, fields, body: (
        fields.get("kind") == "manifest" or str(fields.get("manifest_path")).startswith("memory/")
    ),
}


def refusal(path: str, raw: bytes) -> str:
    """The first rule that a file breaks; "" if Signet takes it."""
    try:
        fields, body = signet_reads(raw)
    except (AssertionError, ValueError) as error:
        return f"cannot be read: {error}"
    return next((name for name, holds in RULES.items() if not holds(path, fields, body)), "")


def refused(root: Path) -> dict[str, str]:
    """The artifacts of a workspace that Signet does not take, each with why."""
    found = {f"memory/{path.name}": path for path in sorted(root.glob("memory/*--*--*.md")) if path.is_file()}
    return {path: why for path, file in found.items() if (why := refusal(path, file.read_bytes()))}
