"""Parses and formats evidence: short quotes with event tokens, and the rationale for exceeding a soft cap. Pure."""

import re
from typing import NamedTuple

from signet_sync.entities.documents.escaping import SafeText
from signet_sync.errors import UsageError
from signet_sync.formats.filename import artifact_name
from signet_sync.formats.paths import leaves_workspace, wikilink
from signet_sync.text.sentences import flatten, page_line, unescape

QUOTE_LENGTH = 160  # characters
PART_LENGTH = 300  # characters of each part of a rationale
_LOOKS_LIKE_TOKEN = re.compile(r"(?<![\w:])ev:\S+")
_ITEM = re.compile(r'"([^"]*)" — (.*?)(?: \[\[([^\[\]|]+)\|[^\[\]]*\]\])?(?: (ev:\S+))?')
_DAY = re.compile(r"(?<!\d)\d{4}-\d\d-\d\d(?!\d)", re.ASCII)
_PART = re.compile(r"(?:^|;)\s*(why|until|plan)\s*:", re.IGNORECASE)
# The example shown in hints.
EXAMPLE = (
    "signet-sync entity append ID evidence --evidence 'memory/…--transcript.md#34' --text 'It is what she waits for.'"
)
_HINT = 'write "why: …; until: …; plan: …": why more is kept, for how long, and how it will be pruned'


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

    def is_over(self, today: str) -> bool:
        """Returns whether `until` names a day (`YYYY-MM-DD`) that is past; without a day it is never over."""
        days = _DAY.findall(self.until)
        return bool(days) and max(days) < today

    def text(self) -> str:
        """Formats the rationale on one line, as `read_rationale` reads it."""
        return f"why: {self.why}; until: {self.until}; plan: {self.plan}"


def claims_token(text: str) -> bool:
    """Checks whether a text contains something that looks like a token, valid or not."""
    return _LOOKS_LIKE_TOKEN.search(text) is not None


def item_text(evidence: Evidence) -> SafeText:
    """Formats an item on one line: `"quote" — why [[path|kind]] ev:…`. Long quotes are cut. `read_item` parses it.

    Raises `UsageError`: `text-empty` for an empty quote or why, `path-escape` for a path outside the workspace.
    """
    quote = page_line(evidence.quote.replace('"', "'"), QUOTE_LENGTH)
    why = page_line(evidence.why)
    if not quote or not why:
        raise UsageError("evidence needs a quote and why it matters", hint='write "quote" — why', code="text-empty")
    link, path = "", evidence.path
    if path is not None:
        if leaves_workspace(path) or not path.strip() or re.search(r"[\[\]|#^<>\n]", path):
            raise UsageError("evidence needs a path inside the workspace", hint="memory/…", code="path-escape")
        name = artifact_name(path.rpartition("/")[2])
        link = wikilink(path, name.kind if name else "source")
    return SafeText(" ".join(filter(None, (f'"{quote}" — {why}', link, evidence.token))))


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
        lacking = " and ".join(f"`{name}`" for name in missing)
        raise UsageError(f"the rationale lacks {lacking}", hint=_HINT, code="rationale-invalid")
    if before.strip():
        message = "the rationale has to begin with `why:`, `until:` or `plan:`"
        raise UsageError(message, hint=_HINT, code="rationale-invalid")
    return Rationale(said["why"], said["until"], said["plan"])
