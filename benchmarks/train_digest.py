"""Trains the digest's sentence classifier and writes its weights.

    python -m benchmarks.train_digest            # needs numpy; half a minute

It learns from labelled sentences (`digest_sentences.tsv` and the tests' `digest_probes.tsv`), labelled dialogues
(`digest_dialogues/`) and sessions with what came out of them (`digest_sessions/tuning` and `training`): multinomial
logistic regression by stochastic gradient descent (AdaGrad, 15 rounds, a fixed seed, 64-bit floats), whose weights are
then rounded to signed bytes with one scale. The features are the product's
(`signet_sync.text.digest.classifier.features`), so train anew when what they look at changes: the rules, the cues,
the candidates. The same texts and rules give the same file, byte for byte.
"""

from __future__ import annotations

import argparse
import importlib
import json
import re
import sys
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch
from zlib import crc32

from benchmarks.digest import INSIDE, Record, holds, records, sessions_of
from benchmarks.digest import KINDS as SECTIONS
from signet_sync.capture.harnesses import claude_code
from signet_sync.capture.harnesses.markdown import render
from signet_sync.text.digest import classifier
from signet_sync.text.digest.classifier import HEADER, KINDS, ROWS, features
from signet_sync.text.digest.conversation import Kind
from signet_sync.text.digest.cues import Cues, cues
from signet_sync.text.digest.replies import asks, asks_for_fact
from signet_sync.text.digest.session import outcome
from signet_sync.text.digest.statements import SentenceContext, kind_by_rules
from signet_sync.text.sanitizer import sanitize_transcript_v2

ROUNDS, RATE, DECAY, SEED = 15, 0.1, 1e-4, 1
HERE = Path(__file__).parent
SENTENCES = (HERE / "digest_sentences.tsv", HERE.parent / "tests" / "sessions" / "digest_probes.tsv")
DIALOGUES = HERE / "digest_dialogues"
# Rules were written with the first folder before their eyes: what they say there is no measure of what they are worth.
SESSIONS = {HERE / "digest_sessions" / "tuning": False, HERE / "digest_sessions" / "training": True}
WEIGHTS = Path(classifier.__file__).with_name("weights.bin")
_KIND_OF: dict[str, Kind] = {
    "decisions": "decision", "constraints": "constraint", "blockers": "blocker", "next_steps": "next",
    "preferences": "preference",
}  # fmt: skip


class Labelled(NamedTuple):
    """A line of the table."""

    kind: str
    language: str
    where: str
    sentence: str
    before: str


class Example(NamedTuple):
    """A sentence as the digest meets it, with what it is (`none` for nothing); `ruled` where the rules may be heard."""

    said: SentenceContext
    cues: Cues
    kind: str
    ruled: bool


def labelled(path: Path) -> Iterator[Labelled]:
    """The lines of a table of sentences."""
    for line in path.read_text("utf-8").split("\n"):
        if line and not line.startswith("#"):
            kind, language, where, sentence, before = line.split("\t")
            yield Labelled(kind, language, where, sentence, before.replace("\\n", "\n"))


def said_of(row: Labelled) -> SentenceContext:
    """A sentence as the digest meets it; where the table is silent, half of them open their turn."""
    sentence, before = row.sentence, row.before
    opens = crc32(sentence.encode()) % 2 == 0
    match row.where:
        case "reply" | "reply2":
            facts, whether = asks_for_fact(before)
            return SentenceContext(
                sentence, reply=asks(before), opens=row.where == "reply", previous=before, facts=facts, whether=whether
            )
        case "first":
            return SentenceContext(sentence, first=True, opens=True)
        case "after":
            return SentenceContext(
                sentence, closing=True, opens=opens, previous="I fixed the loader; all tests pass now."
            )
        case "report":
            return SentenceContext(sentence, report=True, previous=before)
        case _:
            return SentenceContext(sentence, opens=opens, previous="I look at it.")


def of_tables() -> Iterator[Example]:
    """The tables' sentences."""
    for path in SENTENCES:
        for row in labelled(path):
            yield Example(said_of(row), cues(frozenset(["en", row.language])), row.kind, path != SENTENCES[1])


# ── sessions and dialogues ──


def candidates(session: Record) -> list[tuple[SentenceContext, Cues]]:
    """The sentences of a session whose kind the digest asks for, each once."""
    heard: dict[tuple[str, str, bool], tuple[SentenceContext, Cues]] = {}

    def asked(said: SentenceContext, known: Cues) -> Kind | None:
        heard.setdefault((said.sentence, said.previous[-80:], said.report), (said, known))
        return kind_by_rules(said, known)

    lines = [json.dumps(record).encode() for record in records(session)]
    entries = claude_code.read(lines, file_name=f"{session['id']}.jsonl").entries
    with (
        patch("signet_sync.text.digest.person.kind_of", asked),
        patch("signet_sync.text.digest.reports.kind_of", asked),
    ):
        outcome(sanitize_transcript_v2(render(entries)))
    return list(heard.values())


def bare(text: str) -> str:
    """A text's letters and digits."""
    return re.sub(r"\W+", "", text.casefold())


def same(sentence: str, passage: str, least: int) -> bool:
    """Whether a sentence holds a labelled passage, or lies in it."""
    said, marked = bare(sentence), bare(passage)
    return (len(marked) >= least and marked in said) or (len(said) >= 8 and said in marked)


def of_sessions(folder: Path, ruled: bool) -> Iterator[Example]:
    """The candidates of annotated sessions; what is optional, or said again, is left out."""
    for session in sessions_of(folder):
        gold = session["gold"]
        for said, known in candidates(session):
            kind = _annotated(said.sentence, gold)
            if kind:
                yield Example(said, known, kind, ruled)


