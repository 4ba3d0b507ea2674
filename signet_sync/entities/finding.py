"""Defines a finding: something about an entity file or its event log that a person should know."""

from typing import Any, NamedTuple


class Finding(NamedTuple):
    """A finding. `code` is stable, `hint` the next step for a person.

    `path` is the file and `id` its entity or the event, empty where there is none; `anchor` the section, `line` counts
    from 1 (0: unknown). `verdict` is that of `check`, empty for a note. The last three are known of files that differ
    from their events and wait for a maintainer: `found_at` is ISO 8601 UTC, `sha256` the hash of the bytes found, empty
    for a missing file; of an event log that lost its end it is the id of the missing last line.
    """

    code: str
    message: str
    hint: str
    path: str = ""
    id: str = ""
    anchor: str | None = None
    line: int = 0
    verdict: str = ""
    agent_id: str = ""
    found_at: str = ""
    sha256: str = ""

    def document(self) -> dict[str, Any]:
        """Returns the finding as `entity check --json` shows it."""
        return {name: getattr(self, name) for name in ("id", "code", "message", "hint", "path")}
