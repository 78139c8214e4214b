"""What is said of files and functions of elastic links that are wrong."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from cosim.errors import InputError
from cosim.multibody.elastic.table import read_table
from tests.multibody.elastic_files.bodies import files_of
from tests.multibody.elastic_files.meshes import beam_mesh, brick_mesh
from tests.multibody.elastic_files.test_table import rod, sampled, write


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("COSIM_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def table():
    return sampled(5, (2, 0, 0, 0))


def said_of(call, folder):
    """The message, without the folder of the files."""
    with pytest.raises(InputError) as error:
        call()
    return str(error.value).replace(f"{folder}/", "")


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


def renamed(old, new):
    return lambda arrays: arrays.update({new: arrays.pop(old)})


def both(arrays):
    arrays["frequencies"] = np.array([24.0, 150.0])


def in_hertz(frequencies):
    def edit(arrays):
        del arrays["stiffness"]
        arrays["frequencies"] = np.array(frequencies)

    return edit


def without_motion(frequencies):
    """of its second mode"""

    def edit(arrays):
        in_hertz(frequencies)(arrays)
        arrays["displacements"][:, 1] = arrays["rotations"][:, 1] = 0.0

    return edit


RIGID = "the rigid motions of a link are those of its joint: leave them out"
TABLES = [
    (renamed("masses", "mases"), "'mases' has no meaning; did you mean 'masses'?"),
    (
        lambda arrays: arrays.pop("masses"),
        "'masses' is missing; the file has positions, inertias, displacements, rotations, stiffness",
    ),
    (
        changed("displacements", lambda a: a[:-1]),
        "'displacements' has the shape (5, 2, 3); it must be (nodes = 6, modes, 3)",
    ),
    (
        changed("rotations", lambda a: a[:, :1]),
        "'rotations' has the shape (6, 1, 3); it must be (nodes = 6, modes = 2, 3)",
    ),
    (changed("positions", with_element(2, 1, value=np.nan)), "'positions' is not finite at [2, 1]; correct it"),
    (changed("masses", np.array(list("abcdef"))), "'masses' is not of real numbers; write it so"),
    (changed("masses", with_element(3, value=-1.0)), "node 4 has the negative mass -1 kg; correct it"),
    (changed("masses", lambda a: 0.0 * a), "no node has a mass; give 'masses'"),
    (lambda arrays: arrays.pop("rotations"), "'inertias' need 'rotations', which are missing"),
    (both, "both of 'frequencies' and 'stiffness' given; give one of them"),
    (lambda arrays: arrays.pop("stiffness"), "none of 'frequencies' and 'stiffness' given; give one of them"),
    (
        changed("stiffness", lambda a: a + a.max() * np.array([[0.0, 0.1], [0.0, 0.0]])),
        "the stiffness matrix is not symmetric, by 0.1 of its largest number; correct it",
    ),
    (
        changed("stiffness", lambda a: np.diag([-1e4, 2e4])),
        "the stiffness has the negative eigenvalue -9385 1/s^2; correct its signs",
    ),
    (
        changed("displacements", lambda a: a[:, [0, 0]]),
        "the modes are linearly dependent; leave out those that are sums of others",
    ),
    (changed("displacements", lambda a: a[:, :0]), "'displacements' has no modes; give one or more"),
    (
        changed("stiffness", lambda a: np.diag([2e4, 0.0])),
        "nothing resists mode 2, which would drift; the rigid motions of a link are those of its joint: leave them out",
    ),
    (without_motion([24.0, 30.0]), "mode 2 moves no mass; leave it out"),
    (in_hertz([24.0, -3.0]), f"the frequency -3 Hz of mode 2 is not above 0; {RIGID}"),
    (in_hertz([0.0, 24.0]), f"the frequency 0 Hz of mode 1 is not above 0; {RIGID}"),
    (
        lambda arrays: arrays.update(damping_ratios=np.array([0.01, 2.0])),
        "the damping ratio 2 must be at least 0 and at most 1",
    ),
    (
        changed("inertias", with_element(2, value=[5.0, 1.0, 2.0])),
        "the 'inertias' of node 3 are impossible: 1, 2, 5 kg*m^2; none may be negative or above the sum of the others",
    ),
    (
        changed("inertias", with_element(1, value=[-0.1, 0.0, 0.0])),
        "the 'inertias' of node 2 are impossible: -0.1, 0, 0 kg*m^2; none may be negative or above the sum of the"
        " others",
    ),
]


@pytest.mark.parametrize(("edit", "message"), TABLES)
def test_a_table_that_is_wrong(edit, message, table, tmp_path):
    edit(table)
    path = write(tmp_path, table)
    assert said_of(lambda: read_table(path), tmp_path) == f"modes.npz: {message}"


def test_modes_that_are_not_orthogonal(table, tmp_path):
    del table["stiffness"]
    table["frequencies"] = np.array([24.0, 150.0])
    table["displacements"][:, 1] += 0.5 * table["displacements"][:, 0]
    message = "modes 1 and 2 are not orthogonal in the mass: their cosine is"
    end = "; give 'stiffness' in place of 'frequencies', or the right masses"
    said = said_of(lambda: read_table(write(tmp_path, table)), tmp_path)
    assert said.startswith(f"modes.npz: {message} 0.") and said.endswith(end)


def test_nodes_with_another_mass_than_that_of_the_link(table, tmp_path):
    path = write(tmp_path, table)
    said = said_of(lambda: read_table(path, mass=4050.0), tmp_path)
    assert said == "modes.npz: the nodes have 4.05 kg together, but mass is 4050 kg; check the units of both"
    said = said_of(lambda: read_table(path, inertia=np.eye(3)), tmp_path)
    has = "the nodes have the moments of inertia 0.001148, 1.393, 1.392 kg*m^2 about the origin"
    assert said == f"modes.npz: {has}, but inertia is 1, 1, 1; check the units and the origin"


def test_second_order_displacements_that_are_not_symmetric(table, tmp_path):
    table["second_order"] = np.zeros((6, 2, 2, 3))
    table["second_order"][1, 0, 1, 0] = 1.0
    said = said_of(lambda: read_table(write(tmp_path, table)), tmp_path)
    assert said == "modes.npz: 'second_order' is not symmetric in its modes; add it to its transpose and halve it"


def test_files_that_are_no_tables(tmp_path):
    for name, content, message in (
        ("none.npz", None, "cannot be read: No such file or directory; check the path"),
        ("broken.npz", "PK no archive", "the file is no archive of NumPy; write it with numpy.savez"),
        ("modes.txt", "1 2 3", "files '.txt' are not read; write an .npz or .json file"),
        ("list.json", "[1, 2]", "the file has no names; write an object with one list per name"),
        ("uneven.json", '{"masses": [[1], [1, 2]]}', "a list has rows of different lengths; fill them up"),
        ("broken.json", "no", "the file is no JSON: Expecting value: line 1 column 1 (char 0); correct it"),
    ):
        if content is not None:
            (tmp_path / name).write_text(content)
        assert said_of(lambda name=name: read_table(tmp_path / name), tmp_path) == f"{name}: {message}"


def test_an_array_by_the_name_of_an_archive(tmp_path):
    with (tmp_path / "array.npz").open("wb") as file:
        np.save(file, np.eye(3))
    said = said_of(lambda: read_table(tmp_path / "array.npz"), tmp_path)
    assert said == "array.npz: the file is no archive of NumPy; write it with numpy.savez"


def test_a_json_file_that_nests_without_end(tmp_path):
    (tmp_path / "deep.json").write_text("[" * 100000)
    said = said_of(lambda: read_table(tmp_path / "deep.json"), tmp_path)
    assert said.startswith("deep.json: the file is no JSON: maximum recursion depth exceeded")


def test_a_hinge_at_two_nodes_that_move_apart(table, tmp_path):
    for name in ("positions", "masses", "inertias", "displacements", "rotations"):
        table[name] = np.concatenate([table[name], table[name][3:4]])
    table["displacements"][-1] *= 2.0
    link = read_table(write(tmp_path, table))
    said = said_of(lambda: link.displacement(np.array([0.5, 0.0, 0.0])), tmp_path)
    apart = "several nodes are at (0.5, 0, 0) m, and the modes move them apart"
    assert said == f"{apart}; attach it at another node, or keep one of them"


def test_a_hinge_beside_the_nodes(table, tmp_path):
    link = read_table(write(tmp_path, table))
    said = said_of(lambda: link.displacement(np.array([0.6, 0.0, 0.0])), tmp_path)
    near = "the nearest are at (0.5, 0, 0), (0.75, 0, 0), (0.25, 0, 0)"
    assert said == f"there is no node at (0.6, 0, 0) m; move it to a node of the table: {near}"


FUNCTIONS = [
    ({"linear": lambda x: np.zeros((3, 3))}, "linear(0.0003255) has the shape (3, 3); return (4, 3)"),
    ({"mass": lambda x: 0.0}, "mass(0.0003255) is not above 0; return the mass per length in kg/m"),
    ({"mass": lambda x: np.nan}, "mass(0.0003255) is not finite; correct it"),
    ({"stiffness": np.eye(3)}, "stiffness has the shape (3, 3); it must be (4, 4), of finite numbers"),
    ({"further_mass": -np.eye(4)}, "further_mass has a negative eigenvalue; correct its signs"),
    (
        {"stiffness": [[1.0, 2.0], [3.0]]},
        "stiffness has rows of different lengths; it must be (4, 4), of finite numbers",
    ),
    ({"stiffness": 1j * np.eye(4)}, "stiffness is not of real, finite numbers; it must be (4, 4), of finite numbers"),
    ({"length": -1.0}, "length = -1 m must be above 0"),
    ({"mass": 2.0}, "mass is not a function; return one of x"),
    ({"modes": ()}, "there are no modes; give the name and unit of each"),
    ({"modes": ("q1", "q2")}, "mode 1 is 'q1'; it must be a pair of a name and a unit, 'm' or 'rad'"),
    ({"modes": (("q1", "mm"),)}, "mode 1 is ('q1', 'mm'); it must be a pair of a name and a unit, 'm' or 'rad'"),
    (
        {"modes": (("q", "m"), ("q", "m"))},
        "the name 'q' of mode 2 must be one word that no other mode has, of letters, digits and _",
    ),
    ({"damping_ratio": -0.1}, "the damping ratio -0.1 must be at least 0 and at most 1"),
    (
        {"curve": lambda x: x * np.eye(4, k=1)[:, :, None] * [1.0, 0.0, 0.0]},
        "curve is not symmetric in the modes; add it to its transpose and halve it",
    ),
]


@pytest.mark.parametrize(("changes", "message"), FUNCTIONS)
def test_functions_that_are_wrong(changes, message, tmp_path):
    assert said_of(rod(**changes).link, tmp_path).replace(said_at(rod()), "0.0003255") == message


def said_at(shapes):
    """The first place at which functions are called, as a message has it."""
    first = 0.5 * shapes.length / 64 * (1.0 + np.polynomial.legendre.leggauss(4)[0][0])
    return f"{first:.4g}"


def test_a_hinge_beside_the_axis(tmp_path):
    link = rod().link()
    said = said_of(lambda: link.displacement(np.array([0.1, 0.01, 0.0])), tmp_path)
    assert said == "(0.1, 0.01, 0) m is not on the axis of the link, x from 0 to 0.3 m; move it there"


def fe(folder, mesh=None, **options):
    return files_of(mesh or beam_mesh(2), folder, **({"modes": 2} | options))


def test_finite_elements_with_matrices_that_are_wrong(tmp_path):
    position, mass, stiffness = beam_mesh(2)
    skew = sparse.csr_matrix(np.triu(np.ones((18, 18)), 1))
    negative = mass - 2.0 * sparse.diags([0.0] * 17 + [mass[17, 17]])
    hanging = stiffness.tolil()
    hanging[12:, :12] = hanging[:12, 12:] = 0.0
    for M, K, message in (
        (
            mass[:-1, :-1],
            stiffness,
            "mass.npz: the matrix has 17 rows; 3 nodes of 3 or 6 dofs need 9 or 18, in both matrices",
        ),
        (
            mass,
            stiffness[:9, :9],
            "stiffness.npz: the matrix has 9 rows; 3 nodes of 3 or 6 dofs need 9 or 18, in both matrices",
        ),
        (mass[:-1], stiffness, "mass.npz: the matrix has the shape (17, 18); it must be square"),
        (mass, stiffness * np.nan, "stiffness.npz: the matrix has numbers that are not real and finite; correct them"),
        (
            mass,
            stiffness + stiffness.max() * skew,
            "stiffness.npz: the stiffness matrix is not symmetric, by 1 of its largest number; correct it",
        ),
        (negative, stiffness, f"mass.npz: the mass {-mass[17, 17]:g} of row 18 is negative; correct it"),
    ):
        assert said_of(fe(tmp_path / "files", (position, M, K)).link, tmp_path / "files") == message
    said = said_of(fe(tmp_path / "files", (position, mass, -stiffness)).link, tmp_path)
    assert said.startswith("the stiffness matrix with the root held has the eigenvalue -")
    assert said.endswith(", which must be above 0; correct its signs, or give the root more nodes")


def test_finite_elements_with_files_that_are_wrong(tmp_path):
    folder = tmp_path / "files"
    good = fe(folder)
    for name, content, message in (
        ("nodes.csv", "x,y,z\n0,0,0\n", "no column node; the first line must be node,x,y,z, with commas"),
        ("nodes.csv", "node,x,y,z\n", "the file has no nodes; write one in each row"),
        ("nodes.csv", "node,x,y,z\n1,0,0,0\n1,1,0,0\n", "node 1 is there twice; take one out"),
        ("nodes.csv", "node,x,y,z\n1,0,0,nan\n", "node 1 has coordinates that are not finite; correct them"),
        (
            "nodes.csv",
            "node;x;y;z\n1;0;0;0\n",
            "no column node, x, y, z; the first line must be node,x,y,z, with commas",
        ),
        (
            "nodes.csv",
            "node,x,y,z\n1,7,0,0,0\n",
            "the line is not the number of a node and three coordinates; correct it",
        ),
        ("nodes.csv", "node,x,y,z\n1,0,0\n", "the line is not the number of a node and three coordinates; correct it"),
        ("mass.npz", "no", "the file is no archive of scipy.sparse.save_npz; write it again"),
    ):
        before = (folder / name).read_bytes()
        (folder / name).write_text(content)
        place = f"{name}:{content.count(chr(10))}" if message.startswith("node ") or "line is" in message else name
        assert said_of(replace(good).link, folder) == f"{place}: {message}"
        (folder / name).write_bytes(before)
    missing = replace(good, mass=folder / "M.mtx")
    assert said_of(missing.link, folder) == "M.mtx: cannot be read: No such file or directory; check the path"
    (folder / "M.mtx").write_text("%%nothing")
    assert said_of(missing.link, folder) == "M.mtx: the file is no Matrix Market file; write it again"
    (folder / "M.txt").write_text("1 2")
    other = replace(good, mass=folder / "M.txt")
    assert said_of(other.link, folder) == "M.txt: matrices '.txt' are not read; write an .mtx or .npz file"


def test_finite_elements_with_options_that_are_wrong(tmp_path):
    folder = tmp_path / "files"
    for options, message in (
        (
            {"interfaces": {"tip": (3, 9)}},
            "nodes.csv: interface 'tip': node 9 does not exist; nodes are in the column node",
        ),
        ({"interfaces": {"tip": ()}}, "interface 'tip' has no nodes; name them by their numbers in nodes.csv"),
        ({"interfaces": {"tip": (1,)}}, "node 1 is in root and in interface 'tip'; keep it in one of both"),
        ({"held": ("top",)}, "held: there is no interface 'top'; name it in interfaces"),
        (
            {"held": ("tip",)},
            "2 modes are too few for 6 held motions of interfaces, which leave it none to bend; give 7 modes or more",
        ),
        ({"vibrations": 9}, "9 vibrations are more than the 6 free dofs have; give fewer"),
        (
            {"modes": 11, "vibrations": 4},
            "11 modes are more than the 4 vibrations and 6 motions of interfaces give; give at most 10, or more"
            " vibrations",
        ),
        (
            {"total_mass": 1.0},
            "mass.npz: the nodes have 4.05 kg together, but total_mass is 1 kg; check the units of both",
        ),
    ):
        assert said_of(fe(folder, **options).link, folder) == message
    edge = said_of(fe(folder, brick_mesh(1), interfaces={"tip": (25, 26, 27)}).link, folder)
    what = "the nodes of interface 'tip' are on one line, about which it would turn"
    assert edge == f"{what}; add one beside it"


def test_a_hinge_at_a_node_of_solid_elements_that_is_no_interface(tmp_path):
    link = fe(tmp_path / "files", brick_mesh(2)).link()
    said = said_of(lambda: link.displacement(np.array([0.5, 0.0, 0.0])), tmp_path)
    assert said.startswith(
        "there is no node at (0.5, 0, 0) m; move it to an interface: the nearest are at (0, 0, 0), (1"
    )


def test_more_vibrations_than_nodes_with_mass(tmp_path):
    """Masses of three nodes, without the inertia of any: three translations of the one that is not held."""
    position, _, stiffness = beam_mesh(2)
    lumped = sparse.diags(np.tile([1.0, 1.0, 1.0, 0.0, 0.0, 0.0], 3)).tocsr()
    said = said_of(fe(tmp_path / "files", (position, lumped, stiffness), vibrations=4).link, tmp_path)
    assert said == "4 vibrations are more than the 3 that the masses of the body have; give 3 or fewer"
    said = said_of(fe(tmp_path / "files", (position, lumped, stiffness), modes=8, vibrations=3).link, tmp_path)
    what = "8 modes are more than the 3 vibrations and 6 motions of interfaces give; give at most 6, or more vibrations"
    assert said == what
