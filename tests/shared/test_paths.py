"""Files as rigs and robots name them."""

from pathlib import Path

import pytest

from cosim.core.errors import InputError
from cosim.core.paths import LEVELS, files_below, find_package, locate


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with packages; the variables of ROS are not set."""
    for variable in ("ROS_PACKAGE_PATH", "AMENT_PREFIX_PATH", "NOWHERE"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.setenv("BOTS", "/bots")
    for folder in ("ws/src/deep/arm", "ws/arm", "robot/urdf"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "robot/package.xml").write_text("<package>\n  <name>  my_robot </name></package>")
    return tmp_path


PATHS = {"a/b.csv": "rig/a/b.csv", "/a/b.csv": "/a/b.csv", "~/b.csv": "/home/me/b.csv", "$BOTS/b.csv": "/bots/b.csv"}
PATHS |= {"${BOTS}_2/$BOTS": "/bots_2//bots", "a~b/$": "rig/a~b/$"}


def test_a_path_is_relative_to_its_folder_or_from_elsewhere(place):
    assert {text: locate(text, Path("rig")) for text in PATHS} == {text: Path(path) for text, path in PATHS.items()}


@pytest.mark.parametrize("text", ["$NOWHERE/a", "~nobody_here/a", "package://none/a"])
def test_what_does_not_exist_is_named_with_the_fix(place, text, said):
    with pytest.raises(InputError) as caught:
        locate(text, place)
    said(caught.value)


def test_the_nearest_package_counts(place, monkeypatch):
    assert find_package("arm", [place / "ws"], place) == place / "ws/arm"
    assert find_package("arm", [place / "ws/src"], place) == place / "ws/src/deep/arm"
    assert find_package("arm", [place / "ws/arm"], place) == place / "ws/arm"
    monkeypatch.setenv("ROS_PACKAGE_PATH", f"/nowhere:{place / 'ws'}")
    assert find_package("arm", [], place / "robot") == place / "ws/arm"
    assert find_package("arm", [place / "ws/src"], place) == place / "ws/src/deep/arm"


def test_the_package_of_a_file_is_above_it(place):
    assert find_package("robot", [], place / "robot/urdf") == place / "robot"
    assert find_package("my_robot", [], place / "robot/urdf") == place / "robot"
    assert locate("package://my_robot/urdf/x.urdf", place / "robot/urdf") == place / "robot/urdf/x.urdf"


def test_a_package_beside_the_own_one_is_found(place):
    (place / "arm").mkdir()
    assert find_package("arm", [], place / "robot/urdf") == place / "arm"


@pytest.mark.parametrize("deep", [1, LEVELS, LEVELS + 1])
def test_files_below_a_folder_are_found_to_a_depth(tmp_path, deep):
    """Each folder of a chain has one, and a link to the first folder, which is not followed."""
    names, folder = [], tmp_path
    for _ in range(deep):
        for name in ("a.urdf", "b.txt"):
            (folder / name).write_text("")
        names.append((folder / "a.urdf").relative_to(tmp_path).as_posix())
        (folder / "link").symlink_to(tmp_path, target_is_directory=True)
        folder /= "d"
        folder.mkdir()
    folder.rmdir()
    assert files_below(tmp_path, (".urdf",)) == (sorted(names[:LEVELS]), deep <= LEVELS)


def test_a_search_of_many_files_ends(tmp_path, monkeypatch):
    monkeypatch.setattr("cosim.core.paths.MOST_ENTRIES", 10)
    for folder in ("a", "b", "c"):
        (tmp_path / folder).mkdir()
        for k in range(9):
            (tmp_path / folder / f"{k}.urdf").write_text("")
    found, complete = files_below(tmp_path, (".urdf",))
    assert len(found) == 7 and not complete and all(name.startswith("a/") for name in found)
