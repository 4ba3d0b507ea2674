"""Whose memory is served, from where, and who else may read what is answered."""

from __future__ import annotations

from dataclasses import dataclass

from signet_sync.sync.read_only import Place


@dataclass(frozen=True, slots=True)
class Memory:
    """The memory of one agent, fixed when the server starts: no argument of a tool chooses another.

    `shared` says that others read the answers too: then nothing is told but memories that are not private and the
    identity files. `read_only` leaves the tools out that write.
    """

    place: Place
    agent_id: str
    shared: bool = False
    read_only: bool = False

    @property
    def counts(self) -> bool:
        """Whether what is found counts as recalled.

        What others ask must not decide what rises into MEMORY.md, and who only reads changes nothing at all.
        """
        return not (self.shared or self.read_only)
