"""Whose a folder is: one answer for sockets, keys and cached code."""

import os

import pytest

from cosim.core.trust.private_cache import is_private


@pytest.mark.parametrize(("mode", "private"), [(0o700, True), (0o500, True), (0o710, False), (0o701, False)])
def test_a_folder_is_private_where_others_can_do_nothing(tmp_path, mode, private):
    folder = tmp_path / "folder"
    folder.mkdir()
    folder.chmod(mode)
    assert is_private(folder) is private
    (tmp_path / "link").symlink_to(folder)
    assert not is_private(tmp_path / "link")


def test_nothing_and_a_file_and_the_folder_of_another_user_are_not_private(tmp_path, monkeypatch):
    (tmp_path / "file").touch(0o600)
    assert not is_private(tmp_path / "missing") and not is_private(tmp_path / "file")
    tmp_path.chmod(0o700)
    assert is_private(tmp_path)
    other = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: other)
    assert not is_private(tmp_path)
