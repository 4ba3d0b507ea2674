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
