"""Applies the rules: finds secrets, and replaces them by `[REDACTED:<rule>]`.

Searches are cheap because they are for literals: a text is converted once to bytes in lower case, one per character,
and which of some two hundred literals it may hold is known by its different words; patterns are only matched where
one occurs. Tokens are found by their runs of letters and digits, which are also one literal after all such characters
are mapped to one. Plain text takes 40 to 60 ms a megabyte, a third of it to find the words.

Everything is linear: the occurrences of each literal are visited once, and a pattern reads a bounded stretch or takes
what it read.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from itertools import accumulate

from signet_sync.formats.body import JOINERS, SELECTORS, UNSEEN
from signet_sync.formats.lazy_pattern import late
from signet_sync.text.secrets import marked, named, providers
from signet_sync.text.secrets.names import cannot_be_word, decode_base64, words
from signet_sync.text.secrets.searched_text import SEQUENCES, SHAPES, SearchedText, SecretSpan

Step = Callable[[SearchedText], Iterator[SecretSpan]]


def redact(text: str) -> tuple[str, dict[str, int]]:
    """Replaces every secret in a text by `[REDACTED:<rule>]`; also returns how often each rule did so.

    Without a secret the same object is returned. Idempotent: it is repeated until nothing is found; each round removes
    text outside the marks and no rule reaches into a mark, so that it ends (in practice at once).
    """
    counts: dict[str, int] = {}
    searched = SearchedText(text)
    while True:
        changed = False
        for step, needs in _NEEDS:
            if not needs(searched):
                continue
            found = [*step(searched)]
            if found:
                text = _replace_repeats(_replace_spans(text, kept := _drop_overlaps(found), counts), kept, text, counts)
                searched = SearchedText(text)
                changed = True
        if not changed:
            return text, counts
        searched = SearchedText(text)


def _all(text: str, but: Step | None = None) -> Iterator[SecretSpan]:
    searched = SearchedText(text)
    for step, needs in _NEEDS:
        if step is not but and needs(searched):
            yield from step(searched)


# More different values than this are not looked for again.
_MOST_AGAIN = 64


def _replace_repeats(text: str, found: list[SecretSpan], before: str, counts: dict[str, int]) -> str:
    """Replaces what was found where it stands again without a name."""
    known: dict[str, str] = {}
    for start, end, rule in found[:_MOST_AGAIN]:
        if 8 <= end - start <= 4096 and cannot_be_word(before[start:end]):
            known.setdefault(before[start:end], rule)
    for value, rule in known.items():
        count = text.count(value)
        if count:
            counts[rule] = counts.get(rule, 0) + count
            text = text.replace(value, f"[REDACTED:{rule}]")
    return text


def _drop_overlaps(found: list[SecretSpan]) -> list[SecretSpan]:
    """Sorts by position and drops overlaps: of two with the same beginning the longer one stays."""
    kept: list[SecretSpan] = []
    for one in sorted(found, key=lambda one: (one.start, -one.end)):
        if not kept or one.start >= kept[-1].end:
            kept.append(one)
    return kept


def _replace_spans(text: str, found: list[SecretSpan], counts: dict[str, int]) -> str:
    parts: list[str] = []
    end = 0
    for start, stop, rule in found:
        parts += text[end:start], f"[REDACTED:{rule}]"
        counts[rule] = counts.get(rule, 0) + 1
        end = stop
    return "".join(parts) + text[end:]


# ── rules within a rule: base64, percent-encoding, escapes and colours hide the marks of the others ──

_NOT_TEXT = late(rb"[^\t\n\r -~]")
_LEAST = 40


def _find_base64(searched: SearchedText) -> Iterator[SecretSpan]:
    """Yields whole runs of base64 whose text contains a secret."""
    done = 0
    for start, end in searched.find_base64_runs(_LEAST):
        # Base64 of text has capitals: a hash has none.
        if start < done or searched.bytes[start:end].islower():
            continue
        match = SHAPES.encoded_lines.match(searched.text, start) or SHAPES.encoded_lines.match(searched.text, start + 1)
        if match is None:
            continue
        if len(match[0]) > 80 and SHAPES.azure_key.fullmatch(match[0]):
            done = match.end()
            yield SecretSpan(*match.span(), "azure-marked")
            continue
        text = _decode_run(match[0])
        if text and any(True for _ in _all(text)):
            done = match.end()
            yield SecretSpan(*match.span(), "base64")


def _decode_run(run: str) -> str:
    """Decodes a base64 run (perhaps of several lines) to its text, or to "" if it holds none.

    It holds text if it begins with 15 characters of ASCII. The `n` of an escaped newline may be glued to the front, so
    that the run proper begins up to three characters late.
    """
    for delay in range(4):
        head = decode_base64(run[delay : delay + 20])
        if head and not _NOT_TEXT.search(head):
            return decode_base64(SHAPES.between_lines.sub("", run[delay:])).decode("utf-8", "replace")
    return ""


def _find_percent(searched: SearchedText) -> Iterator[SecretSpan]:
    """Yields secrets in percent-encoded text."""
    text, runs = searched.text, [(0, 0)]
    for mark in searched.matches(SHAPES.escaped_mark, ("%",)):
        place, done = mark.start(), runs[-1][1]
        if place >= done:
            # A very long run is read in parts.
            before = text[max(done, place - 4096) : place]
            match = SHAPES.percent_run.match(text, place - len(before) + len(before.rstrip(_ALLOWED)))
            runs += [match.span()] if match is not None and len(match[0]) >= 12 else []
    # A run is part of a line: its first name is not at the beginning of one.
    # `%252525…` could be decoded once for each of its characters.
    spans = partial(_all, but=_find_percent)
    found = _find_beneath(text, SHAPES.percent_or_plus, runs[1:], spans, _decode_percent, before="]")
    return (one._replace(rule="percent-encoded") for one in found)


_ALLOWED = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._~+*!%-"


def _decode_percent(escape: re.Match[str]) -> str:
    """Decodes to one character for each escape; no secret has bytes beyond ASCII."""
    return " " if escape[0] == "+" else chr(int(escape[0][1:], 16))


# ── text within strings, under what a terminal and a keyboard add ──

# In lower case: what leads to a line that has anything beneath.
_LED_TO = {"\\": late(r"\\(?:[\"n]|u[0-9a-f]{4}|x1b|0?33\[|e\[)"), "^[": late(r"\^\[[\[\]]")}
_NOT_SEEN = rf"[{UNSEEN}{JOINERS}{SELECTORS}]|(?<=[!-~])\xa0(?=[!-~])|[\x00-\x08\x0b-\x1f\x7f-\x9f]"
_HIDDEN = late(f"{SEQUENCES}|{_NOT_SEEN}")
_UNESCAPED = {"n": "\n", "r": "\r", "t": "\t"}
_BETWEEN = "\n\n\n"
_WIDTHS = frozenset((80, 100, 120))


def _find_escaped(searched: SearchedText) -> Iterator[SecretSpan]:
    r"""Yields secrets in lines with escapes, such as JSON in JSON: `\n`, `\"`, `\u0041`, a colour that is spelt out.

    Each level removed halves the number of backslashes, so that nested levels end soon.
    """
    text, low = searched.given, searched.low
    lines = sorted(
        {line for mark, leads in _LED_TO.items() if searched.holds(mark) for line in _lines_with(leads, low)}
    )
    return _find_beneath(text, SHAPES.escaped, lines, _all, _plain)


def _find_hidden(searched: SearchedText) -> Iterator[SecretSpan]:
    """Yields secrets in lines with colours, other control characters, and what nobody sees."""
    return _find_beneath(searched.given, _HIDDEN, _lines_with(_HIDDEN, searched.given), _all)


def _lines_with(pattern: re.Pattern[str], text: str) -> Iterator[tuple[int, int]]:
    """Yields the lines in which a pattern is found: where each begins and ends."""
    end = 0
    while mark := pattern.search(text, end):
        start = text.rfind("\n", end, mark.start()) + 1 or end
        end = text.find("\n", mark.start())
        end = len(text) if end < 0 else end
        yield start, end


def _find_wrapped(searched: SearchedText) -> Iterator[SecretSpan]:
    """Yields secrets that the end of a line cuts because the line was as wide as a terminal."""
    text, stretches = searched.given, [(0, 0)]
    starts = accumulate((width + 1 for width in searched.line_widths), initial=0)
    wide = (start for start, width in zip(starts, searched.line_widths, strict=False) if width in _WIDTHS)
    for line in filter(None, (SHAPES.wrapped_line.match(text, start) for start in wide)):
        start, end = stretches[-1]
        following = text.find("\n", line.end())
        following = len(text) if following < 0 else following
        if line.start() <= end and end:
            stretches[-1] = start, following
        else:
            stretches.append((line.start(), following))
    for found in _find_beneath(text, SHAPES.line_end, stretches[1:], _all):
        first, _, rest = text[found.start : found.end].partition("\n")
        # After a whole secret at the end of a line that happens to be as wide, a word begins.
        if rest and not (rest.islower() and rest.isalpha() and len(first) > len(rest)):
            yield found


def _find_beneath(
    text: str,
    hiding: re.Pattern[str],
    stretches: Iterable[tuple[int, int]],
    spans: Callable[[str], Iterator[SecretSpan]],
    plain: Callable[[re.Match[str]], str] = lambda hidden: "",
    before: str = "",
) -> Iterator[SecretSpan]:
    """Yields what is found in stretches of a text without what hides it, at its position in the text."""
    pieces = [(stretch, *hiding.subn(plain, text[slice(*stretch)])) for stretch in stretches]
    if not any(count for _, _, count in pieces):
        return
    shown = [(stretch, f"{before}{piece}{_BETWEEN}") for stretch, piece, _ in pieces if piece]
    begins = list(accumulate((len(piece) for _, piece in shown), initial=len(before)))

    @cache
    def places(number: int) -> tuple[array[int], array[int]]:
        """Where each character beneath begins and ends in the text; an escape is one character."""
        (at, end), firsts, lasts = shown[number][0], array("q"), array("q")
        for hidden in hiding.finditer(text, at, end):
            firsts.extend(range(at, hidden.start()))
            lasts.extend(range(at + 1, hidden.start() + 1))
            at = hidden.end()
            if plain(hidden):
                firsts.append(hidden.start())
                lasts.append(at)
        firsts.extend(range(at, end))
        lasts.extend(range(at + 1, end + 1))
        return firsts, lasts

    for found in spans("".join(piece for _, piece in shown)):
        bounds = []
        for side, place in enumerate((max(found.start, len(before)), found.end - 1)):
            number = bisect_right(begins, place) - 1
            outer = places(number)[side]
            bounds.append(outer[min(place - begins[number], len(outer) - 1)])
        if bounds[0] < bounds[1]:
            yield SecretSpan(bounds[0], bounds[1], found.rule)


def _plain(escape: re.Match[str]) -> str:
    """Returns what an escape stands for."""
    piece = escape[0]
    if piece[0] == "^":
        return "\x1b"
    if len(piece) == 6 and piece[1] == "u":
        return chr(int(piece[2:], 16))
    return "\x1b" if len(piece) > 2 or piece == "\\e" else _UNESCAPED.get(piece[1], piece[1])


# Rules within a rule: each decoding removes a quarter of the text, so that this is neither deep nor long.
# In this order: first what something cuts in two, then what is known by its whole form, what is known by a name, at last
# what is encoded; each with the condition without which it finds nothing.
_NEEDS: tuple[tuple[Step, Callable[[SearchedText], object]], ...] = (
    (_find_hidden, lambda searched: searched.may_hide),
    (_find_wrapped, lambda searched: not _WIDTHS.isdisjoint(searched.line_widths)),
    (marked.find_blocks, lambda searched: searched.holds("-----begin", "-----end")),
    (providers.find, lambda searched: searched.has_run(16)),
    (marked.find, lambda searched: True),
    (named.find, lambda searched: words(searched).names or words(searched).uses),
    (marked.find_in_documents, lambda searched: words(searched).names or searched.holds("kind", "kty")),
    (_find_escaped, lambda searched: searched.holds("\\", "^[")),
    (_find_percent, lambda searched: "%" in searched.low),
    (_find_base64, lambda searched: b"a" * 40 in searched.encoded_map),
)
