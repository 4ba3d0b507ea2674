"""One sentence about a session that nobody wrote one for: what was asked, and what was done about it."""

from __future__ import annotations

from collections.abc import Sequence

from signet_sync.contracts.sentences import (
    MIN_WORDS,
    SessionContext,
    flatten,
    lead_of,
    passes_signet,
    passes_strict,
    usable_name,
    words,
)
from signet_sync.digest.findings import Found

FILES = 3


def headline(found: Found, contexts: Sequence[SessionContext], *, title: str | None = None) -> str | None:
    """A true sentence that passes the strict gate in every context, or None where there is too little to tell.

    `title` is the heading of a summary that somebody wrote; without one the first telling request leads. Every word
    but the counts stands in the session.
    """
    lead = lead_of(title or "") or _request(found)
    if not lead:
        return None
    told = f'was about "{lead}"' if title else f'was asked "{lead}"'
    first = contexts[0]
    for place in (usable_name(first.project), f"{first.token}--{first.kind}.md"):
        said = ", ".join([f"{f'In {place} the' if place else 'The'} session of {first.day} {told}", *_done(found)])
        if words(said) < MIN_WORDS:
            said += ", and all that was said stands behind its links"
        said += "."
        if not all(passes_strict(said, context) for context in contexts):
            return None
        # Signet shows one of its own in place of one that names no anchor of its kind; a file's name is one to both.
        if all(passes_signet(said, context.body, context.project) for context in contexts):
            return said
    return None


def title_of(summary: str) -> str | None:
    """What a summary says it is about: its heading; with its first line where that is a mere word or two."""
    heading = ""
    for line in summary.split("\n", 50)[:50]:
        if line.startswith("#"):
            if heading:
                break  # a section: what it holds is not what the summary is about
            heading = lead_of(line)
        elif lead := lead_of(line):
            return heading if words(heading) > 2 else ": ".join(filter(None, (heading, lead)))
    return heading or None


def _request(found: Found) -> str:
    """The first request of more than two words, else the first."""
    leads = [lead for request in (*found.first, *found.last) for line in request.split("\n") if (lead := lead_of(line))]
    return next((lead for lead in leads if len(lead.split()) > 2 or not lead.isascii()), leads[0] if leads else "")


def _done(found: Found) -> list[str]:
    """What was done: files edited, commands run, errors met, requests in all."""
    done = []
    edited = list(dict.fromkeys(flatten(path.rpartition("/")[2], 40) for path in found.edited))
    edited = [name for name in edited if name and " " not in name]
    if edited:
        others = len(edited) - FILES
        shown = [*edited[:FILES], f"{_count(others, 'other file')}"] if others > 0 else edited
        done.append(
            "edited " + (" and ".join(shown) if len(shown) < 3 else ", ".join(shown[:-1]) + " and " + shown[-1])
        )
    if found.commands:
        failed = sum(found.commands.values())
        done.append("ran " + _count(len(found.commands), "command") + (f", {failed} of them failing" if failed else ""))
    if found.errors:
        done.append("met " + _count(len(found.errors), "error"))
    if found.requests > 1:
        done.append(f"answered {found.requests} requests")
    return done


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
