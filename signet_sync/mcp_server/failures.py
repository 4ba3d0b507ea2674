"""Describes what kept a tool from answering: a code, what is wrong and what to do, in the words of tools."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import apsw
from pydantic import ValidationError

from signet_sync.entities.agent_text import EXAMPLE
from signet_sync.errors import SignetSyncError
from signet_sync.formats.body import utf8
from signet_sync.formats.managed_block import neutral
from signet_sync.formats.paths import display
from signet_sync.storage.database.connection import translate

if TYPE_CHECKING:
    from signet_sync.sync.read_only import IndexPlace

_MESSAGE = 2_000  # characters
_WRONG = {"extra_forbidden": "unknown argument"}
# What hints for people at a command line are called here.
_TOOLS = {
    EXAMPLE: "entity_edit with `evidence` 'memory/…--transcript.md#34' and `text` 'It is what she waits for.'",
    "signet-sync remember": "memory_remember",
    "signet-sync recall": "memory_recall",
    "signet-sync expand": "memory_expand",
    "signet-sync entity list": "entity_read",
    "signet-sync entity show": "entity_read",
    "entity show": "entity_read",
}

_log = logging.getLogger(__name__)


def describe(error: Exception, place: IndexPlace) -> str:
    """Returns an error on one line, without paths outside the workspace: that of the state folder is private."""
    error = translate(error, None) if isinstance(error, apsw.Error) else error
    where = ""
    if isinstance(error, SignetSyncError):
        code, message, hint = error.code, error.message.replace(f"{place.root}/", ""), _adapt_hint(error.hint)
        for path, name in ((place.database, "the database"), (place.state().path, "the state folder")):
            message = message.replace(path, name)
        where = (error.path or "").removeprefix(f"{place.root}/")
        where = "" if where.startswith("/") else where
    elif isinstance(error, ValidationError):
        code, message, hint = "arguments-invalid", _wrong(error), "see the tool's input schema"
    elif isinstance(error, OSError):
        code, message = "system", error.strerror or type(error).__name__
        hint = "check permissions and free space, then try again"
    else:
        _log.error("unexpected", exc_info=error)
        code, message, hint = "unexpected", "unexpected error of the server", "see what it prints to stderr"
    message, where, hint = (neutral(utf8(display(text)[:_MESSAGE]).decode()) for text in (message, where, hint))
    return f"{code}: {message}{where and f' [{where}]'}{hint and f' — {hint}'}"


def _wrong(error: ValidationError) -> str:
    """Describes what is wrong with arguments, field by field, without repeating their values."""
    problems = []
    for one in error.errors(include_url=False, include_input=False, include_context=False)[:5]:
        field = ".".join(map(str, one["loc"]))[:100]
        what = _WRONG.get(one["type"], one["msg"].removeprefix("Value error, "))
        problems.append(": ".join(filter(None, (field, what))))
    return "; ".join(problems)


def _adapt_hint(hint: str) -> str:
    """Adapts a hint to tools; options for the agent are left out, because it was fixed when the server started."""
    hint = "; ".join(part for part in hint.split("; ") if not part.startswith("--agent "))
    for command, tool in _TOOLS.items():
        hint = hint.replace(command, tool)
    return hint
