"""Entity files: their names, places and sections; nothing here reads a file."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signet_sync.formats.entity_paths import (
    COMMON,
    CORE,
    ENTITY_ID,
    FOLDERS,
    KINDS,
    NOTES,
    SLUG_LENGTH,
    EntityPlace,
    anchor_of,
    kind_of,
    ledger_page,
    new_id,
    parse_ledger_page,
    parse_path,
    shapes,
    slug_of,
)

AGENTS = st.sampled_from(["default", "ada", "a_b-c", "0"])
# Names as they come: any script, marks, blanks, dashes, what file systems refuse.
NAMES = st.text(max_size=80) | st.text(alphabet="aÉß會ンİ가्कé-– _/\\.:\x00\n💡1", max_size=90)


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("Inner Critic", "inner-critic"), ("  Ada & Grace!  ", "ada-grace"), ("C++ / Rust", "c-rust"),
        ("../../etc/passwd", "etc-passwd"), ("内なる批評家", "内なる批評家"), ("Ünïcode Größe", "ünïcode-größe"),
        ("Ｆｕｌｌ　Ｗｉｄｔｈ", "full-width"), ("हिन्दी नाम", "हिन्दी-नाम"), ("a--b---c", "a-b-c"), ("con", "con"),
        ("", "unnamed"), ("💡 !!", "unnamed"), ("x" * 80, "x" * 60), ("x" * 59 + " yyy", "x" * 59),
    ],
)  # fmt: skip
def test_slugs_are_what_a_person_would_call_the_folder(name, slug):
    assert slug_of(name) == slug


@given(NAMES)
def test_any_name_gives_a_folder_that_leads_back(name):
    slug = slug_of(name)
    assert 0 < len(slug) <= SLUG_LENGTH and slug_of(slug) == slug
    assert "--" not in slug and not slug.startswith("-") and not slug.endswith("-")
    assert all(c == "-" or unicodedata.category(c)[0] in "LNM" for c in slug)
    assert len(f"{slug}--p-{'a' * 12}".encode()) <= 255


@given(AGENTS, st.sampled_from(KINDS), NAMES, st.text(max_size=20))
def test_paths_lead_back_to_the_entity(agent, kind, name, seed):
    entity_id = new_id(kind, agent, seed)
    assert ENTITY_ID.fullmatch(entity_id) and kind_of(entity_id) == kind
    place = EntityPlace(agent, kind, slug_of(name), entity_id)
    assert parse_path(place.path) == place
    assert parse_path(place._replace(file="notes").path) == place._replace(file="notes")


def test_where_entities_stand():
    part = ("part", "inner-critic", "p-abcdefghijkl")
    assert EntityPlace("default", *part).folder == "entities/parts/inner-critic--p-abcdefghijkl"
    assert EntityPlace("ada", *part).path == "agents/ada/entities/parts/inner-critic--p-abcdefghijkl/profile.md"
    assert FOLDERS == {"user": "user", "part": "parts", "relationship": "relationships"}
    assert ledger_page("default", "2026-03") == "entities/ledger/2026-03.jsonl"
    assert parse_ledger_page(ledger_page("ada", "2026-12")) == ("ada", "2026-12")


@pytest.mark.parametrize(
    "path",
    [
        "entities/parts/x--p-abcdefghijkl/.other.md",
        "entities/parts/x--p-abcdefghijkl/other.md",
        "entities/parts/x--p-abcdefghijkl/Jo (conflicted copy 2026-03-28).md",
        "entities/parts/x--p-abcdefghijkl/Jo.user-20260328T120000Z.md",
        "entities/parts/x--p-abcdefghijkl/deeper/other.md", "entities/parts/x--p-abcdefghijkl/profile.md/",
        "entities/parts/x--p-abcdefghijk/profile.md", "entities/parts/x--p-ABCDEFGHIJKL/profile.md",
        "entities/parts/--p-abcdefghijkl/profile.md", "entities/parts/p-abcdefghijkl/profile.md",
        "entities/parts/x--u-abcdefghijkl/profile.md", "entities/part/x--p-abcdefghijkl/profile.md",
        "entities/parts/a/x--p-abcdefghijkl/profile.md", "agents/../entities/parts/x--p-abcdefghijkl/profile.md",
        "/entities/parts/x--p-abcdefghijkl/profile.md", "entities/parts/x--p-abcdefghijkl/profile.md\n",
        "memory/x.md", "",
    ],
)  # fmt: skip
def test_other_paths_are_nobodys(path):
    assert parse_path(path) is None


@pytest.mark.parametrize("path", ["entities/ledger/2026-13.jsonl", "entities/ledger/2026-3.jsonl", "ledger/2026-03.md"])
def test_other_pages_hold_no_events(path):
    assert parse_ledger_page(path) is None


def test_ids_are_of_one_agent_one_kind_and_one_seed():
    ids = [new_id(kind, agent, seed) for kind in KINDS for agent in ("a", "b") for seed in ("1", "2")]
    assert len(set(ids)) == len(ids)
    assert new_id("part", "a", "bc") != new_id("part", "ab", "c")
    assert new_id("part", "default", "x") == "p-g3dpvn3xjl3i"
    assert kind_of("x-abcdefghijkl") is None and kind_of("p-abc") is None and kind_of("") is None


def test_the_sections_are_those_of_the_contract():
    common = ["Highlights", "Evidence", "Open Questions", "Change Log", "Extensions"]
    core = {
        "user": ["Overview", "Preferences", "Goals", "Patterns"], "part": ["Identity", "Role", "Concerns", "Needs"],
        "relationship": ["Participants", "Dynamics", "Tensions"],
    }  # fmt: skip
    for kind in KINDS:
        assert [shape.heading for shape in shapes(kind)] == core[kind] + common
        assert [shape.heading for shape in shapes(kind, "notes")] == ["Inbox", "Focus", "Parking Lot"]
    known = [shape for kind in KINDS for shape in CORE[kind]] + [*COMMON, *NOTES]
    assert {shape.heading for shape in known if shape.form == "list"} == {"Highlights", "Evidence", "Open Questions"}
    assert [shape.heading for shape in known if shape.form == "log"] == ["Change Log"]
    assert all(shape.anchor == anchor_of(shape.heading) and shape.soft_cap > 0 for shape in known)
    assert next(shape.soft_cap for shape in known if shape.anchor == "evidence") == 7
