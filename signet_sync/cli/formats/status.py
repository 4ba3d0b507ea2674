"""Formats `status`: lines for a person, one line for a pipe, and Prometheus' text format."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import click

from signet_sync.admin.status import advice
from signet_sync.formats.paths import display
from signet_sync.formats.timestamps import SECOND, parse_instant
from signet_sync.text.phrases import counted, human

_WELL = ("watching", "polling", "reconciling")


# ── for a person ──


def lines(document: Mapping[str, Any]) -> Iterator[str]:
    """Yields the whole status, in colours."""
    yield from _agent(document)
    yield _line("workspace", display(document["workspace"]))
    yield _line("database", f"{display(document['database'])} ({human(document['sizes']['database'])})")
    if kept := _kept(document):
        yield _line("kept", kept)
    yield _line("last pass", (document["last_full_pass"] or "never") + _looking_again(document))
    if document["watch"]:
        yield _line("watch", document["watch"])
    yield _line("indexed", _indexed(document["counts"]))
    yield from _problems(document)
    yield from _backlog(document)
    yield from _intake(document)
    yield from _tokens(document)
    for name in document["set_aside"]:
        yield _line("damaged", f"{name} was moved aside → signet-sync doctor", fg="yellow")
    if document["trouble"]:
        yield _line("trouble", display(document["trouble"]), fg="yellow")


def _line(label: str, text: str, **style: Any) -> str:
    return label.ljust(11) + (click.style(text, **style) if style else text)


def _agent(document: Mapping[str, Any]) -> Iterator[str]:
    state = document["state"]
    good = document["responding"] and state in _WELL
    pid = f" (pid {document['pid']})" if document["pid"] else ""
    yield _line("agent", f"{state}{pid}", fg="green" if good else "red" if "halted" in state else "yellow", bold=True)
    if document["since"]:
        yield _line("since", document["since"])
    for one in advice(document):
        yield _line("", display(f"{one.message}; {one.remedy}"), **({"fg": "red"} if one.bad else {}))


def _looking_again(document: Mapping[str, Any]) -> str:
    """Names what looks for later changes if no agent does; without an index there is other advice."""
    stopped = not document["running"] and document["readable"] and document["last_full_pass"]
    return "; later changes are found by: signet-sync reindex" if stopped else ""


def _indexed(counts: Mapping[str, int]) -> str:
    nouns = ("artifact", "session", "agent", "tombstone")
    return " · ".join(counted(counts[f"{noun}s"], noun) for noun in nouns)


def _kept(document: Mapping[str, Any]) -> str:
    """Describes the rows that settings of retention apply to, if there are any."""
    sizes, rows = document["sizes"], document["rows"]
    named = {
        "seals": counted(rows["seals"], "seal"),
        "recall_events": counted(rows["recall_events"], "recall hit"),
    }
    named |= {name: name for name in ("backups", "logs", "spool", "damaged")}
    return " · ".join(f"{words} {human(sizes[name])}" for name, words in named.items() if sizes[name])


def _problems(document: Mapping[str, Any]) -> Iterator[str]:
    counts = document["counts"]
    found = _found_wrong(counts)
    if found:
        commands = {"violations": "signet-sync violations list", "invalid": "signet-sync check"}
        shown = ", ".join(command for name, command in commands.items() if counts[name])
        yield _line("problems", f"{found} → {shown}", fg="red")
    if drifted := _drifted(document):
        yield _line("" if found else "problems", f"{drifted} → signet-sync entity check", fg="red")


def _found_wrong(counts: Mapping[str, int]) -> str:
    if not (counts["violations"] or counts["invalid"]):
        return ""
    return f"{counted(counts['violations'], 'violation')} · {counts['invalid']} invalid"


def _drifted(document: Mapping[str, Any]) -> str:
    count = document["entity_drift"]
    return f"{counted(count, 'entity file')} not as recorded" if count else ""


def _backlog(document: Mapping[str, Any]) -> Iterator[str]:
    if document["backlog"]:
        yield _line("backlog", f"{counted(document['backlog'], 'source')} to be processed for recall and pages")


def _intake(document: Mapping[str, Any]) -> Iterator[str]:
    intake = document["intake"]
    if intake["harnesses"] or intake["waiting"] or intake["at_work"]:
        harnesses = ", ".join(intake["harnesses"]) or "no harness"
        work = f" · {counted(intake['at_work'], 'session')} active recently" if intake["at_work"] else ""
        yield _line("intake", f"{harnesses} · {counted(intake['waiting'], 'job')} waiting{_behind(document)}{work}")
    if intake["given_up"] or intake["unfinished"] or intake["refused"]:
        text = (
            f"{counted(intake['unfinished'], 'ending')} unfinished · {intake['refused']} refused"
            f" · {counted(intake['given_up'], 'job')} given up → signet-sync logs intake"
        )
        yield _line("", text, fg="yellow")


def _tokens(document: Mapping[str, Any]) -> Iterator[str]:
    """Yields what language models took, if one was ever asked."""
    tokens = document["tokens"]
    if tokens["daily"] is not None:
        today = f"{tokens['today']:,} of {tokens['daily']:,} tokens today"
        yield _line("model", f"{today} · {tokens['last_30_days']:,} in 30 days")
    if tokens["trouble"]:
        yield _line("", display(tokens["trouble"]), fg="yellow")


def _behind(document: Mapping[str, Any]) -> str:
    """Describes how long the oldest job has waited, from one minute on."""
    minutes = int(document["lag_seconds"] // 60)
    return f", one for {counted(minutes, 'minute')}" if minutes else ""


# ── for a pipe ──


def summary(document: Mapping[str, Any]) -> str:
    """Returns in one line everything of which a change is worth reporting."""
    pid = f" (pid {document['pid']})" if document["pid"] else ""
    silent = "not responding" if document["responding"] is False else ""
    waiting = document["intake"]["waiting"]
    parts = [
        f"{document['state']}{pid}",
        silent,
        _indexed(document["counts"]),
        _found_wrong(document["counts"]),
        _drifted(document),
        f"{counted(waiting, 'job')} waiting" if waiting else "",
        f"{counted(document['intake']['given_up'], 'job')} given up" if document["intake"]["given_up"] else "",
        display(document["trouble"] or ""),
    ]
    return " · ".join(filter(None, parts))


# ── for Prometheus ──

_Sample = tuple[Mapping[str, str], float]


def prometheus(document: Mapping[str, Any], *, healthy: bool) -> str:
    """Returns the text format 0.0.4, for node_exporter's textfile collector and Prometheus itself.

    Unknown values are left out: an unreadable index has no count of violations, which is not zero.
    """
    place = {"workspace": os.fsencode(document["workspace"]).decode("utf-8", "replace")}
    found: list[str] = []
    for name, about, samples in _metrics(document, healthy):
        given = [f"signet_sync_{name}{_labels(place | dict(more))} {_number(value)}" for more, value in samples]
        if given:
            found += [f"# HELP signet_sync_{name} {about}", f"# TYPE signet_sync_{name} gauge", *given]
    return "\n".join(found) + "\n"


def _metrics(document: Mapping[str, Any], healthy: bool) -> Iterator[tuple[str, str, Iterable[_Sample]]]:
    state = document["state"]
    yield "agent_up", "Whether an agent is running on the workspace.", _one(document["running"])
    yield "agent_responding", "Whether its heartbeat is recent.", _one(document["responding"] is True)
    yield "agent_silent_seconds", "Time since its last heartbeat.", _one(document["silent_seconds"])
    yield "healthy", "Whether status --check succeeds: running, not halted, last full pass not too old.", _one(healthy)
    yield "halted", "Whether it is halted for safety because files are missing.", _one("halted" in state)
    yield "degraded", "Whether a problem keeps it from working.", _one(state.startswith("degraded"))
    yield "held", "Whether it does not write pages because a Signet daemon is running.", _one(state.startswith("held"))
    yield "last_full_pass_timestamp_seconds", "When the last full pass ended.", _one(_instant(document))
    yield "index_readable", "Whether the index can be read; otherwise counts are missing.", _one(document["readable"])
    if document["readable"]:
        yield from _counts(document)
    intake = document["intake"]
    yield "spool_waiting", "Jobs of harness hooks that wait to be captured.", _one(intake["waiting"])
    yield "spool_given_up", "Jobs of harness hooks that failed for good.", _one(intake["given_up"])
    yield "endings_unfinished", "Ends of sessions that are not completely written.", _one(intake["unfinished"])
    yield "lag_seconds", "Waiting time of the oldest job of a harness hook.", _one(document["lag_seconds"])
    yield "model_tokens_today", "Tokens that language models took on this UTC day.", _one(document["tokens"]["today"])
    yield "size_bytes", "Disk usage, by part.", [({"part": part}, size) for part, size in _sizes(document)]


def _counts(document: Mapping[str, Any]) -> Iterator[tuple[str, str, Iterable[_Sample]]]:
    counts = document["counts"]
    yield "artifacts", "Files that are indexed.", _one(counts["artifacts"])
    yield "sessions", "Sessions that are indexed.", _one(counts["sessions"])
    yield "agents", "Agents with a page.", _one(counts["agents"])
    yield "tombstones", "Sessions that were removed for good.", _one(counts["tombstones"])
    yield (
        "violations",
        "Sealed files that changed or disappeared, not yet restored or accepted.",
        _one(counts["violations"]),
    )
    yield "invalid", "Files that are invalid.", _one(counts["invalid"])
    yield "entity_drift", "Entity files that drifted and wait for a maintainer.", _one(document["entity_drift"])
    yield "backlog", "Sources to be processed for recall and pages.", _one(document["backlog"])
    rows = [({"part": part}, count) for part, count in document["rows"].items()]
    yield "rows", "Rows that exist only in the database, by part.", rows
    yield "endings_refused", "Ends of sessions that were refused.", _one(document["intake"]["refused"])


def _one(value: float | None) -> list[_Sample]:
    return [] if value is None else [({}, float(value))]


def _instant(document: Mapping[str, Any]) -> float | None:
    last = parse_instant(document["last_full_pass"] or "")
    return None if last is None else last / SECOND


def _sizes(document: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    unknown = () if document["readable"] else (*document["rows"], "unused")
    return ((part, size) for part, size in document["sizes"].items() if part not in unknown)


def _labels(labels: Mapping[str, str]) -> str:
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}"


def _escaped(text: str) -> str:
    """Escapes a label's value: only these three characters (source: Prometheus, *Exposition formats*)."""
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)
