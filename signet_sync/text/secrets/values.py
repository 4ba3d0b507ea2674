"""Distinguishes a secret value from a placeholder, a word, a number, a piece of code.

A name decides how much a value has to prove (`Proof`). Whatever the name, a stand-in for a secret is none: variables,
templates, samples, calls, our own marks.
"""

from __future__ import annotations

import binascii
import re
from base64 import b64decode
from enum import IntEnum, auto
from functools import lru_cache

from signet_sync.formats.timestamps import iso
from signet_sync.text.secrets.tables import SHAPES, set_of

_DIGITS = str.maketrans("JKMNPQRSTVWXYZ", "IJKLMNOPQRSTUV")  # Crockford's base 32 as `int` reads it


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
    if "@" in value and SHAPES.mail_address.fullmatch(value):
        return True
    return is_vocabulary(value)


def is_vocabulary(value: str) -> bool:
    """Returns whether a value has only words of labels and documentation."""
    if len(value) > 80:
        return False
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
    if not any(map(str.isalpha, value)) or not value.isascii() or _is_event_token(value):
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
    if SHAPES.path.fullmatch(value) and not is_drawn(value):
        return False
    return (len(value) >= 10 and _is_random(value)) or (len(value) >= 8 and words and _is_odd(value))


def _is_event_token(value: str) -> bool:
    """Returns whether a value is the name of an event of ours: the time in its ULID is the one before it."""
    match = SHAPES.event_token.fullmatch(value)
    if match is None:
        return False
    milliseconds = int(match[2].translate(_DIGITS), 32)
    return iso(milliseconds * 1000)[:19].replace("-", "").replace(":", "") + "Z" == match[1]


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
    if proof is not Proof.KEY and where is Where.QUOTED and is_diceware(value):
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
