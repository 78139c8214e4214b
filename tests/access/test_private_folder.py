"""The folder of a user's sockets, and who else can open it."""

import os
import stat

import pytest

from cosim.access import private_folder as module
from cosim.access.private_folder import private_folder
from cosim.errors import InputError


@pytest.fixture
def parent(tmp_path, monkeypatch):
    parent = tmp_path / "user"
    parent.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(parent))
    return parent


def test_it_is_closed_to_others_whatever_the_umask(parent):
    mask = os.umask(0)
    try:
        folder = private_folder()
    finally:
        os.umask(mask)
    assert folder == parent / "cosim"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert private_folder() == folder


def test_one_that_others_can_open_is_refused(parent, said):
    private_folder().chmod(0o755)
    with pytest.raises(InputError) as caught:
        private_folder()
    said(caught.value)


def test_a_link_and_a_file_are_refused(parent, tmp_path):
    theirs = tmp_path / "theirs"
    theirs.mkdir(mode=0o700)
    (parent / "cosim").symlink_to(theirs)
    with pytest.raises(InputError, match="the folder for sockets is not of this user alone"):
        private_folder()
    (parent / "cosim").unlink()
    (parent / "cosim").touch()
    with pytest.raises(InputError, match="the folder for sockets cannot be made: File exists"):
        private_folder()


def test_a_parent_that_others_can_open_is_not_used(parent, monkeypatch):
    """Nor one of another user, as sudo leaves it."""
    monkeypatch.setattr(module, "_parents", lambda user: iter([parent]))
    parent.chmod(0o755)
    assert private_folder().parent == module.Path("/tmp")
    parent.chmod(0o700)
    assert private_folder() == parent / "cosim"
