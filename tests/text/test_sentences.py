"""Sentences: both gates, the fallback that always passes, flattening that nothing survives, and linear time."""

import html
import re
import time

import markdown_it
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from signet_sync.formats.body import normalize
from signet_sync.formats.paths import stray_artifact_links, targets
from signet_sync.text.sentences import (
    LOW_SIGNAL,
    SentenceSubject,
    acceptable,
    fallback,
    flatten,
    has_anchor,
    is_sound,
    page_cell,
    page_line,
    passes_signet,
    passes_strict,
    shorten,
    signet_anchor,
    unescape,
    words,
)

TEN = "one two three four five six seven eight nine ten"


def session(body="plain words", project=None, kind="summary"):
    return SentenceSubject(body, project, kind, "2026-03-28")


# --- our gate ---


@pytest.mark.parametrize(
    ("end", "passes"),
    [
        ("and then lantern.", True), ("and then lantern!", True), ("lantern.", False), ("and lantern.", True),
        ("and then lantern", False), ('and then "lantern."', False), ("and then lantern. ", False),
        (" and then\nlantern.", False), ("and then\u2028lantern.", False), ("and then Lantern.", False),
        ("was it. Then lantern.", False), ("was (it.) Then lantern.", False),
        ("e.g. this of lantern v1.2 (i.e. all).", True), ("and then " + "more " * 35 + "lantern.", True),
        ("and then " + "more " * 36 + "lantern.", False), ("and then lantern" + "x" * 2000 + ".", False),
    ],
)  # fmt: skip
def test_a_sentence_that_we_write_is_one_line_of_12_to_48_words_with_an_anchor(end, passes):
    assert is_sound(f"{TEN} {end}", session(project="/home/ada/lantern")) is passes


@pytest.mark.parametrize("text", ["Investigated issue.", "Worked on task.", "Reviewed code.", "", " "])
def test_low_signal_templates_pass_no_gate(text):
    assert text in LOW_SIGNAL or not text.strip()
    for gate in (is_sound, acceptable):
        assert not gate(text, session(project="issue"))
    assert not passes_signet(f" {text} ", "b", "issue")


@pytest.mark.parametrize(
    "anchor",
    [
        *("sync.py", "src/lib", "./run.sh", "README.md", "a/b.c", "(main.go)", ".env.toml", "`x.rs`", "@scope/pkg"),
        *("PR #44", "PR-44", "issue 12", "task:7", "#99", "ABC-123"),
    ],
)
def test_files_paths_and_numbered_things_are_anchors(anchor):
    assert is_sound(f"{TEN} touched {anchor} today.", session())


@pytest.mark.parametrize("component", ["SessionStore", "sessionStore", "session_store", "session-store"])
def test_components_are_anchors_when_the_session_names_them(component):
    sentence = f"{TEN} touched {component} today."
    assert is_sound(sentence, session(f"We changed {component} here."))
    assert not is_sound(sentence, session("We changed nothing here."))


# --- the gate of meaning ---

BODY = "A follow-up is due. src/queue.py drains after five attempts; a dead broker blocks nothing. Größe 灯台守 queue"
FILLER = "We then did some follow-up work and looked at many different matters for a long while today."


@pytest.mark.parametrize(
    ("sentence", "passes"),
    [
        ("Bounded the queue in src/queue.py at five attempts so that a dead broker blocks nothing any more.", True),
        ("We changed how it all behaves when the broker of lantern is dead, and it drains in the end.", True),
        ("In lantern 灯台守 was told about all of it and then wrote down what came of it all.", True),
        (FILLER, False),
        (FILLER.replace("today", "in lantern"), False),
        ("We investigated the issue in lantern and fixed several different problems that we found today.", False),
        ("Painted the hull of lantern.md with pitch and tar while everybody watched from the shore and sang.", False),
        ("Reviewed code.", False),
    ],
)
def test_a_sentence_holds_words_of_its_session(sentence, passes):
    assert passes_strict(sentence, session(BODY, "/home/u/lantern")) is passes


