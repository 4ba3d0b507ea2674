"""Stores jobs that harness hooks leave for capture, one durable file each, in the state folder.

A job is an allow-list: what happened, in which session, and where its transcript is; no other word of a hook's payload
reaches the disk. A hook calls `put`, which may take only milliseconds; the rest is for the worker:

    for job in spool.jobs(workspace.state.spool):   # due ones, oldest first
        spool.begin(job)
        ...                                         # capture; idempotent, because it is repeated after a crash
        spool.finish(job)                           # or spool.retry_later(job, "why")

Files are named by time. A stop marker is named by its session, so that the next one replaces it; a marker that was
renewed while a worker processed it is kept. A file that cannot be read, or has failed too often, goes to `bad/` with
the reason at the end of its name, and is deleted after `BAD_DAYS`. Jobs of a newer signet-sync are left for it.
"""

from __future__ import annotations

import json
import os
import re
import stat
import time
from collections.abc import Callable, Mapping
from hashlib import sha256

from signet_sync.formats.ids import is_session_id
from signet_sync.formats.lazy_pattern import late
from signet_sync.formats.paths import AGENT_ID
from signet_sync.host.repository import Repository
from signet_sync.storage import durable
from signet_sync.storage.durable import DAY, READ, TEMPORARY, private_folder, publish, sync_folder, unlink
from signet_sync.storage.locations import process_alive
from signet_sync.text.stored_names import storable_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dataclasses import dataclass
    from typing import Any
else:

    def dataclass(**options: bool):
        """Leaves a class as it is: a hook has no time to import `dataclasses`."""
        return lambda kind: kind


