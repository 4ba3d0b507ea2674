"""Stores what `recall` finds: each artifact, memory, statement and entity as a text, cut into passages, with full text.

A number says whose text it is, of what kind and when: an agent, its statements and a time are ranges of numbers
(`range_of`). Full text is contentless, so FTS5 must get the very words back that it indexed; `contentless_delete` would
leave them in the file. Therefore all that it holds is made from stored places of stored bodies.

The text of an artifact itself is stored once. If the bytes of a seal yield it, its row holds none; otherwise it is in
`content`: for manifests, texts that the sanitizer changed, seals without bytes. SQL that reads that column uses
`text_of`.
"""

import json
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from signet_sync.formats.timestamps import MINUTE
from signet_sync.storage.database.batches import LISTED, pack_values, rows_with_ids
from signet_sync.storage.database.connection import Database, unpack_sealed
from signet_sync.storage.database.table import placeholders
from signet_sync.sync.index_records import Row
from signet_sync.text.index_words import MARK, row_of

if TYPE_CHECKING:
    from signet_sync.text.passages import Passage, Voice

WITHIN, _MINUTES = 8, 27  # bits: passages of a minute, which go on in the next ones; minutes since 1970
_OWNED = WITHIN + _MINUTES
ARTIFACT, LINE, PRIVATE_LINE, _KINDS = 0, 2, 3, 4  # kinds of texts; of kind 1 there is none
_SAID = "insert into said(rowid, words) values(?, ?)"
_PRINTED = "insert into printed(rowid, words) values(?, ?)"
_UNSAID = "insert into said(said, rowid, words) values('delete', ?, ?)"
_UNPRINTED = "insert into printed(printed, rowid, words) values('delete', ?, ?)"
_LINE = "agent_id, tier, name, text, at_us, private, about"
_TOGETHER = 600  # characters of passages that full text has in one row


class Line(NamedTuple):
    """A statement that is found: `tier` is `memory`, `statement` or `entity`; `id` unique within the agent.

    Of others than memories each is `private`, as are the sessions that it comes from.
    """

    agent_id: str
    tier: str
    id: str
    text: str
    at_us: int = 0
    private: bool = False
    about: str = ""  # its project


class Place(NamedTuple):
    """A passage as stored; with a `size` it begins a row of full text of so many characters."""

    start: int
    end: int
    turn: int
    voice: "Voice"
    size: int


class _Stored(NamedTuple):
    """An artifact's text as its row has it."""

    number: int
    content: str
    sentence: str
    project: str | None


def range_of(database: Database, agent_id: str, first_us: int, last_us: int, kinds: Sequence[int]) -> tuple[int, int]:
    """Returns the first and last number of an agent's texts of a time, and of some adjacent kinds.

    Over several kinds the whole time counts. Empty, (1, 0), if the agent has none.
    """
    owner: int | None = database.value("select number from text_owners where agent_id = ?", (agent_id,))
    if owner is None:
        return 1, 0
    first, last = _begin(owner, kinds[0], first_us), _begin(owner, kinds[-1], last_us) | ((1 << WITHIN) - 1)
    # The last text may go on behind its minute.
    end: int | None = database.value("select last from texts where first <= ? order by first desc limit 1", (last,))
    return first, max(last, end or 0)


