"""Stores jobs that harness hooks leave for capture, one durable file each, in the state folder.

A job is an allow-list: what happened, in which session, and where its transcript is; no other word of a hook's payload
reaches the disk. A hook calls `put`, which may take only milliseconds; the rest is for the worker:

    for job in spool.jobs(workspace.state.spool):   # due ones, oldest first
        if spool.begin(job, now_us):                # else it was given up
            ...                                     # capture; idempotent, because it is repeated after a crash
            spool.finish(job)                       # or spool.retry_later(job, now_us)

Files are named by time. A stop marker is named by its session, so that the next one replaces it; a marker that was
renewed while a worker processed it is kept. Of a file that cannot be read, or has failed too often, an empty one stays
in `bad/` for `BAD_DAYS`.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from hashlib import sha256

from signet_sync.formats.lazy_pattern import late
from signet_sync.host.repository import Repository
from signet_sync.storage import durable
from signet_sync.storage.durable import (
    DAY,
    READ,
    TEMPORARY,
    add_sum,
    private_folder,
    publish,
    read_with_sum,
    sync_folder,
    unlink,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

VERSION = 1
SIZE_LIMIT = 1024 * 1024  # bytes
MOST_TRIES = 8
BAD_DAYS = 30
LONGEST_WAIT = 6 * 3600  # seconds between two tries
_SECOND = 1_000_000
_WRITING = 60.0  # seconds
_SUFFIX = ".json"
_ANY = late(r".*", re.DOTALL)
_FIELDS = "event harness session_id agent_id at transcript_path cwd repository tries retry_at".split()


class Job:
    """One event that a hook reported.

    `event` is `session-start`, `stop`, `compact` or `end`; `at` is ISO 8601 UTC with milliseconds; `agent_id` is ours.
    `transcript_path` and `cwd` are absolute or None. `repository` is that of `cwd` at that time. `tries` and `retry_at`
    (seconds since 1970) belong to `retry_later`; `place` and `mark` tell which file this was read from, and its state.
    """

    event: str
    harness: str
    session_id: str
    agent_id: str
    at: str
    transcript_path: str | None = None
    cwd: str | None = None
    repository: Repository | None = None
    tries: int = 0
    retry_at: float = 0.0
    place: str = ""
    mark: tuple[int, int] = (0, 0)

    def __init__(self, **values: Any) -> None:  # a hook has no time to import `dataclasses`
        vars(self).update(values)

    def document(self) -> dict[str, object]:
        """Returns the file's content."""
        return {"v": VERSION, **{name: getattr(self, name) for name in _FIELDS}}


# ── writing ──


def put(folder: str, job: Job) -> Job:
    """Writes a job: a new durable file; a stop marker replaces its predecessor and is not synced.

    `folder` is `StateFolder.spool`, created if missing. Returns the job with its `place`. Raises `OSError`.
    """
    private_folder(folder)
    is_marker = job.event == "stop"
    name = f"{time.time_ns() // 1_000_000:014d}-{os.urandom(6).hex()}"
    if is_marker:
        identity = "\0".join((job.agent_id, job.harness, job.session_id))
        name = f"stop-{sha256(identity.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"
    job.place = os.path.join(folder, f"{name}{_SUFFIX}")
    _write(job, durable=not is_marker)
    return job


def _write(job: Job, *, durable: bool = True) -> None:
    handle = publish(job.place, add_sum(job.document()), durable=durable)
    job.mark = _mark(os.fstat(handle))
    os.close(handle)


# ── processing ──


def jobs(folder: str, now_us: int | None = None) -> list[Job]:
    """Returns the jobs that are due, oldest first. Gives up what is no job; skips what cannot be opened now."""
    now, found = _seconds(now_us), []
    for path in _list_jobs(folder):
        try:
            job = _read(path)
        except OSError:
            continue
        if job is None:
            _give_up(path)
        # A clock that was set back must not delay a job for years.
        elif not now < job.retry_at <= now + LONGEST_WAIT:
            found.append(job)
    return sorted(found, key=lambda job: (job.at, job.place))


def begin(job: Job, now_us: int) -> bool:
    """Counts a try before it is made; False if the job is given up instead.

    So a job that kills its worker is delayed like others, though not after the first time, which may have been a power
    cut. Raises `OSError`.
    """
    if not _is_unchanged(job):
        return True
    if job.tries + 1 >= MOST_TRIES:
        _give_up(job.place)
        return False
    job.retry_at = now_us / _SECOND + _wait(job.tries) if job.tries else 0.0
    job.tries += 1
    _write(job)
    return True


