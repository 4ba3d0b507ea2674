"""Has marks and pins follow `memory/words/`, and takes out of it what was removed."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import nullcontext

from signet_sync.formats.artifact import Tombstone
from signet_sync.formats.ids import token_of
from signet_sync.formats.statement import Word, newest_words
from signet_sync.graph.stage import OUTCOME
from signet_sync.statements import store as statements_store
from signet_sync.statements import word_files
from signet_sync.sync import deriving
from signet_sync.sync.index_records import Source
from signet_sync.sync.planner import Tombstones
from signet_sync.sync.store import tombstones as tombstones_store
from signet_sync.sync.workspace import Workspace

_NAME = "words"  # of what was read last, in the table derivers


def follow(workspace: Workspace) -> set[str]:
    """Makes rows follow the files, if these changed; returns the agents whose pins moved. What was removed stays away.

    Raises `OSError`, `WorkspaceError`.
    """
    database = workspace.database
    seen = word_files.fingerprint(workspace.vault)
    if seen == (database.value("select version from derivers where name = ?", (_NAME,)) or ""):
        return set()
    removed = Tombstones(tombstones_store.list_mirrored(database))
    said = word_files.read_words(workspace.vault)
    # While a removed session has rows, its removal has yet to say the same of what other sessions state, too.
    gone = {word for word in said if is_covered(word, removed) and not statements_store.has_thread(database, word)}
    kept = [word for word in said if word not in gone]
    if gone and not workspace.touch_nothing:
        word_files.erase(workspace.root, gone.__contains__)
        seen = "erased"  # the next look reads them again
    with nullcontext() if database.connection.in_transaction else database.transaction(durable=True):
        threads, agents = statements_store.follow_words(database, newest_words(kept).values())
        deriving.queue(database, workspace.pipeline, {Source(OUTCOME, *thread) for thread in threads})
        database.execute("insert or replace into derivers(name, version) values(?, ?)", (_NAME, seen))
    return agents


def say(workspace: Workspace, said: Sequence[Word]) -> None:
    """Writes words, but for what was said last and still counts; rows follow. Raises `OSError`, `WorkspaceError`."""
    follow(workspace)  # what a command that was killed has written
    word_files.add(workspace, [word for word in said if not statements_store.counts(workspace.database, word)])
    follow(workspace)


def is_covered(word: Word, removed: Tombstones) -> bool:
    """Returns whether a word names a removed session."""
    tokens = {word.token, token_of(word.agent_id, word.session_id)} if word.token else set()
    return any(removed.cover(token, word.agent_id, word.session_id) for token in tokens)


def about_removed(workspace: Workspace, removed: Sequence[Tombstone]) -> dict[Word, set[str]]:
    """Returns what was said last of statements of removed sessions, each with its threads, while rows tell them."""
    covering = Tombstones(removed)
    last = (
        word for word in newest_words(word_files.read_words(workspace.vault)).values() if is_covered(word, covering)
    )
    return {
        word: statements_store.threads_of(workspace.database, *word[:2], word.token, word.session_id) for word in last
    }


def forget(workspace: Workspace, about: dict[Word, set[str]], ids: Collection[tuple[str, str]]) -> None:
    """Deletes the words of removed sessions, and those about some ids (agent, id), once derived rows are up to date.

    What other sessions state, too, stays as it was said of it. Raises `OSError`, `WorkspaceError`.
    """
    if workspace.touch_nothing:
        return
    removed = Tombstones(tombstones_store.list_mirrored(workspace.database))
    kept = [word for word in word_files.read_words(workspace.vault) if not is_covered(word, removed)]
    said = {key: word.at for key, word in newest_words(kept).items()}
    others = [
        other
        for word, threads in about.items()
        for other in statements_store.others_meant(workspace.database, word, threads)
        # What was said of them since counts, and so does what a removal that was killed has written.
        if not is_covered(other, removed) and said.get((other.agent_id, other.id, other.is_pin), "") < other.at
    ]
    word_files.add(workspace, others)
    word_files.erase(workspace.root, lambda word: (word.agent_id, word.id) in ids or is_covered(word, removed))
    follow(workspace)
