"""Finds secrets that a whole document tells of: the data of Kubernetes' Secrets, columns under a secret's name."""

from __future__ import annotations

import re
from collections.abc import Iterator

from signet_sync.contracts.secrets.names import Name, words
from signet_sync.contracts.secrets.page import Found, Page
from signet_sync.contracts.secrets.values import Proof, Where, fits, is_placeholder, is_said

_KIND = re.compile(rb"kind[\\\"']{0,4}[ \t]*:[ \t]*[\\\"']{0,4}secret(?![\w.-])")
_LONGEST = 20_000
_DATA = re.compile(
    r"(?m)^(?P<indent>[+>|]?[ \t]*)(?:data|stringData):[ \t]*\n(?P<lines>(?:(?P=indent)[ \t]+[^\n]*(?:\n|\Z))+)"
)
_LINE = re.compile(r"(?m)^[+>|]?[ \t]*[\w.-]{1,128}:[ \t]+[\"']?(?P<secret>[^\s\"'#|>][^\n\"']*?)[\"']?[ \t]*$")
_JSON_DATA = re.compile(r"\"(?:data|stringData)\"[ \t]*:\s*\{(?P<pairs>[^{}]{1,8000})\}")
_JSON_PAIR = re.compile(r"\"[\w.-]{1,128}\"[ \t]*:\s*\"(?P<secret>[^\"\n]{1,4000})\"")

# Under a row of names, the row of dashes that makes it the head of a table; then each row.
_RULE = re.compile(r"[^\n]{0,400}\n[+> \t]{0,8}\|?[ \t]*:?-[-:| \t+]{2,400}\n")
_BAR = re.compile(r"[ \t`*_\"']{0,40}\|")
_ROW = re.compile(r"[+> \t]{0,8}\|[^\n]{1,2000}(?:\n|\Z)")
_MARKS = " \t`*_\"'"


def find(page: Page) -> Iterator[Found]:
    """What documents tell of."""
    yield from _kubernetes(page)
    text, read = page.text, (0, 0)
    for name in sorted(words(page).names):
        # Only names in the head of a table stand before a bar; what its rows hold is read with them.
        if not _BAR.match(text, name.end) or read[0] <= name.start < read[1]:
            continue
        rule = _RULE.match(text, name.end)
        if rule is not None:
            rows = list(_rows(text, rule.end()))
            read = rule.end(), rows[-1].end() if rows else rule.end()
            yield from _column(text, name, rows)


def _kubernetes(page: Page) -> Iterator[Found]:
    text, end = page.text, 0
    for kind in page.matches(b"kind", _KIND):
        if kind.start() < end:
            continue
        start = max(text.rfind("\n---", end, kind.start()) + 1, end, kind.start() - _LONGEST)
        end = text.find("\n---", kind.end(), kind.end() + _LONGEST)
        end = min(kind.end() + _LONGEST, len(text)) if end < 0 else end
        for data in _DATA.finditer(text, start, end):
            yield from _given(text, _LINE, *data.span("lines"))
        for data in _JSON_DATA.finditer(text, start, end):
            yield from _given(text, _JSON_PAIR, *data.span("pairs"))


def _given(text: str, pattern: re.Pattern[str], start: int, end: int) -> Iterator[Found]:
    for match in pattern.finditer(text, start, end):
        secret = match["secret"]
        if len(secret) > 3 and "[REDACTED:" not in secret and not is_placeholder(secret):
            yield Found(*match.span("secret"), "kubernetes")


def _rows(text: str, at: int) -> Iterator[re.Match[str]]:
    while row := _ROW.match(text, at):
        yield row
        at = row.end()


def _column(text: str, name: Name, rows: list[re.Match[str]]) -> Iterator[Found]:
    line = text.rfind("\n", max(0, name.start - 400), name.start) + 1
    bars = text.count("|", line, name.start)
    for row in rows if bars else ():
        cells = row[0].split("|")
        if len(cells) <= bars + 1:
            continue
        value = cells[bars].strip(_MARKS)
        sure = name.proof is Proof.PASSWORD and fits(value, name.proof, Where.LINE)
        if " " not in value and (sure or is_said(value)) and "[REDACTED:" not in value:
            start = row.start() + sum(map(len, cells[:bars])) + bars + cells[bars].find(value)
            yield Found(start, start + len(value), "assignment")
