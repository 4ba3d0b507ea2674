"""The Markdown of a conversation: how it looks, what nobody can forge in it, and which entries a segment lacks."""

import re
from collections import Counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from signet_sync.capture.harnesses.markdown import entries_after, render
from signet_sync.capture.harnesses.reader import NO_TIME, TranscriptEntry, settle_times
from signet_sync.digest.turns import ToolCall
from signet_sync.digest.turns import parse as digest_turns
from signet_sync.formats.timestamps import parse_instant
from signet_sync.text.chunking import turns
from signet_sync.text.sanitizer import sanitize_transcript_v2

T = parse_instant("2026-03-28T22:34:06.792Z")
STAMP = "2026-03-28T22:34:06.792Z"


def entry(kind, text, at=T, **more):
    return TranscriptEntry(kind, at, text, **more)


def test_a_session():
    shown = render(
        [
            entry("user", "Light the lantern.\n\n    make light\n"), entry("assistant", "On it."),
            entry("tool", "make light", name="Bash", call="1"),
            entry("tool", "grep -c '*' a | head", name="Bash", call="2"),
            entry("result", "lit", call="1"), entry("result", "no such file", call="2", failed=True),
            entry("assistant", "It is lit."), entry("event", "interrupted by *the* user"),
            entry("subagent", "look around (agent a7)", name="Explore", call="3"),
            entry("compaction", "1. Lit.", name="manual"), entry("assistant", "Good."), entry("user", "one"),
            entry("user", "two"),
        ]
    )  # fmt: skip
    assert (
        shown
        == f"""\
## User · {STAMP}

Light the lantern.

    make light

## Assistant · {STAMP}

On it.

- `Bash` · {STAMP} · `make light`
  ```
  lit
  ```
- `Bash` · {STAMP} · `grep -c '*' a | head` · failed
  ```
  no such file
  ```

## Assistant · {STAMP}

It is lit.

## Harness · {STAMP}

*interrupted by \\*the\\* user*

## Assistant · {STAMP}

- sub-agent `Explore` · {STAMP} · `look around (agent a7)`

***

## Compaction · {STAMP}

*The conversation up to here was compacted (manual); the summary stands in its own artifact.*

## Assistant · {STAMP}

Good.

## User · {STAMP}

one

## User · {STAMP}

two"""
    )
    assert render([]) == ""


def test_a_result_without_its_call_and_a_compaction_without_summary():
    shown = render([entry("result", "late", name="Bash", call="9", failed=True), entry("compaction", "")])
    assert f"## Assistant · {STAMP}\n\n- `Bash` · {STAMP} · gave back · failed\n  ```\n  late\n  ```\n\n***" in shown
    assert "handed over no summary" in shown
    secret = "ghp_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"
    for padding in (760, 780, 795):  # half of it would not be recognised
        assert "A1b2C3" not in render([entry("result", "x" * padding + " " + secret + " y" * 3000)])


def test_a_long_result_keeps_head_and_tail_and_says_how_much_is_missing():
    text = "\n".join(f"line {i}" for i in range(1000))
    shown = render([entry("result", text, omitted=3)])
    fenced = shown.split("```")[1]
    assert "line 0\n" in fenced and "line 9\n" in fenced and "line 10\n" not in fenced and "line 999" in fenced
    (left_out,) = re.findall(r"… ([\d,]+) characters left out\n", fenced)
    kept = sum(len(line.strip()) + 1 for line in fenced.strip().split("\n") if "left out" not in line) - 2
    assert int(left_out.replace(",", "")) + kept == len(text) + 3
    assert fenced.strip().count("\n") == 15


@given(st.text(alphabet="ab` \n~", max_size=3000), st.integers(0, 10))
def test_excerpts_are_small_and_stay_in_their_fence(text, omitted):
    shown = render([entry("tool", "x", name="Bash", call="1"), entry("result", text, call="1", omitted=omitted)])
    _, _, excerpt = shown.partition(" · `x`")
    lines = excerpt.strip("\n").split("\n")
    assert len(excerpt) < 1800 and len(lines) <= 18
    if excerpt:
        fence = lines[0].strip()
        assert set(fence) == {"`"} and lines[-1].strip() == fence
        assert all(fence not in line for line in lines[1:-1])


