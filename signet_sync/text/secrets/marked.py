"""Finds secrets by what is around them: key blocks, headers, logins in URLs, options, statements, documents.

A literal leads to each rule (in lower case), and a pattern is matched there, never searched for.
"""

import re
from collections.abc import Callable, Iterator
from functools import cache
from itertools import islice, takewhile
from typing import NamedTuple

from signet_sync.formats.lazy_pattern import late
from signet_sync.text.secrets.names import (
    Name,
    Proof,
    Where,
    cannot_be_word,
    decode_base64,
    fits,
    is_compound,
    is_drawn,
    is_mixed,
    is_no_word,
    is_password,
    is_placeholder,
    is_token,
    is_vocabulary,
    words,
)
from signet_sync.text.secrets.searched_text import SHAPES, SearchedText, SecretSpan, lines, set_of

Check = Callable[[str, re.Match[str]], bool]


class SecretRule(NamedTuple):
    """A line of `marks.txt`: what its pattern matches at a mark is a secret if the check confirms it."""

    name: str
    pattern: re.Pattern[str]
    check: Check


class Lead(NamedTuple):
    """A line of `marks.txt`: how far before a literal, where its condition holds, which rules are tried."""

    literal: str
    condition: re.Pattern[str] | None
    back: str
    rules: list[SecretRule]


@cache
def _rules() -> dict[str, list[SecretRule]]:
    found: dict[str, list[SecretRule]] = {}
    for line in lines("marks.txt"):
        if not line.startswith("lead "):
            mark, name, check, pattern = line.split(None, 3)
            found.setdefault(mark, []).append(SecretRule(name, late(pattern), _CHECKS[check]))
    return found


@cache
def leads() -> dict[str, list[Lead]]:
    """Returns what leads to rules, by its literals."""
    found: dict[str, list[Lead]] = {}
    for line in lines("marks.txt"):
        if line.startswith("lead "):
            _, literals, back, *marks = line.split()
            rules = [rule for mark in marks for rule in _rules()[mark]]
            for written in literals.split("¦"):
                literal, ahead, rest = written.replace("_", " ").replace("\\t", "\t").partition("(?=")
                condition = late(re.escape(literal) + ahead + rest) if ahead else None
                found.setdefault(literal, []).append(Lead(literal, condition, back, rules))
    return found


# ── what confirms a match: the value, and the match for what is around it ──


def _key_block(value: str, match: re.Match[str]) -> bool:
    """Accepts a block with key material; the mere names of its fences in a sentence are no secret."""
    return bool(match["cut"] or SHAPES.long_run.search(match["body"]))


def _credential(value: str, match: re.Match[str]) -> bool:
    """Accepts a credential: Basic holds `user:password` in base64; every other scheme something like a token."""
    scheme = (match["scheme"] or "").lower()
    if scheme == "basic":
        _, colon, password = decode_base64(value).partition(b":")
        return bool(colon and password) and password.decode("latin-1") not in set_of("sample logins")
    sure = scheme in set_of("schemes")
    if any(map(str.isdigit, value)):
        return is_token(value, Where.GIVEN if sure else Where.CODE, least=8 if scheme else 12, words=sure)
    # Letters alone are one if nothing follows.
    ends = match.string[match.end() : match.end() + 1] in ("", "\n", '"', "'", "`", "\\")
    return sure and ends and not is_compound(value) and is_token(value, Where.GIVEN, words=True)


def _cookie(value: str, match: re.Match[str]) -> bool:
    return any(_is_cookie(name, given) for name, _, given in (pair.partition("=") for pair in value.split(";")))


def _is_cookie(name: str, value: str) -> bool:
    if SHAPES.logins.search(name):
        return is_token(value, Where.GIVEN, words=True)
    return is_token(value, Where.CODE, least=10)


def _login(value: str, match: re.Match[str]) -> bool:
    """Accepts what follows `user:`; neither the words of a description (`user:password@host`) nor a group's number."""
    if len(value) < 4 or value.lower() in set_of("sample logins") or is_placeholder(value):
        return False
    return not value.isdigit() or len(value) > 5


def _accepts_slashed(value: str, match: re.Match[str]) -> bool:
    """Accepts the same with a `/` in it: neither a port and a path, nor words."""
    return not value.partition("/")[0].isdigit() and any(map(str.isdigit, value)) and _login(value, match)


def _accepts_drawn(value: str, match: re.Match[str]) -> bool:
    if match.string.endswith("ssh", 0, match.start()):
        return False  # before the host of `ssh://` stands a user
    drawn = is_drawn(value) or (any(map(str.isdigit, value)) and is_token(value, Where.CODE, least=16))
    return drawn and not is_placeholder(value)


