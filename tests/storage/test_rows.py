"""The mirror of tombstones, and sessions by their names."""

from __future__ import annotations

import pytest
from artifacts_fixture import fill, judged, session, stone, token_for

from signet_sync.errors import UsageError
from signet_sync.storage.database.connection import Database
from signet_sync.sync.store import sessions
from signet_sync.sync.store import tombstones as tombstones_store


@pytest.fixture
def database():
    made = Database(":memory:")
    yield made
    made.close()


# ── tombstones' mirror ──


def test_the_mirror_gives_back_what_it_was_given_and_writes_only_news(database):
    whole, some = stone(), stone(agent_id="scout", session_ids=("s-1", "s-2"))
    for _ in range(2):
        tombstones_store.mirror(database, [whole, some])
    assert tombstones_store.list_mirrored(database) == [whole, some]
    assert tombstones_store.is_unscrubbed(database)
    tombstones_store.mark_scrubbed(database)
    assert not tombstones_store.is_unscrubbed(database)
    tombstones_store.mirror(database, [whole, some])
    assert not tombstones_store.is_unscrubbed(database)
    tombstones_store.mirror(database, [stone(agent_id="scout", session_ids=("s-1", "s-2", "s-3"))])
    assert tombstones_store.is_unscrubbed(database)
    tombstones_store.lift(database, "scout", some.session_token)
    assert tombstones_store.list_mirrored(database) == [whole]


# ── sessions by name ──


@pytest.fixture
def named(database):
    files = {}
    for number, key in ((1, "agent:main:main"), (2, "agent:main:main"), (3, None)):
        day = f"2026-03-0{number}T08:00:00.000Z"
        files.update(session(session_id=f"0195d7a2-000{number}", session_key=key, captured_at=day))
    files.update(session(agent_id="scout", session_id="0195d7a2-0009"))
    files.update(session(session_id="50%_off", captured_at="2026-03-09T08:00:00.000Z"))
    fill(database, judged(files))
    return database


@pytest.mark.parametrize(
    ("name", "ids"),
    [
        ("0195d7a2-0001", ["0195d7a2-0001"]),
        ("agent:main:main", ["0195d7a2-0001", "0195d7a2-0002"]),
        (token_for(session_id="0195d7a2-0003"), ["0195d7a2-0003"]),
        (token_for(session_key="agent:main:main"), ["0195d7a2-0001", "0195d7a2-0002"]),
        ("0195d7a2", ["0195d7a2-0001", "0195d7a2-0002", "0195d7a2-0003"]), ("01", []), ("0195d7a2-0009", []),
        ("50%", ["50%_off"]), ("5_%", []), ("", []), ("'; --", []),
    ],
)  # fmt: skip
def test_a_session_is_found_by_id_key_token_or_prefix(named, name, ids):
    assert sorted(ref.session_id for ref in sessions.find(named, "default", name)) == ids


def test_one_session_or_a_clear_refusal(named):
    ref = sessions.one(named, "default", "0195d7a2-0003")
    assert [file.source_kind for file in sessions.files(named, ref)] == ["manifest", "summary", "transcript"]
    assert set(sessions.verdicts(named, [f.source_path for f in sessions.files(named, ref)]).values()) == {"indexed"}
    with pytest.raises(UsageError, match="is called 'nobody'") as unknown:
        sessions.one(named, "default", "nobody")
    assert unknown.value.code == "unknown-session"
    with pytest.raises(UsageError, match=r"means 2 sessions: 0195d7a2-000\d \(") as ambiguous:
        sessions.one(named, "default", "agent:main:main")
    assert ambiguous.value.code == "ambiguous-session"
