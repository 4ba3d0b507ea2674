"""The sanitizer: every format of the table, look-alikes, laws (pure, idempotent, total, linear), real vaults."""

from __future__ import annotations

import base64
import random
import string
import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from workbench import sampled

from signet_sync.cli.main import _json
from signet_sync.entities import agent_text
from signet_sync.formats.body import normalize
from signet_sync.formats.paths import display
from signet_sync.text.passages import words_of
from signet_sync.text.sanitizer import SANITIZER_VERSION, sanitize_line, sanitize_normalized, sanitize_transcript_v2
from signet_sync.text.secrets import marked
from signet_sync.text.secrets.engine import redact
from signet_sync.text.secrets.providers import forms
from signet_sync.text.secrets.searched_text import SearchedText
from signet_sync.text.sentences import flatten
from signet_sync.web.formatting import spell_out_unseen

# The rules that are no lines of a table, and those of the marks.
BY_HAND = {rule.name for rules in marked._rules().values() for rule in rules} | set(
    "private-block-base64 jwt jwt-base64 aws-pair azure-marked telegram ably ghost salesforce discord mailchimp"
    " new-relic maxmind rapidapi assignment kubernetes percent-encoded base64 printed recovery".split()
)
# Every rule that stands in a mark: the table's, and those that are written out in code.
RULES = sorted({form.rule for form in forms()} | BY_HAND)

_dice = random.Random(20260329)
ALNUM = string.ascii_letters + string.digits
HEX = "0123456789abcdef"


def some(count: int, alphabet: str = ALNUM) -> str:
    """Invented, the same in every run, with a digit and both cases at its start whatever the dice say."""
    head = "a7" if alphabet == HEX else "7Qk"
    return head + "".join(_dice.choice(alphabet) for _ in range(count - len(head)))


def upper(count: int) -> str:
    return "".join(_dice.choice(string.ascii_uppercase + "234567") for _ in range(count))


def coded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def pem(kind: str = "RSA PRIVATE KEY", lines: int = 4, newline: str = "\n") -> str:
    body = newline.join(some(64) for _ in range(lines))
    return f"-----{'BEGIN'} {kind}-----{newline}{body}{newline}-----{'END'} {kind}-----"


