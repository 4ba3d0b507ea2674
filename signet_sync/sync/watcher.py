"""Collects the operating system's change events as sets of workspace-relative paths.

An event is a hint: only its path is used, and what is on disk decides. `everything` means that hints may be incomplete
(too many, a watch set again). What no event tells, because the kernel had no watch or no room left, the next
full pass finds. watchdog delivers the events; it is imported only when a watch is set, because that takes longer than
most commands.
"""

import contextlib
import math
import os
import queue
import stat
import sys
import threading
import time
import warnings
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, NamedTuple

# Events after so many seconds of quiet are not the middle of a burst.
QUIET_BEFORE = 1.0
# Above this many distinct paths `news` is not called; above that many a sweep of names is cheaper than the hints, and
# the kernel, which holds some 16,000 events, may have dropped others.
MOST_ASKED, MOST_PATHS = 512, 2_000
# Exhausted watches are a limit of the whole user account: other programs must release some first.
RETRY_SECONDS = 60.0
JOIN_SECONDS = 1.0

Identity = tuple[int, int]


class Hint(NamedTuple):
    """What may have changed since the last hint; `a | b` is both.

    `paths` are workspace-relative with `/` (absolute for folders outside the workspace), bytes that are no
    UTF-8 surrogate-escaped. `everything` says that `paths` may be incomplete.
    """

    paths: frozenset[str]
    everything: bool

    def __or__(self, other: "Hint") -> "Hint":
        return Hint(self.paths | other.paths, self.everything or other.everything)


class Watcher:
    """Watches some folders of a workspace and reports what to look at.

    `root` is the workspace's path and may be a symlink, missing, or replaced while watching. `folders()` returns the
    workspace-relative folders to watch (`""` is the root); it is called at the start and in each `check`. One that ends
    with `/` is watched with all below it. An absolute path (a real one) names a folder outside the workspace: changes
    in it are reported as absolute paths, nothing above it is watched. A folder that is missing, unreadable or reached
    through a symlink below the root is not watched until that changes. Where the system has no watches left `kind` is
    None, and nothing is reported until it has some again.

    `news` gets reported paths and returns those that matter; the others are ignored. It is called in `gather`. Events
    below the folders `careful` always wait for the whole quiet period.

    `start`, `check`, `gather` and `stop` belong to one thread; `wake` may be called from any, and from a signal
    handler. Folders between the root and a watched one are watched too, only to notice when the latter appears or
    disappears. No event reports that the root itself was renamed: `check` detects it, so it should be called on every
    beat of the caller's timer.
    """

    def __init__(
        self,
        root: str,
        folders: Callable[[], Sequence[str]],
        *,
        news: Callable[[frozenset[str]], Collection[str]] = lambda paths: paths,
        careful: Sequence[str] = (),
    ) -> None:
        self.kind: str | None = None
        self._root = root
        self._folders = folders
        self._news = news
        self._careful = tuple(f"{folder}/" for folder in careful)
        # A SimpleQueue and no pipe: its put is reentrant, and it needs no descriptor when there is none left.
        self._bell: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._woken = False
        self._inbox = _Inbox(ring=lambda: self._bell.put(None))
        self._watches: _Watches | None = None
        self._retry_at: float | None = None  # None before the start

    def start(self) -> None:
        """Sets the watches; waits for folders that aren't there yet."""
        if self._retry_at is None:
            self._set_watches()

    def check(self) -> bool:
        """Looks after the watches: True when they were set again and the caller must treat everything as dirty.

        Costs one `lstat` per folder. Without watches it tries to get them about once a minute.
        """
        if self._retry_at is None:
            return False
        if self._watches is None:
            return time.monotonic() >= self._retry_at and self._set_watches()
        if self._watches.alive() and self._watches.survey == _survey(self._root, self._folders()):
            return False
        self._set_watches()
        return True

    def gather(self, quiet: float, longest: float, timeout: float | None, *, lead: float | None = None) -> Hint | None:
        """Blocks until something may have changed and it has been quiet for a while.

        `quiet` seconds must pass since the last event, but no more than `longest` since the first, and no more than
        `lead` where that one came after a second without any. None after `timeout` seconds without any event (None
        waits for ever), or at once after `wake`; what was gathered until then is kept for the next call. Without
        events, nothing runs.
        """
        give_up = None if timeout is None else time.monotonic() + timeout
        while not self._woken:
            self._inbox.sift(self._news)
            now = time.monotonic()
            until = self._inbox.due(quiet, longest, lead, self._careful)
            if until is not None:
                if now >= until:
                    hint, set_again = self._inbox.take()
                    if set_again and self._watches is not None:
                        # Not left to `check`: a folder deleted and made again often gets the same inode number.
                        self._set_watches()
                    return hint
            elif give_up is not None and now >= give_up:
                return None
            else:
                until = give_up
            with contextlib.suppress(queue.Empty):
                self._bell.get(timeout=None if until is None else max(0.0, until - time.monotonic()))
        self._woken = False
        return None

    def wake(self) -> None:
        """Makes the `gather` that runs now, or else the next one, return None at once; takes no lock."""
        if not self._woken:
            self._woken = True
            self._bell.put(None)

    def stop(self) -> None:
        """Lets go of all watches and joins their threads, within a second; harmless when there are none."""
        self._let_go()
        self.kind = self._retry_at = None
        self._inbox.take()

    def _set_watches(self) -> bool:
        """Replaces all watches; False when the system has none to give."""
        self._let_go()
        self._retry_at = time.monotonic() + RETRY_SECONDS
        try:
            self._watches = _Watches(_survey(self._root, self._folders()), self._inbox)
        except (OSError, RuntimeError, ImportError):  # an extension that cannot be opened for want of descriptors
            self.kind = None
            return False
        self.kind = "inotify" if sys.platform == "linux" else "fsevents"
        return True

    def _let_go(self) -> None:
        if self._watches is not None:
            self._watches.close()
            self._watches = None


