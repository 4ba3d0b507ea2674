"""Finds names of secrets, and how much a value under each has to prove."""

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from itertools import chain
from typing import NamedTuple

from signet_sync.text.secrets.searched_text import ByEnds, SearchedText
from signet_sync.text.secrets.tables import SHAPES, list_section, set_of
from signet_sync.text.secrets.values import Proof


class Name(NamedTuple):
    """A secret's name in a text: `start` is where the whole identifier begins."""

    start: int
    end: int
    proof: Proof


# The patterns of names by the literals of which a text with such a name holds one. A group of the pattern tells the stem
# of the name; each begins with a rare letter, because `re` skips from one to the next: what precedes it is examined then.
_STEMS = ByEnds(
    (literal, f"names_{name}")
    for name, literals in {
        "pass": ("pass",),
        "pw": ("pw",),
        "key": ("key", "token", "kennwort"),
        "secret": ("secret", "cred"),
        "contrasena": ("contrase",),
        "auth": ("auth",),
    }.items()
    for literal in literals
)
# What a value is used as.
_USED = ByEnds((name, name) for name in "password passwd passwort passphrase token secret key pwd credential".split())
# How far before its match a stem begins.
_BACK = {"token": 2, "secret": 2}
_WORD = "abcdefghijklmnopqrstuvwxyz0123456789"
_NAME = _WORD + "_.-$"
# Before `PASS:` that is no result of a test: «ID:master/PASS:…».
_BEFORE_PASS = frozenset(_NAME + "/,")
_JOINTS = "_-. "
_LATIN = frozenset(map(chr, range(256)))


class Words(NamedTuple):
    """The secrets' names in a text, and the positions where a value may be said to be used «as the token»."""

    names: list[Name]
    uses: list[int]


def words(searched: SearchedText) -> Words:
    """Returns the secrets' names and the marks of a text; computed once for each page."""
    if searched.words is None:
        searched.words = _words(searched)
    found: Words = searched.words
    return found


def _words(searched: SearchedText) -> Words:
    found = Words([], [])
    for literal, pattern in ((" as ", "used_as"), (" als ", "used_als")) if _USED.may_be_in(searched.ends) else ():
        uses = (match.start() for match in searched.matches(getattr(SHAPES, pattern), (literal,)))
        found.uses.extend(
            place
            for place in uses
            if _is_used(searched.low, place) and not searched.is_crowded("use", max(0, place - 200))
        )
    for pattern_name in dict.fromkeys(_STEMS.may_be_in(searched.ends)):
        for match in getattr(SHAPES, pattern_name).finditer(searched.low):
            at = match.start()
            # The output of a test runner.
            if searched.text.startswith("PASS:", at) and searched.low[at - 1 : at] not in _BEFORE_PASS:
                continue
            if searched.is_crowded("name", at):
                continue
            stem = match.lastgroup or ""
            name = _find_name(searched, stem, match, at - _BACK.get(stem, 0))
            if name is not None:
                found.names.append(name)
    found.names.extend(_list_other_languages(searched))
    return found


@cache
def _labels() -> dict[str, Proof]:
    """Returns what each label of `labels.txt` proves."""
    return {
        **dict.fromkeys(list_section("password"), Proof.PASSWORD),
        **dict.fromkeys(list_section("token"), Proof.SECRET),
        **dict.fromkeys(list_section("key"), Proof.KEY),
    }


@cache
def _foreign() -> dict[str, tuple[Proof, frozenset[str]]]:
    """Returns the labels that no text in Latin-1 holds, as they are spelled, with their letters beyond it."""
    found = {
        form: (proof, frozenset(form) - _LATIN)
        for label, proof in _labels().items()
        if not SHAPES.latin.fullmatch(label)
        for form in (label, label.capitalize(), label.upper())
    }
    return dict(sorted(found.items(), key=lambda one: -len(one[0])))


@lru_cache(maxsize=64)
def _one_of(labels: tuple[str, ...]) -> re.Pattern[str]:
    """Returns the pattern of some labels; at each place the longest counts."""
    return re.compile("|".join(map(re.escape, labels)))


@cache
def _latin() -> ByEnds[str]:
    """Returns the labels that a text in Latin-1 may hold."""
    return ByEnds((f" {label} ", label) for label in filter(SHAPES.latin.fullmatch, _labels()))


