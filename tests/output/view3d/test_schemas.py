"""The descriptors agree with those that Foxglove publishes."""

from importlib import import_module

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool

from cosim.output.view3d.motion import TOPICS
from cosim.output.view3d.schemas import schema_of

MESSAGES = sorted(set(TOPICS.values()))


def files(message):
    found = FileDescriptorSet()
    found.ParseFromString(schema_of(message)[1])
    return {file.name: file for file in found.file}


def published(file):
    """The descriptor of a .proto file as its package has it, without the options of other languages."""
    folder, name = file.rsplit("/", 1)
    package = "foxglove_schemas_protobuf" if folder == "foxglove" else folder.replace("/", ".")
    found = FileDescriptorProto()
    import_module(f"{package}.{name.removesuffix('.proto')}_pb2").DESCRIPTOR.CopyToProto(found)
    found.ClearField("options")
    return found


@pytest.mark.parametrize("message", MESSAGES)
def test_every_file_is_the_published_one(message):
    for name, file in files(message).items():
        expected = published(name)
        expected.dependency.sort()
        for each in (*file.message_type, *expected.message_type):
            for field in each.field:
                field.ClearField("json_name")  # the published ones leave it to the rule of Protobuf
        assert file == expected, name


@pytest.mark.parametrize("message", MESSAGES)
def test_a_schema_needs_nothing_besides_itself(message):
    pool = DescriptorPool()
    for file in files(message).values():
        pool.Add(file)
    assert pool.FindMessageTypeByName(f"foxglove.{message}").name == message
    assert schema_of(message)[0] == f"foxglove.{message}"
