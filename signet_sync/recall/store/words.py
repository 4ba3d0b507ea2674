"""Finds the files of sessions that contain every word of a text, printed by tools too; ranks nothing by meaning."""

import json
from bisect import bisect_right
from collections.abc import Callable
from typing import NamedTuple

from signet_sync.recall.query import read
from signet_sync.recall.snippets import snippet
from signet_sync.recall.store.rows import Period, find_printed, firsts, passages_with, ranges
from signet_sync.storage.database.connection import Database
from signet_sync.sync.store.bodies import text_at


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
    database: Database,
    text: str,
    *,
    agent_id: str,
    period: Period | None = None,
    limit: int = 10,
    begun: bool = False,
    told: Callable[[str], str] | None = None,
) -> list[FoundFile]:
    """Returns an agent's files with every word of a text, the newest first; accepts any text.

    The last word may be a beginning if it is `begun`. `told` returns the piece that is wanted of a transcript, by its
    path; those without one are left out, and all other files.
    """
    found = find_with_every_word(database, agent_id, text, period, begun=begun) or []
    rows = database.execute(
        "select a.source_path, a.source_kind, a.session_token, a.session_id, a.membership_us,"
        " coalesce(a.memory_sentence, '') from json_each(?) j cross join texts t on t.first = j.value"
        " join memory_artifacts a on a.id = t.artifact",
        (json.dumps(found),),
    )
    files: list[FoundFile] = []
    for path, kind, token, session_id, at_us, sentence in rows:
        if period is not None and not period.holds(at_us):
            continue
        if told is None:
            piece = snippet(text_at(database, path), sentence, text, spoken=kind == "transcript")
        elif kind != "transcript" or not (piece := told(path)):
            continue
        files.append(FoundFile(path, kind, token, session_id, at_us, piece))
        if len(files) == limit:
            break
    return files
