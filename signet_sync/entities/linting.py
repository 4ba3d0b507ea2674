"""What is untidy about an entity file: findings for agents and people, never a reason to refuse a file."""

from __future__ import annotations

from typing import NamedTuple

from signet_sync.contracts.gardens import File
from signet_sync.entities.documents import Document


class Finding(NamedTuple):
    """One remark: the section's anchor (None: the file), a stable code, and what a person does next."""

    anchor: str | None
    code: str
    message: str
    hint: str


def lint(document: Document, file: File = "profile") -> list[Finding]:
    """What the schema would have otherwise, in the order of the file."""
    raise NotImplementedError