@pytest.mark.parametrize("name", ["a", "the", "x", "project", "in", "."])
def test_a_project_called_like_a_word_of_any_sentence_is_no_anchor(name):
    assert not has_anchor(f"{TEN} in the project as a whole, and x.", session("plain", f"/home/u/{name}"))


# --- the gate of the original program ---


def test_sentence_vectors(vectors):
    """At render we keep what the original keeps, and besides what names a file or path that it does not know."""
    only_ours = []
    for case in vectors["sentence"]:
        text, body, project = case["text"], case["body"], case["project"]
        assert passes_signet(text, body, project) == case["valid"], text
        assert words(text) == case["words"], text
        assert signet_anchor(body, project) == case["anchor_noharness"], body
        context = session(normalize(body), project, case["kind"])
        if acceptable(text, context) != case["valid"]:
            only_ours.append(text.removeprefix(TEN).strip())
    assert only_ours == ["touched sync.py file.", "under src/lib now."]


def test_a_stored_sentence_is_judged_flattened():
    assert acceptable(f"{TEN}\ntouched sync.py\ttoday.", session())
    assert not acceptable(f"{TEN} touched nothing today.", session())


# --- the fallback ---

HOSTILE = "\x00\x1b\n\r\t\x85\u2028\u202e\ufeff\ud800\udfff`\"'“”*_~[]()<!-->|#.!?:; AaZ9-/\\会話é"
BODIES = st.text(alphabet=HOSTILE, max_size=80) | st.text(max_size=80)
PROJECTS = st.none() | st.text(alphabet=HOSTILE, max_size=40) | st.text(max_size=40)
KINDS = st.sampled_from(["summary", "transcript", "compaction"]) | st.text(alphabet=HOSTILE, max_size=20)


def check_fallback(context):
    sentence = fallback(context)
    assert is_sound(sentence, context), sentence
    assert acceptable(sentence, context)
    assert flatten(sentence) == sentence, "nothing is left to neutralise"
    assert sentence.encode("utf-8")
    assert fallback(context) == sentence
    return sentence


@given(BODIES, PROJECTS, KINDS)
@example("see (x.) Then go", None, "summary")
@example("a" * 39 + ".bbb Then go", None, "summary")
@example("x[*[y]*]* <!*-- z --*> `", "/x/a.) B", "a\nb")
@example("# What now? Go!\n\nNo.", '/x/say "hi"', "summary")
@example("# [[a|b]] | c\n", "/x/. . .", "summary")
@example("word " * 60, "/x/a b c d e", "summary")
@example("...", "...", "...")
def test_the_fallback_passes_our_gate_for_every_session(body, project, kind):
    check_fallback(session(body, project, kind))


@pytest.mark.parametrize(
    ("body", "lead"),
    [
        ("User: please fix the queue\nAssistant: done", "please fix the queue"),
        ("- [x] **bold** and `code` and _emphasis_ and snake_case", "bold and code and emphasis and snake_case"),
        ("```sh\nmake all\n```", "make all"),
        ("First. Second.", "First, Second"),
        (
            "alright, read @packages/app/src/components/terminal/tui-renderer in full",
            "alright, read @packages/app/src/components/terminal/tui-renderer in full",
        ),
        ("[[memory/x.md|summary]] is linked", "[ [memory/x.md|summary] ] is linked"),
        ("w1 w2 w3 w4 w5 w6 w7 w8 w9 w10 w11 w12 w13", "w1 w2 w3 w4 w5 w6 w7 w8 w9 w10 w11 w12 …"),
    ],
)
def test_the_fallback_opens_with_the_first_heading_request_or_line(body, lead):
    assert f'opens with "{lead}" and' in fallback(session(body))


@pytest.mark.parametrize(
    "name", ["..", ".", "---", "a b c d e", "x" * 61, 'say "hi"', "A. B", "a.) B", "[[x]]", "a\tb"]
)
def test_a_project_whose_name_would_not_pass_gives_way_to_the_file(name):
    sentence = check_fallback(session("text", f"/home/ada/{name}"))
    assert sentence.startswith("The session of 2026-03-28 left a summary.md that ")


# --- flattening ---

FORGED = re.compile(r"\[\[|\]\]|<!--|-->|`|[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]")


