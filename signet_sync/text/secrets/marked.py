"""Finds secrets by the words around them: key blocks, headers, logins in URLs, options of programs, statements.

A literal leads to each rule (in lower case), and a pattern is matched there, never searched for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from itertools import takewhile
from typing import NamedTuple

from signet_sync.formats.lazy_pattern import late
from signet_sync.text.secrets.labels import listed, raw_table
from signet_sync.text.secrets.names import words
from signet_sync.text.secrets.searched_text import SearchedText, SecretSpan, first_word
from signet_sync.text.secrets.values import (
    Proof,
    Where,
    cannot_be_word,
    decoded,
    fits,
    is_compound,
    is_drawn,
    is_mixed,
    is_password,
    is_phrase,
    is_placeholder,
    is_token,
    is_vocabulary,
)

Span = tuple[int, int]
Check = Callable[[re.Match[str]], Span | None]


class SecretRule(NamedTuple):
    """A line of `marks.txt`: what its pattern matches at a position is a secret if the check confirms it."""

    name: str
    pattern: re.Pattern[str]
    check: Check


@cache
def _rules() -> dict[str, list[SecretRule]]:
    """Returns the rules of each mark."""
    found: dict[str, list[SecretRule]] = {}
    for line in raw_table("marks.txt").decode("utf-8").splitlines():
        if line and not line.startswith("#"):
            mark, name, check, pattern = line.split(None, 3)
            found.setdefault(mark, []).append(SecretRule(name, late(pattern), globals()[f"_{check}"]))
    return found


# ── key blocks ──

_LONG_RUN = late(r"[A-Za-z0-9+/=]{20}")


def _key_block(match: re.Match[str]) -> Span | None:
    """Accepts a block with key material; the mere names of its fences in a sentence are no secret."""
    return match.span() if match["cut"] or _LONG_RUN.search(match["body"]) else None


# ── headers ──

_SAMPLE_LOGINS = frozenset({b"", b"pass", b"password", b"secret", b"passwd"})


def _credential(match: re.Match[str]) -> Span | None:
    """Accepts a credential: Basic holds `user:password` in base64; every other scheme something like a token."""
    secret, scheme = match["secret"], (match["scheme"] or "").lower()
    if scheme == "basic":
        _, colon, password = decoded(secret).partition(b":")
        return match.span("secret") if colon and password not in _SAMPLE_LOGINS else None
    if secret.startswith("//"):
        return None
    if scheme in _SCHEMES and (secret.isalpha() or not any(map(str.isdigit, secret))):
        # Letters alone are one if nothing follows.
        ends = match.string[match.end() : match.end() + 1] in _ENDS and not is_compound(secret)
        return match.span("secret") if ends and is_token(secret, Where.GIVEN, words=True) else None
    if not any(map(str.isdigit, secret)):
        return None
    sure = scheme in _SCHEMES
    fit = is_token(secret, Where.GIVEN if sure else Where.CODE, least=8 if scheme else 12, words=sure)
    return match.span("secret") if fit else None


_SCHEMES = frozenset({"bearer", "token", "apikey", "api-key", "key", "geniekey", "deepl-auth-key", "bot", "private"})
_ENDS = ("", "\n", '"', "'", "`", "\\")


def _bearer(match: re.Match[str]) -> Span | None:
    return match.span("secret") if cannot_be_word(match["secret"]) else None


_LOGINS = late(r"sess|sid$|auth|token|jwt|login|remember|secret|credential|csrf|xsrf", re.I)


def _cookie(match: re.Match[str]) -> Span | None:
    pairs = [pair.partition("=") for pair in match["secret"].split(";")]
    found = any(
        is_token(value, Where.GIVEN, words=True) if _LOGINS.search(name) else is_token(value, Where.CODE, least=10)
        for name, _, value in pairs
    )
    return match.span("secret") if found else None


# ── logins ──

_SAMPLES = frozenset(
    {"pass", "password", "passwd", "pwd", "pw", "secret", "token", "key", "port", "x-oauth-basic", "x", "path"}
)


def _login(match: re.Match[str]) -> Span | None:
    """Accepts what follows `user:`; neither the words of a description (`user:password@host`) nor a group's number."""
    secret = match["secret"]
    if (
        len(secret) < 4
        or secret.lower() in _SAMPLES
        or is_placeholder(secret)
        or (secret.isdigit() and len(secret) < 6)
    ):
        return None
    return match.span("secret")