# name of the rule → invented secrets: of what is written by hand, and of some forms of the table; put together here so
TOKENS: dict[str, list[str]] = {
    "private-block": [pem(), pem("OPENSSH PRIVATE KEY"), pem("PGP PRIVATE KEY BLOCK"), pem("ENCRYPTED PRIVATE KEY")],
    "private-block-base64": [coded(pem()), coded(pem("PRIVATE KEY"))],
    "jwt": ["ey" + f"JhbGciOiJIUzI1NiJ9.ey{'J'}{some(40)}.{some(43)}", "ey" + f"J{some(20)}.{some(40)}.{some(43)}"],
    "jwt-base64": [coded("ey" + f"JhbGciOiJIUzI1NiJ9.{some(40)}.{some(43)}")],
    "github": [f"gh{kind}_" + some(36) for kind in "pousr"] + ["gh" + "p_" + "A" * 36, "gh" + "p_" + "x1" * 18],
    "anthropic": [
        "sk-" + f"ant-api03-{some(93)}AA", "sk-" + f"ant-admin01-{some(93)}AA", "sk-" + "ant-api03-" + "a" * 93,
    ],
    "aws-id": [kind + upper(16) for kind in ("AK" + "IA", "AS" + "IA", "AB" + "IA", "AC" + "CA")],
    "azure-ad": ["aB3" + "8Q~" + some(34)],
    "discord": [coded("123456789012345678") + f".G{some(5)}.{some(38)}"],
    "base64": [coded("the key is gh" + f"p_{some(36)}")],
}  # fmt: skip
# name of the rule → text in which `{}` holds the secret, and the secret; the rest of the text must stay
IN_PLACE: dict[str, list[tuple[str, str]]] = {
    "slack-hook": [
        ("post to https://hooks.sl" + "ack.com/services/{} please", f"T0{upper(8)}/B0{upper(8)}/{some(24)}")
    ],
    "discord-hook": [("https://discord" + ".com/api/webhooks/123456789012345678/{}", some(68))],
    "azure-sas": [("https://x.blob.core.windows.net/c?sv=2024-01-01&si" + "g={}&se=2026", some(40) + "%3D")],
    "telegram": [("bot {} is up", "1234567890:A" + f"A{some(33)}")],
    "ghost": [("key {}.", some(24, HEX) + ":" + some(64, HEX))],
    "ably": [("key {} of it", "a7Qk9x.B2" + "cD3e:" + some(43))],
    "salesforce": [("sid {} of it", "00" + "D1a7Qk9xB2cD3!" + some(96))],
    "aws-pair": [("[REDACTED:aws-id],{}\n", some(38) + "/+")],
    "authorization": [
        ("curl -H 'Authorization: Bearer {}' https://x", some(40)),
        ('"authorization": "Bearer {}"', some(40) + "=="),
        (r"{{\"Authorization\": \"Bearer {}\"}}", some(30)),
        ("Authorization: Basic {}\r\n", coded("ada:" + some(12))),
        ("Proxy-Authorization: Basic {}", coded("ada:" + some(12))),
        ("headers['Authorization'] = 'token {}'", some(40, HEX)),
        ("AUTHORIZATION: ApiKey {}", some(40)),
        ("Authorization: Bearer {}", "x9Kq2" + "Zp1L"),
    ],
    "cookie": [
        ("Cookie: {}", f"sid={some(32)}; theme=dark"), ("set-cookie: {}", f"session={some(32)}; Path=/; HttpOnly"),
        ('-H "Cookie: {}"', f"a=b1234567; s={some(24)}"),
    ],
    "curl-user": [
        ("curl -u ada:{} https://x.example", some(10)),
        ("curl https://x \\\n  --user 'ada:{}'", some(10)),
        ("curl -iX PATCH --user ada:'{}' https://x", some(10)),
        ("curl -u {}: https://x.example", "x9Kq2" + "Zp1L"),
    ],
    "url-login": [
        ("postgres://svc_user:{}@db.internal:5432/app", some(18)),
        ("redis://:{}@cache:6379/0", "hunt" + "er2"),
        ("DATABASE_URL=mysql://root:{}@127.0.0.1/x?charset=utf8", "p@ss" + "w0rd"),
        ("https://x-access:{}@git.example/r.git and ada@example.org", some(20)),
    ],
    "percent-encoded": [
        ("https://x/log?m=DB_PASSWORD%3D{}&level=info", "hunt" + "er2hunter2"),
        ("https://x/log?m=a%3Db%26Authorization%3A+Bearer+{}%0Aand+more", some(40)),
        ("%7B%22client_secret%22%3A%20%22{}%22%7D", some(40)),
    ],
    "azure-marked": [
        ("key {} of it", some(52) + "JQQJ" + "99" + some(26)),
        ("pat {}.", some(76) + "AZ" + "DO" + "7Qk9"),
    ],
    "mailchimp": [("the list's {}", some(32, HEX) + "-us" + "12")],
    "new-relic": [("license {}", some(36, HEX) + "NR" + "AL")],
    "maxmind": [("{}", some(6) + "_" + some(29) + "_m" + "mk")],
    "rapidapi": [("{}", some(10, HEX) + "msh" + some(15, HEX) + "p1" + some(6, HEX) + "jsn" + some(12, HEX))],
    "teams-hook": [
        ("https://x.webhook.office.com/web" + "hookb2/{}", f"{some(36, HEX)}@{some(36, HEX)}/Incoming/{some(32, HEX)}")
    ],
    "zapier-hook": [("https://hooks.zapier.com/hooks/cat" + "ch/{}/", "1234567/a1b2c3d")],
    "google-chat-hook": [("https://chat.googleapis.com/v1/spaces/AA/messages?{}", f"key={some(39)}&token={some(43)}")],
    "option": [
        ("mysql -u root -p{} db", some(12)),
        ("sshpass -p '{}' ssh host", "x9Kq2Z,p1" + "LmRt5"),
        ("docker login -u ada -p {} registry.example", some(12)),
        ("redis-cli -h x -a {} ping", some(12)),
        ("openssl rsa -passin pass:{}", some(12)),
        ("echo {} | docker login --password-stdin -u ada", some(12)),
        ("ldapsearch -x -D cn=ada -w {} -b dc=x", some(12)),
    ],
    "statement": [
        ("CREATE USER ada IDENTIFIED BY '{}';", "letmein" + "please"),
        ('ConvertTo-SecureString -String "{}" -AsPlainText', "x9Kq2Z,p1" + "LmRt5"),
    ],
    "kubernetes": [
        ("apiVersion: v1\nkind: Secret\nmetadata:\n  name: db\ndata:\n  which: {}\n", coded("hunt" + "er2hunter2")),
        ('{{"kty": "oct", "k": "{}"}}', some(200)),
        ('{{"kind": "Secret", "stringData": {{"which": "{}"}}}}', "letmein" + "please"),
    ],
    "firebase": [("the server key {} of it", "AAAA" + some(7) + ":APA9" + "1b" + some(134))],
    "pgpass": [("db.example.com:5432:app:ada:{}", some(12))],
    "netrc": [
        ("machine h login ada password {}", "x9Kq2Zp1" + "LmRt5"),
        ("machine h\n  login ada\n  password {}", "lantern" + "orbit"),
    ],
    "login": [
        ("the credentials are admin / {}", "x9Kq2Zp1" + "LmRt5"), ('smtp.login("ada", "{}")', "lantern" + "orbit"),
        ('requests.get(u, auth=("ada", "{}"))', "lantern" + "orbit"),
        ("Zugangsdaten: admin / {}", "lantern-orbit-" + "walrus"),
    ],
    "printed": [
        ("$ cat /run/secrets/db_password\n{}\n$ ", some(14)),
        ("- `Bash` op read op://vault/db/password\n  ```\n  {}\n  ```", some(14)),
        ("kubectl get secret db -o jsonpath='{{.data.password}}' | base64 -d\n{}\n", some(14)),
    ],
    "recovery": [
        ("Recovery codes:\n{}", "a1b2c-" + "d3e4f\ng5h6i-" + "j7k8l\nm9n1o-" + "p2q3r"),
        ("seed phrase: {}", "lantern orbit walrus marble cactus violin" + " harbor pepper" * 3),
    ],
    "signature": [("https://x/y?X-Amz-Sig" + "nature={}", some(64, HEX))],
    "facebook": [("app 123456789012345|{} is up", some(27))],
    "masked": [
        ("::add-mask::{}", "lantern" + "orbit"),
        ("##vso[task.setvariable variable=API_KEY]{}", some(24)),
    ],
    "assignment": [
        ("DB_PASSWORD={}\nNEXT=1", "hunt" + "er2hunter2"),
        ("export API_KEY={}", some(24)),
        ("password: {}\n", "s3cr" + "et!pass"),
        ("  api_key : '{}'\n", some(32, HEX)),
        ('{{"client_secret": "{}", "a": 1}}', some(40)),
        (r"{{\"password\": \"{}\"}}", "Tr0ub" + "4dor&3"[:4] + "x9"),
        ('const token = "{}";', some(32)),
        ('self.secret_key: str = "{}"', some(50)),
        ("aws_secret_access_key = {}", some(38) + "/+"),
        ("AccountName=x;Account" + "Key={};EndpointSuffix=y", some(86) + "=="),
        ("os.environ['SECRET_TOKEN'] = '{}'", some(30)),
        ("https://x.example/cb?access_token={}&state=1", some(40)),
        ("+PASSWORD    = {}", "Pa$" + "$w0rd!"),
        ("**Token**: `{}`", some(40, HEX)),
        ("x-api-key: {}", some(40)),
        ("token={}", some(300)),
        ("//registry/:_authToken={}", some(36)),
        ("| user | password |\n| --- | --- |\n| ada | {} |", "letmein" + "please"),
        ("user,password\nada,{}\n", "Tr1cky" + "W1ck99"),
        ("id;password;host\n1;{};pier\n", "Tr1cky" + "W1ck99"),
        ("USER   PASSWORD       HOST\nada    {}   lamp\n", "Tr1cky" + "W1ck99"),
        ("password: >-\n  {}\nnext: 1", "x9Kq2Z,p1" + "LmRt5"),
        ("- name: DB_PASSWORD\n  value: {}", "letmein" + "please"),
        ("<password>{}</password>", "x9Kq2Z{{p1" + "LmRt5"), ("the db password is `{}`.", "x9Kq2Z;p1" + "LmRt5"),
        ("use {} as token", some(24)),
        ("Das Passwort lautet {}.", "x9Kq2Zp1" + "LmRt5"),
        ("AWS Secret Access Key [None]: {}", "/" + some(38) + "+"),
        ("SNYK_TOKEN={}", "885953dc-" + "1f1e-4a5b-9c3d-77af3b91c2d4"),
        ("os.environ.get('DB_PASSWORD', '{}')", "letmein" + "please"),
        ("define('DB_PASSWORD', '{}');", "letmein" + "please"),
        ("Server=db;Password={};Encrypt=true", "x9Kq2Z,p1" + "LmRt5"),
        ('"--token", "{}"', some(32)),
        ('"db_password": {{"sensitive": true, "type": "string", "value": "{}"}}', some(12)),
        ('["password"]=>\n  string(12) "{}"', some(12)),
        ("password\n  too short [type=string_too_short, input_value='{}', input_type=str]", some(12)),
        ('curl_easy_setopt(curl, CURLOPT_PASSWORD, "{}");', "letmein" + "please"),
        ("define( 'PASSWORD' , '{}' );", "letmein" + "please"),
        ("GİZLİ API ANAHTARI: {}", some(24)),  # in lower case it is another word
        ('if ("{}" == password) {{', some(14)),
        ('my_password_secure = "{}"', some(14)),
        ('password = "{}"', "lantern orbit " + "walrus marble"),
        ("<clientToken>\n    {}\n</clientToken>", some(32)),
        ('{{"log": "DB_PASSWORD={}"}}', "\\u0068unt" + "er2hunter2"),
        ("PRIVATE_KEY={}", "0x" + some(64, HEX)),
        # letters that form no words, words that form no text, digits that are no number
        ("password = {}", "VULFfFls" + "IebptmwQI"),
        ("apikey = {}", "lantern-orbit-" + "walrus-marble"),
        ('discord_token: "{}"', "83637410845072419658" + "551030920597"),
        ("APP_SECRET={}", "/h4iycbaRtLI229H" + "nea8/fINPqyzq0UQwIkEewgK"),
        ("Using Key={}", "cq73u5azj3p3shfvzz3l" + "w1typfqu6uduq7bo"),
        ('lanternware: "{}"', "9rvli8sm4jo18v5q" + "0q4n7vhkwbv2"),
        ("mixmax token = '{}'", "x9kq2zp1" + "lm5wx8"),
        ("Login / pass: ada / {}", "lantern-orbit-" + "walrus"),
        ("ID/PW: root/{}", "x9Kq2Zp1" + "LmRt5"),
        ("ID(admin) PW({})", "x9Kq2Zp1" + "LmRt5"),
        ("PSWORD={}", "hunt" + "er2hunter2"),
        # where a value begins
        ('const apiKey =\n  "{}";', some(32)),
        ('const appToken = "Token {}";', some(24)),
        ('public string Password {{ get; set; }} = "{}";', "lantern-orbit-" + "walrus"),
        ("https://api.lantern.example/v1?key={}", "9e4635bc-28dc-" + "25d3-8546-2b30115d9a7b"),
        ("<Value>the password: {}</Value>", "6Ew1T" + "hY0u"),
        ("user  | password | role\nada  | {} | admin", "x9Kq2Zp1" + "LmRt5"),
        ("password = {} # *", "x9Kq2*Zp1" + "LmRt5"),
    ],
}  # fmt: skip
LOOK_ALIKES = [
    "    passwd: HTTPPasswordMgr\n",
    "ssh://687fb701029421ae5549d998@ssh.example.com",
    "commit 9f2c4e8b7d6a5f4e3d2c1b0a9f8e7d6c5b4a3f2e fixes it, see 9f2c4e8",
    "sha256:" + "0f" * 32 + " and " + "ab12" * 16,
    'id: "550e8400-e29b-41d4-a716-446655440000", session_id 77516199-ef07-4ce2-ac85-8ade94ac29a7',
    "memory/2026-03-07T12-22-46.143Z--qkpkkgd3t5xcfoqm--transcript.md and session_token: qkpkkgd3t5xcfoqm",
    '"token": "ev:20261127T205117Z-01M8FCDPA544038MS1DAHK179Y"',
    '"integrity": "sha512-' + coded("x" * 64) + '",\n"resolved": "https://registry.example/a/-/a-1.0.0.tgz"',
    "![](data:image/png;base64," + coded("\x89PNG" + "pixel" * 60) + ")",
    'hash = "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="\n    --hash=sha256:' + "0a" * 32,
    "https://example.com:8080/path/@scope/pkg?x=1#y and ada@example.org, git@example.org:ada/repo.git",
    "postgres://user:password@host/db, scheme://user:pass@host, https://ci:${TOKEN}@host, https://u:<secret>@host",
    "token: the value that the lexer returns; secret: something nobody knows; password: forgot?",
    "password = get_password()\nsecret = None\ntoken = os.environ['TOKEN']\napi_key = settings.API_KEY",
    "token=$TOKEN password=${DB_PASSWORD} secret={{ secrets.X }} api_key=<your-key-1> token=%TOKEN1%",
    "token = tokens[0]; token = self.v2_token(x1); secret = oauth2_secret; password: str; password: SecretStr",
    "max_tokens: 128000, total_tokens=12345678, tokenizer: o200k_base, nextToken: 'abc123def456ghi7'",
    "token = 1234567890, secret: 2026-03-29T12:00:00.000Z, password_hash: abc, pwd: /home/ada/src1",
    "arn:aws:secretsmanager:eu-west-1:123456789012:secret:MySecret-a1b2c3",
    "sk-learn-estimator-with-2-words, task-1234567890123456789012345, risk-free-rate-of-2-percent-in-2026",
    "ghp_ and xoxb- and sk-ant- and AKIA are prefixes; xoxb-your-token-goes-here, sk-your-own-key-goes-here",
    "a file opens with `-----BEGIN RSA PRIVATE KEY-----` and closes with `-----END RSA PRIVATE KEY-----`.",
    "-----BEGIN CERTIFICATE-----\n" + coded("certificate" * 20) + "\n-----END CERTIFICATE-----",
    "-----BEGIN PUBLIC KEY-----\n" + coded("public" * 20) + "\n-----END PUBLIC KEY-----",
    "Authorization: Bearer <token>, Authorization: Bearer $TOKEN, the Basic authentication scheme",
    "Cookie: the one with chocolate; cookie: consent=true",
    "PASS: lantern.orbit\nPASS: test-suite-of-the-lib\nmysql -u root -p orbit_development",
    "the password is required, the token is case-sensitive, --password options, set the password to expire",
    "docker run -u 1000:1000 image; curl -u user:password https://x; sort -u file",
    "a.b.c.d.e.f.very_long_attribute_name_here, module.some_function.another_attribute_name",
    "auth_token: httpx2.Request\nsecret_dir = /run/secrets/db_password2\npasswd('me:you@www.x1.example:080')",
    '"toolUseID": "a9rvli8sm4jo18v5q0q4n7vhkwbv", "payment": "pi_3MtwBwLkdIwHu7ix28a3tqPa", CC=x86_64-linux-gnu-gcc\n',
    "| --- | --- |\n" + "-" * 80 + "\n" + "=" * 80 + "\n" + "_" * 80,
]


