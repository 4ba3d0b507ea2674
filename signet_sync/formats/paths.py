"""Defines the layout of a workspace, as paths relative to its root, and links to them. Names only, no disk."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from unicodedata import normalize

from signet_sync.formats.body import UNSEEN
from signet_sync.formats.lazy_pattern import late

MEMORY = "memory"
TOMBSTONES = "memory/tombstones"
WORDS = "memory/words"  # what a person said of statements, and what is pinned
RUNNING = "live/"  # begins what names a running session in the place of an artifact's path; no file has it
OWN = ".signet"
TEMPORARY = ".signet/tmp"
WORKSPACE_ID = ".signet/workspace-id"
SETTINGS = "signet-sync.toml"
SIGNET_DATABASES = "memory/memories.db", "data/signet.db", "memories.db"  # Signet's, of its versions
DEFAULT_AGENT = "default"
AGENT = r"[a-z0-9][a-z0-9_-]{0,63}"  # an agent's id, in patterns
AGENT_ID = late(AGENT, re.ASCII)
OF_AGENT = rf"(?:agents/({AGENT})/)?"  # folder of an agent's files, in patterns: the root for the default agent

_PAGE = late(rf"{OF_AGENT}(?:MEMORY|DREAMS|ledger/\d{{4}}-\d\d|ledger/\d{{4}}/\d\d/\d\d)\.md", re.ASCII)
KEPT_COPY = late(r"(?:[^/]+/)*[^/]+\.(?:signet|user)-\d{8}T\d{6}(?:\d{3})?Z(?:-\d+)?\.md", re.ASCII)


def normalize_path(path: str) -> str:
    """Returns a path as it is equal for all forms of its letters: some file systems and programs decompose them."""
    return path if path.isascii() else normalize("NFC", path)


def name_running_session(path: str | None) -> str | None:
    """Returns the name of the running session that the source of a statement is; None if that is an artifact."""
    return path.removeprefix(RUNNING) if path is not None and path.startswith(RUNNING) else None


def file_of(path: str | None) -> str | None:
    """Returns the path of what states a statement if that is a file; None for a running session."""
    return path if name_running_session(path) is None else None


def agent_folder(agent_id: str) -> str:
    """Returns `""` for the default agent, `agents/<id>/` for any other."""
    return "" if agent_id == DEFAULT_AGENT else f"agents/{agent_id}/"


def write_agent_option(agent_id: str) -> str:
    """Returns what a command line needs to be about an agent, after a blank; "" for the default one."""
    return "" if agent_id == DEFAULT_AGENT else f" --agent {agent_id}"


def head_page(agent_id: str) -> str:
    """Returns the path of an agent's MEMORY.md."""
    return f"{agent_folder(agent_id)}MEMORY.md"


def dream_page(agent_id: str) -> str:
    """Returns the path of an agent's DREAMS.md."""
    return f"{agent_folder(agent_id)}DREAMS.md"


def day_page(agent_id: str, day: str) -> str:
    """Returns the path of the session log page of a UTC day `YYYY-MM-DD`."""
    return f"{agent_folder(agent_id)}ledger/{day[:4]}/{day[5:7]}/{day[8:10]}.md"


def month_page(agent_id: str, month: str) -> str:
    """Returns the path of the session log page of a month `YYYY-MM`, which links its days."""
    return f"{agent_folder(agent_id)}ledger/{month}.md"


def log_pages(agent_id: str, days: Iterable[str]) -> set[str]:
    """Returns the session log pages of some days and of their months."""
    return {path for day in days for path in (day_page(agent_id, day), month_page(agent_id, day[:7]))}


def folder_agent(path: str) -> str:
    """Returns the agent in whose folder a path is; the default one for the rest of the workspace."""
    return path.split("/")[1] if path.startswith("agents/") else DEFAULT_AGENT


def page_agent(path: str) -> str | None:
    """Returns the agent whose generated page this path is, or None if it is none of ours."""
    match = _PAGE.fullmatch(path)
    return (match[1] or DEFAULT_AGENT) if match is not None else None


def artifact_path(name: str) -> str:
    """Returns the path of a file directly under `memory/`."""
    return f"{MEMORY}/{name}"


def display(path: str) -> str:
    """Returns a path as it may be printed or stored: bytes that are not UTF-8 and what nobody sees as escapes."""
    if path.isprintable() and path.isascii():
        return path
    shown = "".join(c if c.isprintable() else escape_character(c) for c in path)
    return _UNSEEN.sub(lambda found: escape_character(found[0]), shown)


_UNSEEN = late(f"[{UNSEEN}]")


def escape_character(character: str) -> str:
    """Escapes an invisible character."""
    if "\udc80" <= character <= "\udcff":  # a byte that is not UTF-8, as `os.fsdecode` represents it
        return f"\\x{ord(character) - 0xDC00:02x}"
    return character.encode("unicode_escape").decode("ascii")


# ── wikilinks of Obsidian ──

_LINK = late(r"\[\[([^\[\]\n|#^]+)(?:[#^][^\[\]\n|]*)?(?:\|([^\[\]\n]*))?\]\]")
_LINKS = late(r"(?:\[\[[^\[\]\n]+\]\] *)+")
_ARTIFACT_TARGET = late(r"--[a-z2-7]{16}--(?:summary|transcript|compaction|manifest)(?:\.md)?$", re.ASCII)


def wikilink(path: str, label: str | None = None) -> str:
    """Returns `[[path|label]]`; the path is relative to the workspace."""
    return f"[[{path}|{label}]]" if label else f"[[{path}]]"


def add_links(body: str, links: Sequence[tuple[str, str]]) -> str:
    """Adds links to a manifest's body: after a line of nothing but links, else at its end."""
    present = set(targets(body))
    added = " ".join(wikilink(path, kind) for kind, path in links if path not in present)
    if not added:
        return body
    lines = body.split("\n")
    for number, line in enumerate(lines):
        if _LINKS.fullmatch(line):
            lines[number] = f"{line.rstrip()} {added}"
            return "\n".join(lines)
    return f"{body.rstrip()}\n\n{added}\n" if body.strip() else added


def targets(text: str) -> list[str]:
    """Lists the targets of all wikilinks in a text, without heading, block or label, in order."""
    if "[[" not in text:
        return []
    return [match[1].strip() for match in _LINK.finditer(text)]


def stray_artifact_links(text: str) -> list[str]:
    """Lists targets that name an artifact, but not relative to the workspace (`memory/…`)."""
    return [t for t in targets(text) if _ARTIFACT_TARGET.search(t) and not t.startswith("memory/")]


def leaves_workspace(path: str) -> bool:
    """Returns whether a link field, read as a relative path, could name something outside the workspace.

    Absolute paths, drive letters, UNC, `~`, URLs, NUL and any `..`; percent-encoded characters count as themselves.
    """
    text = path.strip()
    if "%" in text:
        from urllib.parse import unquote  # slow to load, and hardly any link needs it

        text = unquote(text)
    lowered = text.lower().replace("\\", "/")
    is_absolute = lowered.startswith(("/", "~")) or re.match(r"[a-z][a-z0-9+.-]*:", lowered) is not None
    return is_absolute or "\0" in lowered or ".." in lowered.split("/")