def _accepts_said(value: str, match: re.Match[str]) -> bool:
    """Accepts what no sentence holds, or a word with a number, as the second half of a login."""
    return _is_said(value) and not SHAPES.other_half.search(value)


def _accepts_printed(value: str, match: re.Match[str]) -> bool:
    return (_is_said(value) or is_mixed(value)) and value[-1] not in ":%" and is_password(value, Where.GIVEN)


def _is_said(value: str) -> bool:
    return is_no_word(value) or SHAPES.numbered.fullmatch(value) is not None


def _long(value: str, match: re.Match[str]) -> bool:
    """Accepts the value of `--password X`, `-storepass X`, `--api-key X`: one in quotes is found by the name alone."""
    is_secret = SHAPES.token_name.fullmatch(match["name"])
    proof = Proof.PASSWORD if SHAPES.pass_name.fullmatch(match["name"]) else Proof.SECRET if is_secret else None
    if proof is None or value in set_of("said of options") or value[0] in "-$[({/":
        return False
    if "=" in value[:-2] and value.partition("=")[0].isalpha():
        return False
    # A word in upper case is to be replaced by the reader.
    plain = value.isupper() and all(c.isalpha() or c in "_-" for c in value)
    given = match["after"] is not None and not plain and not is_compound(value)
    return (is_no_word(value) or given) and fits(value, proof, Where.GIVEN)


_CHECKS: dict[str, Check] = {
    "any": lambda value, match: True,
    "word": lambda value, match: cannot_be_word(value),
    "token": lambda value, match: is_token(value, Where.GIVEN, words=True),
    "option": lambda value, match: value[0] not in "-$/" and is_password(value, Where.LINE),
    "given": lambda value, match: is_password(value, Where.GIVEN),
    "literal": lambda value, match: is_password(value, Where.QUOTED),
    "jar": lambda value, match: _is_cookie(match["name"], value),
    "smtp": lambda value, match: decode_base64(value).count(b"\0") == 2,
    # Lists of recovery codes, and seed phrases: whoever has them has the account.
    "codes": lambda value, match: any(map(str.isdigit, value)) or SHAPES.stops.search(value) is None,
    "key_block": _key_block,
    "credential": _credential,
    "cookie": _cookie,
    "login": _login,
    "slashed": _accepts_slashed,
    "drawn": _accepts_drawn,
    "said": _accepts_said,
    "printed": _accepts_printed,
    "long": _long,
}


# ── where rules are tried ──

_OPTION = late(r" -[-a-z]")


def find_blocks(searched: SearchedText) -> Iterator[SecretSpan]:
    """Yields blocks of private keys, which may contain what looks like other secrets."""
    text, done = searched.text, 0
    for place in searched.places("-----begin"):
        if place >= done and (found := _try_rules(searched, place, _rules()["block"])):
            done = found.end
            yield found
    for place in searched.places("-----end"):
        # Its beginning was cut off.
        if place >= done and SHAPES.block_end.match(searched.low, place):
            above = text[max(done, place - 8000) : place].split("\n")
            tail = list(takewhile(SHAPES.tail_line.fullmatch, reversed(above[:-1])))
            if tail:
                yield SecretSpan(place - sum(len(line) + 1 for line in tail) - len(above[-1]), place, "private-block")


def find(searched: SearchedText) -> Iterator[SecretSpan]:
    """Yields all other secrets that marks lead to."""
    has_marks = "[REDACTED:" in searched.text
    # What three conditions begin with is looked for once.
    has_option = _OPTION.search(searched.low) is not None
    near = (literal for literal in searched.likely(tuple(leads())) if literal in searched.low)
    for lead in (lead for literal in near if literal != " -" or has_option for lead in leads()[literal]):
        done, last = 0, -1
        for place in searched.places(lead.literal, lead.condition):
            # What a rule has taken is not read again; the names in our own marks lead to no rule.
            if place < done:
                continue
            if has_marks and searched.text.startswith("[REDACTED:", place - 10):
                continue
            is_line = lead.back == "line"
            start = max(0, place - (200 if is_line else int(lead.back)))
            start = (is_line and searched.text.rfind("\n", start, place) + 1) or start
            if start == last or (is_line and start == place - 200):
                continue  # this line was read, or it is too long for a command
            last = start
            if found := _try_rules(searched, start, lead.rules):
                done = found.end
                yield found
    for mark in searched.matches(SHAPES.compared, ("==", "!=")):
        if found := _find_compared(searched.text, mark.start() - 1):
            yield found


