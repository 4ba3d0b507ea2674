"""Finds names of secrets, and tells whether a value under one is a secret.

A name decides how much a value has to prove (`Proof`). Whatever the name, a stand-in for a secret is none: variables,
templates, samples, calls, a placeholder, a word, a number, a piece of code, our own marks.
"""

import binascii
import re
from base64 import b64decode
from collections.abc import Iterator
from enum import IntEnum, auto
from functools import cache, lru_cache
from itertools import chain
from typing import NamedTuple

from signet_sync.text.secrets.searched_text import SHAPES, SearchedText, list_section, set_of

# ── values ──


class Proof(IntEnum):
    """How much a value must prove: the clearer the name, the less."""

    PASSWORD = auto()  # an unambiguous name of a password: anything that is no placeholder
    SECRET = auto()  # a name without other meanings: `client_secret`, `api_key`, `access_token`
    TOKEN = auto()  # a word with other meanings: `token`, `auth`, `secret`
    ODD = auto()  # a name that goes on: `password_secure`
    KEY = auto()  # `key`, which may mean anything


class Where(IntEnum):
    """How a value is written, which decides where it ends and what else it could be."""

    QUOTED = auto()
    LINE = auto()  # alone on its line after `=`, as in .env, INI, properties
    FIELD = auto()  # alone on its line after `:`, as in YAML
    CODE = auto()  # anywhere else
    GIVEN = auto()  # where only a value is possible: after an option, in a header, in a table, after a prompt


@lru_cache(maxsize=512)
def is_placeholder(value: str) -> bool:
    """Returns whether a value is a stand-in for a secret: a variable, a template, a sample."""
    if SHAPES.reference.match(value) or value.endswith(("...", "…")) or SHAPES.anywhere.search(value):
        return True
    if value[:1] == "/" and "/" in value[1:] and not is_drawn(value):
        return True
    if len(set(value)) < 4 and len(value) > 3 and not value.isdigit():
        return True
    return is_vocabulary(value)


def is_vocabulary(value: str) -> bool:
    """Returns whether a value has only words of labels and documentation."""
    return not SHAPES.vocabulary.sub("", value.replace("%20", " ").replace("%3A", ":")).strip(" \t-_.:/!?,;()'\"")


