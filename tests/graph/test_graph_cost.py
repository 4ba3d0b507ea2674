"""Cost follows change: bringing the graph in step with one ended session costs the same in a vault of any size."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import artifacts_fixture as made
import pytest

from benchmarks.graph import Count, Meter
from signet_sync.app.pipeline import PIPELINE
from signet_sync.storage.database.connection import Database
from signet_sync.storage.database.tables import full_text
from signet_sync.sync import deriving
from signet_sync.sync.stages import SESSION, Source

START = datetime(2020, 1, 1, 10, tzinfo=UTC)
A_DAY = 2
QUARTER = 13 * 7 * A_DAY  # sessions


def files_of(number: int, project: str) -> dict[str, bytes]:
    """The summary of a session: words that others say too, a value that supersedes the one before, words of its own."""
    moment = START + timedelta(days=number // A_DAY, hours=number % A_DAY)
    body = (
        f"# Run {number}\n\n## Decisions\n\n- Database: store {number}\n- src/queue.py gives up after five tries.\n"
        f"- Bound loop {number} of src/loop{number}.py.\n\n## Next steps\n\n- Look at #{number}\n"
    )
    name, raw = made.summary(
        session_id=f"{project}-{number}",
        captured_at=moment.strftime("%Y-%m-%dT%H:%M:%S.000Z"),
        project=f"/home/ada/code/{project}",
        body=body,
    )
    return {name: raw}


def ended(threads: dict[str, int]) -> Count:
    """What the graph reads and writes for one more session of `lantern`, where threads have so many sessions."""
    database = Database(":memory:")
    meter = Meter(database.connection)
    given = [files_of(number, project) for project, count in threads.items() for number in range(count)]
    made.fill(database, made.judged({name: raw for files in given for name, raw in files.items()}))
    with database.transaction():
        deriving.rebuild(database, PIPELINE, PIPELINE.derivers)
        deriving.drain(database, PIPELINE)
        # Full text lies in a few pieces, more or less as it happens, and each is looked through.
        for table in full_text():
            database.execute(f"insert into {table}({table}) values('optimize')")
    assert database.value("select count(*) from thread_sessions") == sum(threads.values())
    assert database.value("select count(*) from memory_thread_heads") == len(threads)
    judgements = made.judged(files_of(threads["lantern"], "lantern"))
    made.fill(database, judgements)
    moved = {
        Source(SESSION, j.row.agent_id, j.row.session_token, j.row.session_id) for j in judgements if j.row is not None
    }
    counts: list[Count] = []
    with meter.counting(counts):
        with database.transaction():
            deriving.queue(database, PIPELINE, moved)
        deriving.drain(database, PIPELINE)
    return counts[0]


@pytest.mark.slow
def test_an_ending_costs_the_same_in_a_large_vault() -> None:
    few = ended({"lantern": 30, "other": 30})
    many = ended({"lantern": 30} | {f"other{number}": 30 for number in range(19)})
    assert many.read <= 1.3 * few.read
    assert many.written <= 1.3 * few.written
    assert many.steps <= 1.3 * few.steps


@pytest.mark.slow
def test_an_ending_moves_as_many_rows_in_a_long_thread() -> None:
    # Both threads end on the same day of a week and week of a quarter, so that as much is summed up anew.
    few, many = ended({"lantern": 56}), ended({"lantern": 56 + 3 * QUARTER})
    assert many.read <= 1.3 * few.read
    assert many.written <= 1.3 * few.written
