"""Mechanisms taken out one at a time, in a copy of the project: the tests that the page names for them fail.

A proof that cannot fail proves nothing. Every break is a replacement in one file of the product; the copy's own tests
run over it. `test_the_copy_as_it_is` is the control: what fails with a break passes without it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from workbench import ROOT


@dataclass(frozen=True)
class Break:
    """What is taken out (`old` becomes `new` in `file`), and a test that must notice."""

    file: str
    old: str
    new: str
    noticed_by: str


BREAKS = {
    "the folder is not synced once a file has got its name": Break(
        "signet_sync/storage/writing.py",
        "            if sync_folder:\n                sync_descriptor(target)\n\n        _stage_bytes(",
        "\n        _stage_bytes(",
        "tests/reliability/test_power_loss.py",
    ),
    "a new file is named before its bytes are synced": Break(
        "signet_sync/storage/durable.py",
        "            sync_descriptor(descriptor)\n    except",
        "            pass\n    except",
        "tests/reliability/test_power_loss.py",
    ),
    "tombstones are not asked when one file is judged": Break(
        "signet_sync/sync/planner.py",
        "        if judging.tombstones and _is_covered(name, *identity, judging.tombstones):\n"
        "            return _judge_tombstoned(path, found.signature)\n",
        "",
        "tests/reliability/test_resurrection.py",
    ),
    "whoever lost the lease writes all the same": Break(
        "signet_sync/pages/store/pages.py",
        "        if not self.database.value(held, (self.agent_id, self.fence)):\n",
        "        if False:\n",
        "tests/reliability/test_races.py",
    ),
    "an immutable file takes the place of another": Break(
        "signet_sync/storage/writing.py",
        "        os.link(staged, name, src_dir_fd=source, dst_dir_fd=target, follow_symlinks=False)\n",
        "        os.replace(staged, name, src_dir_fd=source, dst_dir_fd=target)\n",
        "tests/storage/test_files.py",
    ),
    "what an editor saved goes with the file that we displaced": Break(
        "signet_sync/storage/writing.py",
        "        if readable and (displaced is None or expected is None):\n",
        "        if readable:\n",
        "tests/storage/test_files.py",
    ),
    "a seal is not compared": Break(
        "signet_sync/sync/planner.py",
        '        changed = _changes(seal, digest, actual) if seal.file_sha256 != file_sha else ""\n',
        '        changed = ""\n',
        "tests/sync/test_planner.py",
    ),
    "what is deleted stays in the pages of the database": Break(
        "signet_sync/storage/database/connection.py",
        '            "secure_delete = on",\n',
        "",
        "tests/storage/test_database.py",
    ),
    "what SQLite leaves of moved rows is not overwritten": Break(
        "signet_sync/storage/database/batches.py",
        "            for number in range(count):\n                _wipe_page(file, number * size, size)\n",
        "",
        "tests/storage/test_wipe.py",
    ),
    "a link under an artifact's name is followed": Break(
        "signet_sync/storage/durable.py",
        "READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC\n",
        "READ = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC\n",
        "tests/reliability/test_escapes.py",
    ),
    "many files that vanish at once are believed": Break(
        "signet_sync/sync/planner.py",
        "    rule: CliffRule | None = None,\n) -> Plan:\n",
        "    rule: CliffRule | None = None,\n) -> Plan:\n    rule = None\n",
        "tests/sync/test_planner.py",
    ),
    "the text between our marks is taken for ours whoever wrote it": Break(
        "signet_sync/formats/managed_block.py",
        '        return Merge(data, None if whole else ("user", inner))\n',
        "        return Merge(data, None)\n",
        "tests/formats/test_managed_block.py",
    ),
    "text is stored before the sanitizer": Break(
        "signet_sync/text/sanitizer.py",
        "def sanitize_transcript_v2(text: str) -> str:\n",
        "def sanitize_transcript_v2(text: str) -> str:\n    return text\n\n\ndef _unused(text: str) -> str:\n",
        "tests/text/test_sanitizer.py",
    ),
    # What takes a job sanitizes once more, and so does what writes a session's end: each layer by itself.
    "a hook hands on what it was given": Break(
        "signet_sync/capture/hook.py",
        "    return sanitize_transcript_v2(value)\n",
        "    return value\n",
        "tests/cli/test_every_command.py::test_a_secret_in_any_field_of_a_hook_reaches_no_job",
    ),
    "a session's end writes what it was given": Break(
        "signet_sync/sessions/operations.py",
        "    clean, redacted = sanitize_counted(text)\n    found.update(redacted)\n    return clean\n",
        "    clean, redacted = sanitize_counted(text)\n    found.update(redacted)\n    return text\n",
        "tests/cli/test_every_command.py::test_a_secret_in_any_field_of_a_document_reaches_no_disk",
    ),
}


def copied(folder: Path) -> Path:
    """The project once more, with nothing but what its tests need."""
    copy = folder / "project"
    copy.mkdir()
    for name in ("signet_sync", "tests", "benchmarks", "docs", "systemd", "launchd"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "CONTRIBUTING.md"):
        shutil.copy(ROOT / name, copy / name)
    return copy


def tried(copy: Path, test: str) -> tuple[int, str]:
    """How a test of the copy ends, and what it says."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-o", "addopts=-q -x", test],
        cwd=copy, env=os.environ | {"PYTHONPATH": str(copy)}, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout[-3000:]


def test_every_mechanism_is_written_as_it_is_taken_out() -> None:
    changed = [name for name, each in BREAKS.items() if (ROOT / each.file).read_text("utf-8").count(each.old) != 1]
    assert changed == [], "these are written otherwise by now"


@pytest.mark.slow
def test_the_copy_as_it_is(tmp_path: Path) -> None:
    copy = copied(tmp_path)
    # One at a time: beside a test that is named, a file's slow ones would run as well.
    for test in sorted({each.noticed_by for each in BREAKS.values()}):
        code, said = tried(copy, test)
        assert code == 0, said


@pytest.mark.slow
@pytest.mark.parametrize("name", BREAKS)
def test_a_mechanism_that_is_missing_is_noticed(tmp_path: Path, name: str) -> None:
    given = BREAKS[name]
    copy = copied(tmp_path)
    file = copy / given.file
    file.write_text(file.read_text("utf-8").replace(given.old, given.new), encoding="utf-8")
    code, said = tried(copy, given.noticed_by)
    assert code == 1, said