def decode_base64(text: str) -> bytes:
    """Decodes base64 of either alphabet, cut to whole groups; b"" if it is none."""
    text = text.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return b64decode(text[: len(text) // 4 * 4])
    except binascii.Error:
        return b""


def is_mixed(text: str) -> bool:
    """Returns whether a text has both cases and digits."""
    return all(kind.search(text) for kind in (SHAPES.lower, SHAPES.upper, SHAPES.digit))


def looks_random(value: str) -> bool:
    """Returns whether the letters of a value form no words: nearly half of their pairs are rare in words."""
    letters = "".join(filter(str.isalpha, value)).lower()
    pairs = set_of("pairs")
    common = sum(letters[at : at + 2] in pairs for at in range(len(letters) - 1))
    return common < 0.6 * (len(letters) - 1)


@lru_cache(maxsize=512)
def is_drawn(value: str) -> bool:
    """Returns whether a program drew a value at random: letters and digits mixed, and no words among them."""
    least = 24 if SHAPES.dotted.fullmatch(value) else 8
    return len(value) >= least and _is_random(value) and looks_random(value)


def _is_random(value: str) -> bool:
    """Returns whether a value mixes letters and digits and has at least six different characters."""
    return len(set(value)) >= 6 and any(map(str.isdigit, value)) and any(map(str.isalpha, value))


def _is_number(value: str) -> bool:
    return SHAPES.numbers.fullmatch(value) is not None


def _is_odd(value: str) -> bool:
    """Returns whether there is a digit or a strong mark within."""
    return SHAPES.odd.search(value, 0, len(value) - 1) is not None


def is_password(value: str, where: Where) -> bool:
    """Returns whether a value may be a password under a password's name."""
    if len(value) < 4 or is_placeholder(value):
        return False
    if " " in value:
        # A label, unless one of its words cannot be part of one, or all are words of a dictionary.
        return where is Where.QUOTED and (
            any(len(word) > 4 and is_password(word, Where.CODE) for word in value.split(" ")) or is_diceware(value)
        )
    if value.isalpha() and (SHAPES.own_type.search(value) or (_is_type_name(value) and SHAPES.own_word.search(value))):
        return False
    if value.isdigit():
        return len(value) >= 6 and where in (Where.QUOTED, Where.LINE, Where.GIVEN)
    if is_drawn(value):
        return True
    if where is Where.CODE and len(value) >= 12 and value.isalpha() and looks_random(value):
        return True
    if where is Where.CODE and SHAPES.code.fullmatch(value) and not _is_random(value):
        return False
    if _is_number(value) or not any(map(str.isalpha, value)):
        return where is Where.QUOTED and len(value) >= 6 and not _is_number(value) and len(set(value)) > 5
    if not value.isascii() and all(c.isalpha() or c in "-_ :" for c in value):
        return False
    if SHAPES.words.fullmatch(value):
        if value.isalnum() and value[-1].isdigit():
            return len(value) >= 6
        if SHAPES.path.fullmatch(value):
            return False
        if value[-1] == "!" and where is not Where.CODE:
            return len(value) >= 6
        if where is Where.QUOTED or where is Where.LINE:
            return len(value) >= (8 if where is Where.QUOTED or _is_type_name(value) else 7) and not value.endswith(
                (".", ":")
            )
        if where is Where.FIELD or where is Where.GIVEN:
            return (
                len(value) >= (8 if where is Where.FIELD else 7)
                and value.isascii()
                and not set(value) & set(".:/")
                and (not _is_type_name(value) or len(SHAPES.camel.findall(value)) == 2 or where is Where.GIVEN)
            )
        return value.isalpha() and len(value) >= 8 and looks_random(value)
    return len(value) >= (6 if where is not Where.QUOTED else 5) and _is_odd(value)


def _is_type_name(value: str) -> bool:
    """Returns whether a value is the name of a type or a variable: `SecretStr`, `userPassword`, `accessToken`."""
    return not value.islower() and not value.isupper() and not looks_random(value)


def is_token(value: str, where: Where, *, least: int = 8, words: bool = False) -> bool:
    """Returns whether a value may be a token under a token's name; `words`: the name is so clear that words count."""
    if len(value) < least or " " in value or is_placeholder(value) or "://" in value:
        return False
    if value.isdigit():
        return words and len(value) >= 17
    if len(set(value)) < 5 or SHAPES.session_token.fullmatch(value) or _is_number(value):
        return False
    if not any(map(str.isalpha, value)) or not value.isascii() or SHAPES.event_token.fullmatch(value):
        return False
    if is_drawn(value):
        return True
    if SHAPES.words.fullmatch(value):
        if looks_random(value) and len(value) >= (12 if value.isalpha() else 16):
            return True
        if value.isalpha():
            return words and len(value) >= 10 and where in _SURE and not _is_type_name(value)
        return (
            words
            and len(value) >= 10
            and (where in _SURE or (where is Where.FIELD and len(value) >= 12 and is_phrase(value)))
            and not set(value) & set(".:/")
        )
    if (
        where in (Where.CODE, Where.FIELD)
        and SHAPES.code.fullmatch(value)
        and not (_is_random(value) and len(SHAPES.change.findall(value)) > 2 and "." not in value)
    ):
        return False
    return (len(value) >= 10 and _is_random(value)) or (len(value) >= 8 and words and _is_odd(value))


_SURE = (Where.QUOTED, Where.LINE, Where.GIVEN)
_DIGESTS = (32, 40, 48, 64)


def is_key(value: str) -> bool:
    """Returns whether a value under a bare `key` cannot be anything else: long, of both cases and digits."""
    return (
        len(value) >= 20
        and not SHAPES.hex.fullmatch(value)
        and (is_mixed(value) or looks_random(value))
        and is_token(value, Where.CODE)
        and not SHAPES.uuid.fullmatch(value)
    )


@lru_cache(maxsize=512)
def fits(value: str, proof: Proof, where: Where) -> bool:
    """Returns whether a value may be the secret that its name indicates."""
    if proof is not Proof.KEY and (where in _SURE or "_" not in value) and is_phrase(value):
        return True
    if proof is Proof.PASSWORD:
        return is_password(value, where)
    if proof is Proof.SECRET:
        if " " in value:
            return is_password(value, where)
        return is_token(value, where, words=True)
    if proof in (Proof.ODD, Proof.TOKEN):
        return is_token(value, where, least=8 if is_mixed(value) else 10)
    return is_key(value) or (
        where is Where.QUOTED and len(value) in _DIGESTS and SHAPES.hex.fullmatch(value) is not None
    )


def is_diceware(value: str) -> bool:
    """Returns whether a value is four plain words or more, as of a list to draw from: «correct horse battery staple»."""
    parts = value.split(" ")
    return (
        3 < len(parts) < 9
        and value.replace(" ", "").isalpha()
        and value.islower()
        and value.isascii()
        and all(3 < len(part) < 10 and not is_vocabulary(part) for part in parts)
        and SHAPES.sentence_word.search(value) is None
    )


@lru_cache(maxsize=512)
def is_compound(value: str) -> bool:
    """Returns whether a value is a compound word of natural language."""
    return SHAPES.compound.search(value) is not None and not any(map(str.isdigit, value))


@lru_cache(maxsize=512)
def is_phrase(value: str) -> bool:
    """Returns whether a value is words joined by `-` or `_` as in no natural language: `lantern-orbit-walrus`."""
    return (
        len(value) >= 12
        and value.count("-") + value.count("_") > 1
        and all(part.isalnum() and part.isascii() for part in re.split("[-_]", value))
        and not SHAPES.compound.search(value)
        and not (value.isupper() and "_" in value)
        and not is_placeholder(value)
    )


@lru_cache(maxsize=512)
def cannot_be_word(value: str) -> bool:
    """Returns whether a value in a sentence cannot be a word: letters with digits or marks among them."""
    value = value.strip("*_`'\"()")
    if len(value) < 6 or (value.isalpha() and (len(value) < 12 or (value.islower() and len(value) < 16))):
        return False
    if is_placeholder(value) or _is_number(value) or "\\" in value or not any(map(str.isalpha, value)):
        return False
    if len(value) >= 12 and is_drawn(value):
        return True
    if SHAPES.words.fullmatch(value):
        return len(value) >= 12 and looks_random(value)
    if (SHAPES.path.fullmatch(value) and not is_drawn(value)) or (
        SHAPES.code.fullmatch(value) and not _is_random(value)
    ):
        return False
    return _is_odd(value) and not SHAPES.formula.fullmatch(value)


def is_no_word(value: str) -> bool:
    """Returns whether a value in a sentence is no word, and no words that a language joins."""
    return cannot_be_word(value) or is_phrase(value)


# ── names ──


class Name(NamedTuple):
    """A secret's name in a text: `start` is where the whole identifier begins."""

    start: int
    end: int
    proof: Proof


# The patterns of names by the literals of which a text with such a name holds one. A group of the pattern tells the stem
# of the name; each begins with a rare letter, because `re` skips from one to the next: what precedes it is examined then.
_STEMS = {
    "pass": "names_pass", "pw": "names_pw", "key": "names_key", "token": "names_key", "kennwort": "names_key",
    "secret": "names_secret", "cred": "names_secret", "contrase": "names_contrasena", "auth": "names_auth",
}  # fmt: skip
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
    for literal, pattern in ((" as ", "used_as"), (" als ", "used_als")):
        uses = (match.start() for match in searched.matches(getattr(SHAPES, pattern), (literal,)))
        found.uses.extend(uses)
    stems = searched.likely(tuple(_STEMS))
    for pattern in dict.fromkeys(pattern for stem, pattern in _STEMS.items() if stem in stems):
        for match in getattr(SHAPES, pattern).finditer(searched.low):
            at = match.start()
            # The output of a test runner.
            if searched.text.startswith("PASS:", at) and searched.low[at - 1 : at] not in _BEFORE_PASS:
                continue
            stem = match.lastgroup or ""
            one = _find_name(searched, stem, match, at - _BACK.get(stem, 0))
            if one is not None:
                found.names.append(one)
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
def _latin() -> tuple[str, ...]:
    """Returns the labels that a text in Latin-1 may hold, as whole words."""
    return tuple(f" {label} " for label in filter(SHAPES.latin.fullmatch, _labels()))


def _list_other_languages(searched: SearchedText) -> Iterator[Name]:
    text, low, beyond = searched.text, searched.low, frozenset(searched.beyond)
    proofs, others = _labels(), _foreign() if beyond else {}
    # A text seldom has all letters of one.
    held = tuple(label for label, (_, letters) in others.items() if letters <= beyond and label in text)
    foreign = _one_of(held).finditer(text) if held else ()
    spelled = ((place, label[1:-1]) for label in searched.likely(_latin()) for place in searched.places(label[1:-1]))
    for place, label in chain(((found.start(), found[0]) for found in foreign), spelled):
        end, proof = place + len(label), others[label][0] if label in others else proofs[label]
        latin = label[0] < "\u0370"
        if latin and (low[place - 1 : place].isalpha() or text[end : end + 1].isalnum()):
            continue
        more = SHAPES.more.match(text, end) if label[0] < "\u2e80" else None
        if proof is Proof.KEY:
            near = text[max(0, place - 16) : more.end() if more else end + 4].lower()
            if not any(word in near for word in list_section("qualifying")):
                continue
            proof = Proof.SECRET
        yield Name(place, more.end() if more else end, proof)


def _find_name(searched: SearchedText, stem: str, match: re.Match[str], at: int) -> Name | None:
    low = searched.low
    before = low[max(0, at - 48) : at]
    start = at - len(before) + len(before.rstrip(_NAME))
    if start and low[start - 1 : start] == "\\" and low[start : start + 1] in ("n", "r", "t"):
        start += 1
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
    of_vendor = word in set_of("vendors") or word in set_of("vendors of many names")
    if of_vendor or (word.endswith(owners) and (stem == "token" or word in owners or len(word) > 5)):
        return Proof.SECRET
    if stem == "key":
        # What a vendor is named for is the vendor's: «Sending to the geocode API, key=…».
        proof = Proof.KEY if set_of("vendors").isdisjoint(SHAPES.plain_words.findall(before)) else Proof.TOKEN
        return proof if joined or not word or text[at : at + 1] == "K" else None
    name = text[start : at + 5]
    return Proof.SECRET if joined and name.isupper() and "_" in name else Proof.TOKEN
