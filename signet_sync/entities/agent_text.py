"""Makes an agent's text fit for an entity file: it cannot forge sections, anchors or items, nor hide anything. Pure.

Narratives, items, titles; and the two kinds of text with a form: items of Evidence (a quote, why it matters, its
artifact, its event token), and the rationale for exceeding a soft cap.
"""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple, NewType

from markdown_it import MarkdownIt
from markdown_it.token import Token

from signet_sync.errors import UsageError
from signet_sync.formats.body import CONTROLS, drop_unseen, fix_surrogates, normalize
from signet_sync.formats.filename import artifact_name
from signet_sync.formats.paths import leaves_workspace, wikilink
from signet_sync.text.sentences import flatten, page_line, unescape

# Text that has been through `fit` or `fit_item`, now or when its event was recorded.
SafeText = NewType("SafeText", str)

TEXT_LIMIT = 20_000  # characters
TITLE_LIMIT = 120
QUOTE_LENGTH = 160
PART_LENGTH = 300  # characters of each part of a rationale
# The example shown in hints.
EXAMPLE = (
    "signet-sync entity append ID evidence --evidence 'memory/…--transcript.md#34' --text 'It is what she waits for.'"
)
_ROUNDS = 8

_CONTROL = re.compile(f"[{CONTROLS}]")
_DEEP = re.compile(r"^( {0,3})#{1,2}(?=[ \t]|$)")
_UNDERLINE = re.compile(r"^ {0,3}(?:=+|-+)[ \t]*$", re.MULTILINE)
# What opens HTML, beside an escaped character and code, in which nothing does.
_TAG = re.compile(
    r"\\[!-/:-@\[-`{-~]|(`+)(?!`).*?(?<!`)\1(?!`)|`+|(?P<tag><(?=[A-Za-z][A-Za-z0-9-]*+(?:[\s/>]|$)|[/?]|![A-Za-z\[]))"
)
_COMMENT = re.compile(r"<(?=!--)|%(?=%)")
_LINK_APART = re.compile(r"\[ \[([^\[\]|<>]+)(?:\|([^\[\]<>]*))?\] \]")
# What would start a heading, quote, list, task, fence or definition inside an item.
_BLOCK = re.compile(r"(?:(?:#{1,6}|[-*+]|\d{1,9}[.)]|\[[ xX]\])(?:[ \t]+|$)|>[ \t]*|[~=]{3,}[ \t]*)*")
_DEFINITION = re.compile(r"^(\[[^\]]*\]):")
_SAYS = re.compile(r"[^\s!-/:-@\[-`{-~]")
_ITEM = re.compile(r'"([^"]*)" — (.*?)(?: \[\[([^\[\]|]+)\|[^\[\]]*\]\])?(?: (ev:\S+))?')
_DAY = re.compile(r"(?<!\d)\d{4}-\d\d-\d\d(?!\d)", re.ASCII)
_PART = re.compile(r"(?:^|;)\s*(why|until|plan)\s*:", re.IGNORECASE)

_markdown = MarkdownIt("commonmark").disable("inline")


@lru_cache(maxsize=32)
def blocks(text: str) -> Sequence[Token]:
    """Parses the block structure of Markdown (CommonMark) with line maps; does not parse the text of paragraphs."""
    # Cached: an edit parses the same few texts repeatedly: before it, after it, in the linter.
    return tuple(_markdown.parse(text))


def fit(text: str) -> SafeText:
    """Makes a narrative safe. Idempotent.

    Headings of the first two levels become `###`, comments and raw HTML are shown as text, fences are closed. Raises
    `UsageError` (`text-empty`, `text-too-long`, `text-unfit`).
    """
    _refuse_long(text)
    # Without control and invisible characters, and blank lines and indentation at its start.
    visible = drop_unseen(_CONTROL.sub(" ", normalize(fix_surrogates(text))))
    fitted = normalize(visible).lstrip(" \t\n")
    if not fitted:
        raise _empty()
    # A change may alter how other lines are parsed, so the rules run until nothing changes.
    for _ in range(_ROUNDS):
        before = fitted
        fitted = _lower_headings(fitted)
        fitted = _sub_outside_code(fitted, _COMMENT, lambda found: f"{found[0]} ")
        fitted = _sub_outside_code(fitted, _TAG, lambda found: r"\<" if found["tag"] else found[0])
        fitted = _close_fence(fitted)
        if fitted == before:
            return SafeText(fitted)
    message = "the text contains markup that cannot be made safe"
    raise UsageError(message, hint="use simpler Markdown", code="text-unfit")


def fit_item(text: str) -> SafeText:
    """Makes the text of one list item safe, on one line; links into the workspace are kept. Idempotent.

    Raises `UsageError` (`text-empty`, `text-too-long`).
    """
    _refuse_long(text)
    flat = page_line(text)
    while (bare := _DEFINITION.sub(r"\1 :", flat[_block_end(flat) :].lstrip())) != flat:
        flat = bare
    if _SAYS.search(flat) is None:
        raise _empty()
    # Flattening splits links; those into the workspace are restored.
    return SafeText(_LINK_APART.sub(lambda one: one[0] if leaves_workspace(one[1]) else wikilink(one[1], one[2]), flat))


