"""Checks and shortens ids of harness sessions, and finds their agent; cheap to import, because every hook uses it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from hashlib import sha256

from signet_sync.errors import UsageError
from signet_sync.formats.body import js_trim, utf8, well_formed
from signet_sync.formats.paths import AGENT_ID, DEFAULT_AGENT

VALUE_LIMIT = 16_000  # characters
NAME_BYTES = 24_000  # of an id or a key in frontmatter, which holds 64 KiB in all
# A session that does not exist: `doctor` calls hooks with it, and no job is made of it.
TRIAL = "signet-sync-doctor"
# Any of these keeps hooks from doing anything: we started the harness ourselves, or a person wants them silent.
GUARDS = ("SIGNET_SYNC_CHILD", "SIGNET_BYPASS", "SIGNET_NO_HOOKS")
# Ids of most harnesses, and ids too short for a secret: they never change, and this check is fast.
_PLAIN = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|ses_[0-9A-Za-z]{26}|[\w.-]{1,15}", re.ASCII)
_MOST_LOOKS = 8


def is_session_id(value: object) -> bool:
    """Whether this may be the id of a session: any text that is not blank, and that a row can hold."""
    return isinstance(value, str) and bool(js_trim(value)) and value == _storable(value)


def is_project(value: object) -> bool:
    """Whether this may be a session's project: an absolute path, whatever it contains."""
    return isinstance(value, str) and value.startswith("/")


def session_name(text: str) -> str:
    """Returns the id or key of a session as it is stored: exact, but for secrets and excess length.

    A changed one ends in a hash of the original, so that two sessions never become one. Its own result is returned as
    is.
    """
    if _PLAIN.fullmatch(text):
        return text
    for _ in range(_MOST_LOOKS):  # what is left after a cut may look like a secret
        before, text = text, _without_secrets(text)
        if text != before and text != _storable(before):
            text = f"{text}#{_hash(before)}"
        text = _cut_name(text)
        if text == before:
            break
    return text


def session_value(text: str) -> str:
    """Returns a project or a harness as it is stored: exact, but for secrets and all after 16,000 characters."""
    for _ in range(_MOST_LOOKS):
        before, text = text, _without_secrets(text)[:VALUE_LIMIT]
        if text == before:
            break
    return text


def written_size(text: str) -> int:
    """Returns how many bytes a text takes in frontmatter, without its quotes."""
    from signet_sync.formats.frontmatter import scalar_text

    return len(utf8(scalar_text(text))) - 2


def cut_to(text: str, size: int) -> str:
    """Returns the longest beginning of a text that takes at most `size` bytes in frontmatter."""
    if len(text) * 6 <= size or written_size(text) <= size:
        return text
    low, high = 0, min(len(text), size)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if written_size(text[:middle]) <= size else (low, middle - 1)
    return text[:low]


def _storable(text: str) -> str:
    """Returns what UTF-8 and SQLite can hold: no lone surrogate, no NUL."""
    return well_formed(text).replace("\0", "\ufffd")


def _without_secrets(text: str) -> str:
    from signet_sync.text.sanitizer import redact, sanitize_line, sanitize_line_counted

    exact = redact(_storable(text))[0]
    # A secret that control characters split is found only without them.
    return sanitize_line(text) if sanitize_line_counted(exact)[1] else exact


def _cut_name(text: str) -> str:
    if len(text) <= VALUE_LIMIT and (len(text) * 6 <= NAME_BYTES or written_size(text) <= NAME_BYTES):
        return text
    tail = f"#{_hash(text)}"
    return cut_to(text[: VALUE_LIMIT - len(tail)], NAME_BYTES - len(tail)) + tail


def _hash(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def agent_for(project: str | None, environ: Mapping[str, str], projects: Sequence[str]) -> str:
    """Returns the agent of a harness session.

    It is `SIGNET_AGENT_ID`, else the agent of the longest folder in `projects` (`PATH=AGENT`, setting
    `agents.projects`) that contains the project, else `default`. Raises `UsageError` (`agent-invalid`) if the chosen
    text is no agent's name: another agent's memory must not be used instead.
    """
    named = environ.get("SIGNET_AGENT_ID")
    if named:
        return _checked(named, "SIGNET_AGENT_ID does not name an agent")
    inside = _parts(project) if project is not None and project.startswith("/") else None
    best, agent = -1, DEFAULT_AGENT
    for rule in projects:
        path, separator, owner = rule.rpartition("=")
        folder = _expanded(path, environ)
        if not separator or inside is None or not folder.startswith("/"):
            continue
        parts = _parts(folder)
        # Of two rules for the same folder the later one counts.
        if len(parts) >= best and inside[: len(parts)] == parts:
            best, agent = len(parts), owner
    return _checked(agent, "agents.projects does not name an agent")


def is_rule(text: str) -> bool:
    """Whether a text is `PATH=AGENT`: an absolute path or one that begins with `~/`, and the id of an agent."""
    path, separator, agent = text.rpartition("=")
    return bool(separator) and (path.startswith(("/", "~/")) or path == "~") and AGENT_ID.fullmatch(agent) is not None


def _expanded(path: str, environ: Mapping[str, str]) -> str:
    home = environ.get("HOME", "")
    return home + path[1:] if path == "~" or path.startswith("~/") else path


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in ("", ".")]


def require_agent(agent_id: str) -> None:
    """Raises `UsageError` (`agent-invalid`) for what cannot be the id of an agent."""
    _checked(agent_id, f"{agent_id!r} is not the id of an agent")


def _checked(agent: str, message: str) -> str:
    if AGENT_ID.fullmatch(agent) is None:
        hint = "use lower-case letters, digits, - and _, at most 64, a letter or digit first"
        raise UsageError(message, hint=hint, code="agent-invalid")
    return agent
