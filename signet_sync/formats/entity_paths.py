"""Defines the names and paths of entity files, their sections, and how copies of sync services are recognized."""

import re
import unicodedata
from hashlib import sha256
from typing import Literal, NamedTuple

from signet_sync.formats.filename import has_conflict_mark, is_copy_mark
from signet_sync.formats.lazy_pattern import late
from signet_sync.formats.paths import DEFAULT_AGENT, KEPT_COPY, OF_AGENT, agent_folder, page_agent

# What Obsidian's links, Windows or a shell cannot have in a name.
_UNFIT = frozenset('\\/:*?"<>|#^[]`')
_RESERVED = late(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?", re.ASCII | re.IGNORECASE)
# A reference in brackets, and the blanks that unfit characters leave within brackets.
_REFERENCE = late(r"\s*\(#\d+\)", re.ASCII)
_LOOSE = late(r"(?<=\() | (?=\))")
_BYTES = 180  # a name has at most 255 with what is put behind


def readable_name(text: str, length: int) -> str:
    """Returns a text as the beginning of a file's name, at most `length` characters; "" if nothing readable is left."""
    plain = _REFERENCE.sub("", unicodedata.normalize("NFC", text))
    kept = "".join(c if c.isprintable() and c not in _UNFIT else " " for c in plain)
    whole = _LOOSE.sub("", " ".join(kept.split()))
    words = whole[:length]
    while len(words.encode("utf-8", "replace")) > _BYTES:
        words = words[:-1]
    if words != whole:
        words = _whole_words(words, whole[len(words)])
    return words.strip(" .") if any(map(str.isalnum, words)) else ""


def _whole_words(cut: str, following: str) -> str:
    """Returns the beginning of a text without a word or bracket that was cut; a single long word stays."""
    at = len(cut) if following == " " else cut.rfind(" ")
    words = cut[:at] if at > 0 else cut
    if words.count("(") > words.count(")"):
        words = words[: words.rfind("(")] or words
    return words.rstrip(" ,;:(–—-")


def is_reserved(name: str) -> bool:
    """Returns whether Windows takes a name for a device's."""
    return _RESERVED.fullmatch(name) is not None


Kind = Literal["user", "part", "relationship"]
File = Literal["profile", "notes"]
# How a section may be changed: a narrative is replaced or extended, items of a list are added and removed, a log only
# grows.
Form = Literal["narrative", "list", "log"]

KINDS: tuple[Kind, ...] = ("user", "part", "relationship")
FOLDERS: dict[Kind, str] = {"user": "user", "part": "parts", "relationship": "relationships"}
FILES: tuple[File, ...] = ("profile", "notes")
SCHEMA_VERSION = 1
SLUG_LENGTH = 60
BASE_LENGTH = 60  # characters of a file's name without its ending
EVIDENCE_CAP = 7

_PLAIN: dict[str, File] = {f"{file}.md": file for file in FILES}
_KIND_OF_LETTER: dict[str, Kind] = {kind[0]: kind for kind in KINDS}
_KIND_OF_FOLDER: dict[str, Kind] = {folder: kind for kind, folder in FOLDERS.items()}
ENTITY_ID = late(r"[upr]-[a-z2-7]{12}", re.ASCII)
_FILE = late(
    rf"{OF_AGENT}entities/(user|parts|relationships)/([^/\x00]+)--([upr]-[a-z2-7]{{12}})/([^/.\x00-\x1f][^/\x00-\x1f]*)\.md",
    re.ASCII,
)
_LEDGER = late(rf"{OF_AGENT}entities/ledger/(\d{{4}}-(?:0[1-9]|1[0-2]))\.jsonl", re.ASCII)
_OF_NOTES = " notes"  # ends the name of the notes behind that of the profile: `Jo.md`, `Jo notes.md`
_HEAD = 4096  # bytes that have the id of a file
_ID_LINE = late(rb"^id:[ \t]*[\"']?([upr]-[a-z2-7]{12})[\"']?[ \t]*\r?$", re.MULTILINE)
_BASE32 = b"abcdefghijklmnopqrstuvwxyz234567" * 8


class Shape(NamedTuple):
    """A section of the schema: its anchor, its heading, how it may be changed, and how long it should be.

    `soft_cap` counts items of a list or log, and tokens (`text.token_estimate`) of a narrative.
    """

    anchor: str
    heading: str
    form: Form
    soft_cap: int


def _narrative(heading: str, soft_cap: int) -> Shape:
    return Shape(anchor_of(heading), heading, "narrative", soft_cap)


def anchor_of(heading: str) -> str:
    """Returns the anchor of a canonical heading: `Open Questions` → `open-questions`."""
    return heading.lower().replace(" ", "-")


CORE: dict[Kind, tuple[Shape, ...]] = {
    "user": tuple(_narrative(heading, 300) for heading in ("Overview", "Preferences", "Goals", "Patterns")),
    "part": tuple(_narrative(heading, 300) for heading in ("Identity", "Role", "Concerns", "Needs")),
    "relationship": tuple(_narrative(heading, 300) for heading in ("Participants", "Dynamics", "Tensions")),
}
COMMON: tuple[Shape, ...] = (
    Shape("highlights", "Highlights", "list", 12),
    Shape("evidence", "Evidence", "list", EVIDENCE_CAP),
    Shape("open-questions", "Open Questions", "list", 10),
    Shape("change-log", "Change Log", "log", 60),
    Shape("extensions", "Extensions", "narrative", 500),
)
NOTES: tuple[Shape, ...] = tuple(_narrative(heading, 600) for heading in ("Inbox", "Focus", "Parking Lot"))


class EntityPlace(NamedTuple):
    """The entity to which a path belongs: `file` is `profile` or `notes`.

    `base` is what the names of its files begin with: `Jo` of `Jo.md` and `Jo notes.md`; empty for `profile.md` and
    `notes.md`.
    """

    agent_id: str
    kind: Kind
    slug: str
    id: str
    file: File
    base: str = ""


def shapes(kind: Kind, file: File = "profile") -> tuple[Shape, ...]:
    """Returns the sections of a file, in their order."""
    return NOTES if file == "notes" else CORE[kind] + COMMON


def new_id(kind: Kind, *seed: str) -> str:
    """Makes an id: the kind's first letter, `-`, 12 characters of base32 of agent and what the entity is made from."""
    digest = sha256(ascii((kind, *seed)).encode("ascii")).digest()
    return f"{kind[0]}-{digest[:12].translate(_BASE32).decode('ascii')}"


def kind_of(entity_id: str) -> Kind | None:
    """Returns the kind of an entity id; None if the text is no such id."""
    return _KIND_OF_LETTER[entity_id[0]] if ENTITY_ID.fullmatch(entity_id) else None


def slug_of(name: str) -> str:
    """Turns a name into part of a folder's: NFKC, lower case, letters and digits of any script, else `-`, at most 60.

    Never empty: a name without letters or digits becomes `unnamed`.
    """
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).lower())
    # Marks belong to the letter before them: without them words of many scripts fall apart.
    kept = ("-" if not (c.isalnum() or (unicodedata.category(c)[0] == "M")) else c for c in folded)
    slug = "-".join(part for part in "".join(kept).split("-") if any(map(str.isalnum, part)))
    return slug[:SLUG_LENGTH].rstrip("-") or "unnamed"


