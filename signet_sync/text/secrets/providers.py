"""Finds tokens without a name, by the table of their vendors' prefixes and lengths, `providers.txt`.

Nearly all tokens hold a run of sixteen letters, digits, `_` and `-`, which little else does. So the runs are found
first, all by one literal; at each, its first characters lead to the few prefixes (heads) that it may have; and only
what has such a head is matched. Forms with a shorter run are found by their literal, before a later run.
"""

import re
from collections.abc import Iterator
from functools import cache, cached_property
from itertools import product
from operator import itemgetter
from typing import NamedTuple

from signet_sync.formats.lazy_pattern import late
from signet_sync.text.secrets.names import decode_base64, is_drawn, is_key, is_mixed, is_placeholder, looks_random
from signet_sync.text.secrets.searched_text import (
    SHAPES,
    SearchedText,
    SecretSpan,
    lines,
    list_section,
    pattern_text,
    set_of,
)

_LEAST_RUN = 16

# The classes of characters of the table's pieces.
CLASSES = {
    "w": "A-Za-z0-9",
    "u": "A-Za-z0-9_-",
    "b": "A-Za-z0-9+/",
    "v": "A-Za-z0-9_",
    "s": "A-Za-z0-9_.-",
    "q": "A-Za-z0-9_.=-",
    "g": "A-Za-z0-9+/_=%-",
    "h": "0-9a-f",
    "x": "0-9A-Fa-f",
    "d": "0-9",
    "U": "A-Z0-9",
    "l": "a-z0-9",
}
PIECE = late(r"\{([a-zA-Z])(\d+)(?:-(\d+))?([!+]?)\}")
_ROW = late(r"(?P<rule>\S+) +form: (?P<form>\S+) +found: (?P<found>\S+) +left: (?P<left>.+)")
_CHOICE = late(r"\(([^()]*)\)")
_RUN = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
_IN_RUN = late(r"[A-Za-z0-9_-]*\Z")


