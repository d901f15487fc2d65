"""16-bit, packed and dot-product instructions, through kernels so that their modifiers count."""
from __future__ import annotations
import random
import struct
from collections.abc import Callable, Sequence

import pytest
from amd.kernels import Box, Kernel, words
from amd.lanes import FLOAT16, values

def half(bits: int) -> float: return float(struct.unpack("<e", struct.pack("<H", bits & 0xffff))[0])
def bits(x: float) -> int:
  try: return int(struct.unpack("<H", struct.pack("<e", x))[0])
  except OverflowError: return 0xfc00 if x < 0 else 0x7c00

def execute(name: str, operands: Sequence[list[int]], arch: str = "gfx1100", old: int = 0,
            **modifiers: int) -> list[int]:
  """Return the result register of an instruction on vector operands from memory."""
  k, box = Kernel(arch), Box()
  n = k.lanes
  for operand in operands: box.buffer(struct.pack(f"<{n}I", *(operand * 2)[:n]))
  out = box.buffer(4 * n)
  for i in range(len(operands) + 1): k("s_load_b64", k.s(4 + 2 * i, 2), k.s(0, 2), None, offset=8 * i)
  k("v_and_b32", k.v(0), 0x3ff, k.v(0))
  k("v_lshlrev_b32", k.v(1), 2, k.v(0))
  k("v_mov_b32", k.v(10), old)
  k.wait(lgkm=0)
  for i in range(len(operands)): k("global_load_b32", k.v(2 + i), k.v(1), k.s(4 + 2 * i, 2))
  k.wait(vm=0)
  k("s_nop", 7)
  k(name, k.v(10), *(k.v(2 + i) for i in range(len(operands))), **modifiers)
  k("s_nop", 7)
  k("global_store_b32", k.v(1), k.v(10), k.s(4 + 2 * len(operands), 2))
  k("s_endpgm")
  box.run(k, (n,))
  return words(out)[:32]

def operands(name: str, count: int) -> list[list[int]]:
  source = random.Random(name)
  return [[a | b << 16 for a, b in zip(values(source, FLOAT16, 16), values(source, FLOAT16, 16))] for _ in range(count)]

def same(got: int, want: int) -> bool: return got == want or half(got) != half(got) and half(want) != half(want)

@pytest.mark.parametrize("name,function", [("v_pk_add_f16", lambda a, b: a + b), ("v_pk_mul_f16", lambda a, b: a * b)])
def test_packed_floats(name: str, function: Callable[[float, float], float]) -> None:
  """op_sel selects the half of each source for the low result, op_sel_hi for the high one. neg_lo and neg_hi negate for
  each."""
  a, b = operands(name, 2)
  for modifiers, low, high, signs in (({}, (0, 0), (1, 1), (1, 1)),
                                      ({"op_sel": 1, "op_sel_hi": 1}, (1, 0), (1, 0), (1, 1)),
                                      ({"neg_lo": 1}, (0, 0), (1, 1), (-1, 1)),
                                      ({"neg_hi": 1}, (0, 0), (1, 1), (1, -1))):
    for lane, got in enumerate(execute(name, [a, b], **modifiers)):
      for side, (chosen, sign) in enumerate(zip((low, high), signs)):
        want = bits(function(sign * half(a[lane] >> 16 * chosen[0]), half(b[lane] >> 16 * chosen[1])))
        assert same(got >> 16 * side & 0xffff, want), (lane, side)

def test_packed_integers_saturate_with_clamp() -> None:
  a, b = [0x7fff8000] * 32, [0x0001ffff] * 32
  assert execute("v_pk_add_i16", [a, b])[0] == 0x80007fff
  assert execute("v_pk_add_i16", [a, b], clamp=1)[0] == 0x7fff8000
  assert execute("v_pk_sub_u16", [b, a], clamp=1)[0] == 0x00007fff
  assert execute("v_pk_lshlrev_b16", [[0x00040001] * 32, [0x12345678] * 32])[0] == 0x2340acf0

