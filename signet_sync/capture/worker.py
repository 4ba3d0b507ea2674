"""Runs capture in a process beside the agent, so that a long transcript or a slow model never delays the watch."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator

from signet_sync.capture import spool
from signet_sync.capture.spool import Job
from signet_sync.formats.timestamps import SECOND, parse_instant
from signet_sync.sessions.store import live
from signet_sync.sync.workspace import Workspace

# Seconds after a worker failed, and before jobs that it left are looked at again.
RETRY_SECONDS = 60.0
# The maximum time between two reads of a running session, in microseconds.
LONGEST_REST = 60 * SECOND


def due(workspace: Workspace, now_us: int) -> Iterator[Job]:
    """Yields the jobs to process now; a stop marker waits until its transcript has been idle for a while."""
    for job in spool.jobs(workspace.state.spool, now_us):
        if job.event != "stop" or _idle(workspace, job, now_us):
            yield job


def due_sessions(workspace: Workspace, now_us: int) -> Iterator[tuple[Job, str]]:
    """Yields stop markers of running sessions whose turns are to be read now, and the shapes of their transcripts."""
    return ((job, shape) for job, shape, wait in changed_sessions(workspace, now_us) if wait <= 0)


def changed_sessions(workspace: Workspace, now_us: int) -> Iterator[tuple[Job, str, int]]:
    """Yields stop markers of sessions whose transcripts changed since the last read, with shape and time to wait (µs).

    A further hook event ends the wait early; changes without an event wait longer.
    """
    for job, shape, mark in _changed(workspace, now_us):
        if _idle(workspace, job, now_us):
            continue
        wait = mark.rests_until - now_us if mark is not None else 0
        # The clock was set back.
        wait = 0 if wait > LONGEST_REST else wait
        reported = mark is None or mark.reported_at != job.at
        yield job, shape, wait if reported else wait + LONGEST_REST


def unread(workspace: Workspace, now_us: int) -> Iterator[tuple[Job, str]]:
    """Yields stop markers of sessions whose transcripts changed since the last read, ignoring the time to wait.

    Sessions being read at this moment are left out: a transcript that kills its reader is left to the worker.
    """
    for job, shape, mark in _changed(workspace, now_us):
        if mark is None or mark.shape or mark.rests_until <= now_us:
            yield job, shape


def _changed(workspace: Workspace, now_us: int) -> Iterator[tuple[Job, str, live.TranscriptMark | None]]:
    """Yields stop markers whose transcripts changed since the last read, with their shapes and the last read."""
    for job in spool.jobs(workspace.state.spool, now_us):
        if job.event == "stop" and (shape := shape_of(job)):
            mark = live.mark_of(workspace.database, os.path.basename(job.place))
            if mark is None or mark.shape != shape:
                yield job, shape, mark


def shape_of(job: Job) -> str:
    """Returns what changes when something is added to a transcript; empty if there is none."""
    path = job.transcript_path or ""
    at = f" {job.at}" if job.harness == "opencode" or job.prompt is not None else ""
    if not (found := _status(path)):
        return f"none{at}" if job.prompt is not None else ""
    # OpenCode's additions stay in the log of its database for a while.
    log = _status(f"{path}-wal") if job.harness == "opencode" else ""
    return f"{found}{log}{at}"


def _status(path: str) -> str:
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return ""
    return f"{status.st_size} {status.st_mtime_ns}"


def _idle(workspace: Workspace, job: Job, now_us: int) -> bool:
    try:
        changed_us = os.stat(job.transcript_path or "").st_mtime_ns // 1000
    except (OSError, ValueError):
        # The harness has not created it yet.
        changed_us = parse_instant(job.at) or 0 if job.prompt is not None else 0
    return now_us - changed_us >= workspace.settings.capture_idle * SECOND


class Worker:
    """Runs at most one process at a time, started when there is something to capture; used by one thread."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._process: subprocess.Popen[bytes] | None = None
        self._not_before = 0.0

    def start(self, *, sweep: bool) -> bool:
        """Starts the process unless one is running or has just failed; returns whether it was started."""
        if self.working() or time.monotonic() < self._not_before:
            return False
        words = ("session", "take-spool", *(["--sweep"] if sweep else []))
        self._process = start_command(self._workspace, *words)
        return True

    def working(self) -> bool:
        """Checks whether the process is running; reaps one that has ended."""
        if self._process is None:
            return False
        code = self._process.poll()
        if code is None:
            return True
        self._process = None
        if code:
            self._not_before = time.monotonic() + RETRY_SECONDS
        return False

    def leave(self) -> None:
        """Stops tracking the process: its work is journalled, whether it ends by itself or is killed."""
        if self._process is not None:
            detach(self._process)
            self._process = None


def start_command(workspace: Workspace, *words: str, stderr: int = subprocess.DEVNULL) -> subprocess.Popen[bytes]:
    """Starts one of our commands on the workspace in a process that may outlive this one."""
    place = [] if workspace.own_place else ["--db", workspace.database.path]
    return subprocess.Popen(
        [sys.executable, "-m", "signet_sync", "--workspace", workspace.root, *place, *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=stderr,
        cwd="/",
        env={**os.environ, "SIGNET_SYNC_CHILD": "1"},
        start_new_session=True,
    )


def detach(process: subprocess.Popen[bytes]) -> None:
    """Stops waiting for a process, which may outlive this one, and prevents a warning about it."""
    process.poll()
    process.returncode = process.returncode or 0