@given(st.text(alphabet="[]<!->`| \n\r\t\x00\x85\u2028\u202e\ufeff\ud800a…", max_size=30) | st.text(max_size=30))
@example("[\u202a[x]\ufeff]")
@example("<!\ufeff--->--->")
@example("<!<!----")
@example("`[[[`]]]`")
def test_flattened_text_forges_nothing_and_flattens_to_itself(text):
    flat = flatten(text)
    assert not FORGED.search(flat)
    assert flat == flat.strip() and "  " not in flat
    assert flatten(flat) == flat
    assert flat.encode("utf-8").decode("utf-8") == flat
    assert targets(f"{flat} [[memory/x.md]]")[-1] == "memory/x.md"
    assert stray_artifact_links(flat) == []


@pytest.mark.parametrize(
    ("text", "flat"),
    [
        ("fix #urgent and (#a/b) ##fff #1x", r"fix \#urgent and (\#a/b) \#\#fff \#1x"),
        ("#12, PR#44, issue #7 and C#sharp", "#12, PR#44, issue #7 and C#sharp"),
        ("see https://x.dev/a#part, #!/bin/sh # 1", "see https://x.dev/a#part, #!/bin/sh # 1"),
        ("requests==2.31 where a == b or a === b", "requests==2.31 where a == b or a === b"),
        ("$HOME costs $5", "$HOME costs $5"), ("~~gone~~ ^[note] ~~~", "~ ~gone~ ~ ^ [note] ~~~"),
        ("標籤 #標籤", r"標籤 \#標籤"), ("a <b> & <!DOCTYPE> x < y", r"a \<b> & \<!DOCTYPE> x < y"),
        (r"\<b> \\<b> \#tag \\#tag", r"\<b> \\\<b> \#tag \\\#tag"),
    ],
)  # fmt: skip
def test_a_sign_that_obsidian_acts_on_is_escaped_and_others_stay(text, flat):
    """What is copied from a page as a reader shows it is what the file has."""
    assert page_line(text) == page_line(flat) == flat
    if "\\" not in text and "~" not in text:
        assert flatten(text) == unescape(flat) == text
        assert markdown_it.MarkdownIt("commonmark").renderInline(flat) == html.escape(text, quote=False)


# --- linear time ---

FUNCTIONS = {
    "page_line": page_line, "page_cell": page_cell, "words": words,
    "signet_anchor": lambda text: signet_anchor(text, None),
    "passes_signet": lambda text: passes_signet(f"{TEN} {text} more.", "b", None),
    "is_sound": lambda text: is_sound(f"{TEN} {text}.", session(text)),
    "has_anchor": lambda text: has_anchor(f"{text} x.", session("b")),
    "acceptable": lambda text: acceptable(f"{TEN} {text}.", session(text)),
    "fallback": lambda text: fallback(session(text, text)),
    "fallback of one line": lambda text: fallback(session(text.replace("\n", " "))),
    "targets": lambda text: targets(f"[[{text}"),
}  # fmt: skip


def is_linear(function, unit, size):
    """Whether ten times the text takes at most thirty times as long, in the best of four tries."""
    small, large = unit * (size // 10 // len(unit)), unit * (size // len(unit))
    for _ in range(4):
        start = time.process_time()
        function(small)
        between = time.process_time()
        function(large)
        if time.process_time() - between < 30 * max(between - start, 0.001):
            return True
    return False


@pytest.mark.parametrize("unit", ["a.", "pr-", "_", "A1", "a/"])
def test_a_long_text_is_judged_in_linear_time(unit):
    assert [name for name, function in FUNCTIONS.items() if not is_linear(function, unit, 250_000)] == []


@given(st.text(), st.integers(4, 200))
def test_what_is_shortened_is_a_beginning_that_ends_with_a_word(text, width):
    short = shorten(text, width)
    assert len(short) <= width
    assert short == text or (short.endswith("…") and text.startswith(short[:-1]))
    assert shorten("Measured the queue with ten jobs", 20) == "Measured the queue…"
    assert shorten("The users' jobs of it's queue, again", 30) == "The users' jobs of it's…"
