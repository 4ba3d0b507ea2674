"""Trains the digest's sentence classifier and writes its weights.

    python -m benchmarks.train_digest            # needs numpy; a few seconds

It learns from `benchmarks/digest_sentences.tsv` and the tests' `digest_probes.tsv`: multinomial logistic regression by
stochastic gradient descent (AdaGrad, 15 rounds, a fixed seed, 64-bit floats), whose weights are then rounded to signed
bytes with one scale. The features are the product's (`signet_sync.digest.classifier.features`), so train anew when what
they look at changes: the cues, the sentences, the words of `statements.py`. The same sentences and rules give the same
file, byte for byte.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

from signet_sync.digest import classifier
from signet_sync.digest.classifier import HEADER, KINDS, ROWS, features
from signet_sync.digest.cues import cues
from signet_sync.digest.replies import asks, inquires
from signet_sync.digest.statements import Said

ROUNDS, RATE, DECAY, SEED = 15, 0.1, 1e-4, 1
HERE = Path(__file__).parent
SENTENCES = (HERE / "digest_sentences.tsv", HERE.parent / "tests" / "digest_probes.tsv")
WEIGHTS = Path(classifier.__file__).with_name("weights.bin")


class Labelled(NamedTuple):
    """A line of the table."""

    kind: str
    language: str
    where: str
    sentence: str
    before: str


def labelled(path: Path) -> Iterator[Labelled]:
    """The lines of a table of sentences."""
    for line in path.read_text("utf-8").split("\n"):
        if line and not line.startswith("#"):
            kind, language, where, sentence, before = line.split("\t")
            yield Labelled(kind, language, where, sentence, before.replace("\\n", "\n"))


def said_of(row: Labelled) -> Said:
    """A sentence as the digest meets it; where the table is silent, half of them open their turn."""
    sentence, before = row.sentence, row.before
    opens = crc32(sentence.encode()) % 2 == 0
    match row.where:
        case "reply" | "reply2":
            facts, whether = inquires(before)
            return Said(
                sentence, reply=asks(before), opens=row.where == "reply", previous=before, facts=facts, whether=whether
            )
        case "first":
            return Said(sentence, first=True, opens=True)
        case "after":
            return Said(sentence, closing=True, opens=opens, previous="I fixed the loader; all tests pass now.")
        case "report":
            return Said(sentence, report=True, previous=before)
        case _:
            return Said(sentence, opens=opens, previous="I look at it.")


def packed(rows: list[Labelled], np: Any) -> bytes:
    """The weights that the sentences teach, as the file's bytes."""
    names: list[str] = [kind or "none" for kind in KINDS]
    examples = []
    for row in rows:
        values: dict[int, float] = {}
        for value, hashes in features(said_of(row), cues(frozenset(["en", row.language]))):
            for one in hashes:
                values[one] = values.get(one, 0.0) + value
        order = sorted(values)
        examples.append((np.array(order), np.array([values[one] for one in order]), names.index(row.kind)))
    chance = np.random.Generator(np.random.PCG64(SEED))
    learned = np.zeros((ROWS, len(names)))
    seen = np.full((ROWS, len(names)), 1e-2)
    for _ in range(ROUNDS):
        for at in chance.permutation(len(examples)):
            rows_, values_, kind = examples[at]
            now = learned[rows_]
            scores = (values_[:, None] * now).sum(axis=0)
            error = np.exp(scores - scores.max())
            error /= error.sum()
            error[kind] -= 1
            slope = np.outer(values_, error) + DECAY * now
            seen[rows_] += slope * slope
            learned[rows_] = now - RATE * slope / np.sqrt(seen[rows_])
    scale = float(np.abs(learned).max()) / 127
    columns = np.rint(learned / scale).astype(np.int8).T
    return HEADER.pack(scale) + bytes(np.ascontiguousarray(columns).tobytes())


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
    made = packed([row for path in SENTENCES for row in labelled(path)], numpy)
    if arguments.check:
        same = made == WEIGHTS.read_bytes()
        print("the same" if same else f"differs from {WEIGHTS}: write it without --check")
        return 0 if same else 1
    WEIGHTS.write_bytes(made)
    print(f"{WEIGHTS}: {len(made):,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
