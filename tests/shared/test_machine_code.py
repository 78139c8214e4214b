"""Where machine code of functions on memory is kept."""

import os

import pytest

from cosim import machine_code


@pytest.fixture
def rooms(tmp_path, monkeypatch):
    """Sources with one file."""
    monkeypatch.setenv("COSIM_CACHE_DIR", str(tmp_path / "cache"))
    room = tmp_path / "room"
    room.mkdir()
    (room / "a.py").write_text("a = 1")
    monkeypatch.setattr(machine_code, "_ROOMS", (room,))
    return room


def test_code_is_compiled_again_when_any_source_has_changed(rooms):
    before = machine_code._cache()
    assert machine_code._cache() == before
    (rooms / "b.py").write_text("b = 1")
    after = machine_code._cache()
    assert after != before
    os.utime(rooms / "a.py", (1.0, 1.0))
    assert machine_code._cache() not in (before, after)


def test_code_of_sources_that_are_gone_is_removed(rooms):
    folder = machine_code._cache().parent
    for name, age in (("old", 40), ("recent", 20)):
        (folder / name).mkdir(parents=True)
        when = os.stat(folder / name).st_mtime - age * 86400.0
        os.utime(folder / name, (when, when))
    machine_code._cache()
    assert [path.name for path in folder.iterdir()] == ["recent"]
