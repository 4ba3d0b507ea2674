"""Classifies sentences with a trained classifier that also uses the result of the rules.

The classifier is a multinomial logistic regression over hashed words, letters and context. Its weights are trained by
`benchmarks/train_digest.py`, which imports the features from here.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from functools import cache, lru_cache
from importlib import resources
from itertools import pairwise
from math import exp, sqrt
from operator import itemgetter
from struct import Struct
from typing import Literal, NamedTuple
from zlib import crc32

from signet_sync.formats.lazy_pattern import late
from signet_sync.text.digest.conversation import Kind
from signet_sync.text.digest.cues import Cues
from signet_sync.text.digest.replies import EITHER_OR, asks, question_of
from signet_sync.text.digest.sentences import is_question, stems, unquoted
from signet_sync.text.digest.statements import (
    ORDERS,
    POINTS_BACK,
    SentenceContext,
    bare,
    is_errand,
    is_inquiry,
    kind_by_rules,
)

KINDS: tuple[Kind | None, ...] = (None, "decision", "constraint", "preference", "next", "blocker")
# The highest probability of no kind at which the classifier's kind counts; above it, that at which the rules' does.
THRESHOLD, RULED = 0.35, 0.9
LONGEST = 400  # characters of a sentence that is classified
ROWS = 1 << 16
ZERO = 128  # what a weight of 0 is in memory: bytes are picked and added faster than signed numbers
HEADER = Struct("<f")  # the value of a weight of 1; followed by `ROWS` signed bytes for each kind

Probabilities = tuple[float, float, float, float, float, float]


class ClassifierWeights(NamedTuple):
    """The trained weights: for each of `KINDS` one for each feature, in units of `scale`, plus `ZERO`."""

    scale: float
    of_kinds: tuple[bytes, ...]


class FeatureGroup(NamedTuple):
    """Features of one sort, by their hashes, and the value of each."""

    value: float
    hashes: frozenset[int]


@cache
def weights() -> ClassifierWeights:
    """Returns the packaged weights; read at first use."""
    packed = (resources.files("signet_sync.text.digest") / "weights.bin").read_bytes()
    (scale,) = HEADER.unpack_from(packed)
    rows = packed[HEADER.size :].translate(bytes(number ^ ZERO for number in range(256)))
    return ClassifierWeights(scale, tuple(rows[kind * ROWS : (kind + 1) * ROWS] for kind in range(len(KINDS))))


def weight_sums(hashes: Collection[int]) -> tuple[int, ...]:
    """Returns the sums of the weights of some features, for each of `KINDS`."""
    if len(hashes) < 2:  # an `itemgetter` of one gives no tuple
        return tuple(sum(of_kind[one] - ZERO for one in hashes) for of_kind in weights().of_kinds)
    picked, zeros = itemgetter(*hashes), ZERO * len(hashes)
    return tuple(sum(picked(of_kind)) - zeros for of_kind in weights().of_kinds)


def kind_of(said: SentenceContext, cues: Cues) -> Kind | None:
    """Returns the kind of a sentence, None if it is not worth keeping: by rules, corrected by the classifier."""
    ruled = kind_by_rules(said, cues)
    if not said.late or len(said.sentence) > LONGEST or is_inquiry(said.sentence):
        return ruled
    nothing, *something = probabilities(said, cues, ruled)
    if nothing <= THRESHOLD:
        return KINDS[1 + something.index(max(something))]
    return ruled if nothing <= RULED else None


def probabilities(said: SentenceContext, cues: Cues, ruled: Kind | None) -> Probabilities:
    """Returns the probability of each of `KINDS` for a sentence."""
    groups = [(value, weight_sums(hashes)) for value, hashes in features(said, cues, ruled or "none")]
    scale = weights().scale
    scores = [scale * sum(value * weighed[kind] for value, weighed in groups) for kind in range(len(KINDS))]
    most = max(scores)
    none, decision, constraint, preference, step, blocker = (exp(score - most) for score in scores)
    whole = none + decision + constraint + preference + step + blocker
    return none / whole, decision / whole, constraint / whole, preference / whole, step / whole, blocker / whole


_TOKEN = late(r"[^\W_]+(?:['’][^\W_]+)?|[^\w\s]")
_DIGITS = late(r"\d+")
_EAST = late("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]")
_NEGATION = late(
    r"\b(?:not?|never|don['’]?t|can['’]?t|cannot|nicht|kein\w*|nie|pas|jamais|nunca|não|non|mai|не|нельзя)\b"
    r"|不|别|ない|しないで|마|안",
    re.IGNORECASE,
)
_LISTED = late(r"^ *(?:[-*]|[0-9a-c][.)])", re.MULTILINE)
_COMPARED = 600  # characters at the end of the message before


def features(said: SentenceContext, cues: Cues, ruled: Kind | Literal["none", ""]) -> list[FeatureGroup]:
    """Returns the features of a sentence: words, letters within words, its beginning and end, its context.

    `ruled` is the rules' kind; empty to leave it out.
    """
    text = unquoted(bare(said.sentence) or said.sentence).lower()[:LONGEST]
    text = _DIGITS.sub("0", text)
    words = _TOKEN.findall(text)
    where = _where(said)
    named = {f"w {word}" for word in words}
    named.update(f"b {one} {then}" for one, then in pairwise(words))
    named.update(f"s {one}  {then}" for one, then in zip(words, words[2:], strict=False))
    letters: set[int] = set()
    for word in words:
        letters |= _letters(word)
    first = "".join(words[:1])
    ends = (f"f1 {first}", f"f2 {' '.join(words[:2])}", f"f3 {' '.join(words[:3])}", f"f1 {where} {first}",
            f"l {''.join(words[-1:])}")  # fmt: skip
    return [
        FeatureGroup(1.0 / sqrt(len(named) or 1), frozenset(map(_hashed, named))),
        FeatureGroup(0.8 / sqrt(len(letters) or 1), frozenset(letters)),
        FeatureGroup(0.5, frozenset(map(_hashed, ends))),
        FeatureGroup(0.5, frozenset(map(_hashed, _context(said, text, where, cues)))),
        FeatureGroup(1.0, frozenset([_hashed(f"r {ruled} {where}"), _hashed(f"r {ruled}")] if ruled else [])),
    ]


def _hashed(name: str) -> int:
    return crc32(name.encode("utf-8", "replace")) & (ROWS - 1)


def _where(said: SentenceContext) -> str:
    if said.report:
        return "report"
    return "first" if said.first else "after" if said.closing else "reply" if said.reply else "free"


_OF_LETTERS = crc32(b"c ")


@lru_cache(maxsize=4096)
def _letters(word: str) -> frozenset[int]:
    """Returns hashes of a word's runs of three to five letters; of one to four in scripts without spaces."""
    lengths = (1, 2, 3, 4) if _EAST.search(word) else (3, 4, 5)
    whole = word if lengths[0] == 1 else f"<{word}>"
    runs = (whole[at : at + n] for n in lengths for at in range(len(whole) - n + 1))
    return frozenset(crc32(run.encode("utf-8", "replace"), _OF_LETTERS) & (ROWS - 1) for run in runs)


