"""Any table, in any dialect, is read to the bit or refused; any bytes are a table or refused."""

from __future__ import annotations

import io
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.io import savemat

from cosim.core.errors import InputError
from cosim.core.tables import FileTable, open_table
from cosim.core.tables.joint_columns import NamedColumns
from cosim.core.tables.options import TableOptions
from cosim.core.tables.text import read_text
from cosim.core.units import UNITS
from tests.kit.refusals import refusal
from tests.tables.bags import T0, joint_state, write_cdr, write_json

EXAMPLES = settings(
    max_examples=150, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
SEPARATORS = ("\t", ";", ",", "|", " ")
ENCODINGS = ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "cp1252")
ANGLES = [unit for unit, (dimension, _) in UNITS.items() if dimension == "rad"]
CELLS = st.floats(allow_nan=False, allow_infinity=False, width=64)


class Dialect(NamedTuple):
    separator: str
    comma: bool
    encoding: str
    end: str
    quoted: bool
    comment: str

    def write(self, names: list[str], rows: np.ndarray) -> bytes:
        """Numbers with all their digits; a comma within cells is quoted where it separates them."""
        mark = '"' if self.quoted or (self.comma and self.separator == ",") else ""
        cells = [[f"{mark}{self.number(x)}{mark}" for x in row] for row in rows.tolist()]
        head = [f'"{name}"' if self.quoted or any(c in name for c in self.separator) else name for name in names]
        text = self.end.join([*filter(None, [self.comment]), *(self.separator.join(row) for row in [head, *cells]), ""])
        return text.encode(self.encoding)

    def number(self, x: float) -> str:
        return repr(x).replace(".", ",") if self.comma else repr(x)


DIALECTS = st.builds(
    Dialect,
    st.sampled_from(SEPARATORS),
    st.booleans(),
    st.sampled_from(ENCODINGS),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.booleans(),
    st.sampled_from(["", "# made by hand", "% §1", "// a; b, c"]),
)


@EXAMPLES
@given(dialect=DIALECTS, values=st.lists(st.tuples(CELLS, CELLS), min_size=2, max_size=6), unit=st.sampled_from(ANGLES))
def test_a_table_in_any_dialect(dialect: Dialect, values: list[tuple[float, float]], unit: str) -> None:
    rows = np.column_stack([0.5 + np.arange(len(values)), values])
    data = dialect.write(["t", f"a [{unit}]", "b_deg"], rows)
    try:
        table = read_text(Path("a.csv"), data)
        of = NamedColumns.of(table, ("a", "b"), TableOptions())
        columns = of.required(("a", "b"), "position", bare=True)
        found = table.numbers([0, *columns]).values
    except InputError:
        # numbers such as 1,234 in a table that commas separate may have separators of thousands
        assert dialect.comma and dialect.separator == ","
        return
    np.testing.assert_array_equal(found, rows)
    assert of.factor("a", "position", columns[0], "rad") == UNITS[unit][1]
    assert of.factor("b", "position", columns[1], "rad") == UNITS["deg"][1]


@EXAMPLES
@given(dialect=DIALECTS, row=st.integers(0, 3), fault=st.sampled_from(["cut", "longer", "text", "other mark"]))
def test_a_faulty_row_is_named(dialect: Dialect, row: int, fault: str) -> None:
    """The line, whatever the dialect; a row is never left out."""
    rows = np.column_stack([0.5 + np.arange(6), np.full((6, 2), 0.125)])
    lines = dialect._replace(comment="").write(["t", "a", "b"], rows).decode(dialect.encoding).split(dialect.end)
    cells = lines[2 + row].split(dialect.separator)
    if dialect.comma and dialect.separator == ",":
        return  # a cell within quotes, which the split above breaks
    changed = {"cut": cells[:-1], "longer": [*cells, cells[-1]], "text": [*cells[:-1], "off"]}
    other = cells[-1].translate(str.maketrans(",.", ".,"))
    changed["other mark"] = [*cells[:-1], f'"{other}"' if dialect.separator == "," and '"' not in other else other]
    lines[2 + row] = dialect.separator.join(changed[fault])
    with pytest.raises(InputError) as caught:
        table = read_text(Path("a.csv"), dialect.end.join(lines).encode(dialect.encoding))
        table.numbers([table.index(name) for name in ("t", "a", "b")])
    assert f"a.csv:{3 + row}" in str(caught.value)


def every_number(path: Path) -> None:
    """What any reader of a table does with it."""
    table: FileTable = open_table(path)
    columns = range(len(table.names))
    for k in columns:
        table.strings(k)
    table.with_rows_of(list(columns)[:1]).numbers(list(columns))


