"""`status`: is the agent alive, what is indexed, what is wrong; a stale heartbeat is told from a living agent."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import Any

import click

from signet_sync.cli import Context, emit, json_option, pass_context


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
    from signet_sync.errors import DatabaseError
    from signet_sync.index import overview
    from signet_sync.index.database import Database

    folder = context.state()
    beat = state.read_heartbeat(folder)
    running = _alive(folder, beat)
    path = context.database_path()
    counts = dict.fromkeys(("artifacts", "sessions", "agents", "tombstones", "violations", "invalid"), 0)
    violations: list[str] = []
    trouble = ""
    halted = None
    try:
        database = Database(path, readonly=True, wait_ms=1000)
    except FileNotFoundError:
        trouble = "there is no index yet: signet-sync reindex"
    except DatabaseError as error:
        trouble = f"{error.message}: {error.hint}"
    else:
        try:
            verdicts = overview.verdict_counts(database)
            counts = {
                "artifacts": verdicts.get("indexed", 0),
                "sessions": overview.sessions(database),
                "agents": len(overview.agents(database)),
                "tombstones": database.value("select count(*) from memory_artifact_tombstones"),
                "violations": verdicts.get("violation", 0),
                "invalid": verdicts.get("invalid", 0),
            }
            violations = [row[0] for row in database.execute("select path from violations order by path limit 20")]
            halted = database.meta("halted")
        finally:
            database.connection.close()
    live = beat if running and beat is not None else None
    stopped = "halted: cliff" if halted else "stopped"
    return {
        "workspace": context.root,
        "database": path,
        "running": running,
        "pid": live["pid"] if live else None,
        "state": live["state"] if live else stopped,
        "since": live["since"] if live else None,
        "last_full_pass": _last_pass(folder, live),
        "interval": live["interval"] if live else None,
        "counts": counts,
        "watch": live.get("watch") if live else None,
        "violations": violations,
        "sizes": _sizes(path, folder),
        "trouble": trouble or None,
        "stale_heartbeat": bool(beat) and not running,
        "version": live.get("version") if live else None,
    }


def _alive(folder: Any, beat: dict[str, Any] | None) -> bool:
    """The kernel decides: the run lock is held. A heartbeat (after kill -9, a reboot, a reused pid) proves nothing."""
    from signet_sync import state

    if beat is None or not os.path.exists(os.path.join(folder.locks, "run.lock")):
        # Before its root is there, an agent holds no lock yet; then pid and boot have to do.
        return bool(beat) and beat is not None and beat.get("boot") == state.boot_id() and _pid_alive(beat.get("pid"))
    return state.run_lock_holder(folder)


def _pid_alive(pid: object) -> bool:
    if not isinstance(pid, int) or pid <= 0:
        return False
    with suppress(ProcessLookupError):
        try:
            os.kill(pid, 0)
        except PermissionError:
            return True
        return True
    return False


def _last_pass(folder: Any, live: dict[str, Any] | None) -> str | None:
    import json

    if live and live.get("last_full_pass"):
        return str(live["last_full_pass"])
    try:
        with open(os.path.join(folder.path, "last-pass.json"), encoding="utf-8") as handle:
            found = json.load(handle).get("last_full_pass")
    except (OSError, ValueError, AttributeError):
        return None
    return found if isinstance(found, str) else None


def _sizes(path: str, folder: Any) -> dict[str, int]:
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
    """Alive, not halted, and its last full pass younger than two intervals."""
    if not document["running"] or str(document["state"]).startswith(("halted", "degraded", "waiting")):
        return False
    from signet_sync.contracts.timestamps import SECOND, parse_instant

    last = parse_instant(document["last_full_pass"] or "")
    if last is None:
        return False
    return time.time() - last / SECOND <= 2 * (document["interval"] or 300) + 10


def _show(document: dict[str, Any]) -> None:
    good = document["running"] and str(document["state"]) in ("watching", "polling", "reconciling")
    colour = "green" if good else "red" if "halted" in str(document["state"]) else "yellow"
    pid = f" (pid {document['pid']})" if document["pid"] else ""
    click.echo("agent      " + click.style(f"{document['state']}{pid}", fg=colour, bold=True))
    if document["since"]:
        click.echo(f"since      {document['since']}")
    if document["stale_heartbeat"]:
        click.echo("           an earlier agent ended without saying so; signet-sync run starts a new one")
    click.echo(f"workspace  {document['workspace']}")
    click.echo(f"database   {document['database']} ({_human(document['sizes']['database'])})")
    click.echo(f"last pass  {document['last_full_pass'] or 'never'}")
    if document["watch"]:
        click.echo(f"watch      {document['watch']}")
    counts = document["counts"]
    click.echo(
        f"indexed    {counts['artifacts']} artifacts · {counts['sessions']} sessions · {counts['agents']} "
        f"{'agent' if counts['agents'] == 1 else 'agents'} · {counts['tombstones']} tombstones"
    )
    if counts["violations"] or counts["invalid"]:
        click.secho(
            f"problems   {counts['violations']} violations · {counts['invalid']} invalid"
            " → signet-sync violations list, signet-sync check",
            fg="red",
        )
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