def settled(text: str) -> tuple[str, dict[str, int]]:
    """`redact`, with the laws that hold for every text checked on the way."""
    clean, counts = redact(text)
    again = redact(clean)
    assert again == (clean, {})
    assert again[0] is clean
    assert (clean is text) is not bool(counts)
    return clean, counts


CASES = [(rule, secret) for rule, secrets in TOKENS.items() for secret in secrets]


@pytest.mark.parametrize(("rule", "secret"), CASES, ids=[rule for rule, _ in CASES])
def test_every_token_is_replaced_whole_wherever_it_stands(rule: str, secret: str) -> None:
    mark = f"[REDACTED:{rule}]"
    frames = (
        "{}", "see {} there", "`{}`", '"{}"', "({}).", "\n+{}\n", "x\t{}, y", "<{}>", "…{}…", "https://x/?k={}&y=1",
    )  # fmt: skip
    for frame in frames:
        assert settled(frame.replace("{}", secret)) == (frame.replace("{}", mark), {rule: 1}), frame


PLACED = [(rule, frame, secret) for rule, cases in IN_PLACE.items() for frame, secret in cases]


@pytest.mark.parametrize(("rule", "frame", "secret"), PLACED, ids=[case[0] for case in PLACED])
def test_only_the_secret_part_goes(rule: str, frame: str, secret: str) -> None:
    secret = secret.replace("{{", "{")
    if rule == "aws-pair":
        key = "AK" + "IA" + upper(16)
        text, expected = f"{key},{secret}\n", "[REDACTED:aws-id],[REDACTED:aws-pair]\n"
    else:
        text, expected = frame.format(secret), frame.format(f"[REDACTED:{rule}]")
    assert settled(text)[0] == expected
    assert settled(f"before\n{text}\nafter")[0] == f"before\n{expected}\nafter"


