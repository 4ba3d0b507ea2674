"""Applies the rules: finds what is a secret, and puts `[REDACTED:<rule>]` in its place.

Looks are cheap since they are literals: a text becomes bytes in lower case once, a character for a byte, and some
twenty literals are looked for, each at a third of a nanosecond a character; patterns are only matched where one stands.
Tokens are found by their runs of letters and digits, which are one literal too once all such characters are made one.
Plain text takes 25 to 50 ms a megabyte, most of it to find the names. A multi-literal search in C (`hyperscan`,
`ahocorasick_rs`) was not taken: the values have to be judged all the same, and it would be a package that not every
machine can install, in every hook that starts.

Everything is linear: each literal's places are walked once, and a pattern reads a bounded stretch or takes
what it read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from signet_sync.text.secrets import documents, encoded, marked, named, providers
from signet_sync.text.secrets.names import words
from signet_sync.text.secrets.page import SHORT, Found, Page, has_run

Step = Callable[[Page], Iterator[Found]]

# The rules that are no lines of the table.
BY_HAND = frozenset(
    """
    private-block private-block-base64 jwt jwt-base64 aws-pair azure-ad azure-marked azure-sas telegram ably ghost
    salesforce discord slack-hook discord-hook teams-hook zapier-hook google-chat-hook authorization cookie
    mailchimp new-relic maxmind rapidapi curl-user url-login option statement pgpass netrc login masked assignment
    kubernetes percent-encoded base64
    """.split()
)


def redact(text: str) -> tuple[str, dict[str, int]]:
    """The text with every secret replaced by `[REDACTED:<rule>]`, and how often each rule did so.

    Where nothing was found the very same object comes back. Idempotent: it goes on until nothing is found; each round
    takes text away outside the marks and no rule reaches into a mark, so that it ends (in practice at once).
    """
    counts: dict[str, int] = {}
    if len(text) < SHORT and _is_plain(text):
        return text, counts
    page = Page(text)
    while True:
        changed = False
        for step, needs in _NEEDS:
            if not needs(page):
                continue
            found = list(step(page))
            if found:
                text = _replaced(text, _apart(found), counts)
                page = Page(text)
                changed = True
        if not changed:
            return text, counts
        page = Page(text)


_LEADS = (
    "pass", "token", "key", "secret", "auth", " -", "%", "\\", "cred", "pw", "login", "cookie", "-----", "-u", "kind",
    "bearer ", "config ", "daten", "fied ", "kennwort", "contrase", "securestring", "~", "sig=", "connection(",
)  # fmt: skip


def _is_plain(text: str) -> bool:
    """Whether none of what leads to a secret stands in it."""
    raw = text.encode("latin-1", "replace")
    low = raw.lower().decode("latin-1")
    if any(map(low.__contains__, _LEADS)):
        return False
    if ":" in low and ("://" in low or "432:" in low or "*:" in low or "mask::" in low or "#vso" in low):
        return False
    return not has_run(raw)


def suspects(text: str) -> bool:
    """Whether `redact` would replace anything (note `secret-suspected`)."""
    page = Page(text)
    return any(True for step in _STEPS for _ in step(page))


def extent(text: str) -> tuple[int, int] | None:
    """From the first secret's begin to the last one's end, or None."""
    return _extent(text, _STEPS)


def _extent(text: str, steps: tuple[Step, ...]) -> tuple[int, int] | None:
    page = Page(text)
    found = [one for step in steps for one in step(page)]
    return (min(one.start for one in found), max(one.end for one in found)) if found else None


def _without_percent(text: str) -> tuple[int, int] | None:
    # `%252525…` could be decoded once for each of its characters.
    return _extent(text, tuple(step for step in _STEPS if step is not _percent))


def _base64(page: Page) -> Iterator[Found]:
    # Rules within a rule: each decoding takes a quarter of the text away, so that this neither goes deep nor long.
    return encoded.find_base64(page, extent)


def _escaped(page: Page) -> Iterator[Found]:
    return encoded.find_escaped(page, _all)


def _all(text: str) -> Iterator[Found]:
    page = Page(text)
    return (found for step in _STEPS for found in step(page))


def _percent(page: Page) -> Iterator[Found]:
    return encoded.find_percent(page, _without_percent)


# In this order: what is known by its whole form first, what is known by a name after it, what is encoded last; each
# with that without which it finds nothing.
_NEEDS: tuple[tuple[Step, Callable[[Page], object]], ...] = (
    (marked.find_blocks, lambda page: "-----begin" in page.low),
    (providers.find, lambda page: page.has_run(16)),
    (marked.find, lambda page: True),
    (named.find, lambda page: words(page).names or words(page).uses),
    (documents.find, lambda page: words(page).names or "kind" in page.low),
    (_escaped, lambda page: "\\" in page.low),
    (_percent, lambda page: "%" in page.low),
    (_base64, lambda page: page.has_encoded_run(40)),
)
_STEPS = tuple(step for step, _ in _NEEDS)


def _apart(found: list[Found]) -> list[Found]:
    """In the order of the text, without what overlaps: of two that begin together the longer one stays."""
    kept: list[Found] = []
    for one in sorted(found, key=lambda one: (one.start, -one.end)):
        if not kept or one.start >= kept[-1].end:
            kept.append(one)
    return kept


def _replaced(text: str, found: list[Found], counts: dict[str, int]) -> str:
    parts: list[str] = []
    end = 0
    for start, stop, rule in found:
        parts += text[end:start], f"[REDACTED:{rule}]"
        counts[rule] = counts.get(rule, 0) + 1
        end = stop
    return "".join(parts) + text[end:]
