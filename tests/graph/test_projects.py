"""A project is its repository: sessions of all its folders and harnesses are one thread, with one set of statements."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations
from typing import Any

import artifacts_fixture as made
import pytest
from test_derivers import Database, Source, deriving, drop, follow, opened, pipeline, put, rebuilt, rows
from workbench import Vault, numbered, sampled

from signet_sync.graph.nodes import make_place, possible_roots
from signet_sync.recall.store import session_list

ROOT, ORIGIN = "/home/ada/code/lantern", "example.org/ada/lantern"
DAY = "2026-03-{:02d}T10:00:00.000Z"


def session(number: int, project: str | None, **more: Any) -> dict[str, bytes]:
    who = {"session_id": f"5e5510{number:02d}-0000-4000-8000-000000000000", "captured_at": DAY.format(number)}
    body = f"# Session {number}\n\n## Decisions\n\n- Storage: SQLite\n- Note {number} of src/queue.py and #{number}\n"
    given = {"project": project, "harness": "codex", "body": body, **who, **more}
    return dict([made.summary(**given), made.transcript(**given)])


def in_repository(
    number: int, project: str, root: str = ROOT, origin: str | None = ORIGIN, **more: Any
) -> dict[str, bytes]:
    path = project.removeprefix(root).lstrip("/") if project.startswith(root) else ""
    fields = {"repository_root": root, "repository_origin": origin, "repository_path": path}
    return session(number, project, **fields, **more)


@pytest.fixture
def database() -> Iterator[Database]:
    found = opened()
    stages = pipeline()
    with found.transaction():
        deriving.rebuild(found, stages, deriving.stale(found, stages))
    yield found
    found.close()


def grown(database: Database, *sessions: dict[str, bytes]) -> list[set[Source]]:
    """Follows each session in a pass of its own; what stands then is what a rebuild makes."""
    stages = pipeline()
    moved = []
    for files in sessions:
        moved.append(put(database, files))
        follow(database, stages, moved[-1])
    before = rows(database, stages)
    assert rebuilt(database, stages) == before
    return moved


def threads(database: Database) -> list[tuple[Any, ...]]:
    return list(database.execute("select project, label, harness, sessions from memory_thread_heads order by project"))


# ── rules ──


def test_places() -> None:
    assert make_place(" /x/y// ", None, "o") == ("/x/y", "", "")
    assert make_place(None, "/r/", " o ") == ("", "/r", "o")
    assert make_place("/", None, None) == ("/", "", "")
    assert make_place("/x/cafe\u0301", "/cafe\u0301", None) == ("/x/café", "/café", "")
    assert [*possible_roots(make_place("/a/b/c", None, None))] == ["/a/b/c", "/a/b"]
    assert [*possible_roots(make_place("/home/ada/x", None, None))] == ["/home/ada/x"]
    assert [*possible_roots(make_place("/Users/ada", None, None))] == []
    for wrong in ("/", "//", "~", "x/y", "/a/../b", "/a/./b", "//a/b", " "):
        assert make_place("/x/y", wrong, "o") == ("/x/y", "", ""), wrong
    assert make_place("/app/x", "/app", "o") == ("/app/x", "/app", "o")
    assert [*possible_roots(make_place("/a/b/c", "/r", None))] == ["/r"]
    assert [*possible_roots(make_place("/", None, None))] == [*possible_roots(make_place("", None, None))] == []
    assert len([*possible_roots(make_place("/x" * 9_999, None, None))]) == 64


# ── rows ──


def test_harnesses_subfolders_worktrees_and_clones_are_one_thread(database: Database) -> None:
    grown(
        database,
        in_repository(1, ROOT),
        in_repository(2, f"{ROOT}/docs", harness="claude-code"),
        in_repository(3, "/wt/tree-1", harness="gemini"),
        in_repository(4, "/mnt/clone", "/mnt/clone", harness="opencode"),
    )
    assert threads(database) == [(ORIGIN, "lantern", "opencode", 4)]
    stated = "select count(*), sum(newest) from statements where text = 'Storage: SQLite' and project = ? group by id"
    assert [*database.execute(stated, (ORIGIN,))] == [(4, 1)]


@pytest.mark.parametrize("order", sampled([[*order] for order in permutations(range(4))], 5))
def test_sessions_from_before_belong_to_the_repository_they_are_in(database: Database, order: tuple[int, ...]) -> None:
    """Whatever comes first: a session without fields follows a root that another one names, and leaves it with that."""
    sessions = [session(1, f"{ROOT}/src"), session(2, ROOT), in_repository(3, ROOT), session(4, f"{ROOT}2")]
    moved = grown(database, *(sessions[place] for place in order))
    assert threads(database) == [(f"{ROOT}2", "lantern2", "codex", 1), (ORIGIN, "lantern", "codex", 3)]
    named = moved[order.index(2)]
    drop(database, named)
    follow(database, pipeline(), named)
    alone = [(ROOT, "lantern", "codex", 1), (f"{ROOT}/src", "src", "codex", 1), (f"{ROOT}2", "lantern2", "codex", 1)]
    assert threads(database) == alone
    before = rows(database, pipeline())
    assert rebuilt(database, pipeline()) == before


def test_a_repository_that_gets_an_origin_later(database: Database) -> None:
    grown(database, in_repository(1, ROOT, origin=None), session(2, ROOT))
    assert threads(database) == [(ROOT, "lantern", "codex", 2)]
    grown(database, in_repository(3, ROOT))
    assert threads(database) == [(ORIGIN, "lantern", "codex", 3)]


def test_a_folder_of_several_repositories_in_turn(database: Database) -> None:
    """In a container every repository is in one folder: what names no origin belongs to none of them."""
    grown(database, in_repository(1, ROOT), session(2, ROOT), in_repository(3, ROOT, origin="example.org/eve/prism"))
    assert [row[0] for row in threads(database)] == [ROOT, ORIGIN, "example.org/eve/prism"]


def test_the_nearest_root_counts(database: Database) -> None:
    inner = f"{ROOT}/parts/wick"
    grown(
        database,
        session(1, f"{inner}/src"),
        in_repository(2, ROOT),
        in_repository(3, inner, inner, "example.org/ada/wick"),
    )
    assert threads(database) == [(ORIGIN, "lantern", "codex", 1), ("example.org/ada/wick", "wick", "codex", 2)]


def test_sessions_without_a_project_are_threads_of_their_own(database: Database) -> None:
    key = {"session_key": "agent:main:main"}
    grown(
        database, session(1, None), session(2, None), session(3, None, **key),
        session(4, None, **key, harness="openclaw"),
    )  # fmt: skip
    assert sorted((row[1], row[3]) for row in threads(database)) == [
        ("agent:main:main", 2),
        ("no project", 1),
        ("no project", 1),
    ]
    assert not database.value("select count(*) from session_summaries where depth > 0 and thread_id in"
                              " (select thread_id from memory_thread_heads where sessions = 1)")  # fmt: skip


# ── lists ──


@pytest.fixture
def vault(tmp_path: Any) -> Vault:
    found = Vault(tmp_path / "vault")
    for files in (
        in_repository(1, ROOT),
        in_repository(2, f"{ROOT}/docs", harness="gemini"),
        session(3, None),
        session(4, None),
    ):
        found.put(files)
    found.reindex()
    return found


def test_sessions_are_listed_by_their_project_its_root_folder_or_name(vault: Vault) -> None:
    with vault.database() as database:
        for project in (ORIGIN, ROOT, "lantern", "ada/lantern"):
            found = session_list.page(database, "default", project=project, limit=9)[0]
            assert [entry.session_id[:8] for entry in found] == ["5e551002", "5e551001"], project
        (below,) = session_list.page(database, "default", project=f"{ROOT}/docs", limit=9)[0]
        assert below.session_id.startswith("5e551002")
        assert session_list.page(database, "default", project="tern", limit=9)[0] == []
        assert len(session_list.page(database, "default", project=session_list.NONE, limit=9)[0]) == 2


def test_a_step_is_done_while_a_session_that_states_nothing_came_to_it(database: Database) -> None:
    plan = "# One\n\n## Next steps\n\n- Measure the retry loop of the queue\n"
    deed = {
        "body": "# Two\n\nNothing is listed.\n",
        "memory_sentence": f"{made.SENTENCE} Measured: the queue's retry loop.",
    }
    _, later = grown(database, session(1, ROOT, body=plan), session(9, ROOT, **deed))
    status = "select text, status from statements where newest = 1"
    assert [*database.execute(status)] == [("Measure the retry loop of the queue", "done")]
    stages = pipeline()
    drop(database, later)
    follow(database, stages, later)
    assert [*database.execute(status)] == [("Measure the retry loop of the queue", "open")]


def test_an_arc_lists_what_its_sessions_state_now(database: Database) -> None:
    """Also when a session states less in as many letters, and its nodes stay what they were."""
    body = "# One\n\n## Decisions\n\n- Storage: LevelDB\n"
    others = (body, body.replace("Decisions", "Utterance"))
    grown(database, session(3, ROOT), *(session(4, ROOT, body=one) for one in others))
    (content,) = database.execute("select content from session_summaries where kind = 'arc'")
    assert "Storage: SQLite" in content[0] and "LevelDB" not in content[0]


def test_a_manifest_alone_names_the_folder_of_its_session(tmp_path: Any) -> None:
    """Also in a pass over what changed: rows are those of an index from nothing."""
    vault = Vault(tmp_path / "vault")
    vault.session(1)
    vault.reindex()
    given = {key: value for key, value in numbered(2).items() if key in ("session_id", "captured_at")}
    vault.put(made.manifest(**given, project="/home/ada/code/pier"))
    vault.reindex()
    found = vault.rows("select session_id, folder from session_projects where folder like '%pier'")
    assert found == [(given["session_id"], "/home/ada/code/pier")]
    rows = [row for row in vault.dump_from_scratch() if row[0] == "session_projects"]
    assert [row[1:] for row in rows] == vault.rows("select * from session_projects order by 1, 2, 3")
