"""Whose a harness session is, and what it may be called; cheap to import, because every hook asks."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from signet_sync.contracts.places import DEFAULT_AGENT
from signet_sync.errors import UsageError

AGENT_ID = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}", re.ASCII)
KEY_LIMIT = 12_000
# A session that never was: `doctor` calls hooks with it, and no job is made of it.
TRIAL = "signet-sync-doctor"
# What keeps hooks from doing anything: we started the harness ourselves, or a person wants them silent.
GUARDS = ("SIGNET_SYNC_CHILD", "SIGNET_BYPASS", "SIGNET_NO_HOOKS")
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def is_session_id(value: object) -> bool:
    """Whether this may be the id of a session: a text of 1 to 12,000 characters, none of them a control character."""
    return isinstance(value, str) and len(value) <= KEY_LIMIT and bool(value.strip()) and not _CONTROL.search(value)


def is_project(value: object) -> bool:
    """Whether this may be a session's project: an absolute path of at most 4,000 characters, no control characters."""
    return isinstance(value, str) and value.startswith("/") and len(value) <= 4_000 and not _CONTROL.search(value)


def agent_for(project: str | None, environ: Mapping[str, str], projects: Sequence[str]) -> str:
    """The agent of a harness session (contracts: *Agents*).

    That is `SIGNET_AGENT_ID`, else the agent of the longest folder in `projects` (`PATH=AGENT`, setting
    `agents.projects`) that holds the project, else `default`. Raises `UsageError` (`agent-invalid`) where the one that
    counts names no agent: another's memory must not be taken for it.
    """
    named = environ.get("SIGNET_AGENT_ID")
    if named:
        return _checked(named, "SIGNET_AGENT_ID")
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
    return _checked(agent, "agents.projects")


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
    if AGENT_ID.fullmatch(agent_id) is None:
        raise UsageError(
            f"{agent_id!r} is not the id of an agent",
            hint="use lower-case letters, digits, - and _, at most 64, a letter or digit first",
            code="agent-invalid",
        )


def _checked(agent: str, source: str) -> str:
    if AGENT_ID.fullmatch(agent) is None:
        raise UsageError(
            f"{source} does not name an agent",
            hint="use lower-case letters, digits, - and _, at most 64, a letter or digit first",
            code="agent-invalid",
        )
    return agent
