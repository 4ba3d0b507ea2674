"""Lines of `recall`: written anew at no cost, and of what was removed no word stays, however often it was rewritten."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path

import artifacts_fixture as made
import pytest
from workbench import NOW

from signet_sync.pages.store import pages
from signet_sync.storage.database import batches
from signet_sync.storage.database.connection import Database
from signet_sync.sync.store import artifacts, texts
from signet_sync.sync.store.artifacts import set_sanitizer_of_rows
from signet_sync.sync.store.texts import Line

# FTS5 leaves out the letters that a word has in common with the one before it.
TAIL = re.compile(rb"([a-z]{6})quill")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "index.db"


@pytest.fixture
def database(place: Path) -> Iterator[Database]:
    made_anew = Database(str(place))
    yield made_anew
    made_anew.close()


class Lines:
    """Lines that are added, rewritten and dropped, each with a word that differs from its first letter on."""

    def __init__(self, database: Database, seed: int) -> None:
        self.database, self.random = database, random.Random(seed)
        self.living: dict[str, tuple[str, ...]] = {}
        self.written = 0

    def word(self) -> str:
        self.written += 1
        number, letters = self.written * 7919 % 26**6, ""
        for _ in range(6):
            number, letter = divmod(number, 26)
            letters += chr(97 + letter)
        return f"{letters}quill"

    def change(self, most: int) -> None:
        """One transaction, as a pass has it."""
        with self.database.transaction():
            for _ in range(self.random.randint(1, most)):
                line_id = f"t-{self.random.randint(0, 60)}"
                if self.random.random() < 0.2:
                    texts.drop(self.database, "a", [line_id])
                    self.living.pop(line_id, None)
                else:
                    word, project = self.living[line_id] = self.word(), self.word()
                    text = f"{word} tower {'of the queue ' * self.random.randint(0, 120)}"
                    texts.put(self.database, [Line("a", "statement", line_id, text, about=project)])

    def left(self) -> set[str]:
        """Words of former lines, wherever in the files of the database."""
        raw = b"".join(path.read_bytes() for path in Path(self.database.path).parent.iterdir())
        living = {word for words in self.living.values() for word in words}
        return {found.decode() + "quill" for found in TAIL.findall(raw)} - living

    def scour(self) -> None:
        """What a scrub does of it."""
        assert self.database.checkpoint(truncate=True)
        with self.database.transaction():
            assert batches.wipe(self.database)
            set_sanitizer_of_rows(self.database, str(self.written))
        assert self.database.checkpoint(truncate=True)


class Sessions(Lines):
    """The same of transcripts: words that were said, that a tool printed, and of the project."""

    def change(self, most: int) -> None:
        for number in {self.random.randint(0, 60) for _ in range(self.random.randint(1, most))}:
            session_id = f"s-{number}"
            path = made.path_for("transcript", session_id=session_id)
            with self.database.transaction():
                gone = artifacts.delete_rows(self.database, [path])
                pages.store_rows(self.database, gone, [], [])
            self.living.pop(session_id, None)
            if self.random.random() < 0.8:
                said, printed, project = self.living[session_id] = self.word(), self.word(), self.word()
                body = (
                    f"## User · {NOW}\n\n{said} tower {'of the queue ' * self.random.randint(0, 120)}\n\n"
                    f"- `Read` · {NOW} · `a`\n\n  {printed} of the file\n"
                )
                name, raw = made.transcript(session_id=session_id, body=body, project=f"/srv/{project}")
                made.fill(self.database, made.judged({name: raw}))


@pytest.mark.parametrize("what", [Lines, Sessions])
@pytest.mark.parametrize("seed", [3, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(5))])
def test_no_word_of_a_former_text_is_left_after_a_scrub(database: Database, seed: int, what: type[Lines]) -> None:
    life = what(database, seed)
    for most in (3, 30, 1):
        for _ in range(20):
            life.change(most)
        life.scour()
        assert life.left() == set()
        found = database.execute("select rowid from said where said match 'tower'")
        assert len(list(found)) == len(life.living)
        assert texts.is_in_step(database) and database.problems() == []
