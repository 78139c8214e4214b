"""The cache folder holds code, and is used only where nobody else can write to it."""

import os
from pathlib import Path

import pytest

from cosim.core.compile import ArrayPort, compile
from cosim.core.trust.private_cache import SAID, code_folder, private_cache, why_not_private


@pytest.fixture(autouse=True)
def unsaid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SAID, "")
    monkeypatch.delenv(SAID)
    private_cache.__globals__["_checked"].cache_clear()


@pytest.mark.parametrize("exists", [False, True])
def test_the_default_folder_of_this_user_is_closed_to_others(tmp_path, monkeypatch, exists: bool) -> None:
    monkeypatch.delenv("COSIM_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    if exists:
        (tmp_path / "cosim").mkdir(mode=0o755)
    assert private_cache() == tmp_path / "cosim"
    assert (tmp_path / "cosim").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("mode", [0o777, 0o755, 0o1777], ids=oct)
def test_an_open_folder_is_not_used_which_is_stated_once(tmp_path, monkeypatch, capsys, mode: int, said) -> None:
    folder = tmp_path / "cache"
    folder.mkdir()
    folder.chmod(mode)
    monkeypatch.setenv("COSIM_CACHE_DIR", str(folder))
    for _ in range(2):
        assert not compile(lambda x: x + 2.5, [ArrayPort("x", (3,))]).library.from_cache
    assert list(folder.iterdir()) == []
    said(capsys.readouterr().err)
    assert not code_folder().is_relative_to(folder)


def test_a_folder_above_that_others_can_write_to(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    (shared / "cache").mkdir(parents=True, mode=0o700)
    (shared / "cache").chmod(0o700)
    assert why_not_private(shared / "cache") == ""
    shared.chmod(0o777)
    assert why_not_private(shared / "cache").startswith(f"{shared}: others can write to it")
    shared.chmod(0o1777)  # as /tmp
    assert why_not_private(shared / "cache") == ""


def test_a_link_leads_to_a_folder_that_is_checked(tmp_path: Path) -> None:
    real = tmp_path / "open" / "cache"
    real.mkdir(parents=True)
    real.chmod(0o700)
    (tmp_path / "link").symlink_to(real)
    assert why_not_private(tmp_path / "link") == ""
    real.parent.chmod(0o777)
    assert why_not_private(tmp_path / "link").startswith(f"{real.parent}: others can write to it")


@pytest.mark.skipif(os.geteuid() != 0, reason="only the administrator can give files away")
def test_a_folder_or_a_link_of_another_user(tmp_path: Path, said) -> None:
    folder, link = tmp_path / "cache", tmp_path / "link"
    folder.mkdir(mode=0o700)
    link.symlink_to(folder)
    os.chown(link, 12345, 12345, follow_symlinks=False)
    said(why_not_private(link))
    os.chown(folder, 12345, 12345)
    said(why_not_private(folder))
