"""Which names are a secret's, and how much a value under each has to prove."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from signet_sync.contracts.secrets.makers import MAKERS
from signet_sync.contracts.secrets.page import Page
from signet_sync.contracts.secrets.values import Proof


class Name(NamedTuple):
    """A secret's name in a text: `start` is where the whole identifier begins."""

    start: int
    end: int
    proof: Proof


# What may follow: `PASSWORD_PROD`, `apiKey2`, `SECRET_KEY_BASE`; no other word (`password_url`, `token_type`).
_TAIL = (
    rb"(?:[_.-]?(?:\d{1,3}|value|val|text|string|str|plain|plaintext|raw|base|prod|production|dev|development|test"
    rb"|testing|stg|stage|staging|qa|uat|live|main|primary|secondary|new|old|current|root|admin|b64|base64|env|data|confirm|confirmation|again|repeat|local))?"
    rb"(?![a-z0-9_]|-[a-z])"
)
# What must follow, roughly, so that hardly any word of a text is looked at twice: what joins a name to a value that is
# long enough, `is`, or behind a blank something with a digit or a mark in it.
_VERBS = (
    rb"(?:is|was|are|ist|lautet|hei.t|hie.|war|to|auf|wird|reads|be|for|von|vom|f.rs?|of|equals|der|des|dem|you|we"
    rb"|daf.r|dazu|should|must|will|can|has|again|eingeben|wiederholen|best.tigen)"
)
_LEADS = (
    # Words go on: the sentence says nothing about it.
    rb"(?![ ](?!" + _VERBS + rb"[ :\xbb\"'])[a-z]{1,13}[ .,\n](?!:?=))"
    rb"(?=[\\\"'`*_\]]{0,12}(?:\[\d{0,4}\])?[ \t]{0,40}+"
    rb"(?:[:=<!?+|\xbb-]{1,3}>?=?[ \t*_]{0,40}(?:[?][ ])?"
    rb"(?:[^\s]{6}|[rbfu]?[\\\"'`]|[|>]|[a-z.\[\]&*|\t ]{1,40}=[ \t]*(?:[^\s]{6}|[rbfu]?[\\\"'`])|.{0,3}(?:\n|$))"
    rb"|[>(\[|]|&gt;|</|(?<=[\\\"'`\]]),[ \t]*[a-z\\\"']|,[^()\n]{0,60}default|,[a-z_]{2,24}[,\n]|\{|or[ ]|\)[ ]{0,4}(?:or|\.|[|?])"
    rb"|(?<=[ \t])(?:" + _VERBS + rb"\b|[\\\"'`]|[^\s]{0,40}?[0-9!#$%^&@~]|[^\s]{14}|[a-z:\[\]&*.]{1,24}[ \t]?:?=)"
    rb"|[\\\"',; \t/>]{0,12}(?:[\s+>|]|\\{1,4}[nrt]){0,40}[\\\"'-]{0,8}(?:parameter)?(?:value|val|default|content)))"
)
_ENDS = _TAIL + _LEADS
# Headers and calls that `marked` looks at are met on the way.
# Each pattern opens with a letter that is rare, for `re` leaps from one to the next; what stands before it is looked at
# then. `start` says how far before that the name's word begins.
_STEMS: tuple[tuple[bytes, re.Pattern[bytes], dict[str | None, tuple[bytes, int]]], ...] = (
    (
        b"pass",
        re.compile(rb"pass(?P<commands>(?<=requirepass)[ ]|(?:phrase)(?<=wpa_passphrase)[ ]|wd(?<=htpasswd)[ ])|pass(?P<sure>w(?:or[dt]|d)|[ ]?phrase|code|wd)?(?:e(?<=mot de passe))?" + _ENDS),
        {"sure": (b"pass", 0), None: (b"pass", 0)},
    ),
    (b"pw", re.compile(rb"pw(?:(?P<commands>(?<=rootpw)[ ])|(?P<sure>d|(?<![a-z]pw))" + _ENDS + rb")"), {"sure": (b"pwd", 0)}),
    (
        b"k",
        re.compile(
            rb"k(?:(?P<token>en(?<=token))|(?P<key>ey(?:(?<=[a-z0-9_. -]key)|(?=(?:[^\w\n]{1,16}|[^\n]{1,24}?[\"'=> ])[a-z0-9+/=_-]{20})))|(?P<sure>ennwort))" + _ENDS + rb"|k(?P<cookie>ie(?<=cookie))"
        ),
        {"token": (b"token", 2), "key": (b"key", 0), "sure": (b"pwd", 0)},
    ),
    (
        b"c",
        re.compile(
            rb"c(?:(?P<secret>ret(?<=secret)(?:[_. -]?(?:access[_. -]?)?key(?:[_. -]?base)?)?)"
            rb"|(?P<cred>red(?:ential)?s?)|(?P<sure>ontrase(?:n|\xf1|\xd1)a))"
            + _ENDS
            + rb"|c(?:(?P<securestring>ure(?<=secure)string)|(?P<logins>red(?:ential)?s[ :(]|onnection\()"
            + rb"|(?P<commands>(?:odecov[ ]-t|loudflared[ ]service|li(?<=nmcli)|tl(?<=mqctl)|ret(?<=gh[ ]secret)[ ]set)[ ]))"
        ),
        {"secret": (b"secret", 2), "cred": (b"cred", 0), "sure": (b"pwd", 0)},
    ),
    (
        b"auth",
        re.compile(
            rb"auth(?P<authorization>orization(?<![a-z]authorization))(?!\w)"
            rb"|auth(?P<logins>(?:entication)?[\"']?(?:[ ]?[=:][ ]?)?[(\[][ ]{0,4}[\"'\\])"
            rb"|auth(?P<commands>(?:(?<=snyk[ ]auth)|token(?<=ngrok[ ]authtoken)|(?<=masterauth))[ ])"
            rb"|auth(?:orization|entication|_?data|_?string|_?code)?" + _ENDS
        ),
        {None: (b"auth", 0)},
    ),
)
# In a short text the letter of a stem says little: one of these must stand in it.
_FIRST = {
    b"k": (b"key", b"token", b"kennwort", b"cookie"),
    b"c": (b"secret", b"cred", b"contrase", b"securestring", b"connection(", b"codecov ", b"cloudflared ", b"nmcli ", b"mqctl "),
}
_WORD = b"abcdefghijklmnopqrstuvwxyz0123456789"
_NAME = _WORD + b"_.-$"
_JOINTS = b"_-. "

