"""Searches the sessions of many workspaces, in the tables that an index made: SQL of DuckDB over Parquet."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import Any

from signet_sync.errors import SignetSyncError, UsageError, extra_hint
from signet_sync.fleet import store, targets
from signet_sync.fleet.store import Selection
from signet_sync.fleet.tables import ParquetTables
from signet_sync.formats.paths import display
from signet_sync.recall.snippets import MOST_WORDS, snippet
from signet_sync.text.word_forms import folded


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
    words = [word[:500] for word in plain.split()[:MOST_WORDS]]
    tables = ParquetTables(place)
    known = tables.states()
    if not known:
        raise UsageError("there are no tables here", path=tables.url, hint="signet-sync fleet index makes them")
    asked = known.keys() & {display(one) for one in targets.workspaces(named)} if named else known.keys()
    # Nothing is fetched or loaded.
    config = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
    with closing(duckdb.connect(config=config)) as connection:
        if not tables.local:
            connection.register_filesystem(tables.system)
        try:
            files = tables.files("sessions", asked)
            rows = store.found(connection, files, list(map(folded, words)), wanted) if words and files else []
        except duckdb.Error as error:
            message = f"the tables cannot be searched: {display(str(error).partition(chr(10))[0])}"
            hint = "delete them and run signet-sync fleet index again"
            raise SignetSyncError(message, path=tables.url, hint=hint, code="tables-damaged") from None
    most = max((row[-1] for row in rows), default=0)
    hits = [_hit(row, words) for row in rows if most < 1 or row[-1] == most]
    return {"query": query, "hits": hits}


def _hit(row: tuple[Any, ...], words: Sequence[str]) -> dict[str, Any]:
    """Returns a session with the line that has most of the words; without one if its sentence has as many."""
    *columns, said, score = row
    wanted = list(map(folded, words))
    names = "workspace agent_id session_token session_id project harness day sentence path".split()
    sentence = columns[7]
    counts = {line: sum(word in folded(line) for word in wanted) for line in (sentence, *said.split("\n"))}
    best = max(counts, key=counts.__getitem__)  # of equals the first
    line = snippet(best, sentence, " ".join(words)) if best != sentence else ""
    return {**dict(zip(names, columns, strict=True)), "score": round(score, 6), "snippet": line}
