"""Whether the sanitizer finds secrets, leaves other text alone, and how fast it is.

`python -m benchmarks.sanitizer` prints recall by class, by language and by *dress* (coloured, escaped, wrapped, with
hidden characters, …) on made-up samples, false hits in texts that hold no secret and in the code and documentation that
are installed on this machine, and the time on plain text beside one pass of a trivial pattern. `--list` names every
sample that was missed and every hit as `path:line rule`, `--json` gives the figures, `--before FILE` prints those of an
earlier run beside, `--speed` the MB/s from 1 to 4 MB and a megabyte of each rule's worst input instead (three minutes).

The samples are made by what providers publish about their tokens and by how configuration, logs and talk hold secrets,
never by the table of rules: a prefix that the table has wrong is missed here. They are the same for a seed.

* A secret counts as found when no six characters of it in a row are left. What else of the text went is counted, too.
* A text without a secret counts as a false hit when anything in it is redacted.
* Speed, goals: 1 MB of transcript in at most 0.3 s, and 4 times the text in at most 4.4 times the time. Hostile texts
  repeat what opens a rule, so that as many patterns as possible begin and none gets anywhere, or hold a secret every
  twenty bytes. Times are of this process.
"""

from __future__ import annotations

import argparse
import base64
import gzip
import itertools
import json
import random
import re
import string
import sys
import sysconfig
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from signet_sync.text import sanitizer
from signet_sync.text.secrets import marked, providers

MB = 1_000_000
SIZES = (1, 2, 4)

sanitize: Callable[[str], str] = sanitizer.sanitize_transcript_v2

# ── made-up secrets ──

_ALNUM = string.ascii_letters + string.digits
_ALPHABETS = {
    "A": _ALNUM,
    "B": _ALNUM + "+/",
    "C": string.ascii_uppercase + string.digits,
    "D": string.digits,
    "E": string.ascii_letters,
    "H": "0123456789abcdef",
    "L": string.ascii_lowercase + string.digits,
    "P": _ALNUM * 3 + "!^*_-+.~",
    "Q": string.ascii_uppercase + "234567",
    "U": _ALNUM + "_-",
    "W": _ALNUM + "_",
    "X": "0123456789ABCDEF",
    "Y": "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L",
    "Z": string.ascii_lowercase,
}
_SPEC = re.compile(r"<(?:([A-EHLPQUWXYZ])(\d+)(?:-(\d+))?|(uuid|jwt|words|list:[^>]*))>")


def _listed(words: str) -> tuple[str, ...]:
    return tuple(words.split())


_WORDS = _listed(
    """
lantern orbit walrus marble cactus violin harbor pepper glacier saddle falcon meadow copper ribbon
"""
)
_NAMES = _listed(
    """
PASSWORD DB_PASSWORD API_KEY SECRET_KEY CLIENT_SECRET AUTH_TOKEN ACCESS_TOKEN JWT_SECRET ENCRYPTION_KEY
POSTGRES_PASSWORD REDIS_PASSWORD SMTP_PASSWORD WEBHOOK_SECRET SIGNING_KEY BOT_TOKEN REFRESH_TOKEN ADMIN_PASSWORD
STRIPE_SECRET_KEY SESSION_SECRET APP_SECRET DEPLOY_TOKEN MYSQL_ROOT_PASSWORD KEYSTORE_PASSPHRASE PRIVATE_KEY
"""
)