def test_every_rule_written_by_hand_is_tried() -> None:
    assert {*TOKENS, *IN_PLACE} >= BY_HAND
    assert SANITIZER_VERSION == "sanitize_transcript_v1"


@pytest.mark.parametrize("text", LOOK_ALIKES)
def test_look_alikes_stay(text: str) -> None:
    clean, counts = settled(text)
    assert (clean, counts) == (text, {})


@pytest.mark.parametrize("rule", RULES)
def test_a_mark_is_inert(rule: str) -> None:
    mark = f"[REDACTED:{rule}]"
    for text in (
        mark,
        f"{mark}: a1b2c3d4e5f6",
        f"{mark}={mark}",
        f"password={mark}",
        f"https://u:{mark}@h",
        f"Bearer {mark}",
    ):
        assert settled(text) == (text, {})


@pytest.mark.parametrize(
    "write",
    [
        lambda block: block.replace("\n", "\r\n"),
        lambda block: block.replace("\n", "\\n"),
        lambda block: block.replace("\n", "\\\\n"),
        lambda block: "\n".join("+" + line for line in block.split("\n")),
        lambda block: "\n".join("-" + line for line in block.split("\n")),
        lambda block: "\n".join("    > " + line for line in block.split("\n")),
        lambda block: block.replace(" ", "%20").replace("\n", "%0A"),
        lambda block: block.replace("\n", " "),
        lambda block: block[: len(block) - 60],
        lambda block: '"' + '\\n" +\n  "'.join(block.split("\n")) + '"',
    ],
)
def test_private_keys_in_every_disguise(write: Callable[[str], str]) -> None:
    block = pem()
    clean = sanitize_transcript_v2(f"before\n{write(block)}\nafter")
    assert all(line[:30] not in clean for line in block.split("\n")[1:-1])
    assert clean.startswith("before\n")
    assert clean.endswith("after")
    assert sanitize_transcript_v2(clean) == clean


