"""The sentence made by rules: true of its session, fit for the ledger, whatever the transcript holds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signet_sync.text.digest.headline import headline
from signet_sync.text.digest.session import outcome
from signet_sync.text.sentences import SentenceSubject, passes_signet, passes_strict

DAY = "2026-03-28"
STAMP = f"{DAY}T22:34:06.792Z"
EDIT = "- `Edit` /home/u/lantern/src/wick.py\n\n"


def user(text: str) -> str:
    return f"## User · {STAMP}\n\n{text}\n\n"


def assistant(text: str) -> str:
    return f"## Assistant · {STAMP}\n\n{text}\n\n"


def told(transcript: str, *, project: str | None = "/home/u/lantern", summary: str | None = None) -> str | None:
    contexts = [
        SentenceSubject(body, project, kind, None, DAY, "h7k3n4p9m2x2q7r5")
        for kind, body in (("transcript", transcript), ("summary", summary or ""))
    ]
    said = headline(outcome(transcript), contexts)
    assert said is None or passes_strict(said, *contexts)
    assert said is None or all(passes_signet(said, context.body, context.project) for context in contexts)
    return said


TASK = user("Please trim the wick of the north lamp. It smokes.")


@pytest.mark.parametrize("name", ["A", "gone"])
def test_a_project_named_like_a_common_word_is_named_at_the_end(name: str) -> None:
    done = TASK + assistant(
        EDIT + "I trimmed the wick number 6 to 4 mm in src/wick.py and ran the 12 checks; all pass."
    )
    said = told(done, project=f"/home/u/{name}")
    assert said is not None and said.endswith(f" all pass (project {name}).") and ".md: " not in said


@pytest.mark.parametrize("project", [None, "/home/u/x"])
def test_the_name_of_a_file_is_no_title(project: str | None) -> None:
    answered = assistant("Postgres is enough here: the load is 40 jobs a minute, and one table does it alone.")
    said = told(user("We need to pick a queue. Redis or Postgres?") + answered, project=project)
    assert said is not None and said.startswith("Asked: We need to pick a queue")
    assert said.endswith(f" (session of {DAY}, transcript.md).")


@pytest.mark.parametrize(
    ("transcript", "expected"), [
        (TASK + assistant(EDIT
         + "The wick is trimmed to 4 mm and the north lamp burns without smoke, 12 checks pass."),
         "lantern: The wick is trimmed to 4 mm and the north lamp burns without smoke, 12 checks pass."),
        (TASK + assistant(EDIT + "The wick is trimmed now.\n\n- [x] wick\n- [ ] the mirror of the lamp"),
         "lantern: The wick is trimmed now; open: the mirror of the lamp."),
        (TASK + assistant(EDIT
         + "The wick is trimmed to 4 mm now.\n\n**Blocked on**: the oil that the harbour has to send"),
         "lantern: The wick is trimmed to 4 mm now; blocked: the oil that the harbour has to send."),
        (TASK + assistant("I take the lamp down first.\n\n" + EDIT + "The north lamp lies on the pier.")
         + user("stop. the ship comes in two hours early"),
         "lantern: Please trim the wick of the north lamp: stopped midway (the ship comes in two hours early);"
         " last state: The north lamp lies on the pier."),
        (user("what is the difference between tallow and rape oil?")
         + assistant("Rape oil smells less and burns 9 hours, tallow is cheaper."),
         "lantern: asked: what is the difference between tallow and rape oil;"
         " learned: Rape oil smells less and burns 9 hours, tallow is cheaper."),
        (TASK + assistant("I'll look at the lamp first.\n\n" + EDIT + "- `Edit` /home/u/lantern/src/oil.py\n"
         "- `Bash` pytest -q\n  ```\n  37 passed in 2.1s\n  ```\n"),
         "lantern: edited wick.py and oil.py; 37 passed (asked: Please trim the wick of the north lamp)."),
        (TASK + assistant('- `Bash` `git commit -qam "lamp: trim the wick of the north lamp to 4 mm"`\n'),
         "lantern: lamp: trim the wick of the north lamp to 4 mm."),
        (user("ランプが煙を出します。直してください。") + assistant(EDIT
         + "芯を4mmに切りました。ランプは煙を出さなくなりました。"),
         "lantern: 芯を4mmに切りました; ランプは煙を出さなくなりました (依頼: ランプが煙を出します);"
         " ファイル: wick.py; 状態: done; 日付: 2026-03-28, in a session whose transcript stands behind its links."),
    ],
    ids=["done", "open", "blocked", "aborted", "question", "silent", "commit", "japanese"],
)  # fmt: skip
def test_it_says_what_came_out(transcript, expected):
    assert told(transcript) == expected


@pytest.mark.parametrize("text", ["", user("hi there"), user("hi") + assistant("Hello! I can look at the lamp.")])
def test_where_nothing_came_out_there_is_none(text):
    assert told(text) is None


@given(
    st.lists(
        st.one_of(
            st.sampled_from(
                [
                    *(TASK + assistant(EDIT + "It burns. Next: oil.")).split("\n"),
                    "# x",
                    'say "a. B" [[x]] | y',
                    "a.b. C!",
                    "…",
                    "-",
                    "`",
                    "<!-- -->",
                    "*interrupted by the user*",
                    "no wait, use 7",
                    "修正しました。",
                ]
            ),
            st.text(max_size=60),
        ),
        max_size=12,
    ),
    st.one_of(st.none(), st.sampled_from(["/", "/x/a.b", "/x/lantern", "..", "/x/" + "y" * 90]), st.text(max_size=20)),
    st.one_of(st.none(), st.text(max_size=80)),
)
def test_it_passes_the_gate_or_is_none(lines, project, summary):
    told("\n".join(lines), project=project, summary=summary)
