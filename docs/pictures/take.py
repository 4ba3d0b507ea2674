"""Takes the pictures anew: `python docs/pictures/take.py [NAME …]`; `start` is what a session is told, as text.

The others need the extra `ui`, playwright and a Chromium. The sample workspace is made for it, in a home that goes,
so that nothing of the machine is in a picture.
"""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROJECT = HERE.parents[1]
sys.path[:0] = [str(PROJECT), str(HERE)]

from playwright.sync_api import Browser, sync_playwright  # noqa: E402 - after the paths
from rich.console import Console  # noqa: E402 - after the paths
from rich.text import Text  # noqa: E402 - after the paths
from workspace import furnish  # noqa: E402 - after the paths

WIDE, FLAT, NARROW = (1440, 1000), (1440, 860), (390, 844)
LARGEST = 280_000  # bytes of a picture


@dataclass(frozen=True)
class Picture:
    """One view: the links that lead to it from the overview, and how it is looked at."""

    name: str
    links: tuple[str, ...] = ()
    size: tuple[int, int] = WIDE
    scheme: str = "light"


SESSIONS, THREADS, PROBLEMS, ENTITIES = (
    f'.views a[href^="/{view}"]' for view in ("sessions", "threads", "violations", "entities")
)
SESSION = 'main a:has-text("The view daily_extremes")'
THREAD = 'main a:has-text("tidepool")'
PICTURES = (
    Picture("overview", size=FLAT),
    Picture("overview-narrow", size=NARROW, scheme="dark"),
    Picture("session", (SESSIONS, SESSION)),
    Picture("thread", (THREADS, THREAD), size=FLAT, scheme="dark"),
    Picture("violation", (PROBLEMS, 'main a[href^="/do/restore?"]')),
    Picture("entity", (ENTITIES, 'main a:has-text("Mira")')),
)


def main(wanted: list[str]) -> None:
    """Makes the workspace, serves it, takes the pictures; all, or those that are wanted."""
    if not wanted or "start" in wanted:
        (HERE / "start.svg").write_text(_start(), encoding="utf-8")
        wanted = [name for name in wanted if name != "start"]
        if sys.argv[1:] and not wanted:
            return
    with tempfile.TemporaryDirectory() as home, _ui(home) as address, sync_playwright() as playwright:
        program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
        root = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=program, args=root)
        for picture in (one for one in PICTURES if not wanted or one.name in wanted):
            path = HERE / f"ui-{picture.name}.png"
            path.write_bytes(_take(browser, address, picture))
            sys.stdout.write(f"{path.relative_to(PROJECT)}: {path.stat().st_size:,} bytes\n")
            if path.stat().st_size > LARGEST:
                raise SystemExit(f"{path} is larger than {LARGEST:,} bytes")
        browser.close()


@contextmanager
def _ui(home: str) -> Iterator[str]:
    """The address of the page over the sample workspace, with an agent that runs."""
    for name in [name for name in os.environ if name.startswith(("SIGNET_", "XDG_"))]:
        del os.environ[name]
    os.environ |= {"HOME": home, "SIGNET_WORKSPACE": f"{home}/notes", "TZ": "UTC", "PYTHONPATH": str(PROJECT)}
    os.chdir(home)  # in no repository, of whose project the memories would be
    furnish(f"{home}/notes", datetime.now(UTC))
    command = [sys.executable, "-m", "signet_sync"]
    with (
        subprocess.Popen([*command, "run"], stderr=subprocess.DEVNULL) as agent,
        subprocess.Popen([*command, "ui", "--json"], stdout=subprocess.PIPE, text=True) as server,
    ):
        try:
            assert server.stdout is not None
            yield json.loads("".join(iter(server.stdout.readline, "}\n")) + "}")["url"]
        finally:
            server.terminate()
            agent.terminate()


def _start() -> str:
    """What a session of lantern in the demo is told at its start, to the end of its decisions."""
    with tempfile.TemporaryDirectory() as home:
        environ = {"HOME": home, "TZ": "UTC", "PYTHONPATH": str(PROJECT), "PATH": os.environ["PATH"]}
        command = [sys.executable, "-m", "signet_sync", "--workspace", f"{home}/demo"]
        subprocess.run([*command[:3], "demo", f"{home}/demo"], env=environ, check=True, stdout=subprocess.DEVNULL)
        asked = [*command, "context", "--project", "/home/mira/code/lantern"]
        told = subprocess.run(asked, env=environ, check=True, capture_output=True, text=True).stdout
    console = Console(record=True, width=112, file=io.StringIO(), highlight=False)
    console.print("$ cd ~/code/lantern && claude\n")
    for line in told.split("=== People")[0].rstrip().split("\n"):
        style = "bold cyan" if line.startswith("===") else "dim" if line.startswith(">") else ""
        console.print(Text(line, style=style))
    svg = console.export_svg(title="told to the next session of lantern", unique_id="start")
    return re.sub(r"@font-face \{.*?\}", "", svg, flags=re.DOTALL)  # a picture fetches nothing


def _take(browser: Browser, address: str, picture: Picture) -> bytes:
    width, height = picture.size
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme="dark" if picture.scheme == "dark" else "light",
        reduced_motion="reduce",
        locale="en-GB",
        timezone_id="UTC",
    )
    page = context.new_page()
    page.goto(address)
    while page.locator(".head .badge").text_content() != "Agent: watching":
        page.wait_for_timeout(500)
        page.reload()
    for link in picture.links:
        with page.expect_navigation():
            page.locator(link).locator("visible=true").first.click()
    page.mouse.move(0, height - 1)
    taken = page.screenshot(animations="disabled", caret="hide")
    context.close()
    return taken


if __name__ == "__main__":
    main(sys.argv[1:])
