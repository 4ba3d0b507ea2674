"""Full-text search that takes any input: words are quoted, CJK is spaced, snippets are our own."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple
from unicodedata import normalize

import apsw

from signet_sync.errors import UsageError
from signet_sync.index.database import Database
from signet_sync.index.segments import word_phrases

MAX_TERMS = 64
SNIPPET = 200
_WORDS = re.compile(r"[^\W_]+")


class Hit(NamedTuple):
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
    """An FTS5 expression for plain words, or None where the query holds none; every word quoted, at most 64."""
    terms = []
    for word in _encodable(query).replace("\0", " ").split():
        phrases = [phrase for phrase in word_phrases(word[:1000]) if _WORDS.search(phrase)]
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
) -> list[Hit]:
    """Best artifacts of one agent for a query. All words, else any of them; with `raw` FTS5's own syntax.

    Raises `UsageError` where raw syntax is wrong.
    """
    if raw:
        query = _encodable(query)
        try:
            return _run(database, query, query, agent_id, kind, since_us, limit)
        except apsw.SQLError as error:
            raise UsageError(f"not FTS5 syntax: {error}", hint="leave out --raw to search for plain words") from None
    expression = match_expression(query)
    if expression is None:
        return []
    hits = _run(database, expression, query, agent_id, kind, since_us, limit)
    if not hits and " AND " in expression:
        hits = _run(
            database,
            match_expression(query, any_word=True) or expression,
            query,
            agent_id,
            kind,
            since_us,
            limit,
        )
    return hits


def _run(
    database: Database,
    expression: str,
    query: str,
    agent_id: str,
    kind: str | None,
    since_us: int | None,
    limit: int,
) -> list[Hit]:
    sql = (
        "select a.source_path, a.source_kind, a.agent_id, a.session_token, a.session_key, a.ended_at,"
        " -memory_artifacts_fts.rank, a.content, coalesce(a.memory_sentence, '')"
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
    for path, found_kind, agent, token, key, ended_at, score, content, sentence in database.execute(sql, bindings):
        words = snippet(content, sentence, query)
        hits.append(Hit(path, found_kind, agent, token, key, ended_at, round(float(score), 6), words))
    return hits


def snippet(content: str, sentence: str, query: str) -> str:
    """About 200 characters where most of the query's words stand, on one line; the sentence where the text has none."""
    words = [word for word in query.split() if _WORDS.search(word)][:MAX_TERMS]
    for text in (content, sentence):
        place = _place(text, words)
        if place is not None:
            return _around(text, place)
    return _around(sentence or content, 0)


def _place(text: str, words: list[str]) -> int | None:
    """Where the densest group of words begins; of equal ones where the longest word stands."""
    lowered = _lowered(text)
    found = [(place, len(word)) for word in words if (place := _find(lowered, word)) is not None]
    if not found and not text.isascii():
        lowered = lowered.translate(_without_accents())
        found = [(place, len(word)) for word in words if (place := _find(lowered, word)) is not None]
    if not found:
        return None
    reach = SNIPPET // 2
    return max(found, key=lambda hit: (sum(hit[0] <= p < hit[0] + reach for p, _ in found), hit[1], -hit[0]))[0]


def _lowered(text: str) -> str:
    lowered = text.lower()
    return lowered if len(lowered) == len(text) else text


def _find(lowered: str, word: str) -> int | None:
    """The first place of a word, or of one of its parts where it does not stand there as a whole."""
    for form in (word.strip("\"'.,;:!?()[]*^").lower(), *(part.lower() for part in _parts(word))):
        first = place = lowered.find(form) if form else -1
        for _ in range(20):
            if place <= 0 or not lowered[place - 1].isalnum():
                break
            place = lowered.find(form, place + 1)
        if first >= 0:
            return place if place >= 0 else first
    return None


def _parts(word: str) -> list[str]:
    return _WORDS.findall(word_phrases(word[:1000])[-1])


@lru_cache(maxsize=1)
def _without_accents() -> dict[int, str]:
    """Latin letters with accents to those without, one to one, as the tokenizer takes them."""
    letters = [chr(code) for code in (*range(0xC0, 0x250), *range(0x1E00, 0x1F00))]
    return {ord(letter): normalize("NFD", letter)[0].lower() for letter in letters}


def _around(text: str, place: int) -> str:
    start = max(place - SNIPPET // 3, 0)
    if start:
        blank = text.find(" ", start, place)
        start = blank + 1 if blank >= 0 else start
    piece = " ".join(text[start : start + SNIPPET].split())
    printable = "".join(c if c.isprintable() else " " for c in piece)
    return ("…" if start else "") + printable + ("…" if start + SNIPPET < len(text) else "")
