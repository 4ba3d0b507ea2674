"""Finds names of secrets, and how much a value under each has to prove."""

from __future__ import annotations

import re
from typing import NamedTuple

from signet_sync.formats.lazy_pattern import late
from signet_sync.text.secrets.searched_text import SearchedText
from signet_sync.text.secrets.values import Proof
from signet_sync.text.secrets.vendors import VENDORS


class Name(NamedTuple):
    """A secret's name in a text: `start` is where the whole identifier begins."""

    start: int
    end: int
    proof: Proof


# What may follow: `PASSWORD_PROD`, `apiKey2`, `SECRET_KEY_BASE`; no other word (`password_url`, `token_type`).
_TAIL = (
    r"(?:[_.-]?(?:\d{1,3}|value|val|text|string|str|plain|plaintext|raw|base|prod|production|dev|development|test"
    r"|testing|stg|stage|staging|qa|uat|live|main|primary|secondary|new|old|current|root|admin|b64|base64|env|data|confirm|confirmation|again|repeat|local))?"
    r"(?![a-z0-9_]|-[a-z])"
)
# What must follow, roughly, so that hardly any word of a text is examined twice: what joins a name to a value that is
# long enough, `is`, or after a space something with a digit or a mark in it.
_VERBS = (
    r"(?:is|was|are|ist|lautet|hei.t|hie.|war|to|auf|wird|reads|be|for|von|vom|f.rs?|of|equals|der|des|dem|you|we"
    r"|daf.r|dazu|should|must|will|can|has|again|eingeben|wiederholen|best.tigen)"
)
_LEADS = (
    # More words follow: the sentence does not give a value.
    r"(?![ ](?!" + _VERBS + r"[ :\xbb\"'])[a-z]{1,13}[ .,\n](?!:?=))"
    r"(?=[\\\"'`*_\]]{0,12}(?:\[\d{0,4}\])?[ \t]{0,40}+"
    r"(?:[:=<!?+|\xbb-]{1,3}>?=?[ \t*_]{0,40}(?:[?][ ])?"
    r"(?:[^\s]{6}|[rbfu]?[\\\"'`]|[|>]|[a-z.\[\]&*|\t ]{1,40}=[ \t]*(?:[^\s]{6}|[rbfu]?[\\\"'`])|.{0,3}(?:\n|$))"
    r"|[>(\[|]|&gt;|</|(?<=[\\\"'`\]]),[ \t]*[a-z\\\"']|,[^()\n]{0,60}default|,[a-z_]{2,24}[,\n]|\{|or[ ]|\)[ ]{0,4}(?:or|\.|[|?])"
    r"|(?<=[ \t])(?:" + _VERBS + r"\b|[\\\"'`]|[^\s]{0,40}?[0-9!#$%^&@~]|[^\s]{14}|[a-z:\[\]&*.]{1,24}[ \t]?:?=)"
    r"|[\\\"',; \t/>]{0,12}(?:[\s+>|]|\\{1,4}[nrt]){0,40}[\\\"'-]{0,8}(?:parameter)?(?:value|val|default|content)))"
)
_ENDS = _TAIL + _LEADS
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
        ("secret", "cred", "contrase", "securestring", "connection(", "codecov "),
        late(
            r"c(?:(?P<secret>ret(?<=secret)(?:[_. -]?(?:access[_. -]?)?key(?:[_. -]?base)?)?)"
            r"|(?P<cred>red(?:ential)?s?)|(?P<sure>ontrase(?:n|\xf1|\xd1)a))"
            + _ENDS
            + r"|c(?:(?P<securestring>ure(?<=secure)string)|(?P<logins>red(?:ential)?s[ :(]|onnection\()"
            + r"|(?P<commands>(?:odecov[ ]-t|ret(?<=gh[ ]secret)[ ]set)[ ]))"
        ),
        {"secret": ("secret", 2), "cred": ("cred", 0), "sure": ("pwd", 0)},
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
_JOINTS = "_-. "

