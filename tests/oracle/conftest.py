"""The robots that the oracle tests run over: every URDF file of the example-robot-data package."""

import sysconfig
from pathlib import Path

import pytest

ROBOTS = Path(sysconfig.get_path("purelib")) / "cmeel.prefix" / "share" / "example-robot-data" / "robots"


@pytest.fixture(scope="session")
def robots_folder():
    assert ROBOTS.is_dir(), f"the package example-robot-data is not installed: {ROBOTS} does not exist"
    return ROBOTS


def pytest_generate_tests(metafunc):
    """A test with the argument `robot` runs once per file that is not in `REFUSED` of its module."""
    if "robot" in metafunc.fixturenames:
        files = sorted(path.relative_to(ROBOTS).as_posix() for path in ROBOTS.rglob("*.urdf"))
        metafunc.parametrize("robot", [name for name in files if name not in metafunc.module.REFUSED])
