"""read_checkpoint.py DIRECTORY: checks a checkpoint with nothing but Python's own library, as the formats' pages say it,
and prints one line per tensor: file, name, dtype, shape, SHA-256 of its bytes."""
import hashlib
import json
import pathlib
import struct
import sys

SIZES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U64": 8, "U32": 4, "U16": 2, "U8": 1}


def read_safetensors(data):
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length].decode("utf-8"))
    header.pop("__metadata__", None)
    buffer = data[8 + length :]
    covered = 0
    for name, tensor in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        begin, end = tensor["data_offsets"]
        elements = 1
        for dimension in tensor["shape"]:
            elements *= dimension
        assert begin == covered and end - begin == elements * SIZES[tensor["dtype"]], name
        covered = end
        yield name, tensor["dtype"], tensor["shape"], buffer[begin:end]
    assert covered == len(buffer)


directory = pathlib.Path(sys.argv[1])
text = (directory / "manifest.json").read_bytes()
body, _, digest = text.rpartition(b',"sha256":"')
assert digest == hashlib.sha256(body).hexdigest().encode() + b'"}\n', "the manifest's digest"
for record in json.loads(text)["files"]:
    content = (directory / record["name"]).read_bytes()
    assert len(content) == record["bytes"] and hashlib.sha256(content).hexdigest() == record["sha256"], record["name"]
    for name, dtype, shape, tensor in read_safetensors(content):
        print(record["name"], name, dtype, ",".join(map(str, shape)), hashlib.sha256(tensor).hexdigest())
