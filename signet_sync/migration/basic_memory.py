"""Reads notes of basic-memory: the observations and relations in the lists of Markdown files."""

from __future__ import annotations

import re
from collections.abc import Iterator

from signet_sync.formats.timestamps import parse_since
from signet_sync.migration.items import Item, kind_of
from signet_sync.migration.markdown_folder import MarkdownFile, not_read, parser, read_files

_OBSERVATION = re.compile(r"\[(?P<category>[^\[\]()]+)\]\s+(?P<text>.+)")
# `[00:01:02]` is a time in a transcript, `[x]` and `[>]` are marks of a task.
_NO_CATEGORY = re.compile(r"[xX]?|\W|[\d:.,\s-]*:[\d:.,\s-]*")
# basic-memory takes unquoted types of several words for prose, and keeps that there is a link.
_RELATION = re.compile(
    r"(?:\"(?P<quoted>[^\"]+)\"|'(?P<single>[^']+)'|(?P<words>[^\[`]+))\s+(?<!\\)\[\[(?P<target>[^\[\]|]+)(?:\|[^\[\]]*)?\]\]"
    r"\s*(?:\((?P<context>[^()]*)\))?"
)
_TAG = re.compile(r"(?<!\S)#([\w/-]+)")
_DIRECTIVE = re.compile(r"\s+#bm:links_to$")


def read(path: str, now_us: int) -> Iterator[Item]:
    """Yields what the notes below a folder state. Raises `HarnessError`, `UsageError`."""
    for found in read_files(path, "basic-memory"):
        if isinstance(found, Item):
            yield found
        else:
            yield from list(_items(found, now_us)) or [not_read(found.path, "no observation or relation in it")]


def _items(note: MarkdownFile, now_us: int) -> Iterator[Item]:
    title = _text(note, "title") or note.path.rpartition("/")[2].removesuffix(".md")
    given = [one for one in (_text(note, "type"), *_tags(note)) if one != "note"]
    times = (parse_since(_text(note, name)) for name in ("created", "modified", "date"))
    at_us = min(max(next((at for at in times if at is not None), note.changed_us), 0), now_us)
    for said in _list_items(note.body):
        observed, related = _OBSERVATION.fullmatch(said), _RELATION.fullmatch(said)
        category = observed["category"].strip() if observed else ""
        if observed and _NO_CATEGORY.fullmatch(category) is None:
            tags = [category, *given, *_TAG.findall(said)]
            yield Item("observations", f"{title}: {observed['text']}", at_us, kind_of(category), tags)
        elif related:
            how = related["quoted"] or related["single"] or related["words"].replace("_", " ").strip()
            context = f" ({related['context']})" if related["context"] else ""
            yield Item("relations", f"{title} {how} {related['target'].strip()}{context}", at_us, tags=given)


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


def _text(note: MarkdownFile, name: str) -> str:
    value = note.fields.get(name)
    return value.strip() if isinstance(value, str) else ""


def _tags(note: MarkdownFile) -> list[str]:
    value = note.fields.get("tags")
    given = value if isinstance(value, list) else str(value or "").split(",")
    return [tag.strip() for tag in given if isinstance(tag, str)]
