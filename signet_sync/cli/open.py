"""`open`: one session with its segments, paths and lineage, or what an event token leads to."""

from __future__ import annotations

from typing import Any

import click

from signet_sync.cli import Context, agent_option, counted, emit, json_option, pass_context
from signet_sync.cli.search import count_access, database_for_reading


@click.command("open")
@click.argument("session")
@click.option(
    "--path",
    "wanted",
    type=click.Choice(["summary", "transcript", "manifest", "compaction"]),
    help="Print only the newest path of this kind.",
)
@agent_option
@json_option
@pass_context
def open_(context: Context, session: str, wanted: str | None, agent: str, as_json: bool) -> int:
    """Show a session by key, id, token or unambiguous prefix; of a token ev:… its event and the line it rests on."""
    from signet_sync.errors import UsageError

    if session.startswith("ev:"):
        from signet_sync.cli.entity_reading import show_source

        show_source(context, agent, session, wanted, as_json)
        return 0
    with database_for_reading(context) as database:
        document = running(database, agent, session) or describe(database, agent, session)
    paths = newest_paths(document)
    count_access(context, [(agent, path) for path in dict.fromkeys(paths.values())])
    if wanted is not None:
        if wanted not in paths:
            has = f"it has: {', '.join(paths)}" if paths else "they are written when it ends"
            raise UsageError(f"the session has no {wanted}", hint=has, code="no-such-file")
        click.echo(paths[wanted])
    elif as_json:
        emit(document)
    else:
        _show(document)
    return 0


def running(database: Any, agent: str, session: str) -> dict[str, Any] | None:
    """The document of a session of which there is nothing yet but live turns; None for any other."""
    from signet_sync.contracts.tokens import derive_token
    from signet_sync.index import live, sessions

    said = [one for one in live.sessions(database, agent) if session in (one.session_key, one.session_id)]
    if not said or sessions.find(database, agent, session):
        return None
    newest = said[0]
    return {
        "agent_id": agent,
        "session_id": newest.session_id,
        "session_key": newest.session_key,
        "session_token": derive_token(agent, newest.session_key, newest.session_id),
        "project": None,
        "harness": None,
        "segments": [],
        "compactions": [],
        "manifest": None,
        "sentence": "It runs: its files are written when it ends.",
        "verdicts": {},
        "live": sum(one.turns for one in said),
    }


def describe(database: Any, agent: str, session: str) -> dict[str, Any]:
    """The document of `open --json`."""
    from signet_sync.index import live, sessions

    ref = sessions.one(database, agent, session)
    files = sessions.files(database, ref)
    content = [f for f in files if f.source_kind != "manifest"]
    manifests = [f for f in files if f.source_kind == "manifest"]
    segments: dict[int, dict[str, Any]] = {}
    for file in content:
        if file.source_kind == "compaction":
            continue
        segment = segments.setdefault(
            file.captured_us, {"captured_at": file.captured_at, "ended_at": None, "summary": None, "transcript": None}
        )
        segment[file.source_kind] = file.source_path
        segment["ended_at"] = segment["ended_at"] or file.ended_at
    rank = {"summary": 3, "compaction": 2, "transcript": 1, "manifest": 0}
    best = max(files, key=lambda f: (rank[f.source_kind], f.captured_us))
    return {
        "agent_id": ref.agent_id,
        "session_id": ref.session_id,
        "session_key": best.session_key,
        "session_token": ref.session_token,
        "project": best.project,
        "harness": best.harness,
        "segments": [segments[key] for key in sorted(segments)],
        "compactions": [f.source_path for f in content if f.source_kind == "compaction"],
        "manifest": manifests[-1].source_path if manifests else None,
        "sentence": best.sentence or "",
        "verdicts": sessions.verdicts(database, [f.source_path for f in files]),
        "live": sum(
            one.turns
            for one in live.sessions(database, agent)
            if ref.session_id in (one.session_id, one.session_key)
            or (not one.session_id and one.session_key == best.session_key)
        ),
    }


def newest_paths(document: dict[str, Any]) -> dict[str, str]:
    """The newest path of each kind that the session has."""
    paths: dict[str, str] = {}
    for segment in document["segments"]:
        for kind in ("summary", "transcript"):
            if segment[kind]:
                paths[kind] = segment[kind]
    if document["compactions"]:
        paths["compaction"] = document["compactions"][-1]
    if document["manifest"]:
        paths["manifest"] = document["manifest"]
    return paths


def _show(document: dict[str, Any]) -> None:
    click.secho(document["session_key"] or document["session_id"], bold=True)
    click.echo(f"  {document['sentence']}")
    for label in ("session_id", "session_token", "project", "harness"):
        click.echo(f"  {label.replace('_', ' ')}: {document[label] or '–'}")
    for number, segment in enumerate(document["segments"], 1):
        ended = segment["ended_at"]
        told = f", ended {ended}" if ended and ended != segment["captured_at"] else ""
        click.echo(f"  segment {number}: {segment['captured_at']}{told}")
        for kind in ("summary", "transcript"):
            if segment[kind]:
                click.echo(f"    {segment[kind]}")
    for path in document["compactions"]:
        click.echo(f"  compaction: {path}")
    click.echo(f"  manifest: {document['manifest'] or '–'}")
    if document["live"]:
        click.echo(f"  live: {counted(document['live'], 'turn')}")
    odd = {path: code for path, code in document["verdicts"].items() if code != "indexed"}
    for path, code in odd.items():
        click.secho(f"  {code}: {path}", fg="red")
