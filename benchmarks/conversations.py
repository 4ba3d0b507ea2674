"""Measures what recall finds in public sets of conversations, beside bm25 over the same sessions in the same run.

Each group of sessions becomes a workspace: every session through `session end`, with its transcript in our form, then
`reindex`; each question is asked as `recall` asks it. A session counts as found where a hit leads to its files, a turn
as shown where its words stand whole in the text of one of the hits. `benchmarks.locomo` and
`benchmarks.longmemeval` read public formats; the data is the user's to bring.
"""

from __future__ import annotations

import io
import json
import os
import random
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import apsw

from signet_sync.cli import main
from signet_sync.formats.filename import carried_token
from signet_sync.formats.session_token import token_of
from signet_sync.formats.timestamps import SECOND, day_of, iso
from signet_sync.recall.operations import recall
from signet_sync.recall.search import Within
from signet_sync.storage.database.connection import Database
from signet_sync.text.word_forms import STOP_WORDS

AGENT, LIMIT, BETWEEN_TURNS = "default", 10, 20 * SECOND
DRAWN, SEED = 1_000, 7
_WORD = re.compile(r"\w+")


class Turn(NamedTuple):
    """What was said, as `name: text`; `role` is `user` or `assistant`."""

    id: str
    role: str
    text: str


class Talk(NamedTuple):
    """One session."""

    id: str
    at_us: int
    turns: tuple[Turn, ...]


class Question(NamedTuple):
    """A question with the sessions and turns that answer it."""

    text: str
    category: str
    sessions: frozenset[str]
    turns: frozenset[str]


class Group(NamedTuple):
    """Sessions of one workspace and the questions about them."""

    name: str
    talks: tuple[Talk, ...]
    questions: tuple[Question, ...]


class Found(NamedTuple):
    """What a system found for a question: sessions in order, the shown texts, and how long it took."""

    question: Question
    sessions: tuple[str, ...]
    shown: bool
    hits: int
    seconds: float


Ask = Callable[[str], tuple[Sequence[str], Sequence[str]]]


def measured(groups: Sequence[Group]) -> dict[str, list[Found]]:
    """Asks every question of each group: of the product, and of bm25 by session and by turn."""
    found: dict[str, list[Found]] = {}
    for group in groups:
        with indexed(group) as ours:
            systems: dict[str, Ask] = {
                "signet-sync": ours,
                "bm25, a row a session": lexical(group, by_turn=False),
                "bm25, a row a turn, stop words out": lexical(group, by_turn=True),
            }
            for name, ask in systems.items():
                found.setdefault(name, []).extend(_asked(ask, group))
    return found


def _asked(ask: Ask, group: Group) -> Iterator[Found]:
    said = {turn.id: _plain(turn.text) for talk in group.talks for turn in talk.turns}
    for question in group.questions:
        begun = time.perf_counter()
        sessions, texts = ask(question.text)
        took = time.perf_counter() - begun
        plain = [_plain(text) for text in texts[:LIMIT]]
        shown = any(said[turn] in text for turn in question.turns if turn in said for text in plain)
        yield Found(question, tuple(dict.fromkeys(sessions)), shown, len(texts), took)


def _plain(text: str) -> str:
    return " ".join(_WORD.findall(text.casefold()))


# ── the product ──


@contextmanager
def indexed(group: Group) -> Iterator[Ask]:
    """Makes a workspace of the sessions; the way to ask it."""
    before = dict(os.environ)
    with tempfile.TemporaryDirectory(prefix="signet-sync-conversations-") as folder:
        root, state = Path(folder, "workspace"), Path(folder, "state")
        for name in [name for name in os.environ if name.startswith(("SIGNET_", "XDG_"))]:
            del os.environ[name]
        os.environ.update({"HOME": folder, "SIGNET_STATE": str(state)})
        try:
            _run("init", str(root))
            for talk in group.talks:
                _run("--workspace", str(root), "session", "end", "--input", "-", "--json", given=_ended(talk))
            _run("--workspace", str(root), "reindex")
            tokens = {token_of(AGENT, talk.id): talk.id for talk in group.talks}
            (path,) = state.glob("*/signet-sync.db")
            database = Database(str(path), readonly=True)

            def ask(question: str) -> tuple[list[str], list[str]]:
                hits = recall(database, question, Within(AGENT), limit=LIMIT)
                named = [tokens.get(carried_token(hit.path) or "") for hit in hits if hit.path]
                return [session for session in named if session], [hit.text for hit in hits]

            yield ask
            database.close()
        finally:
            os.environ.clear()
            os.environ.update(before)


def _ended(talk: Talk) -> str:
    turns = (
        f"## {turn.role.title()} · {iso(talk.at_us + number * BETWEEN_TURNS)}\n\n{turn.text}\n"
        for number, turn in enumerate(talk.turns)
    )
    document = {"session_id": talk.id, "transcript": "\n".join(turns), "project": None, "captured_at": iso(talk.at_us)}
    return json.dumps(document)


def _run(*words: str, given: str = "") -> None:
    held = sys.stdin, sys.stdout, sys.stderr
    sys.stdin = io.TextIOWrapper(io.BytesIO(given.encode()), encoding="utf-8")
    sys.stdout = sys.stderr = out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    try:
        code = main.run(list(words))
    finally:
        sys.stdin, sys.stdout, sys.stderr = held
    assert code == 0, (words, out.buffer.getvalue().decode())


