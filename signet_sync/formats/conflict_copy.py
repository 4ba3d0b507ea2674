"""Recognizes copies that sync services make of pages and entity files that changed on two sides, by their names."""

from __future__ import annotations

import re

from signet_sync.formats.entity_paths import parse_ledger_page, parse_path
from signet_sync.formats.filename import is_copy_mark
from signet_sync.formats.lazy_pattern import late
from signet_sync.formats.paths import page_agent

_COPY = late(r"(MEMORY|DREAMS|profile|notes|\d{4}-\d\d|\d\d)(?=[^\w].*\.).*?(\.md|\.jsonl)", re.ASCII | re.DOTALL)
_OF_SPEAKING = late(r"(.+?)(?: \(|\.sync-conflict-|[ ._-]+conflict| (?=\d{1,3}\.md$))[^/]*(\.md)", re.IGNORECASE)


def original_of(path: str) -> str | None:
    """Returns the page, entity file or event log that a path is a conflict copy of; None for any other path.

    In the folder of an entity it may as well be a note of a person's (`formats.entity_paths.states_id`).
    """
    folder, slash, name = path.rpartition("/")
    match = _COPY.fullmatch(name) or _OF_SPEAKING.fullmatch(name)
    if match is None or not is_copy_mark(name[len(match[1]) : -len(match[2])]):
        return None
    original = f"{folder}{slash}{match[1]}{match[2]}"
    known = page_agent(original) or parse_path(original) or parse_ledger_page(original)
    return original if known is not None else None
