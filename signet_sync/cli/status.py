"""`status`: is the agent alive, what is indexed, what is wrong; a stale heartbeat is told from a living agent."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from signet_sync.cli import Context, counted, emit, json_option, pass_context

if TYPE_CHECKING:
    from signet_sync.index.database import Database
    from signet_sync.state import StateFolder

# An agent that gave no sign of life for this long hangs, in seconds; a healthy one gives one four times a minute.
SILENCE = 120.0


@click.command()
@click.option(
    "--check", is_flag=True, help="Exit 1 when no agent is alive, it is halted, or its last full pass is too old."
)
@json_option
@pass_context
def status(context: Context, check: bool, as_json: bool) -> int:
    """Is the agent alive, its state, the last pass, counts, open violations, sizes."""
    document = describe(context)
    if as_json:
        emit(document)
    else:
        _show(document)
    return 1 if check and not healthy(document) else 0


def describe(context: Context) -> dict[str, Any]:
    """The document of `status --json`."""
    from signet_sync import state

    folder = context.state()
    # The kernel decides: somebody holds the run lock. What is written proves nothing after kill -9 or a reboot.
    running = state.run_lock_holder(folder)
    beat = state.read_heartbeat(folder)
    live = (beat or {}) if running else {}
    path = context.database_path()
    index = _index(path)
    halted = "halted: cliff" if index.halted else "stopped"
    silence = _silence(folder) if running else None
    return {
        "workspace": context.root,
        "database": path,
        "running": running,
        "pid": live.get("pid"),
        "state": live.get("state", "starting") if running else halted,
        "since": live.get("since"),
        "last_full_pass": _last_pass(folder, live),
        "interval": live.get("interval"),
        "counts": index.counts,
        "watch": live.get("watch"),
        "violations": index.violations,
        "sizes": _sizes(path, folder),
        "intake": _intake(folder, index.refused),
        "trouble": live.get("trouble") or index.trouble or _log_trouble(path) or None,
        "set_aside": _set_aside(path),
        "stale_heartbeat": beat is not None and not running,
        "silent_seconds": silence,
        "responding": silence is not None and silence < SILENCE if running else None,
        "version": live.get("version"),
    }


@dataclass(slots=True)
class _Index:
    counts: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(
            ("artifacts", "sessions", "agents", "tombstones", "violations", "invalid"), 0
        )
    )
    violations: list[str] = field(default_factory=list)
    halted: bool = False
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
        found.halted = database.meta("halted") is not None
        found.refused = database.value("select count(*) from flow_results where refused = 1")


def _log_trouble(path: str) -> str:
    from signet_sync.index.database import LARGE_LOG, log_size

    size = log_size(path)
    if size <= LARGE_LOG:
        return ""
    return f"the database's log has grown to {_human(size)}: a program keeps reading what was before it"


def _set_aside(path: str) -> list[str]:
    """Damaged databases that were moved aside; `doctor` says what is to be done with them."""
    from signet_sync.index.database import set_aside_before

    return [os.path.basename(name) for name in set_aside_before(path)]


def _silence(folder: StateFolder) -> float | None:
    """Seconds since the agent's last sign of life: the time of change of its heartbeat."""
    try:
        return round(max(time.time() - os.stat(folder.heartbeat).st_mtime, 0.0), 1)
    except OSError:
        return None


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


def _sizes(path: str, folder: StateFolder) -> dict[str, int]:
    sizes = {}
    for name, place in (("database", path), ("wal", path + "-wal")):
        try:
            sizes[name] = os.path.getsize(place)
        except OSError:
            sizes[name] = 0
    total = 0
    for where, _, names in os.walk(folder.path):
        for name in names:
            with suppress(OSError):
                total += os.lstat(os.path.join(where, name)).st_size
    sizes["state"] = total
    return sizes


def healthy(document: dict[str, Any]) -> bool:
    """Alive and answering, not halted, and its last full pass younger than two intervals."""
    if not document["responding"] or str(document["state"]).startswith(("halted", "degraded", "waiting")):
        return False
    from signet_sync.contracts.timestamps import SECOND, parse_instant

    last = parse_instant(document["last_full_pass"] or "")
    if last is None:
        return False
    return time.time() - last / SECOND <= 2 * (document["interval"] or 300) + 10


def _show(document: dict[str, Any]) -> None:
    good = document["responding"] and str(document["state"]) in ("watching", "polling", "reconciling")
    colour = "green" if good else "red" if "halted" in str(document["state"]) else "yellow"
    pid = f" (pid {document['pid']})" if document["pid"] else ""
    click.echo("agent      " + click.style(f"{document['state']}{pid}", fg=colour, bold=True))
    if document["since"]:
        click.echo(f"since      {document['since']}")
    if document["responding"] is False:
        click.secho("           it gives no sign of life; signet-sync logs may say why, then start it anew", fg="red")
    if document["stale_heartbeat"]:
        click.echo("           an earlier agent ended without saying so; signet-sync run starts a new one")
    click.echo(f"workspace  {document['workspace']}")
    click.echo(f"database   {document['database']} ({_human(document['sizes']['database'])})")
    click.echo(f"last pass  {document['last_full_pass'] or 'never'}")
    if document["watch"]:
        click.echo(f"watch      {document['watch']}")
    counts = document["counts"]
    click.echo(
        f"indexed    {counted(counts['artifacts'], 'artifact')} · {counted(counts['sessions'], 'session')}"
        f" · {counted(counts['agents'], 'agent')} · {counted(counts['tombstones'], 'tombstone')}"
    )
    if counts["violations"] or counts["invalid"]:
        click.secho(
            f"problems   {counted(counts['violations'], 'violation')} · {counts['invalid']} invalid"
            " → signet-sync violations list, signet-sync check",
            fg="red",
        )
    intake = document["intake"]
    if intake["harnesses"] or intake["waiting"] or intake["at_work"]:
        fed = ", ".join(intake["harnesses"]) or "no harness"
        work = f" · {counted(intake['at_work'], 'session')} lately at work" if intake["at_work"] else ""
        click.echo(f"intake     {fed} · {counted(intake['waiting'], 'job')} waiting{work}")
    if intake["given_up"] or intake["unfinished"] or intake["refused"]:
        click.secho(
            f"           {counted(intake['unfinished'], 'ending')} unfinished · {intake['refused']} refused"
            f" · {counted(intake['given_up'], 'job')} given up → signet-sync logs",
            fg="yellow",
        )
    for name in document["set_aside"]:
        click.secho(f"damaged    {name} was moved aside → signet-sync doctor", fg="yellow")
    if document["trouble"]:
        click.secho(f"trouble    {document['trouble']}", fg="yellow")
    if "halted" in str(document["state"]):
        click.echo("           files are missing; bring them back, or: signet-sync reindex --accept-removals")
    if str(document["state"]).startswith("held"):
        click.echo("           a live Signet daemon is on this workspace; stop it, or set projection.takeover = true")


def _human(size: int) -> str:
    value = float(size)
    for unit in ("B", "KB", "MB", "GB"):
        if value < 1000 or unit == "GB":
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return ""
