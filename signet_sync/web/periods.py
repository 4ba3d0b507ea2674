"""Parses the period that a request names, and links to the periods before, after and above it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from signet_sync.errors import UsageError
from signet_sync.formats.calendar import quarter_of, week_of
from signet_sync.graph.store.timeline import Extent
from signet_sync.web.charts import axis as charts_axis
from signet_sync.web.charts.axis import Axis
from signet_sync.web.request import ViewRequest


class Period(NamedTuple):
    """The requested period: a quarter or week (`at`), quarters up to one (`until`); neither: all time."""

    at: str
    until: str

    @classmethod
    def of(cls, request: ViewRequest) -> Period:
        """Reads it from the query."""
        return cls(request.query.get("at", "").strip(), request.query.get("until", "").strip())

    def axis(self, extent: Extent, now_us: int) -> Axis:
        """Returns its time axis. Raises `UsageError` if it is neither a quarter nor a week."""
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
    """Links to other periods: queries for the one before and after (None: nothing there), and periods above."""

    before: Mapping[str, str] | None = None
    after: Mapping[str, str] | None = None
    crumbs: tuple[tuple[str, str], ...] = ()


def ways(period: Period, axis: Axis, extent: Extent) -> Ways:
    """Returns the links from a time axis."""
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
    """Returns the last quarter of the next picture: as many quarters on, at most the last with sessions."""
    last = quarter_of(week_of(extent.latest_us))
    later = axis.cells[-1].key
    for _ in range(charts_axis.MOST_QUARTERS):
        later = charts_axis.beside(later)[1]
        if later >= last:
            return last
    return later
