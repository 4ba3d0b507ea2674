"""Digests the segments of a session together: its newest sentence includes the results of earlier ones."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from signet_sync.digest.outcome import Outcome, outcome
from signet_sync.digest.record import Record
from signet_sync.digest.sentence import SENTENCE_LENGTH, SENTENCE_LENGTH_CJK, headline
from signet_sync.digest.sentences import IS_CJK, stems
from signet_sync.digest.summary import summary
from signet_sync.formats.timestamps import day_of
from signet_sync.text.digest_mark import Status, says_nothing
from signet_sync.text.sentences import SentenceSubject

SEGMENTS = 12  # the newest ones that a session's sentence is made from


def join_outcomes(earlier: Sequence[Outcome], latest: Outcome) -> Outcome:
    """Returns the latest outcome with the best passages of earlier ones, newest first, as far as a sentence has room.

    `earlier` are oldest first. If the latest segment has no results, the one before it is used.
    """
    with_results = [one for one in (*reversed(earlier), latest) if one.results]
    if not with_results:
        return latest
    lead = latest if latest.results else with_results[0]
    parts = list(lead.results)
    room = SENTENCE_LENGTH_CJK if IS_CJK.search(parts[0]) else SENTENCE_LENGTH
    known = frozenset().union(*map(stems, parts))
    for one in reversed(earlier):
        part = one.results[0] if one.results and one is not lead else ""
        if part and sum(map(len, parts)) + len(part) + 2 * len(parts) <= room and len(stems(part) - known) >= 2:
            parts.append(part)
            known |= stems(part)
    return latest._replace(
        results=tuple(parts), request=latest.request or next((one.request for one in earlier if one.request), "")
    )


# ── sessions whose files have only a fallback ──


class TranscriptRow(Protocol):
    """The fields of a transcript's row that are used; `content` is sanitized."""

    @property
    def content(self) -> str: ...
    @property
    def project(self) -> str | None: ...
    @property
    def harness(self) -> str | None: ...
    @property
    def session_token(self) -> str: ...
    @property
    def membership_us(self) -> int: ...


class DerivedDigest(NamedTuple):
    """What today's rules derive from a session's transcripts, oldest first.

    `sentence` is None without any result; `status` is that of the newest one, which `has_results` or not. With
    `says_nothing` the session was only a greeting. `outcomes` are those of the newest `SEGMENTS` transcripts.
    """

    sentence: str | None
    status: Status | None
    says_nothing: bool
    has_results: bool
    outcomes: tuple[Outcome, ...]


def derive_digest(transcripts: Sequence[TranscriptRow], records: Sequence[Record] = ()) -> DerivedDigest:
    """Derives a session from its transcripts, oldest first, at least one; `records` are those of the newest ones."""
    newest = transcripts[-1]
    day = day_of(newest.membership_us)
    context = SentenceSubject(newest.content, newest.project, "transcript", newest.harness, day, newest.session_token)
    outcomes = [outcome(one) for one in records or [Record(row.content) for row in transcripts[-SEGMENTS:]]]
    return DerivedDigest(
        headline(join_outcomes(outcomes[:-1], outcomes[-1]), [context]),
        outcomes[-1].status,
        all(says_nothing(summary(one, project=None, harness=None)) for one in outcomes),
        bool(outcomes[-1].results),
        tuple(outcomes),
    )
