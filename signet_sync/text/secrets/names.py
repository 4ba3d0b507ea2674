"""Finds names of secrets, and how much a value under each has to prove."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from itertools import chain
from typing import NamedTuple

from signet_sync.formats.lazy_pattern import late
from signet_sync.text.secrets.labels import listed, vendors
from signet_sync.text.secrets.searched_text import SearchedText, first_word, words_of
from signet_sync.text.secrets.values import CAMEL, Proof


class Name(NamedTuple):
    """A secret's name in a text: `start` is where the whole identifier begins."""

    start: int
    end: int
    proof: Proof


# What may follow: `PASSWORD_PROD`, `apiKey2`; `_tail_of` says which words make it another name.
_TAIL = r"(?:[_.-]?(?:\d{1,3}|val(?:ue)?|text|str(?:ing)?|plain(?:text)?|raw|base|test|new|old|b64|env|data)|[_-][a-z0-9]{2,16}){0,2}(?![a-z0-9_]|-[a-z])"
# What must follow, roughly, so that hardly any word of a text is examined twice: what joins a name to a value that is
# long enough, `is`, or after a space something with a digit or a mark in it.
_VERBS = (
    r"(?:is|was|are|ist|lautet|hei.t|hie.|war|to|auf|wird|reads|be|for|von|vom|f.rs?|of|equals|der|des|dem|you|we"
    r"|daf.r|dazu|should|must|will|can|has|again|here|eingeben|wiederholen|best.tigen|es|est|era|ser.|\xe9|\xe8|jest|de|del|della|du)"
)
# More words follow: the sentence does not give a value.
_NO_SENTENCE = r"(?![ ](?!" + _VERBS + r"[ :\xbb\"'])[a-z]{1,13}[ .,\n](?!:?=))"
_LEADS = (
    _NO_SENTENCE + r"(?=[\\\"'`*_\]]{0,12}(?:\[\d{0,4}\])?[ \t]{0,40}+"
    r"(?:[:=<!?+|\xbb-]{1,3}>?=?[ \t*_]{0,40}(?:[?][ ]|!!?[a-z]{2,12}[ ])?"
    r"(?:[^\s]{6}|[^\s]{2,5}[ ]/[ ]|[rbfu]?[\\\"'`]|[|>]|[a-z.\[\]&*|\t ]{1,40}=[ \t]*(?:[^\s]{6}|[rbfu]?[\\\"'`])|.{0,3}(?:\n|$))"
    r"|[>(\[|]|&gt;|</|[ ]?\?[ ]?(?:\?[ ]?)?[!-~]|,[ ]?[\"']|[ \t]*\n[ ]{1,8}[^\n]{0,200}?input_value=|[ \t]?\n[ \t>|]{0,8}(?:is|ist)[ ]|(?<=[\\\"'`\]]),[ \t]*[a-z\\\"']|,[^()\n]{0,60}default|,[a-z_]{2,24}[,\n]|\{|or[ ]|\)[ ]{0,4}(?:or|\.|[|?])"
    r"|(?<=[ \t])(?:" + _VERBS + r"\b|[\\\"'`]|[^\s]{0,40}?[0-9!#$%^&@~]|[^\s]{14}|[a-z:\[\]&*.]{1,24}[ \t]?:?=)"
    r"|[\\\"',; \t/>]{0,12}(?:[\s+>|]|\\{1,4}[nrt]){0,40}[\\\"'-]{0,8}(?:parameter)?(?:value|val|default|content)))"
)
# What is redacted is no value: `password=[REDACTED:assignment]` of an earlier round.
_ENDS = _NO_SENTENCE + _TAIL + r"(?![\"']?[ ]?[:=][ ]?[\"']?\[redacted:)" + _LEADS
# Headers and calls for `marked` are found along the way. Each pattern begins with a rare letter, because `re` skips
# from one to the next; what precedes it is examined then. `start` is how far before that the name's word begins.
_STEMS: tuple[tuple[tuple[str, ...], re.Pattern[str], dict[str | None, tuple[str, int]]], ...] = (
    (
        ("pass",),
        late(
            r"pass(?P<commands>(?<=requirepass)[ ]|(?:phrase)(?<=wpa_passphrase)[ ]|wd(?<=htpasswd)[ ])|pass(?P<sure>w(?:or[dt]|d)|[ ]?phrase|code|wd)?(?:e(?<=mot de passe))?"
            + _ENDS
        ),
        {"sure": ("pass", 0), None: ("pass", 0)},
    ),
    (
        ("pw",),
        late(r"pw(?:(?P<commands>(?<=rootpw)[ ])|(?P<sure>d|(?<![a-z]pw))" + _ENDS + r")"),
        {"sure": ("pwd", 0)},
    ),
    (
        ("key", "token", "kennwort", "cookie"),
        late(
            r"k(?:(?P<token>en(?<=token))|(?P<key>ey(?:(?<=[a-z0-9_. -]key)|(?=(?:[^\w\n]{1,16}|[^\n]{1,24}?[\"'=> ])[a-z0-9+/=_-]{20})))|(?P<sure>ennwort))"
            + _ENDS
            + r"|k(?P<cookie>ie(?<=cookie))"
        ),
        {"token": ("token", 2), "key": ("key", 0), "sure": ("pwd", 0)},
    ),
    (
        ("secret", "cred"),
        late(
            r"cre(?:(?P<secret>t(?<=secret)(?:[_. -]?(?:access[_. -]?)?key(?:[_. -]?base)?)?)|(?P<cred>d(?:ential)?s?))"
            + _ENDS
            + r"|cre(?:(?P<logins>d(?:ential)?s[ :(])|t(?P<commands>(?<=gh[ ]secret)[ ]set[ ]))"
        ),
        {"secret": ("secret", 2), "cred": ("cred", 0)},
    ),
    (("contrase",), late(r"contrase(?P<sure>(?:n|\xf1|\xd1)a)" + _ENDS), {"sure": ("pwd", 0)}),
    (
        ("securestring", "connection(", "codecov "),
        late(r"c(?:(?P<securestring>ure(?<=secure)string)|(?P<logins>onnection\()|(?P<commands>odecov[ ]-t[ ]))"),
        {},
    ),
    (
        ("auth",),
        late(
            r"auth(?P<authorization>orization(?<![a-z]authorization))(?!\w)"
            r"|auth(?P<logins>(?:entication)?[\"']?(?:[ ]?[=:][ ]?)?[(\[][ ]{0,4}[\"'\\])"
            r"|auth(?P<commands>(?:(?<=snyk[ ]auth)|token(?<=ngrok[ ]authtoken)|(?<=masterauth))[ ])"
            r"|auth(?:orization|entication|_?data|_?string|_?code)?" + _ENDS
        ),
        {None: ("auth", 0)},
    ),
)
_WORD = "abcdefghijklmnopqrstuvwxyz0123456789"
_NAME = _WORD + "_.-$"
_IN_NAME = frozenset(_NAME)
_JOINTS = "_-. "

