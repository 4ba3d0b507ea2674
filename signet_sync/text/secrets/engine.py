"""Applies the rules: finds secrets, and replaces them by `[REDACTED:<rule>]`.

Searches are cheap because they are for literals: a text is converted once to bytes in lower case, one per character,
and which of some two hundred literals it may hold is known by its different words; patterns are only matched where
one occurs. Tokens are found by their runs of letters and digits, which are also one literal after all such characters
are mapped to one. Plain text takes 40 to 60 ms a megabyte, a third of it to find the words. A multi-literal
search in C (`hyperscan`, `ahocorasick_rs`) was not taken: the values have to be judged all the same, and every hook
that starts would need a package that not every machine can install.

Everything is linear: the occurrences of each literal are visited once, and a pattern reads a bounded stretch or takes
what it read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from signet_sync.text.secrets import documents, encoded, marked, named, providers
from signet_sync.text.secrets.names import cannot_be_word, words
from signet_sync.text.secrets.searched_text import SearchedText, SecretSpan

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
                text = _again(_replace_spans(text, kept := _apart(found), counts), kept, text, counts)
                searched = SearchedText(text)
                changed = True
        if not changed:
            return text, counts
        searched = SearchedText(text)


def suspects(text: str) -> bool:
    """Returns whether `redact` would replace anything (note `secret-suspected`)."""
    return any(True for _ in _all(text))


def extent(text: str) -> tuple[int, int] | None:
    """Returns the positions from the beginning of the first secret to the end of the last one, or None."""
    found = list(_all(text))
    return (min(one.start for one in found), max(one.end for one in found)) if found else None


def _all(text: str, but: Step | None = None) -> Iterator[SecretSpan]:
    searched = SearchedText(text)
    for step, needs in _NEEDS:
        if step is not but and needs(searched):
            yield from step(searched)


def _percent(searched: SearchedText) -> Iterator[SecretSpan]:
    # `%252525…` could be decoded once for each of its characters.
    return encoded.find_percent(searched, partial(_all, but=_percent))


# Rules within a rule: each decoding removes a quarter of the text, so that this is neither deep nor long.
# In this order: first what something cuts in two, then what is known by its whole form, what is known by a name, at last
# what is encoded; each with the condition without which it finds nothing.
_NEEDS: tuple[tuple[Step, Callable[[SearchedText], object]], ...] = (
    (partial(encoded.find_hidden, spans=_all), lambda searched: searched.may_hide),
    (partial(encoded.find_wrapped, spans=_all), lambda searched: not encoded.WIDTHS.isdisjoint(searched.line_widths)),
    (marked.find_blocks, lambda searched: searched.holds("-----begin", "-----end")),
    (providers.find, lambda searched: searched.has_run(16)),
    (marked.find, lambda searched: True),
    (named.find, lambda searched: words(searched).names or words(searched).uses),
    (documents.find, lambda searched: words(searched).names or searched.holds("kind", "kty")),
    (partial(encoded.find_escaped, spans=_all), lambda searched: searched.holds("\\", "^[")),
    (_percent, lambda searched: "%" in searched.low),
    (partial(encoded.find_base64, extent=extent), lambda searched: b"a" * 40 in searched.encoded_map),
)


# More different values than this are not looked for again.
_MOST_AGAIN = 64


def _again(text: str, found: list[SecretSpan], before: str, counts: dict[str, int]) -> str:
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


def _apart(found: list[SecretSpan]) -> list[SecretSpan]:
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
