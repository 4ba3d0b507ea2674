"""Invented secrets of every format, the disguises in which transcripts hold them, and text that only looks like them.

Everything is drawn from a `random.Random`, so that a run can be repeated and another seed is another corpus. Formats
are spelled out here a second time, not read from the table: a prefix that the table has wrong is found.
"""

from __future__ import annotations

import base64
import json
import string
import textwrap
import uuid
from collections.abc import Callable
from random import Random
from typing import NamedTuple
from urllib.parse import quote

ALNUM = string.ascii_letters + string.digits
URLSAFE = ALNUM + "-_"
BASE64 = ALNUM + "+/"
HEX = "0123456789abcdef"
BASE32 = string.ascii_uppercase + "234567"
PROSE = """
the queue of lantern keeps its order while workers retry because nothing may be lost and each step is written down
before it is made so that a crash leaves files as they were we chose sqlite over a folder of json lines since search
must stay fast tests cover replay timeout and the empty case next the summary says what remains open
"""
WORDS = PROSE.split()


class Made(NamedTuple):
    """A text and the secret in it."""

    text: str
    secret: str


class Hidden(NamedTuple):
    """A text, and the pieces of the secret of which none may be left in it."""

    text: str
    pieces: tuple[str, ...]


def some(dice: Random, count: int, alphabet: str = ALNUM) -> str:
    """So many characters."""
    return "".join(dice.choices(alphabet, k=count))


def coded(text: str) -> str:
    """Base64."""
    return base64.b64encode(text.encode()).decode()


def prose(dice: Random, words: int) -> str:
    """Plain words."""
    return " ".join(dice.choices(WORDS, k=words))


def pem(dice: Random, kind: str) -> str:
    """A private key in armour."""
    body = "\n".join(some(dice, 64, BASE64) for _ in range(dice.randint(3, 24))) + "\n" + some(dice, 40, BASE64) + "=="
    return f"-----{'BEGIN'} {kind}-----\n{body}\n-----{'END'} {kind}-----"


def jwt(dice: Random) -> str:
    """A signed token with claims."""
    parts = ({"alg": "HS256", "typ": "JWT"}, {"sub": some(dice, 10), "exp": dice.randint(1_700_000_000, 1_900_000_000)})
    head, claims = (coded(json.dumps(part)).rstrip("=") for part in parts)
    return f"{head}.{claims}.{some(dice, 43, URLSAFE)}"


def password(dice: Random) -> str:
    """As people and generators make them: letters and digits, some with marks."""
    middle = some(dice, dice.randint(9, 20), ALNUM + "!#$^_-")
    return some(dice, 1, string.ascii_letters) + middle + some(dice, 2, string.digits)


Maker = Callable[[Random], str | Made]


def _token(prefix: str, count: int, alphabet: str = ALNUM, tail: str = "") -> Maker:
    return lambda dice: prefix + some(dice, count, alphabet) + tail


def _around(frame: str, secret: Callable[[Random], str]) -> Maker:
    """`%` in the frame is where the secret stands."""

    def make(dice: Random) -> Made:
        inner = secret(dice)
        return Made(frame.replace("%", inner), inner)

    return make


def _service_account(dice: Random) -> Made:
    key = pem(dice, "PRIVATE KEY") + "\n"
    account = {"type": "service_account", "private_key_id": some(dice, 40, HEX), "private_key": key}
    return Made(json.dumps(account), json.dumps(key)[1:-1].split("KEY-----")[1])


def _runs(count: int, alphabet: str = ALNUM) -> Callable[[Random], str]:
    return lambda dice: some(dice, count, alphabet)


def _slack(kind: str) -> Maker:
    """A bot's token has two numbers and 24 characters, the others three numbers and 32."""
    numbers, tail = (2, 24) if kind == "b" else (3, 32)

    def make(dice: Random) -> str:
        ids = "-".join(some(dice, 12, string.digits) for _ in range(numbers))
        return f"xo{'x'}{kind}-{ids}-{some(dice, tail)}"

    return make


def _webhook(dice: Random) -> str:
    return f"T{some(dice, 9, BASE32)}/B{some(dice, 9, BASE32)}/{some(dice, 24)}"