# «Use X as the token»: the value precedes.
_AS = (
    r"(?:(?:the|an?|my|your|our|this|das|dein|mein|unser)[ ])?(?:[a-z0-9_-]{1,24}[ ])?[a-z0-9_-]{0,24}"
    r"(?:pass(?:word|wd|wort|phrase)|token|secret"
    r"|(?:api|access|auth|private|secret|signing|encryption)[ _-]?key|pwd|credential)(?![a-z])"
)

_USED_AS = {" as ": late("[ ]as[ ]" + _AS), " als ": late("[ ]als[ ]" + _AS)}

# How far before its anchor a mark begins.
_MARKS = {"authorization": 0, "cookie": 3, "securestring": 2, "logins": 0, "commands": 24}


class Words(NamedTuple):
    """What a text's words lead to: secrets' names, and the positions of words that are marks of other rules."""

    names: list[Name]
    uses: list[int]
    marks: list[tuple[str, int]]


def words(searched: SearchedText) -> Words:
    """Returns the secrets' names and the marks of a text; computed once for each page."""
    if searched.words is None:
        searched.words = _words(searched)
    found: Words = searched.words
    return found


def _words(searched: SearchedText) -> Words:
    found = Words([], [], [])
    low = searched.low
    for literal, pattern in _USED_AS.items():
        uses = (match.start() for match in searched.matches(pattern, (literal,)))
        found.uses.extend(
            place for place in uses if _is_used(low, place) and not searched.is_crowded("use", max(0, place - 200))
        )
    for literals, pattern, stems in _STEMS:
        for match in searched.matches(pattern, literals):
            group = match.lastgroup
            if group is not None and group in _MARKS:
                found.marks.append((group, match.start() - _MARKS[group]))
                continue
            at = match.start()
            # The output of a test runner.
            if searched.text.startswith("PASS:", at) and low[at - 1 : at] not in _IN_NAME:
                continue
            if searched.is_crowded("name", at):
                continue
            if group == "cred":
                found.marks.append(("logins", match.start()))
            stem, back = stems[group] if group in stems else stems[None]
            name = _named(searched, stem, match, match.start() - back)
            if name is not None:
                found.names.append(name)
    found.names.extend(_in_other_languages(searched))
    return found


