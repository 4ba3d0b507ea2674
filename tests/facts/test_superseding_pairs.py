"""Pairs of decisions as they are written in practice: which later one replaces an earlier one, and which must not."""

from __future__ import annotations

import pytest

from signet_sync.facts.items import claims_of
from signet_sync.facts.subjects import REPLACED_BY

REPLACED = [
    ("Retry limit is 5", "Retry limit is now 7"),
    ("Retry limit is now 7", "Retry limit: 9"),
    ("Builds compare file times", "mill replaces file times with digests for telling which page to render"),
    ("use blake3 for content hashes", "no longer use blake3; xxhash"),
    ("Use npm", "Switched from npm to pnpm"),
    ("Use Jest for unit tests", "Vitest replaces Jest"),
    ("Package manager: npm", "Package manager: pnpm"),
    ("Database: Postgres 15", "Database: SQLite"),
    ("Database: Postgres 15", "Database: Postgres 16"),
    ("The primary database is Postgres", "The primary database is now CockroachDB"),
    ("Session timeout: 30 minutes", "Session timeout: 12 hours"),
    ("Uploads are limited to 10 MB", "Uploads are limited to 25 MB"),
    ("Rate limit: 100 requests per minute", "The rate limit is 200 requests per minute"),
    ("Coverage threshold is 80%", "Raise the coverage threshold to 85%"),
    ("Default branch: master", "Default branch: main"),
    ("Strict mode is enabled", "Strict mode is off"),
    ("Never use floats for money", "Use floats for money from now on"),
    ("Use Moment for dates", "Moment is deprecated"),
    ("Use tabs", "Use spaces instead of tabs"),
    ("Backups: nightly", "Backups: hourly"),
    ("The audit log is kept for 7 years.", "The audit log is kept for 10 years."),
    ("Queue: RabbitMQ", "Migrated from RabbitMQ to Kafka"),
    ("API port is 8080", "API port is now 8443"),
    ("The request timeout is 30 seconds", "The request timeout is 5 seconds"),
    ("Use Kafka for events.", "Kafka is dropped."),
    ("Nightly charts of pier compare file sizes, since that is quick", "pier replaces file sizes with checksums"),
    ("The beacon goes by lunar tables", "Lunar tables are dropped"),
    ("Sightings are stored in Redis", "Sightings are stored in Postgres instead of Redis"),
    ("Redraws are decided by file sizes", "Redraws are decided by checksums of all inputs instead of file sizes"),
    ("Sichtungen werden in Redis gespeichert", "Sichtungen werden in Postgres statt in Redis gespeichert"),
    ("Las cartas se guardan en Redis", "Las cartas se guardan en Postgres en lugar de Redis"),
]
KEPT = [
    ("Use UTC, not local time", "Use local time in the calendar view"),
    ("Never use eval.", "Use eval in the REPL sandbox only."),
    ("Do not use sudo.", "Use sudo for apt in the Dockerfile."),
    ("Retry on 429 with backoff", "Retry on 503 with backoff"),
    ("HTTP 429 is retried with backoff", "HTTP 503 is retried with backoff"),
    ("Support Postgres 15", "Support Postgres 16"),
    ("Support Django 4", "Support Django 5"),
    ("Data of 2023 is archived", "Data of 2024 is archived"),
    ("The API listens on port 8080", "The API listens on port 8443"),
    ("Level 2 headings get anchors", "Level 3 headings get anchors"),
    ("The backend is FastAPI", "The backend is Dockerized"),
    ("The frontend is React", "The frontend is TypeScript"),
    ("Backend: FastAPI", "Backend: Dockerized"),
    ("Auth: JWT in httpOnly cookies", "Auth: login is limited to five tries a minute"),
    ("Testing: use pytest fixtures", "Testing: integration tests run nightly only"),
    ("Uploads are limited to 10 MB", "Uploads are moved to S3"),
    ("Logs are moved to Loki", "Logs are capped at 30 days"),
    ("Backups are moved to S3", "Backups are limited to 30 days"),
    ("Poll the exchange-rate API every hour.", "Replaced polling with WebSockets."),
    ("The import script is idempotent", "The import script is now async"),
    ("The public API is stable", "The public API is now versioned"),
    ("Staging database is Postgres", "Staging database is EU-hosted"),
    ("Log every admin action to audit_log.", "Stop using logging."),
    ("Cache: Redis", "Cache: five minutes"),
    ("Nightly charts of pier compare file sizes", "pier replaces file names with checksums"),
    ("Sightings are stored in Redis", "Backups are stored in Postgres instead of Redis"),
    ("Sightings are stored in Redis", "Sightings are read from Redis instead of Postgres"),
    ("Sightings are stored in files", "Charts of the quay replace files with tables"),
    ("Redraws are decided by file sizes", "Redraws are decided by checksums instead of file names"),
    ("Rotas are decided by Ana", "Rotas are announced by Bob"),
    ("Use Jest for unit tests", "Vitest replaces Mocha with ease"),
    ("Keep the feature flag for checkout.", "The feature flag is dropped."),
    ("Never commit secrets.", "Use secrets from the vault for CI"),
    ("Do not use floats.", "Use floats for the chart coordinates."),
    ("Don't use mocks.", "Use mocks for the payment gateway."),
    ("Never use any.", "Use any for third-party callbacks."),
    ("We no longer use Redis.", "Use Redis for the rate limiter."),
    ("Never use force push.", "Use force push on feature branches after a rebase."),
    ("Stop using sleep in tests.", "Use sleep in tests of the scheduler."),
    ("Tests are run in parallel.", "Tests are limited to 60 seconds."),
    ("Images are compressed to WebP.", "Images are limited to 2 MB."),
    ("Sessions are moved to Redis.", "Sessions are limited to 30 minutes."),
    ("The worker is Rust", "The worker is Dockerized"),
    ("The queue is RabbitMQ.", "The queue is FIFO."),
    ("The database is Postgres.", "The database is UTF-8."),
    ("The license is MIT", "The license is OSI-approved"),
    ("Port 5432 is exposed in dev.", "Port 6379 is exposed in dev."),
    ("Rule 4 of the linter is off.", "Rule 7 of the linter is off."),
    ("ADR 12 is accepted.", "ADR 13 is accepted."),
    ("RFC 7231 is followed for errors.", "RFC 9457 is followed for errors."),
    ("Phase 1 ends in May.", "Phase 2 ends in May."),
    ("Q1 2026 is reserved for the rewrite", "Q1 2027 is reserved for the rewrite"),
    ("Floor 3 sensors are calibrated weekly.", "Floor 4 sensors are calibrated weekly."),
    ("Camera 1 records at night.", "Camera 2 records at night."),
    ("API v1 is frozen.", "API v2 is frozen."),
    ("Support iOS 16", "Support iOS 17"),
    ("The first 10 rows are skipped.", "The first 20 rows are skipped."),
    ("Use Postgres for orders.", "Postgres is dropped for analytics."),
    ("Trace every request with OpenTelemetry.", "Dropped tracing."),
    ("Cache product pages at the edge.", "Stop using caching."),
    ("Lint staged files with ruff.", "Linting is dropped."),
    ("Deploy with ArgoCD.", "We no longer deploy on Fridays."),
    ("Sort results by date.", "Stop sorting."),
    ("Validate input with pydantic.", "Do not use validation."),
    ("Owner: Jo", "Owner: Max for billing"),
    ("Docs: written in English", "Docs: published with MkDocs"),
    ("Style: two spaces", "Style: trailing commas"),
    ("Security: no secrets in logs", "Security: CSP on all pages"),
    ("Performance: p95 below 200 ms", "Performance: images are lazy"),
    ("CI: GitHub Actions", "CI: caches are keyed by lockfile"),
    ("The backend is FastAPI.", "The backend is Dockerized."),
    ("Cache: Redis", "Cache: invalidated on every deploy"),
    ("Logging: structured JSON on stdout", "Logging: never log request bodies"),
    ("Feature flags: LaunchDarkly", "Feature flags: removed two weeks after full rollout"),
    ("Mobile: React Native", "Mobile: offline first"),
    ("Backups: encrypted with age", "Backups: restored every quarter as a drill"),
    ("Migrations: one per pull request", "Migrations: never edited after merge"),
    ("Accessibility: WCAG 2.2 AA", "Accessibility: every dialog traps focus"),
    ("Colors: taken from tokens.css", "Colors: never hard-coded"),
    ("Error messages: plain words, no codes", "Error messages: shown beside the field"),
    ("Deploys: Tuesdays and Thursdays", "Deploys: blue-green"),
    ("HTTP 404 is returned for foreign tenants.", "HTTP 409 is returned for foreign tenants."),
    ("Rate limit is 100 requests per minute.", "Rate limit is per API key."),
    ("Don't use ORMs for reports.", "Use SQLAlchemy ORM for CRUD."),
    ("Never use eval.", "Use eval, but only in the REPL."),
    ("Never use eval.", "Use eval. Only in the sandbox."),
    ("Don't use sudo", "Use sudo to install packages"),
    ("Use SQLite for the CLI", "The tests use Postgres instead of SQLite"),
    ("Use Redis for sessions", "Never use Redis."),
    ("Use mocks for the payment gateway", "Don't use mocks."),
    ("API: REST", "API: GraphQL"),
    ("Testing: Playwright", "Testing: Vitest"),
    ("Monitoring: Grafana", "Monitoring: Sentry"),
    ("Locale: de-DE for invoices", "Locale: en-US for mails"),
    ("Timeout: 30 s for uploads", "Timeout: 5 s for health checks"),
    ("The timeout is 30 seconds", "The timeout is 5 seconds with retries"),
    ("The cache TTL is 5 minutes", "The cache TTL is 10 minutes for images"),
    ("Images: max 2 MB", "Images: max 4000 px"),
    ("Python 3.11 has to work", "Python 3.12 has to work"),
    ("Issue 41 is a duplicate", "Issue 42 is a duplicate"),
    ("Orders from 2023 are read-only", "Orders from 2024 are read-only"),
    ("Money: integer cents", "Money: rounded half to even"),
    ("Releases: signed with cosign", "Releases: every second Tuesday"),
    ("Use Webpack for the admin", "Replaced Webpack with Vite in the shop"),
    ("Never use tallow", "Lamp oil moved to tallow"),
    ("Drop support for Node 16", "Use Node 16 in the legacy image"),
    ("We no longer use cron.", "Use cron for log rotation."),
    ("Retry a failed job 3 times.", "Retry a failed mail 5 times."),
    ("Feature freeze: December 1", "Feature freeze: no exceptions for Jo"),
    ("Currency: EUR", "Currency: shown with two decimals"),
    ("Accounts are locked after 5 failures", "Accounts are locked after 90 days"),
    ("Use Kafka for events", "Kafka is dropped for metrics"),
]


def replaces(later: str, earlier: str) -> bool:
    new = {claim.subject for claim in claims_of("decision", later)}
    old = {claim.subject for claim in claims_of("decision", earlier)}
    return any(f"{REPLACED_BY[subject[0]]}{subject[1:]}" in new for subject in old)


@pytest.mark.parametrize(("earlier", "later"), REPLACED)
def test_a_decision_is_replaced(earlier: str, later: str) -> None:
    assert replaces(later, earlier)


@pytest.mark.parametrize(("earlier", "later"), KEPT)
def test_a_decision_stays(earlier: str, later: str) -> None:
    assert not replaces(later, earlier)


@pytest.mark.slow
def test_of_all_pairs_only_these_are_replaced() -> None:
    every = list(dict.fromkeys(text for pair in KEPT for text in pair))
    found = {(one, other) for one in every for other in every if one.rstrip(".") != other.rstrip(".")
             and replaces(other, one)}  # fmt: skip
    assert found == {
        ("Cache: Redis", "We no longer use Redis."),
        ("Use Redis for the rate limiter.", "We no longer use Redis."),
        ("Use cron for log rotation.", "We no longer use cron."),
    }