class _Inbox:
    """Holds what the watching threads have reported and `gather` has not taken yet.

    `ring` is called when the first event arrives in an empty inbox, and then not again until it was emptied: the
    receiver sleeps through a burst.
    """

    def __init__(self, ring: Callable[[], None]) -> None:
        self._ring = ring
        self._lock = threading.Lock()
        self._before = -math.inf
        # When each path was heard first and last; None stands for everything.
        self._spans: dict[str | None, tuple[float, float]] = {}
        self._unasked: set[str] = set()
        self._set_again = False

    def add(self, paths: Iterable[str]) -> None:
        """Takes paths that may have changed; too many are everything."""
        with self._lock:
            self._hear([None] if None in self._spans else list(paths))
            if len(self._spans) > MOST_PATHS:
                self._spans = {None: self._whole_span()}

    def add_everything(self) -> None:
        """Takes that a watched folder came, went or changed: the watches themselves are in doubt."""
        with self._lock:
            self._set_again = True
            self._hear([None])

    def _hear(self, paths: Sequence[str | None]) -> None:
        now, empty = time.monotonic(), not self._spans
        for path in paths:
            self._spans[path] = (self._spans.get(path, (now,))[0], now)
        self._unasked.update(path for path in paths if path is not None)
        if empty:
            self._ring()

    def _whole_span(self) -> tuple[float, float]:
        return min(first for first, _ in self._spans.values()), max(last for _, last in self._spans.values())

    def sift(self, news: Callable[[frozenset[str]], Collection[str]]) -> None:
        """Drops paths that are no news, but for those that are heard again meanwhile."""
        with self._lock:
            asked = {path: self._spans[path] for path in self._unasked if path in self._spans}
            self._unasked.clear()
        if not asked or len(asked) > MOST_ASKED:
            return
        known = news(frozenset(asked))
        with self._lock:
            for path in asked.keys() - set(known):
                if self._spans.get(path) == asked[path]:
                    del self._spans[path]

    def due(self, quiet: float, longest: float, lead: float | None, careful: tuple[str, ...]) -> float | None:
        """Returns the monotonic time at which to take what is here; None when it is empty."""
        with self._lock:
            if not self._spans:
                return None
            first, last = self._whole_span()
            leads = lead is not None and first - self._before >= QUIET_BEFORE
            if leads and not any(path.startswith(careful) for path in self._spans if path is not None):
                longest = min(longest, lead or 0.0)
            return min(last + quiet, first + longest)

    def take(self) -> tuple[Hint, bool]:
        """Empties the inbox; returns what was heard, and whether watches must be set again."""
        with self._lock:
            hint = Hint(frozenset(path for path in self._spans if path is not None), None in self._spans)
            set_again, self._set_again = self._set_again, False
            if self._spans:
                self._before = self._whole_span()[1]
            self._spans, self._unasked = {}, set()
        return hint, set_again