class TokenForm:
    """One line of the table: what a token looks like, an example, and a text without one."""

    def __init__(self, rule: str, form: str, found: str, left: str) -> None:
        self.rule, self.form, self.found, self.left = rule, form, found, left

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Returns the pattern that matches a token at its beginning; compiled when a text first needs it."""
        body, last = "", 0
        pieces = list(PIECE.finditer(self.form))
        for piece in pieces:
            body += _literal(self.form[last : piece.start()])
            body += _piece(piece, at_end=piece is pieces[-1] and piece.end() == len(self.form))
            last = piece.end()
        # Padding of base64 may follow what looks like base64.
        tail = "={0,2}" if pieces and pieces[-1][1] in "bg" else ""
        return re.compile(body + _literal(self.form[last:]) + tail)

    @cached_property
    def is_strict(self) -> bool:
        """Returns whether no words fit its pieces."""
        return not {piece[1] for piece in PIECE.finditer(self.form)} & set("uvsqg")

    @property
    def heads(self) -> list[str]:
        """Lists all ways in which the literal begins."""
        return _choices(self.form.partition("{")[0])

    @property
    def literal(self) -> str:
        """Returns the longest literal in it."""
        return max((text for text in PIECE.split(_CHOICE.sub("{w0}", self.form))[::5] if text), key=len)

    @cached_property
    def literal_offset(self) -> int | None:
        """Returns how many characters precede the literal, None if that differs."""
        before = self.form.partition(self.literal)[0]
        return None if set(before) & set("+(") else sum(int(piece[2]) for piece in PIECE.finditer(before))

    @property
    def least_rest(self) -> int:
        """Returns the least length of the run behind a head."""
        length = 0
        # In turn: what is literal, a class, how many, the most, a mark.
        parts = PIECE.split("{" + self.form.partition("{")[2])[1:]
        for letter, least, following in zip(parts[0::5], parts[1::5], parts[4::5], strict=True):
            length += int(least)
            if letter in "bsqg" or not _IN_RUN.fullmatch(following):
                break
            length += len(following)
        return length


def _tail(head: str) -> str:
    """Returns the part of a head that belongs to the run."""
    return head[len(head.rstrip(_RUN)) :]


def _literal(text: str) -> str:
    """Turns text into a pattern; `(a|b)` is a choice."""
    return "".join(
        f"(?:{'|'.join(map(re.escape, part.split('|')))})" if number % 2 else re.escape(part)
        for number, part in enumerate(_CHOICE.split(text))
    )


def _choices(text: str) -> list[str]:
    parts = [part.split("|") if number % 2 else [part] for number, part in enumerate(_CHOICE.split(text))]
    return ["".join(chosen) for chosen in product(*parts)]


def _piece(piece: re.Match[str], *, at_end: bool) -> str:
    letters, least, most, mark = CLASSES[piece[1]], int(piece[2]), int(piece[3] or piece[2]), piece[4]
    if mark == "+":
        return f"[{letters}]{{{least},}}"
    if not at_end:
        return f"[{letters}]{{{least}}}" if most == least else f"[{letters}]{{{least},{most}}}"
    begins = min(16, most - 6)
    wrapped = f"(?=[{letters}]{{{begins}}})(?:[{letters}]{pattern_text('break')}){{{most - 1}}}" if most > 15 else ""
    if mark == "!":
        wrapped = f"(?:{wrapped}|[{letters}]{{{least - 1}}})" if wrapped else f"[{letters}]{{{least - 1}}}"
        return wrapped + f"[{letters}](?![A-Za-z0-9])"
    plain = f"[{letters}]{{{least},}}"
    return f"(?:{wrapped}[{letters}]+|{plain})" if wrapped else plain


class _FormIndex(NamedTuple):
    """The forms, by what leads to them: the first characters of a run, the last ones before it, a literal near it."""

    within: dict[str, list[tuple[str, TokenForm]]]
    before: dict[str, list[tuple[str, int, TokenForm]]]
    near: list[tuple[str, TokenForm]]


@cache
def forms() -> tuple[TokenForm, ...]:
    """Returns every line of the table."""
    return tuple(TokenForm(*row.groups()) for row in map(_ROW.fullmatch, lines("providers.txt")) if row)


@cache
def _index() -> _FormIndex:
    index = _FormIndex({}, {}, [])
    for form in forms():
        tails = [(head, len(_tail(head))) for head in form.heads]
        if any(not head for head, _ in tails) or min(tails, key=itemgetter(1))[1] + form.least_rest < _LEAST_RUN:
            index.near.append((form.literal, form))
            continue
        for head, inside in tails:
            if inside == len(head):
                index.within.setdefault(head[:3], []).append((head, form))
            else:
                index.before.setdefault(head[: len(head) - inside][-2:], []).append((head, len(head) - inside, form))
    return index


# A head of so few letters counts only if nothing is joined to it.
_SHORT = 4
_LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_-"
_HEX = b"0123456789abcdef-"
# How a token without a head may begin, or what may precede a run that is a token's end.
_SPECIAL_FIRSTS = frozenset("eZLMNO")
_FIRSTS = _SPECIAL_FIRSTS | {"-", "_"}
_CLOSE = frozenset("\\%.:!|")
_BEFORE_HEX = frozenset((b":", b"/", b".", b"$"))
_MAY_BE_LETTERS = late(
    rb"[-_]?(?:A(?:KIA|SIA|BIA|CCA)|hf_|[sr]k_(?:live|test)_|rzp_|gh[pousr]_|npm_|pat[A-Za-z]{14}(?=\.))"
)


def find(searched: SearchedText) -> Iterator[SecretSpan]:
    """Yields the tokens of a text."""
    text, raw = searched.text, searched.bytes
    within, before = _index().within, _index().before
    done = 0
    for start, end in searched.runs(_LEAST_RUN):
        in_base64 = start >= done and raw[start - 1 : start] in _IN_BASE64
        if in_base64 and searched.encoded_map.startswith(_LONG_BASE64, start - 400):
            # No token begins within an encoded picture or file.
            done = searched.encoded_map.find(b" ", start)
            done = done if done >= 0 else len(raw)
        # Names have no digits, nearly all tokens have some.
        if start < done or (
            end - start < 36 and not raw[start:end].translate(None, _LETTERS) and not _MAY_BE_LETTERS.match(raw, start)
        ):
            continue
        # Hashes and UUIDs do not begin like a token, either.
        if (
            not raw[start:end].translate(None, _HEX)
            and raw[start - 1 : start] not in _BEFORE_HEX
            and not raw.startswith(b"fc-", start)
        ):
            found = _find_of_vendor(searched, start, end) if end - start in _LENGTHS else None
        else:
            key, close = text[start : start + 3], text[start - 2 : start]
            may = key in within or key[:2] in within or key[:1] in _FIRSTS or close in before or close[-1:] in _CLOSE
            found = _token(text, start, end) if may or end - start >= 36 else None
            found = found or _find_of_vendor(searched, start, end)
        if found:
            done = found.end
            yield found
            if found.rule == "aws-id":
                pair = SHAPES.aws_pair.match(text, done)
                if pair and is_mixed(pair[1]) and not is_placeholder(pair[1]):
                    yield SecretSpan(*pair.span(1), "aws-pair")


_IN_BASE64 = frozenset((b"+", b"/"))
_LONG_BASE64 = b"a" * 400
# Lengths of keys in hex, which are also those of hashes.
_LENGTHS = (32, 36, 40, 64)
_AROUND = " \t\"'`\\]>"
_WORD = "abcdefghijklmnopqrstuvwxyz0123456789"


def _find_of_vendor(searched: SearchedText, start: int, end: int) -> SecretSpan | None:
    """Returns what is under a vendor's bare name, `algolia = "…"`, or was drawn at random, whatever its name is."""
    text, around = searched.text, searched.low[max(0, start - 40) : start]
    before = around.rstrip(_AROUND)
    quoted = around[-1:] in _QUOTES and text[end : end + 1] in _QUOTES
    assigned = before[-1:] in _GIVEN_BY
    if not assigned and not (quoted and around[-2:-1] == " "):
        return None
    before = before.rstrip("=:").rstrip(_AROUND)
    value = text[start:end]
    if before[len(before.rstrip(_WORD)) :] in set_of("vendors"):
        given = not value.strip("0123456789abcdef-") or is_drawn(value)
        end = more.end() if (more := SHAPES.more_of_value.match(text, end)) else end
    else:
        # Not the name of an identifier or a digest, nor one that `named` judges; `pi_…` names a payment.
        name = before[len(before.rstrip(_WORD + "_")) :].rstrip("_")
        given = (
            (quoted or (text[start - 1] == "=" and text[end : end + 1] in ("\n", "")))
            and assigned
            and 20 <= end - start < 120
            and is_key(value)
            and is_drawn(value)
            and len(SHAPES.change.findall(value)) > 3
            and not value.partition("_")[0].isalpha()
            and name[-1:].isalpha()
            and not name.endswith(list_section("of identifiers"))
        )
    return SecretSpan(start, end, "assignment") if given and not is_placeholder(value) else None


