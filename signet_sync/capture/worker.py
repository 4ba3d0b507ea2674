"""Decides which jobs and running sessions are due, and has them taken in a process beside the agent.

So a long transcript or a slow model never delays the watch.
"""

from __future__ import annotations

import os
import select
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from signet_sync.capture import spool
from signet_sync.capture.harnesses import registry
from signet_sync.capture.spool import Job
from signet_sync.capture.store import LiveMark, find_live_mark
from signet_sync.formats.timestamps import SECOND, parse_instant
from signet_sync.host import command
from signet_sync.sync.workspace import Workspace

if TYPE_CHECKING:
    import subprocess

# The maximum time between two reads of a running session, in microseconds.
LONGEST_REST = 60 * SECOND
# Seconds after a worker failed, and before jobs that it left are looked at again.
RETRY_SECONDS = 60.0
# Seconds that a worker without work stays.
WARM_SECONDS = 300.0
_TAKE, _SWEEP, _DONE = b"t", b"s", b"."


# ── what is due ──


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


def list_changed(workspace: Workspace, now_us: int) -> Iterator[tuple[Job, str, LiveMark | None]]:
    """Yields stop markers whose transcripts changed since the last read, with their shapes and the last read."""
    for job in spool.jobs(workspace.state.spool, now_us):
        if job.event == "stop" and (shape := shape_of(job)):
            mark = find_live_mark(workspace.database, os.path.basename(job.place))
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


# ── the process ──


class Worker:
    """Keeps at most one process, started when there is something to capture; used by one thread.

    It stays for a while, so that the next session's end does not wait until Python and our modules are loaded again.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._process: subprocess.Popen[bytes] | None = None
        self._busy = False
        self._not_before = 0.0

    def start(self, *, sweep: bool) -> bool:
        """Lets the process take the spool unless it is at it or has just failed; returns whether it will."""
        if self.is_working() or time.monotonic() < self._not_before:
            return False
        if self._process is None:
            from subprocess import PIPE

            words = (*self._workspace.options, "session", "take-spool", "--stay")
            self._process = command.start(*words, stdin=PIPE, stdout=PIPE)
        with suppress(BrokenPipeError):  # it left just now, which `is_working` finds
            os.write(command.descriptor(self._process.stdin), _SWEEP if sweep else _TAKE)
        self._busy = True
        return True

    def is_working(self) -> bool:
        """Checks whether the process takes the spool; reaps one that has ended, which closes its end of the pipe."""
        if self._process is None:
            return False
        answers = command.descriptor(self._process.stdout)
        while select.select([answers], [], [], 0)[0]:
            self._busy = False
            if not os.read(answers, 1):
                self._process.communicate()
                if self._process.returncode:
                    self._not_before = time.monotonic() + RETRY_SECONDS
                self._process = None
                return False
        return self._busy

    def leave(self) -> None:
        """Stops tracking the process: its work is journalled, whether it ends by itself or is killed."""
        if self._process is not None:
            command.leave(self._process)  # it ends after what it is at
            self._process = None


def rounds() -> Iterator[bool]:
    """Yields for each time that the agent wants the spool taken, by a byte on stdin, whether to sweep; says when done.

    Ends with the agent, or if it wants nothing for a while.
    """
    with suppress(BrokenPipeError):
        while select.select([0], [], [], WARM_SECONDS)[0] and (wanted := os.read(0, 1)):
            yield wanted == _SWEEP
            os.write(1, _DONE)
