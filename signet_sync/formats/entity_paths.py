"""Defines names, paths and sections of entity files, findings about them, and how copies of sync services are known."""

import re
import unicodedata
from hashlib import sha256
from typing import Any, Literal, NamedTuple

from signet_sync.formats.filename import is_copy_mark
from signet_sync.formats.lazy_pattern import late
from signet_sync.formats.paths import DEFAULT_AGENT, OF_AGENT, agent_folder, page_agent

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
EVIDENCE_CAP = 7

_KIND_OF_LETTER: dict[str, Kind] = {kind[0]: kind for kind in KINDS}
ENTITY_ID = late(r"[upr]-[a-z2-7]{12}", re.ASCII)
_FILE = late(
    rf"{OF_AGENT}entities/(user|parts|relationships)/([^/\x00]+)--([upr]-[a-z2-7]{{12}})/(profile|notes)\.md",
    re.ASCII,
)
_LEDGER = late(rf"{OF_AGENT}entities/ledger/(\d{{4}}-(?:0[1-9]|1[0-2]))\.jsonl", re.ASCII)
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


class Finding(NamedTuple):
    """A finding. `code` is stable, `hint` the next step for a person.

    `path` is the file and `id` its entity or the event, empty where there is none; `anchor` the section, `line` counts
    from 1 (0: unknown). `verdict` is that of `check`, empty for a note. The last three are known of files that differ
    from their events and wait for a maintainer: `found_at` is ISO 8601 UTC, `sha256` the hash of the bytes found, empty
    for a missing file; of an event log that lost its end it is the id of the missing last line.
    """

    code: str
    message: str
    hint: str
    path: str = ""
    id: str = ""
    anchor: str | None = None
    line: int = 0
    verdict: str = ""
    agent_id: str = ""
    found_at: str = ""
    sha256: str = ""

    def document(self) -> dict[str, Any]:
        """Returns the finding as `entity check --json` shows it."""
        return {name: getattr(self, name) for name in ("id", "code", "message", "hint", "path")}


class EntityPlace(NamedTuple):
    """The entity to which a path belongs, and which of its files it is."""

    agent_id: str
    kind: Kind
    slug: str
    id: str
    file: File = "profile"

    @property
    def folder(self) -> str:
        """Returns the folder of the entity's files, relative to the workspace, without a slash at the end."""
        return f"{agent_folder(self.agent_id)}entities/{FOLDERS[self.kind]}/{self.slug}--{self.id}"

    @property
    def path(self) -> str:
        """Returns the path of the file."""
        return f"{self.folder}/{self.file}.md"


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


def ledger_page(agent_id: str, month: str) -> str:
    """Returns the path of an agent's event log of a month `YYYY-MM`: one JSON line per event."""
    return f"{agent_folder(agent_id)}entities/ledger/{month}.jsonl"


def parse_path(path: str) -> EntityPlace | None:
    """Parses the path of a profile or notes; None for every other path, and if folder and id are of two kinds."""
    match = _FILE.fullmatch(path)
    if match is None:
        return None
    agent_id, folder, slug, entity_id, file = match.groups()
    kind = _KIND_OF_LETTER[entity_id[0]]
    if FOLDERS[kind] != folder:
        return None
    return EntityPlace(agent_id or DEFAULT_AGENT, kind, slug, entity_id, "notes" if file == "notes" else "profile")


def parse_ledger_page(path: str) -> tuple[str, str] | None:
    """Returns agent and month `YYYY-MM` of the path of an event log; None for every other path."""
    match = _LEDGER.fullmatch(path)
    return (match[1] or DEFAULT_AGENT, match[2]) if match else None


_COPY = late(r"(MEMORY|DREAMS|profile|notes|\d{4}-\d\d|\d\d)(?=[\W_].*\.).*?(\.md|\.jsonl)", re.ASCII | re.DOTALL)


def original_of(path: str) -> str | None:
    """Returns the page, entity file or event log that a path is a conflict copy of; None for any other path."""
    folder, slash, name = path.rpartition("/")
    match = _COPY.fullmatch(name)
    if match is None or not is_copy_mark(name[len(match[1]) : -len(match[2])]):
        return None
    original = f"{folder}{slash}{match[1]}{match[2]}"
    known = page_agent(original) or parse_path(original) or parse_ledger_page(original)
    return original if known is not None else None
