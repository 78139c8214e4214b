"""The table of durations knows every file of tests."""

from tests.kit import durations
from tests.kit.durations import Duration


def test_every_file_is_measured():
    files = {path.relative_to(durations.ROOT).as_posix() for path in (durations.ROOT / "tests").rglob("test_*.py")}
    unmeasured = sorted(files - set(durations.read()))
    assert not unmeasured, f"measure them: python -m tests.kit.durations {' '.join(unmeasured)}"


def test_measured_files_replace_their_rows():
    table = {
        "tests/a/test_a.py": Duration(9.0, 0.0),
        "tests/a/test_a.py::test_old": Duration(9.0, 0.0),
        "tests/a/test_b.py": Duration(1.0, 2.0),
        "tests/a/test_b.py::test_b": Duration(1.0, 2.0),
        "tests/a/test_gone.py": Duration(1.0, 0.0),
    }
    measured = {"tests/a/test_a.py::test_a": Duration(0.13, 0.31), "tests/a/test_a.py::test_short": Duration(0.1, 0.04)}
    found = durations.updated(table, measured, ["tests/a/test_a.py", "tests/a/test_b.py"])
    assert found == {
        "tests/a/test_a.py": (0.2, 0.3),
        "tests/a/test_a.py::test_a": (0.1, 0.3),
        "tests/a/test_b.py": (1.0, 2.0),
        "tests/a/test_b.py::test_b": (1.0, 2.0),
    }