@EXAMPLES
@given(data=st.binary(max_size=300))
def test_any_bytes(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(data)
    try:
        every_number(path)
    except InputError as error:
        assert str(error).startswith(str(path))


TEXT = st.text(alphabet="0123456789.,;:|\"'#%/+-eE \t\n\rtabsep=[]degnNaA\ufeff\u00a0", max_size=200)


@EXAMPLES
@given(text=TEXT)
def test_any_text(text: str, tmp_path: Path) -> None:
    test_any_bytes.hypothesis.inner_test(text.encode(), tmp_path)  # type: ignore[attr-defined]


def _npz(path: Path) -> None:
    np.savez_compressed(path, t=np.arange(9.0), position=np.ones((9, 2)), joints=np.array(["a", "b"]))


def _npy(path: Path) -> None:
    np.save(path, np.zeros(9, dtype=[("t", float), ("a", float)]))


def _mat(path: Path) -> None:
    savemat(path, {"t": np.arange(9.0), "a": np.ones(9), "names": np.array(["a"], dtype=object)}, do_compression=True)


def _parquet(path: Path) -> None:
    pyarrow.parquet.write_table(pyarrow.table({"t": np.arange(9.0), "a": np.ones(9)}), path)


def _cdr(path: Path) -> None:
    write_cdr(path, [("/j", T0 + k, joint_state(T0 + k, ["a"], [1.0])) for k in range(9)])


def _json(path: Path) -> None:
    write_json(path, [("/j", T0 + k, joint_state(T0 + k, ["a"], [1.0])) for k in range(9)])


WRITERS: dict[str, Callable[[Path], None]] = {
    "a.npz": _npz, "a.npy": _npy, "a.mat": _mat, "a.parquet": _parquet, "cdr.mcap": _cdr, "json.mcap": _json,
}  # fmt: skip


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.filterwarnings("ignore")  # of the readers of others, about what they cannot read
def test_damaged_files(name: str, tmp_path: Path) -> None:
    """Each is read, or refused at its name; cut anywhere, and with bytes changed anywhere."""
    path, rng = tmp_path / name, np.random.default_rng(7)
    WRITERS[name](path)
    every_number(path)
    whole = path.read_bytes()
    for cut in rng.integers(0, len(whole), 40):
        refused_or_read(path, whole[:cut])
    for _ in range(120):
        data = np.frombuffer(whole, np.uint8).copy()
        data[rng.integers(0, len(data), rng.integers(1, 9))] = rng.integers(0, 256)
        refused_or_read(path, data.tobytes())


def refused_or_read(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    try:
        every_number(path)
    except InputError as error:
        assert str(path) in str(error) and "\n" not in str(error).split("\n")[0]


@pytest.mark.parametrize(("separator", "columns"), list(product(SEPARATORS, (3, 40))))
def test_a_long_table_is_read_at_once(separator: str, columns: int) -> None:
    """Its rows do not go through Python cell by cell: that would take minutes."""
    values = np.arange(3.0 * 2000).reshape(-1, 3)[:, [k % 3 for k in range(columns)]]
    file = io.StringIO()
    np.savetxt(file, values, delimiter=separator, header=separator.join(f"c{k}" for k in range(columns)), comments="")
    table = read_text(Path("a.csv"), file.getvalue().encode())
    body = table.read.__self__  # type: ignore[attr-defined]
    assert body._at_once([0, columns - 1]) is not None
    np.testing.assert_array_equal(table.numbers(range(columns)).values, values)


LARGE = 3_000_000  # bytes
LETTERS = np.frombuffer(b"abcxyz ,;.\n", np.uint8)
NO_TABLES: dict[str, Callable[[np.random.Generator], bytes]] = {
    "random": lambda rng: rng.bytes(LARGE),
    "zeros": lambda rng: bytes(LARGE),
    "words": lambda rng: b"xyz\n" * (LARGE // 4),
    "one line": lambda rng: b"1," * (LARGE // 2),
    "one word": lambda rng: b"x" * LARGE,
    "prose": lambda rng: LETTERS[rng.integers(0, len(LETTERS), LARGE)].tobytes(),
    "random behind names": lambda rng: b"t,a\n" + rng.bytes(LARGE),
    "a picture": lambda rng: b"\x89PNG\r\n\x1a\n" + rng.bytes(LARGE),
    "a program": lambda rng: b"\x7fELF\x02\x01\x01" + bytes(9) + rng.bytes(LARGE),
}


@pytest.mark.parametrize("name", [f"file.{suffix}" for suffix in ("csv", "npz", "parquet", "mat", "mcap", "bin")])
@pytest.mark.parametrize("kind", NO_TABLES)
def test_large_files_that_are_no_table(kind: str, name: str, tmp_path: Path) -> None:
    """Each is refused in one line, by its first lines alone: that takes no minutes."""
    path = tmp_path / name
    path.write_bytes(NO_TABLES[kind](np.random.default_rng(5)))
    words = refusal(open_table, path)
    assert words.startswith(str(path)) and "\n" not in words and len(words) - len(str(path)) < 250
    if "random" in kind and name == "file.csv":
        assert "its bytes are neither text nor Parquet, MATLAB, NumPy or MCAP, which are read" in words
