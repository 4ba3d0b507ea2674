"""Queries that are no good questions, each of which every place that searches has to answer soon."""

from __future__ import annotations

HOSTILE = {
    "10,000 words": " ".join(f"word{number}" for number in range(10_000)),
    "a megabyte of words": "retry " * 170_000,
    "a word of a megabyte": "a" * 1_000_000,
    "a megabyte of CJK": "备" * 1_000_000,
    "stop words": "the who of it and is",
    "emoji": "🔦🗼👩‍💻",
    "Chinese": "为什么队列要重试",
    "Japanese": "なぜキューは再試行するのですか",
    "Thai": "ทำไมคิวต้องลองใหม่",
    "operators": 'retry AND OR NOT NEAR(queue, 2) ^loop * content: - + {a b}: "',
    "a column": "content:retry",
    "an open group": "NEAR(",
    "a star": "*",
    "a dash": "-retry",
    "an option": "--",
    "quotes": '"' * 10_000,
    "NUL": "\0retry\0",
    "control characters": "".join(map(chr, range(32))) + "\x7f\x85\x9b retry",
    "a lone surrogate": "\ud800 retry",
    "SQL": "'; drop table memories; --",
    "parentheses": "(" * 5_000 + "queue" + ")" * 5_000,
    "humps": "aB" * 50_000,
    "blanks": " \u3000\u00a0\t ",
    "nothing": "",
}
