"""What the tests of the workspace's history share: a vault with a history, its author, and the real git beside it."""

import os
import shutil
import subprocess
from pathlib import Path

from signet_sync.history import commit as history_commit
from signet_sync.history import log as history_log
from signet_sync.history import repository

ID = "7b0e8f6c-1d0a-4c9e-9f0e-3f6c2a1b5d4e"
AUTHOR = ("default", "agent@localhost")
NOW = 1_777_000_000_000_000  # µs


class HistoryVault:
    """A vault whose history is kept."""

    def __init__(self, root):
        self.root = Path(root)
        self.now = NOW
        self.root.mkdir(exist_ok=True)

    def begin(self):
        repository.create(str(self.root), ID, history_commit.BESIDE)
        return self

    def copied(self, root):
        """The same vault somewhere else: making one costs dozens of syncs, copying it none."""
        shutil.copytree(self.root, root, symlinks=True)
        return HistoryVault(root)

    def put(self, path, text="text\n"):
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text if isinstance(text, bytes) else text.encode())
        return target

    def opened(self):
        return repository.open_repository(str(self.root), ID)

    def look(self):
        """The code under which the repository is refused; empty for ours."""
        found = repository.inspect(str(self.root), ID)
        return found.code if found else ""

    def commit(self, subject="checkpoint: x", body="", author=AUTHOR):
        """The new commit's id (None: nothing changed), and why files are not committed as they are."""
        self.now += 1_000_000
        given = {"subject": subject, "body": body, "author": author, "agent": author, "now_us": self.now}
        with self.opened() as git:
            return history_commit.commit(git, str(self.root), **given)

    def log(self, limit=10):
        with self.opened() as git:
            return history_log.log(git, limit)

    def diff(self, oldest):
        with self.opened() as git:
            return history_log.diff(git, str(git.revparse_single(oldest).id))

    def data(self, path, revision="HEAD"):
        """A file as a commit has it."""
        return os.fsencode(self.git("cat-file", "blob", f"{revision}:{path}"))

    def git(self, *arguments, check=True):
        return git(self.root, *arguments, check=check)

    def tree(self, revision="HEAD"):
        return self.git("ls-tree", "-r", "-z", "--name-only", revision).split("\0")[:-1]


def git(root, *arguments, check=True):
    """Real git's output; without any settings but those of the repository."""
    identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "safe.directory=*"]
    command = ["git", "-C", str(root), *identity, *arguments]
    environment = {**os.environ, "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}
    found = subprocess.run(command, capture_output=True, check=check, stdin=subprocess.DEVNULL, env=environment)
    return os.fsdecode(found.stdout)
