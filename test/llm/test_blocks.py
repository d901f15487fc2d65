"""Quantized elements, to the last bit: against decoders that work element by element, golden data, and the gguf
package."""
import struct
from pathlib import Path

import numpy as np
import pytest
from formats.gguf_files import DECODERS, decoded, random_blocks

from tinyhw import Tensor, dtypes
from tinyhw.errors import ArgumentError, FileFormatError, ShapeError
from tinyhw.llm.blocks import TYPES, _levels, ggml_data_to_tensor
from tinyhw.llm.grids import GRIDS

pytestmark = pytest.mark.usefixtures("engine")

QUANTIZED = {kind.name: (number, kind) for number, kind in TYPES.items() if kind.split is not None}
GOLDEN = [line.split() for line in (Path(__file__).parent.parent / "golden/gguf_blocks.txt").read_text().splitlines()
          if not line.startswith("#")]

def bits(values: object) -> list[int]: return np.asarray(values, np.float32).view(np.uint32).tolist()

def tensor(data: bytes, name: str) -> Tensor:
  number, kind = QUANTIZED[name]
  return ggml_data_to_tensor(Tensor(data, dtype=dtypes.uint8), len(data) // kind.size * kind.length, number)

def test_every_quantized_type_has_a_decoder_in_the_tests():
  assert set(DECODERS) == set(QUANTIZED) == {*[name for name, *_ in GOLDEN], "Q1_0"}

@pytest.mark.parametrize("name, data, elements", GOLDEN, ids=[name for name, *_ in GOLDEN])
def test_golden(name, data, elements):
  found = tensor(bytes.fromhex(data), name)
  assert (found.dtype is dtypes.float32
          and bits(found.numpy()) == [x for x, in struct.iter_unpack(">I", bytes.fromhex(elements))])

@pytest.mark.parametrize("name", QUANTIZED)
def test_element_by_element(name):
  number, kind = QUANTIZED[name]
  data = random_blocks(kind, 5, seed=99)
  assert bits(tensor(data, name).numpy()) == bits(decoded(kind, data))

@pytest.mark.parametrize("e", [0, 1, 2, 127, 128, 254, 255])
def test_exponents_of_mxfp4(e):
  data = bytes([e, *range(16)])
  assert bits(tensor(data, "MXFP4").numpy()) == bits(decoded(QUANTIZED["MXFP4"][1], data))

def test_vectors_of_the_smallest_types():
  sizes = {"IQ2_XXS": (256, 8), "IQ2_XS": (512, 8), "IQ2_S": (1024, 8), "IQ3_XXS": (256, 4), "IQ3_S": (512, 4),
           "IQ1_S": (2048, 8)}
  for name, size in sizes.items():
    found = np.array(_levels(name))
    assert found.shape == size and len({tuple(row) for row in found.tolist()}) == size[0]
    assert set(found.flatten().tolist()) == set(GRIDS[name][0])

@pytest.mark.parametrize("number", [number for number, kind in TYPES.items() if kind.split is None])
def test_plain_elements(number):
  kind = TYPES[number]
  found = ggml_data_to_tensor(Tensor([1, 0, 3, 1], dtype=kind.dtype).bitcast("uint8"), 3, number)
  assert found.dtype is kind.dtype and found.tolist() == [1, 0, 3]

def test_part_of_a_tensor_and_none():
  data = random_blocks(TYPES[8], 3)
  whole = Tensor(data, dtype=dtypes.uint8)
  assert (ggml_data_to_tensor(whole, 32, 8).tolist() == decoded(TYPES[8], data[:34])
          and ggml_data_to_tensor(whole, 0, 8).shape == (0,))

def test_refusals():
  data = Tensor(bytes(34), dtype=dtypes.uint8)
  with pytest.raises(ArgumentError, match="take 68 bytes, and there are 34"): ggml_data_to_tensor(data, 64, 8)
  with pytest.raises(ShapeError, match="33 elements of Q8_0"): ggml_data_to_tensor(data, 33, 8)
  with pytest.raises(FileFormatError, match="ggml type 4 are not known.*Q4_0"): ggml_data_to_tensor(data, 32, 4)
  with pytest.raises(ArgumentError, match="vector of uint8"): ggml_data_to_tensor(data.cast("int32"), 32, 8)

@pytest.mark.parametrize("name", [name for name in QUANTIZED if name != "Q1_0"])
def test_the_gguf_package_agrees(name):
  gguf = pytest.importorskip("gguf")
  number, kind = QUANTIZED[name]
  data = random_blocks(kind, 40, seed=5)
  with np.errstate(over="ignore"):   # the largest exponents of MXFP4
    want = gguf.quants.dequantize(np.frombuffer(data, np.uint8).reshape(-1, kind.size),
                                  gguf.GGMLQuantizationType(number)).reshape(-1)
  assert bits(tensor(data, name).numpy()) == bits(want)
