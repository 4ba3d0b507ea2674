"""Which prompts memory is asked on, and which of them ask about earlier work."""

import pytest

from signet_sync.text.prompt import LONGEST, find_search_words, is_about_earlier_work


@pytest.mark.parametrize(
    "prompt",
    [
        "fix the retry loop", "/home/ada/x.py fails with exit 2", "why?", "retry.py",
        "上次为什么失败", "wo liegt der Fehler?", "<div> is not closed in page.html", "ok, then rename retry.py",
    ],
)  # fmt: skip
def test_words_are_searched_for(prompt):
    assert find_search_words(f"  {prompt}\n") == prompt


@pytest.mark.parametrize(
    "prompt",
    [
        "", " \n\t", "yes", "Ok, go on!", "danke", "да", "…", "/compact", "/memory:show all of it", "!ls -la src",
        "#remember the milk", "# of the milk", "<task-notification>\n<summary>done</summary>",
        "<bash-input>ls</bash-input>", "x " * LONGEST,
    ],
)  # fmt: skip
def test_what_is_no_prompt_is_not(prompt):
    assert find_search_words(prompt) == ""


@pytest.mark.parametrize(
    "prompt",
    [
        "why did we choose sqlite?", "which queue was renamed", "how are rejected rows kept?", "what is still open?",
        "Warum haben wir das Format geändert?", "Welche Bibliothek wurde verwendet?", "¿por qué hicimos eso?",
        "почему мы выбрали это?", "なぜクラッシュした？", "我们上次为什么失败?",
    ],
)  # fmt: skip
def test_questions_about_earlier_work(prompt):
    assert is_about_earlier_work(prompt)


@pytest.mark.parametrize(
    "prompt",
    [
        "can we add a dark mode?", "should we use redis?", "let's see what we have done", "what is a monad?",
        "how do I center a div?", "we need a button that was requested", "could you tell why it was red?",
        "Können wir das umbenennen?", "Write a test", "What does this regex do?",
    ],
)  # fmt: skip
def test_wishes_and_other_questions(prompt):
    assert not is_about_earlier_work(prompt)
