"""Reads what a harness says of a session: its id, agent and token, whether others read it, the URL of its repository.

Cheap to import: every hook uses it.
"""

from __future__ import annotations

import re
from base64 import b32encode
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from hashlib import sha256

from signet_sync.errors import UsageError
from signet_sync.formats.body import fix_surrogates, js_trim, text_sha256, utf8
from signet_sync.formats.lazy_pattern import late
from signet_sync.formats.paths import AGENT_ID, DEFAULT_AGENT, normalize_path

# A session that does not exist: `doctor` calls hooks with it, and no job is made of it.
TRIAL = "signet-sync-doctor"
# Any of these keeps hooks from doing anything: we started the harness ourselves, or a person wants them silent.
GUARDS = ("SIGNET_SYNC_CHILD", "SIGNET_BYPASS", "SIGNET_NO_HOOKS")
# A program that we ask may be a harness and keep our question as a session. It runs in a folder of this name, and the
# question has this line for programs that work elsewhere: by either such a session is recognised, and never captured.
MODEL_FOLDER = "signet-sync-model-calls"
MODEL_MARK = "[signet-sync asks a model this. It is no session to remember.]"


def is_session_id(value: object) -> bool:
    """Returns whether this may be the id of a session: any text that is not blank, and that a row can hold."""
    return isinstance(value, str) and bool(js_trim(value)) and value == storable_text(value)


def is_in_model_folder(project: str | None) -> bool:
    """Returns whether a session worked in the folder of the programs that we ask."""
    return project is not None and project.rstrip("/").rpartition("/")[2] == MODEL_FOLDER


def asks_model(prompt: object) -> bool:
    """Returns whether a prompt is our own question to a model; a mark within a line is a quotation."""
    return isinstance(prompt, str) and MODEL_MARK in prompt and f"\n{MODEL_MARK}\n" in f"\n{prompt}\n"


def is_excluded(project: str | None, patterns: Sequence[str], environ: Mapping[str, str]) -> bool:
    """Returns whether a project is in a folder that one of the globs means (setting `capture.exclude`).

    A glob with a slash is matched with the folder's path, one without with its name.
    """
    if not patterns or project is None or not project.startswith("/"):
        return False
    from fnmatch import fnmatchcase  # for those who have such a setting

    parts = _parts(project)
    folders = [(name, "/" + "/".join(parts[:number])) for number, name in enumerate(parts, 1)]
    wanted = [(_expand_path(one, environ).rstrip("/"), "/" in one or one == "~") for one in patterns]
    return any(fnmatchcase(path if by_path else name, one) for name, path in folders for one, by_path in wanted)


def storable_text(text: str) -> str:
    """Returns what UTF-8 and SQLite can hold: no lone surrogate, no NUL."""
    return fix_surrogates(text).replace("\0", "\ufffd")


def agent_for(places: Iterable[str], environ: Mapping[str, str], projects: Sequence[str]) -> str:
    """Returns the agent of a harness session.

    It is `SIGNET_AGENT_ID`, else the agent of the longest folder in `projects` (`PATH=AGENT`, setting
    `agents.projects`) that contains one of the paths of the session's folder, else `default`. Raises `UsageError`
    (`agent-invalid`) if the chosen text is no agent's name: another agent's memory must not be used instead.
    """
    named = environ.get("SIGNET_AGENT_ID")
    if named:
        return _check_agent(named, "SIGNET_AGENT_ID does not name an agent")
    inside = [_parts(place) for place in places if place.startswith("/")]
    best, agent = -1, DEFAULT_AGENT
    for rule in projects:
        path, separator, owner = rule.rpartition("=")
        folder = _expand_path(path, environ)
        if not separator or not folder.startswith("/"):
            continue
        parts = _parts(folder)
        # Of two rules for the same folder the later one counts.
        if len(parts) >= best and any(place[: len(parts)] == parts for place in inside):
            best, agent = len(parts), owner
    return _check_agent(agent, "agents.projects does not name an agent")


def is_rule(text: str) -> bool:
    """Returns whether a text is `PATH=AGENT`: an absolute path or one that begins with `~/`, and the id of an agent."""
    path, separator, agent = text.rpartition("=")
    return bool(separator) and (path.startswith(("/", "~/")) or path == "~") and AGENT_ID.fullmatch(agent) is not None


def _expand_path(path: str, environ: Mapping[str, str]) -> str:
    home = environ.get("HOME", "")
    return home + path[1:] if path == "~" or path.startswith("~/") else path


def _parts(path: str) -> list[str]:
    return [part for part in normalize_path(path).split("/") if part not in ("", ".")]


def require_agent(agent_id: str) -> None:
    """Raises `UsageError` (`agent-invalid`) for what cannot be the id of an agent."""
    _check_agent(agent_id, f"{agent_id!r} is not the id of an agent")


def _check_agent(agent: str, message: str) -> str:
    if AGENT_ID.fullmatch(agent) is None:
        hint = "use lower-case letters, digits, - and _, at most 64, a letter or digit first"
        raise UsageError(message, hint=hint, code="agent-invalid")
    return agent


@lru_cache(maxsize=4096)
def token_of(agent_id: str, identity: str) -> str:
    """Returns the first 16 characters of the lower-case base32 of `sha256("{agent_id}:{trimmed identity}")`."""
    digest = sha256(utf8(f"{agent_id}:{js_trim(identity)}")).digest()
    return b32encode(digest[:10]).decode("ascii").lower()


