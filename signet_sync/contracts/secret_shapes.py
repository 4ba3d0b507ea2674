"""What tells a secret from a look-alike: the checks that `secrets.toml` names, one function each.

A check gets a match of the rule's pattern and gives the span that has to go, or None where it is a look-alike.
"""

from __future__ import annotations

import binascii
import re
from base64 import b64decode
from bisect import bisect_left
from collections.abc import Callable, Mapping

Span = tuple[int, int]
Check = Callable[[re.Match[str]], Span | None]


def found(match: re.Match[str]) -> Span | None:
    """The part named `secret`, or all of the match: what a rule without a check takes."""
    return match.span("secret") if "secret" in match.re.groupindex else match.span()


# ── tokens ──

_PIECES = re.compile(r"[-_.\n]")


def _mixed(text: str) -> bool:
    return any(map(str.islower, text)) and any(map(str.isupper, text)) and any(map(str.isdigit, text))


def _random(match: re.Match[str]) -> Span | None:
    """One unbroken piece of 20 characters, or a mixture of cases and digits; `sk-your-key-goes-here` is neither."""
    text = match[0]
    return match.span() if _mixed(text[3:]) or max(map(len, _PIECES.split(text))) >= 20 else None


def _decoded(text: str) -> bytes:
    """Base64 of either alphabet, cut to whole groups; nothing if it is none."""
    text = text.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return b64decode(text[: len(text) // 4 * 4])
    except binascii.Error:
        return b""


def _key_block_base64(match: re.Match[str]) -> Span | None:
    return match.span() if b"PRIVATE" in _decoded(match[0][:64]) else None


def _snowflake(match: re.Match[str]) -> Span | None:
    """A Discord token opens with the bot's id, decimal digits in base64."""
    return match.span() if _decoded(match["id"]).isdigit() else None


_LONG_RUN = re.compile(r"[A-Za-z0-9+/=]{20}")


def _key_block(match: re.Match[str]) -> Span | None:
    """A block with key material in it; the mere names of its fences in a sentence are no secret."""
    return match.span() if match["cut"] or _LONG_RUN.search(match["body"]) else None


def _aws_secret(match: re.Match[str]) -> Span | None:
    return match.span("secret") if _mixed(match["secret"]) else None


# ── values ──

# How values begin that are variables, templates, paths, options, references.
_REFERENCE = re.compile(r"[%{<*\[(/~.@&|\\#-]|\$[A-Za-z_{(]|(?i:arn:)")
_MAIL_ADDRESS = re.compile(r"[\w.+-]+@[\w-]+\.[\w.-]+")
_STAND_INS = (
    *("your", "example", "placeholder", "changeme", "change-me", "change_me", "redacted", "dummy", "xxxx", "***", "…"),
    *("process.env", "os.environ", "getenv", "secrets."),
)
# Numbers, dates, versions, hosts with ports, digests that name their algorithm.
_NUMBERS = re.compile(
    r"[\d.,:_/+%-]+[a-z]{0,3}|v?\d+(?:\.\w+)+|\d{4}-\d\d-\d\d[T ].*|(?:sha|md)\d+[-:].*|0x[0-9a-f]+", re.I
)
_WORDS = re.compile(r"[A-Za-z]+\d{0,3}(?:[-_.:/][A-Za-z]*\d{0,3})*[.!?]?")
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.I)
_SESSION_TOKEN = re.compile(r"[a-z2-7]{16}")


def _placeholder(value: str) -> bool:
    """Whether it stands for a secret rather than being one: a variable, a template, a sample."""
    if _REFERENCE.match(value) or value.endswith("..."):
        return True
    lower = value.lower()
    return any(map(lower.__contains__, _STAND_INS)) or ("@" in value and _MAIL_ADDRESS.fullmatch(value) is not None)


def _plain(value: str) -> bool:
    return _NUMBERS.fullmatch(value) is not None or _placeholder(value)


def _password_shaped(value: str) -> bool:
    """At least six characters, letters with digits or with a mark between them; no chain of words."""
    if len(value) < 6 or _plain(value) or not any(map(str.isalpha, value)):
        return False
    if _WORDS.fullmatch(value):
        return value.isalnum() and value[-1].isdigit()
    return any(c.isdigit() or c in "!#$^~@" for c in value[:-1])


def _token_shaped(value: str) -> bool:
    """At least ten characters of which six differ, letters and digits; no words, session token or UUID."""
    if len(value) < 10 or len(set(value)) < 6 or not (any(map(str.isdigit, value)) and any(map(str.isalpha, value))):
        return False
    if _WORDS.fullmatch(value) or _SESSION_TOKEN.fullmatch(value) or _UUID.fullmatch(value):
        return False
    return not _plain(value)


# ── headers and logins ──


def _credential(match: re.Match[str]) -> Span | None:
    """Basic holds `user:password` in base64; every other scheme something like a token."""
    secret = match["secret"]
    fits = b":" in _decoded(secret) if match["scheme"].lower() == "basic" else _token_shaped(secret)
    return match.span("secret") if fits else None


def _cookie(match: re.Match[str]) -> Span | None:
    values = [pair.partition("=")[2] for pair in match["secret"].split(";")]
    return match.span("secret") if any(_token_shaped(value) for value in values) else None


_SAMPLE_PASSWORDS = frozenset({"pass", "password", "passwd", "pwd", "pw", "secret", "token", "key", "port"})


def _login(match: re.Match[str]) -> Span | None:
    """What stands behind `user:`; neither the words of a description (`user:password@host`) nor a group's number."""
    secret = match["secret"]
    if secret.lower() in _SAMPLE_PASSWORDS or _placeholder(secret) or (secret.isdigit() and len(secret) < 6):
        return None
    return match.span("secret")


# ── assignments ──

_PASSWORD_NAMES = ("password", "passwd", "passphrase", "pwd", "_pass", "-pass", "dbpass", "userpass")
_KEY_KINDS = ("api", "access", "secret", "private", "account", "auth", "signing", "encryption", "shared", "master")
_TOKEN_NAMES = (
    *("secret", "token", "credential", "credentials", "_auth", "authorization", "sharedaccesskey"),
    *(kind + joint + "key" for kind in _KEY_KINDS for joint in ("", "_", "-")),
)
_SECRET_NAMES = _PASSWORD_NAMES + _TOKEN_NAMES
_PAGE_NAMES = ("nexttoken", "next_token", "pagetoken", "page_token", "continuationtoken", "continuation_token")
# What stands between the name and the mark: quotes (escaped in JSON within JSON), a bracket, blanks, Markdown's stars.
_AROUND_NAME = " \t\"'`\\*"
AROUND = r"[ \t\"'`\\*\]]"
# A quoted value, or a bare one up to a blank or a mark that ends values in code, YAML, shells and query strings,
# perhaps behind a type annotation. Its first 64 characters are looked at, and among them a digit or a strong mark is
# demanded here so that `re` refuses prose on its own.
VALUE = (
    r"(?=[=:>~]?[ \t]*(?:\w{1,24}+[ \t][=:][ \t])?(?:[rbfu]?\\{0,3}[\"'`])?"
    r"(?=[^\s\"'`0-9!#$^~@]{0,63}+[0-9!#$^~@])(?P<secret>[^\s\"'`\\,;<>(){}\[\]&|*]{6,64}))"
)
_VALUE_TAIL = re.compile(r"[^\s\"'`\\,;<>(){}\[\]&|*]*")


def name_before(text: str, at: int) -> str:
    """What the `:` or `=` at this place gives a value to, lower case, without what stands around it."""
    before = text[max(0, at - 40) : at].rstrip(_AROUND_NAME)
    if before[-2:] in ("']", '"]'):
        before = before[:-2].rstrip("\\")
    return before.lower()


def names_secret(name: str) -> bool:
    """Whether it ends as a secret's name does; so do places in a list and AWS resources (`…:123:secret:Name`)."""
    if not name.endswith(_SECRET_NAMES) or name.endswith(_PAGE_NAMES):
        return False
    return not (name.endswith(":secret") and name[-8:-7].isdigit())


def _assigned(match: re.Match[str]) -> Span | None:
    """The value, if its name is a secret's and its shape too, and if it is neither called nor indexed."""
    text, value, (start, end) = match.string, match["secret"], match.span("secret")
    name = name_before(text, match.start())
    if not names_secret(name) or text[end : end + 1] in ("(", "[", "{", "<"):
        return None
    if not (_password_shaped(value) if name.endswith(_PASSWORD_NAMES) else _token_shaped(value)):
        return None
    rest = _VALUE_TAIL.match(text, end)
    return start, rest.end() if rest else end


# ── encoded text ──

_NOT_TEXT = re.compile(rb"[^\t\n\r -~]")
_BETWEEN_LINES = re.compile(r"[^A-Za-z0-9+/]")
_PERCENT = re.compile("%[0-9A-Fa-f]{2}")
_PERCENT_OR_PLUS = re.compile("%[0-9A-Fa-f]{2}|[+]")


def decoded_text(run: str) -> str:
    """A base64 run (perhaps of several lines) as the text that it holds, or nothing where it holds none.

    Text is what opens with 15 characters of ASCII. The `n` of an escaped newline may be glued to the front, so that
    the run proper begins up to three characters late.
    """
    for late in range(4):
        head = _decoded(run[late : late + 20])
        if head and not _NOT_TEXT.search(head):
            return _decoded(_BETWEEN_LINES.sub("", run[late:])).decode("utf-8", "replace")
    return ""


def _base64(match: re.Match[str]) -> Span | None:
    """The whole run, if the text in it holds a secret."""
    # Rules within a rule: each decoding takes a quarter of the text away, so that this neither goes deep nor long.
    from signet_sync.contracts.sanitizer import extent

    text = decoded_text(match[0])
    return match.span() if text and extent(text) else None


def _percent_encoded(match: re.Match[str]) -> Span | None:
    """From the first secret of the decoded text to the end of the last one, as it stands in the encoded text."""
    from signet_sync.contracts.sanitizer import extent

    text = match[0]
    if "%" not in text:
        return None
    # One character for each escape, so that places can be told; bytes beyond ASCII are in no secret.
    decoded = _PERCENT_OR_PLUS.sub(lambda escape: " " if escape[0] == "+" else chr(int(escape[0][1:], 16)), text)
    # Not again within: `%252525…` could be decoded once for each of its characters.
    secret = extent(decoded, without="percent-encoded")
    if secret is None:
        return None
    escapes = [escape.start() - 2 * number for number, escape in enumerate(_PERCENT.finditer(text))]
    start, end = (match.start() + place + 2 * bisect_left(escapes, place) for place in secret)
    return start, end


CHECKS: Mapping[str, Check] = {
    "random": _random,
    "key-block": _key_block,
    "key-block-base64": _key_block_base64,
    "snowflake": _snowflake,
    "aws-secret": _aws_secret,
    "credential": _credential,
    "cookie": _cookie,
    "login": _login,
    "assigned": _assigned,
    "percent-encoded": _percent_encoded,
    "base64": _base64,
}
