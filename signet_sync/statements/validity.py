"""Decides which statements of a project still hold: what was done, replaced or taken back.

An end needs a deed, a newer statement that says the same otherwise, or a person. What is unsure is shown with its day:
a wrong end is worse than a stale line.
"""

import re
from base64 import b32encode
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from itertools import chain
from math import ceil, log
from typing import NamedTuple

from signet_sync.digest.sentences import COMMON, stems
from signet_sync.formats.handle import STATEMENT
from signet_sync.formats.lazy_pattern import late
from signet_sync.formats.statement import Status
from signet_sync.text.digest_mark import ASKED

# Kinds that an outcome ends, and kinds of which a newer one replaces one that says nearly the same.
ENDS = frozenset(("next", "blocker", "question"))
_FEWEST = 3  # content words; fewer are alike by chance
_SAME = 0.75  # of the words of two statements, those that both have
_DONE = 0.4  # of the words of a step, those that an outcome has
_DID, _ALIKE = 0.25, 4  # and those that a deed has; words that both have
_NUMBER = late(r"(?<![\w#./-])\d+(?:[.,]\d+)*(?![\w/-])")
_WORD = late(r"\w+(?:[.:/@#+'’-]\w+)*")
# Where the sentence of a session says what it left open, and what it was asked for (a deed only where it is done).
_LEFT = late(r"[;.,]\s*(?:blocked|open|next):\s.*?(?=\((?:first )?asked:|$)")
_ONLY_ASKED = late(r"(?:[^:]{1,80}: )?asked: ", re.IGNORECASE)
_NUMBERED = late(r"(?:\s*\(#\d+\))+$")  # of a commit that a pull request brought
_NAMED = late(r"^\[\S+ [0-9a-f]{7,40}\] ")  # its branch and name
_TRIED = late(r"\"([^\"]+)\" ")  # the command of a dead end

# Of a change most statements were there before.
_kept = lru_cache(maxsize=8_192)


class Known(NamedTuple):
    """A statement as it was said last; `number` is that of its row."""

    number: int
    id: str
    kind: str
    text: str
    speaker: str
    at_us: int
    session: int
    artifact: int
    done: bool


class Outcome(NamedTuple):
    """What came out of a session, what it did, and the commands that worked."""

    session: int
    at_us: int
    sentence: str
    status: str | None
    deeds: str = ""  # a line each
    worked: str = ""  # a line each


class Mark(NamedTuple):
    """What a person or agent did to a session's statement at an instant: `done`, `withdrawn`, or `open` again.

    `words` are the hashes of its words.
    """

    id: str
    kind: str
    words: frozenset[str]
    status: Status
    at_us: int
    session: int = 0


Settled = tuple[Status, str | None]  # status, and the id of what replaces it


def settle_statements(
    known: Sequence[Known],
    outcomes: Sequence[Outcome],
    marks: Iterable[Mark],
    earlier: Sequence[Known],
    own: Mapping[str, int],
) -> dict[int, Settled]:
    """Returns by number whether each statement of a project still holds; what a person said about it comes last.

    Of `earlier` ones, which are too many to be compared, only ticks and marks end one. `own` has by id when a person
    stated something last.
    """
    found: dict[int, Settled] = {one.number: ("done" if one.done else "open", None) for one in (*known, *earlier)}
    still = [one for one in known if not one.done]
    ends = (
        *_end_named(known, outcomes),
        *_end_relisted(still),
        *_end_restated(still),
        *_end_carried_out(still, outcomes),
        *_end_working(still, outcomes),
    )
    for number, status, by in (*ends, *_apply_marks((*known, *earlier), marks, own)):
        found[number] = status, by
    return found


def status_now(ended: str | None, left: Mapping[str, bool]) -> str | None:
    """Returns how the work of a session stands that `ended` so; `left` are kinds of what it left, and which still is.

    Without its blocker work can go on; whether it is done, only steps tell.
    """
    status = "open" if ended == "blocked" and left.get("blocker") is False else ended
    return "done" if status == "open" and left.keys() - {"blocker"} and not any(left.values()) else status


_Ends = Iterator[tuple[int, Status, str | None]]


def _end_named(known: Sequence[Known], outcomes: Sequence[Outcome]) -> _Ends:
    """Yields what a later session names by its handle: a step in what came out of it, anything in a statement."""
    later: list[tuple[int, int, Known | None, str]] = [
        (one.at_us, one.session, None, one.sentence) for one in outcomes if "f-" in one.sentence
    ]
    later += [(one.at_us, one.session, one, one.text) for one in known if "f-" in one.text]
    for at_us, session, by, text in later:
        handles = tuple(found[1] for found in STATEMENT.finditer(text))
        for one in known if handles else ():
            if not one.done and one.id.startswith(handles) and one.at_us < at_us and one.session != session:
                if by is None or by.kind not in ("decision", "constraint", "preference"):
                    if one.kind in ENDS:
                        yield one.number, "done", None
                elif by.kind == one.kind and (by.speaker == "person" or one.speaker != "person"):
                    yield one.number, "replaced", by.id


def _end_relisted(known: Sequence[Known]) -> _Ends:
    """Yields the open steps and blockers of a session of which a later part of it has a newer list."""
    listed = [one for one in known if one.kind in ENDS and one.artifact > 0]
    newest: dict[tuple[int, str], int] = {}
    for one in listed:
        newest[one.session, one.kind] = max(newest.get((one.session, one.kind), 0), one.at_us)
    yield from ((one.number, "replaced", None) for one in listed if newest[one.session, one.kind] > one.at_us)


