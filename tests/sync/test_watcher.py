"""The watcher tells of every change in its folders, wakes for nothing else, and says when it can't know."""

from __future__ import annotations

import errno
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from signet_sync.sync import watcher as sync_watcher
from signet_sync.sync.watcher import Hint, Watcher

LINUX = sys.platform == "linux"
NATIVE = "inotify" if LINUX else "fsevents"
DEADLINE = 60.0
FOLDERS = ("", "memory", "memory/tombstones", "agents/researcher")

linux_only = pytest.mark.skipif(not LINUX, reason="inotify is Linux's")

Open = Callable[..., Watcher]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    vault = tmp_path / "vault"
    (vault / "memory" / "tombstones").mkdir(parents=True)
    return vault


@pytest.fixture
def watch(root: Path) -> Iterator[Open]:
    """Starts watchers on the vault; all are stopped at the end."""
    opened: list[Watcher] = []

    def start(folders: Sequence[str] = FOLDERS, *, at: Path | None = None, **settings: object) -> Watcher:
        watcher = Watcher(str(at or root), lambda: folders, **settings)  # type: ignore[arg-type]
        opened.append(watcher)
        watcher.start()
        return watcher

    yield start
    for watcher in opened:
        watcher.stop()


def heard(watcher: Watcher, enough: Callable[[Hint], bool]) -> Hint:
    """All hints until there was enough of them; fails after a deadline."""
    total = Hint(frozenset(), everything=False)
    end = time.monotonic() + DEADLINE
    while time.monotonic() < end:
        total |= watcher.gather(0.02, 0.2, 0.2) or total
        if enough(total):
            return total
    raise AssertionError(f"not enough within {DEADLINE} s: {len(total.paths)} paths, {total.everything=}")


def everything(hint: Hint) -> bool:
    return hint.everything


def having(*paths: str) -> Callable[[Hint], bool]:
    return lambda hint: hint.paths.issuperset(paths)


def only_hears(watcher: Watcher, marker: Path, path: str) -> None:
    """Whatever was done before made no event: the change of `marker` is the first thing to be heard."""
    marker.write_text("here")
    assert heard(watcher, having(path)) == Hint(frozenset({path}), everything=False)


# ── what is heard ──


def append(file: Path) -> None:
    with file.open("a") as stream:
        stream.write("more")


# What is done to a vault that holds memory/a.md, and the paths that are heard.
CHANGES: dict[str, tuple[Callable[[Path], object], set[str]]] = {
    "new in the root": (lambda root: (root / "MEMORY.md").write_text("x"), {"MEMORY.md"}),
    "new in memory": (lambda root: (root / "memory/b.md").write_text("x"), {"memory/b.md"}),
    "new among tombstones": (
        lambda root: (root / "memory/tombstones/x.md").write_text("x"),
        {"memory/tombstones/x.md"},
    ),
    "in place": (lambda root: (root / "memory/a.md").write_text("newer"), {"memory/a.md"}),
    "appended": (lambda root: append(root / "memory/a.md"), {"memory/a.md"}),
    "deleted": (lambda root: (root / "memory/a.md").unlink(), {"memory/a.md"}),
    "chmod": (lambda root: (root / "memory/a.md").chmod(0o400), {"memory/a.md"}),
    "moved out": (lambda root: (root / "memory/a.md").rename(root.parent / "a.md"), {"memory/a.md"}),
    "renamed": (lambda root: (root / "memory/a.md").rename(root / "memory/b.md"), {"memory/a.md", "memory/b.md"}),
}
if LINUX:  # bytes that are no UTF-8
    CHANGES["an odd name"] = (
        lambda root: Path(os.fsdecode(os.fsencode(root) + b"/memory/\xff.md")).touch(),
        {"memory/\udcff.md"},
    )


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_of_a_file_is_heard_under_its_path(root: Path, watch: Open, change: str) -> None:
    (root / "memory" / "a.md").write_text("old")
    watcher = watch()
    assert watcher.kind == NATIVE
    act, paths = CHANGES[change]
    act(root)
    assert heard(watcher, having(*paths)) == Hint(frozenset(paths), everything=False)


def test_more_paths_than_are_worth_keeping_are_everything(
    root: Path, watch: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sync_watcher, "MOST_PATHS", 100)
    watcher = watch()
    for n in range(101):
        (root / "memory" / f"{n}.md").touch()
    assert watcher.gather(2.0, 600.0, None) == Hint(frozenset(), everything=True)
    only_hears(watcher, root / "memory" / "later.md", "memory/later.md")


