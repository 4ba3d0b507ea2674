"""Decides which jobs and running sessions are due: what rested long enough, and what changed since the last read."""

from __future__ import annotations

import os
from collections.abc import Iterator

from signet_sync.capture import spool
from signet_sync.capture.harnesses import registry
from signet_sync.capture.spool import Job
from signet_sync.formats.timestamps import SECOND, parse_instant
from signet_sync.sessions.live import store as live
from signet_sync.sync.workspace import Workspace

# The maximum time between two reads of a running session, in microseconds.
LONGEST_REST = 60 * SECOND


def due(workspace: Workspace, now_us: int) -> Iterator[Job]:
    """Yields the jobs to process now; a stop marker waits until its transcript has been idle for a while."""
    for job in spool.jobs(workspace.state.spool, now_us):
        if job.event != "stop" or _is_idle(workspace, job, now_us):
            yield job


def list_changed_sessions(workspace: Workspace, now_us: int) -> Iterator[tuple[Job, str, int]]:
    """Yields stop markers of sessions whose transcripts changed since the last read, with shape and time to wait (µs).

    A further hook event ends the wait early; changes without an event wait longer.
    """
    for job, shape, mark in list_changed(workspace, now_us):
        if _is_idle(workspace, job, now_us):
            continue
        wait = mark.rests_until - now_us if mark is not None else 0
        # The clock was set back.
        wait = 0 if wait > LONGEST_REST else wait
        reported = mark is None or mark.reported_at != job.at
        yield job, shape, wait if reported else wait + LONGEST_REST


def list_changed(workspace: Workspace, now_us: int) -> Iterator[tuple[Job, str, live.TranscriptMark | None]]:
    """Yields stop markers whose transcripts changed since the last read, with their shapes and the last read."""
    for job in spool.jobs(workspace.state.spool, now_us):
        if job.event == "stop" and (shape := shape_of(job)):
            mark = live.mark_of(workspace.database, os.path.basename(job.place))
            if mark is None or mark.shape != shape:
                yield job, shape, mark


def shape_of(job: Job) -> str:
    """Returns what changes when something is added to a transcript; empty if there is none."""
    is_database = registry.keeps_database(job.harness)
    # What is added to a database stays in its log for a while.
    places = (job.transcript_path, f"{job.transcript_path}-wal") if is_database else (job.transcript_path,)
    found = [f"{status.st_size} {status.st_mtime_ns}" if (status := stat_of(place)) else "" for place in places]
    return found[0] and f"{''.join(found)}{job.at if is_database else ''}"


def _is_idle(workspace: Workspace, job: Job, now_us: int) -> bool:
    status = stat_of(job.transcript_path)
    # At its first prompt the harness has not created it yet.
    changed_us = status.st_mtime_ns // 1000 if status is not None else parse_instant(job.at) or 0
    return now_us - changed_us >= workspace.settings.capture_idle * SECOND


def stat_of(path: str | None) -> os.stat_result | None:
    try:
        return os.stat(path or "")
    except (OSError, ValueError):
        return None
