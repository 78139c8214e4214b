"""Archives are unpacked below their folder and within bounds, or refused in a sentence with the place."""

import stat
import warnings
import zipfile
from pathlib import Path

import pytest

from cosim.core.errors import InputError
from cosim.core.trust import unpacking
from cosim.core.trust.unpacking import unpack_files, unpack_zip


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


NAMES = {name: (("ok", name), {}) for name in ("../x", "/x", "a/../../x", "..\\x", "C:x", "a/C:\\x")}
KINDS = {"link": stat.S_IFLNK | 0o777, "fifo": stat.S_IFIFO | 0o600, "device": stat.S_IFCHR | 0o600}
REFUSED = NAMES | {kind: (("resources/x",), {"mode": mode}) for kind, mode in KINDS.items()}
REFUSED |= {f"{a} and {b}": ((a, b), {}) for a, b in (("x", "x"), ("x", "x/y"), ("x/y", "x"))}
REFUSED |= {"too large": (("a", "b"), {"size": 600_000}), "too many": (("a", "b", "c"), {})}


@pytest.mark.parametrize("what", REFUSED)
def test_what_leaves_the_folder_or_its_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str, said) -> None:
    monkeypatch.setattr(unpacking, "MOST_BYTES", 1_000_000)
    monkeypatch.setattr(unpacking, "MOST_ENTRIES", 2)
    names, options = REFUSED[what]
    path = archive(tmp_path / "a.zip", *names, **options)
    assert path.stat().st_size < 10_000
    said(refusal(path, tmp_path / "to"))


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
    assert refusal(tmp_path / "a.zip", tmp_path / "to").startswith("a.zip: no zip archive (File is not a zip file)")


def test_files_and_folders_are_unpacked(tmp_path: Path) -> None:
    unpack_zip(archive(tmp_path / "a.zip", "x/", "x/y", "z"), tmp_path / "to", "a.zip")
    assert sorted(file.name for file in (tmp_path / "to").rglob("*")) == ["x", "y", "z"]
    unpack_files({"rigs/a.yaml": "a", "b.bin": b"\0"}, tmp_path / "files", "a.mcap")
    assert (tmp_path / "files" / "rigs" / "a.yaml").read_text() == "a"
