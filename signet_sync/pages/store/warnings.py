"""Reads what an agent's page and context warn of: a halt, open violations, drifted entity files."""

from __future__ import annotations

from signet_sync.storage.database.connection import Database
from signet_sync.text.phrases import counted


def warnings(database: Database, agent_id: str, halted: str) -> list[str]:
    """Returns a line for each warning, with the command that shows more; of a halt (why, "" if there is none) alone."""
    if halted:
        return [f"signet-sync is halted, nothing was dropped ({halted}): signet-sync status"]
    found = []
    violations = "select count(*) from violations v cross join seals s on s.path = v.path where s.agent_id = ?"
    if count := database.value(violations, (agent_id,)):
        what = counted(count, "file of this vault was", "files of this vault were")
        found.append(f"{what} changed or lost after being sealed: signet-sync violations list")
    if drifted := database.value("select count(*) from garden_drift where agent_id = ?", (agent_id,)):
        what = counted(drifted, "entity file is", "entity files are")
        found.append(f"{what} not what was recorded: signet-sync entity check")
    return found