# ── bm25 ──


def lexical(group: Group, *, by_turn: bool) -> Ask:
    """Returns a search by SQLite's bm25 over sessions, or over turns with the session's date, without stop words."""
    connection = apsw.Connection(":memory:")
    connection.execute("create virtual table t using fts5(text, session unindexed, tokenize = 'porter unicode61')")
    for talk in group.talks:
        texts = [turn.text for turn in talk.turns]
        rows = [f"{text} {day_of(talk.at_us)}" for text in texts] if by_turn else ["\n".join(texts)]
        connection.executemany("insert into t(text, session) values(?, ?)", [(row, talk.id) for row in rows])

    def ask(question: str) -> tuple[list[str], list[str]]:
        words = _WORD.findall(question.casefold())
        if by_turn:
            words = [word for word in words if word not in STOP_WORDS] or words
        if not words:
            return [], []
        match = " OR ".join(f'"{word}"' for word in dict.fromkeys(words))
        text = "text" if by_turn else "snippet(t, 0, '', '', '', 64)"  # 64 words are the most that there are
        rows = list(connection.execute(f"select session, {text} from t where t match ? order by bm25(t)", (match,)))
        return [session for session, _ in rows], [shown for _, shown in rows[:LIMIT]]

    return ask


# ── the table ──


def report(groups: Sequence[Group], *, misses: bool) -> None:
    """Prints the table, and with `misses` the questions without an answer among the first five."""
    found = measured(groups)
    print("\n".join(table(found)))
    for one in found["signet-sync"] if misses else ():
        if not any_at(5)([one]):
            print(f"{one.question.category}: {one.question.text}")


def table(found: dict[str, list[Found]], reference: str = "bm25, a row a session") -> Iterator[str]:
    """Yields the table of all systems, then that of the product by category; shares in per cent."""
    yield "| system | any@1 | any@5 | any@10 | all@10 | MRR | turn shown@10 | hits | ms p50 / p99 |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for name, answers in found.items():
        took = sorted(1_000 * one.seconds for one in answers)
        cells = [f"{100 * value(answers):.1f}" for value in (any_at(1), any_at(5), any_at(10), _all, _mrr, _shown)]
        hits = sum(min(one.hits, LIMIT) for one in answers) / len(answers)
        yield f"| {name} | {' | '.join(cells)} | {hits:.1f} | {_at(took, 0.5):.1f} / {_at(took, 0.99):.1f} |"
    ours, theirs = found["signet-sync"], found[reference]
    for k in (1, 5, 10):
        low, high = difference(ours, theirs, k)
        yield f"signet-sync less {reference}, any@{k}: {low:+.1f} to {high:+.1f} points (95 %, paired, {DRAWN} draws)"
    yield "| category | questions | any@1 | any@5 | any@10 | all@10 |"
    yield "|---|---|---|---|---|---|"
    for category in sorted({one.question.category for one in ours}):
        some = [one for one in ours if one.question.category == category]
        cells = [f"{100 * value(some):.1f}" for value in (any_at(1), any_at(5), any_at(10), _all)]
        yield f"| {category} | {len(some)} | {' | '.join(cells)} |"


def _mean(values: Iterable[float]) -> float:
    some = list(values)
    return sum(some) / len(some) if some else 0.0


def any_at(k: int) -> Callable[[Sequence[Found]], float]:
    """Returns the share of questions of which one answering session is among the first `k`."""
    return lambda found: _mean(float(bool(one.question.sessions & {*one.sessions[:k]})) for one in found)


def _all(found: Sequence[Found]) -> float:
    return _mean(float(one.question.sessions <= {*one.sessions[:LIMIT]}) for one in found)


def _mrr(found: Sequence[Found]) -> float:
    places = ([place for place, one in enumerate(f.sessions[:LIMIT], 1) if one in f.question.sessions] for f in found)
    return _mean(1 / some[0] if some else 0.0 for some in places)


def _shown(found: Sequence[Found]) -> float:
    return _mean(float(one.shown) for one in found if one.question.turns)


def _at(values: Sequence[float], share: float) -> float:
    return values[min(len(values) - 1, int(share * len(values)))]


def difference(ours: Sequence[Found], theirs: Sequence[Found], k: int) -> tuple[float, float]:
    """Returns the interval in which the difference of two systems at `k` lies, in points: a paired bootstrap."""
    drawn = random.Random(SEED)
    pairs = [
        bool(a.question.sessions & {*a.sessions[:k]}) - bool(b.question.sessions & {*b.sessions[:k]})
        for a, b in zip(ours, theirs, strict=True)
    ]
    means = sorted(100 * _mean(drawn.choices(pairs, k=len(pairs))) for _ in range(DRAWN))
    return _at(means, 0.025), _at(means, 0.975)


def pooled(groups: Sequence[Group]) -> Group:
    """Returns all groups as one, for one agent."""
    return Group(
        "all",
        tuple(talk for group in groups for talk in group.talks),
        tuple(question for group in groups for question in group.questions),
    )