def _slashed(match: re.Match[str]) -> Span | None:
    """Accepts the same with a `/` in it: neither a port and a path, nor words."""
    secret = match["secret"]
    if secret.partition("/")[0].isdigit() or not any(map(str.isdigit, secret)):
        return None
    return _login(match)


def _user_token(match: re.Match[str]) -> Span | None:
    secret = match["secret"]
    drawn = is_drawn(secret) or (any(map(str.isdigit, secret)) and is_token(secret, Where.CODE, least=16))
    return match.span("secret") if drawn and not is_placeholder(secret) else None


def _token_user(match: re.Match[str]) -> Span | None:
    return match.span("secret") if is_token(match["secret"], Where.GIVEN, words=True) else None


def _whole(match: re.Match[str]) -> Span | None:
    return match.span("secret")


def _all(match: re.Match[str]) -> Span | None:
    return match.span()


def _smtp(match: re.Match[str]) -> Span | None:
    return match.span("secret") if decoded(match["secret"]).count(b"\0") == 2 else None


def _jar(match: re.Match[str]) -> Span | None:
    value = match["secret"]
    fit = (
        is_token(value, Where.GIVEN, words=True)
        if _LOGINS.search(match["name"])
        else is_token(value, Where.CODE, least=10)
    )
    return match.span("secret") if fit else None


# ── options of programs, statements ──


def _option(match: re.Match[str]) -> Span | None:
    secret = match["secret"]
    if (
        secret.startswith(("-", "$", "[REDACTED:", "/"))
        or "[REDACTED:" in secret
        or not is_password(secret, Where.LINE)
    ):
        return None
    return match.span("secret")


def _literal(match: re.Match[str]) -> Span | None:
    return match.span("secret") if is_password(match["secret"], Where.QUOTED) else None


# `--password X`, `-storepass X`, `--api-key X`: a value in quotes is found by the name alone.
_PASS_NAME = late(
    r"(?:.*[-_.])?(?:pass(?:w(?:or)?d|phrase|code|wd)?|pwd)|.*(?:[a-z]Pass(?:word)?|password)|storepass|keypass", re.I
)
_TOKEN_NAME = late(
    r"(?:.*[-_.:])?_?(?:token|secret|auth(?:[-_]?(?:token|key))?|api[-_]?key|apikey|with-token|(?:oauth2[-_])?bearer)|key"
    r"|.*(?:(?:access|secret|private|auth|client|signing|encryption|master|admin)[-_]?(?:key|token|secret)|authtoken)",
    re.I,
)


def _long(match: re.Match[str]) -> Span | None:
    name, secret = match["name"], match["secret"].rstrip(".,:;)]}|")
    password = _PASS_NAME.fullmatch(name) is not None
    if not password and not _TOKEN_NAME.fullmatch(name):
        return None
    if (
        secret in _ABOUT
        or secret[:1] in "-$[({/"
        or "[REDACTED:" in secret
        or ("=" in secret[:-2] and secret.partition("=")[0].isalpha())
    ):
        return None
    # A word in upper case is to be replaced by the reader.
    plain = secret.isupper() and all(c.isalpha() or c in "_-" for c in secret)
    given = match["after"] is not None and not plain and not is_compound(secret)
    fit = fits(secret, Proof.PASSWORD if password else Proof.SECRET, Where.GIVEN)
    if not (cannot_be_word(secret) or is_phrase(secret) or given) or not fit:
        return None
    start = match.start("secret")
    return start, start + len(secret)


