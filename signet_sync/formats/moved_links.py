"""Changes links of notes to files that got another name in their folder; every other byte stays."""

from __future__ import annotations

import re
from collections.abc import Mapping
from posixpath import dirname, join, normpath
from urllib.parse import quote, unquote

_WIKILINK = re.compile(r"(\[\[)([^\[\]\n|#^]+)(?=[\]|#^])")
_MARKDOWN = re.compile(r"(\]\(<?)([^()<>\n#]+?)(?=#|>?(?:[ \t]+[\"'][^\n]*)?\))")


def relinked(text: str, note: str, moves: Mapping[str, str]) -> str:
    """Returns a note's text with its links to moved files changed: wikilinks and Markdown links of any form.

    `note` is its path; `moves` are former and present paths without `.md`, both relative to the vault.
    """

    def wikilink(found: re.Match[str]) -> str:
        target = found[2]
        former = _named(target.strip().removesuffix(".md").removeprefix("/"), moves)
        return found[0] if former is None else found[1] + _renamed(target, former, moves)

    def markdown(found: re.Match[str]) -> str:
        target = found[2]
        plain = unquote(target).removesuffix(".md")
        places = (plain.removeprefix("/"), normpath(join(dirname(note), plain)))
        former = next((place for place in places if place in moves), None)
        if former is None:
            return found[0]
        is_open = found[1].endswith("<")  # in these blanks need no escape
        return found[1] + _renamed(target, former, moves, escape=not is_open)

    return _MARKDOWN.sub(markdown, _WIKILINK.sub(wikilink, text))


def _named(target: str, moves: Mapping[str, str]) -> str | None:
    """Returns the moved file that a wikilink names, by its path or the end of it; not by a name that many have."""
    if target in moves or "/" not in target:
        return target if target in moves else None
    found = [former for former in moves if former.endswith(f"/{target}")]
    return found[0] if len(found) == 1 else None


def _renamed(target: str, former: str, moves: Mapping[str, str], *, escape: bool = False) -> str:
    """Returns a link's target with another last part: the folder is the same."""
    name = moves[former].rpartition("/")[2]
    folder, slash, last = target.rstrip().rpartition("/")
    ending = ".md" if unquote(last).endswith(".md") else ""
    return f"{folder}{slash}{quote(name) if escape else name}{ending}"
