"""Collects workspace status: agent liveness, index counts, problems. Distinguishes a stale heartbeat from an agent.

Imports no slow module.
"""

import os
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from signet_sync.capture import injections, spool
from signet_sync.errors import DatabaseError, WorkspaceError
from signet_sync.formats.timestamps import DAY, SECOND, iso, parse_instant
from signet_sync.llm.token_budget import read_spent
from signet_sync.memories.store import promotions
from signet_sync.sessions import journal
from signet_sync.storage import state_dir
from signet_sync.storage.database.connection import Database, list_set_aside, note_damage
from signet_sync.storage.files import require_root
from signet_sync.storage.locations import StateFolder, base, has_settings, now_us
from signet_sync.storage.state_dir import SILENCE
from signet_sync.sync.store import counts, passes, violations

if TYPE_CHECKING:
    from signet_sync.sync.read_only import IndexPlace

DAYS = 7  # of the receipt
_CHARACTERS = 4  # of a token, about


class Liveness(NamedTuple):
    """Whether the agent runs, and its last heartbeat (`heartbeat`, empty if it does not run)."""

    running: bool
    heartbeat: dict[str, Any]
    has_heartbeat: bool
    silence: float | None
    shut: bool

    @property
    def state(self) -> str:
        """Returns the agent's named state, as far as it is known without the index."""
        if self.running:
            return str(self.heartbeat.get("state", "starting"))
        return "unknown" if self.shut else "stopped"

    @property
    def is_responding(self) -> bool | None:
        """Returns whether its heartbeat is recent; None if it does not run."""
        return self.silence is not None and self.silence < SILENCE if self.running else None


def liveness(place: "IndexPlace") -> Liveness:
    """Returns what is known of the agent without opening the index."""
    folder = place.state()
    shut = state_dir.is_inaccessible(folder)
    # The kernel decides, by the run lock. Files prove nothing after kill -9 or a reboot.
    running = not shut and state_dir.run_lock_holder(folder)
    beat = state_dir.read_heartbeat(folder)
    heartbeat = (beat or {}) if running else {}
    return Liveness(running, heartbeat, beat is not None, state_dir.silence(folder) if running else None, shut)


def status_document(place: "IndexPlace") -> dict[str, Any]:
    """Returns the document of `status --json`."""
    folder, path, root = place.state(), place.database, place.root
    life = liveness(place)
    live = life.heartbeat
    index, trouble = _read_index(path, root)
    halt = index.pop("halt")
    why = _trouble(root, folder, path, trouble, running=life.running)
    return {
        "workspace": root,
        "database": path,
        "running": life.running,
        "pid": live.get("pid"),
        "state": "halted: cliff" if halt and life.state == "stopped" else life.state,
        "halt": halt or None,
        "last_full_pass": _last_pass(folder, live),
        "interval": live.get("interval"),
        "readable": not trouble,
        "watch": live.get("watch"),
        **index,
        "size": _size(path),
        "intake": _intake(folder),
        "tokens": _tokens(root),
        "trouble": live.get("trouble") or why or None,
        "set_aside": [os.path.basename(name) for name in list_set_aside(path)],  # `doctor` names the remedy
        "stale_heartbeat": life.has_heartbeat and not life.running,
        "responding": life.is_responding,
        "version": live.get("version"),
    }


def _trouble(root: str, folder: StateFolder, path: str, trouble: str, *, running: bool) -> str:
    """Returns why the status is missing or incomplete, and what to do about it."""
    if not running:
        try:
            require_root(root)
        except WorkspaceError as error:
            return f"{error.message}: {error.hint}"
    if state_dir.is_inaccessible(folder):
        return "the state folder cannot be opened: signet-sync doctor says why"
    if not os.path.exists(path):
        return trouble
    return trouble or _settings_trouble(root)


def _settings_trouble(root: str) -> str:
    if not has_settings(root):
        return ""
    from signet_sync.settings import model  # all settings; most workspaces set none

    return model.join_remarks(model.load(root, anyway=True)[1])


def _read_index(path: str, root: str) -> tuple[dict[str, Any], str]:
    """Returns what the database reports, and what is wrong with it, which does not end the answer."""
    import apsw

    kinds = ("artifacts", "sessions", "agents", "tombstones", "violations", "invalid", "tombstoned")
    found: dict[str, Any] = {
        "counts": dict.fromkeys(kinds, 0),
        "violations": [],
        "entity_drift": 0,
        "backlog": 0,
        "memory": {},
        "receipt": None,
        "meaning": None,
        "halt": "",
    }
    try:
        database = Database(path, readonly=True, wait_ms=1000)
    except FileNotFoundError:
        return found, "there is no index yet: signet-sync reindex"
    except DatabaseError as error:
        return found, f"{error.message}: {error.hint}"
    try:
        with database.connection:  # one transaction, so that all numbers are of one moment
            found |= _count(database, root)
        return found, ""
    except (apsw.Error, DatabaseError) as error:
        translated = note_damage(error, path)
        return found, f"{translated.message}: {translated.hint}"
    finally:
        database.connection.close()


