"""Defines what another program remembers as one record, cuts its text into memories, and accounts for each."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from signet_sync.errors import UsageError
from signet_sync.formats.lazy_pattern import late
from signet_sync.formats.paths import DEFAULT_AGENT
from signet_sync.formats.timestamps import parse_instant
from signet_sync.text.memory import LONGEST, MOST_TAGS, clean_text, tags_of
from signet_sync.text.sanitizer import sanitize_counted, sanitize_line_counted

# The longest text that becomes memories, in as many parts as it needs.
MOST_CHARACTERS = 16 * LONGEST

EMPTY = "no words in it"
NOTHING_ELSE = "nothing but a secret"
TOO_LONG = f"longer than {MOST_CHARACTERS:,} characters"
NO_AGENT = "its agent has a name that is not allowed here"
NOT_VALID = "not valid"
OF_REMOVED = "its session was removed"

_LONGEST_TAG = 256
_NO_TAG = late(r"[^\w/-]+")
_MARK = late(r"\[REDACTED:([^\]\s]{1,64})\]")
# Of a database another program wrote: a column's text by its name.
Row = Mapping[str, str | None]


class Item(NamedTuple):
    """A thing that another program remembers, in its own words; it is sanitized when it is written.

    `account` is its table or file in the report, `origin` the session or program that it comes from. `left` says why it
    is not brought.
    """

    account: str
    text: str
    at_us: int
    kind: str = "note"
    tags: Sequence[str] = ()
    agent_id: str = DEFAULT_AGENT
    private: bool = False
    pinned: bool = False
    origin: tuple[str, str] = ("", "")
    left: str = ""


class Left(Exception):
    """A row that is not brought; the argument says why."""


def time_of(row: Row, *names: str, now_us: int) -> int:
    """Returns the first time of a row that can be read, in microseconds since 1970 UTC, none after `now_us`."""
    found = (parse_instant(text.strip()) for name in names if (text := row.get(name)))
    return min(max(next((at for at in found if at is not None), now_us), 0), now_us)


def list_items(text: str | None) -> list[str]:
    """Returns the items of a JSON list, or of a text with commas."""
    try:
        value = json.loads(text or "")
    except (ValueError, RecursionError):
        value = (text or "").split(",")
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def parts_of(text: str) -> tuple[list[str], Counter[str]]:
    """Returns a text, sanitized, in parts as long as memories may be, and what was redacted. Raises `Left`."""
    if len(text) > MOST_CHARACTERS:
        raise Left(TOO_LONG)
    clean = sanitize_counted(text)[0]
    redactions = Counter[str](_MARK.findall(clean))  # also what was redacted before it was cut out of a file
    parts = []
    for part in _cut(clean.strip()):
        with suppress(UsageError):  # nothing but secrets or signs
            parts.append(clean_text(part)[0])
    if not parts:
        raise Left(NOTHING_ELSE if redactions else EMPTY)
    return parts, redactions


def _cut(text: str) -> Iterator[str]:
    """Cuts a text at paragraphs, lines or spaces."""
    while len(text) > LONGEST:
        places = (text.rfind(sign, LONGEST // 2, LONGEST) for sign in ("\n\n", "\n", " "))
        end = next((place for place in places if place > 0), LONGEST)
        yield text[:end].rstrip()
        text = text[end:].lstrip()
    yield text


def own_tags(given: Sequence[str]) -> tuple[str, ...]:
    """Returns tags as ours may be; what cannot be one is left out."""
    return tuple(sorted({tag for text in given if (tag := _own_tag(text))})[:MOST_TAGS])


@lru_cache(4096)
def _own_tag(text: str) -> str:
    if len(text) > _LONGEST_TAG:  # no secret is known by a part of it
        return ""
    line, redactions = sanitize_line_counted(text)
    try:
        return "" if redactions else "".join(tags_of([_NO_TAG.sub("-", line.removeprefix("#"))[:64].strip("-")]))
    except UsageError:
        return ""


# ── the account ──


@dataclass(slots=True)
class Account:
    """What became of the rows of one table or file; `is_new`: the last one was not here."""

    is_new: bool = False
    rows: int = 0
    brought: int = 0
    here: int = 0
    left: Counter[str] = field(default_factory=Counter)


@dataclass(slots=True)
class Report:
    """What came from a place, by table or file; `notes` say what else is to know.

    `backup` is the path of the backup that was written before the first change, "" where there is no place for one.
    """

    place: str
    dry_run: bool
    accounts: defaultdict[str, Account] = field(default_factory=lambda: defaultdict(Account))
    notes: list[str] = field(default_factory=list)
    redactions: Counter[str] = field(default_factory=Counter)
    backup: str | None = None

    @contextmanager
    def account_for(self, name: str, rows: int = 1) -> Iterator[Account]:
        """Accounts for rows by what becomes of them in the block: new, here already, or (`Left`) left."""
        account = self.accounts[name]
        account.is_new = False
        try:
            yield account
        except Left as why:
            self.count_left(name, str(why), rows)
        else:
            account.rows += rows
            account.brought += rows * account.is_new
            account.here += rows * (not account.is_new)

    def count_left(self, name: str, why: str, number: int = 1) -> None:
        """Counts rows that are left, and why."""
        if number:
            account = self.accounts[name]
            account.rows += number
            account.left[why] += number

    @property
    def is_new(self) -> bool:
        """Returns whether anything came that was not here."""
        return any(one.brought for one in self.accounts.values())

    def document(self) -> dict[str, Any]:
        """Returns the JSON document of the report."""
        tables = {
            name: {"rows": one.rows, "brought": one.brought, "here": one.here, "left": dict(sorted(one.left.items()))}
            for name, one in self.accounts.items()
        }
        return {
            "from": self.place,
            "dry_run": self.dry_run,
            "tables": tables,
            "notes": self.notes,
            "redactions": dict(sorted(self.redactions.items())),
            "backup": self.backup or None,
        }

    def lines(self) -> Iterator[str]:
        """Yields the report for a person."""
        wide = max(map(len, self.accounts), default=0)
        for name, one in self.accounts.items():
            counts = {"brought": one.brought, "here already": one.here, "left": sum(one.left.values())}
            said = ", ".join(f"{number:,} {word}" for word, number in counts.items() if number) or "empty"
            yield f"  {name:<{wide}}  {one.rows:>7,}  {said}"
            for why, number in one.left.most_common():
                yield f"  {'':<{wide}}  {number:>7,}  left: {why}"
        for note in self.notes:
            yield f"  {note}"
