"""Edits our MCP server as the table `[mcp_servers.signet-sync]` of Codex's `config.toml`; nothing else changes.

A table of ours is preceded by one line feed of its own, as in `codex_trust`. The result is parsed again: an edit that
would change anything else is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from signet_sync.errors import ConfigError
from signet_sync.host.harness_settings import mcp_server, toml_text
from signet_sync.host.harness_settings.mcp_server import NAME, Access
from signet_sync.host.harness_settings.mcp_server_json import words_of
from signet_sync.host.harness_settings.program import Program

_TABLES = "mcp_servers"
_NAMED = rf"""[ \t]*\[[ \t]*{_TABLES}[ \t]*\.[ \t]*(?:{NAME}|"{NAME}"|'{NAME}')[ \t]*"""
_OWN = re.compile(rf"^{_NAMED}\][^\n]*$", re.MULTILINE)
# With the tables below it: Codex adds some about the tools that a person has allowed.
_ALL = re.compile(rf"^{_NAMED}(?:\.[^\n]*)?\][^\n]*$", re.MULTILINE)
_NEXT = re.compile(r"^[ \t]*\[", re.MULTILINE)


def entry(config: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the entry under our name, empty if there is none."""
    servers = config.get(_TABLES)
    found = servers.get(NAME) if isinstance(servers, dict) else None
    return found if isinstance(found, dict) else {}


def merged(
    text: str | None,
    program: Program,
    access: Access | None,
    *,
    passed: Sequence[str],
    path: str,
    search: str | None,
) -> str | None:
    """Returns the settings with the server that `access` requests, or with ours renewed if needed.

    `passed` are variables that Codex has to pass to a new server, `search` is the PATH of programs. Raises
    `ConfigError`.
    """
    if access is None and NAME not in (text or ""):
        return text
    before = toml_text.parsed(text or "", path)
    present = entry(before)
    words = mcp_server.wanted(words_of(present), program, access, search)
    if words is None or words_of(present) == words:
        return text
    if present and not mcp_server.is_ours(words_of(present)):
        raise mcp_server.foreign(path)
    values = {"command": words[0], "args": words[1:]}
    if not present:
        values |= {"env_vars": list(passed)} if passed else {}
        result = _appended(text, values)
    else:
        result = _replaced(text or "", values)
    servers = before.get(_TABLES)
    _check(before | {_TABLES: {**(servers if isinstance(servers, dict) else {}), NAME: present | values}}, result, path)
    return result


def without(text: str, path: str) -> str:
    """Returns the settings without our server. Raises `ConfigError` if it cannot be removed safely."""
    if NAME not in text:
        return text
    before = toml_text.parsed(text, path)
    if not mcp_server.is_ours(words_of(entry(before))):
        return text
    result = text
    while (table := _ALL.search(result)) is not None:
        result = _cut(result, table)
    rest = {name: value for name, value in before[_TABLES].items() if name != NAME}
    _check(before | {_TABLES: rest}, result, path)
    return result


def _appended(text: str | None, values: Mapping[str, Any]) -> str:
    end = toml_text.newline(text or "")
    lines = [f"[{_TABLES}.{NAME}]", *(f"{key} = {_value(value)}" for key, value in values.items()), ""]
    return ("" if text is None else text + end) + end.join(lines)


def _replaced(text: str, values: Mapping[str, Any]) -> str:
    """Replaces only the lines of these values, so that a person's additions to the table are kept."""
    table = _OWN.search(text)
    if table is None:
        return text
    following = _NEXT.search(text, table.end())
    end = following.start() if following else len(text)
    body = text[table.end() : end]
    for key, value in values.items():
        line = re.search(rf"^{key}[ \t]*=[^\r\n]*", body, re.MULTILINE)
        if line is not None:
            body = f"{body[: line.start()]}{key} = {_value(value)}{body[line.end() :]}"
    return text[: table.end()] + body + text[end:]


def _cut(text: str, table: re.Match[str]) -> str:
    """Removes one table; blank lines and comments before the next table belong to the next one."""
    following = _NEXT.search(text, table.end())
    lines = text[table.start() : following.start() if following else len(text)].splitlines(keepends=True)
    while len(lines) > 1 and (not lines[-1].strip() or lines[-1].lstrip().startswith("#")):
        lines.pop()
    before, after = text[: table.start()], text[table.start() + len("".join(lines)) :]
    blank = re.search(r"(?:\A|\n)(\r?\n)\Z", before) if after else re.search(r"(\r?\n)\Z", before)
    return (before[: blank.start(1)] if blank else before) + after


def _check(expected: Mapping[str, Any], text: str, path: str) -> None:
    """Raises `ConfigError` unless every other setting is unchanged; an empty list of servers equals a missing one."""
    try:
        safe = {_TABLES: {}} | toml_text.loaded(text) == expected
    except (ValueError, RecursionError):
        safe = False
    if not safe:
        raise ConfigError(
            f"the MCP server {NAME} is written in a way that cannot be edited safely",
            path=path,
            hint=f"remove it yourself (codex mcp remove {NAME}), then try again; nothing was written",
            code="settings-unparsable",
        )


def _value(value: str | Sequence[str]) -> str:
    if isinstance(value, str):
        return toml_text.quoted(value)
    return f"[{', '.join(map(toml_text.quoted, value))}]"
