"""Which agent's memory is served, from where, who else may read the answers, and how an error is told to a tool."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from signet_sync.errors import SignetSyncError
from signet_sync.formats.body import utf8
from signet_sync.formats.managed_block import neutral
from signet_sync.formats.paths import display

if TYPE_CHECKING:
    from pydantic import ValidationError

    from signet_sync.sync.read_only import IndexPlace

_MESSAGE = 2_000  # characters
_WRONG = {"extra_forbidden": "unknown argument"}
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ServedMemory:
    """The memory of one agent, fixed when the server starts: no argument of a tool chooses another.

    `shared`: others read the answers, too; then only memories that are not private and the identity files are returned.
    `read_only` leaves out the tools that write, `all_tools` offers more than the core.
    """

    place: IndexPlace
    agent_id: str
    shared: bool = False
    read_only: bool = False
    all_tools: bool = False

    def ask(self, operation: str, **given: Any) -> dict[str, Any]:
        """Returns the document of an operation (`app.operations`)."""
        from signet_sync.app import ask

        place = self.place
        return ask.operation(
            operation,
            lambda: place,
            self.agent_id,
            given,
            root=place.root,
            chosen=place.chosen,
            command=place.command_line(""),
            anyway=True,
        )

    @property
    def counts(self) -> bool:
        """Returns whether results count as recalled.

        Others' questions must not decide what is promoted into MEMORY.md, and a read-only server changes nothing at
        all.
        """
        return not (self.shared or self.read_only)


# ── errors ──


def describe(error: Exception, place: IndexPlace) -> str:
    """Returns an error on one line, without paths outside the workspace: that of the state folder is private."""
    import apsw
    from pydantic import ValidationError

    from signet_sync.storage.database.connection import translate

    error = translate(error, None) if isinstance(error, apsw.Error) else error
    where = ""
    if isinstance(error, SignetSyncError):
        code, message, hint = error.code, error.message.replace(f"{place.root}/", ""), error.hint
        for path, name in ((place.database, "the database"), (place.state().path, "the state folder")):
            message = message.replace(path, name)
        # The agent was fixed when the server started.
        hint = "; ".join(part for part in hint.split("; ") if not part.startswith("--agent "))
        where = (error.path or "").removeprefix(f"{place.root}/")
        where = "" if where.startswith("/") else where
    elif isinstance(error, ValidationError):
        code, message, hint = "arguments-invalid", _list_wrong(error), "see the tool's input schema"
    elif isinstance(error, OSError):
        code, message = "system", error.strerror or type(error).__name__
        hint = "check permissions and free space, then try again"
    else:
        _log.error("unexpected", exc_info=error)
        code, message, hint = "unexpected", "unexpected error of the server", "see what it prints to stderr"
    message, where, hint = (neutral(utf8(display(text)[:_MESSAGE]).decode()) for text in (message, where, hint))
    return f"{code}: {message}{where and f' [{where}]'}{hint and f' — {hint}'}"


def _list_wrong(error: ValidationError) -> str:
    """Describes what is wrong with arguments, field by field, without repeating their values."""
    problems = []
    for one in error.errors(include_url=False, include_input=False, include_context=False)[:5]:
        field = ".".join(map(str, one["loc"]))[:100]
        what = _WRONG.get(one["type"], one["msg"].removeprefix("Value error, "))
        problems.append(": ".join(filter(None, (field, what))))
    return "; ".join(problems)
