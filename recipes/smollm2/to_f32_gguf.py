"""Write a GGUF file again with all tensors in float32: llama.cpp then rounds no product to 8 bits.

    python recipes/smollm2/to_f32_gguf.py MODEL.gguf MODEL-F32.gguf

Uses the package `gguf` alone. Metadata are copied as they are.
"""

from __future__ import annotations

import sys

import gguf
import numpy as np


def main() -> None:
    """Copy the file."""
    source, target = sys.argv[1:]
    reader = gguf.GGUFReader(source)
    architecture = reader.fields["general.architecture"].contents()
    writer = gguf.GGUFWriter(target, architecture)
    for field in reader.fields.values():
        if field.name.startswith("GGUF.") or field.name == "general.architecture":
            continue
        value = 0 if field.name == "general.file_type" else field.contents()  # 0: all float32
        kinds = field.types
        sub = kinds[-1] if kinds[0] == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(field.name, value, kinds[0], sub_type=sub)
    for tensor in reader.tensors:
        data = gguf.dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
        writer.add_tensor(tensor.name, data)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    main()
