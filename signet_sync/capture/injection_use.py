"""Finds which of the things that hooks injected at prompts a session used later: expanded, opened or quoted."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

from signet_sync.capture import injections
from signet_sync.capture import store as capture_store
from signet_sync.capture.harnesses.records import Conversation
from signet_sync.formats.lazy_pattern import late
from signet_sync.sync.workspace import Workspace

_QUOTED = 6  # words in a row that make a quotation
_SHORTEST = 12  # characters of a text that can be quoted
_MOST_READ = 4_000_000  # characters of a session that are searched

_ID = late(r"[skcaetfmxupr]-[a-z2-7]{4,12}(?![a-z2-7])", re.ASCII)
_WORD = late(r"[^\W_]+")


def record_use(workspace: Workspace, agent_id: str, conversation: Conversation) -> None:
    """Records what a session used of the things injected at its prompts; what cannot be recorded now is left out."""
    record = injections.read(workspace.state, agent_id, conversation.session_id)
    waiting = [] if record is None else [one for one in record.at_prompts if one not in record.used]
    if not waiting:
        return
    texts, paths = capture_store.injected(workspace.database, agent_id, waiting)
    said = [entry.text for entry in conversation.entries if entry.kind in ("assistant", "tool")]
    found = used(waiting, texts, paths, said)
    if found:
        with suppress(OSError):
            injections.mark_used(workspace.state, agent_id, conversation.session_id, found)


def used(ids: Iterable[str], texts: Mapping[str, str], paths: Mapping[str, str], said: Sequence[str]) -> list[str]:
    """Returns the ids that are named in what was `said`, or whose path is, or of whose text six words in a row are."""
    whole = "\n".join(said)[:_MOST_READ]
    named = tuple(set(_ID.findall(whole)))
    plain = _plain(whole)
    return [
        one
        for one in ids
        if any(one.startswith(name) for name in named)
        or (one in paths and paths[one] in whole)
        or _is_quoted(texts.get(one, ""), plain)
    ]


def _is_quoted(text: str, plain: str) -> bool:
    words = _plain(text).split()
    spans = (words[start : start + _QUOTED] for start in range(max(len(words) - _QUOTED, 0) + 1))
    return len("".join(words)) >= _SHORTEST and any(f" {' '.join(span)} " in plain for span in spans)


def _plain(text: str) -> str:
    return f" {' '.join(_WORD.findall(text.casefold()))} "
