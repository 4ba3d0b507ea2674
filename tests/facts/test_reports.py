"""What summaries report, and which blockers and next steps that ends."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signet_sync.facts.extract import distil
from signet_sync.facts.reports import REPORTS_PER_ARTIFACT, WORDS_PER_REPORT, ends, open_words, reports


def ended(aspect: str, text: str, sentence: str = "", body: str = "") -> bool:
    """Whether a later summary ends an item."""
    words = open_words(aspect, text)
    found = distil(body, project="/code/pier", sentence=sentence).reports
    return words is not None and any(ends(words, one) for one in found)


BLOCKERS = [
    ("Waiting for Jo's review of the billing schema.", "Jo's review of the billing schema is merged."),
    ("Waiting for the Stripe API key from Ops.", "The Stripe API key arrived from Ops."),
    ("We wait for Priya to grant write access to the archive bucket.", "The write access works."),
    ("The harbour office has not sent the tide tables yet.", "The tide tables arrived from the harbour office."),
    ("Waits for the review of #118 by the security group.", "#118 was merged, and the cache is keyed by lock file."),
    ("Waits for the staging key from the harbour team", "The harbour team's staging key is here, so alerts were sent."),
    ("Waits for the staging key from the harbour team", "Delivery no longer waits for the staging key."),
    ("No access to the tide archive until IT answers", "IT granted access to the tide archive."),
    ("Der Zugang zum Gezeitenarchiv fehlt noch", "Der Zugang zum Gezeitenarchiv wurde freigegeben."),
    ("LAMP-12 blocks the pier deploy", "LAMP-12 is fixed."),
    ("潮汐表的密钥还没有收到", "潮汐表的密钥已收到。"),
    ("Falta el acceso al archivo de mareas", "El acceso al archivo de mareas fue aprobado."),
    ("Ключ архива приливов ещё не пришёл", "Ключ архива приливов получен."),
]
# What still is so, was never there or is bound to its day, and what says otherwise of the same thing.
OTHERWISE = [
    ("kiln_jobs still writes to bucket_old; Ana has the rest.", "kiln_jobs of glaze writes to bucket_new since May."),
    ("The importer on heron-2 still uses Python 3.9", "The importer on heron-2 was moved to Python 3.12."),
    ("tide.toml still names station_a as default", "tide.toml no longer names station_a."),
    ("The nightly export still writes CSV", "The nightly export writes Parquet now."),
    ("glaze 0017 waits for the role kiln_writer: it belongs to team ops", "kiln_writer was transferred to us by ops."),
    ("The login check still fails on Windows", "The login check passes on Windows."),
    ("Die Ansicht kiln_view liest noch temp_f", "Die Ansicht kiln_view liest temp_c."),
    ("El rol kiln_writer todavía escribe temp_f", "El rol kiln_writer escribe temp_c."),
    ("Роль kiln_writer всё ещё пишет temp_f", "Роль kiln_writer пишет temp_c."),
    ("视图 kiln_view 仍读取 temp_f", "视图 kiln_view 读取 temp_c。"),
    ("No failover has ever been rehearsed; until then it is a hope.", "The first failover of glaze went through."),
    ("No failover has ever been rehearsed", "Rehearsed a failover of glaze: 40 s without writes."),
    ("The alarm for the kiln door is missing", "Added an alarm for the kiln door with a limit of 90 °C."),
    ("There is no index on kiln_jobs.station yet", "An index on kiln_jobs.station was created."),
    ("kiln_writer lacks select on glaze.depths", "kiln_writer has select on glaze.depths."),
    ("glaze.depths is not yet partitioned", "glaze.depths is partitioned by month."),
    ("The export was never tested on macOS", "The export was tested on macOS."),
    ("Noch nie wurde ein Umzug der Datenbank geprobt", "Der erste Umzug der Datenbank ist durch."),
    ("kiln_rows lacks a check on depth", "kiln_rows has a check on depth."),
    ("El respaldo nunca se ha probado", "El respaldo se ha probado."),
    ("Falta el índice de kiln_jobs", "Índice de kiln_jobs creado, aprobado por Ana."),
    ("还没有做过恢复演练", "第一次恢复演练已完成。"),
    ("Waiting for the legal check of the glaze export", "The legal check of the glaze export is through."),
    ("Waiting for the legal check of the glaze export", "The legal check of the glaze export finally went through."),
    ("Wartet auf die rechtliche Prüfung des Exports", "Die rechtliche Prüfung des Exports ist durch."),
]  # fmt: skip
STILL_SO = [
    ("kiln_jobs still writes to bucket_old", "kiln_jobs writes to bucket_old every hour."),
    ("kiln_jobs still writes to bucket_old", "kiln_rows writes to bucket_new."),
    ("kiln_jobs still writes to bucket_old", "kiln_jobs has a new column for the station."),
    ("kiln_jobs still writes to bucket_old", "kiln_jobs still writes to bucket_old and bucket_new."),
    ("kiln_jobs still writes to bucket_old", "Once kiln_jobs writes to bucket_new, the lamp goes."),
    ("The nightly export still writes CSV", "The weekly export writes Parquet now."),
    ("The nightly export still writes CSV", "The nightly export writes CSV with a header."),
    ("The login check still fails on Windows", "The login check passes on Linux."),
    ("glaze 0017 waits for the role kiln_writer: it belongs to team ops", "kiln_writer got a comment."),
    ("kiln_jobs still depends on the old table", "kiln_jobs depends on Postgres."),
    ("The glaze check is still red on main", "The glaze check runs on main and on tags."),
    ("No failover has ever been rehearsed", "The failover script is fixed."),
    ("No failover has ever been rehearsed", "The first release of glaze went through."),
    ("No failover has ever been rehearsed", "The first failover of glaze failed."),
    ("The alarm for the kiln door is missing", "Added a test for the alarm of the kiln door."),
    ("The alarm for the kiln door is missing", "Added an alarm for the kiln lid."),
    ("The alarm is missing", "Added an alarm test."),
    ("kiln_writer lacks select on glaze.depths", "kiln_reader has select on glaze.depths."),
    ("kiln_writer lacks select on glaze.depths", "kiln_writer no longer has select on glaze.depths."),
    ("glaze.depths is not yet partitioned", "glaze.rows is partitioned by month."),
    ("The build of glaze fails on Windows", "The build of glaze no longer works on Windows."),
    ("Waiting for the legal check of the glaze export", "Went through the legal notes of the glaze export."),
]  # fmt: skip
OF_A_DAY = [
    "The photos are on heron alone until the two copies begun today are through",
    "Ops will send the certificate this afternoon",
    "The test bed is down until tonight",
    "The broker restarts in an hour",
    "Der Zugang kommt erst heute Abend",
    "El servidor está caído hasta esta noche",
    "Доступ будет только к вечеру, до конца дня сегодня",
    "今晚才能拿到密钥",
]
OF_NO_DAY = [
    "The broker is down since today",
    "The key was revoked today and ops has no other",
    "The restore cannot be done in an hour",
    "The test bed is down until Friday",
    "Der Zugang fehlt seit heute",
]
STILL_BLOCKED = [
    ("Waits for the staging key from the harbour team", "Still waiting for the staging key from the harbour team."),
    ("Waits for the staging key from the harbour team", "The harbour lamp is fixed."),
    ("Waits for the staging key from the harbour team", "Wrote the staging deploy; the key of the map was fixed."),
    ("Waits for the staging key from the harbour team", "The staging key has not arrived."),
    ("Waits for the staging key from the harbour team", "When the staging key arrived, alerts will be sent."),
    ("Waits for the review of #118", "#118 is still open; #119 was merged."),
    ("Integration tests need the new pier cluster", "Fixed the integration tests of the importer."),
    ("Flaky login tests", "Fixed a typo in the login tests page."),
    ("Waiting for Jo's review of the billing schema.", "Jo's review of the login schema is merged."),
    ("Waiting for the Stripe API key from Ops.", "The OpenAI API key from Ops arrived."),
    ("Waiting for the Stripe API key from Ops.", "The key from Ops arrived."),
    ("The staging database is down.", "The staging database was created."),
    ("The release is blocked by a failing Windows build.", "The Linux build of the release passes."),
    ("Need legal approval for the export of customer data.", "Design approval for the export page arrived."),
    ("The harbour office has not sent the tide tables yet.", "Rendered tide tables as SVG for the web page."),
]  # fmt: skip
STEPS = [
    ("Let the lamp go on after a power cut.", "Done: let the lamp go on after a power cut."),
    ("Move the schedules into the database", "Moved the schedules into the database with a migration."),
    ("run migration 42 on staging before the deploy", "Ran migration 42 on staging."),
    ("Deploy the unit file on the pier host, I can't reach it", "The unit file is deployed on the pier host."),
    ("delete the old tide files after 14 days", "Removed the old tide files; 14 days had passed."),
    ("Add a test for the fog horn", "Wrote a test for the fog horn."),
    ("Die Gezeitentabellen nachrechnen", "Gezeitentabellen nachrechnen ist erledigt."),
    ("观察三天的重复数", "已完成观察三天的重复数。"),
]  # fmt: skip
STILL_OPEN = [
    ("Fix the flaky login test.", "The flaky checkout test is fixed."),
    ("Write tests for the refund path.", "Tests for the refund mail were written."),
    ("Add retries to the mail sender.", "Retries were added to the webhook sender."),
    ("Document the export command.", "The import command is documented."),
    ("Document the fog horn table", "Added the fog horn table."),
    ("Add a test for the fog horn", "Added a test for the lamp."),
    ("Move the schedules into the database", "Did not move the schedules into the database."),
    ("Move the schedules into the database", "pier: the lamp is lit; open: moved the schedules into the database."),
    ("Move the schedules into the database", "The schedules will be moved into the database tomorrow."),
    ("Lamp", "Lamp done."),
    ("Once #12 is merged, measure the fog", "#12 was merged."),
]


@pytest.mark.parametrize(("text", "sentence"), BLOCKERS)
def test_a_blocker_is_resolved(text: str, sentence: str) -> None:
    assert ended("blocker", text, sentence)
    assert ended("blocker", text, body=f"# Pier\n\n## Outcome\n\n- {sentence}\n")


@pytest.mark.parametrize(("text", "sentence"), STILL_BLOCKED)
def test_a_blocker_stays(text: str, sentence: str) -> None:
    assert not ended("blocker", text, sentence)


@pytest.mark.parametrize(("text", "sentence"), OTHERWISE)
def test_a_blocker_ends_when_the_same_thing_is_otherwise(text: str, sentence: str) -> None:
    assert ended("blocker", text, sentence)


@pytest.mark.parametrize(("text", "sentence"), STILL_SO)
def test_what_is_still_so_stays_a_blocker(text: str, sentence: str) -> None:
    assert not ended("blocker", text, sentence)


@pytest.mark.parametrize(("text", "is_of_a_day"), [*((t, True) for t in OF_A_DAY), *((t, False) for t in OF_NO_DAY)])
def test_a_blocker_may_say_that_it_lasts_no_longer_than_its_day(text: str, is_of_a_day: bool) -> None:
    words = open_words("blocker", text)
    assert words is not None and words.is_of_a_day is is_of_a_day


@pytest.mark.parametrize(("text", "sentence"), STEPS)
def test_a_step_is_done(text: str, sentence: str) -> None:
    assert ended("next", text, sentence)
    assert ended("next", text, body=f"# Pier\n\n{sentence}\n")


@pytest.mark.parametrize(("text", "sentence"), STILL_OPEN)
def test_a_step_stays(text: str, sentence: str) -> None:
    assert not ended("next", text, sentence)


def test_what_is_ticked_is_done_in_other_words() -> None:
    assert ended(
        "next", "Move the schedules into the database, too", body="## Next\n- [x] schedules into the database\n"
    )
    assert ended("blocker", "The key of the pier is missing", body="## Blockers\n- [x] pier key\n")
    assert not ended(
        "next", "Move the schedules into the database", body="## Next\n- [ ] schedules into the database\n"
    )


def test_a_transcript_and_what_is_open_report_nothing() -> None:
    assert distil("Moved the schedules into the database.", project="/code/pier").reports == ()
    body = (
        "# T\n\n## Next steps\n\n- Moved the schedules into the database\n\n## Plan\n\nMoved the lamps to the pier.\n"
    )
    assert distil(body, project="/code/pier", sentence="").reports == ()


@given(st.text(max_size=300), st.text(max_size=300), st.sampled_from(["blocker", "next"]))
def test_any_text(text: str, sentence: str, aspect: str) -> None:
    found = reports(f"# T\n\n{text}\n", sentence, ())
    assert found == reports(f"# T\n\n{text}\n", sentence, ()) and len(found) <= REPORTS_PER_ARTIFACT
    assert all(0 < len(one.words) <= 2 * WORDS_PER_REPORT for one in found)
    words = open_words(aspect, text)
    assert words is None or [ends(words, one) for one in found] == [ends(words, one) for one in found]
