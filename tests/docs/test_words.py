"""No public name, message, docstring or page uses a word that the project has replaced by a term of the field."""

from __future__ import annotations

import re

import pytest

from tests.docs.words import CODE, EXCEPTIONS, NAMES, PAGES, PROSE, all_found, excepted, words_of
from tests.kit.given import beside

GIVEN = beside(__file__)


def test_only_terms_of_the_field_are_used_and_every_exception_is() -> None:
    every = all_found((*CODE, *PAGES))
    found = [f"{one.path}:{one.line}: {one.kind} {one.text}; use: {one.instead}" for one in every if not excepted(one)]
    assert not found, "\n".join(found)
    for exception in EXCEPTIONS:
        assert exception[2]
        assert any(excepted(one, (exception,)) for one in every), exception


@pytest.mark.parametrize(("text", "word"), GIVEN["a_replaced_word_is_found"])
def test_a_replaced_word_is_found(text: str, word: str) -> None:
    assert word in [match[0] for pattern in PROSE for match in re.finditer(pattern, text)]


@pytest.mark.parametrize("text", GIVEN["a_term_of_the_field_is_not_found"])
def test_a_term_of_the_field_is_not_found(text: str) -> None:
    assert not [pattern for pattern in PROSE if re.search(pattern, text)]


def test_names_are_split_into_words() -> None:
    assert words_of("RightsTaken_byName") == ["rights", "taken", "by", "name"]
    assert words_of("MOST_ITEMS") == ["most", "items"]
    assert not set(NAMES) & set(NAMES.values())
