"""A PostgreSQL server of its own for tests: made in a folder, by a user who may run it, and ended with them."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PASSWORD = "s3cret/word"


def programs() -> Path | None:
    """The folder of the newest `initdb` and `postgres` of this machine: on the path, or where Debian keeps them."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    on_path = shutil.which("initdb")
    return found[-1].parent if found else Path(on_path).parent if on_path else None


def as_user() -> list[str]:
    """What goes before a program: PostgreSQL refuses root."""
    if os.geteuid() != 0:
        return []
    user = "postgres" if any(one.pw_name == "postgres" for one in pwd.getpwall()) else "nobody"
    who = pwd.getpwnam(user)
    return ["setpriv", "--reuid", str(who.pw_uid), "--regid", str(who.pw_gid), "--clear-groups"]


@contextmanager
def server() -> Iterator[str]:
    """Runs one; yields the URL of its database, with the password."""
    where = programs()
    assert where is not None
    folder = Path(tempfile.mkdtemp(prefix="signet-postgres-"))  # a folder of pytest is closed to other users
    try:
        (folder / "password").write_text(PASSWORD)
        prefix = as_user()
        if prefix:
            uid, gid = int(prefix[2]), int(prefix[4])
            for path in (folder, folder / "password"):
                os.chown(path, uid, gid)
        run = {"check": True, "stdout": subprocess.DEVNULL, "cwd": folder}
        initdb = ["-D", str(folder / "data"), "-A", "scram-sha-256", "-U", "fleet", "-E", "UTF8", "--locale=C"]
        subprocess.run([*prefix, str(where / "initdb"), *initdb, f"--pwfile={folder / 'password'}"], **run)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder} -c fsync=off"
        control = [*prefix, str(where / "pg_ctl"), "-D", str(folder / "data")]
        subprocess.run([*control, "-o", options, "-l", str(folder / "log"), "-w", "start"], **run)
        try:
            yield f"postgresql://fleet:{PASSWORD.replace('/', '%2F')}@127.0.0.1:{port}/postgres"
        finally:
            subprocess.run([*control, "-m", "immediate", "stop"], **run)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