def _context(said: SentenceContext, text: str, where: str, cues: Cues) -> Iterator[str]:
    sentence = said.sentence
    own = stems(text)
    yield f"at {where}"
    if said.report:
        yield f"form {said.form}"
        yield f"lk {cues.kind_of(said.previous)}"
        for word in _TOKEN.findall(said.previous.lower()[:60])[:6]:
            yield f"lw {word}"
    yield f"n {where} {min(len(own), 6)}"
    yield f"len {min(len(text) // 25, 6)}"
    yield f"neg {_NEGATION.search(text) is not None} {where}"
    yield f"q {is_question(sentence)}"
    yield f"e {is_errand(text)}"
    yield f"o {ORDERS.match(text) is not None} {where}"
    yield f"op {said.opens} {where}"
    yield f"pb {POINTS_BACK.match(text) is not None}"
    yield f"num {'0' in text} {where}"
    yield f"cap {sentence[:1].isupper()} {where}"
    if said.previous and not said.report:
        shared = len(own & stems(said.previous[-_COMPARED:]))
        yield f"sh {min(shared, 2)} {where}"
        yield f"fact {said.facts} {said.whether} {where}"
        yield from _answered(said.previous, where)


@lru_cache(maxsize=16)
def _answered(previous: str, where: str) -> tuple[str, ...]:
    """Returns features of the message before a reply; cached, because the sentences of a turn share it."""
    question = question_of(previous).lower()
    words = _TOKEN.findall(question)[:3]
    return (
        f"asks {asks(previous)}",
        f"either {EITHER_OR.search(question) is not None} {where}",
        *(f"qw {where} {' '.join(words[:n])}" for n in range(1, len(words) + 1)),
        f"list {_LISTED.search(previous) is not None} {where}",
    )
