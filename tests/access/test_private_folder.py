"""The folder of a user's sockets, and who else can open it."""

import os
import stat

import pytest

from cosim.core.access import private_folder as module
from cosim.core.access.private_folder import private_folder
from cosim.core.errors import InputError


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


OTHERS = {
    "open to others": lambda folder: folder.mkdir(mode=0o755),
    "a link": lambda folder: folder.symlink_to(folder.parent),
    "a file": lambda folder: folder.touch(),
}


@pytest.mark.parametrize("what", OTHERS)
def test_anything_else_in_its_place_is_refused(parent, what, said):
    OTHERS[what](parent / "cosim")
    with pytest.raises(InputError) as caught:
        private_folder()
    said(caught.value)


def test_a_parent_that_others_can_open_is_not_used(parent, monkeypatch):
    """Nor one of another user, as sudo leaves it."""
    monkeypatch.setattr(module, "_parents", lambda user: iter([parent]))
    parent.chmod(0o755)
    assert private_folder().parent == module.Path("/tmp")
    parent.chmod(0o700)
    assert private_folder() == parent / "cosim"