def entity_folder(agent_id: str, kind: Kind, slug: str, entity_id: str) -> str:
    """Returns the folder of an entity, relative to the workspace, without a slash at the end."""
    return f"{agent_folder(agent_id)}entities/{FOLDERS[kind]}/{slug}--{entity_id}"


def base_of(title: str, kind: Kind) -> str:
    """Returns what the names of a new entity's files begin with: its title, as every file system and link allows it.

    Never that of other files: what would be read as notes, a conflict copy or a device gets the kind behind it.
    """
    base = readable_name(title, BASE_LENGTH) or kind.capitalize()
    folded = base.casefold()
    is_taken = folded in FILES or folded.endswith(_OF_NOTES) or is_reserved(base)
    return f"{base} {kind}" if is_taken or has_conflict_mark(base) else base


def file_name(file: File, base: str) -> str:
    """Returns the name of one of an entity's files."""
    if not base:
        return f"{file}.md"
    return f"{base}{_OF_NOTES if file == 'notes' else ''}.md"


def read_name(name: str) -> tuple[File, str] | None:
    """Returns which file of an entity may have this name, and the base in it; None for names that none has."""
    plain = _PLAIN.get(name)
    if plain is not None:
        return plain, ""
    stem = name.removesuffix(".md")
    if stem == name or stem.startswith(".") or not stem.isprintable() or has_conflict_mark(stem):
        return None
    if "Z" in stem and KEPT_COPY.fullmatch(name):
        return None
    return ("notes", stem[: -len(_OF_NOTES)]) if stem.endswith(_OF_NOTES) else ("profile", stem)


