"""Parses a repository's `config` more strictly than any other reader, and decides whether we refuse it."""

from __future__ import annotations

from collections.abc import Iterator

from signet_sync.formats.lazy_pattern import late

_HEADER = late(r'\[\s*([A-Za-z0-9.-]+)(?:\s+"((?:[^"\\]|\\.)*)")?\s*\]\s*(?:[#;].*)?')
_KEY = late(r"([A-Za-z][A-Za-z0-9-]*)\s*(?:=\s*(.*))?")
# A value: plain characters, escapes that git knows, quoted parts; then, perhaps, a comment.
_VALUE = late(r'((?:[^"\\#;]|\\["\\ntb]|"(?:[^"\\]|\\["\\ntb])*")*)(?:[#;].*)?')

Entry = tuple[str, str, str, str]


def entries(raw: bytes) -> Iterator[Entry]:
    """Yields section, subsection, key (names in lower case) and value of every entry, as it is written.

    Git allows more: a value continued on the next line, a key after a section's header. Programs do not write that, and
    where two readers may differ the stricter one is the safe one. Raises `ValueError` with the number of the line.
    """
    section = subsection = ""
    for number, line in enumerate(raw.decode("utf-8").split("\n"), 1):
        text = line.removesuffix("\r").strip(" \t")
        if not text or text[0] in "#;":
            continue
        if any(ord(character) < 32 and character != "\t" for character in text):
            raise ValueError(f"line {number} holds control characters")
        if match := _HEADER.fullmatch(text):
            section, _, dotted = match[1].lower().partition(".")
            subsection = match[2] or dotted
        elif section and (match := _KEY.fullmatch(text)):
            value = _VALUE.fullmatch(match[2] or "")
            if value is None:
                raise ValueError(f"line {number} is not understood")
            yield section, subsection, match[1].lower(), value[1].strip().replace('"', "")
        else:
            raise ValueError(f"line {number} is not understood")


_ELSEWHERE = {
    ("core", "worktree"): "a working tree elsewhere",
    ("core", "excludesfile"): "a file of ignore rules elsewhere",
    ("core", "attributesfile"): "a file of attributes elsewhere",
}
_HARMLESS_EXTENSIONS = {"noop": None, "preciousobjects": None, "objectformat": "sha1", "worktreeconfig": "false"}


def objection(raw: bytes) -> str:
    """Returns why a repository with this `config` is not opened, for a person; empty if there is no objection.

    Entries that name a program (filters, hooks, fsmonitor, diff and merge drivers, signing, transports, aliases,
    credential helpers) are no reason: libgit2 runs none of them in the calls we make. Entries that make it open other
    files are one.
    """
    try:
        for section, subsection, key, value in entries(raw):
            found = _objection(section, subsection, key, value)
            if found:
                return found
    except UnicodeDecodeError:
        return "its config is not UTF-8"
    except ValueError as error:
        return f"its config is unusual: {error}"
    return ""


def _objection(section: str, subsection: str, key: str, value: str) -> str:
    if section in ("include", "includeif"):
        return "its config includes other files"
    if not subsection and (section, key) in _ELSEWHERE:
        return f"its config names {_ELSEWHERE[section, key]} (`{section}.{key}`)"
    if section == "extensions":
        wanted = _HARMLESS_EXTENSIONS.get(key, "")
        if wanted is not None and value.lower() != wanted:
            return f"it uses git's extension `{key}`"
    if (section, key) == ("core", "repositoryformatversion") and value not in ("0", "1"):
        return f"its format `{value}` is unknown"
    return ""


def flag(raw: bytes, section: str, key: str, default: bool) -> bool:
    """Returns a flag of a section without subsections; the last entry counts."""
    found = [value for s, sub, k, value in entries(raw) if (s, sub, k) == (section, "", key)]
    # A key alone, without `=`, means true.
    return found[-1].lower() in ("true", "yes", "on", "1", "") if found else default
