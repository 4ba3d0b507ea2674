"""Finds secrets by the structure of a document: data of Kubernetes' Secrets, columns under a secret's name."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from signet_sync.text.secrets.names import Name, Proof, Where, cannot_be_word, fits, is_compound, is_placeholder, words
from signet_sync.text.secrets.searched_text import SHAPES, SearchedText, SecretSpan

_LONGEST = 20_000
_MARKS = " \t`*_\"'"
_MOST_ROWS = 2000


def find(searched: SearchedText) -> Iterator[SecretSpan]:
    """Yields the secrets that the structure of the text reveals."""
    yield from _kubernetes(searched)
    done = 0
    for kind in searched.matches(SHAPES.jwk, ('"kty', "'kty")):
        if kind.start() < done:
            continue
        start = max(searched.text.rfind("{", max(0, kind.start() - 4000), kind.start()), done)
        end = searched.text.find("}", kind.end(), kind.end() + 4000)
        done = end if end >= 0 else kind.end() + 4000
        yield from _find_given(searched.text, SHAPES.jwk_parts, start, done)
    text, read = searched.text, (0, 0)
    for name in sorted(words(searched).names):
        # The rows of a table are read with its header.
        if read[0] <= name.start < read[1] or not SHAPES.ends_cell.match(text, name.end):
            continue
        table = _TextTable.of(text, name)
        if table is not None:
            read = table.rows
            yield from _column(text, name, table)


def _kubernetes(searched: SearchedText) -> Iterator[SecretSpan]:
    text, end = searched.text, 0
    for kind in searched.matches(SHAPES.secret_kind, ("kind",)):
        if kind.start() < end:
            continue
        start = max(text.rfind("\n---", end, kind.start()) + 1, end, kind.start() - _LONGEST)
        end = text.find("\n---", kind.end(), kind.end() + _LONGEST)
        end = min(kind.end() + _LONGEST, len(text)) if end < 0 else end
        for data in SHAPES.data_block.finditer(text, start, end):
            yield from _find_given(text, SHAPES.data_line, *data.span("lines"))
        for data in SHAPES.json_data.finditer(text, start, end):
            yield from _find_given(text, SHAPES.json_pair, *data.span("pairs"))


def _find_given(text: str, pattern: re.Pattern[str], start: int, end: int) -> Iterator[SecretSpan]:
    for match in pattern.finditer(text, start, end):
        secret = match["secret"]
        sure = pattern is SHAPES.jwk_parts or not is_placeholder(secret)
        if sure and len(secret) > 3 and "[REDACTED:" not in secret:
            yield SecretSpan(*match.span("secret"), "kubernetes")


class _TextTable(NamedTuple):
    """The lines below a header, and how a line is cut into cells: at bars, at commas, or at fixed columns."""

    cut: str
    column: int
    rows: tuple[int, int]

    @classmethod
    def of(cls, text: str, name: Name) -> "_TextTable | None":
        """Returns the table that has a name in its header."""
        start = text.rfind("\n", max(0, name.start - 400), name.start) + 1
        end = text.find("\n", name.end, name.end + 400)
        if end < 0 or (start == 0 and name.start > 400):
            return None
        head, below = text[start:end], text.find("\n", end + 1, end + 2000)
        second = text[end + 1 : below if below >= 0 else len(text)][:2000]
        bar = "│" if "│" in head else "|"
        ruled = SHAPES.ruler.fullmatch(second) is not None and (
            "-" in second or "─" in second or "═" in second or "=" in second
        )
        # What `psql` prints may lack its ruler.
        plain = bar == "|" and second.count(bar) == head.count(bar) and SHAPES.plain_header.fullmatch(head)
        if plain and not ruled:
            return cls(bar, head.count(bar, 0, name.start - start), _rows(text, end + 1, bar, 0))
        if ruled and below >= 0:
            if bar in head:
                return cls(bar, head.count(bar, 0, name.start - start), _rows(text, below + 1, bar, 0))
            if "  " in head.strip() and " " in second.strip():
                return cls("", name.start - start, _rows(text, below + 1, "", 0))
            return None
        if SHAPES.shouted.fullmatch(head):
            return cls("", name.start - start, _rows(text, end + 1, "", 0))
        commas = SHAPES.commas.fullmatch(head)
        if commas is None:
            return None
        comma = commas["comma"]
        around = text[name.start - 1 : name.start].strip("\"'") + text[name.end : name.end + 1].strip("\"'")
        count = head.count(comma)
        if around.strip(comma + "\n") or second.count(comma) != count or comma + " " in head:
            return None
        return cls(comma, head.count(comma, 0, name.start - start), _rows(text, end + 1, comma, count))


def _rows(text: str, start: int, cut: str, cells: int) -> tuple[int, int]:
    at = start
    for _ in range(_MOST_ROWS):
        end = text.find("\n", at, at + 2000)
        line = text[at : end if end >= 0 else min(len(text), at + 2000)]
        if (
            not line.strip()
            or (cut and (cut not in line and not SHAPES.ruler.fullmatch(line)))
            or (cells and line.count(cut) != cells)
        ):
            break
        at = end + 1 if end >= 0 else len(text)
        if end < 0:
            break
    return start, at


def _column(text: str, name: Name, table: _TextTable) -> Iterator[SecretSpan]:
    at, stop = table.rows
    while at < stop:
        end = text.find("\n", at, stop)
        end = stop if end < 0 else end
        line, start = text[at:end], at
        at = end + 1
        if table.cut:
            cells = line.split(table.cut)
            if len(cells) <= table.column:
                continue
            cell = cells[table.column]
            start += sum(map(len, cells[: table.column])) + table.column
        else:
            if line[table.column - 1 : table.column].strip() or not line[table.column : table.column + 1].strip():
                continue
            cell = line[table.column :].split(" ")[0]
            start += table.column
        value = cell.strip(_MARKS)
        sure = name.proof <= Proof.SECRET and not is_compound(value) and fits(value, name.proof, Where.GIVEN)
        if " " not in value and (sure or cannot_be_word(value)) and "[REDACTED:" not in value:
            start += cell.find(value)
            yield SecretSpan(start, start + len(value), "assignment")