def test_the_end_of_a_key_whose_beginning_was_cut_off_goes() -> None:
    lines = [(string.ascii_letters + string.digits + "+/")[at : at + 40] for at in range(20)]
    clean = sanitize_transcript_v2("the tail of the file:\n" + "\n".join(lines) + "\n-----END PRIVATE KEY-----\nis all")
    assert clean.startswith("the tail of the file:\n[REDACTED:private-block]")
    assert not [line for line in lines if line in clean]


@pytest.mark.parametrize("joint", ["\n", "\n    ", "\\\n", "\n+", "  \n  ", "\r\n", "\n> "])
def test_tokens_broken_over_two_lines(joint: str) -> None:
    for secret in ("gh" + "p_" + some(36), "sk-" + f"ant-api03-{some(93)}AA"):
        half = len(secret) // 2
        clean = sanitize_transcript_v2(f"a {secret[:half]}{joint}{secret[half:]}\nand then prose goes on")
        assert secret[half:] not in clean
        assert clean.endswith("]\nand then prose goes on")
        assert sanitize_transcript_v2(clean) == clean


# ── control characters, lines ──


def test_controls_go_and_separators_become_blanks() -> None:
    assert sanitize_transcript_v2("a\r\nb\rc\n\td") == "a\nb\nc\n\td"
    assert sanitize_transcript_v2("a\x00b\x07c\x7fd\x9be\x1b[31mf") == "abcdef"
    assert sanitize_transcript_v2("a\vb\fc\x85d\u2028e\u2029f\x1cg") == "a b c d e f g"
    assert sanitize_transcript_v2("a\u202eb\u202ac\u2066d\u2069e") == "abcde"
    assert sanitize_transcript_v2("a\ud800b\udfff") == "a\ufffdb\ufffd"
    assert sanitize_transcript_v2("\ufeffa\ud800") == "a\ufffd"
    assert sanitize_transcript_v2("naïve\u00a0—\u200d👍🏽 ") == "naïve\u00a0—\u200d👍🏽"
    assert sanitize_transcript_v2("gh\x00p_\u202e" + "a1" * 18) == "[REDACTED:github]"


