"""Sums of products of bytes as DOT4s: no result changes, and other kernels stay as they are."""
from __future__ import annotations
from collections.abc import Callable
from dataclasses import replace
import random
from typing import Any

from hypothesis import given, settings, strategies as st
import pytest

from test.codegen.kernels import AVX2, POOR, axis
from test.support.lines import lines_executed
from tinyhw.arithmetic import to_bytes
from tinyhw.codegen.optimize import optimize, with_few_ranges
from tinyhw.codegen.passes import lower
from tinyhw.codegen.render import targets
from tinyhw.codegen.transform.dot import has_dots, use_dots
from tinyhw.dtype import DType, dtypes
from tinyhw.isa.amd import capabilities as amd
from tinyhw.isa.sass import capabilities as sass
from tinyhw.isa.x86.capabilities import LEVELS, capabilities
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.evaluate.evaluate import evaluate
from tinyhw.uop.ops import UOp
from tinyhw.uop.verify.verify import verify

I32, U32, U8, I8 = dtypes.int32, dtypes.uint32, dtypes.uint8, dtypes.int8
Value = Callable[[UOp, UOp], UOp]

# ***** kernels *****

def sums(value: Value, size: int = 32, n: int = 3, op: Ops = Ops.ADD) -> UOp:
  """Return the kernel of out[i] = the sum over r of a value."""
  i, r = axis(n, 0), axis(size, 1, "REDUCE")
  found = value(i, r)
  return UOp.sink(UOp.param(0, found.dtype, n).index(i).store(found.reduce(op, r), i))

def byte(slot: int, dtype: DType, at: UOp, gate: UOp | None = None, alt: int = 0) -> UOp:
  return UOp.param(slot, dtype, 512).index(at).load(gate, alt)

def a(i: UOp, r: UOp) -> UOp: return byte(1, U8, i * 32 + r)
def b(i: UOp, r: UOp) -> UOp: return byte(2, I8, i * 32 + r)
def x(r: UOp) -> UOp: return byte(3, I8, r)

def product(p: UOp, q: UOp, dtype: DType = I32) -> UOp: return p.cast(dtype).alu(Ops.MUL, q.cast(dtype))
def shifted(u: UOp, n: int, mask: int) -> UOp: return (u >> n) & mask

def places(u: UOp) -> UOp:
  """Return twice a counter, to shift bytes by."""
  return (u * 2).cast(U8)

def memory_of(kernel: UOp, seed: int = 0) -> dict[int, bytearray]:
  """Return bytes for each parameter, from the corners as often as not."""
  rng = random.Random(seed)
  def some() -> int: return rng.choice((0, 1, 127, 128, 129, 255, rng.randrange(256), rng.randrange(256)))
  return {u.arg[0]: bytearray(some() for _ in range(u.arg[1] * u.dtype.itemsize))
          for u in sorted(kernel.toposort(), key=lambda u: u.arg[0] if u.op is Ops.PARAM else 0) if u.op is Ops.PARAM}

def results(made: Any, kernel: UOp) -> dict[int, bytearray]:
  memory = memory_of(kernel)
  evaluate(made, memory)
  return memory

def agree(kernel: UOp, changed: UOp) -> None:
  """Check that a kernel, its rewritten form, and the Program of that compute the same."""
  expected = results(kernel, kernel)
  verify(changed, 1)
  assert results(changed, kernel) == expected
  optimized = optimize(kernel, AVX2)
  assert results(optimized, kernel) == expected
  program = lower(optimized, AVX2, "dots")
  verify(program, 1)
  assert results(program, kernel) == expected

def count(kernel: UOp, *ops: Ops, dtype: DType | None = None) -> int:
  return sum(u.op in ops and (dtype is None or u.dtype is dtype) for u in kernel.toposort())

