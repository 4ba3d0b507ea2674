"""Rows of entity files: what stands in them, what is known of each ledger, and what a maintainer has to look at."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from signet_sync.contracts.gardens import File, Kind
from signet_sync.contracts.observed import Signature
from signet_sync.index.database import Database
from signet_sync.index.lines import Line

TIER = "entity"
SHORTEST = 6  # characters of the beginning of an id that may stand for it


class GardenFile(NamedTuple):
    """A profile or notes as last seen, sanitized. Keyed by `path`.

    `type` is the free word of the frontmatter, `line` one sentence for the head of MEMORY.md, `participants` ids of
    entities. `text` is what `recall` finds the entity by, below its title: the core sections of a profile, empty for
    notes, which are found by nobody. `sha256` is that of the file's bytes, `signature` None where the file has to be
    read again. `updated_us` is microseconds since 1970 UTC.
    """

    path: str
    agent_id: str
    kind: Kind
    id: str
    slug: str
    file: File
    title: str
    status: str
    type: str | None
    line: str
    participants: tuple[str, ...]
    text: str
    sha256: str
    updated_us: int
    signature: Signature | None = None


class Chain(NamedTuple):
    """The end of an agent's ledger as last written or seen: what `entities.chain.verify` takes for `known_last`.

    `events` counts its lines.
    """

    last_hash: str
    last_id: str
    events: int


class Drift(NamedTuple):
    """A file that is not what its events say, as `entities.drift.judge` put it. Keyed by agent, entity and file.

    `found_at` is ISO 8601 UTC; `found_sha256` is that of the bytes that were found, empty where the file was gone.
    """

    agent_id: str
    entity_id: str
    file: File
    code: str
    message: str
    hint: str
    found_at: str
    found_sha256: str


# ── files ──


def put_files(database: Database, files: Iterable[GardenFile]) -> None:
    """Writes rows in place of those of the same paths, and the lines of `recall`. In the caller's transaction."""
    raise NotImplementedError


def forget_files(database: Database, paths: Iterable[str]) -> None:
    """Deletes the rows of paths, and the lines of entities without a profile. In the caller's transaction."""
    raise NotImplementedError


def signatures(database: Database, agent_id: str | None = None) -> dict[str, Signature | None]:
    """Path and signature of every file that is known, of all agents or of one: what did not move is not read again."""
    raise NotImplementedError


def file(database: Database, path: str) -> GardenFile | None:
    """What is known of a path."""
    raise NotImplementedError


def entities(database: Database, agent_id: str) -> list[GardenFile]:
    """The profiles of an agent, by kind and title."""
    raise NotImplementedError


def files_of(database: Database, agent_id: str, entity_id: str) -> list[GardenFile]:
    """Every file of an entity, by path; more than two where somebody copied its folder."""
    raise NotImplementedError


def find(database: Database, agent_id: str, ref: str) -> list[GardenFile]:
    """Profiles that a name may mean: an id, else a slug, else a title in any case, else the beginning of an id.

    One: that entity; several: the name is ambiguous. The beginning must have at least six characters.
    """
    raise NotImplementedError


def lines(database: Database) -> list[Line]:
    """The lines by which `recall` finds entities, of all agents: a rebuild makes them anew."""
    raise NotImplementedError


# ── the ledger ──


def chain(database: Database, agent_id: str) -> Chain | None:
    """What was known last of an agent's ledger; None where it never had one."""
    raise NotImplementedError


def set_chain(database: Database, agent_id: str, known: Chain) -> None:
    """Remembers the end of an agent's ledger. In the caller's transaction."""
    raise NotImplementedError


# ── drift ──


def drift(database: Database, agent_id: str | None = None) -> list[Drift]:
    """The maintainer's queue, of all agents or of one: the oldest first."""
    raise NotImplementedError


def put_drift(database: Database, found: Drift) -> bool:
    """Queues a file; False where it stands there with the same code and bytes already. In the caller's transaction."""
    raise NotImplementedError


def clear_drift(database: Database, agent_id: str, entity_id: str, files: Sequence[File] | None = None) -> int:
    """Takes files of an entity (all of them) from the queue; gives how many. In the caller's transaction."""
    raise NotImplementedError
