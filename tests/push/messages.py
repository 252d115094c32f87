# SPDX-License-Identifier: GPL-2.0-only
"""Protobuf messages of files that protoc-c has compiled to descriptors, for the tests."""
import os
import subprocess
import tempfile

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")


def load(directory, name, texts_are_bytes=False):
    """The messages of DIRECTORY/NAME and what it imports, by their full names."""
    with tempfile.NamedTemporaryFile() as out:
        subprocess.run(["protoc-c", "--proto_path=" + directory, "--include_imports",
                        "--descriptor_set_out=" + out.name, name], check=True)
        files = descriptor_pb2.FileDescriptorSet.FromString(out.read())
    if texts_are_bytes:
        for file in files.file:
            for message in file.message_type:
                for field in message.field:
                    if field.type == field.TYPE_STRING:
                        field.type = field.TYPE_BYTES
    pool = descriptor_pool.DescriptorPool()
    for file in files.file:
        pool.Add(file)
    messages = {}
    for file in files.file:
        for message in file.message_type:
            full = file.package + "." + message.name
            descriptor = pool.FindMessageTypeByName(full)
            if hasattr(message_factory, "GetMessageClass"):
                messages[full] = message_factory.GetMessageClass(descriptor)
            else:
                messages[full] = message_factory.MessageFactory(pool).GetPrototype(descriptor)
    return messages