def _begin(owner: int, kind: int, at_us: int) -> int:
    minute = min(max(at_us // MINUTE, 0), (1 << _MINUTES) - 1)
    return (owner * _KINDS + kind) << _OWNED | minute << WITHIN


def _owner(database: Database, agent_id: str) -> int:
    database.execute("insert or ignore into text_owners(agent_id) values(?)", (agent_id,))
    number: int = database.value("select number from text_owners where agent_id = ?", (agent_id,))
    return number


def _count(database: Database, agents: Iterable[str], each: int) -> None:
    """Counts an agent's texts, one more or less for each time that it is named: a question must not count them."""
    changes = [(each * count, agent_id) for agent_id, count in Counter(agents).items()]
    database.executemany("update text_owners set texts = texts + ? where agent_id = ?", changes)


def _free(database: Database, begin: int, count: int) -> int:
    """Returns a number from which so many are free: behind the texts of that minute, or of as many as it takes."""
    width = 1 << WITHIN
    while True:
        last: int | None = database.value(
            "select last from texts where first < ? order by first desc limit 1", (begin + width,)
        )
        number = max(begin, (last or 0) + 1)
        if number + count <= begin + width:
            return number
        width *= 2


# ── texts of artifacts ──

# Of a row the text, or the bytes that give it.
KEPT = "coalesce(content, (select packed from seals where path = source_path))"


def text_of(row: str = "memory_artifacts") -> str:
    """Returns the text of a row as a term of SQL. Where it cannot be had reading it raises `DatabaseCorrupt`."""
    return f"coalesce({row}.content, unsealed((select packed from seals where path = {row}.source_path)))"


def text_at(database: Database, path: str) -> str:
    """Gives the text of an artifact; empty where it is not indexed. Raises `DatabaseCorrupt`."""
    return database.value(f"select {text_of()} from memory_artifacts where source_path = ?", (path,)) or ""


def unpack_text(kept: str | bytes | None) -> str:
    """Gives the text of what is kept of a row. Raises `DatabaseCorrupt`."""
    return kept if isinstance(kept, str) else unpack_sealed(None, kept)


def keep(database: Database, paths: Sequence[str]) -> None:
    """Puts texts into their rows: the bytes that give them are about to go or to be others.

    In the caller's transaction. Full text needs the very words that it holds to delete them.
    """
    bound, left = (json.dumps(paths),), "content is null and source_path in (select value from json_each(?))"
    # A statement that may have to be undone makes full text write what it holds back until the commit.
    if database.value(f"select exists(select 1 from memory_artifacts where {left})", bound):
        database.execute(f"update memory_artifacts set content = {text_of()} where {left}", bound)


# ── what sessions said ──


def add_artifacts(database: Database, rows: "Sequence[tuple[int, Row]]") -> None:
    """Indexes artifacts by number; manifests say nothing. In the caller's transaction."""
    from signet_sync.text.passages import passages  # slow import; who only asks needs none

    owners: dict[str, int] = {}
    said: list[tuple[int, str]] = []
    placed: list[tuple[int, int, int, int, str, int]] = []
    printed: list[tuple[int, str]] = []
    for number, row in rows:
        if row.source_kind == "manifest":
            continue
        found = passages(row.content, row.source_kind, row.memory_sentence)
        if row.agent_id not in owners:
            owners[row.agent_id] = _owner(database, row.agent_id)
        first = _free(database, _begin(owners[row.agent_id], ARTIFACT, row.membership_us), max(len(found), 1))
        database.execute(
            "insert into texts(first, last, agent_id, tier, artifact, at_us) values(?, ?, ?, 'session', ?, ?)",
            (first, first + max(len(found), 1) - 1, row.agent_id, number, row.membership_us),
        )
        places = _place_passages(found)
        placed += [(number, *one) for number, one in enumerate(places, first)]
        stored = _Stored(number, row.content, row.memory_sentence or "", row.project)
        _add_words(stored, first, places, said, printed)
    _count(database, (row.agent_id for _, row in rows if row.source_kind != "manifest"), 1)
    database.executemany("insert into passages(id, start, end, turn, voice, size) values(?, ?, ?, ?, ?, ?)", placed)
    database.executemany(_SAID, said)
    database.executemany(_PRINTED, printed)


def _place_passages(found: "Sequence[Passage]") -> list[Place]:
    """Returns passages with the characters of the row of full text that each begins; 0 for one that goes on."""
    sizes = [0] * len(found)
    head = left = 0
    for number, one in enumerate(found):
        if one.voice == "tool":
            continue
        size = max(one.end - one.start, 1)
        if size > left:
            head, left = number, 0 if one.start < 0 else _TOGETHER
        sizes[head] += size
        left -= size
    places = [Place(*one, size) for one, size in zip(found, sizes, strict=True)]
    begun = {row: number for number, row in reversed([*enumerate(_rows(places))]) if places[number].voice == "tool"}
    for number in begun.values():
        places[number] = places[number]._replace(size=1)
    return places


def _rows(found: Sequence[Place]) -> Iterator[int]:
    """Yields for each passage which one begins its row; what tools printed has the row of the turn before."""
    turns: list[int] = []
    rows: list[int] = []
    for number, one in enumerate(found):
        if one.voice == "tool":
            yield rows[before - 1] if (before := bisect_right(turns, one.turn)) else 0
            continue
        turns.append(one.turn)
        rows.append(number if one.size or not rows else rows[-1])
        yield rows[-1]


def _add_words(
    of: _Stored,
    first: int,
    found: Sequence[Place],
    said: list[tuple[int, str]],
    printed: list[tuple[int, str]],
) -> None:
    """Adds the rows of full text of an artifact: what is said as it is, of what tools then printed each word once."""
    project = (of.project or "").replace("\\", "/").rstrip("/").rpartition("/")[2]
    texts: dict[int, str] = {}
    words: dict[int, dict[str, None]] = {}
    for row, one in zip(_rows(found), found, strict=True):
        text = of.sentence if one.start < 0 else of.content[one.start : one.end]
        if one.voice == "tool":
            words.setdefault(row, {}).update(dict.fromkeys(text.split()))
        else:
            texts[row] = f"{texts[row]}\n{text}" if row in texts else text
    said += [(first + row, row_of(text, project)) for row, text in texts.items()]
    printed += [(first + row, row_of(" ".join(some))) for row, some in words.items()]


def drop_artifacts(database: Database, numbers: Iterable[int]) -> None:
    """Takes artifacts out of full text, before their rows go. In the caller's transaction."""
    wanted = pack_values(numbers)
    said: list[tuple[int, str]] = []
    printed: list[tuple[int, str]] = []
    for first, stored, found in _read_stored(database, f"where t.artifact {LISTED}", wanted):
        _add_words(stored, first, found, said, printed)
    database.executemany(_UNSAID, said)
    database.executemany(_UNPRINTED, printed)
    agents = database.column(f"select agent_id from texts where artifact {LISTED}", (wanted,))
    _count(database, agents, -1)
    gone = f"select first, last from texts where artifact {LISTED}"
    database.execute(f"delete from passages where id in (select p.id from ({gone}) join passages p"
                     " on p.id between first and last)", (wanted,))  # fmt: skip
    database.execute(f"delete from texts where artifact {LISTED}", (wanted,))


def _read_stored(database: Database, where: str, *bound: str) -> Iterator[tuple[int, _Stored, list[Place]]]:
    rows = database.execute(
        f"select t.first, t.last, a.id, {text_of('a')}, coalesce(a.memory_sentence, ''), a.project"
        f" from texts t cross join memory_artifacts a on a.id = t.artifact {where}",
        bound,
    )
    for first, last, *stored in rows:
        places = "select start, end, turn, voice, size from passages where id between ? and ? order by id"
        yield first, _Stored(*stored), [Place(*one) for one in database.execute(places, (first, last))]


# ── statements ──


def put(database: Database, lines: Iterable[Line]) -> None:
    """Writes lines in place of those of the same ids; equal ones are not written again. In the caller's transaction."""
    for agent_id, some in groupby(sorted(lines), key=itemgetter(0)):
        wanted = {line.id: line for line in some}
        held = set(map(_line, rows_with_ids(database, _LINE, "texts", agent_id, "name", wanted)))
        former = {line.id for line in held}
        changed = [line for line in wanted.values() if line not in held]
        drop(database, agent_id, [line.id for line in changed if line.id in former])
        add(database, changed)


def add(database: Database, lines: Sequence[Line]) -> None:
    """Writes lines whose ids have none yet. In the caller's transaction."""
    owners = {agent_id: _owner(database, agent_id) for agent_id in {line.agent_id for line in lines}}
    said: list[tuple[int, str]] = []
    together: dict[int, list[Line]] = {}
    for line in lines:
        kind = PRIVATE_LINE if line.private else LINE
        together.setdefault(_begin(owners[line.agent_id], kind, line.at_us), []).append(line)
    for begin, some in sorted(together.items()):
        numbered = list(enumerate(some, _free(database, begin, len(some))))
        rows = [(number, number, *line) for number, line in numbered]
        database.executemany(f"insert into texts(first, last, {_LINE}) values({placeholders(9)})", rows)
        said += [(number, row_of(line.text, line.about)) for number, line in numbered]
    _count(database, (line.agent_id for line in lines), 1)
    database.executemany(_SAID, said)


def _line(row: Sequence[Any]) -> Line:
    agent_id, tier, name, text, at_us, private, about = row
    return Line(agent_id, tier, name, text, at_us, bool(private), about)


def drop(database: Database, agent_id: str, ids: Sequence[str]) -> None:
    """Forgets lines, to the last word. In the caller's transaction."""
    if not ids:
        return
    rows = list(rows_with_ids(database, "first, text, about", "texts", agent_id, "name", ids))
    database.executemany(_UNSAID, [(first, row_of(text, about)) for first, text, about in rows])
    database.execute(f"delete from texts where first {LISTED}", (pack_values(row[0] for row in rows),))
    _count(database, [agent_id] * len(rows), -1)


# ── all of it ──


def tune_for_bulk(database: Database, *, bulk: bool) -> None:
    """Sets FTS5's memory for pending terms, for many rows at once or back to the default."""
    for table in ("said", "printed"):
        hashsize = (16 if bulk else 1) * 1024 * 1024
        database.execute(f"insert into {table}({table}, rank) values('hashsize', ?)", (hashsize,))


def is_in_step(database: Database) -> bool:
    """Returns whether full text has exactly the rows that there are texts and passages."""
    said = database.value("select (select count(*) from passages where size > 0 and voice <> 'tool')"
                          " + (select count(*) from texts where artifact is null)")  # fmt: skip
    printed = database.value("select count(*) from passages where size > 0 and voice = 'tool'")
    found = [
        database.value(f"select count(*) from {table} where {table} match ?", (f'"{MARK}" *',))
        for table in ("said", "printed")
    ]
    artifacts = database.value("select count(*) from memory_artifacts where source_kind <> 'manifest'")
    texts = database.value("select count(*) from texts where artifact is not null")
    counts = database.value("select (select count(*) from texts) = (select total(texts) from text_owners)")
    return bool(found == [said, printed] and artifacts == texts and counts)


def rebuild(database: Database, artifacts: "Iterable[tuple[int, Row]]") -> None:
    """Makes all full text from artifacts and lines again. In the caller's transaction."""
    lines = list(map(_line, database.execute(f"select {_LINE} from texts where artifact is null")))
    clear(database)
    for one in artifacts:
        add_artifacts(database, [one])
    add(database, lines)


def clear(database: Database) -> None:
    """Forgets everything. In the caller's transaction."""
    for table in ("said", "printed"):
        database.execute(f"insert into {table}({table}) values('delete-all')")
    for table in ("passages", "texts"):
        database.execute(f"delete from {table}")
    database.execute("update text_owners set texts = 0")


def clear_lines(database: Database) -> None:
    """Forgets every line. In the caller's transaction."""
    rows = list(database.execute("select first, text, about, agent_id from texts where artifact is null"))
    database.executemany(_UNSAID, [(first, row_of(text, about)) for first, text, about, _ in rows])
    database.execute("delete from texts where artifact is null")
    _count(database, [agent_id for *_, agent_id in rows], -1)
