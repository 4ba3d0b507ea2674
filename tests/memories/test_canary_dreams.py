"""What rose in a dream and was committed: once removed or forgotten, no byte is left, nor in a forgotten history."""

from __future__ import annotations

import shutil
import zlib
from pathlib import Path
from typing import Any

import pytest
from session_inputs import end
from workbench import NOW, Vault

pygit2 = pytest.importorskip("pygit2")

ID = "ca4a1e00-0000-4000-8000-000000000009"
KEY = "zxvkey-of-main"
SECRET = "ghp_" + "Zx9Yw8Vu7Ts6Rq5Po4Nm3Lk2Ji1Hg0Fe9Dc8"
# What stands in the session, and what stands in a memory that is nobody's but the person's.
OF_SESSION = ("zxvkey", "zxvproject", "zxvdecision", "zxvdb", "zxvtalk", "zxvsentence")
OF_ITS_MEMORY = ("zxvkettle",)
OF_MEMORY = ("zxvmemory", "zxvtag")
QUERIES = ("zxvquery zxvmemory lantern", "lantern her own", "lantern own", "zxvasked zxvkettle", "kettle whistles",
           "whistles at five", "short kilns", "short answers kilns", "kilns short")  # fmt: skip


class Scene:
    """A vault with a history."""

    own = of_it = stays = ""

    def __init__(self, root: Path) -> None:
        self.vault = Vault(root)

    def fill(self) -> None:
        """A session and three memories, risen and committed: a person's own, one of the session, one that stays."""
        self.vault.session(2)
        end(
            self.vault,
            session_id=ID,
            session_key=KEY,
            project="/home/ada/zxvproject",
            captured_at="2026-03-25T10:00:00.000Z",
            summary="# Work\n\n## Decisions\n\n- The zxvdecision lantern shall be lit.\n- DB: zxvdb\n",
            transcript="## User · 2026-03-25T09:00:00.000Z\n\nzxvtalk about the retry loop of src/queue.py.\n",
            memory_sentence="Bounded the zxvsentence retry loop of src/queue.py so that it drains at last.",
        )
        self.own = self.remember("Ada calls the zxvmemory lantern her own", "--tag", "zxvtag")
        self.of_it = self.remember("The zxvkettle of the kettle whistles at five", "--session", ID)
        self.stays = self.remember("Ada wants short answers about kilns")
        self.remember("Another agent knows nothing of it", "--agent", "other")
        for query in QUERIES:
            self.ask("recall", query)
        self.ask("recall", f"the token {SECRET} of her own lantern")
        assert len(self.ask("dream")["promoted"]) == 3
        # Whoever writes into our part finds it kept beside the page, and that is committed, too.
        page = self.vault / "MEMORY.md"
        page.write_text(page.read_text().replace("\n- ", "\n- my own line\n- ", 1))
        self.ask("reindex")
        self.ask("checkpoint", f"{self.own} rose; the token is {SECRET}")

    def ask(self, *arguments: str, code: int = 0) -> Any:
        answer = self.vault.call(*arguments, "--json", "--now", NOW)
        assert answer.code == code, answer
        return answer.json if not code else answer.json["error"]

    def remember(self, *arguments: str) -> str:
        told: str = self.ask("remember", *arguments)["id"]
        return told

    def leaks(self, *words: str, git: bool = True) -> list[tuple[str, str]]:
        """Files of workspace and state, and objects of the repository, that hold a word."""
        vault = self.vault
        texts = {}
        for path in (*vault.root.rglob("*"), *vault.state.rglob("*")):
            if path.is_file() and (git or ".git" not in path.parts):
                raw = path.read_bytes()
                loose = "objects" in path.parts and len(path.parent.name) == 2
                texts[str(path)] = path.name.encode() + (zlib.decompress(raw) if loose else raw)
        if git:
            repository = pygit2.Repository(str(vault.root))
            texts |= {str(oid): repository.odb.read(oid)[1] for oid in repository.odb}
        return sorted((name, word) for name, raw in texts.items() for word in words if word.encode() in raw.lower())

    def sound(self) -> None:
        """What was not asked to go is there, on the pages and in the history."""
        repository = pygit2.Repository(str(self.vault.root))
        for name in ("MEMORY.md", "DREAMS.md"):
            assert self.vault.page(name).count(f"^{self.stays}") == 1
            assert (repository.head.peel().tree / name).data.count(f"^{self.stays}".encode()) == 1
        events = "select distinct memory_id, query from recall_events"
        queries = self.vault.rows(events)
        assert {memory for memory, _ in queries} == {self.stays}
        before = (self.vault.page(), self.vault.page("DREAMS.md"), queries)
        self.vault.reindex()
        assert (self.vault.page(), self.vault.page("DREAMS.md"), self.vault.rows(events)) == before
        assert any("my own line" in copy.read_text() for copy in self.vault.root.glob("MEMORY.user-*"))


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    monkeypatch.setenv("SIGNET_HISTORY_ENABLED", "true")
    monkeypatch.setenv("SIGNET_HISTORY_TRANSCRIPTS", "true")
    made = Scene(tmp_path / "vault")
    made.fill()
    words = (*OF_SESSION, *OF_ITS_MEMORY, *OF_MEMORY)
    assert {word for _, word in made.leaks(*words)} == {*words}, "every place holds its word"
    assert made.leaks(SECRET.lower(), SECRET[4:].lower()) == [], "secrets of queries and notes reach no disk"
    assert made.leaks("zxvquery", "zxvasked") == [], "no word of a query does"
    return made


def test_what_is_removed_and_forgotten_leaves_the_history_with_it(scene: Scene) -> None:
    assert scene.ask("remove", ID, "--reason", "r", "--yes")["git_history"] == "contains"
    assert scene.leaks(*OF_SESSION, *OF_ITS_MEMORY, scene.of_it, git=False) == []
    answer = scene.vault.call("forget", scene.own, "--now", NOW)
    assert answer.code == 0 and "history forget" in answer.out.splitlines()[-1]
    assert scene.leaks(*OF_MEMORY, scene.own, git=False) == [] != scene.leaks(*OF_MEMORY)
    assert scene.ask("history", "forget", "--yes")["subject"] == "checkpoint: history forgotten"
    assert scene.leaks(*OF_SESSION, *OF_ITS_MEMORY, *OF_MEMORY, scene.own, scene.of_it) == []
    scene.sound()


def test_what_only_the_diary_tells_of_is_forgotten_all_the_same(scene: Scene) -> None:
    """The ledger is lost: its entries are kept, and still somebody can take a memory out of them."""
    shutil.rmtree(scene.vault.state)
    scene.ask("reindex")
    assert scene.vault.page("DREAMS.md").count("^m-") == 3
    scene.ask("forget", scene.own)
    assert scene.leaks(*OF_MEMORY, scene.own, git=False) == []
    assert scene.vault.page("DREAMS.md").count("^m-") == 2
