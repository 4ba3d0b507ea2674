"""Decides, from what a harness reports about a session, whether others read it; cheap to import, for hooks."""

from __future__ import annotations

import re
from collections.abc import Mapping

from signet_sync.formats.lazy_pattern import late

_DIRECT = frozenset({"direct", "dm", "dms", "im", "private"})
# Chats that others read, by the names that chat programs give them.
_GROUP = late(
    r"(?<![a-z])(?:broadcast|channel|chatroom|conference|forum|global|group|guild|mpim|multi|newsletter|public|room|server"
    r"|shared|space|supergroup|team)s?(?![a-z])",
    re.ASCII,
)
_THREAD = late(r"(?<![a-z])(?:thread|topic)s?(?![a-z])", re.ASCII)  # inside a private chat or inside a group
# What shows that a key without structure is one of a chat at all.
_CHAT = late(
    r"@|[^\x00-\x7f]|\A[#+!&]|(?<![a-z])(?:agent|discord|feishu|googlechat|imessage|irc|line|lark|matrix|mattermost|msteams"
    r"|nostr|qq|signal|slack|sms|telegram|twitch|viber|wechat|whatsapp|zalo|zulip)(?![a-z])"
)
_KEYS = ("sessionKey", "session_key")
_KINDS = ("chatType", "chat_type", "peerKind", "peer_kind")
_SIGNS = ("groupId", "group_id", "groupChannel", "group_channel", "guildId", "guild_id", "isGroup", "is_group")
_GROUP_ADDRESS = late(r"@(?:g\.us|broadcast|newsletter)\b", re.ASCII)  # of WhatsApp


def is_shared(said: Mapping[str, object], *, carries_chats: bool) -> bool:
    """Returns whether others read a session, by the hook's document: then private memory is not for it.

    The document may hold a session key (`sessionKey`: `agent:main:whatsapp:group:1`), the kind of the chat (`chatType`:
    `direct`, `group`, `channel`) and the id of a group. A field that says group wins over one that does not; a chat
    that is named but not understood counts as a group; if none is named, others may read in a harness that
    `carries_chats`.
    """
    kinds = [said[name] for name in _KINDS if not _is_blank(said.get(name))]
    if any(said.get(name) for name in _SIGNS) or any(not _is_direct(kind) for kind in kinds):
        return True
    places = [place_of(said.get(name)) for name in _KEYS]
    if "group" in places:
        return True
    if kinds:
        return False
    return "unknown" in places or ("direct" not in places and carries_chats)


def place_of(key: object) -> str:
    """Returns what a session key names: `group` (others read), `direct` (a private chat), `unknown`, or "" for none."""
    if _is_blank(key):
        return ""
    if not isinstance(key, str):
        return "unknown"
    parts = [part.strip() for part in key.strip().lower().split(":")]
    if _GROUP_ADDRESS.search(key.lower()):
        return "group"
    if len(parts) == 1:
        return "direct" if parts == ["main"] else _place_of_word(parts[0])
    body = parts[2:] if parts[0] == "agent" and parts[1] and len(parts) > 2 else parts
    at = next((at for at, part in enumerate(body[:3]) if part in _DIRECT), None)
    if at is not None and at + 1 < len(body):  # program, account, direct, the other person
        head, tail = body[:at], body[at + 1 :]
        if any(map(_GROUP.search, head)) or any(map(_GROUP.fullmatch, tail)):
            return "group"
        return "direct" if all(body) and not any(map(_THREAD.search, head)) else "unknown"
    if any(map(_GROUP.search, body)):
        return "group"
    main = body is not parts and body[0] == "main" and (len(body) == 1 or _THREAD.fullmatch(body[1]))
    return "direct" if main and all(body) else "unknown"


def _place_of_word(word: str) -> str:
    if _GROUP.search(word) or _THREAD.search(word):
        return "group"
    return "unknown" if _CHAT.search(word) else ""


def _is_direct(kind: object) -> bool:
    return isinstance(kind, str) and kind.strip().lower() in _DIRECT


def _is_blank(value: object) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())