def fit_title(text: str) -> str:
    """Makes a title safe, on one line of at most 120 characters. Idempotent. Raises `UsageError` (`text-empty`)."""
    title = flatten(text[:TEXT_LIMIT], TITLE_LIMIT)
    while (bare := title[_block_end(title) :].rstrip("# ").lstrip()) != title:
        title = bare
    if _SAYS.search(title) is None:
        raise _empty()
    return title


def log_item(at: str, text: str) -> SafeText:
    """Formats a line of the change log: time (ISO 8601 UTC, or a day) and text. Raises `UsageError` (`text-empty`)."""
    return fit_item(f"{at} — {fit_item(text)}")


def _refuse_long(text: str) -> None:
    if len(text) > TEXT_LIMIT:
        message = f"the text has {len(text):,} characters, more than {TEXT_LIMIT:,}"
        raise UsageError(message, hint="keep what matters here and link the rest", code="text-too-long")


def _empty() -> UsageError:
    return UsageError("the text contains no words", hint="write at least one word", code="text-empty")


def _lower_headings(text: str) -> str:
    if "#" not in text and _UNDERLINE.search(text) is None:
        return text
    lines = text.split("\n")
    # From the end, so that earlier line numbers stay valid.
    for token in reversed(blocks(text)):
        if token.type != "heading_open" or token.level or token.tag not in ("h1", "h2") or token.map is None:
            continue
        start, end = token.map
        if token.markup.startswith("#"):
            lines[start] = _DEEP.sub(r"\1###", lines[start])
        else:
            lines[start:end] = [f"### {' '.join(map(str.strip, lines[start : end - 1]))}"]
    return normalize("\n".join(lines))


def _sub_outside_code(text: str, pattern: re.Pattern[str], shown: Callable[[re.Match[str]], str]) -> str:
    if pattern.search(text) is None:
        return text
    code: set[int] = set()
    for token in blocks(text):
        if token.type in ("fence", "code_block") and token.map is not None:
            code.update(range(*token.map))
    lines = text.split("\n")
    return "\n".join(line if at in code else pattern.sub(shown, line) for at, line in enumerate(lines))


def _close_fence(text: str) -> str:
    if "```" not in text and "~~~" not in text:
        return text
    tokens = blocks(f"{text}\n\n## end\n")
    if tokens[-1].type == "fence":
        return f"{text}\n{tokens[-1].markup}"
    return text


def _block_end(text: str) -> int:
    block = _BLOCK.match(text)
    return block.end() if block is not None else 0


# ── evidence and rationale ──


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


def item_text(quote: str, why: str, path: str, token: str) -> SafeText:
    """Formats an item on one line: `"quote" — why [[path|kind]] ev:…`. Long quotes are cut. `read_item` parses it.

    Raises `UsageError` (`text-empty`) for an empty quote or why.
    """
    quote, why = page_line(quote.replace('"', "'"), QUOTE_LENGTH), page_line(why)
    if not quote or not why:
        raise UsageError("evidence needs a quote and why it matters", hint='write "quote" — why', code="text-empty")
    name = artifact_name(path.rpartition("/")[2])
    return SafeText(f'"{quote}" — {why} {wikilink(path, name.kind if name else "source")} {token}')


def read_item(text: str) -> Evidence | None:
    """Parses an item's text; returns None if it has another form."""
    match = _ITEM.fullmatch(text)
    return Evidence(match[1], match[2], match[3], match[4]) if match else None


def stands_in(quote: str, line: str) -> bool:
    """Checks whether a line contains a quote; ignores a final ellipsis, kinds of quotation marks and white space."""
    bare, within = (" ".join(flatten(unescape(text)).replace('"', "'").split()) for text in (quote, line))
    return bare.removesuffix("…").rstrip() in within


def read_rationale(text: str) -> Rationale:
    """Parses `why: …; until: …; plan: …` in any order and flattens each. Raises `UsageError` (`rationale-invalid`)."""
    before, *parts = _PART.split(text)
    said = {
        name.lower(): flatten(value.strip().rstrip(";"), PART_LENGTH)
        for name, value in zip(parts[::2], parts[1::2], strict=True)
    }
    whole = all(any(map(str.isalnum, said.get(name, ""))) for name in Rationale._fields)
    if not whole or before.strip() or len(parts) > 2 * len(said):
        hint = 'write "why: …; until: …; plan: …": why more is kept, for how long, and how it will be pruned'
        message = "the rationale has to say once each why, until and plan"
        raise UsageError(message, hint=hint, code="rationale-invalid")
    return Rationale(said["why"], said["until"], said["plan"])
