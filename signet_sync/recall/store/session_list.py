"""Lists sessions, newest first, filtered, a page at a time; and files with every word of a text, unranked.

Imports no slow module.
"""

import json
import os
from bisect import bisect_right
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from signet_sync.recall.query import read, snippet
from signet_sync.recall.store.rows import Within, find_printed, firsts, passages_with, ranges
from signet_sync.storage.database.connection import Database
from signet_sync.sync.store.texts import text_at

NONE = "-"  # as a project: sessions that have none
_ABBREVIATED = 7  # characters to which git shortens the name of a commit, or more


class SessionEntry(NamedTuple):
    """One session of the list: a row of the session log, with data of its newest artifact and its files."""

    session_token: str
    session_id: str
    membership_us: int
    day: str
    project: str | None
    sentence: str
    path: str
    session_key: str | None
    harness: str | None
    violations: int


# ── the list ──

_VIOLATIONS = """(select count(*) from seals s join violations v on v.path = s.path where s.agent_id = p.agent_id
    and s.session_token = p.session_token and s.session_id = p.session_id)"""
_OF_PROJECT = """exists(select 1 from session_projects w where w.agent_id = l.agent_id
    and w.session_token = l.session_token and w.session_id = l.session_id and (w.identity = :project
    or w.root = :project or w.folder = :project or substr(w.identity, -length(:ending)) = :ending))"""


def page(
    database: Database,
    agent_id: str,
    *,
    project: str | None = None,
    since_us: int | None = None,
    until_us: int | None = None,
    offset: int = 0,
    limit: int,
) -> tuple[list[SessionEntry], bool]:
    """Returns the newest sessions of an agent, but for the first `offset`, and whether older ones follow.

    They are of a project and a time if these are given; `until_us` itself is excluded.
    """
    where = ["l.agent_id = :agent", "l.membership_us >= ifnull(:since, l.membership_us)"]
    where.append("l.membership_us < ifnull(:until, l.membership_us + 1)")
    if project is not None:
        where.append("l.project is null" if project == NONE else _OF_PROJECT)
    bound = {
        "agent": agent_id, "since": since_us, "until": until_us, "limit": limit + 1, "project": project,
        "ending": f"/{project}", "offset": offset,
    }  # fmt: skip
    # Violations are looked up for the sessions of this page only.
    sql = f"""select p.session_token, p.session_id, p.membership_us, p.day, p.project, p.sentence, p.path,
            p.session_key, p.harness, {_VIOLATIONS}
        from (select l.*, a.session_key, a.harness from ledger_rows l
            cross join memory_artifacts a on a.source_path = l.path where {" and ".join(where)}
            order by l.membership_us desc, l.session_token desc, l.session_id desc limit :limit offset :offset) p
        order by p.membership_us desc, p.session_token desc, p.session_id desc"""
    entries = [SessionEntry(*row) for row in database.execute(sql, bound)]
    return entries[:limit], len(entries) > limit


# ── files with words, or that tell of a deed ──

# The artifacts of texts by their first passages.
_OF_PASSAGES = "json_each(?) j cross join texts t on t.first = j.value join memory_artifacts a on a.id = t.artifact"


class FoundFile(NamedTuple):
    """A file that contains every word, with a piece of it; `at_us` is the time that it is of."""

    path: str
    kind: str
    session_token: str
    session_id: str
    at_us: int
    snippet: str


def _find_with_every_word(database: Database, within: Within, text: str, *, begun: bool = False) -> list[int] | None:
    """Returns the first passages of texts with every word, the newest first; None without a word.

    The last word may be a beginning if it is `begun`.
    """
    terms = list(read(text, parts=False).terms)
    if not terms:
        return None
    if begun:
        terms[-1] = terms[-1]._replace(prefix=terms[-1].forms[0].rpartition(" ")[2])
    searched = ranges(database, within)
    begins = firsts(database, searched)
    wanted = [passages_with(database, [term], searched) + find_printed(database, term, searched) for term in terms]
    if within.project is not None:
        wanted.append(passages_with(database, [], searched, project=within.project))
    found = set(begins)
    for places in wanted:
        found &= {begins[bisect_right(begins, place) - 1] for place in places if begins}
    return sorted(found, reverse=True)


def files_with(database: Database, text: str, within: Within, *, limit: int = 10) -> list[FoundFile]:
    """Returns the files with every word of a text, the newest first; accepts any text."""
    found = _find_with_every_word(database, within, text)
    return list(islice(_list_files(database, found, within, text), limit))


def find_transcripts(database: Database, within: Within, *, commit: str, file: str, limit: int) -> list[FoundFile]:
    """Returns the transcripts of sessions that made a commit or changed a file, the newest first.

    A commit is given by its name or the beginning of it, a file by its path or the end of one.
    """
    from signet_sync.digest.deeds import deeds_of  # not needed to look for words
    from signet_sync.digest.turns import turns_of  # likewise

    commit, file = commit.lower(), os.path.normpath(file).lstrip("/") if file else ""

    def list_deeds(path: str) -> Iterator[str]:
        deeds = deeds_of(turns_of(text_at(database, path)))
        for one in deeds.commits if len(commit) >= _ABBREVIATED else ():
            if one.name and (one.name.startswith(commit) or commit.startswith(one.name)):
                yield f"{one.name} {one.subject}"
        for changed, times in deeds.files.items() if file else ():
            if f"/{changed}".endswith(f"/{file}") or f"/{file}".endswith(f"/{changed.lstrip('/')}"):
                yield f"{changed}: {times} {'edit' if times == 1 else 'edits'}"

    asked = commit[:_ABBREVIATED] if commit else os.path.basename(file)
    found = _find_with_every_word(database, within, asked, begun=bool(commit))
    transcripts = (one for one in _list_files(database, found, within) if one.kind == "transcript")
    told = (one._replace(snippet=deed) for one in transcripts for deed in islice(list_deeds(one.path), 1))
    return list(islice(told, limit))


def _list_files(database: Database, passages: list[int] | None, within: Within, text: str = "") -> Iterator[FoundFile]:
    """Yields the files of some first passages, with a piece around the words of a text."""
    rows = database.execute(
        "select a.source_path, a.source_kind, a.session_token, a.session_id, a.membership_us,"
        f" coalesce(a.memory_sentence, '') from {_OF_PASSAGES}",
        (json.dumps(passages or []),),
    )
    for path, kind, token, session_id, at_us, sentence in rows:
        if within.holds(at_us):
            words = snippet(text_at(database, path), sentence, text) if text else ""
            yield FoundFile(path, kind, token, session_id, at_us, words)