# ── what is not heard ──


def test_own_reads_wake_nobody(root: Path, watch: Open) -> None:
    for n in range(50):
        (root / "memory" / f"{n}.md").write_text("x")
    watcher = watch()
    for file in (root / "memory").glob("*.md"):
        file.read_text()
    list(root.iterdir())
    only_hears(watcher, root / "memory" / "last.md", "memory/last.md")


def test_folders_that_are_not_watched_are_not_heard(root: Path, watch: Open) -> None:
    (root / "memory" / "harness").mkdir()
    (root / "agents").mkdir()
    watcher = watch(("memory",))
    (root / "memory" / "harness" / "x.jsonl").write_text("x")
    (root / "memory" / "x.md").mkdir()
    (root / "memory" / "harness").rename(root / "memory" / "other")
    (root / "MEMORY.md").write_text("the root is watched for its folders only")
    (root / "agents" / "researcher").mkdir()
    only_hears(watcher, root / "memory" / "last.md", "memory/last.md")


def test_a_folder_that_is_a_symlink_or_lies_behind_one_is_not_watched(root: Path, watch: Open) -> None:
    elsewhere = root.parent / "elsewhere"
    (elsewhere / "researcher").mkdir(parents=True)
    (root / "agents").symlink_to(elsewhere)
    (root / "ledger").symlink_to(elsewhere)
    watcher = watch((*FOLDERS, "ledger"))
    (elsewhere / "x.md").write_text("x")
    (elsewhere / "researcher" / "MEMORY.md").write_text("x")
    only_hears(watcher, root / "memory" / "last.md", "memory/last.md")


def test_a_root_that_is_a_symlink_is_watched_where_it_leads(root: Path, watch: Open) -> None:
    alias = root.parent / "alias"
    alias.symlink_to(root)
    watcher = watch(at=alias)
    only_hears(watcher, root / "memory" / "a.md", "memory/a.md")
    assert watcher.check() is False


# ── folders that come and go ──


def test_a_folder_that_appears_is_told_and_then_watched(root: Path, watch: Open) -> None:
    watcher = watch()
    (root / "agents" / "researcher").mkdir(parents=True)
    heard(watcher, everything)
    while watcher.gather(0.02, 0.2, 1.0):
        pass
    only_hears(watcher, root / "agents" / "researcher" / "MEMORY.md", "agents/researcher/MEMORY.md")


def test_a_watched_folder_deleted_and_made_again_at_once_is_watched_again(root: Path, watch: Open) -> None:
    """The new folder often gets the inode number of the old one."""
    watcher = watch()
    for n in range(5):
        shutil.rmtree(root / "memory")
        (root / "memory").mkdir()
        heard(watcher, everything)
        while watcher.gather(0.02, 0.2, 0.5):
            pass
        (root / "memory" / f"{n}.md").write_text("x")
        heard(watcher, having(f"memory/{n}.md"))


def test_folders_are_asked_for_again_at_each_check(root: Path, watch: Open) -> None:
    folders = ["memory"]
    (root / "ledger").mkdir()
    watcher = watch(folders)
    assert watcher.check() is False
    folders.append("ledger")
    assert watcher.check() is True
    only_hears(watcher, root / "ledger" / "a.md", "ledger/a.md")
    folders.remove("memory")
    assert watcher.check() is True
    assert watcher.check() is False
    (root / "memory" / "a.md").write_text("x")
    only_hears(watcher, root / "ledger" / "b.md", "ledger/b.md")


def test_a_missing_root_is_waited_for(root: Path, watch: Open) -> None:
    later = root.parent / "later"
    watcher = watch(at=later)
    assert watcher.kind == NATIVE
    assert watcher.check() is False
    (later / "memory").mkdir(parents=True)
    assert watcher.check() is True
    assert watcher.check() is False
    only_hears(watcher, later / "memory" / "a.md", "memory/a.md")


def test_the_death_of_a_thread_of_the_library_is_noticed(root: Path, watch: Open) -> None:
    watcher = watch()
    for number, which in enumerate(("observer", "emitter")):
        assert watcher._watches is not None
        observer = watcher._watches._observer
        thread = observer if which == "observer" else next(iter(observer.emitters))
        thread.stop()
        thread.join(DEADLINE)
        assert watcher.check() is True, thread
        assert watcher.check() is False
        only_hears(watcher, root / "memory" / f"{number}.md", f"memory/{number}.md")


# ── no watches ──