def hash_forgotten(agent_id: str, memory_id: str) -> str:
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


UUID = late(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)

# ── whether others read a session ──

_DIRECT = frozenset({"direct", "dm", "dms", "im", "private"})
# Chats that others read, by the names that chat programs give them.
_GROUP = late(
    r"(?<![a-z])(?:broadcast|channel|chatroom|conference|forum|global|group|guild|mpim|multi|newsletter|public|room|server"
    r"|shared|space|supergroup|team)s?(?![a-z])|@g\.us\b",  # the last one is WhatsApp's
    re.ASCII,
)
_THREAD = late(r"(?<![a-z])(?:thread|topic)s?(?![a-z])", re.ASCII)  # inside a private chat or inside a group
_OF_AGENT = late(r"\Aagent:[^:]+:")
# The main chat of an agent, its threads, and: program, account, direct, the other person.
_PRIVATE = late(
    r"main|agent:[^:]+:main(?::(?:thread|topic)s?:[^:]+)?|"
    rf"(?:agent:[^:]+:)?(?:(?![^:]*(?:thread|topic))[^:]+:){{0,2}}(?:{'|'.join(sorted(_DIRECT))})(?::[^:]+)+"
)
# What shows that a key without structure is one of a chat at all.
_CHAT = late(
    r"@|[^\x00-\x7f]|\A[#+!&]|(?<![a-z])(?:agent|discord|feishu|googlechat|imessage|irc|line|lark|matrix|mattermost|msteams"
    r"|nostr|qq|signal|slack|sms|telegram|twitch|viber|wechat|whatsapp|zalo|zulip)(?![a-z])"
)
_KEYS = ("sessionKey", "session_key")
_KINDS = ("chatType", "chat_type", "peerKind", "peer_kind")
_SIGNS = ("groupId", "group_id", "groupChannel", "group_channel", "guildId", "guild_id", "isGroup", "is_group")


def is_shared(said: Mapping[str, object], *, carries_chats: bool) -> bool:
    """Returns whether others read a session, by the hook's document: then private memory is not for it.

    The document may hold a session key (`sessionKey`: `agent:main:whatsapp:group:1`), the kind of the chat (`chatType`:
    `direct`, `group`, `channel`) and the id of a group. A field that says group wins over one that does not; a chat
    that is named but not understood counts as a group; if none is named, others may read in a harness that
    `carries_chats`.
    """
    kinds = [said[name] for name in _KINDS if not _is_blank(said.get(name))]
    if any(said.get(name) for name in _SIGNS) or any(str(kind).strip().lower() not in _DIRECT for kind in kinds):
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
    key = key.strip().lower()
    is_word = ":" not in key
    if _GROUP.search(_OF_AGENT.sub("", key)) or (is_word and _THREAD.search(key)):
        return "group"
    if _PRIVATE.fullmatch(key):
        return "direct"
    return "unknown" if not is_word or _CHAT.search(key) else ""


def _is_blank(value: object) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())


# ── the repository of a session ──

_URL_LENGTH = 1_000  # characters
_STANDARD_PORTS = {"https": "443", "http": "80", "ssh": "22", "git+ssh": "22", "ssh+git": "22", "git": "9418"}
# Whatever else is written may hide a credential: only these forms are read, character by character.
_HOST = r"([a-z0-9](?:[a-z0-9.-]*[a-z0-9])?\.?|\[[0-9a-f:.]+\])"
_URL_PATH = r"([a-z0-9._~+/-]*)"
_URL = late(rf"([a-z+]+)://(?:[^/?#]*@)?{_HOST}(?::([0-9]{{1,5}}))?/{_URL_PATH}(?:[?#][^@]*)?", re.IGNORECASE)
_SCP = late(rf"(?:[^/:@?#]*@)?{_HOST}:(?!//){_URL_PATH}", re.IGNORECASE)


def origin_of(url: str) -> str | None:
    """Returns `host/path` of a remote's URL, equal for all its forms; None for a local path and anything unusual.

    It is of small letters: hosts of repositories know a name in any case.

    User, password, query and `.git` are left out, and the port if it is the usual one of its protocol. An `@` or a
    colon after the host may be the end of a password, so that nothing is read.
    """
    if len(url) > _URL_LENGTH or not url.isascii():
        return None
    port = ""
    if (remote := _URL.fullmatch(url)) is not None:
        scheme, host, port, path = remote[1].lower(), remote[2], remote[3] or "", remote[4]
        if scheme not in _STANDARD_PORTS:
            return None
        if port == _STANDARD_PORTS[scheme]:
            port = ""
    elif (short := _SCP.fullmatch(url)) is not None:
        host, path = short[1], short[2]
        # `https:/…`, with a slash too few.
        if host.lower() in (*_STANDARD_PORTS, "file", "ftp", "ftps"):
            return None
    else:
        return None
    host = host.lower().rstrip(".")
    parts = [part for part in path.lower().split("/") if part not in ("", ".")]
    name = "/".join(parts).removesuffix(".git").rstrip("/")
    if not name or ".." in parts:
        return None
    return f"{host}:{port}/{name}" if port else f"{host}/{name}"
