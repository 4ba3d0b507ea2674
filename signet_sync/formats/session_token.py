"""Derives session tokens, deterministically, from agent and identity."""

from __future__ import annotations

from base64 import b32encode
from functools import lru_cache
from hashlib import sha256

from signet_sync.formats.body import js_trim, text_sha256, utf8


@lru_cache(maxsize=4096)
def token_of(agent_id: str, identity: str) -> str:
    """Returns the first 16 characters of the lower-case base32 of `sha256("{agent_id}:{trimmed identity}")`."""
    digest = sha256(utf8(f"{agent_id}:{js_trim(identity)}")).digest()
    return b32encode(digest[:10]).decode("ascii").lower()


def forgotten_mark(agent_id: str, memory_id: str) -> str:
    """Returns what is kept of a forgotten memory, or of something of a removed session: a hash of agent and id."""
    return text_sha256(f"{agent_id}:{memory_id}")[:32]


def derive_token(agent_id: str, session_key: str | None, session_id: str) -> str:
    """Returns the token that we write: identity is `session_key` if it is not blank, else `session_id`."""
    return token_of(agent_id, session_key if session_key and js_trim(session_key) else session_id)


def token_matches(token: str, agent_id: str, session_key: str | None, session_id: str) -> bool:
    """Returns whether a token is right: derived from either identity (Signet changed its rule in 2026)."""
    if session_key and js_trim(session_key) and token == token_of(agent_id, session_key):
        return True
    return token == token_of(agent_id, session_id)