# What a manual says about an option at the end of a line.
_ABOUT = frozenset(
    {"options", "option", "command", "commands", "switch", "argument", "arguments", "parameter", "flags"}
)
_STEM = late("pass|pwd|token|secret|auth|key|bearer", re.I)
_COMBINED = late(r" -[a-z0-9]{1,6}u[ ]?[\"']?[^ ]")
# By the letter of the option: the programs for which it sets a password, and how.
_OPTIONS = {
    "p": (
        r"(?:mysql|mariadb)\w*|(?:docker|podman|oc|skopeo|buildah|az(?:[ ]acr)?|registry|auth|crane)[ ]login|sshpass"
        r"|mongo\w*|cqlsh|sqlcmd|bcp|7za?|(?:un)?zip|mosquitto_\w+|rdesktop",
        r"[ ]-[pP][ ]?",
    ),
    "a": (r"redis-cli", r"[ ]-a[ ]"),
    "w": (r"ldap\w+", r"[ ]-w[ ]?"),
    "k": (r"openssl", r"[ ]-k[ ]"),
}
_PROGRAMS = {letter: late(rf"\b(?:{programs})\b", re.I) for letter, (programs, _) in _OPTIONS.items()}
_ENDS_COMMAND = late(r"[|;&\n]")
_FEEDS = ("echo ", "printf ")


def _given_login(match: re.Match[str]) -> Span | None:
    secret = match["secret"]
    return match.span("secret") if "[REDACTED:" not in secret and is_password(secret, Where.GIVEN) else None


def _said_login(match: re.Match[str]) -> Span | None:
    secret = match["secret"].rstrip(".,;:)!?")
    if (
        not secret
        or not (cannot_be_word(secret) or is_phrase(secret) or _NUMBERED.fullmatch(secret))
        or _LABEL.search(secret)
    ):
        return None
    start = match.start("secret")
    return start, start + len(secret)


_NUMBERED = late(r"[A-Za-z]{4,}\d{2,4}")
_LABEL = late(r"^//|^\d+$")

# What leads to which rules: literals of which at least one occurs in the text, a pattern, and for each of its groups
# how far before its anchor the rules begin.
_RULES: tuple[tuple[tuple[str, ...], re.Pattern[str], dict[str, tuple[int, tuple[str, ...]]]], ...] = (
    (
        ("://", "432:", "*:", "mask::"),
        late(r":(?:(?P<url>//)|(?P<pgpass>(?<=[56]432:))|(?P<any>(?<!\*\*:)(?<=\*:))|(?P<mask>:add-mask::))"),
        {"url": (0, ("urls",)), "pgpass": (4, ("pgpass",)), "any": (1, ("pgpass",)), "mask": (0, ("masked",))},
    ),
    (("~",), late(r"~(?P<azure>(?<=q~))"), {"azure": (5, ("client-secret",))}),
    (("sig=",), late(r"=(?P<sas>(?<=sig=)(?=[a-z0-9%+/_-]{24}))"), {"sas": (3, ("azure-sas",))}),
    (("bearer ",), late(r"bearer(?P<bearer>[ \t])"), {"bearer": (0, ("bearer",))}),
    (("identified ",), late(r"f(?P<sql>(?<=identif)ied[ \t])"), {"sql": (6, ("identified",))}),
    (
        ("login", "config ", "zugangsdaten"),
        late(
            r"g(?:(?P<login>in[ \t(:](?<=login.))|(?P<config>[ ](?<=config[ ]))|(?P<pair>angsdaten(?<=zugangsdaten)[ :]))"
        ),
        {
            "login": (2, ("netrc", "pair", "quoted-pair", "login-to")),
            "config": (5, ("placed",)),
            "pair": (2, ("pair",)),
        },
    ),
    (("-u",), late(r"-u(?:ser)?(?P<listed>(?=[\"'],))"), {"listed": (0, ("listed-user",))}),
    (("auth plain ",), late(r"h[ ]plain(?P<smtp>[ ])(?<=auth[ ]plain[ ])"), {"smtp": (11, ("smtp",))}),
    (("334 ugfzc3dvcmq6",), late(r"334[ ]ugfzc3dvcmq6(?P<asked>\s)"), {"asked": (0, ("asked",))}),
    (("signature=",), late(r"e=(?P<signed>(?<=signature=)(?=[a-f0-9]{64}))"), {"signed": (0, ("signed",))}),
    ((":apa91b",), late(r":apa91b(?P<messaging>)"), {"messaging": (11, ("messaging",))}),
    (("|",), late(r"\|(?P<app>(?<=[0-9]{13}\|)(?=[\w-]{27}))"), {"app": (0, ("app",))}),
    (("\t",), late(r"\t(?P<jar>(?:true|false)\t)"), {"jar": (0, ("jar",))}),
    (
        ("==", "!="),
        late(
            r"=(?:(?<=[\"'`][=!].)|(?<=[\"'`\s]{2}[=!].))=?[ ]?(?P<compared>)(?=[\w.$>-]{0,40}(?:passw|secret|token|api_?key|private_?key|pwd))"
        ),
        {"compared": (1, ())},
    ),
    (("##vso[",), late(r"##vso(?P<variable>\[)"), {"variable": (0, ("variable",))}),
)
# A command that prints a secret, and what stands alone on the line below it.
_OF_SECRET = late(r"[^\n]{0,300}?(?:pass|pwd|secret|token|key|cred|openssl[ ]rand)[^\n]{0,300}")
_PRINTED = late(
    r"(?:\n[ \t]*(?:`{3,}[\w-]*|(?:Output|Result|stdout):?|))??(?:\n[ \t]*`{3,}[\w-]*)?\n[ \t>|⎿]*"
    r"(?P<secret>[^\s\"'`<>{}\[\](),;][^\s\"'`<>]{5,500})[ \t]*(?=\n|\Z)"
)


