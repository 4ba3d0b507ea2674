"""Brings what three other programs remember, or reports beforehand what would come.

claude-mem's database of any version, beside the running program; basic-memory's and OpenClaw's notes, of which no link
is followed.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from textwrap import dedent
from typing import TYPE_CHECKING, NamedTuple

from signet_sync.capture.transcripts import require_own_file, unreadable
from signet_sync.errors import HarnessError, UsageError, WorkspaceError
from signet_sync.formats import managed_block
from signet_sync.formats.filename import artifact_name
from signet_sync.formats.frontmatter import FrontmatterProblem, Value, parse
from signet_sync.formats.snapshot import Found
from signet_sync.formats.timestamps import parse_since
from signet_sync.migration.items import FILES, TOO_LONG, Item, Report, Row, kind_of, list_items, time_of
from signet_sync.migration.writer import MemoryWriter
from signet_sync.storage import files
from signet_sync.storage.database import foreign
from signet_sync.storage.database.foreign import ForeignDatabase
from signet_sync.storage.files import folder
from signet_sync.sync.workspace import Workspace
from signet_sync.text.index_words import CJK
from signet_sync.text.sanitizer import sanitize_transcript_v2

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

# What is read of a program's database, and the table and columns by which it is recognised.
Format = tuple[str, Mapping[str, tuple[str, ...]], str, tuple[str, ...]]
MOST_NAMED = 20  # files that are left are named up to this number; all are counted


def bring(workspace: Workspace, program: str, path: str, now_us: int, *, write: bool) -> Report:
    """Brings what a program remembers at a path and is not here; without `write` only reports what would come.

    What cannot be read as a whole is refused before anything is written. Ended early, it is finished by the same call.
    Raises `HarnessError`, `UsageError`, `WorkspaceError`, `DatabaseError`.
    """
    report = Report(path, dry_run=not write)
    writer = MemoryWriter(workspace, report, now_us, write=write)
    for found in list(READERS[program](path, now_us)):
        item = found._replace(origin=("", program))
        with report.accounted(item.account) as account:
            account.is_new = writer.bring(item)
        if item.account == FILES and report.accounts[FILES].rows <= MOST_NAMED:
            report.notes.append(f"{item.text} was left: {item.left}")
    writer.finish()
    return report


@contextmanager
def opened(path: str, written: Format) -> Iterator[ForeignDatabase]:
    """Opens the database in one read transaction, after a check of the tables that are read. Raises `HarnessError`."""
    path = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
    try:
        require_own_file(path, os.lstat(path))
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from error
    program, columns, known, needed = written
    with foreign.reading(path, program, columns) as database:
        # Another program's, an unknown version and a damaged file are refused before anything is brought.
        if not database.columns(known) >= {*needed}:
            what = f"it has no table `{known}` with {' and '.join(needed)}"
            hint = f"name {program}'s own database; if it is, upgrade signet-sync"
            raise HarnessError(what, path=path, hint=hint, code="database-unknown")
        if not all(database.is_sound(table) for table in database.tables if table in columns):
            raise foreign.make_damage_error(path, program)
        yield database


# ── claude-mem ──

_SHARED = ("id", "project", "merged_into_project", "created_at")
_SUMMARY = ("request", "investigated", "learned", "completed", "next_steps", "notes")
_CLAUDE_MEM: Format = (
    "claude-mem",
    {
        "observations": (*_SHARED, "type", "title", "subtitle", "narrative", "text", "facts", "concepts"),
        "session_summaries": (*_SHARED, *_SUMMARY),
    },
    "observations",
    ("id", "type", "project"),
)


def read_claude_mem(path: str, now_us: int) -> Iterator[Item]:
    """Yields the rows of a database, or of the one in a folder. Raises `HarnessError`, `UsageError`."""
    path = os.path.realpath(os.path.expanduser(path))
    path = os.path.join(path, "claude-mem.db") if os.path.isdir(path) else path
    if not os.path.lexists(path):
        hint = "give its place, for example: signet-sync migrate claude-mem ~/.claude-mem/claude-mem.db"
        raise UsageError("there is no database of claude-mem", path=path, hint=hint, code="no-database")
    with opened(path, _CLAUDE_MEM) as database:
        for table, words in (("observations", _tell_observation), ("session_summaries", _tell_summary)):
            for row in database.rows(table):
                kind = row.get("type") or ""
                project = row["merged_into_project"] or row["project"] or ""
                tags = (kind or "summary", project, *list_items(row.get("concepts")))
                left = TOO_LONG if row.get("bytes") else ""
                yield Item(table, words(row), time_of(row, "created_at", now_us=now_us), kind_of(kind), tags, left=left)


def _tell_observation(row: Row) -> str:
    # claude-mem puts this subtitle to what a person saves
    subtitle = "" if row["subtitle"] == "Manual memory" else row["subtitle"]
    return _join_sentences([row["title"], subtitle, row["narrative"] or row["text"], *list_items(row["facts"])])


def _tell_summary(row: Row) -> str:
    said = ((name.replace("_", " ").capitalize(), (row[name] or "").strip()) for name in _SUMMARY)
    return _join_sentences([f"{name}: {text}" for name, text in said if text])


def _join_sentences(texts: Iterable[str | None]) -> str:
    """Returns a line for each text, which ends as a sentence does: pages show all of them on one line."""
    lines = [text.strip() for text in texts if text and text.strip()]
    return "\n".join(line if line.endswith((".", "!", "?", ":", "…")) else f"{line}." for line in lines)


# ── notes in Markdown ──

MOST_BYTES = 1024 * 1024  # of a note


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
    found = list(_below(path, wanted))
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
    r"(?P<how>[^\[`]+)\s+(?<!\\)\[\[(?P<target>[^\[\]|]+)(?:\|[^\[\]]*)?\]\]\s*(?P<context>\([^()]*\))?(?:\s*#bm:\S+)?"
)
_TAG = re.compile(r"(?<!\S)#([\w/-]+)")


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
            yield " ".join(token.content.split())


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
_LINK = re.compile(r"!?\[[^\]\n]{0,300}\]\([^)\n]{0,2000}\)|<?\bhttps?://\S+")
_WORD = re.compile(rf"[{CJK}]{{2}}|[^\W\d_]{{2,}}")
NO_STATEMENT = "states nothing: a label, links, a question, or a conversation"
_BLOCKS = ("paragraph_open", "fence", "code_block", "blockquote_open")


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
            empty = not piece.states(2 if is_own else 3) or (piece.spoken and not is_own)
            left = NO_STATEMENT if empty else ""
            yield Item(account, piece.whole, at_us, tags=("openclaw",), private=is_own, left=left)


def _is_memory(path: str) -> bool:
    """Returns whether a path is one of these; daily notes may be in the folder that a person names."""
    return path in _OWN or path.startswith("memory/") or _DAILY.match(path) is not None


class NotePiece(NamedTuple):
    """A list item or paragraph of a note, the heading above it, and whether a conversation is copied."""

    label: str
    text: str
    spoken: bool = False

    @property
    def whole(self) -> str:
        """Returns the text below its label."""
        return f"{self.label}: {self.text}" if self.label and self.text else self.text

    def states(self, least: int) -> bool:
        """Returns whether it says something in so many words, beside its links; a question or a label does not."""
        bare = _LINK.sub(" ", self.text).strip("\"'*_`) \n")
        return len(_WORD.findall(bare)) >= least and not bare.endswith(("?", "？", ":", "："))


def pieces(body: str) -> list[NotePiece]:
    """Returns list items with what is below them, and paragraphs. Code and quotes belong to what is above them.

    Tables are left out. From a line such as `user: …` to the next heading, a conversation is copied.
    """
    lines = body.split("\n")
    tokens = parser().parse(body)
    found: list[NotePiece] = []
    label, follows, spoken = "", False, False
    for place, token in enumerate(tokens):
        if token.type == "heading_open":
            heading = tokens[place + 1].content.strip().rstrip(":")
            says = token.tag != "h1" and any(map(str.isalpha, heading))  # no title of the file, no date
            label, follows, spoken = heading if says else "", False, False
        elif token.map is not None and token.type == "list_item_open" and token.level == 1:
            first, _, below = "\n".join(lines[slice(*token.map)]).partition("\n")
            text = f"{_MARKER.sub('', first, count=1)}\n{dedent(below)}".strip()
            spoken = spoken or _SPOKEN.search(text) is not None
            found.append(NotePiece(label, text, spoken))
            follows = True
        elif token.map is not None and token.level == 0 and token.type in _BLOCKS:
            text = "\n".join(lines[slice(*token.map)]).strip()
            spoken = spoken or _SPOKEN.search(text) is not None
            if follows and token.type != "paragraph_open":
                found[-1] = found[-1]._replace(text=f"{found[-1].text}\n{text}")
            elif token.type in ("paragraph_open", "blockquote_open"):
                found.append(NotePiece(label, text, spoken))
                follows = True
    return found


READERS: Mapping[str, Callable[[str, int], Iterator[Item]]] = {
    "claude-mem": read_claude_mem,
    "basic-memory": read_basic_memory,
    "openclaw-memory": read_openclaw_memory,
}
