"""Tensor maps as the emulator reads them, and as tests write them field by field."""
from __future__ import annotations

import pytest

from nvidia.copies import tensor_map as written
from tinyhw.dtype import dtypes
from tinyhw.emulator.nvidia.memory.tensor_copies import tensor_map as read
from tinyhw.errors import CompileError
from tinyhw.isa.sass.select.tensor_map import descriptors, maps_of, tensor_map
from tinyhw.uop.tensor_box import TensorBox
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp
from tinyhw.uop.program import Program

BOX = TensorBox((1000, 300), (1, 1024), (64, 192))

@pytest.mark.parametrize("dtype, kind", [(dtypes.bfloat16, 10), (dtypes.float16, 6), (dtypes.uint16, 1)])
def test_fields(dtype, kind: int) -> None:
  assert tensor_map(BOX, dtype) == written(0, BOX.dims, [2048], BOX.sizes, kind, swizzle=3)
  made = read(tensor_map(BOX, dtype))
  assert made.dims == BOX.dims and made.strides == (2, 2048) and made.box == BOX.sizes and made.line == 128

def test_strides_of_more_than_32_bits() -> None:
  stride = (1 << 35) + 8
  assert read(tensor_map(TensorBox((64, 2), (1, stride), (64, 2)), dtypes.float16)).strides == (2, 2 * stride)

@pytest.mark.parametrize("box", [TensorBox((64, 8), (1, 68), (64, 8)), TensorBox((64, 300), (1, 64), (64, 300)),
                                 TensorBox((1,) * 6, (1,) + (64,) * 5, (64,) + (1,) * 5)])
def test_what_no_map_can_say_is_refused(box: TensorBox) -> None:
  with pytest.raises(CompileError, match="no tensor map can say"): tensor_map(box, dtypes.float16)

def test_a_program_has_one_for_each_tensor() -> None:
  a, b, at = UOp.param(1, dtypes.float16, 1 << 20), UOp.param(2, dtypes.float16, 1 << 20), UOp.const(dtypes.int32, 0)
  boxes = [UOp(Ops.TENSOR_BOX, dtypes.float16, (buffer, at, x), BOX)
           for buffer, x in ((b, at), (a, at), (b, UOp.const(dtypes.int32, 64)))]
  program = Program("k", (a, b, at, *boxes), 1, frozenset())
  assert list(maps_of(program).values()) == [0, 1] and [number for number, _ in descriptors(program)] == [1, 0]
