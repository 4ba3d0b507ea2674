"""How a workspace stands: is the agent alive, what is indexed, what is wrong; a stale heartbeat is told from an agent.

Imports nothing heavy.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from signet_sync.agent import sizes

if TYPE_CHECKING:
    from signet_sync.agent.asking import Place
    from signet_sync.index.database import Database
    from signet_sync.state import StateFolder


def standing(place: Place) -> dict[str, Any]:
    """The document of `status --json`."""
    from signet_sync import state

    folder = place.state()
    # The kernel decides: somebody holds the run lock. What is written proves nothing after kill -9 or a reboot.
    running = not state.is_shut(folder) and state.run_lock_holder(folder)
    beat = state.read_heartbeat(folder)
    live = (beat or {}) if running else {}
    path = place.database
    index = _index(path)
    silence = state.silence(folder) if running else None
    return {
        "workspace": place.root,
        "database": path,
        "running": running,
        "pid": live.get("pid"),
        "state": live.get("state", "starting") if running else _resting(folder, index),
        "halt": index.halt or None,
        "since": live.get("since"),
        "last_full_pass": _last_pass(folder, live),
        "interval": live.get("interval"),
        "readable": not index.trouble,
        "counts": index.counts,
        "watch": live.get("watch"),
        "violations": index.violations,
        "sizes": sizes.on_disk(path, folder) | index.sizes,
        "rows": index.rows,
        "intake": _intake(folder, index.refused),
        "lag_seconds": _lag(folder),
        "trouble": live.get("trouble") or _trouble(place.root, folder, path, index, running=running) or None,
        "set_aside": _set_aside(path),
        "stale_heartbeat": beat is not None and not running,
        "silent_seconds": None if silence is None else round(silence, 1),
        "responding": silence is not None and silence < state.SILENCE if running else None,
        "version": live.get("version"),
    }


def _resting(folder: StateFolder, index: _Index) -> str:
    """The state where no agent is known to run."""
    from signet_sync import state

    if state.is_shut(folder):
        return "unknown"
    return "halted: cliff" if index.halt else "stopped"


def _trouble(root: str, folder: StateFolder, path: str, index: _Index, *, running: bool) -> str:
    """Why there is nothing to tell of, or not all of it, and what to do about that."""
    from signet_sync import state

    if not running and os.path.islink(root) and not os.path.exists(root):
        return f"the workspace is a link to {os.readlink(root)}, which is not there: bring that back, or unlink it"
    if not running and not os.path.isdir(root):
        return "there is no such workspace: signet-sync init makes it, --workspace names another one"
    if state.is_shut(folder):
        return "the state folder cannot be opened: signet-sync doctor says why"
    return index.trouble or _log_trouble(path)


@dataclass(slots=True)
class _Index:
    counts: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(
            ("artifacts", "sessions", "agents", "tombstones", "violations", "invalid"), 0
        )
    )
    violations: list[str] = field(default_factory=list)
    sizes: dict[str, int] = field(default_factory=lambda: dict.fromkeys(("seals", "recall_events", "unused"), 0))
    rows: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(("seals", "recall_events", "memories", "pins"), 0)
    )
    halt: str = ""
    refused: int = 0
    trouble: str = ""


def _index(path: str) -> _Index:
    """What the database says; trouble with it is a line of the answer, not the end of it."""
    import apsw

    from signet_sync.errors import DatabaseError
    from signet_sync.index.database import Database, noted

    found = _Index()
    try:
        database = Database(path, readonly=True, wait_ms=1000)
    except FileNotFoundError:
        found.trouble = "there is no index yet: signet-sync reindex"
        return found
    except DatabaseError as error:
        found.trouble = f"{error.message}: {error.hint}"
        return found
    try:
        _count(database, found)
    except (apsw.Error, DatabaseError) as error:
        told = noted(error, path)
        found.trouble = f"{told.message}: {told.hint}"
    finally:
        database.connection.close()
    return found


def _count(database: Database, found: _Index) -> None:
    from signet_sync.index import overview

    with database.connection:  # one moment for all numbers
        verdicts = overview.verdict_counts(database)
        found.counts = {
            "artifacts": verdicts.get("indexed", 0),
            "sessions": overview.sessions(database),
            "agents": len(overview.agents(database)),
            "tombstones": database.value("select count(*) from memory_artifact_tombstones"),
            "violations": verdicts.get("violation", 0),
            "invalid": verdicts.get("invalid", 0),
        }
        found.violations = [row[0] for row in database.execute("select path from violations order by path limit 20")]
        halt = database.meta("halted")
        found.halt = str(json.loads(halt)["message"]) if halt is not None else ""
        found.refused = database.value("select count(*) from flow_results where refused = 1")
        found.sizes, found.rows = sizes.inside(database)


def _log_trouble(path: str) -> str:
    from signet_sync.index.database import LARGE_LOG, log_size

    size = log_size(path)
    if size <= LARGE_LOG:
        return ""
    return f"the database's log has grown to {sizes.human(size)}: a program keeps reading what was before it"


def _set_aside(path: str) -> list[str]:
    """Damaged databases that were moved aside; `doctor` says what is to be done with them."""
    from signet_sync.index.database import set_aside_before

    return [os.path.basename(name) for name in set_aside_before(path)]


def _last_pass(folder: StateFolder, live: dict[str, Any]) -> str | None:
    from signet_sync import state

    if live.get("last_full_pass"):
        return str(live["last_full_pass"])
    found = (state.read_json(os.path.join(folder.path, "last-pass.json")) or {}).get("last_full_pass")
    return found if isinstance(found, str) else None


def _intake(folder: StateFolder, refused: int) -> dict[str, Any]:
    """What comes in from harnesses: who feeds this workspace, what waits, what was begun, what was given up."""
    from signet_sync import journal, spool, state

    marked = spool.marked(folder.spool)
    return {
        "harnesses": sorted(state.read_json(folder.harnesses) or {}),
        "waiting": max(spool.size(folder.spool)[0] - marked, 0),
        "at_work": marked,
        "given_up": spool.given_up(folder.spool),
        "unfinished": len(journal.keys(folder.journal)),
        "refused": refused,
    }


def _lag(folder: StateFolder) -> float:
    """For how long the oldest job of a hook has waited, in seconds; 0 where none does."""
    from signet_sync import spool

    oldest = spool.oldest(folder.spool)
    return 0.0 if oldest is None else round(max(time.time() - oldest, 0.0), 1)


def healthy(document: dict[str, Any]) -> bool:
    """Alive and answering, not halted, and its last full pass younger than two intervals."""
    if not document["responding"] or str(document["state"]).startswith(("halted", "degraded", "waiting")):
        return False
    from signet_sync.contracts.timestamps import SECOND, parse_instant

    last = parse_instant(document["last_full_pass"] or "")
    if last is None:
        return False
    return time.time() - last / SECOND <= 2 * (document["interval"] or 300) + 10
