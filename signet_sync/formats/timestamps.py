"""Converts instants: ISO 8601 when read, microseconds since 1970 UTC inside, milliseconds and `Z` when written.

Weeks are those of ISO 8601, and quarters are made of them, in UTC.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta

from signet_sync.formats.lazy_pattern import late

SECOND = 1_000_000
MINUTE = 60 * SECOND
DAY = 86_400 * SECOND
LAST_US = 253_402_300_799_999_999  # the end of the year 9999, beyond which no time can be written

_ISO = late(
    r"(\d{4})-(\d\d)-(\d\d)(?:[Tt]|[ \u00a0]+)(\d\d):(\d\d)(?::(\d\d)(?:[.,](\d+))?)?"
    r"[ \u00a0]*(?:([Zz])|([+-])(\d\d)(?::?(\d\d))?)?",
    re.ASCII,
)
_OFFSET = late(r"[+-]\d\d(?:-?\d\d)?", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MONTHS = "JanFebMarAprMayJunJulAugSepOctNovDec"
_RECENT = 300 * DAY


def parse_instant(text: str) -> int | None:
    """Returns microseconds since 1970 UTC, or None if the text is no timestamp.

    Between date and time `T`, `t` or blanks; seconds optional, any fraction (cut at microseconds), any offset, no
    offset means UTC.
    """
    match = _ISO.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second, fraction, _, sign, off_h, off_m = match.groups()
    try:
        start = (date(int(year), int(month), int(day)).toordinal() - 719_163) * 86_400
    except ValueError:
        return None
    h, m, s = int(hour), int(minute), int(second or 0)
    if h > 23 or m > 59 or s > 59:
        return None
    seconds = start + h * 3600 + m * 60 + s
    if sign:
        oh, om = int(off_h), int(off_m or 0)
        if oh > 23 or om > 59:
            return None
        seconds += (-1 if sign == "+" else 1) * (oh * 3600 + om * 60)
    return seconds * SECOND + (int((fraction + "00000")[:6]) if fraction else 0)


_AGO = late(r"(\d{1,5}) ?(?:(d|days?)|w|weeks?)(?: ago)?", re.ASCII)


def parse_moment(text: str, now_us: int = 0, *, ends: bool = False) -> int | None:
    """Parses what a person gives: an instant, a day of theirs, `10d`, `3w`, `4 weeks ago` as so long before now.

    A day alone is its beginning where this machine is; with `ends` its last microsecond, so that it is part of what
    ends with it.
    """
    if ago := _AGO.fullmatch(text.strip()):
        return now_us - int(ago[1]) * (DAY if ago[2] else 7 * DAY)
    instant = parse_instant(text)
    if instant is not None or (midnight := parse_instant(f"{text}T00:00:00Z")) is None:
        return instant
    begins = instant_of(_localize(moment_of(midnight + DAY if ends else midnight).replace(tzinfo=None)))
    return begins - 1 if ends else begins


def local(at: int) -> datetime:
    """Returns an instant as a clock of this machine shows it."""
    return _localize(moment_of(at))


def _localize(moment: datetime) -> datetime:
    """Returns a moment in the zone of this machine; one without zone is of this machine's clock."""
    try:
        return moment.astimezone()
    except (OverflowError, ValueError):  # at the ends of the calendar
        return moment.replace(tzinfo=UTC)


def local_day(at: int | str) -> str:
    """Returns the day of an instant, or of its text, for a person who reads it here: `YYYY-MM-DD`."""
    return local_minute(at)[:10]


def local_minute(at: int | str) -> str:
    """Returns day and time of an instant, or of its text, for a person who reads it here: `YYYY-MM-DD HH:MM`."""
    instant = parse_instant(at) if isinstance(at, str) else at
    return local(instant).isoformat(" ", "minutes")[:16] if instant is not None else str(at)[:16]


def parse_name_stamp(stamp: str) -> set[int]:
    """Returns the instants that a file name's stamp (`:` written as `-`) may mean; empty if it means none.

    `T22-34-05-30` is 22:34 at -05:30; `T22-34-05` may be 22:34:05 or 22:34 at -05: every reading counts.
    """
    day, _, time = stamp.partition("T")
    readings = [f"{day}T{time.replace('-', ':')}"]
    for length in (3, 5, 6):
        head, zone = time[:-length], time[-length:]
        if _OFFSET.fullmatch(zone):
            readings.append(f"{day}T{head.replace('-', ':')}{zone[:3]}{zone[3:].replace('-', ':')}")
    return {instant for reading in readings if (instant := parse_instant(reading)) is not None}


def iso(instant: int) -> str:
    """Returns `YYYY-MM-DDTHH:MM:SS.mmmZ` in UTC, milliseconds cut, never rounded."""
    day, rest = moment_of(instant).date().isoformat(), instant % DAY
    seconds, micros = divmod(rest, SECOND)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    return f"{day}T{hour:02d}:{minute:02d}:{second:02d}.{micros // 1000:03d}Z"


def moment_of(instant: int) -> datetime:
    """Returns an aware datetime; instants outside the years 1 to 9999 are clamped."""
    try:
        return _EPOCH + timedelta(microseconds=instant)
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC) if instant > 0 else datetime.min.replace(tzinfo=UTC)


def day_of(instant: int) -> str:
    """Returns the UTC day, `YYYY-MM-DD`."""
    return iso(instant)[:10]


def short_day(instant: int, today_us: int) -> str:
    """Returns the UTC day in words: `Mar 28`, `Mar 2025` if it is ten months past, and in full if it is to come."""
    if instant >= today_us + DAY:
        return day_of(instant)
    moment = moment_of(instant)
    name = _MONTHS[3 * moment.month - 3 : 3 * moment.month]
    return f"{name} {moment.day}" if today_us - instant < _RECENT else f"{name} {moment.year:04d}"


def instant_of(moment: datetime) -> int:
    """Returns microseconds since 1970 UTC of an aware datetime."""
    return (moment - _EPOCH) // timedelta(microseconds=1)


WEEK = 7 * DAY


def week_of(us: int) -> str:
    """Returns the ISO week of an instant in microseconds since 1970 UTC: `2026-W13`; years are those from 1 to 9999."""
    year, week, _ = moment_of(us).isocalendar()
    return f"{year:04d}-W{week:02d}"


def week_span(week: str) -> tuple[int, int]:
    """Returns the first and the last microsecond of an ISO week."""
    first = _start(monday(week))
    return first, first + WEEK - 1


def quarter_of(week: str) -> str:
    """Returns the calendar quarter of a week's Monday: `2026-Q1`."""
    day = monday(week)
    return f"{day.year:04d}-Q{(day.month + 2) // 3}"


def quarter_span(quarter: str) -> tuple[int, int]:
    """Returns the first and the last microsecond of the weeks whose Monday is in the quarter."""
    year, _, number = quarter.partition("-Q")
    begin = date(int(year), 3 * int(number) - 2, 1)
    first = begin + timedelta(days=-begin.weekday() % 7)
    last = date(int(year), 3 * int(number), 31 if number in "14" else 30)
    weeks = (last - first).days // 7 + 1
    return _start(first), _start(first) + weeks * WEEK - 1


def monday(week: str) -> date:
    """Returns the first day of an ISO week."""
    year, _, number = week.partition("-W")
    return date.fromisocalendar(int(year), int(number), 1)


def _start(day: date) -> int:
    return instant_of(datetime(day.year, day.month, day.day, tzinfo=UTC))
