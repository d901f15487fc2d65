"""Bits of bytes in words, against values of the words."""
from __future__ import annotations
import random

from hypothesis import given, settings, strategies as st
import pytest

from tinyhw.dtype import DType, dtypes
from tinyhw.uop.enums import Ops
from tinyhw.uop.evaluate.execute import element_function
from tinyhw.uop.ops import UOp
from tinyhw.uop.text import show
from tinyhw.uop.symbolic.words import bits_of_bytes

U32, I32 = dtypes.uint32, dtypes.int32
X = UOp.param(0, U32, 1).index(0).load()
Y = UOp.param(1, I32, 1).index(0).load()
WORDS = [0, 0xffffffff, 0x80808080, 0x01010101, 0x80000000, *[1 << k for k in range(32)],
         *[random.Random(k).getrandbits(32) for k in range(20)]]

def values(u: UOp, x: int, y: int) -> int:
  """Return the bits of a word, without a sign."""
  known: dict[UOp, int] = {X: x, Y: y - (y >> 31 << 32)}
  for v in u.toposort(lambda v: v.op is not Ops.LOAD):
    if v.op is Ops.CONST: known[v] = v.arg
    elif v.op is not Ops.LOAD: known[v] = element_function(v)(*[known[s] for s in v.src])
  return known[u] & 0xffffffff

def possible(u: UOp) -> int:
  """Return the bits that some values of the loads set in some byte."""
  found = 0
  for x in WORDS:
    for y in (x, x ^ 0xffffffff, x >> 3): found |= values(u, x, y)
  return (found | found >> 8 | found >> 16 | found >> 24) & 255

@st.composite
def words(draw: st.DrawFn, dtype: DType, depth: int, signed: bool) -> UOp:
  """Return random operations on words: of uint32, or (signed) also of int32."""
  kinds = ("load", "and", "or", "xor", "mask", "shift") + ("type",) * signed
  kind = draw(st.sampled_from(kinds)) if depth else "load"
  if kind == "load": return X if dtype is U32 else Y
  u: UOp = draw(words(dtype if kind != "type" else I32 if dtype is U32 else U32, depth - 1, signed))
  if kind == "type": return u.bitcast(dtype)
  if kind == "shift":
    op = draw(st.sampled_from((Ops.SHL, Ops.SHR)))
    return u.alu(op, UOp.const(dtype, draw(st.integers(0, 40))))
  if kind == "mask":
    mask = draw(st.integers(0, 255).map(lambda byte: byte * 0x01010101) | st.integers(0, (1 << 32) - 1))
    op = draw(st.sampled_from((Ops.AND, Ops.AND, Ops.AND, Ops.OR, Ops.XOR)))
    return u.alu(op, UOp.const(dtype, mask if dtype is U32 else mask - (mask >> 31 << 32)))
  return u.alu(Ops[kind.upper()], draw(words(dtype, depth - 1, signed)))

@settings(max_examples=100)
@given(words(U32, 5, False))
def test_no_bit_is_forgotten(u: UOp) -> None: assert possible(u) & ~bits_of_bytes(u) == 0, show(u)

@settings(max_examples=150)
@given(words(I32, 3, True))
def test_no_bit_of_a_signed_word_is_forgotten(u: UOp) -> None:
  assert possible(u) & ~bits_of_bytes(u) == 0, show(u)

@pytest.mark.parametrize("u, bits", [
  (X, 0xff), (X & 0x0f0f0f0f, 0x0f), (X & 0x0000000f, 0x0f), (X & 0x01020408, 0x0f),
  ((X & 0x0f0f0f0f) << 4, 0xf0), ((X & 0xf0f0f0f0) >> 4, 0x0f), ((X >> 4) & 0x03030303, 0x03), (X >> 4, 0xff),
  ((X & 0x0f0f0f0f) | ((X & 0x01010101) << 4), 0x1f), ((X & 0x0f0f0f0f) ^ 0x80808080, 0x8f),
  ((X & 0x01010101) >> 1, 0x80), ((X & 0x80808080) << 1, 0x01), ((X & 0x01010101) << 31, 0x80),
  ((X & 0x7f7f7f7f).bitcast(I32), 0x7f), (UOp.const(U32, 0x00400020), 0x60), (UOp.const(I32, -1), 0xff),
  (UOp.const(U32, 0), 0), ((X & 0x0f0f0f0f) << 40, 0xff), ((X & 0x0f0f0f0f) + 1, 0xff),
  (UOp(Ops.BROADCAST, U32.vec(4), (X & 0x0f0f0f0f,)), 0x0f), (UOp.const(U32.vec(4), 0x03030303), 0x03),
  ((X & 0x0f0f0f0f) >> (X & 1), 0xff)])
def test_bits(u: UOp, bits: int) -> None: assert bits_of_bytes(u) == bits

def test_copies_of_the_sign() -> None:
  """A shift of int32 to the right fills the highest byte with the sign."""
  u = (Y & -0x3f3f3f40) >> 2
  assert values(u, 0, 0x80000000) >> 24 == 0xe0 and bits_of_bytes(u) & 0xe0 == 0xe0
