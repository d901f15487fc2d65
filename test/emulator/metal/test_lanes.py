"""Threads: what they share, where they meet, and mistakes in kernels, each of which is reported with its line."""
import random
import struct

import pytest

from tinyhw.codegen.render.metal import MATRICES
from tinyhw.emulator.errors import StrictError
from tinyhw.emulator.metal.lanes import place_of
from test.emulator.metal.conftest import Runner

SHARED = "threadgroup int *s = (threadgroup int *)(shared_bytes + 0); "
BARRIER = "threadgroup_barrier(mem_flags::mem_threadgroup); "

def test_lanes_meet(run: Runner) -> None:
  body = SHARED + "s[lane] = x[lane]; " + BARRIER + "out[group * 64u + lane] = s[63u - lane];"
  found = run(body, x=struct.pack("64i", *range(64)), lanes=64, seed=5)
  assert struct.unpack("64i", found.data) == tuple(range(63, -1, -1))

def test_exchanges(run: Runner) -> None:
  body = "int v = x[lane]; int w = v + simd_shuffle_xor(v, 1); out[lane] = w + simd_shuffle_xor(w, 16);"
  found = struct.unpack("64i", run(body, x=struct.pack("64i", *range(64)), lanes=64, seed=2).data)
  assert found == tuple(sum(k ^ a ^ b for a in (0, 1) for b in (0, 16)) for k in range(64))

def test_products_of_matrices(run: Runner) -> None:
  """The layout is a table of its own here; it equals the one that codegen has."""
  for lane in range(32):
    for k in range(2):
      layout = MATRICES[0].c
      assert place_of(lane, k) == (layout.coordinate("row", lane, k), layout.coordinate("column", lane, k))
  body = ("simdgroup_float8x8 a; simdgroup_float8x8 c;\n"
          "a.thread_elements()[0] = x[lane * 2]; a.thread_elements()[1] = x[lane * 2 + 1];\n"
          "c.thread_elements()[0] = 0.0f; c.thread_elements()[1] = 1.0f;\n"
          "simdgroup_multiply_accumulate(c, a, a, c);\n"
          "out[lane * 2] = c.thread_elements()[0]; out[lane * 2 + 1] = c.thread_elements()[1];")
  rng = random.Random(1)
  x = [float(rng.randint(-3, 3)) for _ in range(64)]
  found = struct.unpack("64f", run(body, x=struct.pack("64f", *x), element="float", lanes=32).data)
  a = {place_of(lane, k): x[2 * lane + k] for lane in range(32) for k in range(2)}
  for lane in range(32):
    for k in range(2):
      row, column = place_of(lane, k)
      assert found[2 * lane + k] == k + sum(a[row, j] * a[j, column] for j in range(8))

MISTAKES = {
  "out of bounds": ("out[lane] = x[lane + 13];", 4, "4 bytes at offset 64 of x, which has 64"),
  "before the start": ("out[lane] = x[(int)lane - 1];", 4, "4 bytes at offset -4 of x"),
  "misaligned": ("int4 v = *(device int4 *)(x + lane); out[lane] = v[0];", 4, "no multiple of 16"),
  "not written": ("out[lane] = out[lane];", 4, "which nothing has written"),
  "threadgroup memory is not zeros": (SHARED + "out[lane] = s[lane];", 4, "shared_bytes, which nothing has written"),
  "no barrier": (SHARED + "s[lane] = x[lane]; out[lane] = s[lane ^ 1];", 4,
                 "nothing orders the two|nothing has written"),
  "a barrier of nothing": (SHARED + "s[lane] = x[lane]; threadgroup_barrier(mem_flags::mem_none); "
                           "out[lane] = s[lane ^ 1];", 4, "nothing orders the two"),
  "no second barrier": (SHARED + "s[lane] = x[lane]; " + BARRIER + "out[lane] = s[lane ^ 1]; s[lane] = 5;", 4,
                        "nothing orders the two"),
  "two threads, one element": ("out[0] = (int)lane;", 4, "two threads have one element"),
  "two groups, one element": ("out[lane] = (int)group;", 4, "two threads have one element"),
  "read of another's element": ("out[lane] = x[lane]; x[lane ^ 1] = 99;", 4, "nothing orders the two"),
  "a barrier for some": ("if (lane < 2u) { " + BARRIER + "}", 4, "divergent threads: .*have ended"),
  "two barriers": ("if (lane < 2u) { " + BARRIER + "}\nif (lane > 1u) { " + BARRIER + "}", 4,
                   "wait at the barrier of program_source:5, .*wait at the barrier of program_source:6"),
  "a shuffle for some": ("int v = 0; if (lane < 8u) { v = simd_shuffle_xor(1, 1); }", 32, "divergent threads"),
  "a lane that does not exist": ("int v = simd_shuffle_xor(1, 16);", 16, "lane 16, which does not exist"),
  "division by zero": ("out[lane] = 5 / (x[lane] & 0);", 4, "division of 5 by zero"),
  "signed overflow": ("out[lane] = 2147483647 + x[lane + 1];", 4, "signed overflow"),
  "shift": ("out[lane] = 1 << (32 + (int)lane);", 4, "shift of 32 bits by 3[2-5]"),
  "conversion": ("float f = 3000000000.0f; out[lane] = (int)f;", 4, "conversion of 3000000000.0 to an integer"),
  "matrix without value": ("simdgroup_float8x8 a; out[lane] = (int)a.thread_elements()[0];", 32, "has no value yet"),
  "product without value": ("simdgroup_float8x8 a; simdgroup_multiply_accumulate(a, a, a, a);", 32, "has no value"),
  "product of half a SIMD-group": ("simdgroup_float8x8 a; a.thread_elements()[0] = 1.0f; "
                                   "a.thread_elements()[1] = 1.0f; simdgroup_multiply_accumulate(a, a, a, a);", 16,
                                   "SIMD-group of 16 threads"),
}

@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_reported_with_their_line(name: str, run: Runner) -> None:
  """With every seed: the order of the threads does not decide."""
  body, lanes, words = MISTAKES[name]
  for seed in range(5):
    with pytest.raises(StrictError, match=f"(?s){words}") as caught:
      run(body, x=struct.pack("16i", *range(16)), lanes=lanes, groups=2, seed=seed)
    assert "in kernel k_t" in str(caught.value) and "program_source:" in str(caught.value)

def test_a_write_of_the_same_value_is_no_race(run: Runner) -> None:
  assert run("out[0] = 7; out[lane + 1] = 3;", lanes=4).data[:4] == b"\7\0\0\0"