class _Survey(NamedTuple):
    """What there is to be watched: equal surveys need no new watches.

    `base` is the root's real path, `wanted` the folders whose files are of interest, `deep` those with all
    below them, `found` these and all folders above them with their identity, parents first, None where
    nothing can be watched.
    """

    base: str
    wanted: frozenset[str]
    deep: frozenset[str]
    found: dict[str, Identity | None]


def _survey(root: str, folders: Sequence[str]) -> _Survey:
    base = os.path.realpath(root)
    found = {"": _identity(base)}
    deep = frozenset(folder.rstrip("/") for folder in folders if folder.endswith("/"))
    for folder in folders:
        if os.path.isabs(folder):
            found[folder] = _identity(folder)
            continue
        parent = ""
        for name in filter(None, folder.split("/")):
            path = f"{parent}/{name}" if parent else name
            if path not in found:
                # A path through a symlink would be watched at the place it leads to.
                found[path] = None if found[parent] is None else _identity(os.path.join(base, path))
            parent = path
    return _Survey(base, frozenset(folders) - {f"{folder}/" for folder in deep}, deep, found)


def _identity(path: str) -> Identity | None:
    try:
        status = os.lstat(path)
    except OSError:
        return None
    # watchdog passes over EACCES in silence, and the folder would look watched.
    if not stat.S_ISDIR(status.st_mode) or not os.access(path, os.R_OK | os.X_OK):
        return None
    return status.st_dev, status.st_ino


class _Watches:
    """watchdog's observer with one watch per folder, built whole and thrown away whole.

    It is never repaired: an observer keeps dead emitters and reuses them, a moved folder goes on being
    reported under its old path. Raises OSError or RuntimeError when the system has no watches, descriptors or
    threads left, or no events.
    """

    def __init__(self, survey: _Survey, inbox: _Inbox) -> None:
        from watchdog.observers import Observer

        if sys.platform not in ("linux", "darwin"):
            raise OSError("no change events here")
        self.survey = survey
        self._missed = False
        self._observer = Observer()
        try:
            self._observer.start()
            self._schedule(_Listener(survey, inbox))
        except (OSError, RuntimeError):
            self.close()
            raise

    def _schedule(self, listener: Any) -> None:
        from watchdog import events

        if self.survey.deep:
            # watchdog may see a new folder twice and warns of it, harmlessly: as an error it would end its thread.
            warnings.filterwarnings("ignore", "Callback with id", RuntimeWarning)
        # All kinds but opening and reading (we would wake ourselves) and "something in this folder changed".
        # FileModifiedEvent must stay: watchdog 7 has no mask for the attribute events of its own; 6 lacks them.
        names = (
            "FileCreatedEvent FileModifiedEvent FileClosedEvent FileMovedEvent FileDeletedEvent FileAttribEvent "
            "DirCreatedEvent DirMovedEvent DirDeletedEvent DirAttribEvent"
        )
        accepted = [getattr(events, name) for name in names.split() if hasattr(events, name)]
        for folder, identity in self.survey.found.items():
            if identity is None:
                continue
            path = os.path.join(self.survey.base, folder) if folder else self.survey.base
            try:
                deep = folder in self.survey.deep
                self._observer.schedule(listener, path, recursive=deep, event_filter=accepted)
            except (FileNotFoundError, NotADirectoryError):
                self._missed = True

    def alive(self) -> bool:
        """Returns whether the library's threads still run and every folder of the survey got its watch."""
        threads = (self._observer, *self._observer.emitters)
        return not self._missed and all(thread.is_alive() for thread in threads)

    def close(self) -> None:
        self._observer.stop()
        if self._observer.is_alive():
            self._observer.join(JOIN_SECONDS)


class _Listener:
    """Sorts events into the inbox, in threads of watchdog: an exception would end them, and nothing here can raise."""

    def __init__(self, survey: _Survey, inbox: _Inbox) -> None:
        self._survey, self._inbox = survey, inbox
        self._inside = survey.base.rstrip("/") + "/"
        self._below = tuple(f"{folder}/" for folder in survey.deep)

    def dispatch(self, event: Any) -> None:
        paths = []
        for path in map(os.fsdecode, (event.src_path, event.dest_path)):
            if path == self._survey.base:
                relative = ""
            elif path.startswith(self._inside):
                relative = path[len(self._inside) :]
            elif os.path.isabs(path):
                relative = path
            else:
                continue  # most events have no destination
            if relative in self._survey.found:
                self._inbox.add_everything()
            elif relative.startswith(self._below) or (
                not event.is_directory and relative.rpartition("/")[0] in self._survey.wanted
            ):
                paths.append(relative)
        if paths:
            self._inbox.add(paths)
