"""Reads the Markdown files of a folder that a person named: no link is followed, sizes and numbers are bounded."""

import os
from collections.abc import Callable, Iterator
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from signet_sync.errors import HarnessError, UsageError, WorkspaceError
from signet_sync.formats import managed_block
from signet_sync.formats.filename import artifact_name
from signet_sync.formats.frontmatter import FrontmatterProblem, Value, parse
from signet_sync.formats.snapshot import Found
from signet_sync.migration.items import FILES, Item
from signet_sync.storage import files
from signet_sync.storage.safe_paths import folder
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