def test_half_instructions_keep_or_clear_the_other_half() -> None:
  """RDNA3 keeps it, CDNA clears it in instructions that have a short form."""
  a = [bits(1.5)] * 32
  assert execute("v_add_f16", [a, a], old=0x7777abcd)[0] == 0x77770000 | bits(3.0)
  assert execute("v_add_f16", [a, a], "gfx942", old=0x7777abcd)[0] == bits(3.0)
  assert execute("v_fma_f16", [a, a, a], "gfx942", old=0x7777abcd)[0] == 0x77770000 | bits(3.75)
  assert execute("v_fma_f16", [a, a, a], op_sel=8, old=0x7777abcd)[0] == bits(3.75) << 16 | 0xabcd
  assert execute("v_fma_f16", [[x << 16 for x in a], a, a], op_sel=1)[0] == bits(3.75)

def test_mixed_precision() -> None:
  one_and_half, two = struct.unpack("<I", struct.pack("<f", 1.5))[0], bits(2.0)
  got = execute("v_fma_mix_f32", [[one_and_half] * 32, [two << 16] * 32, [two] * 32], op_sel=2, op_sel_hi=6)
  assert struct.unpack("<f", struct.pack("<I", got[0]))[0] == 5.0
  got = execute("v_fma_mixhi_f16", [[one_and_half] * 32, [two] * 32, [two] * 32], old=0x1234, op_sel_hi=6)
  assert got[0] == bits(5.0) << 16 | 0x1234

@pytest.mark.parametrize("arch", ("gfx1100", "gfx942"))
def test_signs_of_mixed_precision(arch: str) -> None:
  """-|a| * b + -c, of halves and of float32. -0.0 is 0 negated; adding it changes nothing."""
  half, one = [bits(1.5) << 16] * 32, [0x3f800000] * 32
  assert execute("v_fma_mix_f32", [half, one, one], arch, op_sel=1, op_sel_hi=1, neg=5, abs=1)[0] == 0xc0200000
  assert execute("v_fma_mix_f32", [[0x80000000] * 32, one, [0] * 32], arch, neg=4)[0] == 0x80000000
  assert execute("v_fma_mixlo_f16", [[bits(-1.0)] * 32, [0] * 32, [0] * 32], arch, op_sel_hi=3,
                 neg=4)[0] & 0xffff == 0x8000

def test_dot_products() -> None:
  source = random.Random(1)
  a, b, c = ([source.getrandbits(32) for _ in range(32)] for _ in range(3))
  def signed(x: int, width: int) -> int: return (x & (1 << width) - 1 ^ 1 << width - 1) - (1 << width - 1)
  def parts(x: int, width: int, sign: bool) -> list[int]:
    return [signed(x >> i, width) if sign else x >> i & (1 << width) - 1 for i in range(0, 32, width)]
  for name, width, left, right, modifiers in (("v_dot4_i32_iu8", 8, True, False, {"neg_lo": 1}),
                                              ("v_dot4_i32_iu8", 8, True, True, {"neg_lo": 3}),
                                              ("v_dot4_u32_u8", 8, False, False, {}),
                                              ("v_dot8_i32_iu4", 4, False, True, {"neg_lo": 2})):
    for lane, got in enumerate(execute(name, [a, b, c], **modifiers)):
      want = sum(x * y for x, y in zip(parts(a[lane], width, left), parts(b[lane], width, right))) + c[lane]
      assert got == want & 0xffffffff, (name, lane)
  pair = bits(1.5) | bits(-2.0) << 16
  got = execute("v_dot2_f32_f16", [[pair] * 32, [pair] * 32, [0x3f800000] * 32])
  assert struct.unpack("<f", struct.pack("<I", got[0]))[0] == 1 + 2.25 + 4

def test_packed_float32_of_cdna() -> None:
  k, box = Kernel("gfx942"), Box()
  out = box.buffer(8)
  k("s_load_b64", k.s(4, 2), k.s(0, 2), None)
  for i, value in enumerate((1.0, 2.0, 10.0, 20.0)):
    k("v_mov_b32", k.v(2 + i), struct.unpack("<I", struct.pack("<f", value))[0])
  # the low result takes the high half of the first operand
  k("v_pk_add_f32", k.v(6, 2), k.v(2, 2), k.v(4, 2), op_sel=1)
  k("v_mov_b32", k.v(1), 0)
  k.wait(lgkm=0)
  k("global_store_b64", k.v(1), k.v(6, 2), k.s(4, 2))
  k("s_endpgm")
  box.run(k, (1,))
  assert struct.unpack("<2f", out) == (12.0, 22.0)