# (value, terms, DOT4s)
KERNELS: dict[str, tuple[Value, int, int]] = {
  "uint8 * int8": (lambda i, r: product(a(i, r), x(r)), 32, 1),
  "int8 * uint8": (lambda i, r: product(x(r), a(i, r)), 32, 1),
  "int8 * int8": (lambda i, r: product(b(i, r), x(r)), 32, 1),
  "uint8 * uint8": (lambda i, r: product(a(i, r), byte(3, U8, r)), 32, 1),
  "a square": (lambda i, r: product(b(i, r), b(i, r)), 32, 1),
  "one word": (lambda i, r: product(a(i, r), x(r)), 4, 1),
  "three words": (lambda i, r: product(a(i, r), x(r)), 12, 1),
  "begins at a word": (lambda i, r: product(byte(1, U8, i * 32 + 8 + r), byte(3, I8, r + 4)), 20, 1),
  "rows of all words": (lambda i, r: product(byte(1, U8, i * 36 + r), x(r)), 32, 1),
  "a row that memory names": (lambda i, r: product(byte(1, U8, (byte(4, U8, i) & 3).cast(dtypes.weakint) * 32 + r),
                                                   x(r)), 32, 1),
  "low bits": (lambda i, r: product(a(i, r) & 15, x(r)), 32, 1),
  "low bits of signed bytes": (lambda i, r: product(b(i, r) & 15, x(r)), 32, 1),
  "high bits of signed bytes": (lambda i, r: product(b(i, r) & -16, x(r)), 32, 1),
  "all operations on bits": (lambda i, r: product((a(i, r) ^ 0x55) | (byte(4, U8, r) & byte(1, U8, 64 + r)), x(r)), 32,
                             1),
  "shifted to the right": (lambda i, r: product(a(i, r) >> 3, x(r)), 32, 1),
  "shifted to the left": (lambda i, r: product(a(i, r) << 3, x(r)), 32, 1),
  "signed bytes shifted to the left": (lambda i, r: product(b(i, r) << 5, x(r)), 32, 1),
  "shifted by a byte": (lambda i, r: product((a(i, r) >> 8) | (a(i, r) & 1), (b(i, r) << 9) | x(r)), 32, 1),
  "shifted by more than a word": (lambda i, r: product((a(i, r) >> 200) | (a(i, r) & 1), (b(i, r) << 40) | x(r)), 32,
                                  1),
  "shifted by a counter": (lambda i, r: product((byte(1, U8, r) >> places(i)) & 3, x(r)), 32, 1),
  "shifted by memory": (lambda i, r: product((byte(1, U8, r) >> (byte(4, U8, i) & 7)) & 1, x(r)), 32, 1),
  "shifted up by a counter": (lambda i, r: product(((byte(1, U8, r) >> places(i)) & 3) << 2, x(r)), 32, 1),
  "a field": (lambda i, r: product(shifted(a(i, r), 2, 3), x(r)), 32, 1),
  "4 and 1 bits": (lambda i, r: product((a(i, r) & 15) | (shifted(byte(4, U8, i * 32 + r), 3, 1) << 4), x(r)), 32, 1),
  "4 and 2 bits": (lambda i, r: product(shifted(a(i, r), 4, 15) | (shifted(byte(4, U8, i * 32 + r), 2, 3) << 4), x(r)),
                   32, 1),
  "2 and 1 bits": (lambda i, r: product(shifted(a(i, r), 6, 3) | (shifted(byte(4, U8, i * 32 + r), 0, 1) << 2), x(r)),
                   32, 1),
  "a field that leaves its byte": (lambda i, r: product(shifted(a(i, r), 1, 127) << 4, x(r)), 32, 1),
  "unsigned bytes as signed": (lambda i, r: product((a(i, r) ^ 128).bitcast(I8), x(r)), 32, 1),
  "signed bytes as unsigned": (lambda i, r: product(b(i, r).bitcast(U8) >> 4, x(r)), 32, 1),
  "converted bytes": (lambda i, r: product(a(i, r).cast(I8), b(i, r).cast(U8)), 32, 1),
  "under a gate": (lambda i, r: product(byte(1, U8, i * 32 + r, i < 2), x(r)), 32, 1),
  "under a gate, with another value": (lambda i, r: product(a(i, r), byte(3, I8, i * 32 + r, i < 2, -3)), 32, 1),
  "two products": (lambda i, r: product(a(i, r) & 15, x(r)) + product(a(i, r) >> 4, byte(4, I8, r)), 32, 2),
  "three products": (lambda i, r: (product(a(i, r), x(r)) + product(b(i, r), x(r)))
                     + product(a(i, r), byte(4, U8, r)), 32, 3),
}