def _try_rules(searched: SearchedText, place: int, rules: list[SecretRule]) -> SecretSpan | None:
    for rule in rules:
        match = rule.pattern.match(searched.text, place)
        if match is None:
            continue
        start, end = match.span("secret" if "secret" in rule.pattern.groupindex else 0)
        value = searched.text[start:end].rstrip(" \t\n")
        if (end - start == len(match[0]) or "[REDACTED:" not in value) and rule.check(value, match):
            return SecretSpan(start, start + len(value), rule.name)
    return None


def _find_compared(text: str, place: int) -> SecretSpan | None:
    """Returns the literal before a comparison: `if "x" == password`."""
    head = text[max(0, place - 220) : place].rstrip()
    begin = head.rfind(head[-1], 0, -1) if head[-1:] in ('"', "'", "`") else -1
    value = head[begin + 1 : -1]
    if begin < 0 or "\n" in value or not is_password(value, Where.QUOTED) or is_vocabulary(value):
        return None
    end = place - (min(place, 220) - len(head)) - 1
    return SecretSpan(end - len(value), end, "assignment")


# ── what the structure of a document reveals: data of Kubernetes, columns under a secret's name ──

_LONGEST_DOCUMENT = 20_000
_CELL_MARKS = " \t`*_\"'"
_RULES = frozenset("-─═=")
_MOST_ROWS = 2000


def find_in_documents(searched: SearchedText) -> Iterator[SecretSpan]:
    """Yields the secrets that the structure of the text reveals."""
    yield from _kubernetes(searched)
    done = 0
    for kind in searched.matches(SHAPES.jwk, ('"kty', "'kty")):
        if kind.start() < done:
            continue
        start = max(searched.text.rfind("{", max(0, kind.start() - 4000), kind.start()), done)
        end = searched.text.find("}", kind.end(), kind.end() + 4000)
        done = end if end >= 0 else kind.end() + 4000
        yield from _find_pairs(searched.text, SHAPES.jwk_parts, start, done)
    text, read = searched.text, (0, 0)
    for name in sorted(words(searched).names):
        # The rows of a table are read with its header.
        if read[0] <= name.start < read[1] or not SHAPES.ends_cell.match(text, name.end):
            continue
        table = _TextTable.find(text, name)
        if table is not None:
            read = table.rows
            yield from _column(text, name, table)


def _kubernetes(searched: SearchedText) -> Iterator[SecretSpan]:
    text, end = searched.text, 0
    for kind in searched.matches(SHAPES.secret_kind, ("kind",)):
        if kind.start() < end:
            continue
        start = max(text.rfind("\n---", end, kind.start()) + 1, end, kind.start() - _LONGEST_DOCUMENT)
        end = text.find("\n---", kind.end(), kind.end() + _LONGEST_DOCUMENT)
        end = min(kind.end() + _LONGEST_DOCUMENT, len(text)) if end < 0 else end
        for data in SHAPES.data_block.finditer(text, start, end):
            yield from _find_pairs(text, SHAPES.data_line, *data.span("lines"))
        for data in SHAPES.json_data.finditer(text, start, end):
            yield from _find_pairs(text, SHAPES.json_pair, *data.span("pairs"))


def _find_pairs(text: str, pattern: re.Pattern[str], start: int, end: int) -> Iterator[SecretSpan]:
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
    def find(cls, text: str, name: Name) -> "_TextTable | None":
        """Returns the table that has a name in its header."""
        start = text.rfind("\n", max(0, name.start - 400), name.start) + 1
        end = text.find("\n", name.end, name.end + 400)
        if end < 0 or (start == 0 and name.start > 400):
            return None
        head, below = text[start:end], text.find("\n", end + 1, end + 2000)
        second = text[end + 1 : below if below >= 0 else len(text)][:2000]
        bar = "│" if "│" in head else "|"
        ruled = SHAPES.ruler.fullmatch(second) is not None and not _RULES.isdisjoint(second)
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
    for row in islice(_ROW.finditer(text, start), _MOST_ROWS):
        line = row[0].rstrip("\n")
        is_row = not cut or cut in line or SHAPES.ruler.fullmatch(line)
        if not line.strip() or not is_row or (cells and line.count(cut) != cells):
            break
        at = row.end()
    return start, at


_ROW = late(r"[^\n]{0,2000}\n?")


def _column(text: str, name: Name, table: _TextTable) -> Iterator[SecretSpan]:
    for row in _ROW.finditer(text, *table.rows):
        line, start = row[0].rstrip("\n"), row.start()
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
        value = cell.strip(_CELL_MARKS)
        sure = name.proof <= Proof.SECRET and not is_compound(value) and fits(value, name.proof, Where.GIVEN)
        if " " not in value and (sure or cannot_be_word(value)) and "[REDACTED:" not in value:
            start += cell.find(value)
            yield SecretSpan(start, start + len(value), "assignment")
