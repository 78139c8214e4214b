"""The schemas of Foxglove that its 3D panel reads, as descriptors of Protobuf.

Names, numbers and types of the fields: https://docs.foxglove.dev/docs/visualization/message-schemas/introduction;
descriptors: `descriptor.proto` of Protobuf.
"""

from __future__ import annotations

from collections.abc import Iterator

from cosim.core.recordings.protobuf_wire import part, whole

PACKAGE = "foxglove"
TIME, DURATION = "google.protobuf.Timestamp", "google.protobuf.Duration"
KINDS = {"double": 1, "int64": 3, "int32": 5, "fixed32": 7, "bool": 8, "string": 9, "bytes": 12}
_MESSAGE, _ENUM = 11, 14  # kinds of fields whose type has a name
_LABELS = {"one": 1, "many": 3, "optional": 1}

# message -> its fields: number, name, type, label; a type with a dot before it is an enumeration in the message
_COLOR_AND_POSE = ((1, "pose", "Pose", "one"), (2, "size", "Vector3", "one"))
MESSAGES: dict[str, tuple[tuple[int, str, str, str], ...]] = {
    TIME: ((1, "seconds", "int64", "one"), (2, "nanos", "int32", "one")),
    DURATION: ((1, "seconds", "int64", "one"), (2, "nanos", "int32", "one")),
    "Vector3": tuple((k, name, "double", "one") for k, name in enumerate("xyz", 1)),
    "Point3": tuple((k, name, "double", "one") for k, name in enumerate("xyz", 1)),
    "Quaternion": tuple((k, name, "double", "one") for k, name in enumerate("xyzw", 1)),
    "Color": tuple((k, name, "double", "one") for k, name in enumerate("rgba", 1)),
    "Pose": ((1, "position", "Vector3", "one"), (2, "orientation", "Quaternion", "one")),
    "KeyValuePair": ((1, "key", "string", "one"), (2, "value", "string", "one")),
    "FrameTransform": (
        (1, "timestamp", TIME, "one"),
        (2, "parent_frame_id", "string", "one"),
        (3, "child_frame_id", "string", "one"),
        (4, "translation", "Vector3", "one"),
        (5, "rotation", "Quaternion", "one"),
    ),
    "FrameTransforms": ((1, "transforms", "FrameTransform", "many"),),
    "JointState": (
        (1, "name", "string", "one"),
        (2, "position", "double", "optional"),
        (3, "velocity", "double", "optional"),
        (4, "acceleration", "double", "optional"),
        (5, "effort", "double", "optional"),
    ),
    "JointStates": ((1, "timestamp", TIME, "one"), (2, "joints", "JointState", "many")),
    "ArrowPrimitive": (
        (1, "pose", "Pose", "one"),
        (2, "shaft_length", "double", "one"),
        (3, "shaft_diameter", "double", "one"),
        (4, "head_length", "double", "one"),
        (5, "head_diameter", "double", "one"),
        (6, "color", "Color", "one"),
    ),
    "CubePrimitive": (*_COLOR_AND_POSE, (3, "color", "Color", "one")),
    "SpherePrimitive": (*_COLOR_AND_POSE, (3, "color", "Color", "one")),
    "CylinderPrimitive": (
        *_COLOR_AND_POSE,
        (3, "bottom_scale", "double", "one"),
        (4, "top_scale", "double", "one"),
        (5, "color", "Color", "one"),
    ),
    "LinePrimitive": (
        (1, "type", ".Type", "one"),
        (2, "pose", "Pose", "one"),
        (3, "thickness", "double", "one"),
        (4, "scale_invariant", "bool", "one"),
        (5, "points", "Point3", "many"),
        (6, "color", "Color", "one"),
        (7, "colors", "Color", "many"),
        (8, "indices", "fixed32", "many"),
    ),
    "TriangleListPrimitive": (
        (1, "pose", "Pose", "one"),
        (2, "points", "Point3", "many"),
        (3, "color", "Color", "one"),
        (4, "colors", "Color", "many"),
        (5, "indices", "fixed32", "many"),
    ),
    "TextPrimitive": (
        (1, "pose", "Pose", "one"),
        (2, "billboard", "bool", "one"),
        (3, "font_size", "double", "one"),
        (4, "scale_invariant", "bool", "one"),
        (5, "color", "Color", "one"),
        (6, "text", "string", "one"),
    ),
    "ModelPrimitive": (
        (1, "pose", "Pose", "one"),
        (2, "scale", "Vector3", "one"),
        (3, "color", "Color", "one"),
        (4, "override_color", "bool", "one"),
        (5, "url", "string", "one"),
        (6, "media_type", "string", "one"),
        (7, "data", "bytes", "one"),
    ),
    "SceneEntityDeletion": (
        (1, "timestamp", TIME, "one"),
        (2, "type", ".Type", "one"),
        (3, "id", "string", "one"),
    ),
    "SceneEntity": (
        (1, "timestamp", TIME, "one"),
        (2, "frame_id", "string", "one"),
        (3, "id", "string", "one"),
        (4, "lifetime", DURATION, "one"),
        (5, "frame_locked", "bool", "one"),
        (6, "metadata", "KeyValuePair", "many"),
        (7, "arrows", "ArrowPrimitive", "many"),
        (8, "cubes", "CubePrimitive", "many"),
        (9, "spheres", "SpherePrimitive", "many"),
        (10, "cylinders", "CylinderPrimitive", "many"),
        (11, "lines", "LinePrimitive", "many"),
        (12, "triangles", "TriangleListPrimitive", "many"),
        (13, "texts", "TextPrimitive", "many"),
        (14, "models", "ModelPrimitive", "many"),
    ),
    "SceneUpdate": ((1, "deletions", "SceneEntityDeletion", "many"), (2, "entities", "SceneEntity", "many")),
}
ENUMERATIONS: dict[str, tuple[str, ...]] = {
    "LinePrimitive": ("LINE_STRIP", "LINE_LOOP", "LINE_LIST"),
    "SceneEntityDeletion": ("MATCHING_ID", "ALL"),
}


