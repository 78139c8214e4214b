"""`messages.yaml` of the rooms: written by a command, compared by tests."""

from pathlib import Path

import pytest
import yaml

from tests.kit.messages import NAME, TESTS, Said


@pytest.mark.parametrize("file", sorted(TESTS.glob(f"*/{NAME}")), ids=lambda file: file.parent.name)
def test_each_text_is_that_of_a_test(file: Path):
    for name, tests in yaml.load(file.read_text(), yaml.CSafeLoader).items():
        source = (file.parent / name).read_text()
        for test in tests:
            assert f"def {test.partition('[')[0].rpartition('::')[2]}(" in source, f"{name}: {test}"


@pytest.fixture
def room(tmp_path):
    """What tests of a room have said: `test_a` one text, `test_b` two."""
    first, second = (Said(tmp_path, "test_x.py", test, tmp_path, updates=True) for test in ("test_a[1]", "test_b"))
    first([f"{tmp_path}/rig.yaml: 3.1 ms", "ends: here"])
    first.end()
    second("one")
    second(ValueError("two"))
    second.end()
    return tmp_path


def test_what_was_said_is_written_and_holds(room):
    text = "test_x.py:\n  test_a[1]: |-\n    <folder>/rig.yaml: 3.1 ms\n    ends: here\n  test_b:\n  - one\n  - two\n"
    assert (room / NAME).read_text() == text
    again = Said(room, "test_x.py", "test_a[1]", room, updates=False)
    again(f"{room}/rig.yaml: 3.1 ms\nends: here")
    again.end()


def test_other_words_fail(room):
    with pytest.raises(AssertionError):
        Said(room, "test_x.py", "test_a[1]", room, updates=False)("ends: there")


def test_more_and_fewer_words_fail(room):
    said = Said(room, "test_x.py", "test_b", room, updates=False)
    said("one")
    with pytest.raises(AssertionError, match="2 texts, 1 said"):
        said.end()
    said("two")
    with pytest.raises(AssertionError, match="no text 3 of this test"):
        said("three")


def test_a_test_without_words_fails(room):
    with pytest.raises(AssertionError, match="no text 1 of this test"):
        Said(room, "test_x.py", "test_c", room, updates=False)("one")


def test_what_is_measured_differs(tmp_path):
    for text, updates in (("late by 3.1 ms", True), ("late by 5.9 ms", False)):
        said = Said(tmp_path, "test_x.py", "test_a", tmp_path, updates=updates)
        said(text, r"[\d.]+(?= ms)")
        said.end()
    assert "late by <measured> ms" in (tmp_path / NAME).read_text()
