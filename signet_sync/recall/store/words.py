"""Finds the files of sessions with every word of a text, printed by tools too, or that tell of a deed, unranked."""

import json
import os
from bisect import bisect_right
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from signet_sync.recall.query import read
from signet_sync.recall.snippets import snippet
from signet_sync.recall.store.rows import Period, find_printed, firsts, passages_with, ranges
from signet_sync.storage.database.connection import Database
from signet_sync.sync.store.texts import text_at

if TYPE_CHECKING:
    from signet_sync.digest.deeds import Deeds

_ABBREVIATED = 7  # characters to which git shortens the name of a commit, or more


class FoundFile(NamedTuple):
    """A file that contains every word, with a piece of it; `at_us` is the time that it is of."""

    path: str
    kind: str
    session_token: str
    session_id: str
    at_us: int
    snippet: str


def find_with_every_word(
    database: Database, agent_id: str, text: str, period: Period | None = None, *, begun: bool = False
) -> list[int] | None:
    """Returns the first passages of an agent's texts with every word, the newest first; None without a word.

    The last word may be a beginning if it is `begun`.
    """
    terms = list(read(text, parts=False).terms)
    if not terms:
        return None
    if begun:
        terms[-1] = terms[-1]._replace(prefix=terms[-1].forms[0].rpartition(" ")[2])
    within = ranges(database, agent_id, period, private=True, statements=False)
    begins = firsts(database, within)
    found = set(begins)
    for term in terms:
        places = passages_with(database, [term], within) + find_printed(database, term, within)
        found &= {begins[bisect_right(begins, place) - 1] for place in places if begins}
    return sorted(found, reverse=True)


def files_with(
    database: Database, text: str, *, agent_id: str, period: Period | None = None, limit: int = 10
) -> list[FoundFile]:
    """Returns an agent's files with every word of a text, the newest first; accepts any text."""
    found = find_with_every_word(database, agent_id, text, period)
    return list(islice(_list_files(database, found, period, text), limit))


def transcripts_that(
    database: Database, agent_id: str, *, commit: str, file: str, period: Period | None, limit: int
) -> list[FoundFile]:
    """Returns the transcripts of an agent's sessions that made a commit or changed a file, the newest first."""
    from signet_sync.digest.deeds import deeds_of  # not needed to look for words
    from signet_sync.digest.turns import turns_of  # likewise

    file = os.path.normpath(file) if file else ""
    asked = commit[:_ABBREVIATED] if commit else os.path.basename(file)
    found = find_with_every_word(database, agent_id, asked, period, begun=bool(commit))
    told = (
        one._replace(snippet=piece)
        for one in _list_files(database, found, period)
        if one.kind == "transcript"
        for piece in islice(_list_deeds(deeds_of(turns_of(text_at(database, one.path))), commit.lower(), file), 1)
    )
    return list(islice(told, limit))


def _list_files(
    database: Database, passages: list[int] | None, period: Period | None, text: str = ""
) -> Iterator[FoundFile]:
    """Yields the files of some first passages, with a piece around the words of a text."""
    rows = database.execute(
        "select a.source_path, a.source_kind, a.session_token, a.session_id, a.membership_us,"
        " coalesce(a.memory_sentence, '') from json_each(?) j cross join texts t on t.first = j.value"
        " join memory_artifacts a on a.id = t.artifact",
        (json.dumps(passages or []),),
    )
    for path, kind, token, session_id, at_us, sentence in rows:
        if period is None or period.holds(at_us):
            words = snippet(text_at(database, path), sentence, text, spoken=kind == "transcript") if text else ""
            yield FoundFile(path, kind, token, session_id, at_us, words)


def _list_deeds(deeds: "Deeds", commit: str, file: str) -> Iterator[str]:
    """Yields what deeds are of a commit, by its name or the beginning of it, or of a file, by the end of its path."""
    for one in deeds.commits if len(commit) >= _ABBREVIATED else ():
        if one.name and (one.name.startswith(commit) or commit.startswith(one.name)):
            yield f"{one.name} {one.subject}"
    for path, times in deeds.files.items() if file else ():
        if f"/{path}".endswith(f"/{file.lstrip('/')}") or file.endswith(f"/{path.lstrip('/')}"):
            yield f"{path}: {times} {'edit' if times == 1 else 'edits'}"
