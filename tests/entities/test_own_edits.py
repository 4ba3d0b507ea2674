"""Patterns of relationships: what edges make together is said once, alike for the same edges, in lines that hold."""

from __future__ import annotations

from signet_sync.entities.own_edits import patterns
from signet_sync.entities.store import EntityFile
from signet_sync.formats.paths import targets

TITLES = ["Critic", "Exile", "Firefighter", "Pleaser", "Self", "Planner", "Scout", "Watcher", "Host", "Child"]


def row(kind, name, title, of_type=None, participants=(), status="active"):
    path = f"entities/parts/{name}/profile.md"
    return EntityFile(
        path, "default", kind, f"p-{name}", name, "profile", title, status, of_type, "", tuple(participants), "", "", 0
    )


PARTS = [row("part", title, title) for title in TITLES]


def edge(name, kind, *titles):
    return row("relationship", name, name, kind, [f"p-{title}" for title in titles])


def link(title):
    return f"[[entities/parts/{title}/profile.md|{title}]]"


def test_two_protectors_polarized_around_an_exile():
    edges = [
        edge("1", "polarized", "Firefighter", "Critic"),
        edge("2", "protects", "Critic", "Exile"),
        edge("3", "protects", "Firefighter", "Exile"),
    ]
    around = f"{link('Critic')} and {link('Firefighter')} are polarized around {link('Exile')}."
    group = f"{link('Critic')}, {link('Exile')} and {link('Firefighter')} hang together."
    assert patterns([*PARTS, *edges]) == [around, group]
    assert patterns([*PARTS, *(one._replace(status="deprecated") for one in edges)]) == []


def test_the_spellings_of_conflict_and_large_groups():
    fears = [edge("1", "fears", "Critic", "Exile"), edge("2", None, "Pleaser", "Exile")]
    around = f"{link('Critic')} and {link('Pleaser')} are polarized around {link('Exile')}."
    for kind in ("polarized", "Polarised", "in-conflict", "IN_CONFLICT", " tension "):
        assert patterns([*PARTS, *fears, edge("3", kind, "Critic", "Pleaser")])[0] == around
    (line,) = patterns([*PARTS, *(edge(str(n), "knows", "Self", title) for n, title in enumerate(TITLES))])
    assert line.endswith("and 4 more hang together.") and line.count("[[") == 6
    for told in ([edge("1", "polarized", "Critic", "Pleaser")], [edge("1", "polarized", "Critic", "Gone")]):
        assert patterns([*PARTS, *told]) == [], "two alone are told by their relationship"


def test_a_title_can_forge_nothing():
    hostile = "A]] [[MEMORY.md|x\n## Head <!-- section role --> `"
    for title in (hostile, "\n"):
        parts = [row("part", "a", title), *PARTS]
        (line,) = patterns([*parts, edge("1", "knows", "a", "Exile"), edge("2", "knows", "a", "Self")])
        assert sorted(targets(line)) == [f"entities/parts/{name}/profile.md" for name in ("Exile", "Self", "a")]
        assert "\n" not in line and "<!--" not in line and "`" not in line
    assert "|p-a]]" in line
