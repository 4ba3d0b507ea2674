"""Reads notes of basic-memory: the observations and relations in the lists of Markdown files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

from signet_sync.formats.timestamps import parse_since
from signet_sync.migration.items import Item, LeftFile, kind_of
from signet_sync.migration.markdown_folder import MarkdownFile, read_files

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

# `[00:01:02]` is a time in a transcript, `[x]` and `[>]` are marks of a task.
_OBSERVATION = re.compile(r"\[(?P<category>[^\[\]()]+)\]\s+(?P<text>.+)")
_NO_CATEGORY = re.compile(r"[xX]?|\W|[\d:.,\s-]*:[\d:.,\s-]*")
_TASK = re.compile(r"\[[ x-]\]")
_LINK = re.compile(r"(?<!\\)\[\[(?P<target>[^\[\]|]+)(?:\|[^\[\]]*)?\]\]")
# basic-memory takes unquoted types of several words for prose, and keeps that there is a link.
_RELATION = re.compile(
    rf"(?:\"(?P<quoted>[^\"]+)\"|'(?P<single>[^']+)'|(?P<words>[^\[]+))\s+{_LINK.pattern}\s*(?:\((?P<context>[^()]*)\))?"
)
_CODE = re.compile(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)")
_TAG = re.compile(r"(?<!\S)#([\w/-]+)")
_DIRECTIVE = re.compile(r"\s+#bm:links_to$")
NOTHING_STATED = "no observation or relation in it"
_NOT_LISTED = "a link in a task, or in text that is in no list"
_HEADING = "a heading with a tag"


def read(path: str, now_us: int) -> Iterator[Item | LeftFile]:
    """Yields what the notes below a folder state. Raises `HarnessError`, `UsageError`."""
    for found in read_files(path, "basic-memory"):
        if isinstance(found, LeftFile):
            yield found
            continue
        items = list(_items(found, now_us))
        yield from items
        if not items:
            yield LeftFile(found.path, NOTHING_STATED)


def _items(note: MarkdownFile, now_us: int) -> Iterator[Item]:
    title = _text(note, "title") or note.path.rpartition("/")[2].removesuffix(".md")
    place = _text(note, "permalink") or note.path
    given = [_text(note, "type") or "note", *_tags(note)]
    times = (parse_since(_text(note, name)) for name in ("created", "modified", "date"))
    at_us = min(max(next((at for at in times if at is not None), note.changed_us), 0), now_us)
    for where, said in _paragraphs(note.body):
        observed = _OBSERVATION.fullmatch(said)
        category = observed["category"].strip() if observed else ""
        is_marked = observed is not None and _NO_CATEGORY.fullmatch(category) is not None
        tags = _TAG.findall(said)
        is_observed = (observed and not is_marked) or (tags and not _TASK.match(said))
        if is_observed and where == "heading":
            yield Item("observations", "", "", at_us, left=_HEADING, name=note.path)
        elif is_observed and where != "quote":
            text = f"{title}: {observed['text'] if observed and not is_marked else said}"
            named = tuple(one for one in ("" if is_marked else category, *given, *tags) if one != "note")
            yield Item(
                "observations", f"{place}\n{category}\n{text}", text, at_us, kind_of(category), named, name=note.path
            )
        elif where == "list" and not is_marked and _linked(said):
            text = _relation(title, said)
            yield Item("relations", f"{place}\n{text}", text, at_us, tags=tuple(given), name=note.path)
        else:
            for _ in _linked(said):
                yield Item("relations", "", "", at_us, left=_NOT_LISTED, name=note.path)


def _linked(said: str) -> list[str]:
    """Returns the targets of the links of a line, without what stands in code."""
    return [found["target"].strip() for found in _LINK.finditer(_CODE.sub("", said))]


def _relation(title: str, said: str) -> str:
    """Returns the sentence of a list's line that links to other notes."""
    related = _RELATION.fullmatch(said)
    if related:
        how = related["quoted"] or related["single"] or related["words"].replace("_", " ").strip()
        context = f" ({related['context']})" if related["context"] else ""
        return f"{title} {how} {related['target'].strip()}{context}"
    if not any(map(str.isalnum, _LINK.sub("", said))):
        return f"{title} links to {', '.join(_linked(said))}"
    return f"{title}: {_LINK.sub(lambda found: found['target'].strip(), said)}"


def _paragraphs(body: str) -> Iterator[tuple[str, str]]:
    """Yields the paragraphs and headings, each on one line, and where it is: `list`, `quote`, `heading` or `text`.

    What is in quotes is a callout.
    """
    lists = quotes = 0
    is_heading = False
    for token in _parser().parse(body):
        if token.type in ("list_item_open", "list_item_close"):
            lists += token.nesting
        elif token.type in ("blockquote_open", "blockquote_close"):
            quotes += token.nesting
        elif token.type in ("heading_open", "heading_close"):
            is_heading = token.nesting > 0
        elif token.type == "inline":
            where = "quote" if quotes else "heading" if is_heading else "list" if lists else "text"
            yield where, _DIRECTIVE.sub("", " ".join(token.content.split()))


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"maxNesting": 20}).disable("inline")


def _text(note: MarkdownFile, name: str) -> str:
    value = note.fields.get(name)
    return value.strip() if isinstance(value, str) else ""


def _tags(note: MarkdownFile) -> list[str]:
    value = note.fields.get("tags")
    given = value if isinstance(value, list) else str(value or "").split(",")
    return [tag.strip() for tag in given if isinstance(tag, str)]
