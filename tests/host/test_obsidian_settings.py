"""What is set in Obsidian's settings: taken out again to the byte, and nothing of a person's with it."""

import json

import pytest
import yaml

from signet_sync.errors import ConfigError
from signet_sync.formats.obsidian_base import TEXT
from signet_sync.host.obsidian_settings import APP, GRAPH, hides, rewrites_links, with_ours, without_ours

DOCUMENTS = [
    (APP, "{}"),
    (APP, '{"userIgnoreFilters":[]}'),
    (APP, '{\n  "alwaysUpdateLinks": true,\n  "userIgnoreFilters": [\n    "Archive/"\n  ]\n}'),
    (APP, '\ufeff{"alwaysUpdateLinks" : true ,"z":[1 ,2]}\r\n'),
    (APP, '{\n\t"attachmentFolderPath": "a\\u0062"\n}\n'),
    (GRAPH, "{ }"),
    (GRAPH, '{"search": "", "showTags": true}'),
    (GRAPH, '{\n  "search": "tag:#\\u0061 OR path:x",\n  "scale": 1.50\n}'),
]


@pytest.mark.parametrize(("path", "text"), DOCUMENTS)
def test_what_is_set_can_be_taken_out_to_the_byte(path: str, text: str) -> None:
    after, marks = with_ours(path, text)
    data = json.loads(after.removeprefix("\ufeff"))
    if path == APP:
        assert "memory/" in data["userIgnoreFilters"] and not rewrites_links(data) and hides(data, "memory/")
    else:
        assert data["search"].endswith("-path:memory/")
    assert with_ours(path, after) == (after, [])
    assert without_ours(path, after, marks) == text


@pytest.mark.parametrize("path", [APP, GRAPH])
def test_nothing_is_left_of_a_file_that_was_not_there(path: str) -> None:
    after, marks = with_ours(path, None)
    assert without_ours(path, after, marks) is None


def test_what_a_person_had_set_is_not_taken_out() -> None:
    text = '{"userIgnoreFilters": ["memory/"], "alwaysUpdateLinks": false}'
    assert with_ours(APP, text) == (text, [])
    assert without_ours(APP, text, []) == text
    graph = '{"search": "-path:memory/"}'
    assert with_ours(GRAPH, graph) == (graph, [])


def test_what_obsidian_wrote_again_keeps_its_other_values() -> None:
    """Obsidian writes its settings anew, in its own form, whenever one of them changes."""
    after, marks = with_ours(APP, '{"userIgnoreFilters":["x/"]}')
    again = json.dumps(json.loads(after) | {"vimMode": True}, indent=2)
    taken = without_ours(APP, again, marks)
    assert taken is not None and json.loads(taken) == {"userIgnoreFilters": ["x/"], "vimMode": True}
    assert without_ours(APP, '{"userIgnoreFilters": ["x/"]}', marks) == '{"userIgnoreFilters": ["x/"]}'


@pytest.mark.parametrize(
    ("path", "text"),
    [(APP, "// no\n{}"), (APP, "[]"), (APP, '{"userIgnoreFilters": 3}'), (GRAPH, '{"search": 3}'), (GRAPH, "")],
)
def test_what_cannot_be_edited_safely_is_refused_with_a_remedy(path: str, text: str) -> None:
    with pytest.raises(ConfigError) as error:
        with_ours(path, text)
    assert error.value.path == path and error.value.hint


def test_the_base_is_of_the_published_form() -> None:
    """https://help.obsidian.md/bases/syntax: filters, formulas, properties, views with type, name, order, sort."""
    base = yaml.safe_load(TEXT)
    assert base.keys() <= {"filters", "formulas", "properties", "summaries", "views"}
    assert [view["name"] for view in base["views"]] == ["Sessions", "Decisions", "Blockers", "Entities"]
    known = {f"formula.{name}" for name in base["formulas"]} | {"file.name"}
    for view in base["views"]:
        assert view["type"] == "table"
        assert view.keys() <= {"type", "name", "filters", "groupBy", "order", "sort", "limit"}
        assert all(isinstance(one, str) for one in view["filters"]["and"])
        assert all(one in known or one.startswith("note.") for one in view["order"])
        for sort in view.get("sort", []):
            assert sort["direction"] in ("ASC", "DESC")
    assert base["properties"].keys() <= {one for view in base["views"] for one in view["order"]}
