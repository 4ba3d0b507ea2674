"""What a session of an agent is told, read from the workspace as it is, and at a prompt from the index too."""

from __future__ import annotations

from collections.abc import Sequence

from signet_sync import context
from signet_sync.agent import recall
from signet_sync.context import IDENTITIES, LIMIT, PROMPT_BUDGET, Recalled, Size
from signet_sync.contracts.observed import Found
from signet_sync.contracts.places import head_page
from signet_sync.contracts.sanitizer import sanitize_transcript_v1
from signet_sync.contracts.tokencount import estimate_tokens
from signet_sync.index.database import Database
from signet_sync.recall.query import Query
from signet_sync.recall.rank import TIERS, Candidate, Tier, for_prompt
from signet_sync.vault import files

SIZE_LIMIT = 4 * 1024 * 1024  # bytes; what is larger is no page to be read at every start
# Bytes that fill a limit, whatever they hold: four make a character of UTF-8 at most, and a token rarely has sixteen.
_PER_CHARACTER, _PER_TOKEN = 5, 16
_MOST_RECALLED = 12
_CUT = "\n[No more of this file was read.]"


class Composed:
    """The text, the paths (relative to the workspace) that it was made of, and what could not be read and why.

    `ids` are those of what was recalled for it.
    """

    def __init__(self, text: str, sources: list[str], troubles: list[str], ids: list[str] | None = None) -> None:
        self.text = text
        self.sources = sources
        self.troubles = troubles
        self.ids = ids or []


def compose(root: str, agent_id: str, *, shared: bool = False, limit: int = LIMIT, size: Size = len) -> Composed:
    """The context of an agent; with `shared` without its MEMORY.md, for places that others read too.

    Nothing is followed out of the workspace: a symlink among these files is trouble, not text.
    """
    sources: list[str] = []
    troubles: list[str] = []

    def read(path: str) -> str:
        found = files.read(root, path, SIZE_LIMIT)
        if not isinstance(found, Found):
            if found.code != "gone":
                troubles.append(f"{path}: {found.message}")
            return ""
        text = sanitize_transcript_v1(_beginning(found.raw, limit * (_PER_CHARACTER if size is len else _PER_TOKEN)))
        if text.strip():
            sources.append(path)
        return text

    page = head_page(agent_id)
    memory = "" if shared else read(page)
    identities = [(path, read(path)) for path in IDENTITIES]
    return Composed(context.compose(memory, identities, limit, memory_path=page, size=size), sources, troubles)


def prompted(
    root: str, database: Database, agent_id: str, prompt: str, *, shared: bool = False, budget: int | None = None
) -> Composed:
    """What memory holds on a prompt, in at most `budget` tokens (else `PROMPT_BUDGET`).

    With `shared` memories that are not private alone, and behind them the identity files in what the budget leaves
    (contracts: what others read too). Raises what reading the database raises.
    """
    tiers: tuple[Tier, ...] = ("memory",) if shared else TIERS
    _, found = recall.find(database, prompt, agent_id, _called_for, tiers=tiers, private=not shared)
    hits = [Recalled(one.text, one.where, one.path, one.id) for one in found]
    text, kept = context.recalled(hits, budget or PROMPT_BUDGET, estimate_tokens)
    sources = list(dict.fromkeys(hit.path for hit in kept if hit.path is not None))
    ids = [hit.id for hit in kept]
    if not shared:
        return Composed(text, sources, [], ids)
    left = None if budget is None else budget - estimate_tokens(text) - 2
    who = (
        compose(root, agent_id, shared=True)
        if left is None
        else compose(root, agent_id, shared=True, limit=max(left, 0), size=estimate_tokens)
    )
    return Composed("\n\n".join(filter(None, [text, who.text])), [*sources, *who.sources], who.troubles, ids)


def _called_for(query: Query, found: Sequence[Candidate]) -> Sequence[Candidate]:
    return for_prompt(query, found, _MOST_RECALLED)


def _beginning(raw: bytes, enough: int) -> str:
    """The text, or so much of it as can be shown, in whole lines as far as there are any: no secret loses its end."""
    end = len(raw)
    if end > enough:
        end = max(raw.rfind(b"\n", 0, enough), 0) or enough
    return raw[:end].decode("utf-8-sig", "replace") + (_CUT if end < len(raw) else "")