def _end_restated(known: Sequence[Known]) -> _Ends:
    """Yields what a newer statement of the kind says in nearly the same words, or with another number."""
    by_kind: dict[str, list[Known]] = {}
    for one in sorted(known, key=lambda one: (one.at_us, one.id)):
        by_kind.setdefault(one.kind, []).append(one)
    for some in by_kind.values():
        words = [_words(one.text, numbers=one.kind in ENDS) for one in some]
        often = Counter(chain.from_iterable(words))
        rank = {word: place for place, word in enumerate(sorted(often, key=often.__getitem__))}
        # Two such texts share one of the rarest words of each: of all but so many as may differ, and one more.
        later: dict[str, list[int]] = {}
        for place in reversed(range(len(some))):
            older, own = some[place], words[place]
            if len(own) < _FEWEST:
                continue
            rare = sorted(own, key=rank.__getitem__)[: len(own) - ceil(_SAME * len(own)) + 1]
            for at in sorted({at for word in rare for at in later.get(word, ())}):
                newer = some[at]
                if newer.at_us == older.at_us or older.speaker == "person" != newer.speaker:
                    continue
                if len(own & words[at]) >= _SAME * len(own | words[at]):
                    yield older.number, "replaced", newer.id
                    break
            for word in rare:
                later.setdefault(word, []).append(place)


@_kept
def _words(text: str, *, numbers: bool) -> frozenset[str]:
    """Returns the whole words of a statement; what holds may hold with another number, and a step is of its number."""
    text = text.casefold() if numbers else _NUMBER.sub(" ", text.casefold())
    return frozenset(_WORD.findall(text)) - COMMON


def _end_carried_out(known: Sequence[Known], outcomes: Sequence[Outcome]) -> _Ends:
    """Yields the steps, blockers and questions that a later session did: its words stand in a deed, or what it came to.

    A word counts the more, the fewer sessions of the project have it.
    """
    steps = [one for one in known if one.kind in ENDS]
    deeds = list(_deeds(outcomes))
    having: dict[str, list[int]] = {}
    sessions: dict[str, set[int]] = {}
    for place, (deed, words, _) in enumerate(deeds):
        for word in words:
            having.setdefault(word, []).append(place)
            sessions.setdefault(word, set()).add(deed.session)
    for one in known:
        for word in stems(one.text):
            sessions.setdefault(word, set()).add(one.session)
    count = len({one.session for one in known} | {one.session for one in outcomes}) + 2
    for step in steps:
        weights = {word: log(count / len(sessions[word])) for word in stems(step.text)}
        whole = sum(weights.values())
        shared = Counter(chain.from_iterable(having.get(word, ()) for word in weights))
        for place, alike in shared.items():
            deed, words, share = deeds[place]
            if deed.at_us <= step.at_us or deed.session == step.session or alike < min(_ALIKE, len(weights)):
                continue
            if len(weights) >= _FEWEST and sum(weights[word] for word in words & weights.keys()) >= share * whole:
                yield step.number, "done", None
                break


def _deeds(outcomes: Sequence[Outcome]) -> Iterator[tuple[Outcome, frozenset[str], float]]:
    """Yields what sessions did and came to, with the share of a step's words that end it; a deed where it is first."""
    told: set[str] = set()
    for one in sorted(outcomes, key=lambda one: (one.at_us, one.session)):
        for line in one.deeds.split("\n"):
            line = _NAMED.sub("", line)
            if line and (title := _NUMBERED.sub("", line)) not in told:
                told.add(title)
                yield one, stems(line), _DID
        if one.status in ("done", "open", None) and not _ONLY_ASKED.match(one.sentence):
            sentence = _LEFT.sub(" ", one.sentence)
            yield one, stems(sentence if one.status == "done" else ASKED.sub("", sentence)), _DONE


def _end_working(known: Sequence[Known], outcomes: Sequence[Outcome]) -> _Ends:
    """Yields the dead ends whose command worked later, or anywhere in their session."""
    worked = [(one.at_us, one.worked.split("\n")) for one in outcomes if one.worked]
    for one in known:
        tried = _TRIED.match(one.text) if one.kind == "tried" else None
        if tried and any(at_us >= one.at_us and tried[1] in commands for at_us, commands in worked):
            yield one.number, "done", None


def _apply_marks(known: Sequence[Known], marks: Iterable[Mark], own: Mapping[str, int]) -> _Ends:
    """Yields what a person or agent did last to a statement.

    What is stated again after it was done is open again; after it was said not to be true, only if a person states it.
    """
    last: dict[int, tuple[Known, Mark]] = {}
    for mark in sorted(marks, key=lambda one: (one.at_us, one.id)):
        last |= {one.number: (one, mark) for one in find_meant(known, mark)}
    for one, mark in last.values():
        again_us = own.get(one.id, mark.at_us) if mark.status == "withdrawn" else one.at_us
        if again_us <= mark.at_us:
            yield one.number, mark.status, None


def find_meant(known: Sequence[Known], mark: Mark) -> list[Known]:
    """Returns the statements that a mark is about: by id, or in nearly the same words.

    If it finds none, a newer digest has told its session otherwise: then one that is all in the other.
    """
    words = mark.words
    same = [(one, word_hashes(one.text)) for one in known if one.kind == mark.kind and len(words) >= _FEWEST]
    alike = [one for one, said in same if said and len(words & said) >= _SAME * len(words | said)]
    found = alike + [one for one in known if one.id == mark.id]
    return found or [
        one
        for one, said in same
        if one.session == mark.session and len(words & said) >= max(_FEWEST, min(len(words), len(said)))
    ]


@_kept
def word_hashes(text: str) -> frozenset[str]:
    """Returns hashes of the content words of a text: four characters each, which say no word."""
    return frozenset(b32encode(sha256(one.encode()).digest()[:5])[:4].decode("ascii").lower() for one in stems(text))