@cache
def _labels() -> tuple[dict[str, Proof], re.Pattern[str], frozenset[str]]:
    """Returns what a label of `labels.txt` proves; a pattern of those that no text in Latin-1 holds, their letters."""
    proofs = {
        **dict.fromkeys(listed("password"), Proof.PASSWORD),
        **dict.fromkeys(listed("token"), Proof.SECRET),
        **dict.fromkeys(listed("key"), Proof.KEY),
    }
    others = [label for label in proofs if not _LATIN.fullmatch(label)]
    spelled = {form for label in others for form in (label, label.capitalize(), label.upper())}
    pattern = re.compile("|".join(map(re.escape, sorted(spelled, key=len, reverse=True))))
    return proofs, pattern, frozenset("".join(spelled)) - frozenset(map(chr, range(256)))


@cache
def _latin() -> dict[bytes, tuple[str, ...]]:
    """Returns the labels that a text in Latin-1 may hold, by their first word."""
    found: dict[bytes, tuple[str, ...]] = {}
    for label in filter(_LATIN.fullmatch, _labels()[0]):
        found[first_word(label)] = (*found.get(first_word(label), ()), label)
    return found


_LATIN = late(r"[\x00-\xff]+")
# Qualifying words, and what the secret is for: «contraseña maestra actual», «mot de passe de la base».
_MORE = late(
    r"(?:[ ’'-]{{1,2}}[^\W\d_]{{1,16}}){{1,5}}?(?=[ \t]{{0,4}}(?:[:=(]|[–—-][ ])|[ ](?:{})[ :])".format(
        "|".join(listed("is"))
    ),
    re.I,
)


def has_label(text: str, low: str) -> bool:
    """Returns whether a label of another language than English or German is in a text."""
    return not words_of(low).isdisjoint(_latin()) or (not text.isascii() and _labels()[1].search(text) is not None)


