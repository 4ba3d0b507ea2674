"""Ignore rules: what git ignores is ignored, and no pattern takes longer than the path."""

import random
import shutil
import subprocess
import time

import pytest

from signet_sync.history.git import ignore

NAMES = ["a", "b", "ab", "c", "x.md", "aXb", "*", "d", "A", "[", " b"]
PIECES = (
    *(
        "a",
        "b",
        "ab",
        "*",
        "?",
        "**",
        "/",
        "[ab]",
        "[!a]",
        "[a-b]",
        "[[:alpha:]]",
        "[]a]",
        "!",
        "#",
        "\\*",
        "\\[",
        "\\ ",
    ),
    *("*.md", "d/", "/a", "**/", "/**", "/**/", "***", "c", "[", "[z-a]", " ", "\\"),
)


def ignores(path, layers):
    """Git does not look into an ignored folder."""
    parts = path.split("/")
    folders = ("/".join(parts[:n]) for n in range(1, len(parts)))
    return any(ignore.ignored(folder, True, layers) for folder in folders) or ignore.ignored(path, False, layers)


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 12))])
def test_git_says_the_same(tmp_path, seed):
    dice = random.Random(seed)
    paths = sorted({"/".join(dice.choice(NAMES) for _ in range(dice.randint(1, 4))) for _ in range(300)})
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    for _ in range(40):
        lines = ["".join(dice.choice(PIECES) for _ in range(dice.randint(1, 4))) for _ in range(dice.randint(1, 3))]
        # Git takes `x**/` for `x` and any folders, if no wildcard stands before; its manual says otherwise.
        text = "\n".join(line for line in lines if not odd(line))
        (tmp_path / ".gitignore").write_text(f"{text}\n")
        command = ["git", "-C", tmp_path, "check-ignore", "--no-index", "-z", "--stdin"]
        run = subprocess.run(command, input="\0".join(paths).encode(), capture_output=True, check=False)
        rules = ignore.layer("", text)
        found = {path for path in paths if rules and ignores(path, [rules])}
        assert found == set(run.stdout.decode().split("\0")) - {""}, text


def odd(line):
    return any("**" in name and name.strip("*!") for name in line.split("/"))


@pytest.mark.parametrize(
    ("text", "ignored", "kept"),
    [
        ("*.md\n!keep.md\n", ["a.md", "b/a.md"], ["keep.md", "b/keep.md", "a.mdx"]),
        ("/a\nb/c\n", ["a", "a/x", "b/c"], ["b/a", "x/b/c"]),
        ("logs/\n", ["logs/a", "x/logs/a"], ["logs"]),
        ("a/**/b\n**/z\nq/**\n", ["a/b", "a/x/y/b", "z", "x/z", "q/x"], ["b", "q"]),
        ("\ufeff# no\n\\#yes\ntail  \nescaped\\ \n", ["#yes", "tail", "escaped "], ["# no", "tail  "]),
        ("a.md\r\n", ["a.md"], ["a.md\r"]),
        ("\udcff*\n", ["\udcffx"], ["x"]),
        ("[c--.z]\n[z-am]y\n[a-c-e]x\n", ["c", "z", "zy", "my", "bx", "-x", "ex"], ["-", "ay", "dx"]),
    ],
)
def test_a_few_to_read(text, ignored, kept):
    layers = [ignore.layer("", text)]
    assert [path for path in ignored if not ignores(path, layers)] == []
    assert [path for path in kept if ignores(path, layers)] == []


def test_the_inner_file_counts_first():
    inner, outer = ignore.layer("deep/", "!*.log\n/only\n"), ignore.layer("", "*.log\n")
    assert not ignore.ignored("deep/a.log", False, [inner, outer])
    assert ignore.ignored("deep/only", False, [inner, outer])
    assert not ignore.ignored("deep/er/only", False, [inner, outer])
    assert ignore.ignored("a.log", False, [outer])


def test_case_counts_unless_the_file_system_says_otherwise():
    assert not ignore.ignored("A.MD", False, [ignore.layer("", "*.md")])
    assert ignore.ignored("A.MD", False, [ignore.layer("", "*.md", any_case=True)])


@pytest.mark.parametrize("text", ["*a" * 100 + "b", "**/a/" * 100 + "zz", "/".join(["*a*"] * 50), "[a-z]*" * 60 + "!"])
@pytest.mark.parametrize("path", ["/".join(["a" * 250] * 15), "a/" * 2000 + "q"])
def test_no_pattern_takes_long(text, path):
    """Where a pattern could be cut in two ways, it would take years."""
    begun = time.process_time()
    ignore.ignored(path, False, [ignore.layer("", text)])
    assert time.process_time() - begun < 60


def test_a_rule_that_asks_for_more_than_a_name_may_have_matches_nothing_and_costs_nothing() -> None:
    rules = ignore.layer("", "a" * 255 + "\n" + "b" * 256 + "\n" + "c?" * 128 + "\n" + "*".join("d" * 200) + "\n")
    assert rules is not None and len(rules.rules) == 2
    assert ignore.ignored("a" * 255, False, [rules]) and ignore.ignored("x/" + "d" * 200, False, [rules])
    assert not ignore.ignored("b" * 256, False, [rules])