def finish(*jobs: Job) -> None:
    """Deletes jobs of one spool. Raises `OSError`."""
    gone = [job for job in jobs if _is_unchanged(job) and unlink(job.place)]
    if gone:
        sync_folder(os.path.dirname(gone[0].place))


def retry_later(job: Job, now_us: int) -> None:
    """Delays a job that was begun: a minute, then four times as long each time, at most six hours. Raises `OSError`."""
    if _is_unchanged(job):
        job.retry_at = now_us / _SECOND + _wait(job.tries)
        _write(job)


def drop(folder: str, unwanted: Callable[[Job], bool]) -> None:
    """Deletes the jobs of removed sessions (`unwanted`), and files that are no jobs, which may contain anything.

    A file that is being written is left to the worker, which will find the session removed. Raises `OSError`.
    """
    for path in (os.path.join(folder, name) for name in _names(folder)):
        try:
            young = time.time() - os.lstat(path).st_mtime < _WRITING  # it takes milliseconds to write one
            is_written = young and TEMPORARY.fullmatch(os.path.basename(path))
            gone = not is_written and ((job := _read(path)) is None or unwanted(job))
        except OSError:
            continue  # taken meanwhile, or no file
        if gone:
            unlink(path)
    if os.path.isdir(folder):
        sync_folder(folder)


def sweep(folder: str, now_us: int | None = None) -> None:
    """Removes temporary files whose writer is dead (or that are a day old), and old files in `bad/`."""
    for place, names, longest in ((folder, TEMPORARY, DAY), (_bad(folder), _ANY, BAD_DAYS * DAY)):
        try:
            durable.sweep(place, names, longest=longest, now=_seconds(now_us))
        except OSError:
            continue


# ── looking ──


def has_jobs(folder: str) -> bool:
    """Checks whether there is any job, due or not; reads only names."""
    return bool(_list_jobs(folder))


def markers(folder: str) -> list[str]:
    """Returns the names of the stop markers, due or not: of sessions that the sweep captures once they are idle."""
    return [name for path in _list_jobs(folder) if (name := os.path.basename(path)).startswith("stop-")]


def oldest(folder: str) -> float | None:
    """Returns when the oldest waiting job was put, in seconds since 1970, or None. Markers are not counted."""
    put = [os.path.basename(path)[:14] for path in _list_jobs(folder)]
    return min((int(at) / 1000 for at in put if at.isascii() and at.isdigit()), default=None)


def count(folder: str) -> int:
    """Counts the jobs that wait, without stop markers."""
    return sum(not os.path.basename(path).startswith("stop-") for path in _list_jobs(folder))


def count_given_up(folder: str) -> int:
    """Counts the jobs in `bad/`."""
    return len(_names(_bad(folder)))


# ── files ──


def _read(path: str) -> Job | None:
    """Reads a job from its file; None if it can never be read. Raises `OSError`."""
    with open(os.open(path, READ), "rb") as file:
        status = os.fstat(file.fileno())
        document = read_with_sum(file.read(SIZE_LIMIT))
    if document is None or document.pop("v") != VERSION:
        return None
    if document["repository"] is not None:
        document["repository"] = Repository(*document["repository"])
    return Job(**document, place=path, mark=_mark(status))


def _give_up(path: str) -> None:
    """Leaves of a job only an empty file in `bad/`, which is counted."""
    folder = os.path.dirname(path)
    try:
        private_folder(_bad(folder))
        os.close(publish(os.path.join(_bad(folder), os.path.basename(path)), b"", durable=False))
        unlink(path)
    except OSError:
        return  # tried again at the next look
    sync_folder(folder)


def _bad(folder: str) -> str:
    return os.path.join(folder, "bad")


def _names(folder: str) -> list[str]:
    try:
        return [name for name in os.listdir(folder) if name != "bad"]
    except OSError:
        return []


def _list_jobs(folder: str) -> list[str]:
    return [os.path.join(folder, name) for name in _names(folder) if name.endswith(_SUFFIX)]


def _mark(status: os.stat_result) -> tuple[int, int]:
    return status.st_ino, status.st_mtime_ns


def _is_unchanged(job: Job) -> bool:
    """Checks whether the file is still the one that was read: a marker may have been renewed meanwhile."""
    try:
        return _mark(os.lstat(job.place)) == job.mark
    except FileNotFoundError:
        return False


def _seconds(now_us: int | None) -> float:
    return time.time() if now_us is None else now_us / _SECOND


def _wait(tries: int) -> float:
    return float(min(60.0 * 4 ** (tries - 1), LONGEST_WAIT))
