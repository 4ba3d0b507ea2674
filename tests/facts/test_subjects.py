"""What statements claim: of which subject, and what of it replaces what."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signet_sync.facts.items import claims_of
from signet_sync.facts.subjects import CLAIMS, REPLACED_BY, claims


def replaces(later: str, earlier: str, aspects: tuple[str, str] = ("decision", "decision")) -> bool:
    """Whether a later statement replaces an earlier one."""
    new = {claim.subject for claim in claims_of(aspects[1], later)}
    old = {claim.subject for claim in claims_of(aspects[0], earlier)}
    return any(f"{REPLACED_BY[subject[0]]}{subject[1:]}" in new for subject in old)


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("Lamp limit is 5", "The lamp limit is now 7"),
        ("The lamp limit is now 7", "Lamp limit: 9"),
        ("Lamp limit: 9", "The limit of lamps was raised from 9 to 12."),
        ("The lamp limit of the pier is 5", "Lower the pier's lamp limit to 3"),
        ("use tallow for beacon lights", "we no longer use tallow; paraffin instead"),
        ("use tallow for beacon lights", "Instead of tallow now paraffin"),
        ("use tallow for beacon lights", "Use paraffin instead of tallow"),
        ("use tallow for beacon lights", "From now on use paraffin for beacon lights."),
        ("We use Tallow", "Tallow is no longer used"),
        ("Take Tallow 3 for the pier", "Switched from Tallow to Paraffin"),
        ("Fuel: tallow", "Moved from tallow to paraffin"),
        ("Fuel: tallow", "The fuel is Paraffin"),
        ("The fuel is Tallow", "Replaced Tallow with Paraffin"),
        ("The fuel is Tallow", "Tallow was replaced by Paraffin"),
        ("We went with tallow-9", "tallow-9 is dropped"),
        ("We went with tallow-9", "Drop tallow-9 in favour of paraffin"),
        ("We went with tallow-9", "paraffin-2 replaces tallow-9"),
        ("light the lamp at dusk", "We no longer light"),
        ("use polling for the tide gauge", "Drop polling and go to webhooks"),
        ("Signal colour checks are enabled", "Signal colour checks are now off"),
        ("The keeper day is Monday", "The keeper day is Friday"),
        ("we no longer use tallow", "use tallow again"),
        ("Never use tallow", "Use tallow from now on"),
        ("Keep the fog interval at 30 s", "Bump the fog interval to 45 s"),
        ("Logs are kept for 30 days", "Logs are kept for 90 days now"),
        ("Rate limit of 100 lamps per hour", "Rate limit of 300 lamps per hour"),
        ("We sail on Fridays", "We no longer sail on Fridays"),
        ("Use tallow for beacon lights", "Beacon lights moved from tallow to paraffin"),
        ("Default lamp colour is red", "Default lamp colour is now white"),
        ("tallow for the beacon", "paraffin replaces tallow"),
        ("Horn length is 5 s", "Horn length 9 s instead of 5 s"),
        ("Wir verwenden Tran", "Wir verwenden Tran nicht mehr, sondern Petroleum"),
        ("use tallow", "Statt tallow jetzt Petroleum"),
        ("Das Nebellimit ist 5", "Das Nebellimit wurde von 5 auf 7 erhöht"),
        ("Brennstoff: Tran", "Tran wird durch Petroleum ersetzt"),
        ("Combustible: sebo", "Ya no usamos sebo, ahora parafina"),
        ("use sebo", "En lugar de sebo ahora parafina"),
        ("use sebo", "Reemplazamos sebo por parafina"),
        ("use tallow", "Больше не используем tallow, теперь Paraffin"),
        ("use tallow", "Вместо tallow теперь Paraffin"),
        ("灯塔上限是 5", "灯塔上限从 5 改为 7"),
        ("use tallow", "不再使用 tallow,改用 paraffin"),
        ("use tallow", "tallowの代わりにparaffinを使う"),
        ("霧笛の間隔は30", "霧笛の間隔を45に変更"),
    ],
)  # fmt: skip
def test_another_value_replaces(earlier: str, later: str) -> None:
    assert replaces(later, earlier)
    assert replaces(later, earlier, ("constraint", "decision")) and replaces(later, earlier, ("decision", "preference"))


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("The lamp limit of the pier is 5", "The lamp limit of the mole is 7"),
        ("In winter the lamp limit is 5", "In summer the lamp limit is 7"),
        ("The timeout is 5 s for the pier", "The timeout is 7 s for the mole"),
        ("The timeout is at most 30 s", "The timeout is at least 5 s"),
        ("The port is 8080", "The port is 5432"),
        ("use gofmt for Go files", "use tabs for Go files"),
        ("use tallow for beacon lights", "we no longer use tallow for stoves"),
        ("use tallow for beacon lights", "use paraffin for stoves now"),
        ("use tallow for beacon lights", "maybe use paraffin instead of tallow"),
        ("use tallow for beacon lights", "If the price rises, drop tallow"),
        ("use tallow for beacon lights", "Should we drop tallow?"),
        ("use tallow for beacon lights", "Drop tallow once the paraffin has come"),
        ("The lamp is slow", "The lamp is fast"),
        ("The queue is bounded", "The queue is durable"),
        ("The result is 5", "The result is 7"),
        ("It is 5", "It is 7"),
        ("Tallow lamps are never refilled by hand", "Move the oil from tallow to paraffin cans"),
        ("Never write to the old header", "Drop the old index"),
        ("Checks are enabled", "Checks are optional"),
        ("The lamp was 5", "The lamp will be 7 if it rains"),
        ("Ask before the lamp is lit", "Ask after the lamp is out"),
        ("use 7 instead of 5", "use 5 instead of 9"),
        ("Note: lit", "Note: unlit"),
        ("Logs are kept for 30 days", "Backups are kept for 90 days"),
        ("Step 1 lights the lamp", "Step 2 lights the lamp"),
        ("Run migration 41 on staging", "Run migration 42 on staging"),
        ("See #12 for the lamp", "See #13 for the lamp"),
        ("At most 5 lamps an hour", "At least 3 lamps an hour"),
        ("Replace the lamp with the new one", "Use the lamp on the pier"),
        ("The lamp is public", "The lamp is now lit"),
        ("We chose A and B", "We chose C and D"),
    ],
)  # fmt: skip
def test_what_is_about_something_else_stays(earlier: str, later: str) -> None:
    assert not replaces(later, earlier)
    assert not replaces(earlier, later)


def test_a_note_or_person_is_replaced_by_its_name_only() -> None:
    assert not claims_of("note", "The lamp limit is 5") and not claims_of("blocker", "Lamp limit: 5")
    assert replaces("Lamp: out", "Lamp: lit", ("note", "note"))
    assert not replaces("Lamp: out", "Lamp: lit", ("note", "decision"))
    assert replaces("Ada: keeper", "Ada: owner", ("person", "person"))


def test_what_says_that_it_is_a_change_is_marked() -> None:
    assert not any(claim.changed for claim in claims("The lamp limit is 5"))
    assert next(claim.changed for claim in claims("The lamp limit is now 7") if claim.subject.startswith("="))


WORDS = st.sampled_from(
    "the lamp limit is now 5 7 from to of instead use no longer tallow we and , . ; : are switched not 改为 は 从 "
    "statt von auf вместо на по de a raise drop dropped if A B-2 for in with by replaced".split()
)


@given(st.one_of(st.text(max_size=400), st.lists(WORDS, max_size=40).map(" ".join)))
def test_any_text(text: str) -> None:
    found = claims(text)
    assert found == claims(text) and len(found) <= CLAIMS
    assert len({claim.subject for claim in found}) == len(found)
    for claim in found:
        assert claim.subject[0] in REPLACED_BY and len(claim.subject) > 1


@given(st.permutations(["lamp", "limit", "pier"]), st.integers(0, 99), st.integers(0, 99))
def test_the_order_of_a_subject_s_words_is_no_matter(words: list[str], one: int, other: int) -> None:
    assert replaces(f"The {' '.join(words)} is now {other}", f"lamp limit of the pier is {one}")


@pytest.mark.parametrize(
    "text",
    [
        "is " * 90_000,
        "from a to " * 30_000,
        "use " + "a " * 100_000,
        "no longer " * 30_000,
        "。" * 200_000,
        "a," * 99_999,
    ],
)
def test_a_hostile_text_is_read_soon(text: str) -> None:
    started = time.process_time()
    claims(text)
    assert time.process_time() - started < 0.2
