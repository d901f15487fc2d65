"""Pseudo-code as people read it at DEBUG=4.

The texts below are golden: look at a difference, then copy the new text.
"""
from generators.program_builder import Builder, RandomProgram, i32, matmul, pad, workgroups

from tinyhw.codegen.render.pseudo import render
from tinyhw.uop.ops import UOp

def test_matmul() -> None:
  assert render(matmul(4, True)) == """\
kernel matmul_4(data0: f32[16], data1: f32[16] const, data2: f32[16] const):
  for g0 in grid(4):
    for i1 in range(4):
      acc2 = 0
      for r3 in range(4):
        x2 = g0 * 4
        acc2 = fma(data1[x2 + r3], data2[(r3 * 4) + i1], acc2)
      x3 = g0 * 4
      data0[x3 + i1] = acc2"""

def test_vectors_and_gates() -> None:
  assert render(pad()) == """\
kernel pad(data0: f32[12], data1: f32[6] const):
  for g0 in grid(3):
    x1 = g0 * 4
    v4_2 = [x1 + 0, x1 + 1, x1 + 2, x1 + 3]
    v4_3 = v4_2 + -3
    data0[x1:+4] = data1[v4_3] if (v4_3 < 6) & ((v4_2 < 3) ^ True) else -1"""

def test_lanes_local_memory_and_barriers() -> None:
  text = render(workgroups())
  assert "local0 = i32[4]" in text and "for l2 in lanes(4):" in text and "\n      barrier\n" in text

def test_conditions_and_variables() -> None:
  b = Builder("when")
  out, n = b.param(0, i32, 8), b.add(UOp.variable("n", 0, 8, i32))
  with b.loop(n) as r, b.when(b.add(r < 3)): b.store(out, r, r * 2, gate=b.add(r.ne(1)))
  assert render(b.program()) == """\
kernel when(data0: i32[8], n: 0..8):
  for i0 in range(n):
    if i0 < 3:
      if i0 != 1: data0[i0] = i0 * 2"""

def test_everything_has_a_text() -> None:
  for seed in range(10): assert render(RandomProgram(seed, lanes=seed % 3 + 1).program)