def states_id(raw: bytes, entity_id: str) -> bool:
    """Returns whether a file says in its frontmatter that it is of this entity; its first bytes are enough."""
    head = raw[:_HEAD].removeprefix(b"\xef\xbb\xbf")
    found = _ID_LINE.search(head) if head.startswith(b"---") else None
    return found is not None and found[1].decode("ascii") == entity_id


def profile_path(agent_id: str, kind: Kind, slug: str, entity_id: str, base: str = "") -> str:
    """Returns the path of an entity's profile."""
    return f"{entity_folder(agent_id, kind, slug, entity_id)}/{file_name('profile', base)}"


def notes_path(agent_id: str, kind: Kind, slug: str, entity_id: str, base: str = "") -> str:
    """Returns the path of an entity's notes."""
    return f"{entity_folder(agent_id, kind, slug, entity_id)}/{file_name('notes', base)}"


def ledger_page(agent_id: str, month: str) -> str:
    """Returns the path of an agent's event log of a month `YYYY-MM`: one JSON line per event."""
    return f"{agent_folder(agent_id)}entities/ledger/{month}.jsonl"


def parse_path(path: str) -> EntityPlace | None:
    """Parses the path of a profile or notes; None for every other path, and if folder and id are of two kinds.

    Another Markdown file in the folder of an entity may be a note of a person's: what it says decides (`states_id`).
    """
    match = _FILE.fullmatch(path)
    if match is None:
        return None
    agent_id, folder, slug, entity_id, name = match.groups()
    kind, read = _KIND_OF_FOLDER[folder], read_name(f"{name}.md")
    if kind_of(entity_id) != kind or read is None:
        return None
    return EntityPlace(agent_id or DEFAULT_AGENT, kind, slug, entity_id, *read)


def parse_ledger_page(path: str) -> tuple[str, str] | None:
    """Returns agent and month `YYYY-MM` of the path of an event log; None for every other path."""
    match = _LEDGER.fullmatch(path)
    return (match[1] or DEFAULT_AGENT, match[2]) if match else None


_COPY = late(r"(MEMORY|DREAMS|profile|notes|\d{4}-\d\d|\d\d)(?=[^\w].*\.).*?(\.md|\.jsonl)", re.ASCII | re.DOTALL)
_OF_SPEAKING = late(r"(.+?)(?: \(|\.sync-conflict-|[ ._-]+conflict| (?=\d{1,3}\.md$))[^/]*(\.md)", re.IGNORECASE)


def original_of(path: str) -> str | None:
    """Returns the page, entity file or event log that a path is a conflict copy of; None for any other path.

    In the folder of an entity it may as well be a note of a person's (`formats.entity_paths.states_id`).
    """
    folder, slash, name = path.rpartition("/")
    match = _COPY.fullmatch(name) or _OF_SPEAKING.fullmatch(name)
    if match is None or not is_copy_mark(name[len(match[1]) : -len(match[2])]):
        return None
    original = f"{folder}{slash}{match[1]}{match[2]}"
    known = page_agent(original) or parse_path(original) or parse_ledger_page(original)
    return original if known is not None else None
