"""Archives are unpacked below their folder and within bounds, or refused in a sentence with the place."""

import stat
import warnings
import zipfile
from pathlib import Path

import pytest

from cosim.errors import InputError
from cosim.trust import unpacking
from cosim.trust.unpacking import unpack_files, unpack_zip


def archive(path: Path, *names: str, mode: int = 0, size: int = 1) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a name that occurs twice
        for name in names:
            entry = zipfile.ZipInfo(name)
            entry.external_attr = mode << 16
            file.writestr(entry, b"\0" * size, zipfile.ZIP_DEFLATED)
    return path


def refusal(path: Path, folder: Path) -> str:
    with pytest.raises(InputError) as caught:
        unpack_zip(path, folder, "a.zip")
    assert not folder.exists()
    return str(caught.value)


OUTSIDE = "a.zip: holds the path '{}' outside of its archive; export it again"


@pytest.mark.parametrize("name", ["../x", "/x", "a/../../x", "..\\x", "C:x", "a/C:\\x"])
def test_a_name_that_leaves_the_folder(tmp_path: Path, name: str) -> None:
    assert refusal(archive(tmp_path / "a.zip", "ok", name), tmp_path / "to") == OUTSIDE.format(name)


@pytest.mark.parametrize(
    ("mode", "kind"),
    [
        (stat.S_IFLNK | 0o777, "a link"),
        (stat.S_IFIFO | 0o600, "no plain file"),
        (stat.S_IFCHR | 0o600, "no plain file"),
    ],
)
def test_an_entry_that_is_no_file(tmp_path: Path, mode: int, kind: str) -> None:
    path = archive(tmp_path / "a.zip", "resources/x", mode=mode)
    assert refusal(path, tmp_path / "to") == f"a.zip: holds 'resources/x', which is {kind}; export it again"


@pytest.mark.parametrize(("names", "twice"), [(("x", "x"), "x"), (("x", "x/y"), "x"), (("x/y", "x"), "x")])
def test_a_name_that_occurs_twice(tmp_path: Path, names: tuple[str, ...], twice: str) -> None:
    assert (
        refusal(archive(tmp_path / "a.zip", *names), tmp_path / "to")
        == f"a.zip: holds '{twice}' twice; export it again"
    )


def test_more_than_the_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpacking, "MOST_BYTES", 1_000_000)
    path = archive(tmp_path / "a.zip", "a", "b", size=600_000)
    assert path.stat().st_size < 10_000
    what = "holds 0.0012 GB, and archives are unpacked up to 0.001 GB; export it again without what is not needed"
    assert refusal(path, tmp_path / "to") == f"a.zip: {what}"


def test_more_files_than_the_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpacking, "MOST_ENTRIES", 2)
    what = "holds more than 2 files; export it again without those that are not needed"
    assert refusal(archive(tmp_path / "a.zip", "a", "b", "c"), tmp_path / "to") == f"a.zip: {what}"


def test_an_entry_that_declares_less_than_it_has_is_not_unpacked_beyond(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.zip", "a", size=100_000)
    data = bytearray(path.read_bytes())
    for head, at in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        place = data.index(head) + at
        data[place : place + 4] = (10).to_bytes(4, "little")
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"a\.zip: damaged"):
        unpack_zip(path, tmp_path / "to", "a.zip")
    assert sum(file.stat().st_size for file in (tmp_path / "to").rglob("*")) <= 10


def test_what_is_no_archive(tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_text("text")
    what = "no zip archive (File is not a zip file); an archive is one: export or copy it again"
    assert refusal(tmp_path / "a.zip", tmp_path / "to") == f"a.zip: {what}"


def test_files_and_folders_are_unpacked(tmp_path: Path) -> None:
    unpack_zip(archive(tmp_path / "a.zip", "x/", "x/y", "z"), tmp_path / "to", "a.zip")
    assert sorted(file.name for file in (tmp_path / "to").rglob("*")) == ["x", "y", "z"]
    unpack_files({"rigs/a.yaml": "a", "b.bin": b"\0"}, tmp_path / "files", "a.mcap")
    assert (tmp_path / "files" / "rigs" / "a.yaml").read_text() == "a"
