"""Renders what recall, expand and open found as lines, for a terminal and for agents."""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote
from typing import Any

from signet_sync.formats.handle import name_kind
from signet_sync.formats.paths import display
from signet_sync.formats.timestamps import local_day, parse_instant
from signet_sync.text.phrases import Quote, count_noun, place_line

GAP = " … "  # between turns that are shown
LABELLED = 12  # of each group
_AROUND = (
    ("parents", "above"),
    ("children", "below"),
    ("siblings", "beside"),
    ("memories", "memories and statements"),
)


def handle_of(thing: str) -> str:
    """Returns an id as `expand` takes it; a turn of a running session and a path have no mark."""
    return thing if "#" in thing or "/" in thing else f"^{thing}"


def split_turns(hit: dict[str, Any]) -> list[str]:
    """Returns the turns of a session's hit, each with its speaker where these differ; other hits whole."""
    turns: list[str] = hit["text"].split(GAP) if hit["tier"] == "session" else [hit["text"]]
    return turns


# ── expand ──


def list_expanded_lines(document: dict[str, Any]) -> Iterator[str]:
    """Yields the lines of a followed handle."""
    node, labels = document["node"], document["labels"]
    is_passage = node["kind"] == "chunk"
    mark = f"  ^{node['id']}" if node["kind"] != "live" else ""
    yield f"{name_kind(node.get('level') or node['kind'])} · {display(node['label'])}{mark}"
    first, last = (local_day(node.get(key) or "") for key in ("earliest", "latest"))
    days = f"{first} to {last}" if first and first != last else last
    about = [days] if node["kind"] != "memory" else [*map("#{}".format, node["tags"])]
    about += ["private"] if node.get("private") else []
    about += [node[key] for key in ("status", "path") if node.get(key)]
    about += [f"project ^{node['thread']}"] if node.get("thread") else []
    if any(about):
        yield "  " + " · ".join(filter(None, about))
    for source in document.get("sources", ()):
        if source.get("running"):
            yield f"  said in a running session: expand {display(quote(source['running']))}"
        else:
            yield f"  stated in {source['path']}, line {source['line']}"
    if node["text"] and is_passage:
        yield f"\n{node['text']}"
    for group, heading in _AROUND:
        ids = document[group]
        if ids:
            yield f"\n  {heading}"
        yield from (f"    ^{one}  {labels[one]}" for one in ids[:LABELLED] if one in labels)
        listed = sum(one in labels for one in ids[:LABELLED])
        if listed < len(ids):
            yield f"    and {len(ids) - listed} more"
    if node["text"] and not is_passage:
        yield f"\n{node['text']}"
    transcript = document["transcript"]
    if transcript and not is_passage:
        yield f"\ntranscript: {transcript['path']}"
        if transcript["excerpt"]:
            yield f"\n{transcript['excerpt']}"


# ── open ──


def newest_paths(document: dict[str, Any]) -> dict[str, str]:
    """Returns the newest path of each kind that the session has."""
    paths = [(kind, segment[kind]) for segment in document["segments"] for kind in ("summary", "transcript")]
    paths += [("compaction", path) for path in document["compactions"]]
    return {kind: path for kind, path in (*paths, ("manifest", document["manifest"])) if path}


def session_lines(document: dict[str, Any]) -> Iterator[str]:
    """Yields the lines of a session: its sentence, its files, and what is wrong with them."""
    yield display(document["session_key"] or document["session_id"])
    yield f"  {display(document['sentence'])}"
    names = {"session": "session_token", "session id": "session_id"}
    for label in ("status", *names, "project", "harness"):
        yield f"  {label}: {display(document[names.get(label, label)] or '–')}"
    for number, segment in enumerate(document["segments"], 1):
        ended = segment["ended_at"]
        until = f", ended {ended}" if ended and ended != segment["captured_at"] else ""
        yield f"  segment {number}: {segment['captured_at']}{until}"
        yield from (f"    {segment[kind]}" for kind in ("summary", "transcript") if segment[kind])
    yield from (f"  compaction: {path}" for path in document["compactions"])
    yield f"  manifest: {document['manifest'] or '–'}"
    if document["live"]:
        yield f"  live: {count_noun(document['live'], 'turn')}"
    for path, code in document["verdicts"].items():
        if code != "indexed":
            yield f"  {code}: {path}"
    for one in document["commits"]:
        yield f"  commit: {display(' '.join(filter(None, (one['commit'], one['subject']))))}"
    for one in document["pull_requests"]:
        yield f"  pull request: #{one['number']} {display(one['title'])}{' (merged)' if one['merged'] else ''}"
    for one in document["files"]:
        yield f"  changed: {display(one['path'])}"
    for one in document["quotes"]:
        quote = Quote(one["turn"], one["speaker"], one["at"] and parse_instant(one["at"]), one["text"])
        yield f"  {display(place_line(quote))}"
