"""Rewrites a git history: first finds what has to change, then makes new commits, trees and tags by ids."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from signet_sync.history.git.objects import (
    BLOB,
    COMMIT,
    FOLDER_MODE,
    REPOSITORY_MODE,
    TAG,
    TREE,
    NamedEntry,
    ObjectStore,
    composed,
    entries,
    fields,
    ids_of,
    joined,
    split_message,
    unsigned_message,
)

# Adds an object of a kind, or only computes its id, which it returns.
Add = Callable[[int, bytes], bytes]


class RewriteRules(Protocol):
    """Decides what is removed."""

    def file(self, path: str, raw: bytes) -> bytes | None:
        """Returns a file's next bytes (perhaps the same), or None if the file is removed."""

    def message(self, raw: bytes) -> bytes:
        """Returns the next message of a commit or tag."""


@dataclass(slots=True)
class RewriteDecisions:
    """What has to change, by ids and paths; contains no word of what is removed.

    `files`: by path and blob the next blob, or None; `messages`: by commit or tag the next message.
    """

    files: dict[str, dict[bytes, bytes | None]] = field(default_factory=dict)
    messages: dict[bytes, bytes] = field(default_factory=dict)

    def add(self, other: RewriteDecisions) -> None:
        """Adds those of another scan."""
        for path, versions in other.files.items():
            self.files.setdefault(path, {}).update(versions)
        self.messages.update(other.messages)

    @property
    def gone(self) -> frozenset[str]:
        """Returns the paths whose known versions are all removed."""
        return frozenset(path for path, versions in self.files.items() if not any(versions.values()))


class HistoryScan:
    """Passes every message, and every version of every file, to a judge once."""

    def __init__(self, store: ObjectStore, rules: RewriteRules, add: Add) -> None:
        self.rulings = RewriteDecisions()
        self._store, self._rules, self._add = store, rules, add
        self._seen: set[bytes] = set()
        self._trees: set[tuple[str, bytes]] = set()
        self._known: dict[str, set[NamedEntry]] = defaultdict(set)

    def at(self, tips: Iterable[bytes], but: Iterable[bytes] = ()) -> None:
        """Scans all that some commits, tags, trees and blobs reach, except some commits and those before them."""
        self._seen.update(but)
        waiting = list(tips)
        while waiting:
            oid = waiting.pop()
            if oid in self._seen:
                continue
            self._seen.add(oid)
            kind, raw = self._store.read(oid)
            if kind == TREE:
                self._tree("", oid)
            elif kind == BLOB:
                self.file("", oid)
            else:
                head, message = split_message(raw)
                text = self._rules.message(message)
                if text != message:
                    self.rulings.messages[oid] = text
                if kind == COMMIT:
                    self._tree("", ids_of(head, b"tree")[0])
                waiting.extend(ids_of(head, b"parent" if kind == COMMIT else b"object"))

    def _tree(self, folder: str, oid: bytes) -> None:
        if (folder, oid) in self._trees:
            return
        self._trees.add((folder, oid))
        fresh = set(entries(self._store.read(oid)[1])) - self._known[folder]
        self._known[folder] |= fresh
        for mode, name, inner in fresh:
            path = f"{folder}{os.fsdecode(name)}"
            if mode == FOLDER_MODE:
                self._tree(f"{path}/", inner)
            elif mode != REPOSITORY_MODE:
                self.file(path, inner)

    def file(self, path: str, oid: bytes) -> None:
        """Scans one version of a file."""
        if oid in self.rulings.files.get(path, ()):
            return
        raw = self._store.read(oid)[1]
        left = self._rules.file(path, raw)
        if left is None:
            self.rulings.files.setdefault(path, {})[oid] = None
        elif left != raw:
            self.rulings.files.setdefault(path, {})[oid] = self._add(BLOB, left)


