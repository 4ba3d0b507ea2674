"""Chooses the branch of a session whose records form a tree: a rewind abandons the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from signet_sync.capture.harnesses.records import TranscriptEntry


@dataclass(frozen=True, slots=True)
class TreeRecord:
    """A record's entries and its position in the tree. Without `parent` it is a root or follows the previous record."""

    id: str
    parent: str
    after_the_one_before: bool
    entries: tuple[TranscriptEntry, ...]


def branch(records: Sequence[TreeRecord], root: object = None) -> list[TranscriptEntry]:
    """Returns the entries from the root to the last record, or all if a parent is missing; `root` is no record's id."""
    places: dict[str, int] = {record.id: place for place, record in enumerate(records) if record.id}
    everything = [entry for record in records for entry in record.entries]
    if len(places) < sum(1 for record in records if record.id):
        return everything
    kept: list[TreeRecord] = []
    place = len(records) - 1
    while place >= 0:
        record = records[place]
        kept.append(record)
        if len(kept) > len(records):
            return everything
        if record.after_the_one_before:
            place -= 1
        elif not record.parent or record.parent == root:
            break
        elif record.parent in places:
            place = places[record.parent]
        else:
            return everything
    return [entry for record in reversed(kept) for entry in record.entries]
