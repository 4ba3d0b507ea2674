"""Recognises calls of our own tools in a transcript; their results are old memory and are left out.

A call is ours by the tool's name in any harness's spelling (`mcp__signet-sync__memory_recall`,
`mcp_signet-sync_memory_recall`, `signet-sync_memory_recall`, `memory_recall`): the user chooses the server's name.
Also ours are shell calls that run one of our commands that print memory, and resources of our server.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from signet_sync.formats.lazy_pattern import late

LEFT_OUT = "result of signet-sync left out"

# The tools of our MCP server (a test compares them with `mcp_server.tools`).
TOOLS = tuple(
    """
    memory_recall memory_expand memory_context memory_remember memory_forget memory_checkpoint
    memory_history memory_note session_open entity_read entity_create entity_edit
    """.split()
)
# Commands that print no stored text; every other command counts, future ones included.
QUIET = frozenset(
    """
    init demo run reindex check status checkpoint hook mcp ui backup hooks service eject
    logs doctor migrate setup settings
    """.split()
)

_ANY_TOOL = "|".join(TOOLS)
_NAMED = late(rf"(?:.*[^A-Za-z0-9])?(?:{_ANY_TOOL})(?: \(.*\))?", re.DOTALL)
_OF_SERVER = late(r"(?:mcp_{1,2})?signet[_-]sync[_./:]", re.IGNORECASE)
# In a program that an agent writes to call several tools at once.
_IN_CODE = late(rf"\bmcp__\w{{1,80}}?__(?:{_ANY_TOOL})\b|\bmcporter\b[^\n]{{0,200}}\b(?:{_ANY_TOOL})\b")
# What may stand before a program in its command: settings of the environment, programs that start others, Python.
_LAUNCHERS = "|".join(
    """
    bash sh zsh fish dash cmd powershell pwsh sudo env time timeout nice nohup exec command eval uv uvx pipx poetry
    pdm hatch rye conda mise npx xargs watch stdbuf script ssh docker podman if then do while ! {
    """.split()
).replace("{", r"\{")
_ENDS_OF_COMMANDS = late(r"[;&|\n()`]+")
_OUR_COMMAND = late(
    r"[\s'\"]*(?:(?:\w+=\S*|\$)\s+)*"
    rf"(?:(?:\S*/)?(?:{_LAUNCHERS})\s(?:.*[\s'\"])?|\S*\b(?:python|pypy|py)[\d.]*(?:\.exe)?\s(?:.*\s)?)?"
    r"(?:(?:[^\s'\"]*[/\\])?signet-sync(?:\.exe|\.cmd)?|-m\s+signet_sync(?:\.__main__)?)(?=[\s'\"]|$)"
    r"(?:[\s'\"]++(?:--(?:workspace|db|agent|now)[\s'\"]++\S++|-\S++))*+[\s'\"]+(?P<command>[a-z][a-z0-9-]*)"
)
_LONGEST = 20_000  # characters of a command that are searched

_COMMANDS = ("command", "cmd", "script", "code", "input", "chars", "commandLine")


class OwnCalls:
    """Records which calls of one transcript are calls of our own tools."""

    def __init__(self) -> None:
        self._calls: set[str] = set()

    def record_call(self, call: str, name: str, given: object, *more: str) -> None:
        """Records a call by id, tool, arguments and `more` names."""
        if call and (any(map(is_own_tool, (name, *more))) or runs_us(" ".join(_words(given)))):
            self._calls.add(call)

    def is_ours(self, call: str, name: str = "") -> bool:
        """Checks whether a result belongs to a call of ours; by the tool's name if the call is in another file."""
        return call in self._calls or (bool(name) and is_own_tool(name))

    def filter_result(self, call: str, name: str, text: str) -> str:
        """Returns a result's text, or its placeholder if the call is ours."""
        return LEFT_OUT if self.is_ours(call, name) else text


def is_own_tool(name: str) -> bool:
    """Checks whether a tool's name is one of ours, in any harness's spelling."""
    return _NAMED.fullmatch(name.strip()) is not None or _OF_SERVER.match(name.strip()) is not None


def runs_us(command: str) -> bool:
    """Checks whether a command line, or a program that calls tools, makes signet-sync print stored text."""
    command = command[:_LONGEST]
    if "mcp" in command and _IN_CODE.search(command):
        return True
    if "signet" not in command:
        return False
    found = filter(None, map(_OUR_COMMAND.match, _ENDS_OF_COMMANDS.split(command)))
    return any(one["command"] not in QUIET for one in found)


def _words(given: object) -> Iterator[str]:
    """Yields what a call runs: the arguments if they are a text, or the members that harnesses use for commands."""
    if isinstance(given, str):
        yield given
    elif isinstance(given, Mapping):
        for name in _COMMANDS:
            value = given.get(name)
            for part in value if isinstance(value, list) else [value]:
                if isinstance(part, str):
                    yield part
