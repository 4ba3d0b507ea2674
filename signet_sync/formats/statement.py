"""Defines what a session states: kind, words and speaker of each statement, and its line."""

from typing import Literal, NamedTuple

Kind = Literal["decision", "constraint", "preference", "person", "blocker", "question", "note", "next", "tried"]
# Who says it: a person, the agent, or a foreign file whose author is not known.
Speaker = Literal["person", "agent", "file"]
# Whether it still holds (`statements.validity`).
Status = Literal["open", "done", "replaced", "withdrawn"]

# The section of MEMORY.md for a statement of this kind (or a memory of this type).
SECTION_OF: dict[str, str] = {
    "decision": "decisions", "constraint": "decisions", "preference": "decisions", "person": "people",
    "blocker": "blockers", "question": "blockers", "note": "blockers", "next": "projects",
}  # fmt: skip


class Item(NamedTuple):
    """A statement of an artifact; `line` counts the body's lines from 1.

    `text` is flattened. `done`: it is ticked or struck out, or under a heading such as *Done*.
    """

    kind: Kind
    text: str
    line: int
    done: bool = False
    speaker: Speaker = "file"
