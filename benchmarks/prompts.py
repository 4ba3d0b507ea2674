"""What is injected at a prompt: how often the answer to a question, how often anything without need, how fast.

`python -m benchmarks.prompts FOLDER` reads sessions with questions in the format of `benchmarks/labelled.py`,
imports them, and asks each question in the folder of its session's project and in another folder. Prompts that have
nothing to do with the sessions are asked in the folder of each project. At the end, the same of `recall`. `--half 0` or
`1` takes every second one: one half is for tuning, the other one confirms. `--seconds WORKSPACE` instead times the hook
in an indexed workspace over bare Python, in the environment of the caller.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.labelled import Record, sessions_of, share, workspace
from signet_sync.pages import context
from signet_sync.pages.context import MOST_INJECTED
from signet_sync.pages.prompt_context import choose_hits
from signet_sync.recall.operations import recall
from signet_sync.recall.store.rows import Within
from signet_sync.storage import locations
from signet_sync.storage.database.connection import Database
from signet_sync.sync.store.sessions import projects
from signet_sync.text.prompt import find_search_words

ELSEWHERE = "/nowhere/at/all"
UNRELATED = tuple(
    line.strip()
    for line in """
    Write a function in Python that reverses a linked list
    What is the difference between TCP and UDP?
    Can you refactor this component to use hooks instead of classes?
    Please fix the failing unit test in test_parser.py
    Add a dark mode toggle to the preferences dialog
    How do I center a div with flexbox?
    Explain the borrow checker to me
    Rename the variable foo to customerName everywhere in this file
    Draft a letter to the landlord about the broken heating
    Let's set up ESLint and prettier here
    Generate a README for this folder
    Why is my Docker image so large?
    Convert this CSV into a Markdown table
    Run the tests and show me the failures
    Commit everything with a sensible message
    Which port does PostgreSQL use by default?
    Make the button blue and a bit larger
    Give me five name ideas for a coffee shop
    Update the dependencies to their newest versions
    What does this regex do: ^(\\d{3})-(\\d{4})$
    Create a GitHub Action that deploys to Netlify on push
    I get a segmentation fault when I call free twice
    Translate the following paragraph into French
    How can I speed up this SQL query with three joins?
    Write a bash script that deletes files older than 30 days
    Show me the git log of the last week
    Add type hints to utils.py
    What's the weather like on Mars?
    Implement quicksort in Rust
    Plan a three day trip to Vienna for two people
    Please review my pull request
    Install the Kubernetes client and list the pods
    Can you make the navigation bar sticky?
    Add pagination to the list of blog posts
    The login page throws a 500 error, please investigate
    Write unit tests for the date helper
    Replace moment.js by date-fns
    Summarize this article in three bullet points
    Implement an LRU cache with a capacity of 100
    Explain how OAuth works
    Build me a snake game in the terminal
    Use async await here instead of callbacks
    Document the public API of the class Matrix
    ok do it
    yes please
    thanks, looks good
    continue
    What is the capital of Australia?
    Write a haiku about autumn leaves
    Compute the eigenvalues of a 3x3 matrix with numpy
    Schreibe eine Funktion, die Primzahlen berechnet
    Wie installiere ich Node auf Ubuntu?
    日本語でこんにちはは何と言いますか
    请写一个冒泡排序
    Escribe un poema sobre el mar
    Hilf mir, eine Bewerbung zu formulieren
    Add a spinner while the data is loading
    Fix the typo in the heading
    Check whether the links in the footer work
    Migrate the tests from unittest to pytest
    Could we use Redis for the sessions?
    What happened in the French Revolution?
    Which JavaScript framework should I learn first?
    How was the pyramid of Giza built?
    Is there a way to make vim the default editor?
    Should we switch to a monorepo?
    Why did the Roman Empire fall?
    Turn the class Invoice into a dataclass
    Remove all console.log statements
    Open the file and tell me what it does
    Does Go have generics?
    Print the first hundred Fibonacci numbers
    I want a landing page with three columns
    The sidebar overlaps the content on small screens
    Write a regular expression for e-mail addresses
    Which colours go well with dark green?
    Add logging to the payment module
    How many planets were discovered before 1800?
    Sort this array by the second column
    Make a chart of the temperatures in 2020
    Extract the strings into a translation file
    My laptop was repaired, how do I restore the backup?
    Set the line height to 1.5
    Prepare slides about photosynthesis
    Convert the images to WebP
    Add a test for the empty list
    What is a monad?
    Rewrite this in TypeScript
    Explain this stack trace: NullPointerException at Main.java:12
    Which of my files are larger than 100 MB?
    Quelle est la recette de la ratatouille ?
    Напиши программу, которая считает слова
    Warum ist der Himmel blau?
    明日の天気を教えてください
    Cuéntame un chiste
    Split this function, it is too long
    Undo the last change
    Where is the config of nginx?
    Add a column age to the table users
    Remind me how to undo a git commit
    """.strip().split("\n")
)


class Asked(NamedTuple):
    """A question, its kind, the sessions that answer it, and its project."""

    words: str
    kind: str
    sessions: frozenset[str]
    project: str


def questions_of(sessions: Sequence[Record]) -> Iterator[Asked]:
    """The questions of the sessions."""
    for session in sessions:
        for one in session["questions"]:
            yield Asked(one["q"], one["kind"], frozenset(one["session_ids"]), session["project"])


class Answers:
    """What the hook would inject, from an indexed database."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def recalled(self, question: str) -> list[str]:
        """The sessions of the hits of `recall`, each once, the best first."""
        paths = [hit.path for hit in recall(self.database, question, Within("default")) if hit.path]
        known = projects(self.database, paths)
        return list(dict.fromkeys(known[path][0] for path in paths if path in known))

    def sessions(self, prompt: str, folder: str) -> list[str]:
        """The sessions of the lines that are injected; "" for a line without one."""
        words = find_search_words(prompt)
        if not words:
            return []
        _, belongs = context.name_project(folder)
        hits = choose_hits(self.database, "default", words, belongs)[:MOST_INJECTED]
        known = projects(self.database, [hit.path for hit in hits if hit.path])
        return [known.get(hit.path or "", ("", None))[0] for hit in hits]


