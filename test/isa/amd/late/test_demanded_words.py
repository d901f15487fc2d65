"""64-bit values of which one word is used are reduced to that word. Results stay the same, and no value is made without
a user (machine.py checks it)."""
from __future__ import annotations

import pytest

from test.codegen.kernels import axis
from test.isa.amd.machine import ARCHS, check
from tinyhw.codegen.optimize import optimize
from tinyhw.codegen.passes import lower
from tinyhw.dtype import DType, dtypes
from tinyhw.isa.amd.capabilities import capabilities
from tinyhw.isa.amd.late.demanded_words import RECIPES, reduce_to_words
from tinyhw.isa.amd.macros.macros import MACROS, make
from tinyhw.isa.amd.table import regs
from tinyhw.isa.amd.table.form import Generation
from tinyhw.isa.amd.table.table import table
from tinyhw.isa.amd.target import assemble, target
from tinyhw.machine.ir.inst import Function, MInst, Reg
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

N = 40

def kernel(out: DType, value: str) -> UOp:
  """A kernel on int64 operands that stores the result's low word."""
  r = axis(N, 0)
  a, b = (UOp.param(k, dtypes.int64, N).index(r).load() for k in (1, 2))
  made = {"a + b": a + b, "a - b": a - b, "a * b": a * b, "(a * 3 + b) * 5": (a * 3 + b) * 5,
          "a & b": a.alu(Ops.AND, b), "a | b": a.alu(Ops.OR, b),
          "a ^ b": a.alu(Ops.XOR, b), "a if a < b else b": (a < b).where(a, b), "a + b and all of it": a + b}[value]
  result = made.cast(out)
  if "all of it" in value: result = result + (made < 0).cast(out)
  return UOp.sink(UOp.param(0, out, N).index(r).store(result, r))

def names(sink: UOp, arch: str) -> list[str]:
  capable = capabilities(arch)
  return [inst.row.name for _, inst in assemble(lower(optimize(sink, capable), capable, "k"), arch)[2]]

@pytest.mark.parametrize("value", ("a + b", "a - b", "a * b", "(a * 3 + b) * 5", "a & b", "a | b", "a ^ b",
                                   "a if a < b else b"))
def test_low_words(value: str) -> None:
  for arch in ARCHS: check(kernel(dtypes.int32, value), arch, what=value)
  assert not {"v_add_co_u32", "v_add_co_ci_u32", "v_sub_co_u32",
              "v_mad_u64_u32"} & set(names(kernel(dtypes.int32, value), "gfx1100"))

def test_what_is_wanted_whole_stays() -> None:
  assert "v_add_co_ci_u32" in names(kernel(dtypes.int32, "a + b and all of it"), "gfx1100")
  check(kernel(dtypes.int32, "a + b and all of it"), "gfx1100")

@pytest.mark.parametrize("arch", ARCHS)
def test_an_index_from_data_has_32_bits_where_an_address_has(arch: str) -> None:
  r, s = axis(5, 0), axis(3, 1)
  at = UOp.param(2, dtypes.int32, 5).index(r).load().cast(dtypes.weakint)
  sink = UOp.sink(UOp.param(0, dtypes.float32,
                            15).index(r * 3 + s).store(UOp.param(1, dtypes.float32, 150).index(at * 3 + s).load(
    (at < 50) & (at > -1), UOp.const(dtypes.float32, 0.0)), r, s))
  check(sink, arch, {0: [0.0] * 15, 1: [float(k) for k in range(150)], 2: [0, 49, -1, 50, 7]})
  assert not {"v_add_co_u32", "v_add_co_ci_u32", "v_mad_u64_u32"} & set(names(sink, arch))

def halved(arch: str, name: str, half: str) -> list[MInst]:
  """The replacement of an instruction if a store needs one word of its result."""
  generation, function = Generation(arch), Function("k")
  block, t = function.new_block(), target(arch)
  if name in MACROS:
    kinds = {"v1": regs.V[1], "v2": generation.vectors[2], "s1": regs.S[1], "s2": regs.S[2],
             "m": regs.S[generation.wave // 32]}
    shown = MACROS[name].operands[:MACROS[name].shown]
    letters = [("s" if name[:2] == "s_" else "v") + c[1] if c[0] == "x" else c for _, _, c in shown]
    inst = make(function, generation, name, *[function.new_reg(kinds[c]) for c in letters])
  else:
    source = function.new_reg(regs.S[2] if name[:2] == "s_" else generation.vectors[2])
    inst = MInst(table(arch)[name], [function.new_reg(source.cls), *((source, 5) if name[:2] == "s_" else (5, source))])
  scalar = inst.operands[0].cls.bank is regs.SGPR
  word = function.new_reg((regs.S if scalar else regs.V)[1])
  last = MInst(table(arch)["s_mov_b32" if scalar else "v_mov_b32"], [Reg(word.cls, index=3), word])
  block.insts = [inst, make(function, generation, f"s_{half}" if scalar else half, word, inst.operands[0]), last]
  reduce_to_words(function, t)
  return block.insts

@pytest.mark.parametrize("arch", ("gfx1100", "gfx942"))
def test_every_way(arch: str) -> None:
  for (name, half), way in RECIPES.items():
    insts = halved(arch, name, "low" if half == 1 else "high")
    made = [inst.row.name for inst in insts if inst.row.name not in ("low", "high", "s_low", "s_high")]
    assert made[:-1] == ([] if way.key == "=" else [way.key]), name
  assert [inst.row.name for inst in halved(arch, "add64", "high")] == ["add64", "high",
                                                                       "v_mov_b32"], "a carry comes from below"