# Before a `pass` that is no `password`: a word of its own, or one of these.
_PASS_OWNERS = (
    *(
        b"db",
        b"user",
        b"usr",
        b"my",
        b"root",
        b"admin",
        b"smtp",
        b"mail",
        b"email",
        b"ssh",
        b"ftp",
        b"pg",
        b"sql",
        b"mysql",
    ),
    *(b"redis", b"http", b"proxy", b"key", b"store", b"trust", b"ldap", b"sudo", b"wifi", b"vpn", b"login", b"sftp"),
)
# Before `key`: with these it opens something, or signs.
_KEY_OWNERS = (
    *(
        b"api",
        b"secret",
        b"access",
        b"private",
        b"priv",
        b"account",
        b"auth",
        b"signing",
        b"sign",
        b"encryption",
        b"encrypt",
    ),
    *(
        b"decryption",
        b"shared",
        b"master",
        b"client",
        b"app",
        b"application",
        b"storage",
        b"admin",
        b"webhook",
        b"crypto",
        b"cipher",
    ),
    *(
        b"aes",
        b"hmac",
        b"jwt",
        b"deploy",
        b"consumer",
        b"subscription",
        b"functions",
        b"integration",
        b"ingest",
        b"ingestion",
    ),
    *(
        b"license",
        b"licence",
        b"server",
        b"security",
        b"service",
        b"db",
        b"database",
        b"write",
        b"rest",
        b"sas",
        b"project",
        b"cloud",
    ),
)
_NO_KEY_OWNERS = (
    b"public",
    b"pub",
    b"primary",
    b"foreign",
    b"sort",
    b"partition",
    b"cache",
    b"session",
    b"object",
    b"idempotency",
    b"row",
)
# Before `token`: with these it opens something.
_TOKEN_OWNERS = (
    *(
        b"access",
        b"auth",
        b"api",
        b"bearer",
        b"refresh",
        b"oauth",
        b"bot",
        b"personal",
        b"private",
        b"deploy",
        b"secret",
        b"app",
    ),
    *(b"service", b"admin", b"user", b"registry", b"webhook", b"security", b"runner", b"login", b"push", b"device"),
)
# A place in a list, a piece of a text: no secret, whatever its value.
_NO_TOKEN_OWNERS = (
    *(
        b"next",
        b"page",
        b"continuation",
        b"pagination",
        b"pad",
        b"eos",
        b"bos",
        b"unk",
        b"sep",
        b"cls",
        b"mask",
        b"stop",
        b"special",
    ),
    *(
        b"start",
        b"end",
        b"max",
        b"min",
        b"num",
        b"last",
        b"first",
        b"prev",
        b"previous",
        b"sync",
        b"cancellation",
        b"cursor",
        b"image",
        b"change",
        b"lock",
        b"request",
        b"idempotency",
    ),
)
# «Use X as the token»: what is used stands before.
_USED = re.compile(
    rb"[ ](?:(?:the|an?|my|your|our|this|das|dein|mein|unser)[ ])?(?:[a-z0-9_-]{1,24}[ ])?[a-z0-9_-]{0,24}"
    rb"(?:pass(?:word|wd|wort|phrase)|token|secret"
    rb"|(?:api|access|auth|private|secret|signing|encryption)[ _-]?key|pwd|credential)(?![a-z])"
)

