"""Instants: every ISO 8601 form that a person or a program writes, file name stamps, and what is no timestamp."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signet_sync.formats.timestamps import SECOND, day_of, instant_of, iso, moment_of, parse_instant, parse_name_stamp

AT = 1_774_737_246_792_000  # 2026-03-28T22:34:06.792Z
MINUTE = 60 * SECOND


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2026-03-28T22:34:06.792Z", AT), ("2026-03-28t22:34:06.792z", AT), ("2026-03-28 22:34:06.792 Z", AT),
        ("2026-03-28  22:34:06.792", AT), ("2026-03-28\u00a022:34:06,792", AT), ("2026-03-28T22:34:06.792+00:00", AT),
        ("2026-03-28T22:34:06.792-00:00", AT), ("2026-03-29T00:34:06.792+02:00", AT),
        ("2026-03-29T00:34:06.792+0200", AT), ("2026-03-29T00:34:06.792+02", AT),
        ("2026-03-29T04:04:06.792 +05:30", AT), ("2026-03-28T17:04:06.792-05:30", AT),
        ("2026-03-28T22:34:06.7920004Z", AT), ("2026-03-28T22:34:06.792999999Z", AT + 999),
        ("2026-03-28T22:34:06.7Z", AT - 92_000), ("2026-03-28T22:34:06Z", AT - 792_000),
        ("2026-03-28T22:34:06", AT - 792_000), ("2026-03-28T22:34Z", AT - 6_792_000),
        ("2026-03-28 22:34", AT - 6_792_000), ("1970-01-01T00:00:00Z", 0), ("1969-12-31T23:59:59.999999Z", -1),
        ("2024-02-29T00:00:00Z", 1_709_164_800_000_000), ("0001-01-01T00:00:00Z", -62_135_596_800_000_000),
        ("9999-12-31T23:59:59.999999Z", 253_402_300_799_999_999),
    ],
)  # fmt: skip
def test_forms_that_are_read(text, instant):
    assert parse_instant(text) == instant


@pytest.mark.parametrize(
    "text",
    [
        "", "2026-03-28", "2026-03-28T", "2026-03-28T22", "22:34:06", "2026-13-45", "2026-13-01T00:00:00Z",
        "2026-02-30T00:00:00Z", "2025-02-29T00:00:00Z", "0000-01-01T00:00:00Z", "2026-03-28T24:00:00Z",
        "2026-03-28T22:60:00Z", "2026-12-31T23:59:60Z", "2026-03-28T22:34:06.Z", "2026-03-28T22:34:06+24:00",
        "2026-03-28T22:34:06+02:60", "2026-03-28T22:34:06+02:", "2026-03-28T22:34:06+2", "2026-03-28T22:34:06 UTC",
        "2026-03-28T22:34:06Z ", " 2026-03-28T22:34:06Z", "2026-03-28T22:34:06Z\n", "2026-03-28T22-34-06Z",
        "2026-3-28T22:34:06Z", "20260328T223406Z", "2026-W13-6T22:34:06Z", "2026-087T22:34:06Z",
        "+12026-03-28T22:34:06Z", "Sat, 28 Mar 2026 22:34:06 GMT", "1774737246792", "２０２６-03-28T22:34:06Z", "null",
    ],
)  # fmt: skip
def test_dates_alone_leap_seconds_and_other_texts_are_no_timestamps(text):
    assert parse_instant(text) is None


ZONES = st.integers(-23 * 60 - 59, 23 * 60 + 59).map(lambda minutes: timezone(timedelta(minutes=minutes)))
FIRST, LAST = datetime(2, 1, 1), datetime(9998, 12, 31)  # noqa: DTZ001 - bounds that take their zone when drawn
MOMENTS = st.datetimes(min_value=FIRST, max_value=LAST, timezones=ZONES)


@given(MOMENTS)
def test_reading_agrees_with_the_standard_library(moment):
    instant = instant_of(moment)
    for separator in "T ":
        assert parse_instant(moment.isoformat(separator)) == instant
    assert moment_of(instant) == moment
    assert parse_instant(moment.isoformat(timespec="minutes")) == instant - instant % MINUTE


@given(MOMENTS)
def test_writing_cuts_to_milliseconds_and_reads_back(moment):
    text = iso(instant_of(moment))
    assert len(text) == 24
    assert parse_instant(text) == instant_of(moment) // 1000 * 1000
    assert text == moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    assert day_of(instant_of(moment)) == text[:10]


def test_instants_beyond_the_calendar_are_clamped_not_refused():
    assert moment_of(10**20).year == 9999
    assert moment_of(-(10**20)).year == 1
    assert iso(10**20).startswith("9999-12-31T")
    assert iso(parse_instant("0001-01-01T00:00:00+23:59")).startswith("0001-01-01T")


@pytest.mark.parametrize(
    ("stamp", "meant"),
    [
        *((f"2026-03-28T22-34-06.792{end}", {AT}) for end in ("Z", "", " Z")), ("2026-03-28T22-34-06,792z", {AT}),
        *((f"2026-03-29T00-34-06.792{end}", {AT}) for end in ("+02-00", "+0200", "+02")),
        *((f"2026-03-28T17-04-06.792{end}", {AT}) for end in ("-05-30", "-0530")),
        ("2026-03-28T17-34-06.792-05", {AT}), ("2026-03-28T22-34Z", {AT - 6_792_000}),
        ("2026-03-28T22-34-05-30", {parse_instant("2026-03-28T22:34-05:30")}),
        ("2026-03-28T22-34-05", {parse_instant("2026-03-28T22:34:05Z"), parse_instant("2026-03-28T22:34-05:00")}),
        *((end, set()) for end in ("2026-03-28TANYTHING", "2026-03-28T", "2026-99-99T22-34-06Z", "")),
    ],
)  # fmt: skip
def test_stamps_of_file_names(stamp, meant):
    assert parse_name_stamp(stamp) == meant