def exhausted(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, "inotify watch limit reached")


def test_without_watches_left_nothing_is_heard_until_there_are(
    root: Path, watch: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    from watchdog.observers import Observer

    monkeypatch.setattr(sync_watcher, "RETRY_SECONDS", 0.0)
    threads = threading.active_count()
    with monkeypatch.context() as scarce:
        scarce.setattr(Observer, "schedule", exhausted)
        watcher = watch()
        assert watcher.gather(0.1, 1.0, 0.01) is None
        assert watcher.check() is False
        assert (watcher.kind, threading.active_count()) == (None, threads)
    assert watcher.check() is True
    assert watcher.kind == NATIVE
    only_hears(watcher, root / "memory" / "a.md", "memory/a.md")


# ── time ──


def test_what_was_heard_is_due_after_a_quiet_but_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the machine's clock says: this one goes on when it is told to."""
    now = [100.0]
    monkeypatch.setattr(sync_watcher, "time", SimpleNamespace(monotonic=lambda: now[0]))
    inbox = sync_watcher._Inbox(ring=lambda: None)

    def due(*paths: str, at: float, lead: float | None = None) -> float | None:
        now[0] = at
        if paths:
            inbox.add(paths)
        return inbox.due(2.0, 5.0, lead, ("careful/",))

    assert due(at=100.0) is None
    assert due("a.md", at=100.0, lead=0.1) == 100.1, "the first after a quiet"
    assert due("b.md", at=101.0) == 103.0 and due("c.md", at=104.0) == 105.0, "no more than five seconds in all"
    inbox.take()
    assert due("a.md", at=104.5, lead=0.1) == 106.5, "in the midst of others it may be one of many"
    inbox.take()
    assert due("careful/a.md", at=200.0, lead=0.1) == 202.0, "what takes a session away is never hurried"


def test_wake_before_gathering_counts_once_and_loses_nothing(root: Path, watch: Open) -> None:
    watcher = watch()
    (root / "memory" / "a.md").write_text("x")
    threading.Timer(0.3, watcher.wake).start()
    assert watcher.gather(30.0, 60.0, None) is None
    watcher.wake()
    watcher.wake()
    assert watcher.gather(30.0, 60.0, None) is None
    assert watcher.gather(0.0, 0.0, None) == Hint(frozenset({"memory/a.md"}), everything=False)


# ── the end ──


def test_stop_joins_the_threads_and_may_be_repeated(root: Path, watch: Open) -> None:
    before = set(threading.enumerate())
    watcher = watch()
    assert set(threading.enumerate()) > before
    (root / "memory" / "a.md").write_text("x")
    watcher.stop()
    assert set(threading.enumerate()) == before
    watcher.stop()
    assert (watcher.kind, watcher.check()) == (None, False)


# ── halves of renames ──


@linux_only
def test_a_folder_deep_below_that_moves_goes_on_being_watched(root: Path, watch: Open) -> None:
    (root / "entities" / "parts" / "old" / "below").mkdir(parents=True)
    watcher = watch((*FOLDERS, "entities/"))
    for number in range(10):
        names = ("old", "new") if number % 2 == 0 else ("new", "old")
        before, after = (root / "entities" / "parts" / name for name in names)
        before.rename(after)
        heard(watcher, having(f"entities/parts/{names[1]}"))
        (after / "below" / f"{number}.md").write_text("here")
        heard(watcher, having(f"entities/parts/{names[1]}/below/{number}.md"))


# ── what is news, and what comes first ──


def test_what_is_no_news_is_not_told_and_puts_off_nothing(root: Path, watch: Open) -> None:
    asked: list[frozenset[str]] = []

    def news(paths: frozenset[str]) -> frozenset[str]:
        asked.append(paths)
        return paths - {"MEMORY.md"}

    watcher = watch(news=news)
    (root / "MEMORY.md").write_text("ours")
    while frozenset({"MEMORY.md"}) not in asked:
        assert watcher.gather(0.05, 1.0, 0.1) is None
    ended = threading.Event()

    def write() -> None:
        (root / "memory" / "a.md").write_text("theirs")
        for _ in range(2_000):
            (root / "MEMORY.md").write_text("ours again")
            if ended.wait(0.05):
                return

    writing = threading.Thread(target=write)
    writing.start()
    try:
        assert watcher.gather(0.5, 600.0, None) == Hint(frozenset({"memory/a.md"}), everything=False)
        assert writing.is_alive()
    finally:
        ended.set()
        writing.join()
