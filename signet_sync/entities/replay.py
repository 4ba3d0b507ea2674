"""Makes a file again from its events, and joins what a person and others changed at once. Pure.

A file is its parts: frontmatter, title, and the body of each section. An event holds, for each part that it changed,
the text before and after; or the whole file, where sections themselves came, went or moved.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace as but
from difflib import get_close_matches
from typing import Any, NamedTuple

from signet_sync.entities.document import (
    DocumentProblem,
    EntityDocument,
    document_of,
    parse,
    render,
    text_of,
    with_fields,
)
from signet_sync.entities.events import Event
from signet_sync.formats.entity_paths import File, Shape

WHOLE, PARTS = "whole", "parts"
HEAD, LEAD, LOG = "---", "#", "change-log"
SIMILARITY = 0.85
# A change of one of these means that the file belongs to another entity or has another form.
GUARDED = ("kind", "id", "agent_id", "schema_version")
_NEARBY = 2  # the largest distance, in sections, between a section that lost its anchor and its former position


def names_of(document: EntityDocument) -> list[str]:
    """Returns a name for each section: its anchor, or `## ` and its heading; a second such one has its position."""
    names: list[str] = []
    for at, section in enumerate(document.sections):
        name = section.anchor or f"## {section.heading}"
        names.append(f"{name} {at}" if name in names else name)
    return names


def _parts(document: EntityDocument) -> dict[str, str]:
    bodies = (section.body for section in document.sections)
    return {HEAD: document.head, LEAD: document.lead} | dict(zip(names_of(document), bodies, strict=True))


def _openings(document: EntityDocument) -> list[str]:
    return [section.opening for section in document.sections]


# ── one change ──


def change(before: EntityDocument | None, after: EntityDocument) -> dict[str, Any]:
    """Returns what an event says of a change: by part `[at, old, new]`, or the whole file.

    Of a part only the lines that differ, with the offset where they begin.
    """
    if before is None or _openings(before) != _openings(after):
        return {WHOLE: render(after)}
    old, new = _parts(before), _parts(after)
    return {PARTS: {name: _splice(old[name], new[name]) for name in old if old[name] != new[name]}}


def _splice(old: str, new: str) -> list[Any]:
    one, other = old.splitlines(keepends=True), new.splitlines(keepends=True)
    most = min(len(one), len(other))
    lead = next((n for n in range(most) if one[n] != other[n]), most)
    most -= lead
    trail = next((n for n in range(most) if one[-1 - n] != other[-1 - n]), most)
    at = len("".join(one[:lead]))
    return [at, "".join(one[lead : len(one) - trail]), "".join(other[lead : len(other) - trail])]


def _apply(body: str, at: int, old: str, new: str) -> str:
    """Applies a change to a part; where another machine changed it meanwhile, the lines count, not the place."""
    if body[at : at + len(old)] == old:
        return body[:at] + new + body[at + len(old) :]
    if old.strip() and body.count(old) == 1:
        return body.replace(old, new)
    if new.strip() and new in body:
        return body
    if at == 0:
        return new
    lines = body.rstrip("\n")
    return f"{lines}\n{new.strip(chr(10))}{body[len(lines) :] or chr(10)}" if new.strip() else body


def take_back(body: str, at: int, old: str, new: str) -> str | None:
    """Returns a part without a change of it; None if the changed passage does not stand once as it was left."""
    if body.startswith(new, at) and body[at - 1 : at] in ("", "\n"):
        return body[:at] + old + body[at + len(new) :]
    passage, former = new.strip("\n"), old.strip("\n")
    if not passage:
        kept = body.rstrip("\n")
        return f"{kept}\n{former}{body[len(kept) :] or chr(10)}"
    found = list(re.finditer(rf"^{re.escape(passage)}$\n?", body, re.MULTILINE))
    if len(found) != 1:
        return None
    return body[: found[0].start()] + (f"{former}\n" if former else "") + body[found[0].end() :]


def parts_of(event: Event) -> dict[str, tuple[int, str, str]]:
    """Returns the parts that an event changed, as `change` made them."""
    parts, found = event.text_part(PARTS), {}
    for name, splice in (parts if isinstance(parts, Mapping) else {}).items():
        match splice:
            case [int(at), str(old), str(new)]:
                found[name] = (at, old, new)
    return found


def section_texts(event: Event) -> dict[str, tuple[str, str]]:
    """Returns what the sections that an event changed said before and after; the frontmatter is left out."""
    return {name: (old.strip("\n"), new.strip("\n")) for name, (_, old, new) in parts_of(event).items() if name != HEAD}


# ── all events ──


class FileState(NamedTuple):
    """What the events say that a file is. `text` is None where they do not tell all of it (a removal took a text).

    `known` are hashes of every state of it that is in the log. `is_new`: nothing but its creation happened.
    """

    text: str | None
    known: frozenset[str]
    is_new: bool


def states(events: Iterable[Event], file: File) -> Iterator[tuple[Event, str | None]]:
    """Yields each event that changed a file, and the file's text after it (None: it is not known).

    Machines that wrote at once have their events in the order in which their logs were joined: the later line counts.
    """
    openings, parts = list[str](), dict[str, str]()
    reached = set[str]()
    for event in events:
        if event.file != file or event.left is None:
            continue
        whole = event.text_part(WHOLE)
        if event.op == "human_edit" and event.left in reached:
            pass  # another machine saw the same edit, and told of it later
        elif isinstance(whole, str):
            document = document_of(whole)
            openings, parts = (_openings(document), _parts(document)) if document is not None else ([], {})
        else:
            for name, (at, old, new) in parts_of(event).items():
                if name in parts:
                    parts[name] = _apply(parts[name], at, old, new)
        reached.add(event.left)
        head, lead, *bodies = parts.values() or ("", "")
        yield event, head + lead + "".join(map(str.__add__, openings, bodies)) if parts else None


def fold(events: Iterable[Event]) -> dict[File, FileState]:
    """Makes the files of one entity from all its events, in the order of the log."""
    known = list(events)
    files: dict[File, FileState] = {}
    for file in ("profile", "notes"):
        told = list(states(known, file))
        if told:
            # A file that was never whole again after a removal took a text of it is not known.
            erased = [at for at, (event, _) in enumerate(told) if event.text is None]
            wholes = [at for at, (event, _) in enumerate(told) if event.text_part(WHOLE) is not None]
            text = told[-1][1] if not erased or (wholes and wholes[-1] > erased[-1]) else None
            hashes = {sha for event, _ in told for sha in (event.found, event.left) if sha}
            files[file] = FileState(text, frozenset(hashes), len(told) == 1 and told[0][0].op == "create")
    return files


# ── a file on disk against its events ──


def judge(
    seen: str | None, want: EntityDocument, shapes: Iterable[Shape], events: Iterable[Event]
) -> tuple[EntityDocument, dict[str, list[str]]]:
    """Returns what a file that differs from its events becomes, as a person's edit, and facts about that.

    A person may change anything as long as the file still belongs to this entity and has all sections of its schema;
    one of these may have lost its anchor if it can be found nearby. What others wrote since the version that was edited
    is joined: `kept` are sections whose newer text a stale save had dropped, `over` those that both changed, in which
    the person's text stands. Everything else is drift, which a maintainer settles: raises `DocumentProblem`.
    """
    if seen is None:
        raise DocumentProblem("file-missing", "the file is gone", "put it back, or have it rewritten from its events")
    disk = parse(seen)
    taken = next((key for key in GUARDED if disk.fields.get(key) != want.fields.get(key)), None)
    if taken is not None:
        raise DocumentProblem("identity-changed", f"`{taken}` was changed", "restore its former value")
    there, known = names_of(disk), names_of(want)
    lost = [shape.anchor for shape in shapes if shape.anchor in known and shape.anchor not in there]
    healed = _heal(disk, want, lost[0]) if len(lost) == 1 else None
    if lost and healed is None:
        hint = "put its heading and its anchor line back, or close the code fence or comment above it"
        raise DocumentProblem("section-missing", f"the section `{lost[0]}` is gone", hint)
    return _merge(healed or disk, want, events)


def _merge(
    disk: EntityDocument, want: EntityDocument, events: Iterable[Event]
) -> tuple[EntityDocument, dict[str, list[str]]]:
    """Joins a save from an older version with what was written since; returns it with the facts of `judge`.

    The file says by `updated_at` which version the person's editor had.
    """
    stamp = disk.fields.get("updated_at")
    if stamp == want.fields.get("updated_at"):
        return disk, {}
    seen = [document_of(text) for _, text in states(events, "profile" if "pins" in want.fields else "notes")]
    base = next((one for one in reversed(seen) if one is not None and one.fields.get("updated_at") == stamp), None)
    if base is None:
        return disk, {}
    ours, theirs, older = (dict(zip(names_of(one), one.sections, strict=True)) for one in (want, disk, base))
    bodies, facts = dict[str, str](), dict[str, list[str]]()
    for name in sorted(ours.keys() & theirs.keys() & older.keys()):
        mine, their, old = (text_of(sections[name]) for sections in (ours, theirs, older))
        if mine in (old, their):
            continue
        if their == old:
            bodies[name] = ours[name].body
        if name != LOG:
            facts.setdefault("kept" if their == old else "over", []).append(name)
    sections = tuple(but(one, body=bodies.get(name, one.body)) for name, one in theirs.items())
    fields = {
        key: want.fields.get(key)
        for key in want.fields
        if disk.fields.get(key) == base.fields.get(key) != want.fields.get(key)
    }
    merged = with_fields(but(disk, sections=sections), fields)
    if merged.lead == base.lead:
        merged = but(merged, lead=want.lead, title=want.title)
    if document_of(render(merged)) == merged:
        return merged, facts
    return disk, {"over": sorted([*facts.get("kept", ()), *facts.get("over", ())])} if facts else {}


def _heal(disk: EntityDocument, want: EntityDocument, name: str) -> EntityDocument | None:
    """Puts back the one anchor that a file lost; None if its section is not certain.

    It is the one section at most two places from its own that has no known anchor and nearly the same heading.
    """
    known = names_of(want)
    place = known.index(name)
    section = want.sections[place]
    near = range(max(0, place - _NEARBY), min(len(disk.sections), place + _NEARBY + 1))
    free = [(disk.sections[at].heading.casefold(), at) for at in near if disk.sections[at].anchor not in known]
    alike = get_close_matches(section.heading.casefold(), [heading for heading, _ in free], n=1, cutoff=SIMILARITY)
    found = [at for heading, at in free if heading == next(iter(alike), None)]
    if len(found) != 1:
        return None
    sections = list(disk.sections)
    sections[found[0]] = but(sections[found[0]], opening=section.opening)
    healed = document_of(render(but(disk, sections=tuple(sections))))
    return healed if healed is not None and name in names_of(healed) else None