VERSION = 1
CUT = "[No more of this prompt was kept.]"
EVENTS = ("session-start", "stop", "compact", "end")
SIZE_LIMIT = 32 * 1024 * 1024  # bytes; a compaction's summary comes from a payload of at most 16 MiB
MOST_TRIES = 8
MOST_DAYS, BAD_DAYS = 7, 30
LONGEST_WAIT = 6 * 3600  # seconds between two tries
_YEAR_5000 = 95_617_584_000  # seconds since 1970
_SECOND = 1_000_000
_WRITING = 60.0  # seconds
_BEGUN = "it ended its worker"
_SUFFIX = ".json"
_ANY = late(r".*", re.DOTALL)
# Jobs as they were read last, by their files: those of running sessions lie there for hours, and are asked for often.
_read_before: dict[str, Job] = {}
_AT = late(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", re.ASCII)


@dataclass(kw_only=True)
class Job:
    """One event that a hook reported.

    `event` is one of `EVENTS`; `at` is ISO 8601 UTC with milliseconds; `agent_id` is ours. `transcript_path` and `cwd`
    are absolute or None; `reason` is the harness's word for why (its `reason`, `source` or `trigger`). `compaction` is
    the sanitized summary of a compaction if the harness delivered one. `prompt` is the user's sanitized prompt and
    `answer` the last answer to it, which a hook may get before the harness writes them down. `repository` is that of
    `cwd` at that time. `tries`, `retry_at` (seconds since 1970) and `trouble` belong to `retry_later`; `place` and
    `mark` identify the file this was read from, and its state.
    """

    event: str
    harness: str
    session_id: str
    agent_id: str
    at: str
    transcript_path: str | None = None
    cwd: str | None = None
    reason: str | None = None
    compaction: str | None = None
    prompt: str | None = None
    answer: str | None = None
    repository: Repository | None = None
    tries: int = 0
    retry_at: float = 0.0
    trouble: str | None = None
    place: str = ""
    mark: tuple[int, int] = (0, 0)

    if not TYPE_CHECKING:

        def __init__(self, **values: object) -> None:
            self.__dict__.update(values)

    def document(self) -> dict[str, object]:
        """Returns the file's content."""
        more = {name: value for name in _OPTIONAL if (value := getattr(self, name)) is not None}
        return {"v": VERSION, **{name: getattr(self, name) for name in _FIELDS}, **more}


_FIELDS = (
    "event", "harness", "session_id", "agent_id", "at", "transcript_path", "cwd", "reason", "compaction", "tries",
    "retry_at", "trouble",
)  # fmt: skip
_OPTIONAL = ("prompt", "answer", "repository")


class _OfAnother(OSError):
    """A job of a newer signet-sync, left for it."""


class _Unusable(Exception):
    """A file that is not a job; the reason is one word, which becomes part of its new name."""


# ── writing ──


def prepare(folder: str) -> None:
    """Creates the folder, so that it can be watched before the first job comes. Raises `OSError`."""
    private_folder(folder)


def put(folder: str, job: Job) -> Job:
    """Writes a job: a new durable file; a stop marker replaces its predecessor and is not synced.

    `folder` is `StateFolder.spool`, created if missing. Returns the job with its `place`. Raises `OSError`.
    """
    private_folder(folder)
    marker = job.event == "stop"
    name = _marker_name(job) if marker else f"{time.time_ns() // 1_000_000:014d}-{os.urandom(6).hex()}"
    job.place = os.path.join(folder, name + _SUFFIX)
    _write(job, durable=not marker)
    return job


def _marker_name(job: Job) -> str:
    identity = "\0".join((job.agent_id, job.harness, job.session_id))
    return "stop-" + sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _write(job: Job, *, durable: bool) -> None:
    data = json.dumps(job.document(), separators=(",", ":")).encode("ascii")
    handle = publish(job.place, data, durable=durable)
    job.mark = _mark(os.fstat(handle))
    os.close(handle)


# ── processing ──


def waiting(folder: str) -> bool:
    """Checks whether there is any job, due or not; reads only names."""
    return any(name.endswith(_SUFFIX) for name in _names(folder))


def jobs(folder: str, now_us: int | None = None) -> list[Job]:
    """Returns the jobs that are due, oldest first. Moves what is no job to `bad/`; skips what cannot be opened now."""
    now = time.time() if now_us is None else now_us / _SECOND
    found = []
    known = dict(_read_before)
    _read_before.clear()
    for name in _names(folder):
        if not name.endswith(_SUFFIX):
            continue
        path = os.path.join(folder, name)
        try:
            job = known.get(path)
            if job is None or not _is_unchanged(job):
                job = _read(path)
            _read_before[path] = job
            job = Job(**vars(job))  # the caller may change its own
        except _Unusable as problem:
            _put_aside(path, str(problem))
            continue
        except OSError:
            continue
        # A clock that was set back must not delay a job for years.
        if not now < job.retry_at <= now + LONGEST_WAIT:
            found.append(job)
    return sorted(found, key=lambda job: (job.at, job.place))


def begin(job: Job, now_us: int | None = None) -> bool:
    """Counts a try before it is made; False if the job is given up instead.

    So a job that kills its worker is delayed like others, though not after the first time, which may have been a power
    cut. Raises `OSError`.
    """
    if not _is_unchanged(job):
        return True
    now = time.time() if now_us is None else now_us / _SECOND
    if job.tries + 1 >= MOST_TRIES:
        _give_up(job)
        return False
    job.retry_at = now + _wait(job.tries) if job.tries else 0.0
    job.tries += 1
    job.trouble = _BEGUN
    _write(job, durable=True)
    return True


def _wait(tries: int) -> float:
    return float(min(60.0 * 4 ** (tries - 1), LONGEST_WAIT))


def finish(*jobs: Job) -> None:
    """Deletes jobs of one spool. Raises `OSError`."""
    gone = [job for job in jobs if _is_unchanged(job) and unlink(job.place)]
    if gone:
        sync_folder(os.path.dirname(gone[0].place))


def retry_later(job: Job, reason: str, now_us: int | None = None) -> bool:
    """Delays a job: a minute, then four times as long each time, at most six hours; False if it is given up.

    A job moves to `bad/` after 8 tries or 7 days. `reason` is written to disk: it must contain no text of a session.
    Raises `OSError`.
    """
    if not _is_unchanged(job):
        return True
    now = time.time() if now_us is None else now_us / _SECOND
    job.tries += job.trouble != _BEGUN
    job.trouble = reason[:300]
    job.retry_at = now + _wait(job.tries)
    _write(job, durable=True)
    if job.tries >= MOST_TRIES or now - _moment(job.at) > MOST_DAYS * DAY:
        _give_up(job)
        return False
    return True


def size(folder: str) -> tuple[int, int]:
    """Returns how many jobs wait, and how many bytes the spool takes, `bad/` included."""
    count = total = 0
    for place in (folder, _bad(folder)):
        for name in _names(place):
            try:
                status = os.lstat(os.path.join(place, name))
            except OSError:
                continue
            if stat.S_ISREG(status.st_mode):
                total += status.st_size
                count += place == folder and name.endswith(_SUFFIX)
    return count, total


def marker(folder: str, job: Job) -> Job | None:
    """Returns the stop marker of a job's session, due or not; None if there is none or it cannot be read."""
    try:
        return _read(os.path.join(folder, _marker_name(job) + _SUFFIX))
    except (OSError, _Unusable):
        return None


def oldest(folder: str) -> float | None:
    """Returns when the oldest waiting job was put, in seconds since 1970, or None. Markers are not counted."""
    put = [name[:14] for name in _names(folder) if name.endswith(_SUFFIX)]
    return min((int(at) / 1000 for at in put if at.isascii() and at.isdigit()), default=None)


def markers(folder: str) -> list[str]:
    """Returns the names of the stop markers, due or not: of sessions that the sweep captures once they are idle."""
    return [name for name in _names(folder) if name.startswith("stop-") and name.endswith(_SUFFIX)]


def count_given_up(folder: str) -> int:
    """Counts the jobs in `bad/`."""
    return len(_names(_bad(folder)))


def drop(folder: str, unwanted: Callable[[Job], bool]) -> int:
    """Deletes the jobs of removed sessions (`unwanted`), `bad/` included; returns how many.

    Files that are not jobs are deleted, too: they are useless and may contain anything. A file that a live process is
    writing is kept; its worker will find the session removed. Raises `OSError`.
    """
    dropped = 0
    for place in (folder, _bad(folder)):
        gone = 0
        for name in _names(place):
            path = os.path.join(place, name)
            if _is_being_written(path, name):
                continue
            try:
                wanted = not unwanted(_read(path))
            except (_Unusable, _OfAnother):
                wanted = False
            except FileNotFoundError:
                continue
            gone += not wanted and _remove(path)
        if gone:
            sync_folder(place)
        dropped += gone
    return dropped


def sweep(folder: str, now_us: int | None = None) -> None:
    """Removes temporary files whose writer is dead (or that are a day old), and old files in `bad/`."""
    now = time.time() if now_us is None else now_us / _SECOND
    for place, names, longest in ((folder, TEMPORARY, DAY), (_bad(folder), _ANY, BAD_DAYS * DAY)):
        try:
            durable.sweep(place, names, longest=longest, now=now)
        except OSError:
            continue


# ── files ──


def _read(path: str) -> Job:
    """Reads a job from its file. Raises `OSError`, or `_Unusable` if it can never be read."""
    status = os.lstat(path)
    if not stat.S_ISREG(status.st_mode):
        raise _Unusable("not-a-file")
    with open(os.open(path, READ), "rb") as file:
        status = os.fstat(file.fileno())
        raw = file.read(SIZE_LIMIT + 1)
    if len(raw) > SIZE_LIMIT:
        raise _Unusable("too-large")
    try:
        document = json.loads(raw)
    except (ValueError, RecursionError):
        raise _Unusable("damaged") from None
    if not isinstance(document, dict):
        raise _Unusable("damaged")
    version = document.pop("v", None)
    if isinstance(version, int) and version > VERSION:
        raise _OfAnother(path)
    if version != VERSION:
        raise _Unusable("unknown-version")
    if not _is_sound(document):
        raise _Unusable("damaged")
    if (repository := document.pop("repository", None)) is not None:
        document["repository"] = Repository(*repository)
    return Job(**document, place=path, mark=_mark(status))


def _is_sound(document: Mapping[str, Any]) -> bool:
    """Checks whether these are a job's fields with valid values: any program can write to the state folder."""
    at, tries, retry_at = document.get("at"), document.get("tries"), document.get("retry_at")
    texts = (
        document.get(name) for name in ("transcript_path", "cwd", "reason", "compaction", "prompt", "answer", "trouble")
    )
    return (
        document.keys() - set(_OPTIONAL) == set(_FIELDS)
        and document["event"] in EVENTS
        and isinstance(document["harness"], str)
        and is_session_id(document["session_id"])
        and isinstance(document["agent_id"], str)
        and AGENT_ID.fullmatch(document["agent_id"]) is not None
        and isinstance(at, str)
        and _AT.fullmatch(at) is not None
        and all(text is None or isinstance(text, str) for text in texts)
        and _is_repository(document.get("repository"))
        and isinstance(tries, int)
        and tries in range(MOST_TRIES + 1)
        and isinstance(retry_at, int | float)
        and 0 <= retry_at < _YEAR_5000
    )


def _is_repository(value: object) -> bool:
    if value is None:
        return True
    if not isinstance(value, list) or len(value) != len(Repository._fields):
        return False
    return all(isinstance(text, str) for text in (value[0], value[1] or "", value[2], value[3] or ""))


def _give_up(job: Job) -> None:
    """Moves a job to `bad/`, without the secrets in its paths, which are no longer needed."""
    path, cwd = job.transcript_path, job.cwd
    job.transcript_path, job.cwd = path and storable_path(path), cwd and storable_path(cwd)
    if (path, cwd) != (job.transcript_path, job.cwd):
        _write(job, durable=True)
    _put_aside(job.place, "given-up")


def _put_aside(path: str, reason: str) -> None:
    folder = os.path.dirname(path)
    try:
        private_folder(_bad(folder))
        os.replace(path, os.path.join(_bad(folder), f"{os.path.basename(path)}.{reason}"))
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


def _mark(status: os.stat_result) -> tuple[int, int]:
    return status.st_ino, status.st_mtime_ns


def _is_unchanged(job: Job) -> bool:
    """Checks whether the file is still the one that was read: a marker may have been renewed meanwhile."""
    try:
        return _mark(os.lstat(job.place)) == job.mark
    except FileNotFoundError:
        return False


def _is_being_written(path: str, name: str) -> bool:
    """Checks whether a live process is writing this file: that takes milliseconds, and process ids are reused."""
    writer = TEMPORARY.fullmatch(name)
    try:
        return writer is not None and process_alive(int(writer[1])) and time.time() - os.lstat(path).st_mtime < _WRITING
    except FileNotFoundError:
        return False


def _remove(path: str) -> bool:
    """Deletes the file; a folder in its place is left as it is."""
    try:
        return unlink(path)
    except OSError:
        if os.path.isdir(path):
            return False
        raise


def _moment(at: str) -> float:
    """Returns a job's time in seconds since 1970; 0 for an invalid date, so that such a job counts as old."""
    from signet_sync.formats.timestamps import SECOND, parse_instant  # a hook does not read jobs

    return (parse_instant(at) or 0) / SECOND
