"""Parses and formats evidence: short quotes with event tokens, and the rationale for exceeding a soft cap."""

import re
from typing import NamedTuple

from ulid import ULID

from signet_sync.entities.documents.escaping import SafeText
from signet_sync.errors import UsageError
from signet_sync.formats.filename import artifact_name
from signet_sync.formats.timestamps import iso
from signet_sync.formats.wikilinks import leaves_workspace, wikilink
from signet_sync.text.sentences import flatten, page_line, unescape

QUOTE_LENGTH = 160  # characters
PART_LENGTH = 300  # characters of each part of a rationale
ENTROPY = 10  # bytes

_LAST = 253_402_300_799_999  # milliseconds: the end of the year 9999
# A ULID has 26 characters of five bits, but only 128 bits: the first character is at most 7.
_ULID = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}", re.ASCII)
_TOKEN = re.compile(rf"(?<![\w:])ev:(\d{{8}}T\d{{6}}Z)-({_ULID.pattern})(?![\w-])", re.ASCII)
_LOOKS_LIKE_TOKEN = re.compile(r"(?<![\w:])ev:\S+")
_ITEM = re.compile(r'"([^"]*)" — (.*?)(?: \[\[([^\[\]|]+)\|[^\[\]]*\]\])?(?: (ev:\S+))?')
_PART = re.compile(r"(?:^|;)\s*(why|until|plan)\s*:", re.IGNORECASE)
# The example shown in hints.
EXAMPLE = (
    "signet-sync entity append ID evidence --evidence 'memory/…--transcript.md#34' --text 'It is what she waits for.'"
)
_HINT = 'write "why: …; until: …; plan: …": why more is kept, for how long, and how it will be pruned'


class Token(NamedTuple):
    """`ev:YYYYMMDDThhmmssZ-ULID`, and its ULID."""

    text: str
    ulid: str


class Evidence(NamedTuple):
    """An item: quote, why it matters, the artifact (path relative to the workspace), the event."""

    quote: str
    why: str
    path: str | None
    token: str | None


class Rationale(NamedTuple):
    """Why a soft cap is exceeded, until when, and the plan to prune back."""

    why: str
    until: str
    plan: str

    def text(self) -> str:
        """Formats the rationale on one line, as `read_rationale` reads it."""
        return f"why: {self.why}; until: {self.until}; plan: {self.plan}"


def ulid_at(instant: int, entropy: bytes) -> str:
    """Makes the ULID of an instant (microseconds since 1970 UTC) and ten random bytes: 26 characters that sort by time.

    Raises `ValueError` for instants before 1970 or after 9999, and for another number of bytes.
    """
    milliseconds = instant // 1000
    if not 0 <= milliseconds <= _LAST or len(entropy) != ENTROPY:
        raise ValueError("a ULID is made of an instant from 1970 to 9999 and ten bytes")
    return str(ULID.from_bytes(milliseconds.to_bytes(6, "big") + entropy))


def instant_of(ulid: str) -> int:
    """Returns a ULID's time in microseconds since 1970 UTC, to the millisecond. Raises `ValueError` if invalid."""
    if _ULID.fullmatch(ulid) is None:
        raise ValueError("not a ULID: 26 letters and digits of Crockford's base32, in capitals")
    milliseconds: int = ULID.from_str(ulid).milliseconds
    if milliseconds > _LAST:
        raise ValueError("a ULID of a year after 9999")
    return milliseconds * 1000


def token_for(ulid: str) -> str:
    """Makes the event token of a ULID; its time part is the ULID's time in seconds. Raises `ValueError`."""
    return f"ev:{_stamp(instant_of(ulid))}-{ulid}"


def read_token(text: str) -> Token | None:
    """Parses a token; returns None if it is invalid or its two times differ."""
    match = _TOKEN.fullmatch(text)
    try:
        return Token(text, match[2]) if match is not None and token_for(match[2]) == text else None
    except ValueError:
        return None


def tokens_in(text: str) -> tuple[Token, ...]:
    """Finds all valid tokens in a text, in order."""
    found = (read_token(match[0]) for match in _TOKEN.finditer(text))
    return tuple(token for token in found if token is not None)


def claims_token(text: str) -> bool:
    """Checks whether a text contains something that looks like a token, valid or not."""
    return _LOOKS_LIKE_TOKEN.search(text) is not None


def item_text(evidence: Evidence) -> SafeText:
    """Formats an item on one line: `"quote" — why [[path|kind]] ev:…`. Long quotes are cut. `read_item` parses it.

    Raises `UsageError`: `text-empty` for an empty quote or why, `path-escape` for a path outside the workspace,
    `token-invalid` for an invalid token.
    """
    quote = page_line(evidence.quote.replace('"', "'"), QUOTE_LENGTH)
    why = page_line(evidence.why)
    if not quote or not why:
        raise UsageError("evidence needs a quote and why it matters", hint='write "quote" — why', code="text-empty")
    parts = [f'"{quote}" — {why}']
    if evidence.path is not None:
        parts.append(_link(evidence.path))
    if evidence.token is not None:
        if read_token(evidence.token) is None:
            raise UsageError(f"{flatten(evidence.token, 60)} is not the name of an event", code="token-invalid")
        parts.append(evidence.token)
    return SafeText(" ".join(parts))


def read_item(text: str) -> Evidence | None:
    """Parses an item's text; returns None if it has another form."""
    match = _ITEM.fullmatch(text)
    return Evidence(match[1], match[2], match[3], match[4]) if match else None


def stands_in(quote: str, line: str) -> bool:
    """Checks whether a line contains a quote; ignores a final ellipsis, kinds of quotation marks and white space."""

    def bare(text: str) -> str:
        return " ".join(flatten(unescape(text)).replace('"', "'").split())

    return bare(quote).removesuffix("…").rstrip() in bare(line)


def read_rationale(text: str) -> Rationale:
    """Parses `why: …; until: …; plan: …` in any order and flattens each. Raises `UsageError` (`rationale-invalid`)."""
    before, *parts = _PART.split(text)
    said: dict[str, str] = {}
    for name, value in zip(map(str.lower, parts[::2]), parts[1::2], strict=True):
        if name in said:
            raise UsageError(f"the rationale contains `{name}` twice", hint=_HINT, code="rationale-invalid")
        said[name] = flatten(value.strip().rstrip(";"), PART_LENGTH)
    missing = [name for name in Rationale._fields if not any(map(str.isalnum, said.get(name, "")))]
    if missing:
        raise UsageError(f"the rationale lacks {_list(missing)}", hint=_HINT, code="rationale-invalid")
    if before.strip():
        raise UsageError(
            "the rationale has to begin with `why:`, `until:` or `plan:`", hint=_HINT, code="rationale-invalid"
        )
    return Rationale(said["why"], said["until"], said["plan"])


def _list(names: list[str]) -> str:
    return " and ".join(f"`{name}`" for name in names)


def _stamp(instant: int) -> str:
    """Formats an instant as `YYYYMMDDThhmmssZ`."""
    return iso(instant)[:19].replace("-", "").replace(":", "") + "Z"


def _link(path: str) -> str:
    if leaves_workspace(path) or not path.strip() or re.search(r"[\[\]|#^<>\n]", path):
        raise UsageError("evidence needs a path inside the workspace", hint="memory/…", code="path-escape")
    name = artifact_name(path.rpartition("/")[2])
    return wikilink(path, name.kind if name else "source")
