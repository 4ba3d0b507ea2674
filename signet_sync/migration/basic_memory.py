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
_OBSERVATION = re.compile(r"\[(?P<category>[^\[\]()]{1,100})\]\s+(?P<text>.+)")
_NO_CATEGORY = re.compile(r"[xX]?|\W|[\d:.,\s-]*:[\d:.,\s-]*")
_RELATION = re.compile(
    r"(?:\"(?P<quoted>[^\"]+)\"|'(?P<single>[^']+)'|(?P<word>[^\s\[]+))\s+\[\[(?P<target>[^\[\]]+)\]\]"
    r"\s*(?:\((?P<context>[^()]*)\))?"
)
_TAG = re.compile(r"(?<!\S)#([\w/-]+)")


def read(path: str, now_us: int) -> Iterator[Item | LeftFile]:
    """Yields what the notes below a folder state. Raises `HarnessError`, `UsageError`."""
    for found in read_files(path, "basic-memory"):
        if isinstance(found, LeftFile):
            yield found
            continue
        items = list(_items(found, now_us))
        yield from items
        if not items:
            yield LeftFile(found.path, "no observation or relation in it")


def _items(note: MarkdownFile, now_us: int) -> Iterator[Item]:
    title = _text(note, "title") or note.path.rpartition("/")[2].removesuffix(".md")
    place = _text(note, "permalink") or note.path
    given = [_text(note, "type") or "note", *_tags(note)]
    times = (parse_since(_text(note, name)) for name in ("created", "modified", "date"))
    at_us = min(max(next((at for at in times if at is not None), note.changed_us), 0), now_us)
    for said in _list_items(note.body):
        observed = _OBSERVATION.fullmatch(said)
        category = observed["category"].strip() if observed else ""
        if observed and _NO_CATEGORY.fullmatch(category):
            continue
        tags = _TAG.findall(said)
        related = None if observed else _RELATION.fullmatch(said)
        if related:
            how = (related["quoted"] or related["single"] or related["word"]).replace("_", " ")
            context = f" ({related['context']})" if related["context"] else ""
            text = f"{title} {how} {related['target'].partition('|')[0].strip()}{context}"
            yield Item("relations", f"{place}\n{text}", text, at_us, tags=tuple(given))
        elif observed or tags:
            text = f"{title}: {observed['text'] if observed else said}"
            named = tuple(one for one in (category, *given, *tags) if one != "note")
            yield Item("observations", f"{place}\n{category}\n{text}", text, at_us, kind_of(category), named)


def _list_items(body: str) -> Iterator[str]:
    """Yields the paragraphs in lists, each on one line, without those in quotes, which are callouts."""
    lists = quotes = 0
    for token in _parser().parse(body):
        if token.type in ("list_item_open", "list_item_close"):
            lists += token.nesting
        elif token.type in ("blockquote_open", "blockquote_close"):
            quotes += token.nesting
        elif token.type == "inline" and lists and not quotes:
            yield " ".join(token.content.split())


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
