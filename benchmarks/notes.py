"""How often a model hands its work over when the start's line asks for it, and when it does not.

`python -m benchmarks.notes MODEL` asks a server with the form of Anthropic's (`--endpoint`) with your own key
(`ANTHROPIC_API_KEY`), `--times` for each of a few invented turns, with and without the line. Each call costs tokens. It
shows a model's habit on short turns; what agents do in long sessions is counted by `signet-sync status`.
"""

from __future__ import annotations

import argparse
import json
import os
import urllib.request
from collections import Counter
from collections.abc import Iterator

from benchmarks.labelled import share
from signet_sync.capture.hook import REQUEST
from signet_sync.digest.reports import note_lines

SYSTEM = "You are a coding agent in a terminal. The tools of this turn have run; write its report now, in Markdown."
# What was asked, what the tools did, and whether there is anything to hand over.
TURNS = (
    ("Make the importer skip empty files.", "Edited src/importer.py, added a test; 41 passed.", True),
    (
        "Rename Queue to Backlog everywhere.",
        "Edited 14 files; 2 tests fail in tests/test_api.py.",
        True,
    ),
    ("Publish the package.", "Ran twine upload: 403, the token has no right for this project.", True),
    ("Try the new parser on the fixtures.", "It raised on 3 of 20 fixtures; git checkout . took it back.", True),
    ("SQLite or files for the cache? Decide and do it.", "Wrote src/cache.py with SQLite; measured 4 ms a read.", True),
    ("What does the flag --keep do?", "Read src/cli.py: it keeps temporary folders.", False),
    ("Where are retries configured?", "Searched: config/default.toml, [queue] retries = 5.", False),
)


def answers(given: argparse.Namespace, system: str, asked: str, did: str) -> Iterator[str]:
    """Yields reports of the model on one turn."""
    words = [{"role": "user", "content": f"{asked}\n\n<results>\n{did}\n</results>"}]
    body = {"model": given.model, "max_tokens": 800, "system": system, "messages": words}
    headers = {"content-type": "application/json", "anthropic-version": "2023-06-01"}
    headers["x-api-key"] = os.environ["ANTHROPIC_API_KEY"]
    for _ in range(given.times):
        request = urllib.request.Request(f"{given.endpoint}/v1/messages", json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request, timeout=120) as answer:
            yield "".join(part.get("text", "") for part in json.load(answer)["content"])


def main() -> None:
    """Prints, with and without the line, how many reports end with a note where one is due, and where none is."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.notes", description=__doc__)
    parser.add_argument("model")
    parser.add_argument("--endpoint", default="https://api.anthropic.com")
    parser.add_argument("--times", type=int, default=5)
    given = parser.parse_args()
    for name, system in (("off", SYSTEM), ("on", f"{SYSTEM}\n\n{REQUEST}")):
        total: Counter[str] = Counter()
        for asked, did, due in TURNS:
            for report in answers(given, system, asked, did):
                noted = note_lines(report)
                total.update({f"{due}": 1, f"{due} noted": bool(noted), "lines": len(noted)})
        working, idle = (share(total[f"{one} noted"], total[f"{one}"]) for one in (True, False))
        print(f"{name}: {working} of {total['True']} turns with something to hand over")
        print(f"     {idle} of {total['False']} others, {total['lines']} lines")


if __name__ == "__main__":
    main()
