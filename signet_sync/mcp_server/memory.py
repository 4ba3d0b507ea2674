"""Defines which agent's memory is served, from where, and who else may read the answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from signet_sync.sync.read_only import IndexPlace


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
