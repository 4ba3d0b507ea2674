"""Patterns of relationships: what edges make together is said once, alike for the same edges, in lines that hold."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from signet_sync.entities.relations import Member, Relationship, patterns
from signet_sync.formats.wikilinks import targets

TITLES = ["Critic", "Exile", "Firefighter", "Pleaser", "Self", "Planner", "Scout", "Watcher", "Host", "Child"]
MEMBERS = {f"p-{title}": Member(f"p-{title}", title, f"entities/parts/{title}/profile.md") for title in TITLES}
EDGES = st.lists(
    st.builds(
        Relationship,
        st.sampled_from([f"r-{n}" for n in range(12)]),
        st.sampled_from([None, "polarized", "in_conflict", "protects", "Tension", "x"]),
        st.lists(st.sampled_from([*MEMBERS, "p-Gone"]), max_size=3).map(tuple),
    ),
    max_size=12,
)


def edge(name, kind, *titles):
    return Relationship(f"r-{name}", kind, tuple(f"p-{title}" for title in titles))


def found(*edges, members=MEMBERS):
    return [(pattern.code, pattern.line) for pattern in patterns(edges, members)]


def link(title):
    return f"[[entities/parts/{title}/profile.md|{title}]]"


def test_two_protectors_polarized_around_an_exile():
    edges = [
        edge("1", "polarized", "Firefighter", "Critic"),
        edge("2", "protects", "Critic", "Exile"),
        edge("3", "protects", "Firefighter", "Exile"),
    ]
    [pattern, _] = patterns(edges, MEMBERS)
    assert pattern.code == "polarized-around"
    assert pattern.line == f"{link('Critic')} and {link('Firefighter')} are polarized around {link('Exile')}."
    assert pattern.members == ("p-Critic", "p-Firefighter", "p-Exile")
    assert sorted(pattern.edges) == ["r-1", "r-2", "r-3"]


def test_a_pair_alone_and_the_spellings_of_its_type():
    for kind in ("polarized", "Polarised", "in-conflict", "IN_CONFLICT", " tension "):
        assert found(edge("1", kind, "Critic", "Pleaser")) == [
            ("polarized", f"{link('Critic')} and {link('Pleaser')} are polarized.")
        ]
    assert found(edge("1", "protects", "Critic", "Pleaser"), edge("2", None, "Self", "Critic")) == [
        ("group", f"{link('Critic')}, {link('Pleaser')} and {link('Self')} hang together.")
    ]
    assert found(edge("1", None, "Critic", "Pleaser")) == found() == []


def test_a_hub_is_said_with_all_that_it_stands_with_and_not_again_as_a_group():
    edges = [edge(str(n), "knows", "Self", title) for n, title in enumerate(["Critic", "Exile", "Host"])]
    assert found(*edges) == [
        ("hub", f"{link('Self')} stands in 3 relationships: with {link('Critic')}, {link('Exile')} and {link('Host')}.")
    ]
    many = [edge(str(n), "knows", "Self", title) for n, title in enumerate(TITLES) if title != "Self"]
    [(_, line)] = found(*many)
    assert line.endswith("and 3 more.") and line.count("[[") == 7
    # Two relationships of one pair are two relationships with one entity.
    twice = [edge("1", "a", "Self", "Host"), edge("2", "b", "Self", "Host"), edge("3", "c", "Self", "Host")]
    assert f"3 relationships: with {link('Host')}." in found(*twice)[1][1]


def test_edges_of_unknown_entities_and_to_oneself_say_nothing():
    assert found(edge("1", "polarized", "Critic", "Gone"), edge("2", "polarized", "Critic", "Critic")) == []


def test_a_title_can_forge_nothing():
    hostile = "A]] [[MEMORY.md|x\n## Head <!-- section role --> `"
    members = MEMBERS | {"p-Critic": Member("p-Critic", hostile, "entities/parts/a/profile.md")}
    [(_, line)] = found(edge("1", "polarized", "Critic", "Exile"), members=members)
    assert sorted(targets(line)) == ["entities/parts/Exile/profile.md", "entities/parts/a/profile.md"]
    assert "\n" not in line and "<!--" not in line and "`" not in line
    blank = MEMBERS | {"p-Critic": Member("p-Critic", "\n", "entities/parts/a/profile.md")}
    assert "|p-Critic]]" in found(edge("1", "polarized", "Critic", "Exile"), members=blank)[0][1]


@given(EDGES, st.randoms(use_true_random=False))
def test_the_same_edges_say_the_same_in_any_order(edges, chance):
    # An edge is one file: its id comes once.
    edges = list({each.id: each for each in edges}.values())
    told = patterns(edges, MEMBERS, limit=100)
    shuffled = [Relationship(e.id, e.type, tuple(chance.sample(e.participants, len(e.participants)))) for e in edges]
    chance.shuffle(shuffled)
    assert patterns(shuffled, dict(reversed(MEMBERS.items())), limit=100) == told
    assert patterns(edges, MEMBERS, limit=2) == told[:2]
    assert len({pattern.line for pattern in told}) == len(told)
    ids = {each.id for each in edges}
    for pattern in told:
        assert set(pattern.edges) <= ids and set(pattern.members) <= MEMBERS.keys()
        assert len(set(pattern.members)) == len(pattern.members) >= 2
    order = ["polarized-around", "polarized", "hub", "group"]
    assert sorted(told, key=lambda pattern: order.index(pattern.code)) == told
