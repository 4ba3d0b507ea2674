"""What an artifact speaks of, and that no text makes it slow."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signet_sync.facts import tokens
from signet_sync.facts.extract import SCANNED, distil
from signet_sync.facts.mentions import MENTIONS_PER_KIND
from signet_sync.formats.fact import Mention

PROJECT = "/code/lantern"


def mentions(body: str, project: str | None) -> tuple[Mention, ...]:
    return distil(body, project=project).mentions


def named(body: str, kind: str, project: str | None = PROJECT) -> list[str]:
    return [mention.name for mention in mentions(body, project) if mention.kind == kind]


def test_the_project_is_always_mentioned():
    (own,) = mentions("", "/code/lantern//")
    assert own == ("project", "lantern", "/code/lantern", 1)
    assert mentions("", "  ") == mentions("", None) == ()
    assert mentions("", "/")[0].norm == "/"
    assert mentions("", "/code/[[x]] | y")[0].name == "[ [x] ] ¦ y"


@pytest.mark.parametrize(("text", "paths"), [
    ("see src/queue.py and tests/test_queue.py.", ["src/queue.py", "tests/test_queue.py"]),
    ("see `src/queue.py:12:3`, (src/a.ts), **src/b.rs**", ["src/a.ts", "src/b.rs", "src/queue.py"]),
    ("below /code/lantern/src/queue.py it is", ["src/queue.py"]),
    ("beside /code/lantern2/src/queue.py it is", ["/code/lantern2/src/queue.py"]),
    ("in ./src//queue.py and ../other/x.py and ~/notes.md", ["../other/x.py", "src/queue.py", "~/notes.md"]),
    ("in src/queue, docs/de and packages/core", ["docs/de", "packages/core", "src/queue"]),
    ("under /etc/hosts and /home/ada/notes", ["/etc/hosts", "/home/ada/notes"]),
    ("pyproject.toml, Makefile at a/Makefile, uv.lock", ["a/Makefile", "pyproject.toml", "uv.lock"]),
    ("docs/a.md#part and x/y.py#L12", ["docs/a.md", "x/y.py"]),
    ("见src/队列.py和src/b.py文件", ["src/b.py"]),
    ("docs/über.md", ["docs/über.md"]),
    ("and/or, read/write, 1/2, n/a, either/or.", []),
    ("e.g. this, i.e. that, v1.2.3, 10.5, U.S. and so.on", []),
    ("Node.js and Vue.js; process.env, order.by", []),
    ("https://example.org/src/a.py and git@example.org:ada/x.py", []),
    ("src/*.py, src/**/x.py, docs/que*, *.py, $HOME/a.py, ${x}/b.py, <dir>/c.py, src/que…, src/{a,b}.py", []),
    ("node_modules/x/y.js and /usr/lib/python3/site-packages/z.py", []),
    ("/code/lantern is the project, /code/lantern/ too", []),
    ("ada@example.org/x.py", []), ("x" * 300 + "/a.py", []),
])  # fmt: skip
def test_paths(text, paths):
    assert sorted(named(text, "path")) == paths


def test_equal_paths_of_two_projects_are_two():
    (one,) = [m for m in mentions("src/queue.py", "/code/lantern") if m.kind == "path"]
    (other,) = [m for m in mentions("src/queue.py", "/code/prism/") if m.kind == "path"]
    assert (one.norm, other.norm) == ("/code/lantern/src/queue.py", "/code/prism/src/queue.py")
    assert mentions("/code/lantern/src/queue.py", "/code/lantern")[1].norm == one.norm
    assert mentions("src/queue.py", None)[0].norm == "src/queue.py"


@pytest.mark.parametrize(("text", "issues"), [
    ("fixes #12, see PR #12 and PR 13, issue-14", ["#12", "#13", "#14"]),
    ("(#12) **#13** #14.", ["#12", "#13", "#14"]),
    ("LAN-7 and (ABC2-19).", ["ABC2-19", "LAN-7"]),
    ("https://github.com/ada/lantern/issues/12 and https://github.com/ada/lantern/pull/13/files.", ["ada/lantern#12",
     "ada/lantern#13"]),
    ("https://gitlab.com/ada/lantern/-/issues/14", ["ada/lantern#14"]),
    ("ada/lantern#15", ["ada/lantern#15"]),
    ("修复了#16。", ["#16"]),
    ("UTF-8, SHA-256, ISO-8601, GPT-4, CVE-2024-1234, X-1", []),
    ("#fff, #1234567, &#12; # 12, C#12, a#b", []),
    ("LAN-7-fix, feature/LAN-7, LAN-", []),
    ("```\nfixes #12\n```", []),
])  # fmt: skip
def test_issues(text, issues):
    assert sorted(named(text, "issue")) == issues


def test_a_bare_number_is_one_of_the_project_s():
    norms = {m.norm for m in mentions("#012 and #12 and Ada/Lantern#12", PROJECT) if m.kind == "issue"}
    assert norms == {"/code/lantern#12", "ada/lantern#12"}
    assert mentions("#12", None)[0].norm == "#12"


@pytest.mark.parametrize(("text", "people"), [
    ("## People\n- Ada: reviewer\n- Grace Hopper (QA lead)\n- **Mira** – owner\n- @linus: kernel\n"
     "- Ludwig van B. - ear", ["@linus", "Ada", "Grace Hopper", "Ludwig van B.", "Mira"]),
    ("## Relationships\n- 李雷：审阅\n", ["李雷"]),
    ("## People\n- Ada knows Bob\n- Owner: Ada\n- Team: lighthouse\n- the new reviewer: nobody\n", []),
    ("## People\n- Claude: wrote it\n", []),
    ("## Notes\n- Ada: reviewer\n", []),
    ("tell @ada-l, and (@grace).", ["@ada-l", "@grace"]),
    ("`@ada` @media @types/node ada@example.org @ a @dataclass", []),
    ("```\n@ada\n```", []),
    ("Co-authored-by: Mira van der Berg <mira@example.org>", ["Mira van der Berg"]),
    ("```\nco-authored-by: Grace\n```", ["Grace"]),
    ("Co-authored-by: Claude <noreply@example.org>\nCo-authored-by: dependabot[bot] <x@example.org>", []),
    ("asked Ada, and Bob said so", []),
])  # fmt: skip
def test_people(text, people):
    assert sorted(named(text, "person")) == people


def test_each_thing_once_with_its_first_line():
    body = "x\n`@ada`\nsee #3 and src/a.py\n```py\nimport httpx\n```\nPR 2\nhttpx==1.2 #2 src/a.py @ada\n"
    assert [(m.kind, m.name, m.line) for m in mentions(body, None)] == [
        ("issue", "#3", 3), ("path", "src/a.py", 3), ("issue", "#2", 7), ("person", "@ada", 8)]  # fmt: skip


def test_so_many_and_no_kind_crowds_out_the_others():
    flood = "".join(f"src/a{n}.py #{n}\n" for n in range(1, 200))
    found = mentions(flood + "tell @ada\n## People\n- Grace: keeper\n", PROJECT)
    counts = {kind: sum(m.kind == kind for m in found) for kind in MENTIONS_PER_KIND}
    assert counts == {**MENTIONS_PER_KIND, "person": 2}


def test_only_the_beginning_of_a_long_body_is_looked_at():
    filler = ("word " * 20 + "\n") * (SCANNED // 101 + 1)
    found = distil(filler + "src/late.py\n## Next\n- trim the wick\n", project=PROJECT)
    assert [m.kind for m in found.mentions] == ["project"]
    assert [item.text for item in found.items] == ["trim the wick"]
    assert [m.name for m in distil("x " * (SCANNED // 2 - 2) + "src/cut.python", project=None).mentions] == []


BODIES = st.text(st.sampled_from("#@/.-:`=\n ~'[]()ABcd12é中\t*"), max_size=300) | st.lists(
    st.sampled_from(
        ["src/a.py", "#1", "@ada", "```", "\n", "## People\n- Ada: x\n", "`", "py",
         "LAN-7", "[[", "<b>", "/code/lantern/x.py", "https://a.b/c/d/issues/1"]
    ),
    max_size=40,
).map(" ".join)  # fmt: skip


@given(BODIES, st.sampled_from([None, PROJECT, "/"]))
def test_any_body(body, project):
    found = distil(body, project=project)
    assert distil(body, project=project) == found
    keys = [(mention.kind, mention.norm) for mention in found.mentions]
    assert len(set(keys)) == len(keys) <= 1 + sum(MENTIONS_PER_KIND.values())
    assert all(1 <= mention.line <= body.count("\n") + 1 for mention in found.mentions)
    assert not any(mark in mention.name for mention in found.mentions for mark in ("\n", "[[", "]]", "<b", "`"))


WITHIN = "A-Za-z0-9\u00c0-\u024f\u0370-\u03ff\u0400-\u04ff_./@~+#:-"
WHOLE = re.compile(rf"(?<![{WITHIN}])[{WITHIN}]+")


LONG = st.lists(st.sampled_from(["a" * 230, "a" * 470, ".", " ", "/x"]), max_size=6).map("".join)


@given(st.text("ab1é中 \n./#@~+:-_`(", max_size=20) | LONG)
def test_tokens_are_whole_words_whose_first_signs_stand_before_a_letter_or_digit(text):
    words = [found for found in WHOLE.finditer(text) if re.match(r"[^./#@]*[./#@]+[^./#@~+:-]", found[0])]
    expected = [found.span() for found in words if len(found[0]) <= 2 * tokens.NAME_LENGTH]
    assert [found.span() for found in tokens.tokens(text)] == expected


HOSTILE = {
    "words": "a", "slashes": "/", "folders": "a/", "dots": "a.", "ats": "@", "people": "@a ", "ticked": "@a` ",
    "hashes": "#", "numbers": "#1 ", "capitals": "A", "keys": "AB-1-", "ticks": "`",
    "spans": "`src/a` ", "fences": "```\n", "addresses": "https://a.b/c/d/issues/",
    "authors": "Co-authored-by: A B\n", "heads": "## People\n- Ada: x\n", "strikes": "~",
    "edges": "_'", "lines": "\n", "blanks": " ", "quotes": "from 'a", "han": "中/a.py",
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("opening", ["", "```\n"], ids=["prose", "code"])
@pytest.mark.parametrize("piece", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_text_costs_its_length(piece, opening):
    body = opening + piece * (200_000 // len(piece))
    started = time.process_time()
    mentions(body, PROJECT)
    assert time.process_time() - started < 2
    started = time.process_time()
    distil(body * 2, project=PROJECT)
    assert time.process_time() - started < 2