def _private_key(kind: str) -> Maker:
    def make(dice: Random) -> Made:
        block = pem(dice, "PGP PRIVATE KEY BLOCK" if kind == "PGP" else f"{kind}PRIVATE KEY")
        return Made(block, block.split("-----")[2])

    return make


FORMATS: dict[str, Maker] = {
    "aws id AKIA": _token("AK" + "IA", 16, BASE32),
    "aws id ASIA": _token("AS" + "IA", 16, BASE32),
    "aws id ABIA": _token("AB" + "IA", 16, BASE32),
    "aws id ACCA": _token("AC" + "CA", 16, BASE32),
    "aws secret": _around("aws_secret_access_key = %", _runs(40, BASE64)),
    "aws bedrock": _token("AB" + "SKQmVkcm9ja0FQSUtleS", 110, BASE64, "="),
    "github ghp": _token("gh" + "p_", 36),
    "github gho": _token("gh" + "o_", 36),
    "github ghu": _token("gh" + "u_", 36),
    "github ghs": _token("gh" + "s_", 36),
    "github ghr": _token("gh" + "r_", 36),
    "github fine-grained": lambda dice: f"github{'_pat_'}{some(dice, 22)}_{some(dice, 59)}",
    "gitlab glpat": _token("gl" + "pat-", 20, URLSAFE),
    "gitlab gldt": _token("gl" + "dt-", 20, URLSAFE),
    "gitlab glrt": _token("gl" + "rt-", 20, URLSAFE),
    "gitlab glcbt": lambda dice: "gl" + f"cbt-{some(dice, 2, HEX)}_{some(dice, 20, URLSAFE)}",
    **{f"slack xox{kind}": _slack(kind) for kind in "bpare"},
    "slack xapp": lambda dice: (
        "xa" + f"pp-1-A{some(dice, 10, BASE32)}-{some(dice, 12, string.digits)}-{some(dice, 64, HEX)}"
    ),
    "slack webhook": _around("https://hooks.sl" + "ack.com/services/%", _webhook),
    "openai": lambda dice: f"sk{'-'}{some(dice, 20)}T3BlbkFJ{some(dice, 20)}",
    "openai project": _token("sk" + "-proj-", 120, URLSAFE),
    "openai service account": _token("sk" + "-svcacct-", 120, URLSAFE),
    "anthropic api": _token("sk" + "-ant-api03-", 93, URLSAFE, "AA"),
    "anthropic admin": _token("sk" + "-ant-admin01-", 93, URLSAFE, "AA"),
    "google api": _token("AI" + "za", 35, URLSAFE),
    "google client secret": _token("GOC" + "SPX-", 28, URLSAFE),
    "google access": _token("ya" + "29.", 120, URLSAFE),
    "google service account": _service_account,
    "azure application": lambda dice: f"{some(dice, 3)}8Q~{some(dice, 34, ALNUM + '-._~')}",
    "azure storage": _around("AccountName=x;Account" + "Key=%==;EndpointSuffix=core", _runs(86, BASE64)),
    "azure shared access": _around("https://x.blob.core.windows.net/c?sv=2024-11-04&si" + "g=%", _runs(43)),
    "stripe live": _token("sk" + "_live_", 24),
    "stripe restricted": _token("rk" + "_live_", 99),
    "stripe webhook": _token("wh" + "sec_", 32),
    "twilio": _token("S" + "K", 32, HEX),
    "sendgrid": lambda dice: f"S{'G'}.{some(dice, 22, URLSAFE)}.{some(dice, 43, URLSAFE)}",
    "mailgun": _token("key" + "-", 32, HEX),
    "telegram": lambda dice: Made(f"{some(dice, 10, '123456789')}:A{'A'}{(s := some(dice, 33, URLSAFE))}", s),
    "discord": lambda dice: f"{coded(some(dice, 18, '123456789'))}.{some(dice, 6, URLSAFE)}.{some(dice, 38, URLSAFE)}",
    "npm": _token("np" + "m_", 36),
    "pypi": _token("py" + "pi-AgEIcHlwaS5vcmc", 120, URLSAFE),
    "hugging face": _token("h" + "f_", 34, string.ascii_letters),
    "databricks": _token("da" + "pi", 32, HEX),
    "digitalocean": _token("do" + "p_v1_", 64, HEX),
    "vault": _token("hv" + "s.", 92, URLSAFE),
    "age": _token("AGE-SEC" + "RET-KEY-1", 58, "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L"),
    "perplexity": _token("pp" + "lx-", 48),
    "groq": _token("gs" + "k_", 52),
    "xai": _token("xa" + "i-", 80),
    "linear": _token("lin" + "_api_", 40),
    "notion": _token("nt" + "n_", 46),
    "supabase": _token("sb" + "p_", 40, HEX),
    "jwt": jwt,
    **{
        f"private key {kind or 'PKCS 8'}": _private_key(kind)
        for kind in ("RSA ", "EC ", "OPENSSH ", "ENCRYPTED ", "", "PGP")
    },
    "header bearer": _around("Authoriz" + "ation: Bearer %", _runs(40, URLSAFE)),
    "header basic": _around("Authoriz" + "ation: Basic %", lambda dice: coded(f"ada:{password(dice)}")),
    "curl -u": _around("curl -u ada:% https://x.example/v1", password),
    "cookie": _around("Cook" + "ie: session=%; theme=dark", _runs(40)),
    "url login": _around("https://ada:%@git.example/r.git", lambda dice: some(dice, 20)),
    "database login": _around("postgres://svc:%@db.internal:5432/app", lambda dice: some(dice, 16)),
    "env password": _around("DB_PASS" + "WORD=%", password),
    "env api key": _around("SERVICE_API" + "_KEY=%", _runs(32)),
    "yaml password": _around("  pass" + "word: %", password),
    "json secret": _around('{"client_sec' + 'ret": "%", "a": 1}', _runs(40)),
    "json token": _around('{"access_to' + 'ken": "%"}', _runs(64, URLSAFE)),
}


