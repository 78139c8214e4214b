"""The shapes of a scene as Foxglove's classes read them."""

import struct

import numpy as np
import pytest
import trimesh

from cosim.output.scene.scene import Scene, SceneBody, ScenePose, Shape
from cosim.output.view3d.meshes import MOST_BYTES, MeshReader
from cosim.output.view3d.motion import scene_update
from tests.kit.foxglove import message_class

TURNED = ScenePose((1.0, 2.0, 3.0), (np.sqrt(0.5), 0.0, 0.0, np.sqrt(0.5)))
INERTIA = Shape("box", "inertia", "arm", TURNED, (0.1, 0.2, 0.3))


def entities(*shapes, room=MOST_BYTES):
    bodies = (SceneBody("ground", 0, TURNED, ()), SceneBody("arm", 0, TURNED, shapes))
    scene = Scene("rig", bodies, (), ("a",), 1.0, 0.0, False, False)
    data = scene_update(scene, 1_500_000_001, MeshReader(room))
    return message_class("SceneUpdate").FromString(data).entities


def three(vector):
    return vector.x, vector.y, vector.z


def test_shapes_are_primitives_in_the_frame_of_their_body():
    box = Shape("box", "link", "arm", TURNED, (1.0, 2.0, 3.0), (0.1, 0.2, 0.3, 0.4))
    shapes = Shape("cylinder", "drive", "arm", TURNED, (0.5, 0.5, 2.0)), box, box._replace(kind="ellipsoid"), INERTIA
    (entity,) = entities(*shapes)
    assert (entity.id, entity.frame_id, entity.frame_locked) == ("arm", "arm", True)
    assert entity.timestamp.ToNanoseconds() == 1_500_000_001
    assert entity.lifetime.ToNanoseconds() == 0  # for ever
    (cube,), (sphere,), (cylinder,) = entity.cubes, entity.spheres, entity.cylinders
    for primitive in (cube, sphere, cylinder):
        assert three(primitive.pose.position) == TURNED.position
        assert (primitive.pose.orientation.w, *three(primitive.pose.orientation)) == TURNED.wxyz
    assert three(cube.size) == three(sphere.size) == (1.0, 2.0, 3.0)
    assert (cube.color.r, cube.color.g, cube.color.b, cube.color.a) == (0.1, 0.2, 0.3, 0.4)
    assert three(cylinder.size) == (0.5, 0.5, 2.0)
    assert (cylinder.bottom_scale, cylinder.top_scale) == (1.0, 1.0)
    assert (cylinder.color.b, cylinder.color.a) == (176 / 255, 1.0)


@pytest.fixture
def pyramid(tmp_path):
    """An STL file, and the vertices and faces in it."""
    vertices = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 2]], dtype=float)
    faces = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])
    path = tmp_path / "pyramid.stl"
    head = b"\0" * 80 + struct.pack("<I", len(faces))
    path.write_bytes(head + b"".join(struct.pack("<12fH", 0, 0, 0, *vertices[face].ravel(), 0) for face in faces))
    assert len(trimesh.load(path).faces) == 4
    return Shape("mesh", "visual", "arm", TURNED, (2.0, 1.0, 1.0), None, str(path)), vertices[faces] * [2.0, 1.0, 1.0]


def test_a_mesh_is_its_triangles(pyramid):
    shape, corners = pyramid
    (entity,) = entities(shape, INERTIA)
    (triangles,) = entity.triangles
    points = np.array([three(point) for point in triangles.points])
    np.testing.assert_array_equal(points[list(triangles.indices)].reshape(-1, 3, 3), corners)
    assert three(triangles.pose.position) == TURNED.position
    assert not entity.cubes


def test_a_mesh_that_does_not_fit_is_the_box_around_it(pyramid):
    shape, _ = pyramid
    (entity,) = entities(shape, INERTIA, room=100)
    (cube,) = entity.cubes
    assert not entity.triangles
    assert three(cube.size) == (2.0, 1.0, 2.0)
    # the middle (1, 0.5, 1) of the mesh, turned a quarter about z
    assert three(cube.pose.position) == pytest.approx((0.5, 3.0, 4.0))


@pytest.mark.parametrize("content", [None, b"solid nothing"])
def test_a_mesh_that_cannot_be_read_leaves_the_box_of_the_inertia(pyramid, tmp_path, content):
    shape = pyramid[0]._replace(file=str(tmp_path / "broken.stl"))
    if content:
        (tmp_path / "broken.stl").write_bytes(content)
    (entity,) = entities(shape, INERTIA)
    (cube,) = entity.cubes
    assert three(cube.size) == INERTIA.size
