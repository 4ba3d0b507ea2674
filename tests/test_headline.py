"""The sentence made by rules: true of its session, fit for the ledger, whatever the transcript holds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signet_sync.contracts.sentences import SessionContext, passes_signet, passes_strict
from signet_sync.digest import survey
from signet_sync.digest.headline import headline, title_of

DAY = "2026-03-28"


def told(transcript: str, *, project: str | None = "/home/u/lantern", summary: str | None = None) -> str | None:
    contexts = [
        SessionContext(body, project, kind, None, DAY, "h7k3n4p9m2x2q7r5")
        for kind, body in (("transcript", transcript), ("summary", summary or ""))
    ]
    said = headline(survey(transcript), contexts, title=title_of(summary) if summary else None)
    assert said is None or all(passes_strict(said, context) for context in contexts)
    assert said is None or all(passes_signet(said, context.body, context.project) for context in contexts)
    return said


ASKED = """\
## User · 2026-03-28T22:34:06.792Z

Please trim the wick. It smokes.

## Assistant · 2026-03-28T22:34:10.000Z

- `Edit` /home/u/lantern/src/wick.py
- `Edit` /home/u/lantern/src/oil.py
- `Bash` make light — failed
  ```
  error: no oil
  ```

## User · 2026-03-28T22:40:06.792Z

Then buy rape oil.
"""


def test_it_says_what_was_asked_and_done():
    assert told(ASKED) == (
        'In lantern the session of 2026-03-28 was asked "Please trim the wick", edited wick.py and oil.py,'
        " ran 1 command, 1 of them failing, met 1 error, answered 2 requests."
    )


@pytest.mark.parametrize("name", ['la"n', "`lantern`", "a b c d e", "x" * 61, "[[x]]", "tab\tbed", ".."])
def test_where_a_projects_name_cannot_be_said_signet_finds_another_anchor(name):
    assert told(ASKED, project=f"/home/u/{name}").startswith(
        'In h7k3n4p9m2x2q7r5--transcript.md the session of 2026-03-28 was asked "Please trim the wick"'
    )


def test_without_a_project_signet_looks_for_what_the_text_names_first():
    assert told(f"{ASKED}\nSee issue 12.\n", project=None).startswith("In h7k3n4p9m2x2q7r5--transcript.md the session")


def test_a_summary_of_somebody_leads():
    assert told(ASKED, summary="# Wick trimmed for good\n\nIt burns.").startswith(
        'In lantern the session of 2026-03-28 was about "Wick trimmed for good", edited wick.py'
    )


@pytest.mark.parametrize(
    ("summary", "title"),
    [
        ("# The wick was trimmed\n\nIt burns.", "The wick was trimmed"),
        ("# Wick\n\nIt burns again.", "Wick: It burns again"),
        ("# Wick\n\n## Decisions\n\n- Rape oil.", "Wick"),
        ("It burns again.\n\nMore.", "It burns again"),
        ("", None),
        ("\n\n---\n", None),
    ],
)
def test_the_title_of_a_summary(summary, title):
    assert title_of(summary) == title


def test_without_anything_to_name_there_is_none():
    assert told("", project=None) is None
    assert told("## User · 2026-03-28T22:34:06.792Z\n\nhi there", project=None) is None
    assert told("## User · 2026-03-28T22:34:06.792Z\n\nhi there") == (
        'In lantern the session of 2026-03-28 was asked "hi there", and all that was said stands behind its links.'
    )


@given(
    st.lists(
        st.one_of(
            st.sampled_from([*ASKED.split("\n"), "# x", 'say "a. B" [[x]] | y', "a.b. C!", "…", "-", "`", "<!-- -->"]),
            st.text(max_size=60),
        ),
        max_size=12,
    ),
    st.one_of(st.none(), st.sampled_from(["/", "/x/a.b", "/x/lantern", "..", "/x/" + "y" * 90]), st.text(max_size=20)),
    st.one_of(st.none(), st.text(max_size=80)),
)
def test_it_passes_the_gate_or_is_none(lines, project, summary):
    told("\n".join(lines), project=project, summary=summary)