# How far before its anchor a mark begins.
_MARKS = {"authorization": 0, "cookie": 3, "securestring": 2, "logins": 0, "commands": 24}


class Words(NamedTuple):
    """What a text's words lead to: secrets' names, and the places of words that are marks of other rules."""

    names: list[Name]
    uses: list[int]
    marks: list[tuple[str, int]]


def words(page: Page) -> Words:
    """The secret's names and the marks of a text; read once for each page."""
    if page.words is None:
        page.words = _words(page)
    found: Words = page.words
    return found


def _words(page: Page) -> Words:
    found = Words([], [], [])
    for word in (b" as ", b" als "):
        if word in page.low:
            found.uses.extend(_used(page, word))
    short, low = page.is_short, page.low
    for literal, pattern, stems in _STEMS:
        if short:
            for first in _FIRST.get(literal, (literal,)):
                if first in low:
                    break
            else:
                continue
        for match in pattern.finditer(page.low):
            group = match.lastgroup
            if group is not None and group in _MARKS:
                found.marks.append((group, match.start() - _MARKS[group]))
                continue
            if group == "cred":
                found.marks.append(("logins", match.start()))
            stem, back = stems[group] if group in stems else stems[None]
            name = _named(page, stem, match, match.start() - back)
            if name is not None:
                found.names.append(name)
    return found


def _used(page: Page, word: bytes) -> Iterator[int]:
    low = page.low
    for place in page.places(word):
        # Words are used as other words all the time.
        used = low[max(0, place - 48) : place].rpartition(b" ")[2]
        if not used.isalpha() and _USED.match(low, place + len(word) - 1):
            yield place


def _named(page: Page, stem: bytes, match: re.Match[bytes], at: int) -> Name | None:
    low = page.low
    before = low[max(0, at - 48) : at]
    if before.endswith(b"::"):
        return None
    start = at - len(before) + len(before.rstrip(_NAME))
    if start and low[start - 1 : start] == b"\\" and low[start : start + 1] in (b"n", b"r", b"t"):
        start += 1
    # A map of types: `"AWS::IAM::AccessKey": "…"`.
    if low[start - 2 : start] == b"::" and low[match.end() : match.end() + 1] in (b'"', b"'"):
        return None
    proof = _proof(stem, before, match, page, start, at)
    return None if proof is None else Name(start, match.end(), proof)


def _proof(stem: bytes, before: bytes, match: re.Match[bytes], page: Page, start: int, at: int) -> Proof | None:
    if stem == b"pwd" or (stem == b"pass" and match["sure"]):
        return Proof.PASSWORD
    owner = before.rstrip(_JOINTS)
    joined = len(owner) < len(before)
    if stem == b"pass":
        if (
            not before[-1:].isalpha()
            or before.endswith(_PASS_OWNERS)
            or (page.bytes[at : at + 1] == b"P" and page.bytes[at - 1 : at].islower())
        ):
            return Proof.PASSWORD
        return None
    word = owner[len(owner.rstrip(_WORD)) :]
    if stem == b"key":
        if word.endswith(_NO_KEY_OWNERS):
            return None
        if (word.endswith(_KEY_OWNERS) and (word in _KEY_OWNERS or len(word) > 5)) or word in MAKERS:
            return Proof.SECRET
        return Proof.KEY if joined or not word or page.bytes[at : at + 1] == b"K" else None
    if stem == b"token":
        if word.endswith(_NO_TOKEN_OWNERS):
            return None
        if word.endswith(_TOKEN_OWNERS) or word in MAKERS:
            return Proof.SECRET
        upper = page.bytes[start : at + 5]
        return Proof.SECRET if joined and upper.isupper() and b"_" in upper else Proof.TOKEN
    if stem == b"secret":
        if match.end() - at > 6:
            return Proof.SECRET
        if before.endswith(b":") and before[-2:-1].isdigit():
            return None
        return Proof.SECRET
    if stem in (b"cred", b"auth"):
        return None if before[-1:].isalpha() and before[-1:] not in _JOINTS else Proof.TOKEN
    return Proof.SECRET