def _list_other_languages(searched: SearchedText) -> Iterator[Name]:
    text, low, beyond = searched.text, searched.low, frozenset(searched.beyond)
    proofs, others = _labels(), _foreign() if beyond else {}
    # A text seldom has all letters of one.
    held = tuple(label for label, (_, letters) in others.items() if letters <= beyond and label in text)
    foreign = _one_of(held).finditer(text) if held else ()
    spelled = ((place, label) for label in _latin().may_be_in(searched.ends) for place in searched.places(label))
    for place, label in chain(((found.start(), found[0]) for found in foreign), spelled):
        if searched.is_in_crowd(place):
            continue
        end, proof = place + len(label), others[label][0] if label in others else proofs[label]
        latin = label[0] < "\u0370"
        if latin and (low[place - 1 : place].isalpha() or text[end : end + 1].isalnum()):
            continue
        if searched.is_crowded("label", place):
            continue
        more = SHAPES.more.match(text, end) if label[0] < "\u2e80" else None
        if proof is Proof.KEY:
            near = text[max(0, place - 16) : more.end() if more else end + 4].lower()
            if not any(word in near for word in list_section("qualifying")):
                continue
            proof = Proof.SECRET
        yield Name(place, more.end() if more else end, proof)


def _is_used(low: str, place: int) -> bool:
    # Such words are often used in other meanings.
    used = low[max(0, place - 48) : place].rpartition(" ")
    return not used[2].isalpha() or used[0].endswith(list_section("uses"))


def _find_name(searched: SearchedText, stem: str, match: re.Match[str], at: int) -> Name | None:
    low = searched.low
    before = low[max(0, at - 48) : at]
    if before.endswith("::"):
        return None
    start = at - len(before) + len(before.rstrip(_NAME))
    if start and low[start - 1 : start] == "\\" and low[start : start + 1] in ("n", "r", "t"):
        start += 1
    # A map of types: `"AWS::IAM::AccessKey": "…"`.
    if low[start - 2 : start] == "::" and low[match.end() : match.end() + 1] == "'":
        return None
    proof = _proof(stem, before, match, searched, start, at)
    if proof is not None:
        proof = _prove_tail(proof, low[at : match.end()])
    return None if proof is None else Name(start, match.end(), proof)


@lru_cache(maxsize=512)
def _prove_tail(proof: Proof, word: str) -> Proof | None:
    """Returns what a value has to prove if the name goes on: `password_secure`; None for `password_url`."""
    more = [part for part in SHAPES.parts.findall(word) if not part.isdigit() and part not in list_section("tails")]
    if not more:
        return proof
    return None if any(part in list_section("no tails") for part in more) else max(proof, Proof.ODD)


@cache
def _makers() -> frozenset[str]:
    return set_of("vendors") | set_of("vendors of many names")


def _proof(stem: str, before: str, match: re.Match[str], searched: SearchedText, start: int, at: int) -> Proof | None:
    text = searched.text
    if stem == "pass":
        is_word = text[at : at + 1] == "P" and text[at - 1 : at].islower()
        owned = not before[-1:].isalpha() or is_word or before.endswith(list_section("pass owners"))
        return Proof.PASSWORD if match["sure"] or owned else None
    if stem == "pwd":
        return Proof.PASSWORD
    if stem == "secret":
        after_number = match.end() - at <= 6 and before.endswith(":") and before[-2:-1].isdigit()
        return None if after_number else Proof.SECRET
    if stem in ("cred", "auth"):
        return None if before[-1:].isalpha() else Proof.TOKEN
    owner = before.rstrip(_JOINTS)
    joined = len(owner) < len(before)
    last = SHAPES.camel.findall(text[at - len(before) : at].rstrip(_JOINTS))[-1:]
    if "".join(last).lower() in set_of(f"no {stem} owners"):
        return None
    word, owners = owner[len(owner.rstrip(_WORD)) :], list_section(f"{stem} owners")
    if (word.endswith(owners) and (stem == "token" or word in owners or len(word) > 5)) or word in _makers():
        return Proof.SECRET
    if stem == "key":
        # What a vendor is named for is the vendor's: «Sending to the geocode API, key=…».
        proof = Proof.KEY if set_of("vendors").isdisjoint(SHAPES.plain_words.findall(before)) else Proof.TOKEN
        return proof if joined or not word or text[at : at + 1] == "K" else None
    name = text[start : at + 5]
    return Proof.SECRET if joined and name.isupper() and "_" in name else Proof.TOKEN
