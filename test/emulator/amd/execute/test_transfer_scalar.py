"""Scalar loads: widths, offsets in constants and registers, alignment, buffers."""
from __future__ import annotations
import struct

import pytest
from amd.kernels import Box, Kernel, words

from tinyhw.emulator.errors import StrictError

def run(k: Kernel, box: Box, *registers: int) -> list[int]:
  out = len(box.buffers)
  box.buffer(4 * len(registers))
  k("s_load_b64", k.s(40, 2), k.s(0, 2), None, offset=8 * out)
  k("v_mov_b32", k.v(1), 0)
  k.wait(lgkm=0)
  for i, register in enumerate(registers):
    k("v_mov_b32", k.v(2), k.s(register))
    k("global_store_b32", k.v(1), k.v(2), k.s(40, 2), offset=4 * i)
  k("s_endpgm")
  box.run(k, (1,))
  return words(box.buffers[out])

def prepared(arch: str) -> tuple[Kernel, Box]:
  """Return a kernel with a buffer of 0, 1, 2 ... at s[4:5]."""
  k, box = Kernel(arch), Box()
  box.buffer(struct.pack("<64I", *range(64)))
  k("s_load_b64", k.s(4, 2), k.s(0, 2), None)
  k.wait(lgkm=0)
  return k, box

@pytest.mark.parametrize("arch", ["gfx1100", "gfx1200", "gfx942"])
def test_widths_and_offsets(arch: str) -> None:
  k, box = prepared(arch)
  k("s_load_b512", k.s(16, 16), k.s(4, 2), None, offset=32)
  k("s_mov_b32", k.s(9), 16)
  k("s_load_b64", k.s(10, 2), k.s(4, 2), k.s(9), offset=4)
  k.wait(lgkm=0)
  assert run(k, box, 16, 23, 31, 10, 11) == [8, 15, 23, 5, 6]

def test_narrow_loads_of_gfx12() -> None:
  k, box = Kernel("gfx1200"), Box()
  box.buffer(b"\x01\x80\xff\x7f")
  k("s_load_b64", k.s(4, 2), k.s(0, 2), None)
  k.wait(lgkm=0)
  for i, (name, offset) in enumerate((("u8", 1), ("i8", 1), ("u16", 1), ("i16", 2))):
    k(f"s_load_{name}", k.s(8 + i), k.s(4, 2), None, offset=offset)
  k.wait(lgkm=0)
  assert run(k, box, 8, 9, 10, 11) == [0x80, 0xffffff80, 0xff80, 0x7fff]

def test_the_lowest_bits_of_an_address() -> None:
  k, box = prepared("gfx1100")
  k("s_load_b32", k.s(8), k.s(4, 2), None, offset=2)
  with pytest.raises(StrictError, match="align the address"): run(k, box, 8)

def test_buffers_end() -> None:
  k, box = prepared("gfx1100")
  k("s_mov_b64", k.s(8, 2), k.s(4, 2))
  k("s_mov_b32", k.s(10), 16)
  k("s_mov_b32", k.s(11), 0)
  k("s_buffer_load_b32", k.s(12), k.s(8, 4), None, offset=12)
  k("s_buffer_load_b32", k.s(13), k.s(8, 4), None, offset=16)
  k.wait(lgkm=0)
  assert run(k, box, 12, 13) == [3, 0]
