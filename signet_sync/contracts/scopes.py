"""Decides from what a harness says of a session's place whether others read there; cheap to import, for hooks."""

from __future__ import annotations

import re
from collections.abc import Mapping

CHATS = ("openclaw",)  # harnesses that carry chats: where they name no place, others may read

_DIRECT = frozenset({"direct", "dm", "dms", "im", "private"})
# Places that others read, by the names that chat programs give them.
_GROUPS = frozenset(
    "broadcast broadcasts channel channels chatroom chatrooms conference conferences forum forums global group groups"
    " guild guilds mpim multi newsletter newsletters public room rooms server servers shared space spaces supergroup"
    " supergroups team teams".split()
)
_THREADS = frozenset({"thread", "threads", "topic", "topics"})  # inside a private chat or inside a group
# What says that a key without structure is one of a chat at all.
_PROGRAMS = frozenset(
    "agent discord feishu googlechat imessage irc line lark matrix mattermost msteams nostr qq signal slack sms teams"
    " telegram twitch viber wechat whatsapp zalo zulip".split()
)
_KEYS = ("sessionKey", "session_key")
_KINDS = ("chatType", "chat_type", "peerKind", "peer_kind")
_SIGNS = ("groupId", "group_id", "groupChannel", "group_channel", "guildId", "guild_id", "isGroup", "is_group")
_GROUP_ADDRESS = re.compile(r"@(?:g\.us|broadcast|newsletter)\b", re.ASCII)  # of WhatsApp
_WORD = re.compile(r"[a-z]+", re.ASCII)


def is_shared(harness: str, said: Mapping[str, object]) -> bool:
    """Whether others read where a session takes place, by the hook's document: then its memory is not for it.

    The document may hold a session key (`sessionKey`: `agent:main:whatsapp:group:1`), the kind of the place
    (`chatType`: `direct`, `group`, `channel`) and the id of a group. One that says a group counts before one that says
    none; a place that is named and not understood counts as a group; where none is named, the harness decides.
    """
    kinds = [said[name] for name in _KINDS if not _is_blank(said.get(name))]
    if any(said.get(name) for name in _SIGNS) or any(not _is_direct(kind) for kind in kinds):
        return True
    places = [place_of(said.get(name)) for name in _KEYS]
    if "group" in places:
        return True
    if kinds:
        return False
    return "unknown" in places or ("direct" not in places and harness in CHATS)


def place_of(key: object) -> str:
    """What a session key names: a `group` (others read there), a `direct` chat, an `unknown` place, or none: ``."""
    if _is_blank(key):
        return ""
    if not isinstance(key, str):
        return "unknown"
    parts = [part.strip() for part in key.strip().lower().split(":")]
    if _GROUP_ADDRESS.search(key.lower()):
        return "group"
    if len(parts) == 1:
        return "direct" if parts == ["main"] else _place_of_word(parts[0])
    body = parts[2:] if parts[0] == "agent" and parts[1] else parts
    at = next((at for at, part in enumerate(body[:3]) if part in _DIRECT), None)
    if at is not None and at + 1 < len(body):  # program, account, direct, whom
        head, tail = body[:at], body[at + 1 :]
        if any(_names_group(part) for part in head) or not _GROUPS.isdisjoint(tail):
            return "group"
        return "direct" if all(body) and not any(_is_thread(part) for part in head) else "unknown"
    if any(_names_group(part) for part in body):
        return "group"
    if body[:1] == ["main"] and body is not parts and (len(body) == 1 or (len(body) > 2 and _is_thread(body[1]))):
        return "direct" if all(body) else "unknown"
    return "unknown"


def _place_of_word(word: str) -> str:
    if _names_group(word) or _is_thread(word):
        return "group"
    names_chat = not word.isascii() or word[:1] in "#@+!&" or "@" in word or not _PROGRAMS.isdisjoint(_words(word))
    return "unknown" if names_chat else ""


def _names_group(part: str) -> bool:
    return not _GROUPS.isdisjoint(_words(part))


def _is_thread(part: str) -> bool:
    return not _THREADS.isdisjoint(_words(part))


def _words(part: str) -> list[str]:
    return _WORD.findall(part)


def _is_direct(kind: object) -> bool:
    return isinstance(kind, str) and kind.strip().lower() in _DIRECT


def _is_blank(value: object) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())
