"""Checks ids of harness sessions, finds their agent, derives their tokens; cheap to import: every hook uses it."""

from __future__ import annotations

from base64 import b32encode
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from hashlib import sha256

from signet_sync.errors import UsageError
from signet_sync.formats.body import js_trim, text_sha256, utf8, well_formed
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


def is_project(value: object) -> bool:
    """Returns whether this may be a session's project: an absolute path, whatever it contains."""
    return isinstance(value, str) and value.startswith("/")


def storable_text(text: str) -> str:
    """Returns what UTF-8 and SQLite can hold: no lone surrogate, no NUL."""
    return well_formed(text).replace("\0", "\ufffd")


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
