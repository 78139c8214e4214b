"""What is said of files and functions of elastic links that are wrong."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from cosim.core.errors import InputError
from cosim.mechanics.multibody.elastic.finite_elements import read_matrix
from cosim.mechanics.multibody.elastic.table import read_elastic_table
from tests.kit.refusals import raised
from tests.multibody.elastic_files.bodies import TIP, files_of
from tests.multibody.elastic_files.meshes import beam_mesh, brick_mesh
from tests.multibody.elastic_files.test_table import rod, sampled, write


@pytest.fixture
def table():
    return sampled(5, (2, 0, 0, 0))


def said_of(call, folder):
    """The message, without the folder of the files."""
    return str(raised(InputError, call)).replace(f"{folder}/", "")


def changed(name, change):
    def edit(arrays):
        value = np.array(arrays[name], dtype=float)
        arrays[name] = change(value) if callable(change) else change

    return edit


def with_element(*at, value):
    def change(array):
        array[at] = value
        return array

    return change


def in_hertz(frequencies):
    def edit(arrays):
        del arrays["stiffness"]
        arrays["frequencies"] = np.array(frequencies)

    return edit


def without_motion(arrays):
    """Of its second mode."""
    in_hertz([24.0, 30.0])(arrays)
    arrays["displacements"][:, 1] = arrays["rotations"][:, 1] = 0.0


def without(name):
    return lambda arrays: arrays.pop(name)


def more(**given):
    return lambda arrays: arrays.update({name: np.array(value) for name, value in given.items()})


def coupled(arrays):
    in_hertz([24.0, 150.0])(arrays)
    arrays["displacements"][:, 1] += 0.5 * arrays["displacements"][:, 0]


def skew_second_order(arrays):
    arrays["second_order"] = np.zeros((6, 2, 2, 3))
    arrays["second_order"][1, 0, 1, 0] = 1.0


SKEW = np.array([[0.0, 0.1], [0.0, 0.0]])
TABLES = {
    "a name with a typing mistake": lambda arrays: arrays.update(mases=arrays.pop("masses")),
    "no masses": without("masses"),
    "too few displacements": changed("displacements", lambda a: a[:-1]),
    "too few rotations": changed("rotations", lambda a: a[:, :1]),
    "a position that is no number": changed("positions", with_element(2, 1, value=np.nan)),
    "masses in words": changed("masses", np.array(list("abcdef"))),
    "a negative mass": changed("masses", with_element(3, value=-1.0)),
    "no mass at all": changed("masses", lambda a: 0.0 * a),
    "inertias without rotations": without("rotations"),
    "frequencies and stiffness": more(frequencies=[24.0, 150.0]),
    "neither frequencies nor stiffness": without("stiffness"),
    "a skew stiffness": changed("stiffness", lambda a: a + a.max() * SKEW),
    "a negative stiffness": changed("stiffness", lambda a: np.diag([-1e4, 2e4])),
    "a mode twice": changed("displacements", lambda a: a[:, [0, 0]]),
    "no modes": changed("displacements", lambda a: a[:, :0]),
    "a mode that nothing resists": changed("stiffness", lambda a: np.diag([2e4, 0.0])),
    "a mode without mass": without_motion,
    "a negative frequency": in_hertz([24.0, -3.0]),
    "a frequency of 0": in_hertz([0.0, 24.0]),
    "modes that are not orthogonal": coupled,
    "a damping ratio above 1": more(damping_ratios=[0.01, 2.0]),
    "impossible inertias": changed("inertias", with_element(2, value=[5.0, 1.0, 2.0])),
    "negative inertias": changed("inertias", with_element(1, value=[-0.1, 0.0, 0.0])),
    "second order displacements that are not symmetric": skew_second_order,
}


@pytest.mark.parametrize("case", TABLES)
def test_a_table_that_is_wrong(case, table, tmp_path, said):
    TABLES[case](table)
    path = write(tmp_path, table)
    message = said_of(lambda: read_elastic_table(path), tmp_path)
    assert message.startswith("modes.npz: ")
    said(message, r"0\.\d{3,}")


@pytest.mark.parametrize("given", [{"mass": 4050.0}, {"inertia": np.eye(3)}], ids=["mass", "inertia"])
def test_nodes_with_another_mass_than_that_of_the_link(given, table, tmp_path, said):
    path = write(tmp_path, table)
    said(said_of(lambda: read_elastic_table(path, **given), tmp_path))


FILES = {
    "none.npz": None,
    "broken.npz": "PK no archive",
    "modes.txt": "1 2 3",
    "list.json": "[1, 2]",
    "uneven.json": '{"masses": [[1], [1, 2]]}',
    "broken.json": "no",
    "deep.json": "[" * 100000,
    "array.npz": np.eye(3),
}


@pytest.mark.parametrize("name", FILES)
def test_files_that_are_no_tables(name, tmp_path, said):
    path, content = tmp_path / name, FILES[name]
    if isinstance(content, str):
        path.write_text(content)
    elif content is not None:
        with path.open("wb") as file:
            np.save(file, content)
    message = said_of(lambda: read_elastic_table(path), tmp_path)
    assert message.startswith(f"{name}: ")
    said(message.partition(" while decoding")[0])


def twice(table):
    """A node twice, which the modes move apart."""
    for name in ("positions", "masses", "inertias", "displacements", "rotations"):
        table[name] = np.concatenate([table[name], table[name][3:4]])
    table["displacements"][-1] *= 2.0
    return table


def test_hinges_where_nothing_can_be_attached(table, tmp_path, said):
    """Beside the nodes of a table, at two nodes that move apart, beside the axis of functions, and at a node of solid
    elements that is no interface."""
    beside = read_elastic_table(write(tmp_path, table))
    apart = read_elastic_table(write(tmp_path, twice(table), "twice.npz"))
    solid = fe(tmp_path / "files", brick_mesh(2)).link()
    for link, place in (
        (beside, (0.6, 0, 0)),
        (apart, (0.5, 0, 0)),
        (rod().link(), (0.1, 0.01, 0)),
        (solid, (0.5, 0, 0)),
    ):
        said(said_of(lambda link=link, place=place: link.displacement(np.array(place)), tmp_path))


CURVE = np.eye(4, k=1)[:, :, None] * [1.0, 0.0, 0.0]
FUNCTIONS = {
    "displacements of another shape": {"linear": lambda x: np.zeros((3, 3))},
    "a mass of 0": {"mass": lambda x: 0.0},
    "a mass that is no number": {"mass": lambda x: np.nan},
    "a mass that is no function": {"mass": 2.0},
    "a stiffness of another shape": {"stiffness": np.eye(3)},
    "an uneven stiffness": {"stiffness": [[1.0, 2.0], [3.0]]},
    "a complex stiffness": {"stiffness": 1j * np.eye(4)},
    "a negative mass beside": {"further_mass": -np.eye(4)},
    "a negative length": {"length": -1.0},
    "no modes": {"modes": ()},
    "modes without units": {"modes": ("q1", "q2")},
    "modes of an unknown unit": {"modes": (("q1", "mm"),)},
    "modes of one name": {"modes": (("q", "m"), ("q", "m"))},
    "a negative damping": {"damping_ratio": -0.1},
    "a skew curve": {"curve": lambda x: x * CURVE},
}


@pytest.mark.parametrize("case", FUNCTIONS)
def test_functions_that_are_wrong(case, tmp_path, said):
    said(said_of(rod(**FUNCTIONS[case]).link, tmp_path))


def fe(folder, mesh=None, **options):
    return files_of(mesh or beam_mesh(2), folder, **({"modes": 2} | options))


def matrices():
    """Mass and stiffness by what is wrong with them."""
    position, mass, stiffness = beam_mesh(2)
    skew = sparse.csr_matrix(np.triu(np.ones((18, 18)), 1))
    negative = mass - 2.0 * sparse.diags([0.0] * 17 + [mass[17, 17]])
    # masses of three nodes, without the inertia of any: three translations of the one that is not held
    lumped = sparse.diags(np.tile([1.0, 1.0, 1.0, 0.0, 0.0, 0.0], 3)).tocsr()
    found = {
        "a mass of 17 rows": (mass[:-1, :-1], stiffness, {}),
        "a stiffness of 9 rows": (mass, stiffness[:9, :9], {}),
        "a mass that is not square": (mass[:-1], stiffness, {}),
        "a stiffness that is no number": (mass, stiffness * np.nan, {}),
        "a skew stiffness": (mass, stiffness + stiffness.max() * skew, {}),
        "a negative mass": (negative, stiffness, {}),
        "a negative stiffness": (mass, -stiffness, {}),
        "more vibrations than nodes with mass": (lumped, stiffness, {"vibrations": 4}),
        "more modes than these vibrations give": (lumped, stiffness, {"modes": 8, "vibrations": 3}),
    }
    return {case: ((position, *both), options) for case, (*both, options) in found.items()}


@pytest.mark.parametrize("case", matrices())
def test_finite_elements_with_matrices_that_are_wrong(case, tmp_path, said):
    mesh, options = matrices()[case]
    said(said_of(fe(tmp_path / "files", mesh, **options).link, tmp_path / "files"), r"(?<=eigenvalue )-\d\S+\d")


WRITTEN = {  # file, content, what the message has behind its name
    "no numbers of nodes": ("nodes.csv", "x,y,z\n0,0,0\n", ":1: "),
    "no nodes": ("nodes.csv", "node,x,y,z\n", ":1: "),
    "a node twice": ("nodes.csv", "node,x,y,z\n1,0,0,0\n1,1,0,0\n", ":3: "),
    "a node with half a number": ("nodes.csv", "node,x,y,z\n1.5,0,0,0\n", ":2: "),
    "a node that is nowhere": ("nodes.csv", "node,x,y,z\n1,0,0,nan\n", ":2 z: "),
    "angles": ("nodes.csv", "node,x [deg],y,z\n1,0,0,0\n", ":1: "),
    "four coordinates": ("nodes.csv", "node,x,y,z\n1,7,0,0,0\n", ":2: "),
    "two coordinates": ("nodes.csv", "node,x,y,z\n1,0,0\n", ":2: "),
    "a mass that is no archive": ("mass.npz", "no", ": "),
    "no file": ("M.mtx", None, ": "),
    "no Matrix Market": ("M.mtx", "%%nothing", ": "),
    "an unknown suffix": ("M.txt", "1 2", ": "),
}


@pytest.mark.parametrize("case", WRITTEN)
def test_finite_elements_with_files_that_are_wrong(case, tmp_path, said):
    (name, content, place), folder = WRITTEN[case], tmp_path / "files"
    body = fe(folder)
    if content is not None:
        (folder / name).write_text(content)
    message = said_of(replace(body, mass=folder / name).link if name[0] == "M" else body.link, folder)
    assert message.startswith(f"{name}{place}")
    said(message)


OPTIONS = {
    "an interface at an unknown node": {"interfaces": {"tip": (3, 9)}},
    "an interface without nodes": {"interfaces": {"tip": ()}},
    "an interface at the root": {"interfaces": {"tip": (1,)}},
    "an interface on a line": {"mesh": brick_mesh(1), "interfaces": {"tip": (25, 26, 27)}},
    "an unknown interface that is held": {"held": ("top",)},
    "an interface that is held by too few modes": {"held": ("tip",)},
    "too many vibrations": {"vibrations": 9},
    "too many modes": {"modes": 11, "vibrations": 4},
    "another total mass": {"total_mass": 1.0},
}


@pytest.mark.parametrize("case", OPTIONS)
def test_finite_elements_with_options_that_are_wrong(case, tmp_path, said):
    said(said_of(fe(tmp_path / "files", **OPTIONS[case]).link, tmp_path / "files"))


# --- matrices that no free body has at the nodes that come with them ---

BY_COMPONENT = np.argsort(np.arange(30) % 6, kind="stable")


def grounded(position, mass, stiffness):
    """With a spring of each translation of node 3 to the ground."""
    held = np.zeros(30)
    held[12:15] = stiffness.diagonal()[12]
    return position, mass, stiffness + sparse.diags(held)


def with_root_held(position, mass, stiffness):
    """The masses of the root taken out along x."""
    kept = np.ones(30)
    kept[0] = 0.0
    return position, sparse.diags(kept) @ mass @ sparse.diags(kept), stiffness


CHANGES = {
    "shuffled": lambda position, mass, stiffness: (position[[0, 2, 1, 3, 4]], mass, stiffness),
    "in_millimetres": lambda position, mass, stiffness: (1e3 * position, mass, stiffness),
    "grounded": grounded,
    "exchanged": lambda position, mass, stiffness: (position, stiffness, mass),
    "by_component": lambda position, *matrices: (position, *(m[BY_COMPONENT][:, BY_COMPONENT] for m in matrices)),
    "with_root_held": with_root_held,
}


@pytest.mark.parametrize("change", CHANGES)
def test_matrices_of_another_body(change, tmp_path, said):
    folder = tmp_path / "files"
    made = files_of(beam_mesh(4), folder, modes=2)
    files_of(CHANGES[change](*beam_mesh(4)), folder, modes=2)
    said(said_of(made.link, folder))


@pytest.mark.parametrize(("mesh", "digits"), [(beam_mesh(4), 5), (brick_mesh(2), 7)])
def test_matrices_with_few_digits_fit(mesh, digits, tmp_path):
    position, mass, stiffness = mesh

    def rounded(matrix):
        upper = sparse.triu(matrix).tocsr()
        upper.data = np.array([float(f"{value:.{digits - 1}e}") for value in upper.data])
        return (upper + sparse.triu(upper, 1).T).tocsr()

    assert files_of((position, rounded(mass), rounded(stiffness)), tmp_path / "files", modes=2).link().mass > 4.0


def test_a_body_without_nodes_between_root_and_interface(tmp_path):
    """Its six modes are the static shapes; without the interface nothing is left."""
    made = files_of(beam_mesh(1), tmp_path / "files", modes=6)
    tip = made.link().displacement(TIP)
    assert np.linalg.matrix_rank(np.hstack([tip.path.linear, tip.angular])) == 6
    nothing = replace(files_of(beam_mesh(1), tmp_path / "files", interfaces={}), root=(1, 2))
    assert said_of(nothing.link, tmp_path) == "all nodes are in root: nothing can bend; take some out"


def test_matrices_that_do_not_fit_into_memory_and_indices_beyond_them(tmp_path, said):
    large, beyond = tmp_path / "K.mtx", tmp_path / "K.npz"
    large.write_text("%%MatrixMarket matrix array real general\n99999999 99999999\n1\n")
    np.savez(beyond, indices=[0, 99], indptr=[0] * 3 + [2], format="csr", shape=[3, 3], data=[1.0, 2.0])
    for path in (large, beyond):
        said(said_of(lambda path=path: read_matrix(path), tmp_path))


@pytest.mark.parametrize("dialect", ["byte order mark", "semicolons", "mm"])
def test_nodes_as_spreadsheets_write_them(dialect, tmp_path):
    made = files_of(beam_mesh(2), tmp_path / "files", modes=2)
    expected = made.link().mass
    path = tmp_path / "files" / "nodes.csv"
    text = path.read_text()
    if dialect == "mm":
        _, *rows = text.split()
        scaled = [[node, *(repr(1e3 * float(x)) for x in place)] for node, *place in (row.split(",") for row in rows)]
        text = "\n".join(["node,x [mm],y [mm],z [mm]", *map(",".join, scaled)])
    path.write_bytes({"semicolons": text.replace(",", ";").encode()}.get(dialect, b"\xef\xbb\xbf" + text.encode()))
    np.testing.assert_allclose(made.link().mass, expected, rtol=1e-12)
