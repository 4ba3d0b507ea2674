"""Reads notes in Markdown: what OpenClaw remembers, and what basic-memory's lists state.

From a folder that a person named: no link is followed, sizes and numbers are bounded.
"""

import os
import re
from collections.abc import Callable, Iterator
from functools import cache
from itertools import islice
from textwrap import dedent
from typing import TYPE_CHECKING, NamedTuple

from signet_sync.errors import HarnessError, UsageError, WorkspaceError
from signet_sync.formats import managed_block
from signet_sync.formats.filename import artifact_name
from signet_sync.formats.frontmatter import FrontmatterProblem, Value, parse
from signet_sync.formats.snapshot import Found
from signet_sync.formats.timestamps import parse_since
from signet_sync.migration.items import FILES, NO_STATEMENT, Item, kind_of, statement, states
from signet_sync.storage import files
from signet_sync.storage.files import folder
from signet_sync.text.sanitizer import sanitize_transcript_v2

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

MOST_BYTES = 1024 * 1024
MOST_FILES = 20_000


class MarkdownFile(NamedTuple):
    """A file as it was read: path in the folder, frontmatter, the text below (sanitized), and when it was changed."""

    path: str
    fields: dict[str, Value]
    body: str
    changed_us: int


def read_files(
    path: str, program: str, wanted: Callable[[str], bool] = lambda path: True
) -> Iterator[MarkdownFile | Item]:
    """Yields the Markdown files below a folder, or the one that is named; an item for each that is not read.

    `wanted` is asked for paths in the folder, those of folders with `/` at their end. Raises `HarnessError`,
    `UsageError`.
    """
    path = os.path.realpath(os.path.expanduser(path))
    hint = f"give the place of its files: signet-sync migrate {program} PATH"
    if not os.path.exists(path):
        raise UsageError("there is no such file or folder", path=path, hint=hint, code="no-such-path")
    if not os.path.isdir(path):
        yield _read(*os.path.split(path))
        return
    found = list(islice(_below(path, wanted), MOST_FILES + 1))
    if len(found) > MOST_FILES:
        what = f"it holds more than {MOST_FILES:,} files"
        raise HarnessError(what, path=path, hint="name a folder in it; nothing was brought", code="too-many-files")
    if not found:
        raise UsageError(f"there is no file of {program} in it", path=path, hint=hint, code="no-such-path")
    for one in found:
        yield one if isinstance(one, Item) else _read(path, one)


def not_read(path: str, why: str) -> Item:
    """Returns what stands for a file that is left."""
    return Item(FILES, path, 0, left=why)


def _below(root: str, wanted: Callable[[str], bool]) -> Iterator[str | Item]:
    """Yields the paths of Markdown files; hidden ones are none of a program's notes."""
    waiting = [""]
    while waiting:
        where = waiting.pop()
        try:
            with folder(root, where) as descriptor, os.scandir(descriptor) as listing:
                entries = sorted((one.name, one.is_symlink(), one.is_dir(follow_symlinks=False)) for one in listing)
        except (OSError, WorkspaceError) as error:
            if not where:
                raise HarnessError("the folder cannot be read", path=root, hint="check its permissions") from error
            yield not_read(where, "the folder cannot be read")
            continue
        for name, is_link, is_folder in entries:
            path = f"{where}/{name}" if where else name
            if name.startswith(".") or not (wanted(path) or wanted(f"{path}/")):
                continue
            if is_link:
                yield not_read(path, "it is a link")
            elif is_folder:
                waiting.append(path)
            elif name.endswith(".md"):
                yield path


