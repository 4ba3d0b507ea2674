"""Every block in `sh` of the pages is run, in the order of its page, by the real shell and the real command line.

A page has a home folder to itself, in which `signet-demo` is the demo and the chosen workspace; the README makes it
by itself. Only other people's programs are played. Where a `text` block follows, it is what the block says: each of its
lines, in their order, with `…` for whatever else stands there.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import signet_database
from doc_pages import PAGES, ROOT, Block, blocks, name_of
from workbench import call

RUN = [page for page in PAGES if any(block.language == "sh" for block in blocks(page))]
# The real one; what would go on for ever is ended as by Ctrl-C, and what asks is answered with Enter.
OURS = """\
#!/bin/sh
case " $* " in
*" setup ") exec {python} -m signet_sync "$@" --yes ;;
*" run "*|*" -f "*|*" --follow "*)
    timeout --preserve-status --foreground -s INT 10 {python} -m signet_sync "$@"; code=$?
    [ $code = 130 ] || exit $code ;;
*) exec {python} -m signet_sync "$@" ;;
esac
"""
# Other people's programs install, start and send nothing: they say that all is well.
OTHERS = dict.fromkeys("crontab journalctl launchctl openclaw pip pipx pytest rsync scp sudo tail uv".split(), ":") | {
    "systemctl": r"""case " $* " in
*" show "*) printf 'ActiveState=active\nSubState=running\nUnitFileState=enabled\nMainPID=1\nResult=success\n' ;;
*" is-active "*) echo active ;;
esac""",
    "loginctl": """case $1 in show-user) echo Linger=no ;; esac""",
    "python3": f"""[ "$1 $2" = "-m venv" ] || exec {sys.executable} "$@"