def _printed(searched: SearchedText) -> Iterator[SecretSpan]:
    """Yields values that stand alone below a command that names them: `cat /run/secrets/db_password`, `op read …`."""
    low = searched.low
    for literal in listed("printers"):
        for place in searched.places(literal) if first_word(literal) in searched.every_word else ():
            if searched.is_in_crowd(place):
                continue
            start = low.rfind("\n", max(0, place - 200), place) + 1
            line = _OF_SECRET.match(low, max(start, place - 200))
            match = _PRINTED.match(searched.text, line.end()) if line and line.end() > place else None
            value = match["secret"] if match else ""
            if (
                match
                and (cannot_be_word(value) or is_phrase(value) or _NUMBERED.fullmatch(value) or is_mixed(value))
                and value[-1] not in ":%"
                and "[REDACTED:" not in value
                and is_password(value, Where.GIVEN)
            ):
                yield SecretSpan(*match.span("secret"), "printed")


def _compared(text: str, place: int) -> SecretSpan | None:
    """Returns the literal before a comparison: `if "x" == password`."""
    head = text[max(0, place - 220) : place].rstrip()
    begin = head.rfind(head[-1], 0, -1) if head[-1:] in ('"', "'", "`") else -1
    value = head[begin + 1 : -1]
    if begin < 0 or "\n" in value or not is_password(value, Where.QUOTED) or is_vocabulary(value):
        return None
    end = place - (min(place, 220) - len(head)) - 1
    return SecretSpan(end - len(value), end, "assignment")


# Lists of codes and words that open an account for whoever has them.
_CODES = late(
    r"(?:recovery|backup|scratch|seed|mnemonic)[ _-]?(?:codes?|phrases?|words|seed)?\b[^\n]{0,40}?"
    r"(?:[:=][ \t\"'\[(]{0,4}|\n(?:[ \t]*`{3,}\w*)?[ \t>]*\n?){1,2}(?P<secret>"
    r"(?:[ \t>]{0,8}(?:(?:[-*•]|\d{1,2}[.):])[ ])?(?:[a-z0-9]{4,12}(?:-[a-z0-9]{4,12}){1,5}|(?=[a-z]*\d)[a-z0-9]{8,12}|\d{4}[ ]\d{4})"
    r"(?:[ \t,;|]{1,8}|\n|\Z|(?=[\"'\])]))){2,40}|(?:[a-z]{3,8}[ ,]{1,2}){11}(?:(?:[a-z]{3,8}[ ,]{1,2}){3}){0,4}[a-z]{3,8}(?![ ]?[a-z]))"
)


