"""Whether `recall` finds what answers, says nothing where nothing does, and how long it takes, beside plain bm25.

`python -m benchmarks.recall --data FOLDER` makes a vault of each set through the product (`session end`, `import`,
`reindex`), asks as the command asks, and prints tables with intervals of 95 %. A session is found where a hit leads to
its files; its answer is *shown* where a turn of the evidence, or all keys of the answer, stand in the text of one hit.
FOLDER holds `locomo/locomo-3.json`, `digest/sessions` and `real/sessions`; what is absent is not measured.
The baselines are FTS5 over the turns of the same transcripts, a row a session and a row a turn.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

import apsw

from benchmarks import corpus, recall_sets, recall_speed
from benchmarks.ground import machine
from benchmarks.labelled import Workspace, holds, workspace_in
from benchmarks.recall_sets import Question, Session, Set, words_of
from benchmarks.recall_speed import AGENT, LIMIT, ours
from signet_sync.embeddings.resident import Resident
from signet_sync.embeddings.store import let_tell
from signet_sync.formats.filename import find_carried_token
from signet_sync.formats.ids import token_of
from signet_sync.settings.model import load
from signet_sync.storage.database.connection import Database

SHOWN = 900  # characters of a hit of the baseline: as long as one of the product at most
PARTS = ("locomo", "digest", "real", "both", "unanswerable", "speed")
DATA = Path(__file__).resolve().parents[2] / "shared"
UNRELATED = Path(__file__).with_name("recall_unrelated.txt")
DRAWN, SEED = 2_000, 7
_STOP = frozenset(
    "a about an and are as at be been before by can could did do does for from had has have how i if in into is it its"
    " me my not of on one or our she he should so than that the their them then there they this to was we were what"
    " when where which who whom whose why will with would you your".split()
)


class Hit(NamedTuple):
    """What one hit shows, the session to which it leads, and whether it passes for known."""

    session: str | None
    text: str
    known: bool = True


class Found(NamedTuple):
    """What a system answered to a question."""

    question: Question
    hits: tuple[Hit, ...]

    @property
    def place(self) -> float:
        """Where the first answering session stands among the sessions, from 1."""
        sessions = dict.fromkeys(hit.session for hit in self.hits if hit.session)
        return next((n for n, one in enumerate(sessions, 1) if one in self.question.sessions), math.inf)

    @property
    def shown(self) -> bool:
        """Whether the answer is to be read in one of the hits."""
        turns = [words_of(turn) for turn in self.question.turns]
        return any(
            any(turn in words_of(hit.text) for turn in turns) or holds(hit.text, self.question.keys)
            for hit in self.hits[:LIMIT]
        )


Ask = Callable[[str], Sequence[Hit]]


# ── the systems ──


@contextmanager
def systems(made: Workspace, sessions: Sequence[Session], model: Path | None = None) -> Iterator[dict[str, Ask]]:
    """The product over a vault, by words and with a model, and the baselines over its transcripts."""
    sessions_by_token = {token_of(AGENT, session.id): session.id for session in sessions}
    with closing(Database(str(database_of(made)), readonly=True)) as database:

        def ask(text: str) -> list[Hit]:
            return [
                Hit(sessions_by_token.get(find_carried_token(path) or "") if path else None, shown, known)
                for path, shown, known in ours(database, text)
            ]

        meant = {} if model is None else {"words and meaning": with_meaning(made, model, ask)}
        yield {
            "signet-sync": ask,
            **meant,
            "bm25, a row a session": bm25(made.root, sessions_by_token, by_turn=False),
            "bm25, a row a turn": bm25(made.root, sessions_by_token, by_turn=True),
        }


def with_meaning(made: Workspace, folder: Path, ask: Ask) -> Ask:
    """The product as the agent answers with a model in a folder, whose vectors are made if they are not there."""
    settings = load(str(made.root), environ={"SIGNET_RECALL_MEANING": str(folder.resolve())})[0]
    agent = Resident(str(database_of(made)), lambda: settings)
    with closing(Database(str(database_of(made)))) as database:
        while agent.work(database) == 0:
            pass
    let_tell(None)

    def meant(text: str) -> Sequence[Hit]:
        let_tell(agent.measure_nearness)
        try:
            return ask(text)
        finally:
            let_tell(None)

    return meant


def database_of(made: Workspace) -> Path:
    """The index of a vault."""
    (path,) = made.root.parent.glob("state/*/signet-sync.db")
    return path


def bm25(root: Path, sessions_by_token: dict[str, str], *, by_turn: bool) -> Ask:
    """A search by FTS5 over the transcripts of a vault, each turn with its day; any word finds, stop words do not."""
    connection = apsw.Connection(":memory:")
    connection.execute("create virtual table t using fts5(text, session unindexed, tokenize = 'porter unicode61')")
    for path in sorted((root / "memory").glob("*--transcript.md")):
        body = path.read_text("utf-8").split("\n---\n", 1)[-1]
        turns = [f"{text.strip()} {day}" for day, text in re.findall(_TURN, body)] or [body]
        session = sessions_by_token.get(path.name.split("--")[1])
        rows = turns if by_turn else ["\n".join(turns)]
        connection.executemany("insert into t(text, session) values(?, ?)", [(row, session) for row in rows])
    shown = (
        f"substr(text, 1, {SHOWN})" if by_turn else "snippet(t, 0, '', '', '', 64)"
    )  # more words than 64 cannot be had

    def ask(question: str) -> list[Hit]:
        asked = dict.fromkeys(words_of(question).split())
        match = " OR ".join(f'"{word}"' for word in [word for word in asked if word not in _STOP] or asked)
        found = connection.execute(f"select session, {shown} from t where t match ? order by rank limit 100", (match,))
        return [Hit(session, text) for session, text in found] if match else []

    return ask


_TURN = re.compile(r"^## \w+ · (\d{4}-\d\d-\d\d)\S*\n(.*?)(?=^## \w+ · \d{4}-|\Z)", re.MULTILINE | re.DOTALL)


# ── vaults ──


@contextmanager
def vault(keep: Path | None, name: str, fill: Callable[[Workspace], None]) -> Iterator[Workspace]:
    """A vault that was filled; with `keep`, one that is there is taken as it is."""
    with tempfile.TemporaryDirectory(prefix="signet-sync-recall-") as temporary:
        folder = (keep or Path(temporary)).resolve() / name
        made = workspace_in(folder)
        if not (folder / "complete").exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            made.run("init")
            fill(made)
            made.run("reindex")
            (folder / "complete").touch()
        yield made


def filled(sessions: Sequence[Session]) -> Callable[[Workspace], None]:
    """Fills a vault with sessions."""
    return lambda made: _take(made, sessions)


def _take(made: Workspace, sessions: Sequence[Session]) -> None:
    for session in sessions:
        if session.harness is None:
            made.run("session", "end", "--input", "-", "--json", given=session.text)
        else:
            folder = made.root.parent / session.harness
            folder.mkdir(exist_ok=True)
            (folder / f"{session.id}.jsonl").write_text(session.text, "utf-8")
    for harness in sorted({session.harness for session in sessions if session.harness}):
        made.run("import", harness, str(made.root.parent / harness))


# ── what is found ──


def answers(asked: Set, keep: Path | None, model: Path | None = None) -> dict[str, list[Found]]:
    """Asks every question of a set, of each system."""
    with vault(keep, asked.name, filled(asked.sessions)) as made, systems(made, asked.sessions, model) as asks:
        return {name: [Found(one, tuple(ask(one.text))) for one in asked.questions] for name, ask in asks.items()}


Places = dict[str, list[float]]


def quality(
    name: str, sets: Sequence[Set], keep: Path | None, model: Path | None, places: Places, earlier: Places
) -> Iterator[str]:
    """Yields the lines of a set's table, its figures those of all its vaults together.

    The places of the product's answers are added to `places`; those of another run are compared with.
    """
    found: dict[str, list[Found]] = {}
    for one in sets:
        for system, some in answers(one, keep, model).items():
            found.setdefault(system, []).extend(some)
    others = {system: [one.place for one in some] for system, some in found.items()}
    places[name] = others.pop("signet-sync")
    for system, some in found.items():
        cells = [share([one.place <= k for one in some]) for k in (1, 5, 10)]
        told = [one.shown for one in some if one.question.turns or one.question.keys]
        cells += [share(told) if told else "–", share([not one.hits for one in some])]
        yield f"| {name}, {len(some)} | {system} | {' | '.join(cells)} |"
    if name in earlier:
        others["the earlier run"] = earlier[name]
    for system, theirs in others.items():
        apart = [difference(places[name], theirs, k) for k in (1, 5, 10)]
        yield f"| | signet-sync less {system} | {' | '.join(apart)} | | |"


def share(values: Sequence[bool]) -> str:
    """A share in per cent with its interval of 95 % (Wilson)."""
    n, z = len(values), 1.96
    p = sum(values) / n
    middle, half = p + z * z / (2 * n), z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    low, high = ((middle + side * half) / (1 + z * z / n) for side in (-1, 1))
    return f"{100 * p:.1f} ({100 * max(low, 0):.0f}–{100 * high:.0f})"


def difference(first: Sequence[float], second: Sequence[float], k: int) -> str:
    """How many points one is above the other at `k`, with its interval of 95 % (paired bootstrap)."""
    pairs = [(a <= k) - (b <= k) for a, b in zip(first, second, strict=True)]
    drawn, n = random.Random(SEED), len(pairs)
    means = sorted(100 * sum(drawn.choices(pairs, k=n)) / n for _ in range(DRAWN))
    low, high = means[int(0.025 * DRAWN)], means[int(0.975 * DRAWN)]
    return f"{100 * sum(pairs) / n:+.1f} ({low:+.0f} to {high:+.0f})"


# ── what is not known ──


def unanswerable(asked: Set, everything: Set, keep: Path | None) -> Iterator[str]:
    """Yields the lines of questions that no session of a vault answers: how many have hits all the same."""
    known: dict[str, list[bool]] = {}
    with tempfile.TemporaryDirectory(prefix="signet-sync-recall-") as temporary:
        folder = Path(temporary, "vault")
        with vault(keep, asked.name, filled(asked.sessions)) as made:
            shutil.copytree(made.root, folder / "workspace")
        made = workspace_in(folder)
        for session in asked.sessions:
            about = [one for one in asked.questions if session.id in one.sessions]
            if about:
                with _without(made, _with_successors(asked.sessions, session.id)):
                    _count(known, made, asked.sessions, [one.text for one in about])
    yield from _answered("prompts without their session", known)
    known = {}
    with vault(keep, everything.name, filled(everything.sessions)) as made:
        _count(known, made, everything.sessions, UNRELATED.read_text("utf-8").splitlines())
    yield from _answered("unrelated", known)


def _with_successors(sessions: Sequence[Session], first: str) -> set[str]:
    found = {first}
    while more := {one.id for one in sessions if found & {*one.continues}} - found:
        found |= more
    return found


@contextmanager
def _without(made: Workspace, ids: set[str]) -> Iterator[None]:
    """The vault without the files of sessions, which are brought back afterwards."""
    aside, memory = made.root.parent / "aside", made.root / "memory"
    aside.mkdir()
    tokens = {token_of(AGENT, one) for one in ids}
    for path in [path for path in memory.iterdir() if find_carried_token(f"memory/{path.name}") in tokens]:
        path.rename(aside / path.name)
    made.run("reindex", "--accept-removals")
    yield
    for path in aside.iterdir():
        path.rename(memory / path.name)
    aside.rmdir()


def _count(known: dict[str, list[bool]], made: Workspace, sessions: Sequence[Session], texts: Sequence[str]) -> None:
    with systems(made, sessions) as asks:
        for name, ask in asks.items():
            known.setdefault(name, []).extend(any(hit.known for hit in ask(text)) for text in texts)


def _answered(what: str, known: dict[str, list[bool]]) -> Iterator[str]:
    for name, values in known.items():
        yield f"| {what}, {len(values)} | {name} | {share(values)} |"


# ── what it costs ──


def speed(sessions: int, keep: Path | None) -> Iterator[str]:
    """Yields the lines of a made-up vault of so many sessions of one agent, three files each."""

    def fill(made: Workspace) -> None:
        corpus.write_corpus(made.root, sessions, agents=1)

    with vault(keep, f"corpus-{3 * sessions}", fill) as made, systems(made, []) as asks:
        asked = [recall_speed.questions(made.root, words) for words in (5, 20)]
        for name, ask in asks.items():
            step = 1 if name == "signet-sync" else 5  # the baselines are slow
            cells = " | ".join(recall_speed.times(ask, some[::step]) for some in asked)
            yield f"| {3 * sessions:,} artifacts, {len(asked[0])} + {len(asked[1])} questions | {name} | {cells} |"
        held = "; ".join(f"{name} {size:,}" for name, size in recall_speed.sizes(database_of(made)))
        ran, functions = recall_speed.passed(asks["signet-sync"])
        yield f"\nBytes: {held}"
        yield f"Modules of the product: {recall_speed.modules(made)} run in a process of `recall`, start included;"
        yield f"one question passes {functions} functions of {ran} modules\n"


QUALITY = "| set, questions | system | @1 | @5 | @10 | shown | no hit |\n|---|---|---|---|---|---|---|"
UNKNOWN = "\n| questions without an answer | system | answered as if known |\n|---|---|---|"
COSTS = "\n| vault | system | 5 words, ms p50 / p99 | 20 words, ms p50 / p99 |\n|---|---|---|---|"


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the tables."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.recall", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=DATA, metavar="FOLDER", help=f"default {DATA.name} beside this")
    parser.add_argument("--only", choices=PARTS, action="append", help="this part; may be given several times")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the vaults here, and take those that are")
    parser.add_argument("--model", type=Path, metavar="FOLDER", help="ask with this model, too: see recall.meaning")
    parser.add_argument("--large", action="store_true", help="a vault of 150,000 artifacts as well: some hours")
    parser.add_argument("--save", type=Path, metavar="FILE", help="write the places of the answers here")
    parser.add_argument("--beside", type=Path, metavar="FILE", help="compare with the places of another run, in pairs")
    given = parser.parse_args(arguments)
    parts = given.only or PARTS
    places: Places = {}
    earlier: Places = json.loads(given.beside.read_text("utf-8")) if given.beside else {}
    sets: dict[str, list[Set]] = {}
    for name, place, read in (
        ("locomo", given.data / "locomo" / "locomo-3.json", recall_sets.locomo),
        ("digest", given.data / "digest" / "sessions", lambda path: [recall_sets.invented(path)]),
        ("real", given.data / "real" / "sessions", lambda path: [recall_sets.real(path)]),
    ):
        if place.exists():
            sets[name] = read(place)
        else:
            print(f"{place} is absent: what needs it is not measured")
    if "digest" in sets and "real" in sets:
        sets["both"] = [recall_sets.both(sets["digest"][0], sets["real"][0])]
    print(f"{machine()}\n\n{QUALITY}" if {*parts} & {*sets} else machine())
    for name in [name for name in sets if name in parts]:
        show(quality(name, sets[name], given.keep, given.model, places, earlier))
    if given.save:
        given.save.write_text(json.dumps(places), "utf-8")
    if "both" in sets and "unanswerable" in parts:
        print(UNKNOWN)
        show(unanswerable(sets["real"][0], sets["both"][0], given.keep))
    if "speed" in parts:
        print(COSTS)
        for size in (5_000, 50_000) if given.large else (5_000,):
            show(speed(size, given.keep))
    return 0


def show(lines: Iterator[str]) -> None:
    """Prints lines as they come."""
    for line in lines:
        print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