mkdir -p "$3/bin" && for name in pip pytest signet-sync; do ln -s "$PROGRAMS/$name" "$3/bin/$name"; done""",
}
REPORT = """trap 'printf "%s\\t%s\\t%s\\n" "$LINENO" "$?" "$BASH_COMMAND" >&3' ERR; set -E -o pipefail; """


class Reader:
    """Somebody who types what a page says, on a machine where nothing is installed yet but two coding agents."""

    def __init__(self, folder: Path) -> None:
        self.home, self.programs, self.said = folder / "reader", folder / "programs", folder / "said"
        for place in (".claude", ".codex", ".config/systemd/user", "Library/LaunchAgents", "code/widget"):
            (self.home / place).mkdir(parents=True)
        for place in (self.programs, self.said):
            place.mkdir()
        for name, text in OTHERS.items():
            self._program(name, f"#!/bin/sh\n{text}\n")
        self._program("signet-sync", OURS.format(python=sys.executable))
        self.environ = {
            "HOME": str(self.home),
            "PATH": f"{self.programs}:/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "PYTHONPATH": str(ROOT),
            "PROGRAMS": str(self.programs),
        }

    def _program(self, name: str, text: str) -> None:
        (self.programs / name).write_text(text)
        (self.programs / name).chmod(0o755)

    def type(self, script: str, where: Path) -> str:
        """Runs a script; gives what it reported on descriptor 3."""
        path = self.said / "script"
        path.write_text(script)
        reported = self.said / "reported"
        with reported.open("wb") as report, (self.said / "0").open("wb") as rest:
            subprocess.run(
                ["bash", "-c", f"exec 3>&{report.fileno()}; . {path}"],
                cwd=where,
                env=self.environ,
                stdin=subprocess.DEVNULL,
                stdout=rest,
                stderr=subprocess.STDOUT,
                pass_fds=[report.fileno()],
                timeout=300,
                check=False,
            )
        return reported.read_text()

    def prepare(self, page: Path) -> Path:
        """Gives the folder in which the reader of a page stands."""
        if page.parent != ROOT / "docs":
            # A checkout as far as anybody looks at it.
            checkout = self.home / "signet-sync" / page.parent.relative_to(ROOT)
            checkout.parent.mkdir(exist_ok=True)
            checkout.mkdir(exist_ok=True)
            for path in {*page.parent.glob("*.*"), ROOT / "pyproject.toml"}:
                (checkout / path.name).symlink_to(path)
            return checkout
        assert self.type("signet-sync demo", self.home) == ""
        self.environ["SIGNET_WORKSPACE"] = str(self.home / "signet-demo")
        if page.name == "coming-from.md":
            signet_database.build(self.home / "signet-demo")
        return self.home


def scripted(page: Path, said: Path) -> str:
    """The blocks of a page as one script in which every line has the number that it has on the page."""
    lines = [""] * (page.read_text(encoding="utf-8").count("\n") + 1)
    for block in blocks(page):
        if block.language == "sh":
            lines[block.line - 1 : block.line - 1 + block.text.count("\n")] = block.text.splitlines()
            for line in block.text.splitlines():  # the tests of whoever is root must not write there
                assert "sudo" in line or not re.search(r"[\s>]/(etc|usr|var|opt|root)\b", line), line
            lines[block.line - 1] = f"exec >{said}/{block.line} 2>&1; {lines[block.line - 1]}"
    lines[0] = REPORT + lines[0]
    return "\n".join(lines)


def expected(page: Path) -> dict[int, str]:
    """Exit codes that the page tells of, by line."""
    text = page.read_text(encoding="utf-8").splitlines()
    return {
        number: found[1] for number, line in enumerate(text, 1) if (found := re.search(r"# .*exits? with (\d+)", line))
    }


def differs(block: Block, said: str) -> list[str]:
    """The lines of a shown output that were not said, in this order."""
    heard, lacking = iter(said.splitlines()), []
    for line in (block.shown or "").splitlines():
        pattern = ".*".join(map(re.escape, line.rstrip().split("…")))
        if line.strip("… ") and not any(re.fullmatch(pattern, one.rstrip()) for one in heard):
            lacking.append(line)
            break
    return lacking


@pytest.mark.slow
@pytest.mark.parametrize("page", RUN, ids=name_of)
def test_every_block_of_a_page_does_what_it_says(page: Path, tmp_path: Path) -> None:
    reader = Reader(tmp_path)
    where = reader.prepare(page)
    reported = reader.type(scripted(page, reader.said), where)
    codes = {int(line): (code, call) for line, code, call in (one.split("\t", 2) for one in reported.splitlines())}
    said = {block.line: (reader.said / str(block.line)).read_text() for block in blocks(page) if block.language == "sh"}
    heard = "\n".join(f"--- {name_of(page)}:{line}\n{text}" for line, text in said.items())
    assert {line: code for line, (code, _) in codes.items()} == expected(page), f"{codes}\n{heard}"
    wrong = {
        block.line: lack for block in blocks(page) if block.line in said if (lack := differs(block, said[block.line]))
    }
    assert wrong == {}, heard


@pytest.mark.slow
def test_who_follows_the_readme_to_its_end_keeps_the_sessions_and_nothing_of_ours(tmp_path: Path) -> None:
    reader = Reader(tmp_path)
    page = ROOT / "README.md"
    reader.type(scripted(page, reader.said), reader.prepare(page))
    for place in (".claude", ".codex", ".config", ".local/state"):
        left = [path for path in (reader.home / place).rglob("*") if path.is_file() and path.stat().st_size]
        assert left == []
    assert (reader.home / ".agents/memory").is_dir() and not (reader.home / "signet-sync/signet-demo").exists()


@pytest.mark.slow
def test_the_answer_that_opens_the_readme_is_what_the_demo_gives(tmp_path: Path) -> None:
    assert call("demo", tmp_path / "demo").code == 0
    question, *answer = blocks(ROOT / "README.md")[0].text.splitlines()
    given = call("--workspace", tmp_path / "demo", *shlex.split(question)[2:]).out
    assert given.splitlines()[0] == answer[0] and plain(given).startswith(plain("\n".join(answer)[: -len(".md")]))


def plain(text: str) -> str:
    """Text on one line, without dates: the demo's are counted from today."""
    return re.sub(r"\d{4}-\d\d-\d\d|(?<=\()[A-Z][a-z]{2} \d{1,2}(?=[,)])", "DATE", " ".join(text.split()))