def _codes(searched: SearchedText) -> Iterator[SecretSpan]:
    """Yields lists of recovery codes, and seed phrases: whoever has them has the account."""
    for literal in ("recovery", "backup", "scratch", "seed ", "mnemonic"):
        for place in searched.places(literal):
            end = place + len(literal)
            if searched.low.startswith(_OF_CODES, end) and searched.is_crowded("codes", place):
                continue
            match = _CODES.match(searched.low, place)
            if match and (any(map(str.isdigit, match["secret"])) or _STOPS.search(match["secret"]) is None):
                start = match.start("secret")
                yield SecretSpan(start, start + len(match["secret"].rstrip(" \t\n,;|")), "recovery")


_OF_CODES = tuple(f"{joint}{word}" for joint in ("", " ", "_", "-") for word in ("code", "phrase", "word", "seed"))
_STOPS = late(r"\b(?:the|and|are|you|for|with|that|this|from|not|must|have|been|when|your)\b")
_BLOCK_MARK = late(r"-----begin")
_BLOCK_END = late(r"-----end[ +a-z0-9]{0,40}private[ +]key")
_TAIL_LINE = late(r"[ \t>+|]{0,8}[A-Za-z0-9+/]{8,76}={0,2}[ \t]*")
_LETTERS = frozenset("puawkbs-")


def find_blocks(searched: SearchedText) -> Iterator[SecretSpan]:
    """Yields blocks of private keys, which may contain what looks like other secrets."""
    done = 0
    for mark in searched.matches(_BLOCK_MARK, ("-----begin",)):
        if mark.start() >= done and (found := _tried(searched, mark.start(), "block")):
            done = found.end
            yield found
    for mark in searched.matches(_BLOCK_END, ("-----end",)):
        # Its beginning was cut off.
        if mark.start() >= done:
            text = searched.text
            lines = text[max(done, mark.start() - 8000) : mark.start()].split("\n")
            tail = list(takewhile(_TAIL_LINE.fullmatch, reversed(lines[:-1])))
            if tail:
                yield SecretSpan(
                    mark.start() - sum(len(line) + 1 for line in tail) - len(lines[-1]), mark.start(), "private-block"
                )


def find(searched: SearchedText) -> Iterator[SecretSpan]:
    """Yields all other secrets that marks lead to."""
    text, read = searched.text, -100
    for word, place in words(searched).marks:
        # The names in our own marks lead to no rule.
        if text.startswith("[REDACTED:", place - 10):
            continue
        if word == "logins":
            found = _tried(searched, place, "pair", "quoted-pair")
        elif word == "commands":
            if place < read:
                continue
            command = _rules()["placed"][0].pattern.search(text, max(0, place), place + 700)
            read = command.end() if command else place + 100
            span = _option(command) if command else None
            found = SecretSpan(*span, "option") if span else None
        else:
            found = _tried(searched, place, "secure-string" if word == "securestring" else word)
        if found:
            yield found
    for literals, pattern, groups in _RULES:
        done = 0
        for mark in searched.matches(pattern, literals):
            # What a rule has taken is not read again.
            if mark.start() >= done:
                back, rules = groups[mark.lastgroup or ""]
                if rules == ("urls",) and not _may_be_login(searched, mark.end()):
                    continue
                place = max(0, mark.start() - back)
                if found := _tried(searched, place, *rules) if rules else _compared(text, place):
                    done = found.end
                    yield found
    yield from _printed(searched)
    yield from _codes(searched)
    if " -" in searched.low:
        yield from _options(searched)


def _may_be_login(searched: SearchedText, place: int) -> bool:
    """Returns whether what follows `://` may be a login or a webhook: most addresses are neither."""
    text = searched.text
    at = text.find("@", place, place + 400)
    if at >= 0 and text.find("://", place, at) < 0:
        return True
    return _HOOK_HOST.match(searched.low, place) is not None


_HOOK_HOST = late(r"[\w.-]{0,30}(?:slack|discord|discordapp|office|zapier|googleapis)\.com/")