def schema_of(message: str) -> tuple[str, bytes]:
    """(name, FileDescriptorSet) of a message of Foxglove with all that it is made of."""
    return f"{PACKAGE}.{message}", b"".join(part(1, _file(name)) for name in dict.fromkeys(_parts_first(message)))


def _parts_first(message: str) -> Iterator[str]:
    for used in _used(message):
        yield from _parts_first(used)
    yield message


def _used(message: str) -> list[str]:
    return sorted({kind for _, _, kind, _ in MESSAGES[message] if kind in MESSAGES})


def _path(message: str) -> str:
    package, _, name = _full_name(message).rpartition(".")
    return f"{package.replace('.', '/')}/{name.lower() if message in (TIME, DURATION) else name}.proto"


def _full_name(message: str) -> str:
    return message if "." in message else f"{PACKAGE}.{message}"


def _file(message: str) -> bytes:
    """A FileDescriptorProto."""
    package, _, name = _full_name(message).rpartition(".")
    head = part(1, _path(message)) + part(2, package)
    imports = b"".join(part(3, path) for path in sorted(map(_path, _used(message))))
    return head + imports + part(4, _message(message, name)) + part(12, "proto3")


def _message(message: str, name: str) -> bytes:
    """A DescriptorProto. An optional field of proto3 has a `oneof` of its own."""
    fields, alone = b"", [name for _, name, _, label in MESSAGES[message] if label == "optional"]
    for number, field, kind, label in MESSAGES[message]:
        content = part(1, field) + whole(3, number) + whole(4, _LABELS[label])
        if kind in KINDS:
            content += whole(5, KINDS[kind])
        elif kind.startswith("."):
            content += whole(5, _ENUM) + part(6, f".{_full_name(message)}{kind}")
        else:
            content += whole(5, _MESSAGE) + part(6, f".{_full_name(kind)}")
        if field in alone:
            content += whole(9, alone.index(field)) + whole(17, 1)
        fields += part(2, content)
    values = ENUMERATIONS.get(message, ())
    numbered = b"".join(part(2, part(1, value) + whole(2, k)) for k, value in enumerate(values))
    enumeration = part(4, part(1, "Type") + numbered) if values else b""
    return part(1, name) + fields + enumeration + b"".join(part(8, part(1, f"_{field}")) for field in alone)
