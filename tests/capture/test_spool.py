"""The spool: what a hook told of survives a crash, is tried again but not for ever, and goes when a session goes."""

import json
import os
import stat
from pathlib import Path

import pytest

from signet_sync.capture import spool
from signet_sync.formats.timestamps import SECOND
from signet_sync.storage.durable import add_sum

AT = "2026-03-28T10:00:00.000Z"
NOW = 1_774_692_000 * SECOND  # the same instant


def a_job(**given):
    values = {"event": "end", "harness": "codex", "session_id": "s-1", "agent_id": "default", "at": AT}
    return spool.Job(**values | given)


@pytest.fixture
def folder(tmp_path):
    return str(tmp_path / "state" / "key" / "spool")


def names(folder):
    return sorted(os.listdir(folder)) if os.path.isdir(folder) else []


def test_a_job_comes_back_as_it_was_given(folder):
    job = a_job(transcript_path="/t/a.jsonl", cwd="/p/é", session_id="s/é'\"")
    spool.put(folder, job)
    (found,) = spool.jobs(folder)
    assert found.document() == job.document()
    assert (found.place, found.mark) == (job.place, job.mark)
    status = os.stat(found.place)
    assert stat.S_IMODE(status.st_mode) == 0o600
    assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700


def test_jobs_come_oldest_first_and_names_sort_by_time(folder):
    for second in (3, 1, 2):
        spool.put(folder, a_job(at=f"2026-03-28T10:00:0{second}.000Z"))
    assert [job.at[18] for job in spool.jobs(folder)] == ["1", "2", "3"]
    placed = [os.path.basename(spool.put(folder, a_job()).place) for _ in range(20)]
    assert len(set(placed)) == 20
    assert [name[:14] for name in placed] == sorted(name[:14] for name in placed)


def test_a_stop_takes_the_place_of_the_one_before_of_the_same_session_and_agent(folder):
    for session, agent in (("a", "default"), ("a", "default"), ("b", "default"), ("a", "scout")):
        spool.put(folder, a_job(event="stop", session_id=session, agent_id=agent))
    assert len(names(folder)) == 3


def test_a_marker_that_was_renewed_while_it_was_worked_on_stays(folder):
    spool.put(folder, a_job(event="stop"))
    (taken,) = spool.jobs(folder)
    spool.put(folder, a_job(event="stop", at="2026-03-28T10:05:00.000Z"))
    spool.finish(taken)
    spool.retry_later(taken, NOW)
    (left,) = spool.jobs(folder)
    assert (left.at, left.tries) == ("2026-03-28T10:05:00.000Z", 0)
    spool.finish(left)
    assert names(folder) == []
    spool.finish(left)  # gone already: nothing to say


def test_a_job_that_fails_waits_longer_each_time_and_is_given_up(folder):
    spool.put(folder, a_job())
    waits, now = [], NOW
    for _ in range(spool.MOST_TRIES - 1):
        (job,) = spool.jobs(folder, now)
        assert spool.begin(job, now)
        assert bool(spool.jobs(folder, now)) == (not waits), "one that killed its worker twice is delayed as well"
        spool.retry_later(job, now)
        waits.append(job.retry_at - now / SECOND)
        assert spool.jobs(folder, now) == [] and spool.has_jobs(folder)
        now = int(job.retry_at * SECOND)
    assert waits == [60, 240, 960, 3840, 15360, 21600, 21600]
    (job,) = spool.jobs(folder, now)
    assert not spool.begin(job, now) and not spool.has_jobs(folder)
    (left,) = names(f"{folder}/bad")
    assert Path(folder, "bad", left).read_bytes() == b"", "no secret of a path stays"


def test_a_clock_that_was_set_back_does_not_put_a_job_off_for_years(folder):
    spool.put(folder, a_job(at="2030-01-01T00:00:00.000Z"))
    (job,) = spool.jobs(folder, 1_900_000_000 * SECOND)
    spool.begin(job, 1_893_456_000 * SECOND)
    spool.retry_later(job, 1_893_456_000 * SECOND)
    assert len(spool.jobs(folder, NOW)) == 1


SOUND = add_sum(a_job().document())
HOSTILE = [
    *(b"", SOUND[:-9], SOUND[9:], b"[]", b"[" * 100_000, b"\xff\xfe{}", SOUND.replace(b'"end"', b'"stop"')),
    *(json.dumps(a_job().document()).encode(), add_sum(a_job().document() | {"v": 3})),
]


def test_what_is_no_job_is_put_aside(folder):
    spool.put(folder, a_job())
    for raw in HOSTILE:
        Path(folder, "0.json").write_bytes(raw)
        assert len(spool.jobs(folder)) == 1
        assert names(f"{folder}/bad") == ["0.json"], raw
        Path(folder, "bad", "0.json").unlink()


def test_what_is_no_file_is_never_read_through(folder, tmp_path):
    os.makedirs(folder)
    elsewhere = tmp_path / "mine.json"
    elsewhere.write_bytes(SOUND)
    os.symlink(elsewhere, f"{folder}/link.json")
    os.mkfifo(f"{folder}/pipe.json")
    os.mkdir(f"{folder}/folder.json")
    assert spool.jobs(folder) == []
    spool.drop(folder, lambda _: True)
    assert names(f"{folder}/bad") == ["pipe.json"] and elsewhere.exists()


def test_dropping_a_session_leaves_no_word_of_it(folder):
    canary = "canary-é-7d1f"
    for event in ("session-start", "stop", "compact", "end"):
        spool.put(folder, a_job(event=event, session_id=canary))
    spool.put(folder, a_job(session_id="another"))
    spool.put(folder, a_job(session_id=canary, agent_id="scout"))
    torn = add_sum(a_job(session_id=canary).document())[:-5]
    Path(folder, "torn.json").write_bytes(torn)
    old = Path(folder, f"torn.json.cd.{os.getpid()}.tmp")
    old.write_bytes(torn)
    os.utime(old, (0, 0))
    half = Path(folder, f"0.json.ab.{os.getpid()}.tmp")  # what is being written is not taken from its writer
    half.write_bytes(b'{"v":1')
    spool.jobs(folder)
    assert names(f"{folder}/bad") == ["torn.json"]
    spool.drop(folder, lambda job: (job.agent_id, job.session_id) == ("default", canary))
    assert [job.agent_id for job in spool.jobs(folder) if job.session_id == canary] == ["scout"]
    spool.drop(folder, lambda job: job.session_id == canary)
    left = b"".join(path.read_bytes() for path in Path(folder).rglob("*") if path.is_file())
    assert canary.encode() not in left and half.exists()
    assert json.dumps(canary)[1:-1].encode() not in left
    assert [job.session_id for job in spool.jobs(folder)] == ["another"]


def test_sweeping_takes_what_a_crash_left_and_what_lay_aside_for_long(folder):
    spool.put(folder, a_job())
    dead = 4_194_305  # beyond the highest id that a process can have
    for writer in (dead, os.getpid()):
        Path(folder, f"0.json.ab.{writer}.tmp").touch()
    Path(folder, "1.json").write_bytes(b"")
    spool.jobs(folder)
    spool.sweep(folder)
    assert len(names(folder)) == 3
    assert f"0.json.ab.{os.getpid()}.tmp" in names(folder)
    later = int((os.stat(folder).st_mtime + 31 * 86_400) * SECOND)
    spool.sweep(folder, later)
    assert [name.rpartition(".")[2] for name in names(folder)] == ["json", "bad"]
    assert names(f"{folder}/bad") == []
