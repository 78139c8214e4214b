"""Layouts: trees of arrays to flat vectors and back, and errors."""

import numpy as np
import pytest

from cosim.core.compile import ArrayPort, compile
from cosim.core.layout import Layout

TREE = {
    "a": np.array([1.0, 2.0]),
    "part": {"m": np.arange(6.0).reshape(2, 3), "inner": {"s": np.array(9.0)}},
    "b": np.zeros(0),
}
FLAT = [1.0, 2.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 9.0]


@pytest.fixture
def layout():
    return Layout(TREE)


def test_the_vector_holds_the_leaves_in_the_order_of_the_tree(layout):
    assert layout.size == 9
    np.testing.assert_array_equal(layout.pack(TREE), FLAT)


def test_there_and_back_is_the_same_tree_also_for_another_order_of_keys(layout):
    other = {"b": TREE["b"], "part": {"inner": TREE["part"]["inner"], "m": TREE["part"]["m"]}, "a": TREE["a"]}
    np.testing.assert_array_equal(layout.pack(other), FLAT)
    tree = layout.unpack(np.array(FLAT))
    assert list(tree) == ["a", "part", "b"] and list(tree["part"]) == ["m", "inner"]
    np.testing.assert_array_equal(tree["part"]["m"], TREE["part"]["m"])
    assert tree["part"]["inner"]["s"].shape == () and tree["part"]["inner"]["s"] == 9.0
    assert tree["b"].shape == (0,)


def test_numbers_and_lists_count_as_arrays(layout):
    tree = {"a": [1, 2], "part": {"m": TREE["part"]["m"].tolist(), "inner": {"s": 9}}, "b": []}
    packed = layout.pack(tree)
    assert packed.dtype == float
    np.testing.assert_array_equal(packed, FLAT)


def test_what_is_unpacked_is_a_view_of_the_vector(layout):
    vector = np.array(FLAT)
    layout.unpack(vector)["part"]["m"][1, 2] = -5.0
    assert vector[7] == -5.0


def test_each_leaf_has_its_places(layout):
    assert layout.index("a").tolist() == [0, 1]
    assert layout.index("part", "m").tolist() == [2, 3, 4, 5, 6, 7]
    assert layout.index("part", "inner", "s").tolist() == [8]
    assert layout.index("b").tolist() == []


def test_an_empty_tree_is_an_empty_vector():
    empty = Layout({})
    assert empty.size == 0 and empty.unpack(np.zeros(0)) == {}
    assert empty.pack({}).shape == (0,)
    assert Layout({"part": {}}).unpack(np.zeros(0)) == {"part": {}}


OTHERS = {
    "keys that are missing": {"a": np.zeros(2)},
    "further keys": {**TREE, "c": 1.0, "d": {"e": 1.0}},
    "a longer array": {**TREE, "a": np.zeros(3)},
    "a transposed matrix": {**TREE, "part": {**TREE["part"], "m": np.zeros((3, 2))}},
    "a number": {**TREE, "a": 1.0},
}


@pytest.mark.parametrize("what", OTHERS)
def test_another_tree_does_not_fit(layout, what, said):
    with pytest.raises(ValueError) as caught:
        layout.pack(OTHERS[what])
    said(caught.value)


def test_symbols_are_packed_and_unpacked_like_numbers(layout):
    def there_and_back(vector):
        tree = layout.unpack(vector)
        tree["a"] = 2.0 * tree["a"]
        tree["part"]["inner"]["s"] = tree["a"][1] + tree["part"]["m"][1, 0]
        return layout.pack(tree)

    vector = np.array(FLAT)
    compiled = compile(there_and_back, [ArrayPort("vector", (9,))], interpret=False)
    np.testing.assert_array_equal(compiled(vector), there_and_back(np.array(FLAT)))
    np.testing.assert_array_equal(compiled(vector), [2.0, 4.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 7.0])