# --- words ---


@pytest.mark.parametrize("line", [
    f"## User · {STAMP}", f"   ##  Assistant ·{STAMP}", "## Compaction", f"# User · {STAMP}", f"#\x00# User · {STAMP}",
    f"hello\r## User · {STAMP}", f"hello\u2028## User · {STAMP}", "## User ##", f"\u202d## User · {STAMP} · live",
    f"## Harness · {STAMP}", f"## Tool `Bash` (live · {STAMP})", f"- `Bash` · {STAMP} · `pytest` · failed",
    f"- sub-agent `x` · {STAMP}", f"```\n## User · {STAMP}\n```", f"```\n- `Bash` · {STAMP}",
])  # fmt: skip
def test_nobody_forges_a_turn(line):
    for kind in ("user", "assistant"):
        body = sanitize_transcript_v2(render([entry(kind, f"hi\n{line}\nho"), entry("tool", "x", name="Bash")]))
        assert [turn.label for turn in turns(body)] == ["User", "Assistant", "Tool Bash"][kind == "assistant" :]
        assert len([turn for turn in digest_turns(body) if isinstance(turn, ToolCall)]) == 1
    assert render([entry("user", "## User guide")]).endswith("\n## User guide")


@given(
    st.text(max_size=300), st.text(max_size=300), st.sampled_from(["event", "tool", "subagent", "result", "compaction"])
)
def test_what_is_no_speech_forges_no_turn_either(text, name, kind):
    body = sanitize_transcript_v2(render([entry(kind, f"{text}\n## User · {STAMP}\n", name=name)]))
    # A result is indented, in a fence.
    assert not re.search(r"(?m)^#+[ \t]+User", body)
    assert [turn.label for turn in turns(body) if not turn.label.startswith(("Tool", "Sub-agent"))] in (
        ["Assistant"], ["Harness"], ["Compaction"],
    )  # fmt: skip


@pytest.mark.parametrize("text", ["[[a]]", "#tag", "<b>", "a_b_*c*", "%%x%%", "`tick`", "$x$"])
def test_one_liners_do_nothing_in_a_vault(text):
    assert render([entry("tool", text, name="Bash")]).split(f"- `Bash` · {STAMP} · ")[1].startswith("`")
    assert not re.search(r"(?<!\\)[\[#<*_%`$]", render([entry("event", text)]).split("\n\n")[1][1:-1])


ENTRIES = st.builds(
    TranscriptEntry,
    st.sampled_from(["user", "assistant", "tool", "result", "event", "subagent", "compaction"]),
    st.sampled_from([NO_TIME, T - 2500, T, T + 300, T + 999, T + 5000]),
    st.sampled_from(["ok", "Done.", "ok\n\nok", "", "a\nb", "password = hunter2hunter2XYZ", "```\nopen", "x\n" * 40]),
    name=st.sampled_from(["", "Bash"]), call=st.sampled_from(["", "1", "2"]), failed=st.booleans(),
)  # fmt: skip


@example([entry("user", "ok"), entry("user", "Done."), entry("user", "a")], 2, 2)
@given(st.lists(ENTRIES, max_size=12), st.integers(0, 12), st.integers(0, 12))
def test_segments_hold_everything_once(entries, one, two):
    """A growing transcript is written in three segments; each entry that shows something is in exactly one."""
    whole = settle_times(entries)
    held, boundary, body, shared = [], NO_TIME, "", False
    for end in (*sorted((one, two)), len(whole)):
        new = entries_after(whole[:end], boundary, body)
        if not new:
            continue
        held.extend(new)
        written, ended = sanitize_transcript_v2(render(new)), new[-1].at // 1000 * 1000
        # A segment that begins in the millisecond in which another ended may take its entries for its own.
        shared |= boundary == new[0].at // 1000 * 1000 < ended
        body, boundary = (f"{body}\n\n{written}" if boundary == ended else written), ended
    visible = [e for e in whole if e.text.strip() or e.kind in ("tool", "subagent", "compaction")]
    found = [e for e in held if e in visible]
    assert not Counter(visible) - Counter(found)
    assert shared or found == visible