def _count(database: Database, root: str) -> dict[str, Any]:
    from signet_sync.embeddings import store as embeddings_store  # slow imports, for an index that can be read
    from signet_sync.entities import store as entities_store

    verdicts, agents = counts.verdict_counts(database), counts.agents(database)
    return {
        "counts": {
            "artifacts": verdicts.get("indexed", 0),
            "sessions": counts.sessions(database),
            "agents": len(agents),
            "tombstones": counts.count_tombstones(database),
            "violations": verdicts.get("violation", 0),
            "invalid": verdicts.get("invalid", 0),
            "tombstoned": verdicts.get("tombstoned", 0),
        },
        "violations": sorted(one.path for one in violations.list_open(database))[:20],
        "entity_drift": len(entities_store.drift(database)),
        "backlog": passes.count_waiting(database) + (passes.get(database, "unread") or 0),
        "memory": {agent: count_remembered(database, agent) for agent in agents},
        "receipt": receipt(database, state_dir.locate(root), now_us()),
        "meaning": embeddings_store.progress(database) or None,
        "halt": passes.halt_message(database),
    }


def _last_pass(folder: StateFolder, live: dict[str, Any]) -> str | None:
    if live.get("last_full_pass"):
        return str(live["last_full_pass"])
    found = (state_dir.read_json(os.path.join(folder.path, "last-pass.json")) or {}).get("last_full_pass")
    return found if isinstance(found, str) else None


def _intake(folder: StateFolder) -> dict[str, Any]:
    """Reports on capture: which harnesses feed this workspace, what waits, what was begun, what was given up."""
    return {
        "harnesses": sorted(state_dir.read_json(folder.harnesses) or {}),
        "waiting": spool.count(folder.spool),
        "at_work": len(spool.markers(folder.spool)),
        "given_up": spool.count_given_up(folder.spool),
        "unfinished": len(journal.keys(folder.journal)),
    }


def _tokens(root: str) -> dict[str, Any]:
    """Reports the tokens that language models took in all workspaces of the user, and how many a day may take."""
    found = read_spent(base(), now_us())
    if found is None:
        return {"today": 0, "last_30_days": 0, "daily": None, "trouble": None}
    from signet_sync.settings import model  # not for a status without a model

    daily = model.load(root, anyway=True)[0].llm_daily_tokens
    return {
        "today": found.today,
        "last_30_days": found.month,
        "daily": daily,
        "trouble": found.trouble or None,
    }


class Advice(NamedTuple):
    """A problem with the agent: whether it is `bad`, what to do, and the words of a command for that."""

    bad: bool
    message: str
    remedy: str
    words: str = ""


def advice(document: Mapping[str, Any]) -> list[Advice]:
    """Returns what `status` reports of an agent that does not do its work."""
    found = []
    state = document["state"]
    if document["responding"] is False:
        remedy = "signet-sync logs may say why; then restart it"
        found.append(Advice(True, "it does not respond", remedy, "logs"))
    if document["stale_heartbeat"]:
        found.append(Advice(False, "an earlier agent did not end normally", "signet-sync run starts a new one", "run"))
    if "halted" in state:
        if document["halt"]:
            found.append(Advice(True, document["halt"], "nothing was dropped"))
        remedy = "bring them back, or accept that they are gone: signet-sync reindex --accept-removals"
        found.append(Advice(False, "files or sessions are gone", remedy, "reindex --accept-removals"))
    if state.startswith("held"):
        remedy = "stop it; to leave Signet: signet-sync migrate signet; to write beside it: projection.takeover = true"
        found.append(Advice(False, "a Signet daemon runs on this workspace", remedy))
    return found


def healthy(document: dict[str, Any]) -> bool:
    """Returns whether it is alive and responding, not halted, and its last full pass younger than two intervals."""
    if not document["responding"] or str(document["state"]).startswith(("halted", "degraded", "waiting")):
        return False

    last = parse_instant(document["last_full_pass"] or "")
    if last is None:
        return False
    return time.time() - last / SECOND <= 2 * (document["interval"] or 300) + 10


# ── what an agent remembers and recalls, what memory gave, and what it takes on the disk ──


def count_remembered(database: Database, agent_id: str) -> dict[str, Any]:
    """Returns counts of an agent's rows, and when it dreamed last. Raises what reading the database raises."""
    last = promotions.last_sweep(database, agent_id)
    return {**promotions.counts(database, agent_id), "last_dream": None if last is None else iso(last)}


def receipt(database: Database, folder: StateFolder, now_us: int) -> dict[str, int]:
    """Returns what was injected in the last days into how many sessions of all agents, about, in tokens.

    `stale` are its lines that had been replaced before, `questions` those to which a memory answered, `corrections`
    statements that were marked as done or not true, `bytes_kept` those of the files in the index.
    """
    from signet_sync.statements import store as statements_store  # as above

    since_us = now_us - DAYS * DAY
    recent = list(injections.list_changed(folder, since_us / 1e6))
    given = [(one.agent_id, line, int(one.at * 1e6)) for one in recent for line in one.ids if line.startswith("f-")]
    return {
        "days": DAYS,
        "sessions": len(recent),
        "tokens": sum(one.characters for one in recent) // _CHARACTERS,
        "stale": statements_store.count_stale(database, given),
        **promotions.counts_since(database, since_us),
        "corrections": statements_store.count_marks(database, since_us),
        "bytes_kept": counts.sum_bytes(database),
    }


def _size(path: str) -> int:
    try:
        return os.lstat(path).st_size
    except OSError:
        return 0