class Rewriter:
    """Makes new objects according to rulings. `commits` maps every commit seen to its replacement."""

    def __init__(self, store: ObjectStore, rulings: RewriteDecisions, add: Add) -> None:
        self._store, self._rulings, self._add = store, rulings, add
        self._gone = rulings.gone
        self._below: dict[str, set[bytes]] = defaultdict(set)
        self._trees: dict[tuple[str, bytes], bytes | None] = {}
        self._loose: dict[bytes, bytes | None] = rulings.files.get("", {})
        self.commits: dict[bytes, bytes] = {}
        for path in rulings.files:
            while path:
                path, _, name = path.rpartition("/")
                self._below[f"{path}/" if path else ""].add(os.fsencode(name))

    def of(self, oid: bytes) -> bytes | None:
        """Returns the replacement of an object that a ref or tag names; None if it is removed."""
        kind, raw = self._store.read(oid)
        if kind == COMMIT:
            return self._commit(oid)
        if kind == TAG:
            return self._tag(oid, raw)
        if kind == TREE:
            return self._tree("", oid)
        return self._loose.get(oid, oid)

    @property
    def rewritten(self) -> int:
        """Returns how many commits changed."""
        return sum(old != new for old, new in self.commits.items())

    def file(self, path: str, oid: bytes) -> bytes | None:
        """Returns the replacement of one version of a file; None if it is removed."""
        if path in self._gone:
            return None
        return self._rulings.files.get(path, {}).get(oid, oid)

    def _commit(self, tip: bytes) -> bytes:
        waiting = [tip]
        while waiting:
            oid = waiting[-1]
            if oid in self.commits:
                waiting.pop()
                continue
            raw = self._store.read(oid)[1]
            head, message = split_message(raw)
            before = [parent for parent in ids_of(head, b"parent") if parent not in self.commits]
            if before:
                waiting.extend(before)
                continue
            self.commits[oid] = self._new_commit(oid, head, message)
            waiting.pop()
        return self.commits[tip]

    def _new_commit(self, oid: bytes, head: bytes, message: bytes) -> bytes:
        old = ids_of(head, b"tree")[0]
        tree = self._tree("", old)
        assert tree is not None, "the tree of a commit stays, be it empty"
        parents = {parent: self.commits[parent] for parent in ids_of(head, b"parent")}
        text = self._rulings.messages.get(oid, message)
        if tree == old and text == message and all(before == after for before, after in parents.items()):
            return oid
        return self._add(COMMIT, composed(_with_ids(head, {old: tree, **parents}), text))

    def _tag(self, oid: bytes, raw: bytes) -> bytes | None:
        head, message = split_message(raw)
        old = ids_of(head, b"object")[0]
        target = self.of(old)
        text = self._rulings.messages.get(oid, message)
        if target is None or (target == old and text == message):
            return oid if target else None
        return self._add(TAG, composed(_with_ids(head, {old: target}), unsigned_message(text)))

    def _tree(self, folder: str, oid: bytes) -> bytes | None:
        names = self._below.get(folder)
        if names is None:
            return oid
        if (folder, oid) not in self._trees:
            self._trees[folder, oid] = self._new_tree(folder, oid, names)
        return self._trees[folder, oid]

    def _new_tree(self, folder: str, oid: bytes, names: set[bytes]) -> bytes | None:
        before = entries(self._store.read(oid)[1])
        after: list[NamedEntry] = []
        for mode, name, inner in before:
            found: bytes | None = inner
            if name in names and mode != REPOSITORY_MODE:
                path = f"{folder}{os.fsdecode(name)}"
                found = self._tree(f"{path}/", inner) if mode == FOLDER_MODE else self.file(path, inner)
            if found is not None:
                after.append((mode, name, found))
        if after == before:
            return oid
        return self._add(TREE, joined(after)) if after or not folder else None


def _with_ids(head: bytes, ids: Mapping[bytes, bytes]) -> list[bytes]:
    """Returns the fields of a commit or tag with other ids in them."""
    named = {old.hex().encode(): new.hex().encode() for old, new in ids.items()}
    found = []
    for one in fields(head):
        name, _, value = one.partition(b" ")
        found.append(b"%b %b" % (name, named[value]) if name in (b"tree", b"parent", b"object") else one)
    return found
