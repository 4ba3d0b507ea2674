"""How fast secrets are looked for: MB/s at 1, 4, 16 and 64 MB, and how the time grows from the first to the last.

`python -m benchmarks.sanitizer` (`--largest 16` for a quicker look). Goals: 1 MB of transcript in at most 0.3 s, and 64
times the text in at most 70 times the time. The hostile texts repeat what opens a rule, so that as many patterns as
possible begin and none gets anywhere, or hold a secret every twenty bytes. Times are of this process.
"""

from __future__ import annotations

import argparse
import base64
import random
import string
import time
from collections.abc import Callable, Iterable

from signet_sync.contracts.sanitizer import sanitize_transcript_v2

MB = 1_000_000
SIZES = (1, 4, 16, 64)
_ALNUM = string.ascii_letters + string.digits
_PROSE = """
the queue keeps its order while workers retry because nothing may be lost and each step is written down before it is
made so that a crash leaves files as they were we chose sqlite over a folder of json lines since search must stay fast
tests cover replay timeout and the empty case next the summary says what remains open token password key secret
"""
_WORDS = _PROSE.split()


def _repeated(piece: str) -> Callable[[int], str]:
    return lambda size: (piece * (size // len(piece) + 1))[:size]


def _turns(seed: int, secrets: int) -> Callable[[int], str]:
    """A transcript: prose, code, tool calls, hashes and paths; a secret in one of so many turns, or (0) in none."""

    def make(size: int) -> str:
        dice = random.Random(seed)
        block: list[str] = []
        length = 0
        # One stretch of a megabyte, repeated: what is looked at is the same for every size.
        while length < min(size, MB):
            block.append(_turn(dice, secrets > 0 and dice.randrange(secrets) == 0))
            length += len(block[-1])
        text = "".join(block)
        return (text * (size // len(text) + 1))[:size]

    return make


def _turn(dice: random.Random, leaking: bool) -> str:
    def words(count: int) -> str:
        return " ".join(dice.choices(_WORDS, k=count))

    def some(count: int, alphabet: str = _ALNUM) -> str:
        return "".join(dice.choices(alphabet, k=count))

    lines = [
        f"## Assistant · 2026-03-29T12:{dice.randrange(60):02d}:00.000Z",
        "",
        f"{words(60).capitalize()}. {words(40)} — {words(20)}.",
        "",
        f"- `Read` src/{words(1)}/{words(1)}_{words(1)}.py: {dice.randrange(900)} lines",
        "```python",
        f"def {words(1)}_{words(1)}(self, token: str = None) -> dict[str, int]:",
        f'    self.{words(1)} = {{"{words(1)}": tokens[{dice.randrange(9)}], "at": "{words(3)}"}}',
        "```",
        f"commit {some(40, '0123456789abcdef')} {words(8)}",
    ]
    if leaking:
        lines.append(dice.choice((f"export API_KEY={some(40)}", f"gh{'p_'}{some(36)}", f"password: {some(14)}7!")))
    return "\n".join(lines) + "\n\n"


REALISTIC = {
    "plain transcript": _turns(1, 0),
    "with secrets": _turns(2, 3),
    "base64 image, one line": lambda size: base64.b64encode(random.Random(3).randbytes(size * 3 // 4)).decode(),
    "minified code, one line": _repeated('function e(t,n){var r=t.token,o={key:n||"a1"};return o[r]?t(o):void 0}'),
}
HOSTILE = {
    piece[:24]: _repeated(piece)
    for piece in (
        *("a", "=", ":", ".", "%3A", "%", "\\", "\"'`", '\\\\\\"', "://", "-----BEGIN", "eyJ", "AKIA", "://a:b"),
        *("-----BEGIN RSA PRIVATE KEY-----", "ghp_a", "xoxb-", "sk-a1", "SG.aaaaaaaaaaaaaaaaaaaa", "cookie: a="),
        *("password=", 'token: "', "Authorization: bearer ", "MMMMMMMMMM.", "a1Q~", "dapi", "curl -u ", "key-", "sig="),
        *("sk-aaaaaaaaaaaaaaaa\n", "ya29.aaaaaaaaaaaaaaaa  \\  \n", "VG9rZW4gaXMgZ2hwXw", "token%3D"),
    )
}
DENSE = {
    piece[:24]: _repeated(piece)
    for piece in ("token=a1b2c3d4e5f6 ", "AKIA0123456789ABCDEF ", "curl -u a:b1c2d3 ", "m=token%3Da1b2c3d4e5f6&")
}


def seconds(text: str) -> float:
    """Of processor time; the best of three where that is soon done."""
    best = float("inf")
    for _ in range(3 if len(text) < 16 * MB else 1):
        start = time.process_time()
        sanitize_transcript_v2(text)
        best = min(best, time.process_time() - start)
    return best


def _table(title: str, texts: Iterable[tuple[str, Callable[[int], str]]], sizes: list[int]) -> None:
    print(f"\n{title}")
    print(f"  {'':26}" + "".join(f"{size:>5} MB" for size in sizes) + "   s for 1 MB   growth")
    for name, make in texts:
        times = [seconds(make(size * MB)) for size in sizes]
        speeds = "".join(f"{size / took:8.1f}" for size, took in zip(sizes, times, strict=True))
        growth = f"{times[-1] / times[0]:7.1f}x" if len(sizes) > 1 else ""
        print(f"  {name!r:26}{speeds}   {times[0]:10.3f} {growth}", flush=True)


def main() -> None:
    """Prints the tables: MB/s by size."""
    parser = argparse.ArgumentParser(description="MB/s of the sanitizer, by size of the text")
    parser.add_argument("--largest", type=int, default=SIZES[-1], help="MB (default: %(default)s)")
    sizes = [size for size in SIZES if size <= parser.parse_args().largest] or [SIZES[0]]
    sanitize_transcript_v2("password=" + "hunter2hunter2")  # the table is read now
    ends = sorted({sizes[0], sizes[-1]})
    _table("Transcripts and files, MB/s", REALISTIC.items(), sizes)
    _table("Hostile: beginnings of rules, MB/s", HOSTILE.items(), ends)
    _table("Hostile: a secret every twenty bytes, MB/s", DENSE.items(), ends)


if __name__ == "__main__":
    main()