_GIVEN_BY = frozenset(("=", ":"))
_QUOTES = frozenset(("'", '"', "`"))


def _token(text: str, start: int, end: int) -> SecretSpan | None:
    at, before = start, text[start - 1 : start]
    index = _index()
    if text[start - 2 : start] in index.before or before in _PARTS:
        found = _find_after_head(text, start, end, before)
        if found:
            return found
    while text[at : at + 1] in ("-", "_"):
        at += 1
    for length in (3, 2):
        if (key := text[at : at + length]) in index.within:
            if _any_of(key).match(text, at) and (found := _match_head(text, at, index.within[key])):
                return found
            break
    if (end - start >= 36 or text[at : at + 1] in _SPECIAL_FIRSTS) and (found := _special(text, at)):
        return found
    if end - at >= 40 and (joined := SHAPES.joined.search(text, at, end)):
        place = joined.end()
        return _match_head(text, place, index.within.get(text[place : place + 3], []), whole=False)
    return None


@cache
def _any_of(key: str) -> re.Pattern[str]:
    """Returns a pattern of all forms with a head that begins so: most runs are like none of them."""
    return re.compile("|".join(dict.fromkeys(form.pattern.pattern for _, form in _index().within[key])))


def _find_after_head(text: str, start: int, end: int, before: str) -> SecretSpan | None:
    """Finds tokens whose heads hold a `.` or a `:`, so that the run is only their end."""
    index = _index()
    heads = index.before.get(text[max(0, start - 2) : start], ())
    found = filter(None, (_match_head(text, start - inside, [(head, form)]) for head, inside, form in heads))
    if best := max(found, key=lambda one: one.end, default=None):
        return best
    if before in ":!|" and (match := SHAPES.split.match(text, start)):
        head = getattr(SHAPES, f"{match.lastgroup}_head").search(text, max(0, start - 32), start)
        return SecretSpan(head.start(), match.end(), match.lastgroup or "") if head else None
    if before in ".:" and end - start >= 20:
        near = text[max(0, start - 64) : start]
        for literal, form in index.near:
            if literal in near:
                place = start - len(near) + near.rfind(literal)
                if form.literal_offset is None:
                    match = form.pattern.search(text, place - 24, end)
                else:
                    match = form.pattern.match(text, place - form.literal_offset)
                if (
                    match
                    and match.end() > start
                    and SHAPES.boundary.match(text, match.start())
                    and _is_token(form, literal, match[0])
                ):
                    return SecretSpan(*match.span(), form.rule)
    return None