def _tried(searched: SearchedText, place: int, *marks: str) -> SecretSpan | None:
    for rule in (rule for mark in marks for rule in _rules()[mark]):
        match = rule.pattern.match(searched.text, place)
        if match is None:
            continue
        # Options with other names cost little, and a list of hashes is full of them.
        is_candidate = rule.check is not _long or _STEM.search(match["name"])
        if is_candidate and searched.is_crowded(marks[0], place, match.end(), 1 + min(len(match[0]), 200) // 50):
            return None
        if span := rule.check(match):
            return SecretSpan(*span, rule.name)
    return None


def _options(searched: SearchedText) -> Iterator[SecretSpan]:
    """Yields the values of programs' options."""
    text, low, done = searched.text, searched.low, 0
    programs = _Programs(text)
    letters = _LETTERS - {
        letter for letter in "pw" if low.count(f" -{letter}") > 64 and not _PROGRAMS[letter].search(text)
    }
    for place in searched.places(" -"):
        if (
            place < done
            or searched.is_in_crowd(place)
            or not (low[place + 2 : place + 3].isalnum() or low.startswith("-", place + 2))
        ):
            continue
        is_long = low.startswith("-", place + 2) or low[place + 2 : place + 4].isalpha()
        if is_long and (found := _tried(searched, place, "long-option")):
            done = found.end
            yield found
            continue
        if searched.is_in_crowd(place):
            continue
        if (
            low[place + 2 : place + 3] not in letters
            and not low.startswith("pass", place + 2)
            and (not _COMBINED.match(low, place) or low.find("curl ", max(0, place - 200), place) < 0)
        ):
            continue
        letter = text[place + 2 : place + 3].lower()
        found = _given(searched, place, letter, programs)
        if found:
            done = found.end
            yield found


class _Programs:
    """Knows the program before an option; what was read for one option is not read again for the next."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.read: dict[str, tuple[int, re.Match[str] | None]] = {}

    def before(self, place: int, letter: str) -> re.Match[str] | None:
        """Returns the nearest program whose option it may be, within the command and 200 characters."""
        done, found = self.read.get(letter, (0, None))
        nearer = list(_PROGRAMS[letter].finditer(self.text, max(done, place - 200), place))
        found = nearer[-1] if nearer else found
        self.read[letter] = place, found
        if found is None or found.end() < place - 200 or _ENDS_COMMAND.search(self.text, found.end(), place):
            return None
        return found


def _given(searched: SearchedText, place: int, letter: str, programs: _Programs) -> SecretSpan | None:
    text = searched.text
    if letter == "-" and not text.startswith(("user", "pass", "proxy-user", "auth", "cookie"), place + 3):
        return None
    if (
        letter not in _LETTERS
        or letter in ("u", "a")
        or (letter == "-" and text[place + 3 : place + 4] in ("u", "p", "a"))
        or (letter in "sk" and text[place + 3 : place + 4].isalpha())
    ):
        found = _tried(searched, place, "curl", "token-user")
        if found:
            return found
    if letter == "b" or (letter == "-" and text.startswith("cookie", place + 3)):
        found = _tried(searched, place, "cookie-jar")
        if found:
            return found
    rule = ""
    head = text[max(text.rfind("\n", max(0, place - 200), place) + 1, place - 200) : place]
    if letter == "p" and text.startswith("pass", place + 2):
        rule = "pass-option"
    elif letter == "b" and "htpasswd" in head:
        rule = "htpasswd"
    if rule and (found := _tried(searched, place, rule)):
        return found
    if (letter == "-" and text.startswith("password-stdin", place + 3)) or letter == "s":
        at = max(head.rfind(feed) for feed in _FEEDS)
        return _tried(searched, place - len(head) + at, "fed") if at >= 0 else None
    if letter in _PROGRAMS and (program := programs.before(place, letter)):
        # There a word after a space is a database.
        if letter == "p" and text[place + 3 : place + 4] == " " and program[0].startswith(("mysql", "mariadb")):
            return None
        return _tried(searched, place, f"option-{letter}")
    return None
