"""Which part of time somebody asks for, and the way from there to what lies before, behind and above it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from signet_sync.errors import UsageError
from signet_sync.formats.calendar import quarter_of, week_of
from signet_sync.graph.store.timeline import Extent
from signet_sync.web.charts import axis as charts_axis
from signet_sync.web.charts.axis import Axis
from signet_sync.web.request import Ask


class Period(NamedTuple):
    """What is asked for: a quarter or week (`at`), quarters up to one (`until`); neither: all the time there is."""

    at: str
    until: str

    @classmethod
    def of(cls, ask: Ask) -> Period:
        """As the query says."""
        return cls(ask.query.get("at", "").strip(), ask.query.get("until", "").strip())

    def axis(self, extent: Extent, now_us: int) -> Axis:
        """Its line of time. Raises `UsageError` where it is no quarter and no week."""
        if self.at:
            found = charts_axis.within(self.at)
        elif self.until:
            found = charts_axis.until(self.until, extent.earliest_us)
        else:
            found = charts_axis.whole(extent.earliest_us, extent.latest_us, now_us)
        if found is None:
            raise UsageError(
                f"{(self.at or self.until)[:40]!r} is no quarter and no week",
                hint="quarters are written 2026-Q1, weeks 2026-W13",
                code="unknown-period",
            )
        return found


class Ways(NamedTuple):
    """Ways to other times: queries for what lies before and behind (None: nothing does), periods from above to here."""

    before: Mapping[str, str] | None = None
    after: Mapping[str, str] | None = None
    crumbs: tuple[tuple[str, str], ...] = ()


def ways(period: Period, axis: Axis, extent: Extent) -> Ways:
    """The ways from a line of time."""
    name, before, after = "until", None, None
    if period.at:
        name, (before, after) = "at", charts_axis.beside(period.at)
    elif axis.level == "quarters":
        before, after = quarter_of(week_of(axis.first_us - 1)), _later(axis, extent)
    above = charts_axis.above(period.at) if period.at else None
    return Ways(
        {name: before} if before and extent.earliest_us < axis.first_us else None,
        {name: after} if after and extent.latest_us > axis.last_us else None,
        tuple((one, charts_axis.titled(one)) for one in (above, period.at) if one),
    )


def _later(axis: Axis, extent: Extent) -> str:
    """The quarter up to which the next picture of quarters goes: as many on, at most to the last that has anything."""
    last = quarter_of(week_of(extent.latest_us))
    later = axis.cells[-1].key
    for _ in range(charts_axis.MOST_QUARTERS):
        later = charts_axis.beside(later)[1]
        if later >= last:
            return last
    return later
