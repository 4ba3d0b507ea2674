"""Sets of sessions with questions of which the answering sessions are known: LoCoMo, and labelled coding sessions.

LoCoMo (snap-research/locomo, CC BY-NC 4.0) has the form of `locomo10.json`; questions of category 5 have no answer and
are left out. Labelled sessions are files in the form of `benchmarks/labelled.py`, or transcripts `NN-slug.jsonl` of
Claude Code and Codex with `NN-slug.gold.json` beside them (`harness`, `prompts` with `q` and `keys`, `continues`).
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.labelled import records, sessions_of
from signet_sync.formats.timestamps import SECOND, instant_of, iso

_WORD = re.compile(r"\w+")


class Session(NamedTuple):
    """A session: what an ended one tells the product, or with `harness` the transcript that is imported."""

    id: str
    text: str
    harness: str | None = None
    continues: tuple[str, ...] = ()


class Question(NamedTuple):
    """A question, the sessions that answer it, and what of them is to be read: one of the turns, or all the keys."""

    text: str
    sessions: frozenset[str]
    turns: tuple[str, ...] = ()
    keys: tuple[tuple[str, ...], ...] = ()


class Set(NamedTuple):
    """The sessions of one vault, and what is asked of it."""

    name: str
    sessions: tuple[Session, ...]
    questions: tuple[Question, ...]


def both(first: Set, second: Set) -> Set:
    """Two sets in one vault."""
    return Set("both", first.sessions + second.sessions, first.questions + second.questions)


def words_of(text: str) -> str:
    """The words of a text, as turns are compared."""
    return " ".join(_WORD.findall(text.casefold()))


# ── LoCoMo ──


def locomo(path: Path) -> list[Set]:
    """The conversations of a file."""
    return [_conversation(document) for document in json.loads(path.read_text("utf-8"))]


def _conversation(document: dict[str, Any]) -> Set:
    name, said = document["sample_id"], document["conversation"]
    sessions: list[Session] = []
    session_of: dict[str, str] = {}
    text_of: dict[str, str] = {}
    for number in range(1, 1_000):
        if turns := said.get(f"session_{number}"):
            session = f"{name}-session-{number}"
            at = datetime.strptime(said[f"session_{number}_date_time"], "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
            told = [_told(turn) for turn in turns]
            session_of.update((turn["dia_id"], session) for turn in turns)
            text_of.update((turn["dia_id"], text) for turn, text in zip(turns, told, strict=True))
            speakers = ["User" if turn["speaker"] == said["speaker_a"] else "Assistant" for turn in turns]
            sessions.append(Session(session, ended(session, instant_of(at), list(zip(speakers, told, strict=True)))))
    questions = []
    for one in document["qa"]:
        # Some name several turns in one string, or one with a leading zero.
        named = (f"D{int(d)}:{int(t)}" for d, t in re.findall(r"D(\d+):(\d+)", " ".join(one.get("evidence", ()))))
        evidence = [turn for turn in named if turn in session_of]
        if one["category"] != 5 and evidence:
            found = frozenset(session_of[turn] for turn in evidence)
            questions.append(Question(str(one["question"]), found, tuple(text_of[turn] for turn in evidence)))
    return Set(name, tuple(sessions), tuple(questions))


def _told(turn: dict[str, Any]) -> str:
    photo = f" [shares {turn['blip_caption']}]" if turn.get("blip_caption") else ""
    return f"{turn['speaker']}: {turn['text']}{photo}"


def ended(session: str, at_us: int, turns: list[tuple[str, str]]) -> str:
    """The document of a session that ended, for `session end`."""
    transcript = "\n".join(
        f"## {speaker} · {iso(at_us + number * 20 * SECOND)}\n\n{text}\n"
        for number, (speaker, text) in enumerate(turns)
    )
    return json.dumps({"session_id": session, "transcript": transcript, "project": None, "captured_at": iso(at_us)})


# ── labelled sessions ──


def invented(folder: Path) -> Set:
    """Sessions in the form of `benchmarks/labelled.py`, with the questions that stand in them."""
    documents = sessions_of(folder)
    sessions = [
        Session(one["id"], "".join(json.dumps(record) + "\n" for record in records(one)), "claude-code")
        for one in documents
    ]
    asked = [Question(q["q"], frozenset(q["session_ids"])) for one in documents for q in one["questions"]]
    return Set("digest", tuple(sessions), tuple(asked))


def real(folder: Path) -> Set:
    """Transcripts in the form of their harness, with the prompts that their labels name."""
    golds = {path.name.removesuffix(".gold.json"): json.loads(path.read_text("utf-8")) for path in _golds(folder)}
    texts = {slug: (folder / f"{slug}.jsonl").read_text("utf-8") for slug in golds}
    ids = {slug: session_id(text) for slug, text in texts.items()}
    sessions = [
        Session(ids[slug], texts[slug], gold["harness"], tuple(ids[one] for one in gold.get("continues") or ()))
        for slug, gold in golds.items()
    ]
    asked = [
        Question(prompt["q"], frozenset({ids[slug]}), keys=tuple(tuple(group) for group in prompt["keys"]))
        for slug, gold in golds.items()
        for prompt in gold["prompts"]
    ]
    return Set("real", tuple(sessions), tuple(asked))


def _golds(folder: Path) -> Iterator[Path]:
    return iter(sorted(folder.glob("*.gold.json")))


def session_id(text: str) -> str:
    """The id of Codex's first line, or the one that most lines of Claude Code have."""
    ids: Counter[str] = Counter()
    for line in text.split("\n"):
        try:
            record = json.loads(line)
        except ValueError:  # one of the public sessions has a torn line
            continue
        if record.get("type") == "session_meta":
            return str(record["payload"]["id"])
        if record.get("type") in ("user", "assistant") and record.get("sessionId"):
            ids[record["sessionId"]] += 1
    return ids.most_common(1)[0][0]