def _in_other_languages(searched: SearchedText) -> Iterator[Name]:
    proofs, others, letters = _labels()
    text, low = searched.text, searched.low
    foreign = () if letters.isdisjoint(searched.beyond) else others.finditer(text)
    spelled = (
        (place, label)
        for word in _latin().keys() & searched.every_word
        for label in _latin()[word]
        for place in searched.places(label)
    )
    for place, label in chain(((found.start(), found[0]) for found in foreign), spelled):
        if searched.is_in_crowd(place):
            continue
        label = label.lower()
        end, proof = place + len(label), proofs[label]
        latin = label[0] < "\u0370"
        if latin and (low[place - 1 : place].isalpha() or text[end : end + 1].isalnum()):
            continue
        if searched.is_crowded("label", place):
            continue
        more = _MORE.match(text, end) if label[0] < "\u2e80" else None
        if proof is Proof.KEY:
            near = text[max(0, place - 16) : more.end() if more else end + 4].lower()
            if not any(word in near for word in listed("qualifying")):
                continue
            proof = Proof.SECRET
        yield Name(place, more.end() if more else end, proof)


def _is_used(low: str, place: int) -> bool:
    # Such words are often used in other meanings.
    used = low[max(0, place - 48) : place].rpartition(" ")
    return not used[2].isalpha() or used[0].endswith(listed("uses"))


def _named(searched: SearchedText, stem: str, match: re.Match[str], at: int) -> Name | None:
    low = searched.low
    before = low[max(0, at - 48) : at]
    if before.endswith("::"):
        return None
    start = at - len(before) + len(before.rstrip(_NAME))
    if start and low[start - 1 : start] == "\\" and low[start : start + 1] in ("n", "r", "t"):
        start += 1
    # A map of types: `"AWS::IAM::AccessKey": "…"`.
    if low[start - 2 : start] == "::" and low[match.end() : match.end() + 1] in (b'"', "'"):
        return None
    proof = _proof(stem, before, match, searched, start, at)
    if proof is not None:
        proof = _of_tail(proof, low[at : match.end()])
    return None if proof is None else Name(start, match.end(), proof)


@lru_cache(maxsize=512)
def _of_tail(proof: Proof, word: str) -> Proof | None:
    """Returns what a value has to prove if the name goes on: `password_secure`; None for `password_url`."""
    more = [part for part in _PARTS.findall(word) if not part.isdigit() and part not in listed("tails")]
    if not more:
        return proof
    return None if any(part in listed("no tails") for part in more) else max(proof, Proof.ODD)


_PARTS = late(r"(?<=[a-z0-9][_-])[a-z0-9]+")


def _proof(stem: str, before: str, match: re.Match[str], searched: SearchedText, start: int, at: int) -> Proof | None:
    if stem == "pwd" or (stem == "pass" and match["sure"]):
        return Proof.PASSWORD
    owner = before.rstrip(_JOINTS)
    joined = len(owner) < len(before)
    if stem == "pass":
        if (
            not before[-1:].isalpha()
            or before.endswith(listed("pass owners"))
            or (searched.text[at : at + 1] == "P" and searched.text[at - 1 : at].islower())
        ):
            return Proof.PASSWORD
        return None
    word = owner[len(owner.rstrip(_WORD)) :]
    last = CAMEL.findall(searched.text[at - len(before) : at].rstrip(_JOINTS))[-1:]
    owned = "".join(last).lower()
    if stem == "key":
        if owned in listed("no key owners"):
            return None
        if (
            word.endswith(listed("key owners")) and (word in listed("key owners") or len(word) > 5)
        ) or word in vendors():
            return Proof.SECRET
        return Proof.KEY if joined or not word or searched.text[at : at + 1] == "K" else None
    if stem == "token":
        if owned in listed("no token owners"):
            return None
        if word.endswith(listed("token owners")) or word in vendors():
            return Proof.SECRET
        upper = searched.text[start : at + 5]
        return Proof.SECRET if joined and upper.isupper() and "_" in upper else Proof.TOKEN
    if stem == "secret":
        if match.end() - at > 6:
            return Proof.SECRET
        if before.endswith(":") and before[-2:-1].isdigit():
            return None
        return Proof.SECRET
    if stem in ("cred", "auth"):
        return None if before[-1:].isalpha() and before[-1:] not in _JOINTS else Proof.TOKEN
    return Proof.SECRET
