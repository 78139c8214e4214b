"""No public name, message, docstring or page uses a word that the project has replaced by a term of the field."""

from __future__ import annotations

import re

import pytest

from tests.docs.words import CODE, EXCEPTIONS, NAMES, PAGES, PROSE, ROOT, all_found, excepted, offenders, words_of


def rooms() -> list[str]:
    """Every folder that is checked on its own, so that a failure names its room."""
    packages = [path for path in sorted((ROOT / "cosim").iterdir()) if path.is_dir() and not path.is_symlink()]
    folders = [path for path in packages if path.name != "__pycache__"]
    modules = sorted((ROOT / "cosim").glob("*.py"))
    families = [path for path in sorted((ROOT / "drivers").iterdir()) if path.is_dir() and path.name != "__pycache__"]
    paths = [*folders, *modules, *families, ROOT / "controllers", *(ROOT / page for page in PAGES)]
    return [str(path.relative_to(ROOT)) for path in paths]


@pytest.mark.parametrize("path", rooms())
def test_only_terms_of_the_field_are_used(path: str) -> None:
    found = [f"{one.path}:{one.line}: {one.kind} {one.text}; use: {one.instead}" for one in offenders((path,))]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("the run says how late it was", "says"),
        ("ticks are on time", "on time"),
        ("the fault and its mend", "mend"),
        ("12 % of its bit rate", "% of its bit rate"),
        ("motors are let go", "let go"),
        ("the carrier of the robot", "carrier"),
        ("the effort asked for", "asked for"),
        ("the Python lane", "lane"),
    ],
)
def test_a_replaced_word_is_found(text: str, word: str) -> None:
    assert word in [match[0] for pattern in PROSE for match in re.finditer(pattern, text)]


@pytest.mark.parametrize(
    "text",
    [
        "SIMD lanes",
        "Baumgarte stabilisation",
        "the constraint depends on time",
        "cosim asks for confirmation",
        "line 12 of the file",
        "the lines of a plot",
    ],
)
def test_a_term_of_the_field_is_not_found(text: str) -> None:
    assert not [pattern for pattern in PROSE if re.search(pattern, text)]


def test_names_are_split_into_words() -> None:
    assert words_of("RightsTaken_byName") == ["rights", "taken", "by", "name"]
    assert words_of("MOST_ITEMS") == ["most", "items"]
    assert not set(NAMES) & set(NAMES.values())


def test_every_exception_has_a_reason_and_is_used() -> None:
    every = all_found((*CODE, *PAGES))
    for exception in EXCEPTIONS:
        assert exception[2]
        assert any(excepted(one, (exception,)) for one in every), exception
