"""Writes the summary of a transcript: what rules found, with the items that a model chose where there are some."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from signet_sync.digest.outcome import Item, Kind, Outcome
from signet_sync.formats.lazy_pattern import late
from signet_sync.text.digest_mark import mark_chosen_by_model, opening
from signet_sync.text.sentences import escape, flatten

LIMIT = 6_000
TITLE_LENGTH, LINE = 100, 160
MARKED = 260  # characters of a text before its mark, which no reader of items may cut off
# Characters for the lines of a section; with headings and counts they stay below `LIMIT`.
OUTCOME, ITEMS, FILES, COMMANDS = 800, 800, 500, 500

# What would start a heading, a quote, a fence, a list or a task inside a list item.
_BLOCK = late(r"^(?:(?:#{1,6}|[-*+]|\d{1,9}[.)]|\[[ xX]\])(?:[ \t]+|$)|>[ \t]*|[~`]{3,}[ \t]*|\\(?=#))+")
_LOOKS = late(
    r"(?:cd \S+ *(?:&&|;) *)?(?:ls|cat|head|tail|grep|rg|find|pwd|cd|sed -n|wc|echo|which|tree|file|stat|du|type"
    r"|git (?:status|log|diff|show|branch))\b(?!.*[>;&])"
)
_SECTIONS: tuple[tuple[str, Kind], ...] = (
    ("Decisions", "decision"), ("Constraints", "constraint"), ("Blockers", "blocker"), ("Next steps", "next"),
    ("Preferences", "preference"), ("Notes", "note"), ("Tried", "tried"),
)  # fmt: skip


def summary(
    found: Outcome, *, project: str | None, harness: str | None, headless: bool = False, looks_up: bool = False
) -> str:
    """Returns Markdown about a session; empty if its transcript has no word. At most `LIMIT` characters.

    Everything but headings, counts and the opening line is in the transcript; shortened text ends in `…`.
    """
    said = (found.request, *found.results[:1], found.opening)
    title = next(filter(None, (_line(text, TITLE_LENGTH) for text in said)), "")
    if not title:
        return ""
    made = opening(project, harness, found.status, headless=headless, looks_up=looks_up)
    sections = [f"# {title}", mark_chosen_by_model(made) if found.chosen else made]
    for name, lines in _sections(found, project):
        if lines:
            sections.append("\n".join([f"## {name}", "", *lines]))
    return "\n\n".join(sections) + "\n"


def _sections(found: Outcome, project: str | None) -> Iterator[tuple[str, list[str]]]:
    """Yields the sections in order with their lines; those that MEMORY.md also has use its names."""
    yield "Outcome", _first(_items(found.results), OUTCOME)
    for name, kind in _SECTIONS:
        told = (_tell_item(item) for item in found.items if item.kind == kind and item.rule != "done")
        yield name, _first(_items(told), ITEMS)
    yield "Done", _first(_items(_tell_item(item) for item in found.items if item.rule == "done"), ITEMS)
    yield "Files", _first(_files(found.edited, project), FILES)
    yield "Commands", _last(_commands(found.commands, project), COMMANDS)


def item_line(item: Item) -> str:
    """Returns a statement as its line in the summary says it; empty without a word."""
    return _line(_tell_item(item), 400)


def _tell_item(item: Item) -> str:
    """Returns a statement's words; only a person's stand as a decision without a mark."""
    text = item.text.replace("`", "").replace("**", "")
    marked = item.who == "agent" and item.kind in ("decision", "constraint")
    return f"{flatten(text, MARKED)} (agent)" if marked else text


def _files(edited: Mapping[str, int], project: str | None) -> list[str]:
    root = (project or "").rstrip("/") + "/"
    below: dict[str, int] = {}
    for path, times in edited.items():
        name = path.removeprefix(root) if len(root) > 1 else path
        below[name] = below.get(name, 0) + times
    return [f"- {_code(path)}{f' ({times:,} times)' if times > 1 else ''}" for path, times in below.items()]


def _commands(commands: Mapping[str, bool], project: str | None) -> list[str]:
    """Lists the commands that changed something; those that only look if there are no others."""
    here = f"cd {(project or '/').rstrip('/')} && "
    ran = {command.removeprefix(here): failed for command, failed in commands.items()}
    acting = [command for command in ran if not _LOOKS.match(command)]
    return [f"- {_code(command)}{' · failed' if ran[command] else ''}" for command in acting or ran]


def _items(texts: Iterable[str]) -> list[str]:
    return [f"- {said}" for text in texts if (said := _line(text, 400))]


def _code(text: str) -> str:
    return f"`{flatten(text[: 4 * LINE], LINE) or '?'}`"


def _line(text: str, limit: int) -> str:
    """Returns a text as one line without block or link syntax at its start, cut at a word; empty without a word."""
    said = _BLOCK.sub("", flatten(text[: 8 * limit], 8 * limit).replace("]:", "] :"), 1)
    if len(said) > limit:
        cut = said.rfind(" ", limit // 2, limit)
        said = said[: cut if cut > 0 else limit - 1].rstrip(" ,;:") + "…"
    return escape(said) if any(c.isalnum() for c in said) else ""


def _first(lines: Sequence[str], share: int) -> list[str]:
    """Returns the first lines that fit into a share of characters, and how many are left out."""
    kept = fitting(lines, share)
    return [*kept, f"- … {len(lines) - len(kept):,} more …"] if len(kept) < len(lines) else kept


def _last(lines: Sequence[str], share: int) -> list[str]:
    """Returns the last lines that fit into a share of characters, and how many precede them."""
    kept = fitting(lines[::-1], share)[::-1]
    return [f"- … {len(lines) - len(kept):,} before these …", *kept] if len(kept) < len(lines) else kept


def fitting(lines: Iterable[str], share: int) -> list[str]:
    """Returns the first lines that fit into a share of characters."""
    kept: list[str] = []
    for line in lines:
        share -= len(line) + 1
        if share < 0:
            break
        kept.append(line)
    return kept