_PARTS = frozenset((".", ":", "!", "|"))


def _special(text: str, at: int) -> SecretSpan | None:
    """Finds signed tokens, key blocks in base64, bots' tokens, and tokens with a mark inside or at the end."""
    match = SHAPES.special.match(text, at)
    if match is None:
        return None
    rule, token = (match.lastgroup or "").replace("_", "-"), match[0]
    if rule == "private-block-base64" and b"PRIVATE" not in decode_base64(token[:64]):
        return None
    # A bot's token begins with its id, decimal digits in base64.
    bot = token.partition(".")[0]
    if rule == "discord" and not (decode_base64(bot).isdigit() or (is_mixed(bot) and is_mixed(token[-27:]))):
        return None
    return SecretSpan(*match.span(), rule)


def _match_head(text: str, place: int, heads: list[tuple[str, TokenForm]], *, whole: bool = True) -> SecretSpan | None:
    best: SecretSpan | None = None
    for head, form in heads:
        if not text.startswith(head, place):
            continue
        if whole and not (SHAPES.whole if len(head) <= _SHORT else SHAPES.boundary).match(text, place):
            continue
        match = form.pattern.match(text, place)
        if match is None or (best is not None and match.end() <= best.end):
            continue
        if _is_token(form, head, match[0][len(head) :]):
            best = SecretSpan(*match.span(), form.rule)
    return best


def _is_token(form: TokenForm, head: str, body: str) -> bool:
    """Returns whether it was generated, not written: no placeholder, and no words where words could fit."""
    if SHAPES.stand_in.search(body):
        return False
    if is_mixed(body) or max(map(len, SHAPES.pieces.split(body))) >= 20:
        return True
    if form.is_strict or len(head) > _SHORT:
        return any(map(str.isdigit, body)) or form.rule in _LETTERS_ALONE or looks_random(body)
    return False


# Sixteen characters of 32, of which six are digits, are often enough only letters.
_LETTERS_ALONE = frozenset({"aws-id"})