def quality(sessions: Sequence[Record], half: int | None, misses: bool) -> Iterator[str]:
    """The table, line by line."""
    asked = [one for place, one in enumerate(questions_of(sessions)) if half is None or place % 2 == half]
    unrelated = [one for place, one in enumerate(UNRELATED) if half is None or place % 2 == half]
    projects = sorted({one.project for one in questions_of(sessions)})
    with workspace(sessions) as (root, environment):
        database = Database(locations.locate(str(root), environment).database, readonly=True)
        answers = Answers(database)
        try:
            for title, elsewhere in (("in the project's folder", False), ("in another folder", True)):
                hit: defaultdict[str, list[bool]] = defaultdict(list)
                missed = []
                for one in asked:
                    found = answers.sessions(one.words, ELSEWHERE if elsewhere else one.project)
                    hit[one.kind].append(not one.sessions.isdisjoint(found))
                    if not hit[one.kind][-1]:
                        missed.append(f"    {one.kind}: {one.words} ({len(found)} lines)")
                shares = (f"{kind} {share(sum(good), len(good)).strip()}" for kind, good in sorted(hit.items()))
                yield f"answering session among {MOST_INJECTED} lines, {title}: {', '.join(shares)}"
                yield from missed if misses else ()
                folders = [ELSEWHERE] if elsewhere else projects
                wrong = [(one, bool(answers.sessions(one, folder))) for one in unrelated for folder in folders]
                part = share(sum(bad for _, bad in wrong), len(wrong)).strip()
                yield f"  unrelated prompts that get anything: {part}"
                yield from (f"    {one}" for one in dict.fromkeys(one for one, bad in wrong if bad) if misses)
            for first in (1, 5, 10):
                hit = defaultdict(list)
                for one in asked:
                    hit[one.kind].append(not one.sessions.isdisjoint(answers.recalled(one.words)[:first]))
                shares = (f"{kind} {share(sum(good), len(good)).strip()}" for kind, good in sorted(hit.items()))
                yield f"answering session among {first} of `recall`: {', '.join(shares)}"
        finally:
            database.connection.close()


def seconds(root: str, rounds: int, folder: str) -> Iterator[str]:
    """How long the hook takes over bare Python, as processes that alternate."""
    base = {"session_id": "", "transcript_path": "/nowhere/session.jsonl", "cwd": folder}
    events: Mapping[str, Mapping[str, str]] = {
        "session start": {"hook_event_name": "SessionStart", "source": "startup"},
        "prompt about earlier work": {
            "hook_event_name": "UserPromptSubmit", "prompt": "why did we change the retry limit of the queue worker?",
        },
        "prompt": {
            "hook_event_name": "UserPromptSubmit", "prompt": "fix the flaky timeout in the webhook handler of billing",
        },
    }  # fmt: skip
    took: defaultdict[str, list[float]] = defaultdict(list)
    for number in range(rounds):
        for name, event in events.items():
            given = json.dumps({**base, **event, "session_id": f"benchmark-{number}-{name}"}).encode()
            hook = [sys.executable, "-P", "-m", "signet_sync", "--workspace", root, "hook", "claude-code"]
            took[name].append(_seconds(hook, given))
            took["bare Python"].append(_seconds([sys.executable, "-P", "-c", "pass"], b""))
    bare = statistics.median(took.pop("bare Python"))
    for name, all_of_it in took.items():
        over = [1000 * (one - bare) for one in all_of_it]
        middle, best = statistics.median(over), min(over)
        yield f"{name}: {middle:.0f} ms over bare Python (best {best:.0f}; bare {1000 * bare:.0f})"


def _seconds(words: Sequence[str], given: bytes) -> float:
    began = time.perf_counter()
    subprocess.run(words, input=given, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints the table of a folder, or the times in a workspace."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.prompts", description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--half", type=int, choices=(0, 1))
    parser.add_argument("--misses", action="store_true", help="list questions without their answer, and what was wrong")
    parser.add_argument("--seconds", metavar="WORKSPACE", help="time the hook in this workspace")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument(
        "--project", default="/home/rowan/src/lantern-web", help="the folder in which the hook is timed"
    )
    options = parser.parse_args(arguments)
    if options.seconds:
        lines = seconds(options.seconds, options.rounds, options.project)
    elif options.folder and (sessions := sessions_of(options.folder)):
        lines = quality(sessions, options.half, options.misses)
    else:
        raise SystemExit("give a folder in the format of benchmarks/labelled.py, or --seconds WORKSPACE")
    for line in lines:
        print(line)


if __name__ == "__main__":
    main()