def _segment(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


_JWT_HEAD = _segment(b'{"alg":"HS256","typ":"JWT"}')


def made(spec: str, dice: random.Random) -> str:
    """A value by its description: `<A36>` is 36 letters and digits, `<H20-40>` 20 to 40 hex digits, and so on."""

    def part(match: re.Match[str]) -> str:
        alphabet, least, most, named = map(str, match.groups(""))
        if alphabet:
            return "".join(dice.choices(_ALPHABETS[alphabet], k=dice.randint(int(least), int(most or least))))
        if named == "uuid":
            return str(uuid.UUID(int=dice.getrandbits(128), version=4))
        if named == "jwt":
            claims = json.dumps({"sub": made("<D10>", dice), "name": made("<words>", dice), "iat": 1774000000})
            return f"{_JWT_HEAD}.{_segment(claims.encode())}.{made('<U43>', dice)}"
        if named == "words":
            return dice.choice(_WORDS)
        return dice.choice(named.removeprefix("list:").split("|"))

    return _SPEC.sub(part, spec)


class Sample(NamedTuple):
    """A text with a secret in it (of several lines, where the text wraps it)."""

    kind: str
    label: str
    text: str
    secret: str


# Tokens that stand alone: family, provider, what it publishes.
_TOKENS = """
forges  github-classic    ghp_<A36>
forges  github-oauth      gho_<A36>
forges  github-user       ghu_<A36>
forges  github-server     ghs_<A36>
forges  github-jwt        ghs_<jwt>
forges  github-jwt-app    ghs_<D7>_<jwt>
forges  github-refresh    ghr_<A76>
forges  github-fine       github_pat_<A22>_<A59>
forges  gitlab-pat        glpat-<U20>
forges  gitlab-routable   glpat-<U27>.<L2>.<L9>
forges  gitlab-deploy     gldt-<U20>
forges  gitlab-runner     glrt-<U20>
forges  gitlab-runner-new glrt-t1_<U20>
forges  gitlab-registration GR1348941<U20>
forges  gitlab-job        glcbt-<L2>_<U20>
forges  gitlab-trigger    glptt-<H40>
forges  gitlab-feed       glft-<U20>
forges  gitlab-mail       glimt-<L25>
forges  gitlab-agent      glagent-<U50>
forges  gitlab-oauth      gloas-<H64>
forges  gitlab-scim       glsoat-<U20>
forges  gitlab-flags      glffct-<U20>
forges  bitbucket         ATBB<A32>
forges  bitbucket-http    BBDC-<B44>
forges  atlassian         ATATT3xFfGF0<U171>=<X8>
forges  atlassian-container ATCTT3xFfGF0<U171>=<X8>
forges  sourcegraph       sgp_<H16>_<H40>
forges  sourcegraph-short sgp_<H40>
forges  codeberg-by-url   https://oauth2:<H40>@codeberg.org/lantern/orbit.git
forges  azure-devops      <A76>AZDO<A4>
cloud   aws-id            AKIA<Q16>
cloud   aws-temporary     ASIA<Q16>
cloud   aws-bearer        ABIA<Q16>
cloud   aws-context       ACCA<Q16>
cloud   aws-bedrock       ABSK<B109>=
cloud   aws-mws           amzn.mws.<uuid>
cloud   google-api        AIza<U35>
cloud   google-oauth      GOCSPX-<U28>
cloud   google-access     ya29.a0<U150>
cloud   google-refresh    1//0<U60>
cloud   azure-client      <A3>8Q~<A34>
cloud   azure-storage     DefaultEndpointsProtocol=https;AccountName=lantern;AccountKey=<B86>==;EndpointSuffix=x
cloud   azure-search      <A42>AzSe<A6>
cloud   azure-function    <U44>AzFu<U6>==
cloud   azure-sas         https://orbit.blob.core.windows.net/c?sv=2024-11-04&ss=b&sig=<A20>%2B<A20>%3D
cloud   azure-servicebus  Endpoint=sb://orbit.servicebus.windows.net/;SharedAccessKeyName=root;SharedAccessKey=<B43>=
cloud   digitalocean-pat  dop_v1_<H64>
cloud   digitalocean-oauth doo_v1_<H64>
cloud   digitalocean-refresh dor_v1_<H64>
cloud   alibaba           LTAI5t<A18>
cloud   tencent           AKID<A32>
cloud   yandex-api        AQVN<U36>
cloud   yandex-static     YCA<U37>
cloud   yandex-iam        t1.<U60>.<U86>
cloud   flyio             FlyV1 fm2_<B120>
cloud   flyio-personal    fo1_<U43>
cloud   render            rnd_<A32>
cloud   heroku            HRKU-<uuid>
cloud   heroku-new        HRKU-AA<U58>
cloud   vercel            vcp_<A56>
cloud   vercel-gateway    vck_<A56>
cloud   vercel-integration vci_<A56>
cloud   netlify           nfp_<A40>
cloud   cloudflare-user   cfut_<A40><H8>
cloud   cloudflare-account cfat_<A40><H8>
cloud   cloudflare-key    cfk_<A40><H8>
cloud   cloudflare-origin v1.0-<H24>-<H146>
cloud   tailscale-auth    tskey-auth-k<A11>CNTRL-<A32>
cloud   tailscale-api     tskey-api-k<A11>CNTRL-<A32>
cloud   tailscale-client  tskey-client-k<A11>CNTRL-<A32>
cloud   akamai            akab-<L16>-<L16>
cloud   openshift         sha256~<U43>
cloud   defined           dnkey-<Q26>-<Q52>
cloud   ngrok             ak_2<A26>
cloud   scalingo          tk-us-<U48>
cloud   pulumi            pul-<H40>
cloud   terraform         <A14>.atlasv1.<U67>
cloud   vault             hvs.<U95>
cloud   vault-batch       hvb.<U140>
cloud   doppler-personal  dp.pt.<A43>
cloud   doppler-service   dp.st.prd.<A43>
cloud   doppler-cli       dp.ct.<A43>
cloud   infisical         st.<H24>.<H32>.<H32>
cloud   onepassword       ops_eyJ<A250>
cloud   onepassword-key   A3-<C6>-<C6>-<C5>-<C5>-<C5>-<C5>
cloud   age               AGE-SECRET-KEY-1<Y58>
cloud   deno              ddp_<A36>
cloud   harness           pat.<U22>.<H24>.<A20>
cloud   octopus           API-<C26>
ai      openai-legacy     sk-<A20>T3BlbkFJ<A20>
ai      openai-project    sk-proj-<U74>T3BlbkFJ<U74>
ai      openai-service    sk-svcacct-<U74>T3BlbkFJ<U74>
ai      openai-admin      sk-admin-<U74>T3BlbkFJ<U74>
ai      anthropic         sk-ant-api03-<U93>AA
ai      anthropic-admin   sk-ant-admin01-<U93>AA
ai      anthropic-oauth   sk-ant-oat01-<U93>AA
ai      openrouter        sk-or-v1-<H64>
ai      deepseek          sk-<H32>
ai      groq              gsk_<A52>
ai      xai               xai-<A80>
ai      perplexity        pplx-<A48>
ai      huggingface       hf_<E34>
ai      huggingface-org   api_org_<E34>
ai      replicate         r8_<A37>
ai      nvidia            nvapi-<U64>
ai      langsmith         lsv2_pt_<H32>_<H10>
ai      langsmith-service lsv2_sk_<H32>_<H10>
ai      tavily            tvly-<A32>
ai      tavily-dev        tvly-dev-<A32>
ai      fireworks         fw_<A24>
ai      cerebras          csk-<L48>
ai      together          tgp_v1_<U43>
ai      jina              jina_<A60>
ai      elevenlabs        sk_<H48>
ai      firecrawl         fc-<H32>
ai      pinecone          pcsk_<A6>_<A62>
ai      wandb             wandb_v1_<U77>
ai      langfuse          sk-lf-<uuid>
ai      helicone          sk-helicone-<L7>-<L7>-<L7>-<L7>
ai      e2b               e2b_<H40>
ai      runpod            rpa_<C38><L6>
ai      apify             apify_api_<A36>
ai      voyage            pa-<U43>
ai      friendli          flp_<A46>
ai      context7          ctx7sk-<uuid>
ai      modal             as-<A22>
money   stripe-live       sk_live_<A24>
money   stripe-long       sk_live_51<A97>
money   stripe-test       sk_test_<A24>
money   stripe-restricted rk_live_<A24>
money   stripe-webhook    whsec_<A32>
money   square-token      sq0atp-<U22>
money   square-secret     sq0csp-<U43>
money   square-access     EAAA<U60>
money   paypal            access_token$production$<L16>$<H32>
money   plaid             access-production-<uuid>
money   razorpay          rzp_live_<A14>
money   flutterwave       FLWSECK-<H32>-X
money   paystack          sk_live_<H40>
money   mollie            live_<A30>
money   paddle            pdl_live_apikey_<L26>_<A22>_<A3>
money   polar             polar_oat_<A43>
money   duffel            duffel_live_<U43>
money   easypost          EZAK<A54>
money   shippo            shippo_live_<H40>
money   lob               live_<H35>
money   shopify           shpat_<H32>
money   shopify-app       shpss_<H32>
money   shopify-custom    shpca_<H32>
money   shopify-partner   shppa_<H32>
money   adyen             AQE<list:h|p|m><B80>
mail    slack-bot         xoxb-<D12>-<D12>-<A24>
mail    slack-user        xoxp-<D12>-<D12>-<D12>-<H32>
mail    slack-config      xoxe.xoxp-1-<A146>
mail    slack-refresh     xoxe-1-<A146>
mail    slack-app         xapp-1-A<C10>-<D13>-<H64>
mail    slack-cookie      xoxd-<A40>%2B<A40>
mail    slack-webhook     https://hooks.slack.com/services/T<C8>/B<C10>/<A24>
mail    slack-workflow    https://hooks.slack.com/workflows/T<C8>/A<C8>/<D17>/<A24>
mail    discord-bot       M<A23>.<A6>.<U38>
mail    discord-webhook   https://discord.com/api/webhooks/<D18>/<U68>
mail    teams-webhook     https://orbit.webhook.office.com/webhookb2/<uuid>@<uuid>/IncomingWebhook/<H32>/<uuid>
mail    googlechat        https://chat.googleapis.com/v1/spaces/<A11>/messages?key=AIza<U35>&token=<U43>
mail    zapier            https://hooks.zapier.com/hooks/catch/<D7>/<L7>/
mail    telegram          <D10>:AA<U33>
mail    twilio            SK<H32>
mail    sendgrid          SG.<U22>.<U43>
mail    mailgun           key-<H32>
mail    mailchimp         <H32>-us<D2>
mail    mandrill          md-<U22>
mail    brevo             xkeysib-<H64>-<A16>
mail    brevo-smtp        xsmtpsib-<H64>-<A16>
mail    resend            re_<A8>_<A24>
mail    onesignal         os_v2_app_<L104>
mail    twitch            oauth:<L30>
mail    facebook          EAACEdEose0cBA<A120>
mail    linkedin          WPL_AP1.<A16>.<A6>==
mail    ably              <A6>.<A6>:<U43>
mail    mapbox            sk.eyJ1<U80>.<U22>
mail    pagerduty         pdus+_0XBPWQQ_<uuid>
packages npm              npm_<A36>
packages pypi             pypi-AgEIcHlwaS5vcmc<U120>
packages testpypi         pypi-AgENdGVzdC5weXBpLm9yZw<U120>
packages rubygems         rubygems_<H48>
packages crates           cio<A32>
packages nuget            oy2<L43>
packages docker-pat       dckr_pat_<U27>
packages docker-org       dckr_oat_<U32>
packages clojars          CLOJARS_<H60>
packages artifactory      AKCp<A69>
packages artifactory-ref  cmVmdGtu<A56>
packages sonar-user       squ_<H40>
packages sonar-project    sqp_<H40>
packages circleci         CCIPAT_<A22>_<H40>
packages buildkite        bkua_<H40>
packages snyk             snyk_sat.<H8>.<U80>
packages codecov-url      https://<H32>@orbit.example.dev/upload
packages postman          PMAK-<H24>-<H34>
packages postman-collection PMAT-<C26>
packages readme           rdme_<L70>
packages prefect          pnu_<A36>
packages dbt              dbtc_<U40>
packages trigger          tr_dev_<A24>
packages inngest          signkey-prod-<H64>
watch   sentry-user       sntryu_<H64>
watch   sentry-org        sntrys_eyJpYXQiOj<A120>=_<B43>
watch   grafana-cloud     glc_eyJvIjoi<A90>=
watch   grafana-service   glsa_<A32>_<H8>
watch   grafana-api       eyJrIjoi<A70>==
watch   newrelic-user     NRAK-<C27>
watch   newrelic-insert   NRII-<U32>
watch   newrelic-license  <H36>NRAL
watch   posthog           phx_<A43>
watch   posthog-secure    phs_<A43>
watch   honeycomb         hcaik_<L58>
watch   logfire           pylf_v1_us_<A43>
watch   axiom             xaat-<uuid>
watch   dynatrace         dt0c01.<Q24>.<Q64>
watch   launchdarkly      sdk-<uuid>
watch   statsig           secret-<A43>
watch   sentry-dsn        https://<H32>:<H32>@o<D6>.ingest.sentry.io/<D7>
watch   newrelic-rest     NRRA-<H42>
data    supabase          sbp_<H40>
data    supabase-secret   sb_secret_<U22>_<U8>
data    neon              napi_<L64>
data    planetscale       pscale_tkn_<U43>
data    planetscale-pw    pscale_pw_<U43>
data    planetscale-oauth pscale_oauth_<U43>
data    databricks        dapi<H32>
data    databricks-oauth  dose<H32>
data    mongodb-atlas     mdb_sa_sk_<U40>
data    aiven             AVNS_<U19>
data    xata              xau_<A43>
data    tinybird          p.eyJ1Ijog<A90>.<U43>
data    postgres-url      postgresql://orbit:<P16>@db.example.dev:5432/lantern
data    mongo-url         mongodb+srv://orbit:<A18>@c0.mongodb.net/lantern
data    redis-url         redis://:<A24>@cache.example.dev:6379/0
data    amqp-url          amqps://orbit:<U20>@mq.example.dev/vh
data    snowflake-pat     ver:1-hint:<D6>-ETMs<A60>
work    linear            lin_api_<A40>
work    linear-oauth      lin_oauth_<H64>
work    notion            ntn_<D11><A35>
work    notion-old        secret_<A43>
work    figma             figd_<U40>
work    airtable          pat<A14>.<H64>
work    asana             2/<D16>/<D16>:<H32>
work    clickup           pk_<D8>_<C32>
work    trello            ATTA<H64>
work    typeform          tfp_<U44>
work    contentful        CFPAT-<U43>
work    dropbox           sl.<U136>
work    dropbox-user      sl.u.<U136>
work    hubspot           pat-na1-<uuid>
work    salesforce        00D<A12>!<A96>
work    zoho              1000.<H32>.<H32>
work    frameio           fio-u-<U64>
work    ghost             <H24>:<H64>
work    webflow-jwt       <jwt>
work    intra42           s-s4t2ud-<H64>
work    adobe             p8e-<L32>
work    maxmind           <A6>_<A29>_mmk
work    sanity            sk<A178>
"""
_PLACES = (
    "<S>",
    "$ pass show <words>/<words>\n<S>\n$ ",
    "Sure, I used <S> for the request, and it answered 200.",
    "| <words> | <S> | active |",
    'client = Client("<S>")',
    '["<S>", <D3>]',
    "<li><S></li>",
    "Bitte nimm <S> und starte den Dienst neu.",
    "2026-03-01T10:0<D1>:00Z INFO connected with <S> to eu-<D1>",
    "jane,<S>,2026-03-0<list:1|2|3>",
    "const t = `<S>`;",
    "- <words>: <S>\n- <words>: <D4>",
    'echo "<S>" | <words> login --stdin',
    "&mut Some('<S>'.to_string()),",
)
# What stands under a name of its own, and where: kind, values, templates, one a line (¶ is a newline).
# <S> is the secret; <N>, <n>, <k>, <c> a secret's name in its four spellings.
_VALUES = {
    "uuid": "<uuid>",
    "letters": "<Z12-24>",
    "letters, both cases": "<E14-28>",
    "words with -": "<words>-<words>-<words>-<words>",
    "words with _": "<words>_<words>_<words>",
    "short": "<E3><D2><A3-7>",
    "40 hex": "<H40>",
    "64 hex": "<H64>",
    "128 hex": "<H128>",
    "begins with /": "/<B39>",
    "begins with +": "+<B39>",
    "base64 =": "<B42>==",
    "strong": "<A1><P14-22><D1><A1>",
}
_STRONG = ("strong", "short", "letters, both cases", "words with -", "40 hex")
_INSIDE = "&*;,|)>}([{<"
_NAMED = """
<N>=<S>
export <N>=<S>
<N>="<S>"
<n> = '<S>'
<n>: <S>
<n>: "<S>"
"<c>": "<S>",
{"user": "jane", "<n>": "<S>", "port": 5432}
--<k>=<S> --port 8080
<c> = "<S>";
this.<c> = '<S>';
set <N>=<S>
$env:<N> = "<S>"
spring.<k>=<S>
  - <N>=<S>
"""
_QUOTED = """
<n>: "<S>"
{"<n>": "<S>", "port": 5432}
<N>='<S>'
<n> = "<S>"
  <c>: '<S>',
'<n>' => '<S>',
export <N>="<S>"
connect(host="db1", <n>="<S>", port=5432)
"<c>":"<S>","user":"jane"
[Environment]::SetEnvironmentVariable("<N>", "<S>", "User")
"""
_FORMS = {
    "XML": """
<password><S></password>
<add key="<c>" value="<S>" />
<server><id>central</id><username>jane</username><password><S></password></server>
<property name="<c>" value="<S>"/>
<dataSource user="sa" password="<S>" url="jdbc:x"/>
<entry key="<n>"><S></entry>
<connectionSecret type="plain"><clientSecret><S></clientSecret></connectionSecret>
""",
    "Kubernetes name/value": """
env:¶- name: <N>¶  value: <S>¶- name: LOG_LEVEL¶  value: info
        - name: <N>¶          value: "<S>"
{"name": "<N>", "value": "<S>"}
{"key":"<N>","value":"<S>","type":"plain"}
stringData:¶  <k>: <S>
""",
    "YAML blocks": """
<n>: |¶  <S>¶port: 5432
<n>: >-¶  <S>¶user: jane
  <c>: |-¶    <S>
<n>:¶  <S>
auth:¶  <n>: !!str <S>
""",
    "command options": """
$ deploy --password <S> --host db1
mycli login --user jane --token <S>
docker login -u jane -p <S> registry.example.dev
mysql -u root -p<S> lantern
mysql -h db1 -u root --password=<S> -e 'select 1'
sshpass -p '<S>' ssh jane@host
redis-cli -h cache -a <S> ping
helm upgrade x ./x --set auth.password=<S>
kubectl create secret generic db --from-literal=password=<S>
az login --service-principal -u app -p <S> --tenant t
PGPASSWORD=<S> psql -h db1 -U jane
openssl enc -aes-256-cbc -k <S> -in a -out b
gh secret set <N> --body "<S>"
aws configure set aws_secret_access_key <S>
heroku config:set <N>=<S>
vault kv put kv/app <n>=<S>
docker run -e <N>=<S> -p 80:80 app
curl -H "X-Api-Key: <S>" https://api.example.dev/v1
""",
    "netrc, pgpass": """
machine api.example.dev login jane password <S>
machine github.com¶  login jane¶  password <S>
db1.example.dev:5432:lantern:jane:<S>
*:*:*:postgres:<S>
default login anonymous password <S>
[client]¶user=root¶password=<S>
//registry.npmjs.org/:_authToken=<S>
[pypi]¶username = __token__¶password = <S>
_password=<S>
""",
    "SQL": """
ALTER USER jane WITH PASSWORD '<S>';
CREATE ROLE app LOGIN PASSWORD '<S>' VALID UNTIL '2027-01-01';
CREATE USER 'jane'@'%' IDENTIFIED BY '<S>';
SET PASSWORD FOR 'jane'@'localhost' = PASSWORD('<S>');
CREATE LOGIN app WITH PASSWORD = '<S>', CHECK_POLICY = OFF;
GRANT ALL ON x.* TO 'jane'@'%' IDENTIFIED BY '<S>';
UPDATE users SET password = '<S>' WHERE id = 7;
CREATE SUBSCRIPTION s CONNECTION 'host=db1 user=rep password=<S> dbname=x' PUBLICATION p;
""",
    "calls": """
define('DB_PASSWORD', '<S>');
define( "AUTH_KEY", "<S>" );
os.environ.get("<N>", "<S>")
os.getenv('<N>', '<S>')
process.env.<N> || "<S>"
process.env.<N> ?? '<S>'
System.setProperty("javax.net.ssl.keyStorePassword", "<S>");
os.environ["<N>"] = "<S>"
ENV['<N>'] = '<S>'
ENV.fetch("<N>", "<S>")
os.Setenv("<N>", "<S>")
std::env::set_var("<N>", "<S>");
config.set("<k>", "<S>")
env('<N>', default='<S>')
putenv("<N>=<S>");
viper.SetDefault("<k>", "<S>")
getConfig().put("<c>", "<S>");
""",
    "URLs": """
git clone https://<S>@github.com/lantern/orbit.git
https://x-access-token:<S>@github.com/lantern/orbit.git
postgres://jane:<S>@db1:5432/orbit
mysql+pymysql://root:<S>@127.0.0.1/orbit?charset=utf8
https://api.example.dev/v1/me?access_token=<S>&page=2
https://api.example.dev/v1/me?page=2&api_key=<S>
ftp://jane:<S>@files.example.dev/pub
wss://x.example.dev/socket?token=<S>
origin  https://oauth2:<S>@gitlab.com/lantern/orbit.git (fetch)
jdbc:postgresql://db1/orbit?user=jane&password=<S>&ssl=true
smtp://jane:<S>@mail.example.dev:587
proxy = http://jane:<S>@proxy.example.dev:3128
""",
    "tables": """
| Service | User | Password |¶|---|---|---|¶| db1 | jane | <S> |
| Password | <S> |
| API key | `<S>` | prod |
| <N> | <S> | required |
user  | password | role¶jane  | <S> | admin
| Passwort | <S> |
<tr><td>Password</td><td><S></td></tr>
""",
    "Markdown": """
**Password:** <S>
**Password**: `<S>`
- **API key:** `<S>`
* Password: <S>
__Secret:__ <S>
- Passwort: `<S>`
> Token: `<S>`
### Credentials¶User: jane¶Pass: <S>
""",
    "pass, pwd": """
pass: <S>
user: jane pass: <S>
login: jane¶pwd: <S>
Login / pass: jane / <S>
PW: <S>
jane:<S> (user:password)
Kennwort: <S>
passwd=<S>
PIN/passphrase: <S>
""",
    "prompts": """
$ aws configure¶AWS Access Key ID [None]: x¶AWS Secret Access Key [None]: <S>¶Default region name [None]: eu-west-1
Password for 'https://jane@github.com': <S>
Enter password: <S>
? Enter your API key: <S>
[sudo] password for jane: <S>
Enter PEM pass phrase: <S>
jane@host's password: <S>
Passwort eingeben: <S>
? Paste your token here › <S>
Token: <S>¶Authenticated as jane
""",
    "HTTP headers": """
Authorization: Bearer <S>
authorization: token <S>
X-API-Key: <S>
x-auth-token: <S>
PRIVATE-TOKEN: <S>
headers = {"Authorization": "Bearer <S>"}
-H 'Authorization: Bearer <S>' \\
Proxy-Authorization: Bearer <S>
Cookie: theme=dark; session=<S>; lang=de
Set-Cookie: sid=<S>; Path=/; HttpOnly
'x-goog-api-key': '<S>',
Ocp-Apim-Subscription-Key: <S>
req.Header.Set("Authorization", "Bearer <S>")
requests.get(u, headers={'X-Vault-Token': '<S>'})
""",
    "curl -u": """
curl -u jane:<S> https://api.example.dev/v1
curl --user jane:<S> -X POST https://api.example.dev/v1
curl -sS -u "jane:<S>" https://jenkins.example.dev/job/x/build
curl -u <S>: https://api.stripe.com/v1/charges
curl https://api.example.dev -d 'client_id=x&client_secret=<S>'
wget --user=jane --password=<S> https://files.example.dev/a.tgz
http -a jane:<S> GET api.example.dev
curl -d '{"username":"jane","password":"<S>"}' https://api.example.dev/login
curl -F token=<S> -F channel=x https://example.dev
httpx.get(url, auth=("jane", "<S>"))
""",
    "JSON in JSON": """
{"body": "{\\"<n>\\": \\"<S>\\", \\"port\\": 1}"}
"arguments": "{\\"cmd\\":\\"export <N>=<S>\\"}"
{"input":"{\\\\\\"<c>\\\\\\":\\\\\\"<S>\\\\\\"}"}
"content": "DB_HOST=db1\\n<N>=<S>\\nPORT=1"
{"result":"<n>: \\"<S>\\"\\nuser: jane"}
\\"headers\\": {\\"Authorization\\": \\"Bearer <S>\\"}
"output": "<N>=\\"<S>\\"\\n"
""",
    "sentences": """
the db password is <S>
The password is <S>, the user is jane.
use <S> as token for staging
My API key is <S> by the way.
I set the secret to <S> yesterday.
the password for jane is "<S>".
log in with jane and the password <S>
you can authenticate with the token <S>
Here is the API key: <S>
credentials: jane / <S>
The new root password: `<S>`
please change the admin password to <S> on db1
""",
    "Sätze": """
das Passwort ist <S>
Das Passwort lautet <S>, der Benutzer ist jane.
nimm <S> als Token für Staging
Mein API-Schlüssel ist <S>.
Das Kennwort für die Datenbank lautet: <S>
Zugangsdaten: jane / <S>
Ich habe das Passwort auf <S> geändert.
melde dich mit jane und dem Passwort <S> an
der geheime Schlüssel: <S>
Passwort=<S>
""",
    "Terraform": """
resource "aws_db_instance" "x" {¶  username = "jane"¶  password = "<S>"¶}
variable "db_password" {¶  type    = string¶  default = "<S>"¶}
provider "x" {¶  api_key = "<S>"¶  region  = "eu"¶}
<n> = "<S>"  # terraform.tfvars
set_sensitive {¶  name  = "auth.password"¶  value = "<S>"¶}
environment = { <N> = "<S>", PORT = "80" }
""",
    "source code": """
<N> = "<S>"  # python
private static final String <N> = "<S>";
const <c> = '<S>';
var <c> string = "<S>"
let <n>: &str = "<S>";
$<c> = '<S>';
public string <c> { get; set; } = "<S>";
val <c> = "<S>"
  <n>: "<S>", # ruby
let <c>: String = "<S>"
#define <N> "<S>"
static const char *<n> = "<S>";
my $<n> = '<S>';
if <n> == "<S>":
<n>: str = "<S>"
client = Client(user="jane", <n>="<S>")
@Value("${<k>:<S>}")
<N> := "<S>"
.password("<S>")
val <c>: String = "<S>"  // scala
""",
    "CI logs": """
2026-03-01T10:00:00.0000000Z   <N>: <S>
2026-03-01T10:00:00.0000000Z ##[command]docker login -u jane -p <S> ghcr.io
+ export <N>=<S>
+ curl -H 'Authorization: Bearer <S>' https://example.dev
Step 4/9 : ENV <N>=<S>
ARG <N>=<S>
ENV <N> <S>
Run deploy¶env:¶  <N>: <S>
[12:00:01] INFO  config loaded {<n>=<S>, host=db1}
Environment="<N>=<S>"
time="10:00" level=info msg=start <n>=<S> port=1
ERROR 1045: access denied (using password: <S>)
    <N>: <S>¶    NODE_ENV: production
""",
    "connection strings": """
Server=db1;Database=orbit;User Id=sa;Password=<S>;Encrypt=true
Server=db1;Uid=sa;Pwd=<S>;
host=db1 port=5432 user=jane password=<S> dbname=orbit
"ConnectionStrings": {"Default": "Server=db1;User=sa;Password=<S>;Timeout=3"}
DSN=x;UID=sa;PWD=<S>
""",
}
_ENCODED = """
Authorization: Basic <S>
{"auths": {"https://index.docker.io/v1/": {"auth": "<S>"}}}
kind: Secret¶metadata:¶  name: db¶data:¶  password: <S>¶type: Opaque
-H "Authorization: Basic <S>"
{"kind":"Secret","data":{"db-password":"<S>"}}
apiVersion: v1¶kind: Secret¶data:¶  username: amFuZQ==¶  token: <S>
client-key-data: <S>
_auth=<S>
"""
_BLOCKS = """
-----BEGIN RSA PRIVATE KEY-----¶<S>¶-----END RSA PRIVATE KEY-----
-----BEGIN OPENSSH PRIVATE KEY-----¶<S>
-----BEGIN EC PRIVATE KEY-----¶<S>
-----BEGIN PGP PRIVATE KEY BLOCK-----¶<S>
-----BEGIN ENCRYPTED PRIVATE KEY-----¶<S>¶... (truncated)
  tls.key: |¶    -----BEGIN PRIVATE KEY-----¶<S>¶    -----END PRIVATE KEY-----
client-key-data: |¶<S>
secret_key_base64: >¶<S>
  password: |¶<S>
"""
_DRESSES = ("<S>", "    <S>", "+<S>", "> <S>")
_NEGATIVES = """
password = getpass.getpass("Password: ")
token = request.headers.get("Authorization")
<n> = os.environ["<N>"]
<n> = os.getenv("<N>")
const <c> = process.env.<N>;
<N>=${<N>}
<N>: ${{ secrets.<N> }}
<n>: "{{ vault_<n> }}"
<n> = var.<n>
<N>=
<N>=<your-token-here>
<N>=your_<n>_here
<N>=changeme
<n>: "********"
<n>: xxxxxxxxxxxxxxxx
<N>="<REPLACE_ME>"
token=ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
export GITHUB_TOKEN=ghp_XXXXXXXXXXXXXXXX
OPENAI_API_KEY=sk-...
api_key: "sk-your-api-key"
Authorization: Bearer <token>
Authorization: Bearer $TOKEN
curl -u "$USER:$PASSWORD" https://api.example.dev
postgres://user:password@localhost/db
postgresql://${DB_USER}:${DB_PASSWORD}@db1/orbit
https://<user>:<password>@example.dev
def login(user: str, password: str) -> Token:
    <n>: Optional[str] = None
    <n>: str = Field(default="", description="the token to use")
  <c>?: string;
  <c>: string | undefined,
private String <c>;
func NewClient(token string, opts ...Option) *Client {
pub <n>: SecretString,
<c> = req.body.<c>
<c> = await generateToken(user.id, secretStore)
self._<n> = <n>
if (!<c>) throw new Error("<c> is required");
this.<c> = options.<c> || defaultOptions.<c>;
return jwt.sign(payload, secretKey, { expiresIn: "1h" })
token = next(tokens)
key = lambda item: item[1]
sort_key = "created_at"
primary_key: user_id
cache_key = "user:profile:<D4>"
cache_key = f"{prefix}:{name}"
foreign_key = "orders.customer_id"
partitionKey: "/tenantId"
max_tokens=<D4>
"total_tokens": <D5>, "prompt_tokens": <D4>
tokens: <D5> in, <D4> out
tokenizer = AutoTokenizer.from_pretrained("bert-base-uncased")
token_type: bearer
"token_type": "Bearer", "expires_in": 3600
password_min_length: 12
PASSWORD_HASHERS = ["django.contrib.auth.hashers.Argon2PasswordHasher"]
"password": "Password"
"password": "Passwort",
"token": "The token is required"
"forgotPassword": "Forgot your password?"
password: Please enter at least twelve characters
errors.password.too_short
<input type="password" name="password" autocomplete="current-password">
<label for="password">Password</label>
"AWS::IAM::AccessKey": "aws_iam_accesskey"
"AWS::SecretsManager::Secret": "SecretsManagerSecretResource"
"AWS::Cognito::UserPoolClient": "AWS_Cognito_UserPoolClient"
      secretKeyRef:¶        name: db-credentials¶        key: password
  - name: DB_PASSWORD¶    valueFrom:¶      secretKeyRef:¶        name: db¶        key: password
secretName: orbit-tls
existingSecret: orbit-postgresql
passwordSecretRef: orbit-db
kubectl get secret orbit-db -o yaml
docker login --password-stdin ghcr.io
docker run -p 8080:80 -it orbit
mkdir -p build/<words>/<words>
mysql -u root -p orbit_development
ssh -p 2222 jane@host
cp -p <words>.txt <words>.bak
commit <H40>
Author: Jane Doe <jane@example.dev>¶<H40> <words>: fix the <words>
git checkout <H40>
HEAD is now at <H7> <words> the <words>
"integrity": "sha512-<B86>=="
    --hash=sha256:<H64>
sha256:<H64>
image: orbit@sha256:<H64>
checksum = "<H64>"
<words>.whl,sha256=<U43>,<D5>
h1:<B43>=
resolved "https://registry.yarnpkg.com/<words>/-/<words>-1.2.3.tgz#<H40>"
"request_id": "<uuid>"
session <uuid> started
id: <uuid>
trace_id=<H32> span_id=<H16>
etag: "<H32>"
-----BEGIN PUBLIC KEY-----¶<B64>¶<B64>¶-----END PUBLIC KEY-----
-----BEGIN CERTIFICATE-----¶<B64>¶<B64>¶<B64>¶-----END CERTIFICATE-----
ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI<B43> jane@host
ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABgQ<B120> jane@host
SHA256:<B43> jane@host (ED25519)
public_key: age1<L58>
pk_live_publishable keys are public
The password must be at least twelve characters and must not be shared.
Never put a password into the repository; use a secret manager.
we rotate the token every ninety days, and the secret is kept in Vault
the password is stored hashed in the database
The token is missing, so the request is refused.
use the token from the environment
the secret is injected by the operator
das Passwort ist falsch, bitte neu eingeben
Das Passwort steht im Tresor.
Die Token werden vom Server erzeugt und nach einer Stunde ungültig.
How do I reset my password?
Password reset link sent to jane@example.dev
password: required
password: string
password: true
| password | string | the password of the user |
| token | yes | see below |
| `api_key` | `str` | `None` | Key for the service |
:param password: the password to use
@param token the token to check
* `--token TOKEN`  token to log in with
--password <password>
--password PASSWORD    (default: prompt)
usage: orbit login [--user USER] [--password PASSWORD]
Enter passphrase (empty for no passphrase):
Password:¶Login incorrect
from orbit.auth import TokenVerifier, password_hash
import { getToken, setPassword } from './auth/credentials';
class PasswordResetTokenGenerator:
[REDACTED:<list:password|api-key|bearer>]
token: [REDACTED:secret-assignment]
auth: { type: "oauth2", flow: "authorizationCode" }
"auth": "required"
AUTH_USER_MODEL = "accounts.User"
AUTHENTICATION_BACKENDS = ["django.contrib.auth.backends.ModelBackend"]
SECRET_KEY = config("SECRET_KEY")
secret_key = secrets.token_urlsafe(32)
API_KEY_HEADER = "X-API-Key"
TOKEN_URL = "https://auth.example.dev/oauth/token"
token_endpoint: https://login.example.dev/oauth2/v2.0/token
password_file: /run/secrets/db_password
PGPASSFILE=/home/jane/.pgpass
private_key_path = "~/.ssh/id_ed25519"
ssl_key: /etc/ssl/private/orbit.key
key_file=/etc/orbit/tls.key
keyboard_layout: de-latin1-nodeadkeys
monkey_patch = "gevent.monkey.patch_all"
author = "jane-doe-lantern-orbit"
slug: lantern-orbit-walrus-marble
<a href="#password-and-token-handling">Passwords and tokens</a>
data:image/png;base64,iVBORw0KGgoAAAANSUhEUg<B120>
background: url(data:font/woff2;base64,d09GMgABAAAA<B90>)
assert response.json()["token"] == expected_token
mock.patch("orbit.auth.get_token", return_value=None)
<c>: process.env['<N>']!,
@Value("${<k>}")
<n>: !vault |
<n> = data.aws_secretsmanager_secret_version.db.secret_string
arn:aws:secretsmanager:eu-west-1:<D12>:secret:orbit/db-<A6>
<n>: ssm:/orbit/prod/<n>
op://Private/GitHub/token
<N>=$(pass show orbit/db)
<N>=`cat /run/secrets/db`
<N>="$1"
read -rs -p "Password: " <N>
unset <N> <N>
env | grep -i token
grep -rn "password" src/ | head
password/token/secret: see docs/auth.md#tokens
TODO: rotate password, remove token from logs
2026-03-01 10:00:00 WARN login failed for jane: wrong password
https://jane@github.com/lantern/orbit.git
https://github.com/lantern/orbit/blob/<H40>/src/token.py#L<D2>
/usr/lib/python3/dist-packages/keyring/backends/SecretService.py
"""


# What a terminal, a file or a keyboard adds to a text.
_WIDE = {ord(c): ord(c) + 0xFEE0 for c in ":="}


def _inside(text: str, secret: str, added: str) -> str:
    at = text.find(secret) + len(secret) // 2
    return text[:at] + added + text[at:]


DRESSES: dict[str, Callable[[str, str], str]] = {
    "plain": lambda text, secret: text,
    "coloured": lambda text, secret: text.replace(secret, f"\x1b[1;36m{secret}\x1b[0m"),
    "coloured, spelt out": lambda text, secret: text.replace(secret, f"\\x1b[36m{secret}\\x1b[0m"),
    "coloured, in JSON": lambda text, secret: json.dumps({"out": text.replace(secret, f"\x1b[36m{secret}\x1b[0m")}),
    "escaped once": lambda text, secret: json.dumps({"out": f"first\n{text}\nlast"}),
    "escaped twice": lambda text, secret: json.dumps(json.dumps({"out": f"first\n{text}\nlast"})),
    "zero-width space inside": lambda text, secret: _inside(text, secret, "\u200b"),
    "soft hyphen inside": lambda text, secret: _inside(text, secret, "\u00ad"),
    "no-break space inside": lambda text, secret: _inside(text, secret, "\u00a0"),
    "no-break spaces": lambda text, secret: text.replace(" ", "\u00a0"),
    "full width": lambda text, secret: text.replace(secret, "\0").translate(_WIDE).replace("\0", secret),
    "wrapped at 80 columns": lambda text, secret: _at_80_columns("." * (76 - text.find(secret) % 80) + " " + text),
    "numbered by cat -n": lambda text, secret: "\n".join(
        f"{n:6}\t{line}" for n, line in enumerate(text.split("\n"), 1)
    ),
}


def _at_80_columns(text: str) -> str:
    return "\n".join(text[at : at + 80] for at in range(0, len(text), 80))


_ADDED = re.compile("\x1b\\[[0-9;]*m|\\\\+(?:x1b|u001b)\\[[0-9;]*m|[\u200b\u00ad\u00a0]")


def _undressed(clean: str) -> str:
    """What a reader sees of a secret: without colours and hidden characters, lines joined."""
    return _ADDED.sub("", clean).replace("\\", "").replace("\n", "")


def dressed(seed: int, part: int = 4) -> dict[str, Tally]:
    """Recall by form: every fourth sample of one line, in every dress."""
    found: dict[str, Tally] = {}
    chosen = [each for each in samples(seed) if "\n" not in each.text and "\\" not in each.text][::part]
    for sample in chosen:
        for dress, put_on in DRESSES.items():
            clean = sanitize(put_on(sample.text, sample.secret))
            plain = sample._replace(text=_undressed(sample.text), secret=_undressed(sample.secret))
            found.setdefault(dress, Tally()).add(plain, _undressed(clean))
    return found


# Labels as programs are translated, and what people write, in ten languages.
_LANGUAGES = """
de  Passwort|Neues Passwort|Kennwort|Master-Passwort  API-Schlüssel|Geheimer Schlüssel
    das Passwort für die Datenbank lautet <S>
    Mein API-Schlüssel ist <S>
es  Contraseña|Nueva contraseña|Contraseña maestra  Clave API|Clave secreta
    La contraseña es <S>.
    la contraseña de la base de datos es <S>
fr  Mot de passe|Nouveau mot de passe|Mot de passe maître  Clé d'API|Clé secrète
    Le mot de passe est <S>.
    le mot de passe de la base est « <S> »
pt  Senha|Nova senha|Palavra-passe|Senha mestra  Chave API|Chave secreta
    A senha é <S>.
    a senha do banco de dados é <S>
it  Password|Nuova password|Password principale  Chiave API|Chiave segreta
    La password è <S>.
    la password del database è <S>
pl  Hasło|Nowe hasło|Hasło główne  Klucz API|Klucz prywatny
    Hasło to <S>.
    hasło do bazy danych: <S>
ru  Пароль|Новый пароль|Мастер-пароль  Ключ API|Секретный ключ
    Пароль — <S>.
    пароль от базы данных: <S>
ja  パスワード|新しいパスワード|マスターパスワード  APIキー|秘密鍵
    パスワードは<S>です。
    データベースのパスワードは「<S>」です
zh  密码|新密码|密碼|口令  API 密钥|私钥
    密码是<S>。
    数据库密码为：<S>
ko  비밀번호|새 비밀번호|암호  API 키|비밀 키
    비밀번호는 <S> 입니다.
    비밀번호는 <S>입니다
"""
_LABELLED = ("<L>: <S>", "<L>：<S>", "<L> = <S>", "<L>=<S>", "- **<L>:** `<S>`", "<L>:¶<S>", '<L>: "<S>"')


def in_languages(seed: int) -> Iterator[Sample]:
    """Labels and sentences of ten languages."""
    dice = random.Random(seed)
    for block in re.split(r"\n(?=\w)", _LANGUAGES.strip()):
        head, *sentences = map(str.strip, block.split("\n"))
        language, passwords, keys = head.split("  ")
        for labels, kinds in ((passwords, ("strong", "short", "words with -")), (keys, ("strong", "40 hex"))):
            for label, form, kind in itertools.product(labels.split("|"), _LABELLED, kinds):
                secret = made(_VALUES[kind], dice)
                text = form.replace("<L>", label).replace("<S>", secret).replace("¶", "\n")
                yield Sample(f"language: {language}", kind, text, secret)
        for sentence, kind in itertools.product(sentences, ("strong", "short")):
            secret = made(_VALUES[kind], dice)
            yield Sample(f"language: {language}", kind, sentence.replace("<S>", secret), secret)


def _blocks(text: str) -> list[str]:
    return [line.replace("¶", "\n") for line in text.strip("\n").split("\n")]


def _named(template: str, dice: random.Random) -> str:
    """The template with a secret's name in the spelling that it asks for, and whatever else it draws."""
    name = dice.choice(_NAMES)
    first, *rest = name.lower().split("_")
    spellings = {
        "<N>": name,
        "<n>": name.lower(),
        "<k>": name.lower().replace("_", "-"),
        "<c>": first + "".join(map(str.capitalize, rest)),
    }
    for mark, spelled in spellings.items():
        template = template.replace(mark, spelled)
    return made(template, dice)


def _wrapped(dice: random.Random, indent: str) -> str:
    lines = ["<B64>"] * dice.randint(2, 6) + ["<B30-62>"]
    return "\n".join(indent + made(line, dice) for line in lines)


def samples(seed: int = 1) -> Iterator[Sample]:
    """Texts that hold one secret each."""
    dice = random.Random(seed)
    for line in _TOKENS.strip().splitlines():
        family, provider, spec = line.split(maxsplit=2)
        for place in dice.sample(_PLACES, 4):
            secret = made(spec, dice)
            yield Sample(f"token: {family}", provider, made(place, dice).replace("<S>", secret), _kept(spec, secret))
    for label, spec in _VALUES.items():
        for template in _blocks(_NAMED) * 2:
            secret = made(spec, dice)
            yield Sample("value: named", label, _named(template, dice).replace("<S>", secret), secret)
    for inside in _INSIDE:
        for template in _blocks(_QUOTED) * 2:
            secret = f"{made('<A4-8>', dice)}{inside}{made('<A5-9><D1>', dice)}"
            yield Sample("value: to its quote", inside, _named(template, dice).replace("<S>", secret), secret)
    for template in _blocks(_FORMS["URLs"]):
        for _ in range(3 if re.search(r":<S>@", template) else 0):
            secret = made("<A4-7>/<A5-9>", dice)
            yield Sample("form: URLs", "holds /", _named(template, dice).replace("<S>", secret), secret)
    for form, templates in _FORMS.items():
        for template in _blocks(templates):
            for label in _STRONG:
                secret = made(_VALUES[label], dice)
                yield Sample(f"form: {form}", label, _named(template, dice).replace("<S>", secret), secret)
    for template in _blocks(_ENCODED):
        for _ in range(4):
            secret = base64.b64encode(made("<words>:<P16-24>", dice).encode()).decode()
            yield Sample("form: base64", "encoded", _named(template, dice).replace("<S>", secret), secret)
    for template in _blocks(_BLOCKS):
        for _ in range(4):
            secret = _wrapped(dice, "    " if re.search(r"[|>]\n", template) else "")
            text = _named(template, dice).replace("<S>", secret)
            yield Sample("form: keys, wrapped base64", template.strip().partition("\n")[0], text, secret)


def _kept(spec: str, secret: str) -> str:
    """What is secret of a token: of a URL or a connection string, the parts that were drawn."""
    if "://" not in spec and ";" not in spec:
        return secret
    fixed = re.split(r"<[A-Z]\d+(?:-\d+)?>|<uuid>", spec)
    drawn: list[str] = []
    at = 0
    for piece, following in itertools.pairwise(fixed):
        at = secret.index(piece, at) + len(piece)
        end = secret.index(following, at) if following else len(secret)
        drawn.append(secret[at:end])
        at = end
    longest = max(map(len, drawn))
    return "\n".join(part for part in drawn if len(part) == longest)


def negatives(seed: int = 2) -> Iterator[str]:
    """Texts that hold no secret."""
    dice = random.Random(seed)
    for template in _blocks(_NEGATIVES):
        for dress in _DRESSES:
            text = _named(template, dice)
            yield "\n".join(dress.replace("<S>", line) for line in text.split("\n"))


# ── what was found ──

_MARK = re.compile(r"\[REDACTED:([^\]\s]*)\]")
_RUN = 6


class Tally:
    """Samples of one kind: how many, how many found, and how much else went."""

    def __init__(self) -> None:
        self.count = self.found = self.others = 0

    def add(self, sample: Sample, clean: str) -> bool:
        """Counts one; whether its secret was found."""
        left = _MARK.sub("\0", clean)
        pieces = [piece.strip() for piece in sample.secret.split("\n")]
        context = sample.text
        for piece in pieces:
            context = context.replace(piece, "\0")
        runs = {piece[at : at + _RUN] for piece in pieces for at in range(len(piece) - _RUN + 1)}
        found = not any(run in left and run not in context for run in runs)
        self.count += 1
        if found:
            self.found += 1
            self.others += max(0, len(re.sub(r"[\s\0]", "", context)) - len(re.sub(r"[\s\0]", "", left)))
        return found


class Found(NamedTuple):
    """Figures of one run."""

    kinds: dict[str, Tally]
    missed: list[Sample]
    negatives: int
    false: list[tuple[str, str]]


def sampled(seed: int) -> Found:
    """What the sanitizer does to the made-up texts."""
    kinds: dict[str, Tally] = {}
    missed = []
    for sample in itertools.chain(samples(seed), in_languages(seed)):
        if not kinds.setdefault(sample.kind, Tally()).add(sample, sanitize(sample.text)):
            missed.append(sample)
    kinds |= {f"dress: {dress}": tally for dress, tally in dressed(seed).items()}
    texts = list(negatives(seed + 1))
    false = [(text, " ".join(rules)) for text in texts if (rules := sanitizer.sanitize_counted(text)[1])]
    return Found(kinds, missed, len(texts), false)


_SUFFIXES = """
.py .pyi .pyx .md .rst .txt .json .toml .yaml .yml .js .ts .css .html .xml
.c .h .cpp .hpp .cfg .ini .sh .am .in .tcl .pl
"""
_TEXTS = {"", *_SUFFIXES.split()}
_LONGEST = 2 * MB


def _roots() -> list[Path]:
    library = Path(sysconfig.get_path("stdlib"))
    packages = [Path(entry) for entry in sys.path if Path(entry).name in ("site-packages", "dist-packages")]
    return [path for path in (*packages, library, Path("/usr/lib/python3"), Path("/usr/share/doc")) if path.is_dir()]


def installed() -> Iterator[tuple[str, str]]:
    """Code and documentation of what is installed here: path and text, each content once."""
    seen: set[int] = set()
    for root in _roots():
        for path in sorted(root.rglob("*")):
            packed = path.suffix == ".gz"
            kind = Path(path.stem).suffix if packed else path.suffix
            if kind.lower() not in _TEXTS or path.parts[len(root.parts)] == "site-packages":
                continue
            try:
                if not path.is_file() or path.stat().st_size > _LONGEST:
                    continue
                raw = gzip.decompress(path.read_bytes()) if packed else path.read_bytes()
                text = raw.decode()
            except (OSError, EOFError, UnicodeDecodeError):
                continue
            if len(text) <= _LONGEST and "\0" not in text and hash(text) not in seen:
                seen.add(hash(text))
                yield str(path), text


class Hits(NamedTuple):
    """What was redacted in texts of others."""

    files: int
    lines: int
    rules: Counter[str]
    listed: list[str]


def hits(texts: Iterable[tuple[str, str]]) -> Hits:
    """Every redaction in these texts, as `path:line rule: what stands there`."""
    files = lines = 0
    rules: Counter[str] = Counter()
    listed = []
    for path, text in texts:
        files += 1
        lines += text.count("\n") + 1
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        clean = sanitizer.redact(text)[0]
        if clean is text:
            continue
        at = end = 0
        for mark in _MARK.finditer(clean):
            between = clean[end : mark.start()]
            at = max(at, text.find(between, at)) + len(between)
            end = mark.end()
            if text.startswith(mark[0], at):  # it stood there
                continue
            rules[mark[1]] += 1
            line = text[text.rfind("\n", 0, at) + 1 :].partition("\n")[0]
            listed.append(f"{path}:{text.count(chr(10), 0, at) + 1} {mark[1]}: {line.strip()[:160]}")
    return Hits(files, lines, rules, listed)


_PLAIN_PASS = re.compile("colou?r")


def _plain_pass(text: str) -> str:
    return _PLAIN_PASS.sub("", text)


def pace(text: str) -> tuple[float, float]:
    """Seconds of a processor for the sanitizer, and for one pass of a trivial pattern; in turn, best of nine."""
    took = [float("inf")] * 2
    for _ in range(9):
        for index, work in enumerate((sanitize, _plain_pass)):
            start = time.process_time()
            work(text)
            took[index] = min(took[index], time.process_time() - start)
    return took[0], took[1]


# ── speed by size ──

_PROSE = """
the queue keeps its order while workers retry because nothing may be lost and each step is written down before it is
made so that a crash leaves files as they were we chose sqlite over a folder of json lines since search must stay fast
tests cover replay timeout and the empty case next the summary says what remains open token password key secret
"""
_PROSE_WORDS = _PROSE.split()


def _repeated(piece: str) -> Callable[[int], str]:
    """A text of one piece again and again: each time with another value, so that nothing is looked up in a cache."""
    return _filled(lambda dice: made(piece, dice)) if _SPEC.search(piece) else lambda size: _cut(piece, size)


def _filled(one: Callable[[random.Random], str], seed: int = 5) -> Callable[[int], str]:
    def make(size: int) -> str:
        dice, block, length = random.Random(seed), [], 0
        while length < min(size, MB):
            block.append(one(dice))
            length += len(block[-1])
        return _cut("".join(block), size)

    return make


def _cut(piece: str, size: int) -> str:
    return (piece * (size // len(piece) + 1))[:size]


def _turns(seed: int, secrets: int) -> Callable[[int], str]:
    """A transcript: prose, code, tool calls, hashes and paths; a secret in one of so many turns, or (0) in none."""

    # One stretch of a megabyte, repeated: what is looked at is the same for every size.
    return _filled(lambda dice: _turn(dice, secrets > 0 and dice.randrange(secrets) == 0), seed)


def _turn(dice: random.Random, leaking: bool) -> str:
    def words(count: int) -> str:
        return " ".join(dice.choices(_PROSE_WORDS, k=count))

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
    "minified code, one line": _repeated(
        'function <Z2>(t,n){var <Z2>=t.token,o={key:n||"<L3>"};return o[r]?t(o):void 0}'
    ),
}
_PLAIN = REALISTIC["plain transcript"]
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
    for piece in (
        "token=<L12> ",
        "AKIA<Q16> ",
        "curl -u a:<L6> ",
        "m=token%3D<L12>&",
        "password is <A9> ",
        "PASSWORD=<P9>\n",
        '"token": "<A12>", ',
        "--password <Z8> ",
        "mysql -p<A8> ",
        "use <A9> as token ",
        "x://a:<A6>@b ",
        "key: <U20>\n",
    )
}


# What opens a rule, of each line of the tables and each mark by hand, as often as a text has room for it.
_OPENS = """
-p ¶ -p¶ --password¶ --token <Z2>¶ -u a:b¶ -b a=b¶mysql -p ¶echo <Z2> -s¶ -pass pass:a¶identified by '<Z4>
login <Z2> password ¶credentials: <Z2>/¶*:a:b:¶5432:a:b:¶\x1b[31m¶\\x1b[¶\u200b¶\u00a0a¶：¶password is ¶auth("a",
key: ¶key=<Z20>¶<password>¶name: password¶password:¶for password ¶as token ¶use <Z2> as token ¶
Cookie: a=b;¶::add-mask::¶requirepass ¶https://hooks.slack.com/¶x://a:b@¶Authorization: ¶"<Z2>" == password
password(¶contraseña ¶пароль ¶パスワードは¶cat password ¶recovery codes: ¶AUTH PLAIN ¶334 UGFzc3dvcmQ6 ¶"kty" ¶
-----END PRIVATE KEY-----¶
"""


def openings() -> dict[str, Callable[[int], str]]:
    """Texts that begin a rule without end: of every form of the table, its head and all but its end; of every mark."""
    found = HOSTILE | {literal: _repeated(literal) for literal in marked.leads()}
    letters = {
        name: [c for c in _ALNUM + "-_" if re.match(f"[{chars}]", c)] for name, chars in providers.CLASSES.items()
    }
    for form in providers.forms():

        def one(dice: random.Random, end: int, example: str = form.found) -> str:
            drawn = providers.PIECE.sub(
                lambda piece: "".join(dice.choices(letters[piece[1]], k=int(piece[2]))), example
            )
            return drawn[:end] + " "

        found[f"begun {form.form}"] = _filled(partial(one, end=24))
        found[f"cut {form.form}"] = _filled(partial(one, end=-2))
    return found | {piece: _repeated(piece) for piece in re.split("[¶\n]", _OPENS) if piece} | DENSE


def worst(shown: int = 20) -> None:
    """Prints the rules' worst inputs: a megabyte's time beside that of a plain transcript."""
    plain = seconds(_PLAIN(MB)) / MB
    inputs = openings()
    print(f"\nA megabyte of what opens each of {len(inputs)} rules, times a plain transcript ({plain * MB:.3f} s)")
    rough = {}
    for name, make in inputs.items():
        text = make(MB // 10)
        half, whole = seconds(text[: MB // 20], 1), seconds(text, 1)
        rough[name] = (whole + 18 * max(whole - half, 0)) / MB / plain
    slow = sorted(rough, key=rough.__getitem__, reverse=True)[:shown]
    times = {name: seconds(inputs[name](MB)) / MB / plain for name in slow}
    for name in sorted(times, key=times.__getitem__, reverse=True):
        print(f"  {name[:40]!r:44} {times[name]:6.1f}", flush=True)
    print(f"  more than three times: {sum(took > 3 for took in times.values())}")


def seconds(text: str, repeats: int = 3) -> float:
    """Of processor time; the best of some where that is soon done."""
    best = float("inf")
    for _ in range(repeats if len(text) <= MB else 1):
        start = time.process_time()
        sanitize(text)
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


# ── what is printed ──


class Figures(NamedTuple):
    """One run."""

    version: str
    positives: int
    recall: float
    classes: dict[str, tuple[int, int, int]]
    negatives: int
    false: int
    files: int
    lines: int
    hits: int
    hits_per_100000_lines: float
    rules: dict[str, int]
    speed: dict[str, tuple[float, float]]
    listed: list[str]


def figures(seed: int) -> Figures:
    """Measures everything but the speed by size."""
    found = sampled(seed)
    others = hits(installed())
    code = "".join(text for _, text in itertools.islice(installed(), 400))[:MB]
    tallies = found.kinds.values()
    count = sum(others.rules.values())
    return Figures(
        version=sanitizer.SANITIZER_RULES,
        positives=sum(tally.count for tally in tallies),
        recall=100 * sum(tally.found for tally in tallies) / sum(tally.count for tally in tallies),
        classes={kind: (tally.count, tally.found, tally.others) for kind, tally in sorted(found.kinds.items())},
        negatives=found.negatives,
        false=len(found.false),
        files=others.files,
        lines=others.lines,
        hits=count,
        hits_per_100000_lines=100_000 * count / max(1, others.lines),
        rules=dict(others.rules.most_common()),
        speed={name: pace(text) for name, text in (("plain transcript", _PLAIN(MB)), ("installed code", code))},
        listed=[
            *(f"missed: {each.kind} · {each.label}: {each.text}" for each in found.missed),
            *(f"false: {rules}: {text}" for text, rules in found.false),
            *(f"hit: {hit}" for hit in others.listed),
        ],
    )


def show(of: Figures, before: dict[str, Any]) -> None:
    """Prints the tables; with a column of an earlier run's figures, where there are any."""
    earlier = before.get("classes", {})
    then = f" {before['version'].rpartition('_')[2]} |" if before else ""
    now = of.version.rpartition("_")[2]
    print(f"| class | samples |{then} {now} | other characters gone, each |\n|---|---|{'---|' * bool(before)}---|---|")
    for kind, (count, found, others) in of.classes.items():
        was = f" {100 * earlier[kind][1] / earlier[kind][0]:.0f} % |" if before else ""
        print(f"| {kind} | {count} |{was} {100 * found / count:.0f} % | {others / max(1, found):.1f} |")
    print(f"\n| measured |{then} {now} |\n|---|{'---|' * bool(before)}---|")
    for row in zip(*(_totals(one) for one in ([before] if before else []) + [of._asdict()]), strict=True):
        print(f"| {row[0][0]} | " + " | ".join(figure for _, figure in row) + " |")
    print("\n| rule, in what is installed | hits |\n|---|---|")
    for rule, count in of.rules.items():
        print(f"| {rule} | {count} |")


def _totals(of: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield f"found, of {of['positives']:,} secrets", f"{of['recall']:.1f} %"
    yield f"hits, in {of['negatives']:,} texts without a secret", str(of["false"])
    yield f"hits, in {of['lines']:,} installed lines ({of['files']:,} files)", str(of["hits"])
    yield "· in 100,000 lines", f"{of['hits_per_100000_lines']:.2f}"
    for name, (took, plain) in of["speed"].items():
        yield f"1 MB of {name}; times a pass of `{_PLAIN_PASS.pattern}`", f"{took * 1000:.1f} ms; {took / plain:.1f}"


def speeds(largest: int) -> None:
    """Prints the tables of MB/s by size."""
    sizes = [size for size in SIZES if size <= largest] or [SIZES[0]]
    ends = sorted({sizes[0], sizes[-1]})
    _table("Transcripts and files, MB/s", REALISTIC.items(), sizes)
    _table("Hostile: beginnings of rules, MB/s", HOSTILE.items(), ends)
    _table("Hostile: a secret every twenty bytes, MB/s", DENSE.items(), ends)
    worst()


def main() -> None:
    """Prints recall, false hits and speed."""
    parser = argparse.ArgumentParser(description="Recall, false hits and speed of the sanitizer")
    parser.add_argument("--seed", type=int, default=1, help="another one makes other samples (default: %(default)s)")
    parser.add_argument("--list", action="store_true", help="name what was missed and what was hit")
    parser.add_argument("--json", action="store_true", help="print figures only")
    parser.add_argument("--before", type=Path, help="figures of an earlier run (--json), to be printed beside")
    parser.add_argument("--speed", action="store_true", help="print MB/s by size of the text instead")
    parser.add_argument("--largest", type=int, default=SIZES[-1], help="MB, for --speed (default: %(default)s)")
    asked = parser.parse_args()
    sanitize("password=" + "hunter2hunter2")  # the table is read now
    if asked.speed:
        speeds(asked.largest)
        return
    measured = figures(asked.seed)
    if asked.json:
        print(json.dumps(measured._replace(listed=measured.listed if asked.list else [])._asdict(), indent=1))
        return
    for line in measured.listed if asked.list else ():
        print(line)
    show(measured, json.loads(asked.before.read_text()) if asked.before else {})


if __name__ == "__main__":
    main()
