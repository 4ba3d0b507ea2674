"""Searches the sessions of many workspaces, in the tables that an index made: SQL of DuckDB over Parquet."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import Any, NamedTuple

from signet_sync.errors import SignetSyncError, UsageError, extra_hint
from signet_sync.fleet import targets
from signet_sync.fleet.tables import ParquetTables
from signet_sync.formats.paths import display
from signet_sync.recall.snippets import MOST_WORDS, snippet
from signet_sync.text.word_forms import folded

_LONGEST_WORD = 500  # characters; a run of Chinese or Japanese is one
_COLUMNS = "workspace, agent, token, session, project, harness, day, sentence, path"
# A word counts where it is a part of one: Chinese and Japanese have no spaces, and names of code are found by parts.
_FOUND = """
    with asked as (select unnest($words) as word),
    told as (select *, strip_accents(lower(words)) as low from read_parquet($files, union_by_name = true)),
    counted as (
      select *, (select count(*) from asked where contains(low, word)) as had from told where {where}
    )
    select {columns}, words, had / len($words) as score from counted where had > 0
    order by had desc, ended_at desc, workspace, agent, token, session limit $limit"""


class Selection(NamedTuple):
    """Which sessions are wanted: of a project (name, path or origin), of an agent, in a time (microseconds UTC)."""

    project: str | None = None
    agent: str | None = None
    since_us: int | None = None
    until_us: int | None = None
    limit: int = 10


def search(query: str, named: Sequence[str], place: str, wanted: Selection) -> dict[str, Any]:
    """Returns the document of `fleet search --json`: what sessions were about, and their line with most of the words.

    `named` limits it to workspaces. Best are the sessions that have most of the words; those without all of them count
    only if none has all. Raises `UsageError`, `SignetSyncError`.
    """
    try:
        import duckdb
    except ImportError:
        raise UsageError("searching tables needs an optional package", hint=extra_hint("fleet")) from None
    plain = query.encode("utf-8", "replace").decode("utf-8").replace("\0", " ")
    words = [word[:_LONGEST_WORD] for word in plain.split()[:MOST_WORDS]]
    tables = ParquetTables(place)
    if not tables.states():
        raise UsageError("there are no tables here", path=tables.url, hint="signet-sync fleet index makes them")
    clauses, bound = ["true"], dict[str, Any]()
    if named:
        clauses.append("list_contains($workspaces, workspace)")
        bound["workspaces"] = [display(one) for one in targets.workspaces(named)]
    if wanted.project is not None:
        clauses.append("(lower(project) = $project or lower(regexp_replace(project, '^.*/', '')) = $project)")
        bound["project"] = wanted.project.rstrip("/").lower()
    if wanted.agent is not None:
        clauses.append("agent = $agent")
        bound["agent"] = wanted.agent
    for name, sign, moment in (("since", ">=", wanted.since_us), ("until", "<=", wanted.until_us)):
        if moment is not None:
            clauses.append(f"epoch_us(ended_at) {sign} ${name}")
            bound[name] = moment
    bound |= {"words": list(map(folded, words)), "limit": wanted.limit, "files": f"{tables.url}/sessions/*.parquet"}
    # Nothing is fetched or loaded.
    config = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
    with closing(duckdb.connect(config=config)) as connection:
        if not tables.local:
            connection.register_filesystem(tables.system)
        try:
            sql = _FOUND.format(where=" and ".join(clauses), columns=_COLUMNS)
            rows = connection.execute(sql, bound).fetchall() if words else []
        except duckdb.Error as error:
            raise SignetSyncError(
                f"the tables cannot be searched: {display(str(error).partition(chr(10))[0])}",
                path=tables.url,
                hint="delete them and run signet-sync fleet index again",
                code="tables-damaged",
            ) from None
    most = max((row[-1] for row in rows), default=0)
    hits = [_hit(row, words) for row in rows if most < 1 or row[-1] == most]
    return {"query": query, "hits": hits}


def _hit(row: tuple[Any, ...], words: Sequence[str]) -> dict[str, Any]:
    """Returns a session with the line that has most of the words; without one if its sentence has as many."""
    *columns, said, score = row
    wanted = list(map(folded, words))
    names = "workspace agent_id session_token session_id project harness day sentence path".split()

    def count(line: str) -> int:
        low = folded(line)
        return sum(word in low for word in wanted)

    sentence = columns[7]
    best = max(said.split("\n"), key=count)
    line = snippet(best, sentence, " ".join(words)) if count(best) > count(sentence) else ""
    return {**dict(zip(names, columns, strict=True)), "score": round(score, 6), "snippet": line}