def test_a_line_stays_a_line() -> None:
    assert sanitize_line(" a\r\nb\tc\vd\u2028e ") == "a b c d e"
    assert sanitize_line("password:\nhunt" + "er22") == "password: [REDACTED:assignment]"
    secret = "gh" + "p_" + some(36)
    assert sanitize_line(f"x {secret[:25]}\n  {secret[25:]} y") == "x [REDACTED:github] y"


# ── what a terminal, a file or a keyboard adds ──

HIDDEN = (
    "\u00ad\u034f\u115f\u1160\u180e\u200b\u200c\u200d\u2060\u3164\ufe00\ufe0f\ufeff\uffa0\U000e0041\U000e0100\U000e01ef"
)


def test_a_secret_over_three_lines_of_a_terminal_goes_whole() -> None:
    secret = some(128, HEX)
    clean = sanitize_transcript_v2(wrapped(f"{'the log of what was read: ':.<64} DB_PASSWORD={secret} and prose", 80))
    assert not any(secret[at : at + 8] in clean for at in range(0, 120, 8))


def wrapped(text: str, width: int) -> str:
    return "\n".join(text[at : at + width] for at in range(0, len(text), width))


@pytest.mark.parametrize(
    "show",
    [
        sanitize_transcript_v2,
        sanitize_line,
        flatten,
        lambda text: sanitize_transcript_v2(words_of(text)),
        display,
        spell_out_unseen,
        lambda text: agent_text.fit(text),
        lambda text: _json(text).decode(),
    ],
)
def test_whatever_shows_text_goes_by_one_list_of_what_nobody_sees(show: Callable[[str], str]) -> None:
    shown = show("a" + "b".join(c for c in HIDDEN if c not in "\u200c\u200d\ufe0f") + "z")
    assert not any(c in shown for c in HIDDEN)


