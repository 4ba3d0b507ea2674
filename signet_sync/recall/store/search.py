"""Searches the full text for any input: words are quoted, CJK is spaced."""

from __future__ import annotations

from typing import NamedTuple

import apsw

from signet_sync.errors import UsageError
from signet_sync.recall.snippets import WORDS, snippet
from signet_sync.storage.database.connection import Database
from signet_sync.sync.store.bodies import text_at
from signet_sync.text.cjk import word_phrases

MAX_TERMS = 64


MOST_RAW = 4096


class FoundArtifact(NamedTuple):
    """A found artifact; a higher score is a better hit."""

    path: str
    kind: str
    agent_id: str
    session_token: str
    session_key: str | None
    ended_at: str | None
    score: float
    snippet: str


def match_expression(query: str, *, any_word: bool = False) -> str | None:
    """Returns an FTS5 expression for plain words, or None if the query has none; every word quoted, at most 64."""
    terms = []
    for word in _encodable(query).replace("\0", " ").split():
        phrases = [phrase for phrase in word_phrases(word[:1000]) if WORDS.search(phrase)]
        quoted = ['"' + phrase.replace('"', '""') + '"' for phrase in phrases]
        if quoted:
            terms.append(quoted[0] if len(quoted) == 1 else "(" + " OR ".join(quoted) + ")")
        if len(terms) == MAX_TERMS:
            break
    if not terms:
        return None
    return (" OR " if any_word else " AND ").join(terms)


def _encodable(query: str) -> str:
    return query.encode("utf-8", "replace").decode("utf-8")


def search(
    database: Database,
    query: str,
    *,
    agent_id: str,
    kind: str | None = None,
    since_us: int | None = None,
    limit: int = 10,
    raw: bool = False,
) -> list[FoundArtifact]:
    """Returns one agent's best artifacts for a query. All words, else any of them; with `raw` FTS5's own syntax.

    Raises `UsageError` if raw syntax is wrong, or longer than `MOST_RAW`.
    """
    query = _encodable(query)
    if raw and len(query) > MOST_RAW:  # FTS5 needs minutes for some hundred thousand words
        hint = "shorten it, or leave out --raw"
        raise UsageError(f"FTS5 syntax of more than {MOST_RAW:,} characters", hint=hint)
    expressions = [query] if raw else [match_expression(query), match_expression(query, any_word=True)]
    for expression in filter(None, dict.fromkeys(expressions)):
        try:
            hits = _run(database, expression, query, agent_id, kind, since_us, limit)
        except apsw.SQLError as error:
            if not raw:
                raise
            raise UsageError(f"not FTS5 syntax: {error}", hint="leave out --raw to search for plain words") from None
        if hits:
            return hits
    return []


def _run(
    database: Database,
    expression: str,
    query: str,
    agent_id: str,
    kind: str | None,
    since_us: int | None,
    limit: int,
) -> list[FoundArtifact]:
    sql = (
        "select a.source_path, a.source_kind, a.agent_id, a.session_token, a.session_key, a.ended_at,"
        " -memory_artifacts_fts.rank, cast(coalesce(a.memory_sentence, '') as text)"
        " from memory_artifacts_fts join memory_artifacts a on a.id = memory_artifacts_fts.rowid"
        " where memory_artifacts_fts match ? and a.agent_id = ?"
    )
    bindings: list[object] = [expression, agent_id]
    if kind is not None:
        sql += " and a.source_kind = ?"
        bindings.append(kind)
    if since_us is not None:
        sql += " and a.membership_us >= ?"
        bindings.append(since_us)
    sql += " order by memory_artifacts_fts.rank, a.membership_us desc, a.source_path limit ?"
    bindings.append(max(1, min(limit, 1000)))
    hits = []
    for path, found_kind, agent, token, key, ended_at, score, sentence in list(database.execute(sql, bindings)):
        words = snippet(text_at(database, path), sentence, query, spoken=found_kind == "transcript")
        hits.append(FoundArtifact(path, found_kind, agent, token, key, ended_at, round(float(score), 6), words))
    return hits