@pytest.mark.parametrize("name", KERNELS)
def test_four_products_at_once(name: str) -> None:
  value, size, dots = KERNELS[name]
  kernel = sums(value, size)
  changed = use_dots(kernel, AVX2)
  assert count(changed, Ops.DOT4) == dots and count(changed, Ops.MUL, dtype=I32) == 0
  assert not any(u.op is Ops.LOAD and u.dtype in (U8, I8) and any(r.arg[1] is AxisType.REDUCE for r in u.ranges)
                 for u in changed.toposort())
  agree(kernel, changed)

@pytest.mark.parametrize("products, chains", ((1, 1), (7, 1), (8, 2), (12, 3), (16, 4)))
def test_long_chains_are_cut(products: int, chains: int) -> None:
  """Each operation waits for the one before. A block of a quantized type has 8 of them."""
  def value(i: UOp, r: UOp) -> UOp:
    terms = [product(byte(1, U8, i * 4 + r + 16 * k), byte(2, I8, r + 16 * k)) for k in range(products)]
    total = terms[0]
    for term in terms[1:]: total = total + term
    return total
  kernel = sums(value, 4)
  changed = use_dots(kernel, AVX2)
  depth: dict[UOp, int] = {}
  for u in changed.toposort(): depth[u] = max([depth[s] for s in u.src], default=0) + (u.op is Ops.DOT4)
  assert count(changed, Ops.DOT4) == products and max(depth.values()) == -(-products // chains)
  agree(kernel, changed)

@pytest.mark.parametrize("size, loops", ((4, 0), (8, 1), (32, 1)))
def test_the_range_counts_words(size: int, loops: int) -> None:
  """One word needs no sum around it."""
  changed = use_dots(sums(lambda i, r: product(a(i, r), x(r)), size), AVX2)
  assert count(changed, Ops.REDUCE) == loops
  assert [int(u.src[0].arg) for u in changed.toposort() if u.op is Ops.RANGE] == [3] + [size // 4] * loops

@pytest.mark.parametrize("swapped", (False, True))
@pytest.mark.parametrize("size", (4, 8))
def test_several_ranges(size: int, swapped: bool) -> None:
  """Words are along the innermost range that has them. Other ranges stay."""
  i, q, r = axis(3, 0), axis(5, 1, "REDUCE"), axis(size, 2, "REDUCE")
  at = q * size + r
  ranges = (r, q) if swapped else (q, r)
  kernel = UOp.sink(UOp.param(0, I32, 3).index(i).store(product(byte(1, U8, i * 40 + at), x(at)).reduce(Ops.ADD,
                                                                                                        *ranges), i))
  changed = use_dots(kernel, AVX2)
  assert count(changed, Ops.DOT4) == 1
  sizes = {u.arg[0]: int(u.src[0].arg) for u in changed.toposort() if u.op is Ops.RANGE}
  assert sizes.pop(0) == 3 and sizes.pop(1) == 5 and [*sizes.values()] == [size // 4] * (size > 4)
  agree(kernel, changed)

def test_the_innermost_range_may_have_no_words() -> None:
  """Bytes of a word are adjacent along the outer range here."""
  i, r, q = axis(3, 0), axis(8, 1, "REDUCE"), axis(5, 2, "REDUCE")
  at = q * 8 + r
  kernel = UOp.sink(UOp.param(0, I32, 3).index(i).store(product(byte(1, U8, i * 40 + at), x(at)).reduce(Ops.ADD, r, q),
                                                        i))
  changed = use_dots(kernel, AVX2)
  assert count(changed, Ops.DOT4) == 1
  agree(kernel, changed)

def test_a_row_of_a_variable() -> None:
  kernel = sums(lambda i, r: product(byte(1, U8, UOp.variable("n", 0, 5) * 32 + r), x(r)))
  changed = use_dots(kernel, AVX2)
  assert count(changed, Ops.DOT4) == 1
  found = []
  for made in (kernel, changed):
    memory = memory_of(kernel)
    evaluate(made, memory, {"n": 3})
    found.append(memory)
  assert found[0] == found[1]

def test_a_buffer_that_all_sums_read_as_words() -> None:
  i, r, s = axis(3, 0), axis(32, 1, "REDUCE"), axis(16, 2, "REDUCE")
  total = product(a(i, r), x(r)).reduce(Ops.ADD, r) - product(a(i, s) >> 1, x(s)).reduce(Ops.ADD, s)
  kernel = UOp.sink(UOp.param(0, I32, 3).index(i).store(total, i))
  changed = use_dots(kernel, AVX2)
  assert count(changed, Ops.DOT4) == 2
  agree(kernel, changed)

def test_sums_of_other_types_stay_beside() -> None:
  """Ranges of equal number and size are one node. The other sum still visits all of its terms."""
  for size in (8, 32, 256):
    i, r = axis(2, 0), axis(size, 1, "REDUCE")
    total = product(byte(1, U8, i * size + r), byte(3, I8, r)).reduce(Ops.ADD, r)
    kernel = UOp.sink(UOp.param(0, I32, 2).index(i).store(total + UOp.param(4, I32, 512).index(i * size + r).load()
                                                          .reduce(Ops.ADD, r), i))
    changed = use_dots(kernel, AVX2)
    assert count(changed, Ops.DOT4) == 1
    agree(kernel, changed)

@pytest.mark.parametrize("size", (32, 256, 1024))
def test_a_sum_inside_of_another_over_the_same_range(size: int) -> None:
  """The loops of both have sizes of their own."""
  r = axis(size, 1, "REDUCE")
  total = product(UOp.param(1, U8, size).index(r).load(), UOp.param(3, I8, size).index(r).load()).reduce(Ops.ADD, r)
  outer = (UOp.param(4, I32, size).index(r).load() ^ total).reduce(Ops.ADD, r)
  for again in (outer, outer + total):
    kernel = UOp.sink(UOp.param(0, I32, 1).index(0).store(again))
    agree(kernel, use_dots(kernel, AVX2))

def test_blocks_with_scales() -> None:
  """A product with quantized weights: sums of integers inside of a sum of floats."""
  F32 = dtypes.float32
  i, k, r = axis(3, 0), axis(4, 1, "REDUCE"), axis(32, 2, "REDUCE")
  block = product(byte(1, U8, i * 128 + k * 32 + r) & 15, byte(3, I8, k * 32 + r)).reduce(Ops.ADD, r)
  scale = UOp.param(4, U8, 512).index(i * 4 + k).load().cast(F32)
  kernel = UOp.sink(UOp.param(0, F32, 3).index(i).store((block.cast(F32) * scale).reduce(Ops.ADD, k), i))
  changed = use_dots(kernel, AVX2)
  assert count(changed, Ops.DOT4) == 1 and count(changed, Ops.REDUCE) == 2
  agree(kernel, changed)

# ***** refusals *****

REFUSED: dict[str, tuple[Value, int]] = {
  "strided": (lambda i, r: product(byte(1, U8, i * 64 + r * 2), x(r)), 32),
  "backwards": (lambda i, r: product(byte(1, U8, r * -1 + 31), x(r)), 32),
  "begins inside of a word": (lambda i, r: product(byte(1, U8, i * 32 + r + 2), x(r)), 32),
  "rows begin inside of words": (lambda i, r: product(byte(1, U8, i * 30 + r), x(r)), 28),
  "a range of two meanings": (lambda i, r: product(byte(1, U8, (r // 4) * 4 + r), x(r)), 32),
  "another number of terms": (lambda i, r: product(a(i, r), x(r)), 30),
  "the same for all terms": (lambda i, r: product(byte(1, U8, i), x(r)), 32),
  "a constant": (lambda i, r: product(UOp.const(U8, 3), x(r)), 32),
  "bytes of the buffer, too": (lambda i, r: product(a(i, r), x(r)) + byte(1, U8, i * 32).cast(I32) * 0, 32),
  "signed bytes shifted to the right": (lambda i, r: product(b(i, r) >> 1, x(r)), 32),
  "a field of signed bytes": (lambda i, r: product((b(i, r) >> 1) & 15, x(r)), 32),
  "shifted by a counter, without a mask": (lambda i, r: product(byte(1, U8, r) >> places(i), x(r)), 32),
  "shifted by a counter to the left": (lambda i, r: product(byte(1, U8, r) << places(i), x(r)), 32),
  "bits of the next byte": (lambda i, r: product((byte(1, U8, r) >> places(i)) & 31, x(r)), 32),
  "shifted by the terms": (lambda i, r: product((byte(1, U8, r) >> (r & 3).cast(U8)) & 3, x(r)), 32),
  "a gate of terms": (lambda i, r: product(byte(1, U8, i * 32 + r, r < 20), x(r)), 32),
  "another value of terms": (lambda i, r: product(UOp.param(1, U8, 512).index(i * 32 + r).load(i < 2, byte(4, U8, r)),
                                                  x(r)), 32),
  "arithmetic of bytes": (lambda i, r: product(a(i, r) + 1, x(r)), 32),
  "a choice of bytes": (lambda i, r: product((a(i, r) < 9).where(a(i, r), UOp.const(U8, 1)), x(r)), 32),
  "16 bits": (lambda i, r: product(byte(1, dtypes.int16, r), x(r)), 32),
  "bools": (lambda i, r: product(byte(1, dtypes.bool, r), x(r)), 32),
  "a product of three": (lambda i, r: product(a(i, r), x(r)).alu(Ops.MUL, x(r).cast(I32)), 32),
  "no product": (lambda i, r: a(i, r).cast(I32), 32),
  "a product and a term": (lambda i, r: product(a(i, r), x(r)) + x(r).cast(I32), 32),
  "products of 64 bits": (lambda i, r: product(a(i, r), x(r), dtypes.int64), 32),
  "products of uint32": (lambda i, r: product(a(i, r), byte(3, U8, r), U32), 32),
  "products of 16 bits": (lambda i, r: product(a(i, r), x(r), dtypes.int16), 32),
  "products of floats": (lambda i, r: product(a(i, r), x(r), dtypes.float32), 32),
}

@pytest.mark.parametrize("name", REFUSED)
def test_other_kernels_stay(name: str) -> None:
  value, size = REFUSED[name]
  kernel = sums(value, size)
  assert use_dots(kernel, AVX2) is kernel
  verify(kernel, 1)

def test_other_kernels_stay_whatever_else_reads_their_bytes() -> None:
  i, r = axis(3, 0), axis(32, 1, "REDUCE")
  total = product(a(i, r), x(r)).reduce(Ops.ADD, r)
  for other in (byte(1, U8, i).cast(I32), UOp.param(1, I8, 512).index(i).load().cast(I32)):
    kernel = UOp.sink(UOp.param(0, I32, 3).index(i).store(total + other, i))
    assert use_dots(kernel, AVX2) is kernel

def test_a_kernel_that_writes_its_bytes_stays() -> None:
  i, r = axis(3, 0), axis(32, 1, "REDUCE")
  kernel = UOp.sink(UOp.param(3, I8, 512).index(i).store(product(a(i, r), x(r)).reduce(Ops.ADD, r).cast(I8), i))
  assert use_dots(kernel, AVX2) is kernel

def test_other_folds_stay() -> None:
  for op in (Ops.MAX, Ops.MUL):
    kernel = sums(lambda i, r: product(a(i, r), x(r)), op=op)
    assert use_dots(kernel, AVX2) is kernel

def test_targets() -> None:
  """x86 has DOT4, at each of its levels, and GPUs for a lane. Where vectors are accessed at whole words only, bytes may
  be at any address; buffers of a GPU begin at whole words."""
  kernel = sums(lambda i, r: product(a(i, r), x(r)))
  for level in LEVELS:
    assert has_dots(capabilities(level)) and use_dots(kernel, capabilities(level)) is not kernel
  for gpu in (amd.capabilities("gfx1100"), amd.capabilities("gfx942"), sass.capabilities("sm_90")):
    assert has_dots(gpu) and use_dots(kernel, gpu) is not kernel
  for target in (POOR, replace(AVX2, aligned=True), targets.capabilities("c"), targets.capabilities("python")):
    assert not has_dots(target) and use_dots(kernel, target) is kernel

# ***** words *****

# (a factor, its operations on words)
WORDS: dict[str, tuple[Callable[[UOp], UOp], list[Ops]]] = {
  "a byte": (lambda w: w, []),
  "low bits": (lambda w: w & 15, [Ops.AND]),
  "shifted": (lambda w: w >> 4, [Ops.SHR, Ops.AND]),
  "a field": (lambda w: (w >> 4) & 15, [Ops.SHR, Ops.AND]),
  "a field in the middle": (lambda w: (w >> 2) & 3, [Ops.SHR, Ops.AND]),
  "high bits, shifted": (lambda w: (w & 0xf0) >> 4, [Ops.AND, Ops.SHR]),
  "low bits, moved up": (lambda w: (w & 15) << 4, [Ops.AND, Ops.SHL]),
  "shifted twice": (lambda w: (w >> 4) >> 2, [Ops.SHR, Ops.AND, Ops.SHR, Ops.AND]),
  "a field, moved up": (lambda w: ((w >> 1) & 1) << 4, [Ops.SHL, Ops.AND]),
  "a field, moved up by less": (lambda w: ((w >> 5) & 3) << 2, [Ops.SHR, Ops.AND]),
  "a field, moved to its place": (lambda w: ((w >> 4) & 3) << 4, [Ops.AND]),
  "the highest bits": (lambda w: ((w & 0xc0) >> 6) << 1, [Ops.AND, Ops.SHR, Ops.SHL]),
}

@pytest.mark.parametrize("name", WORDS)
def test_fields_are_shifted_once_and_masked_once(name: str) -> None:
  make, ops = WORDS[name]
  kernel = sums(lambda i, r: product(make(a(i, r)), x(r)))
  changed = use_dots(kernel, AVX2)
  assert [u.op for u in changed.toposort() if u.dtype is U32 and u.op in (Ops.AND, Ops.SHR, Ops.SHL)] == ops
  agree(kernel, changed)

def test_masks_are_for_each_byte() -> None:
  changed = use_dots(sums(lambda i, r: product((a(i, r) >> 4) ^ 0x80, (x(r) & -2) | 1)), AVX2)
  assert {u.arg for u in changed.toposort()
          if u.op is Ops.CONST and u.dtype is U32} == {4, 0x0f0f0f0f, 0x80808080, 0xfefefefe, 0x01010101}

UNSIGNED, SIGNED = (lambda i, r: a(i, r)), (lambda i, r: b(i, r))

@st.composite
def bits(draw: st.DrawFn, dtype: DType, depth: int) -> tuple[Value, bool]:
  """Return random operations on the bits of bytes, and whether words have them all."""
  kind = draw(st.sampled_from(("load", "and", "or", "xor", "constant", "right", "left", "field", "type"))) if depth \
    else "load"
  if kind == "load": return (UNSIGNED if dtype is U8 else SIGNED), True
  if kind in ("and", "or", "xor"):
    (p, p_words), (q, q_words) = draw(bits(dtype, depth - 1)), draw(bits(dtype, depth - 1))
    return (lambda i, r: p(i, r).alu(Ops[kind.upper()], q(i, r))), p_words and q_words
  value, words = draw(bits(dtype if kind != "type" else I8 if dtype is U8 else U8, depth - 1))
  if kind == "type":
    op = draw(st.sampled_from((Ops.CAST, Ops.BITCAST)))
    return (lambda i, r: UOp(op, dtype, (value(i, r),))), words
  if kind == "constant":
    op, mask = draw(st.sampled_from((Ops.AND, Ops.OR, Ops.XOR))), draw(st.integers(int(dtype.min), int(dtype.max)))
    return (lambda i, r: value(i, r).alu(op, UOp.const(dtype, mask))), words
  n, up = draw(st.integers(0, 9)), draw(st.integers(0, 7))
  if kind == "left": return (lambda i, r: value(i, r) << up), words
  if kind == "right": return (lambda i, r: value(i, r) >> n), words and dtype is U8
  mask = draw(st.integers(0, 127))
  return (lambda i, r: ((value(i, r) >> n) & mask) << up), words and dtype is U8

@settings(max_examples=300)
@given(st.sampled_from((U8, I8)).flatmap(lambda dtype: bits(dtype, 4)), bits(U8, 3))
def test_random_operations_on_bits(first: tuple[Value, bool], second: tuple[Value, bool]) -> None:
  """Only shifts of signed bytes to the right need not have words. All others do."""
  kernel = sums(lambda i, r: product(first[0](i, r), second[0](i, r)), 8, 2)
  changed = use_dots(kernel, AVX2)
  assert count(changed, Ops.DOT4) >= (first[1] and second[1])
  assert results(changed, kernel) == results(kernel, kernel)

# ***** robustness *****

def test_shifts_by_negative_amounts() -> None:
  """They have a value, as arithmetic.py says."""
  for value in (b, lambda i, r: shifted(a(i, r), 1, 3).bitcast(I8)):
    kernel = sums(lambda i, r, value=value: product(value(i, r) << -1, x(r)))
    agree(kernel, use_dots(kernel, AVX2))

def test_long_sums_need_no_deep_stack() -> None:
  """Sums that are none of bytes, too."""
  def chain(term: Callable[[int], UOp]) -> UOp:
    total = term(0)
    for k in range(1, 1500): total = total.alu(Ops.ADD, term(k))
    return total
  kernel = sums(lambda i, r: chain(lambda k: UOp.param(1, I32, 96).index(i * 32 + r).load() ^ k))
  assert use_dots(kernel, AVX2) is kernel
  use_dots(sums(lambda i, r: chain(lambda k: product(a(i, r) ^ (k & 255), byte(3 + k // 256, I8, r)))), AVX2)

def test_long_operations_on_bits_need_no_deep_stack() -> None:
  def chain(u: UOp) -> UOp:
    for k in range(1500): u = u.alu(Ops.XOR if k % 2 else Ops.AND, UOp.const(U8, k & 255))
    return u
  use_dots(sums(lambda i, r: product(chain(a(i, r)), x(r))), AVX2)

def test_twice_the_operations_are_twice_the_lines() -> None:
  """A node with several users is visited once."""
  def cost(steps: int) -> int:
    def scrambled(u: UOp) -> UOp:
      for _ in range(steps): u = u ^ (u >> 1)
      return u
    kernel = sums(lambda i, r: product(scrambled(a(i, r)), x(r)))
    return lines_executed(lambda: use_dots(kernel, AVX2))
  once, twice = cost(5), cost(10)
  assert twice <= 2.2 * once, f"{once} lines became {twice}"

# ***** pairs of bfloat16 *****

BF16, F32 = dtypes.bfloat16, dtypes.float32
PAIRS = replace(AVX2, operations=AVX2.operations | {(Ops.DOT2, F32)},
                vector_operations=AVX2.vector_operations | {(Ops.DOT2, F32)})

def halves(slot: int, at: UOp, gate: UOp | None = None, alt: float = 0.0) -> UOp:
  return UOp.param(slot, BF16, 512).index(at).load(gate, alt)

def rows_of_both(dtype: DType, gate: UOp | None = None, alt: float = 0.0, row: int = 32, size: int = 32) -> UOp:
  """Return the kernel of the sums of products of row i of one matrix with that of another one."""
  i, r = axis(3, 0), axis(size, 1, "REDUCE")
  p, q = (halves(slot, i * row + r, gate, alt).cast(dtype) for slot in (1, 2))
  return UOp.sink(UOp.param(0, dtype, 3).index(i).store(p.alu(Ops.MUL, q).reduce(Ops.ADD, r), i))

def small_halves(kernel: UOp) -> dict[int, list[float]]:
  rng = random.Random(3)
  sizes = dict(u.arg for u in kernel.toposort() if u.op is Ops.PARAM)
  return {slot: [float(rng.randint(-4, 4)) for _ in range(size)] for slot, size in sizes.items()}

def same_sums(kernel: UOp, made: UOp) -> bool:
  """Do both kernels compute the same, for numbers whose sums are exact?"""
  first = small_halves(kernel)
  second: dict[int, Any] = {}
  for u in sorted(made.toposort(), key=lambda u: u.arg[0] if u.op is Ops.PARAM else 0):
    if u.op is not Ops.PARAM: continue
    data = b"".join(to_bytes(x, BF16) for x in first[u.arg[0]]) if u.arg[0] else b""
    second[u.arg[0]] = bytearray(data) if u.arg[0] else [0.0] * 3
  evaluate(kernel, first)
  evaluate(made, second)
  return first[0] == second[0]

@pytest.mark.parametrize("dtype", (F32, BF16), ids=str)
def test_products_of_rows_of_bfloat16_are_pairs(dtype: DType) -> None:
  kernel = rows_of_both(dtype)
  made = use_dots(kernel, PAIRS)
  (dot,) = [u for u in made.toposort() if u.op is Ops.DOT2]
  assert dot.dtype is F32 and [s.dtype for s in dot.src[:2]] == [U32, U32]
  assert [u.src[0].arg for u in made.toposort() if u.op is Ops.RANGE and u.arg[1] is AxisType.REDUCE] == [16]
  assert same_sums(kernel, made)

def test_sums_over_one_loop_stay_sums_over_one_loop() -> None:
  """A gated network multiplies a vector by two matrices in one kernel. Lanes go along their loop."""
  i, r = axis(3, 0), axis(32, 1, "REDUCE")
  first, second = (halves(1, r).cast(F32).alu(Ops.MUL, halves(slot, i * 32 + r).cast(F32)).reduce(Ops.ADD, r)
                   for slot in (2, 3))
  kernel = UOp.sink(UOp.param(0, F32, 3).index(i).store(first * second, i))
  made = use_dots(kernel, PAIRS)
  assert count(made, Ops.DOT2) == 2 and len([u for u in made.toposort() if u.op is Ops.RANGE]) == 2
  assert same_sums(kernel, made)

def test_words_lie_in_the_parts_of_a_loop_that_memory_divides() -> None:
  """The heads' results, side by side, are a row of the next product: a sum over head * 8 + element."""
  i, r = axis(3, 0), axis(32, 1, "REDUCE")
  heads = halves(1, (r // 8) * 24 + i * 8 + r % 8).cast(F32)
  kernel = UOp.sink(UOp.param(0, F32, 3).index(i).store(heads.alu(Ops.MUL, halves(2, i * 32 + r).cast(F32))
                                                        .reduce(Ops.ADD, r), i))
  assert use_dots(kernel, PAIRS) is kernel
  made = with_few_ranges(kernel, PAIRS)
  assert any(u.op is Ops.DOT2 for u in made.toposort()) and same_sums(kernel, made)

def test_a_gate_with_zeros_stays() -> None:
  gate = axis(3, 0) < 2
  kernel = rows_of_both(F32, gate)
  made = use_dots(kernel, PAIRS)
  assert any(u.op is Ops.DOT2 for u in made.toposort()) and same_sums(kernel, made)
  assert use_dots(other := rows_of_both(F32, gate, 1.0), PAIRS) is other, "ones are no word of zeros"

def test_kernels_without_pairs_stay() -> None:
  i, r = axis(3, 0), axis(32, 1, "REDUCE")
  columns = halves(1, i * 32 + r).alu(Ops.MUL, halves(2, r * 16 + i)).reduce(Ops.ADD, r)
  squares = (halves(1, i * 32 + r) + 1).alu(Ops.MUL, halves(2, i * 32 + r)).reduce(Ops.ADD, r)
  for kernel in (rows_of_both(F32, size=31), rows_of_both(F32, row=33),
                 *[UOp.sink(UOp.param(0, BF16, 3).index(i).store(value, i)) for value in (columns, squares)]):
    assert use_dots(kernel, PAIRS) is kernel
  assert use_dots(rows_of_both(F32), AVX2).toposort().keys() == rows_of_both(F32).toposort().keys()

def test_a_target_without_the_operation_adds_products_one_by_one() -> None:
  program = lower(use_dots(rows_of_both(F32), PAIRS), AVX2, "test")
  assert not any(u.op is Ops.DOT2 for u in program.uops)
  verify(program, 1)