def _annotated(sentence: str, gold: Record) -> str:
    said = bare(sentence)
    if any(bare(one) in said or (len(said) >= INSIDE and said in bare(one)) for one in gold["not_items"]):
        return "none"
    items = [(_KIND_OF[section], item) for section in SECTIONS for item in gold[section]]
    for kind, item in items:
        if same(sentence, item["text"], 6):
            return kind
    if any(holds(sentence, item["keys"]) for _, item in items):
        return ""
    doubtful = any(same(sentence, one["text"], 1) or holds(sentence, one["keys"]) for one in gold["optional_items"])
    return "" if doubtful else "none"


_HEAD = re.compile(r"=== (.+?) · (\w\w) · ([\w-]+)\s*$")
_MARKED = re.compile(r"\[\[([dcnbpx?=])\|(.*?)\]\]", re.DOTALL)
_OF_MARK = {"d": "decision", "c": "constraint", "n": "next", "b": "blocker", "p": "preference", "x": "none"}
_ARGUMENT = {"Bash": "command", "Grep": "pattern"}


def dialogues(path: Path) -> Iterator[tuple[Record, list[tuple[str, str]]]]:
    """The sessions of a file with their marked passages; the marks are told in `digest_dialogues/README.md`."""
    said: list[list[str]] = []
    number = 0
    for line in [*path.read_text("utf-8").split("\n"), "=== end · en · done"]:
        head = _HEAD.match(line)
        if head:
            if said:
                yield _session(f"{path.name}/{number}", said)
            said, number = [], number + 1
        elif line[:2] in ("U:", "A:", "T:"):
            said.append([line[0], line[2:].lstrip(" ")])
        elif said:
            said[-1][1] += f"\n{line}"


def _session(name: str, said: Sequence[Sequence[str]]) -> tuple[Record, list[tuple[str, str]]]:
    turns: list[Record] = []
    marked: list[tuple[str, str]] = []
    for number, (speaker, text) in enumerate(said):
        marked += [(_OF_MARK.get(mark[1], ""), mark[2]) for mark in _MARKED.finditer(text)]
        text = _MARKED.sub(r"\2", text.rstrip())
        at = f"2026-05-04T10:{number % 60:02}:00Z"
        if speaker == "T":
            tool, given, output = [*(part.strip() for part in text.split("|", 2)), "", ""][:3]
            call = {"name": tool, "input": {_ARGUMENT.get(tool, "file_path"): given}, "output": output}
            turns.append({"role": "tool", "text": "", "at": at, "tool": call})
        else:
            turns.append({"role": "user" if speaker == "U" else "assistant", "text": text, "at": at})
    return {"id": str(uuid.uuid5(uuid.NAMESPACE_URL, name)), "project": "/home/dev/project", "turns": turns}, marked


def of_dialogues(path: Path) -> Iterator[Example]:
    """The candidates of labelled dialogues; what is doubtful or said again is left out."""
    for session, marked in dialogues(path):
        for said, known in candidates(session):
            kind = next((kind for kind, passage in marked if same(said.sentence, passage, 4)), "none")
            if kind:
                yield Example(said, known, kind, ruled=True)


# ── training ──


def packed(examples: Sequence[Example], np: Any) -> bytes:
    """The weights that the examples teach, as the file's bytes."""
    names: list[str] = [kind or "none" for kind in KINDS]
    rows = []
    for said, known, kind, ruled in examples:
        values: dict[int, float] = {}
        for value, hashes in features(said, known, (kind_by_rules(said, known) or "none") if ruled else ""):
            for one in hashes:
                values[one] = values.get(one, 0.0) + value
        order = sorted(values)
        rows.append((np.array(order), np.array([values[one] for one in order]), names.index(kind)))
    chance = np.random.Generator(np.random.PCG64(SEED))
    learned = np.zeros((ROWS, len(names)))
    seen = np.full((ROWS, len(names)), 1e-2)
    for _ in range(ROUNDS):
        for at in chance.permutation(len(rows)):
            hashes_, values_, kind_ = rows[at]
            now = learned[hashes_]
            scores = (values_[:, None] * now).sum(axis=0)
            error = np.exp(scores - scores.max())
            error /= error.sum()
            error[kind_] -= 1
            slope = np.outer(values_, error) + DECAY * now
            seen[hashes_] += slope * slope
            learned[hashes_] = now - RATE * slope / np.sqrt(seen[hashes_])
    scale = float(np.abs(learned).max()) / 127
    columns = np.rint(learned / scale).astype(np.int8).T
    return HEADER.pack(scale) + bytes(np.ascontiguousarray(columns).tobytes())


def examples() -> list[Example]:
    """All that is learned from; each session counts twice."""
    found = list(of_tables())
    for folder, ruled in SESSIONS.items():
        found += 2 * list(of_sessions(folder, ruled))
    for path in sorted(DIALOGUES.glob("*.txt")):
        found += of_dialogues(path)
    return found


def main() -> int:
    """Writes the weights, or compares them with the packaged ones."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--check", action="store_true", help="write nothing, fail where the packaged file differs")
    arguments = parser.parse_args()
    try:
        numpy = importlib.import_module("numpy")
    except ModuleNotFoundError:
        print("numpy is missing, which only training needs: pip install numpy", file=sys.stderr)
        return 2
    made = packed(examples(), numpy)
    if arguments.check:
        same_ = made == WEIGHTS.read_bytes()
        print("the same" if same_ else f"differs from {WEIGHTS}: write it without --check")
        return 0 if same_ else 1
    WEIGHTS.write_bytes(made)
    print(f"{WEIGHTS}: {len(made):,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