# Before a `pass` that is no `password`: a word of its own, or one of these.
_PASS_OWNERS = tuple(
    """
    db user usr my root admin smtp mail email ssh ftp pg sql mysql redis http proxy key store trust ldap sudo wifi
    vpn login sftp
    """.split()
)
# Before `key`: with these it opens something, or signs.
_KEY_OWNERS = tuple(
    """
    api secret access private priv account auth signing sign encryption encrypt decryption shared master client app
    application storage admin webhook crypto cipher aes hmac jwt deploy consumer subscription functions integration
    ingest ingestion license licence server security service db database write rest sas project cloud
    """.split()
)
_NO_KEY_OWNERS = tuple("public pub primary foreign sort partition cache session object idempotency row".split())
# Before `token`: with these it opens something.
_TOKEN_OWNERS = tuple(
    """
    access auth api bearer refresh oauth bot personal private deploy secret app service admin user registry webhook
    security runner login push device
    """.split()
)
# An item in a list, a piece of a text: no secret, whatever its value.
_NO_TOKEN_OWNERS = tuple(
    """
    next page continuation pagination pad eos bos unk sep cls mask stop special start end max min num last first
    prev previous sync cancellation cursor image change lock request idempotency
    """.split()
)
# «Use X as the token»: the value precedes.
_AS = (
    r"(?:(?:the|an?|my|your|our|this|das|dein|mein|unser)[ ])?(?:[a-z0-9_-]{1,24}[ ])?[a-z0-9_-]{0,24}"
    r"(?:pass(?:word|wd|wort|phrase)|token|secret"
    r"|(?:api|access|auth|private|secret|signing|encryption)[ _-]?key|pwd|credential)(?![a-z])"
)

_USED_AS = (late("[ ]as[ ]" + _AS), late("[ ]als[ ]" + _AS))

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
    for pattern in _USED_AS:
        found.uses.extend(match.start() for match in pattern.finditer(low) if _is_used(low, match.start()))
    for literals, pattern, stems in _STEMS:
        for match in searched.matches(pattern, literals):
            group = match.lastgroup
            if group is not None and group in _MARKS:
                found.marks.append((group, match.start() - _MARKS[group]))
                continue
            if group == "cred":
                found.marks.append(("logins", match.start()))
            stem, back = stems[group] if group in stems else stems[None]
            name = _named(searched, stem, match, match.start() - back)
            if name is not None:
                found.names.append(name)
    return found


def _is_used(low: str, place: int) -> bool:
    # Such words are often used in other meanings.
    used = low[max(0, place - 48) : place].rpartition(" ")
    return not used[2].isalpha() or used[0].endswith(_USES)


_USES = tuple("use try take set mal bitte nimm nutze benutze verwende probiere probier setze setz".split())


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
    return None if proof is None else Name(start, match.end(), proof)


def _proof(stem: str, before: str, match: re.Match[str], searched: SearchedText, start: int, at: int) -> Proof | None:
    if stem == "pwd" or (stem == "pass" and match["sure"]):
        return Proof.PASSWORD
    owner = before.rstrip(_JOINTS)
    joined = len(owner) < len(before)
    if stem == "pass":
        if (
            not before[-1:].isalpha()
            or before.endswith(_PASS_OWNERS)
            or (searched.text[at : at + 1] == "P" and searched.text[at - 1 : at].islower())
        ):
            return Proof.PASSWORD
        return None
    word = owner[len(owner.rstrip(_WORD)) :]
    if stem == "key":
        if word.endswith(_NO_KEY_OWNERS):
            return None
        if (word.endswith(_KEY_OWNERS) and (word in _KEY_OWNERS or len(word) > 5)) or word in VENDORS:
            return Proof.SECRET
        return Proof.KEY if joined or not word or searched.text[at : at + 1] == "K" else None
    if stem == "token":
        if word.endswith(_NO_TOKEN_OWNERS):
            return None
        if word.endswith(_TOKEN_OWNERS) or word in VENDORS:
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
