"""Which removals are in force: what mirror, files, their copies and lifted tombstones say together."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from artifacts_fixture import stone

from signet_sync.formats.artifact import Tombstone
from signet_sync.formats.frontmatter import HEAD_LIMIT, parse
from signet_sync.formats.snapshot import Trouble
from signet_sync.sync.planner import judge_tombstone
from signet_sync.sync.tombstones import decide, path_of, text_of

NOW = "2026-04-02T08:00:00.000Z"
WHOLE, LATER = stone(), stone(removed_at="2026-04-01T08:00:00.000Z")
ONE, OTHER, BOTH = (stone(session_ids=ids) for ids in (("s-1",), ("s-2",), ("s-1", "s-2")))


class Case(NamedTuple):
    """What is known (`files`: None is one that cannot be read), and what follows."""

    mirrored: Tombstone | None = None
    file: Tombstone | str = ""
    copies: tuple[Tombstone, ...] = ()
    lifted: Tombstone | None = None
    in_force: Tombstone | None = None
    news: bool = False
    narrower: bool = False
    lets_go: bool = False


CASES = {
    "a file is taken into the mirror": Case(file=WHOLE, in_force=WHOLE, news=True),
    "the mirror stands for a file that is lost": Case(mirrored=WHOLE, in_force=WHOLE),
    "the mirror stands for a file that cannot be read": Case(mirrored=ONE, file="torn", in_force=ONE),
    "what both have is no news": Case(mirrored=WHOLE, file=WHOLE, in_force=WHOLE),
    "a session was taken out": Case(mirrored=BOTH, file=ONE, in_force=ONE, news=True, narrower=True),
    "a token that was removed whole": Case(mirrored=WHOLE, file=ONE, in_force=ONE, news=True, narrower=True),
    "two machines removed at once": Case(file=ONE, copies=(OTHER,), in_force=BOTH, news=True),
    "a copy joins what the mirror has": Case(mirrored=ONE, copies=(OTHER,), in_force=BOTH, news=True),
    "a copy stands for a file that cannot be read": Case(file="torn", copies=(ONE,), in_force=ONE, news=True),
    "copies alone": Case(copies=(ONE, OTHER), in_force=BOTH, news=True),
    "what was lifted goes from the mirror": Case(mirrored=WHOLE, lifted=WHOLE, lets_go=True),
    "and so does its file that a sync service brings": Case(file=WHOLE, lifted=WHOLE, lets_go=True),
    "and an earlier state of it": Case(mirrored=ONE, file=ONE, lifted=BOTH, lets_go=True),
    "a copy of what was lifted is none": Case(copies=(WHOLE,), lifted=WHOLE),
    "a removal after the undo counts": Case(mirrored=WHOLE, file=LATER, lifted=WHOLE, in_force=LATER, news=True),
    "an undo of one session leaves the other": Case(mirrored=OTHER, lifted=ONE, in_force=OTHER),
    "a lifted one that covers less": Case(mirrored=WHOLE, lifted=ONE, in_force=WHOLE),
}  # fmt: skip


def decided(case: Case, *, names_stand: bool = True):
    judged = {}
    if case.file:
        torn = isinstance(case.file, str)
        verdict = judge_tombstone(path_of(*WHOLE.key), Trouble("unreadable", "it is torn"))[0]
        judged[WHOLE.key] = (verdict if torn else verdict._replace(verdict="tombstone"), None if torn else case.file)
    mirrored, lifted = ({one.key: one} if one is not None else {} for one in (case.mirrored, case.lifted))
    return decide(mirrored, judged, case.copies, lifted, NOW, names_stand=names_stand)


@pytest.mark.parametrize("name", CASES)
def test_what_is_in_force(name):
    case = CASES[name]
    found = decided(case)
    assert list(found.in_force.values()) == ([case.in_force] if case.in_force is not None else [])
    assert found.news == ([case.in_force] if case.news else []) and found.narrower is case.narrower
    assert bool(found.lifted) is case.lets_go and not found.unreadable
    assert bool(found.joined) is bool(case.copies and case.in_force)


def test_a_removal_of_more_files_than_a_tombstone_can_name_works_without_their_names():
    many = WHOLE.replace(removed_paths=tuple(f"memory/{number:09d}.md" for number in range(HEAD_LIMIT // 20)))
    assert Tombstone.read(parse(text_of(many)).fields) == WHOLE


@pytest.mark.parametrize("lifted", [None, WHOLE, stone(removed_at="2026-04-09T08:00:00.000Z")])
def test_a_file_that_cannot_be_read_covers_its_token_by_its_name_and_is_later_than_what_was_lifted(lifted):
    case = Case(file="torn", lifted=lifted)
    (found,) = decided(case).in_force.values()
    assert not found.session_ids and found.removed_at.text >= NOW
    assert lifted is None or found.removed_at.micros > lifted.removed_at.micros
    looked = decided(case, names_stand=False)
    assert looked.unreadable == [WHOLE.key] and not looked.in_force