def _read(root: str, path: str) -> MarkdownFile | Item:
    if artifact_name(path.rpartition("/")[2]) is not None:
        return not_read(path, "it is an artifact of signet-sync")
    found = files.read(root, path, MOST_BYTES)
    if not isinstance(found, Found):
        return not_read(path, found.message)
    if managed_block.is_signets(found.raw):
        return not_read(path, "Signet generated it")
    raw = managed_block.drop_block(found.raw) or b""  # what a page of ours shows is here already
    try:
        document = parse(raw)
        fields, body = dict(document.fields), document.body
    except FrontmatterProblem:
        try:
            fields, body = {}, raw.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
        except UnicodeDecodeError:
            return not_read(path, "it is not UTF-8")
    # Before it is cut: half of a secret is not known as one.
    return MarkdownFile(path, fields, sanitize_transcript_v2(body), found.signature.mtime_ns // 1000)


@cache
def parser() -> "MarkdownIt":
    """Returns a parser of a note's blocks; it knows tables."""
    from markdown_it import MarkdownIt  # nothing else here needs it

    return MarkdownIt("commonmark", {"maxNesting": 20}).enable("table").disable("inline")


# ── basic-memory ──

# `[00:01:02]` is a time in a transcript, `[x]` and `[>]` are marks of a task.
_OBSERVATION = re.compile(r"\[(?P<category>(?![xX]\])[^\[\]()]*[^\W\d_][^\[\]()]*)\]\s+(?P<text>.+)")
_RELATION = re.compile(
    r"(?P<how>[^\[`]+)\s+(?<!\\)\[\[(?P<target>[^\[\]|]+)(?:\|[^\[\]]*)?\]\]\s*(?P<context>\([^()]*\))?"
)
_TAG = re.compile(r"(?<!\S)#([\w/-]+)")
_DIRECTIVE = re.compile(r"\s+#bm:links_to$")


def read_basic_memory(path: str, now_us: int) -> Iterator[Item]:
    """Yields what the notes below a folder state. Raises `HarnessError`, `UsageError`."""
    for found in read_files(path, "basic-memory"):
        if isinstance(found, Item):
            yield found
        else:
            yield from list(_list_stated(found, now_us)) or [not_read(found.path, "no observation or relation in it")]


def _list_stated(note: MarkdownFile, now_us: int) -> Iterator[Item]:
    title = _note_text(note, "title") or note.path.rpartition("/")[2].removesuffix(".md")
    given = [one for one in (_note_text(note, "type"), *_note_tags(note)) if one != "note"]
    times = (parse_since(_note_text(note, name)) for name in ("created", "modified", "date"))
    at_us = min(max(next((at for at in times if at is not None), note.changed_us), 0), now_us)
    for said in _list_items(note.body):
        observed, related = _OBSERVATION.fullmatch(said), _RELATION.fullmatch(said)
        if observed:
            category = observed["category"].strip()
            tags = [category, *given, *_TAG.findall(said)]
            yield Item("observations", f"{title}: {observed['text']}", at_us, kind_of(category), tags)
        elif related:
            how = related["how"].strip("\"' ").replace("_", " ")
            said = " ".join(filter(None, (title, how, related["target"].strip(), related["context"])))
            yield Item("relations", said, at_us, tags=given)


def _list_items(body: str) -> Iterator[str]:
    """Yields the paragraphs of lists, each on one line; a quote is a callout, a table's cells state nothing."""
    lists = others = 0
    for token in parser().parse(body):
        if token.type in ("list_item_open", "list_item_close"):
            lists += token.nesting
        elif token.type.removesuffix("_open").removesuffix("_close") in ("blockquote", "table", "heading"):
            others += token.nesting
        elif token.type == "inline" and lists and not others:
            yield _DIRECTIVE.sub("", " ".join(token.content.split()))


def _note_text(note: MarkdownFile, name: str) -> str:
    value = note.fields.get(name)
    return value.strip() if isinstance(value, str) else ""


def _note_tags(note: MarkdownFile) -> list[str]:
    value = note.fields.get("tags")
    given = value if isinstance(value, list) else str(value or "").split(",")
    return [tag.strip() for tag in given if isinstance(tag, str)]


# ── OpenClaw ──

# OpenClaw loads it in the person's own sessions only, never in those of groups.
_OWN = ("MEMORY.md", "memory.md")
_DAILY = re.compile(r"(\d{4}-\d\d-\d\d)(?!\d)")
_MARKER = re.compile(r"\s*(?:[-*+]|\d{1,9}[.)])\s+")
_SPOKEN = re.compile(r"^(?:user|assistant): ", re.MULTILINE)
_BLOCKS = ("paragraph_open", "fence", "code_block", "blockquote_open", "html_block")


def read_openclaw_memory(path: str, now_us: int) -> Iterator[Item]:
    """Yields what the files of a workspace say, or one file. Raises `HarnessError`, `UsageError`."""
    for found in read_files(path, "openclaw-memory", _is_memory):
        if isinstance(found, Item):
            yield found
            continue
        day = _DAILY.match(found.path.rpartition("/")[2])
        at_us = min(max((parse_since(day[1]) if day else None) or found.changed_us, 0), now_us)
        is_own = found.path in _OWN
        for piece in pieces(found.body):
            account = found.path if is_own else "memory/"
            # What was kept on purpose may be brief.
            empty = not states(statement(piece.text), 2 if is_own else 3) or (piece.spoken and not is_own)
            left = NO_STATEMENT if empty else ""
            yield Item(account, piece.whole, at_us, tags=("openclaw",), private=is_own, left=left)


def _is_memory(path: str) -> bool:
    """Returns whether a path is one of these; daily notes may be in the folder that a person names."""
    return path in _OWN or path.startswith("memory/") or _DAILY.match(path) is not None


class NotePiece(NamedTuple):
    """A list item or paragraph of a note, the heading or lead-in above it, and whether a conversation is copied."""

    label: str
    text: str
    spoken: bool = False

    @property
    def whole(self) -> str:
        """Returns the text below its label."""
        return f"{self.label}: {self.text}" if self.label and self.text else self.text


def pieces(body: str) -> list[NotePiece]:
    """Returns list items with what is below them, and paragraphs. Code and quotes belong to what is above them.

    Tables are left out. From a line such as `user: …` to the next heading, a conversation is copied.
    """
    lines = body.split("\n")
    tokens = parser().parse(body)
    found: list[NotePiece] = []
    label = lead = ""
    follows = spoken = False
    for place, token in enumerate(tokens):
        if token.type == "heading_open":
            heading = tokens[place + 1].content.strip().rstrip(":")
            says = token.tag != "h1" and any(map(str.isalpha, heading))  # no title of the file, no date
            label, lead, follows, spoken = heading if says else "", "", False, False
        elif token.map is not None and token.type == "list_item_open" and token.level == 1:
            first, _, below = "\n".join(lines[slice(*token.map)]).partition("\n")
            text = f"{_MARKER.sub('', first, count=1)}\n{dedent(below)}".strip()
            spoken = spoken or _SPOKEN.search(text) is not None
            found.append(NotePiece(lead or label, text, spoken))
            follows = True
        elif token.map is not None and token.level == 0 and token.type in _BLOCKS:
            text = "\n".join(lines[slice(*token.map)]).strip()
            after = next((line for line in islice(lines, token.map[1], None) if line.strip()), "")
            is_lead = text.endswith(":") and "\n" not in text and _MARKER.match(after) is not None
            lead = text.rstrip(":") if is_lead else ""
            if text.startswith("<!--") or is_lead:
                continue
            spoken = spoken or _SPOKEN.search(text) is not None
            if follows and token.type != "paragraph_open":
                found[-1] = found[-1]._replace(text=f"{found[-1].text}\n{text}")
            else:
                found.append(NotePiece(label, text, spoken))
            follows = True
    return found
