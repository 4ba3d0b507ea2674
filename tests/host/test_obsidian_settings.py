"""What is set in Obsidian's settings: only what is missing, beside everything that a person has set."""

import json

import pytest
import yaml

from signet_sync.errors import ConfigError
from signet_sync.formats.obsidian_base import TEXT
from signet_sync.host.obsidian_settings import APP, GRAPH, hides, rewrites_links, with_ours

DOCUMENTS = [
    (APP, None), (APP, b"{}"), (APP, b'{"userIgnoreFilters":[]}'),
    (APP, b'{\n  "alwaysUpdateLinks": true,\n  "userIgnoreFilters": [\n    "Archive/"\n  ]\n}'),
    (APP, b'\xef\xbb\xbf{"alwaysUpdateLinks" : true ,"z":[1 ,2]}\r\n'),
    (GRAPH, None), (GRAPH, b"{ }"), (GRAPH, b'{"search": "", "showTags": true}'),
    (GRAPH, b'{\n  "search": "tag:#\\u0061 OR path:x",\n  "scale": 1.50\n}'),
]  # fmt: skip


@pytest.mark.parametrize(("path", "raw"), DOCUMENTS)
def test_what_is_missing_is_set_and_everything_else_stays(path: str, raw: bytes | None) -> None:
    after, changes = with_ours(path, raw)
    before, data = json.loads((raw or b"{}").decode("utf-8-sig")), json.loads(after)
    ours = {"alwaysUpdateLinks", "userIgnoreFilters", "search"}
    assert changes and {key: data[key] for key in data if key not in ours} == {
        key: before[key] for key in before if key not in ours
    }
    if path == APP:
        assert "memory/" in data["userIgnoreFilters"] and not rewrites_links(data) and hides(data, "memory/")
        assert data["userIgnoreFilters"][:-1] == before.get("userIgnoreFilters", [])
    else:
        assert data["search"].endswith("-path:memory/") and data["search"].startswith(before.get("search", ""))
    assert with_ours(path, after) == (after, [])


def test_what_a_person_had_set_is_not_written_again() -> None:
    for path, raw in (
        (APP, b'{"userIgnoreFilters": ["memory/"], "alwaysUpdateLinks": false}'),
        (APP, b'{"userIgnoreFilters":["/mem"]}'),
        (GRAPH, b'{"search": "-path:memory/"}'),
    ):
        assert with_ours(path, raw) == (raw, [])


@pytest.mark.parametrize(
    ("path", "raw"),
    [(APP, b"// no\n{}"), (APP, b"[]"), (APP, b'{"userIgnoreFilters": 3}'), (GRAPH, b'{"search": 3}'), (GRAPH, b"")],
)
def test_what_cannot_be_edited_safely_is_refused_with_a_remedy(path: str, raw: bytes) -> None:
    with pytest.raises(ConfigError) as error:
        with_ours(path, raw)
    assert error.value.path == path and error.value.hint


def test_the_base_is_of_the_published_form() -> None:
    """https://help.obsidian.md/bases/syntax: filters, formulas, properties, views with type, name, order, sort."""
    base = yaml.safe_load(TEXT)
    assert base.keys() <= {"filters", "formulas", "properties", "summaries", "views"}
    assert [view["name"] for view in base["views"]] == ["Sessions", "Entities"]
    known = {f"formula.{name}" for name in base["formulas"]} | {"file.name"}
    for view in base["views"]:
        assert view["type"] == "table"
        assert view.keys() <= {"type", "name", "filters", "groupBy", "order", "sort", "limit"}
        assert all(isinstance(one, str) for one in view["filters"]["and"])
        assert all(one in known or one.startswith("note.") for one in view["order"])
        for sort in view.get("sort", []):
            assert sort["direction"] in ("ASC", "DESC")
    assert base["properties"].keys() <= {one for view in base["views"] for one in view["order"]}