def make(name: str, dice: Random) -> Made:
    """A new secret of a format."""
    made = FORMATS[name](dice)
    return made if isinstance(made, Made) else Made(made, made)


def _pieces(text: str, least: int = 10) -> tuple[str, ...]:
    """What may not be left: every run of so many characters, looked at in steps (marks and line ends part runs)."""
    return tuple(text[at : at + least] for at in range(0, max(1, len(text) - least + 1), least))


def _lines(secret: str) -> tuple[str, ...]:
    return tuple(piece for line in secret.split("\n") for piece in _pieces(line.strip()) if len(piece) >= 6)


def _wrapped(made: Made, dice: Random) -> Hidden:
    """A terminal broke the line in the second half of the secret, or the lines of a key block."""
    text, secret = made
    if "\n" in secret:
        lines = [part for line in text.split("\n") for part in (textwrap.wrap(line, 48) or [""])]
        return Hidden("\n".join(lines), _pieces(secret.replace("\n", "")[5:40]))
    cut = dice.randint(max(len(secret) // 2, min(16, len(secret) - 1)), len(secret) - 1)
    at = text.index(secret) + cut
    rest = (secret[cut:],) if len(secret) - cut >= 6 else ()
    return Hidden(f"{text[:at]}\n{text[at:]}", (*_pieces(secret[:cut]), *rest))


def _base64(made: Made, dice: Random) -> Hidden:
    text = f"{prose(dice, 3)} {made.text}\n"
    start = text.index(made.secret)
    inner = coded(text)[(start + 2) // 3 * 4 : (start + len(made.secret)) // 3 * 4]
    return Hidden(f"data: {coded(text)}\n", _pieces(inner))


def _url(made: Made, _: Random) -> Hidden:
    encoded = quote(made.secret, safe="").replace("%0A", "\n")
    return Hidden(f"POST /log?message={quote(made.text, safe='')}&level=info", _lines(encoded))


def _json(levels: int) -> Callable[[Made, Random], Hidden]:
    def hide(made: Made, _: Random) -> Hidden:
        text = json.dumps({"output": f"line\n{made.text}\n"})
        for _level in range(1, levels):
            text = json.dumps(text)
        return Hidden(text, _lines(made.secret))

    return hide


def _framed(before: str, after: str) -> Callable[[Made, Random], Hidden]:
    def hide(made: Made, dice: Random) -> Hidden:
        return Hidden(f"{prose(dice, 6)}{before}{made.text}{after}{prose(dice, 6)}", _lines(made.secret))

    return hide


def _diff(made: Made, _: Random) -> Hidden:
    return Hidden("@@ -1 +1 @@\n+" + made.text.replace("\n", "\n+"), _lines(made.secret))


def _crlf(made: Made, _: Random) -> Hidden:
    return Hidden(f"a\r\n{made.text}\r\nb\r\n".replace("\r", "").replace("\n", "\r\n"), _lines(made.secret))


def _escaped(made: Made, _: Random) -> Hidden:
    return Hidden(f"KEY={made.text}\n".replace("\n", "\\n"), _lines(made.secret.replace("\\n", "\n")))


DISGUISES: dict[str, Callable[[Made, Random], Hidden]] = {
    "prose": _framed(" ", " "),
    "code block": _framed("\n```sh\n$ echo '", "'\n```\n"),
    "trailing full stop": _framed(" ", ". "),
    "trailing comma": _framed(" (", "), "),
    "JSON": _json(1),
    "JSON in JSON": _json(2),
    "diff": _diff,
    "CRLF": _crlf,
    "escaped newlines": _escaped,
    "line wrap": _wrapped,
    "percent-encoded": _url,
    "base64": _base64,
}


def _hashes(dice: Random) -> str:
    return f"{some(dice, 64, HEX)}  dist/pkg-{dice.randint(1, 9)}.tar.gz sha256:{some(dice, 64, HEX)}"


def _git_log(dice: Random) -> str:
    return f"commit {some(dice, 40, HEX)} ({some(dice, 7, HEX)}) Author: Ada <ada@example.org> {prose(dice, 5)}"


def _package_lock(dice: Random) -> str:
    return (
        '      "resolved": "https://registry.npmjs.org/@scope/token-kit/-/token-kit-7.24.1.tgz", "integrity": "sha512-'
        + base64.b64encode(dice.randbytes(64)).decode()
        + '",'
    )


def _other_lock(dice: Random) -> str:
    digest = base64.b64encode(dice.randbytes(32)).decode()
    return dice.choice(
        (
            f'    {{file = "key-1.0-py3-none-any.whl", hash = "sha256:{some(dice, 64, HEX)}"}},',
            f'checksum = "{some(dice, 64, HEX)}"',
            f"golang.org/x/auth v0.17.0/go.mod h1:{digest}",
            f'"@babel/token@^7.0.0": resolved "https://registry.yarnpkg.com/a/-/a-1.0.tgz#{some(dice, 40, HEX)}"',
            f"    --hash=sha256:{some(dice, 64, HEX)}",
        )
    )


def _ids(dice: Random) -> str:
    ours = some(dice, 16, "abcdefghijklmnopqrstuvwxyz234567")
    unique = uuid.UUID(bytes=dice.randbytes(16), version=4)
    return f"session_token: {ours} id {unique} memory/2026-03-07T12-22-46.143Z--{ours}--transcript.md"


def _image(dice: Random) -> str:
    return f"![](data:image/png;base64,{base64.b64encode(b'PNG' + dice.randbytes(600)).decode()})"


def _script(dice: Random) -> str:
    name = some(dice, 2, string.ascii_lowercase)
    return (
        f"function {name}(e,t){{var n=e.token,r=t.key||{dice.randint(1, 99)};return n?n.get(r):void 0}}"
        f'{name}.secret=function(e){{return this.auth=e}};a.password=b("{prose(dice, 1)}");'
    )


LOOK_ALIKES: dict[str, Callable[[Random], str]] = {
    "hashes": _hashes,
    "git log": _git_log,
    "package-lock.json": _package_lock,
    "poetry, Cargo, go, yarn, pip": _other_lock,
    "ids and tokens of ours": _ids,
    "base64 images": _image,
    "minified JavaScript": _script,
    "prose": lambda dice: f"{prose(dice, 14)}: {prose(dice, 4)} = {dice.randint(1, 9999)}",
}