def test_control_sequences_go_whole() -> None:
    assert sanitize_transcript_v2("\x1b[1;31mred\x1b[0m \x1b]0;title\x07on \x1b(Bit\x1b[?25l") == "red on it"
    assert (
        sanitize_transcript_v2("\x1b]8;;https://x.example\x1b\\name\x1b]8;;\x1b\\ \x1bP1;2|q\x1b\\ \x9b31mred")
        == "name  red"
    )
    assert sanitize_transcript_v2("\x1b]never closed, so it stays") == "never closed, so it stays"
    # The text of a program is no sequence.
    assert sanitize_transcript_v2('RED = "\\x1b[31m"') == 'RED = "\\x1b[31m"'


def test_what_joins_letters_stays() -> None:
    family, persian = "👩\u200d👧", "می\u200cخواهم"
    assert sanitize_transcript_v2(f"{family} {persian} ⚠\ufe0f") == f"{family} {persian} ⚠\ufe0f"
    assert flatten(f"{family} {persian}") == f"{family} {persian}"


FRAGMENTS = st.one_of(
    st.text(max_size=12),
    st.sampled_from([secret for secrets in TOKENS.values() for secret in secrets]),
    st.sampled_from([secret[: len(secret) // 2] for secrets in TOKENS.values() for secret in secrets]),
    st.sampled_from([secret[len(secret) // 2 :] for secrets in TOKENS.values() for secret in secrets]),
    st.sampled_from([frame.format(secret) for cases in IN_PLACE.values() for frame, secret in cases]),
    st.sampled_from(LOOK_ALIKES),
    st.sampled_from(
        ["password", "token", "secret", "api_key", "=", ":", ": ", '"', "'", "[", "]", "(", "|", "`", "A", "1"]
    ),
    st.sampled_from([" ", "\t", "\n", "  \n", "\\\n", "\\n", "\r", "\r\n", "%20", "\x00", "\u2028", "\u202e", "é"]),
    st.sampled_from(
        ["\ud800", "\udc00", "-", "_", ".", "@", "://", "u:", "====", "----", "curl", " -u ", "a1b2c3d4e5f6"]
    ),
    st.sampled_from(
        ["AK" + "IA", "gh" + "p_", "sk-", "ey" + "J", "Authorization: Bearer ", "Cookie: ", "[REDACTED:github]"]
    ),
    st.sampled_from(["-----BEGIN " + "PRIVATE KEY-----", "-----END " + "PRIVATE KEY-----"]),
)
TEXTS = st.lists(FRAGMENTS, max_size=8).map("".join)


@given(TEXTS)
def test_total_idempotent_and_free_of_controls(text: str) -> None:
    settled(text)
    body = sanitize_transcript_v2(text)
    assert sanitize_transcript_v2(body) == body == normalize(body) == sanitize_normalized(body)
    line = sanitize_line(text)
    assert sanitize_line(line) == line == line.strip(" ")
    for clean in (body, line):
        clean.encode()
        assert redact(clean)[1] == {}
        assert not any(c in "\u2028\u2029\u202a\u202e\u2066\u2069" or (ord(c) < 32 and c not in "\n\t") for c in clean)
        assert not any(0x7F <= ord(c) < 0xA0 for c in clean)
    assert "\n" not in line
    assert "\t" not in line


# ── encodings within encodings ──


def test_encodings_within_encodings_end() -> None:
    assert redact("%" + "25" * 50_000 + "3A")[1] == {}
    text = "the old one was DB_PASSWORD=hunt" + "er2hunter2"
    while len(text) < 300_000:
        text = coded(text)
    assert redact(text) == ("[REDACTED:base64]", {"base64": 1})


# ── time ──

FLOODS = [
    "a", "eyJ", "://", "-----BEGIN RSA PRIVATE KEY-----", "AKIA", "AK" + "IA0123456789ABCDEF ", "sk-a1", "_eyJ-",
    "curl -u a:b", "cookie: a=", "://a:b", "MMMMMMMMMM.", 'token: "', "['token']=", "token=a1b2c3d4e5f6 ", "\\", "%25",
    "token%3Da1b2c3d4e5%20", "VG9rZW4gaXMgZ2hwXw", "ya29.aaaaaaaaaaaaaaaa  \\  \n", "kind: Secret\ndata:\n  a: b\n",
    "| password |\n|---|\n", "password: |\n  ", '\\"password\\": ', "name: PASSWORD\n  value: ", "パスワードは",
    "\\u0041", "algolia = 0a1b2c3d4e5f6a7b8c9d0a1b2c3d4e5f ", *sorted(marked.leads()),
]  # fmt: skip


@given(st.lists(st.sampled_from([*sorted(marked.leads()), "a", "xé", " ", "-", "7"])))
def test_a_literal_is_known_by_the_words_around_it(pieces: list[str]) -> None:
    likely = SearchedText("".join(pieces)).likely(tuple(marked.leads()))
    assert marked.leads().keys() & set(pieces) <= set(likely)


def seconds(work: Callable[[str], object], text: str) -> float:
    start = time.process_time()
    work(text)
    return time.process_time() - start


@pytest.mark.parametrize(
    "line", ["+/srv/{}/productionfiles/Main01", "C++ reads /a+b/{}/Abcdefghijklm1+x", "/code/{}/x"]
)
def test_a_token_in_a_path_is_no_piece_of_base64(line: str) -> None:
    for secret in ("AKIA" + "6LZQURTXZCCZMF3H", "gh" + "p_7kQ2mX9vB4nR8tW3yZ6cF1hJ5pL0sD2gA8eK"):
        assert secret not in redact(line.format(secret))[0]


@pytest.mark.parametrize("flood", sampled(FLOODS, 6))
def test_time_grows_with_length_alone(flood: str) -> None:
    small, large = ((flood * (size // len(flood)))[:size] for size in (12_000, 96_000))
    # Eight times the text: a linear rule takes 8 times as long, a quadratic one 64 times.
    limit = 24 * min(seconds(redact, small) for _ in range(3)) + 0.02
    assert any(seconds(redact, large) < limit for _ in range(3))


# ── vaults that another program wrote ──
