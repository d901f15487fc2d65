"""The annotated listing: loops, live registers, counts that can be done by hand, the lines of a program.

Instructions are x86-64's.
"""
from __future__ import annotations
import pytest

from tinyhw import trace
from tinyhw.dtype import dtypes
from tinyhw.isa.x86.asm.encode import encode_function
from tinyhw.isa.x86.asm.syntax import parse_function
from tinyhw.isa.x86.describe import describe, reader
from tinyhw.isa.x86.table import regs
from tinyhw.machine.ir.inst import Function
from tinyhw.machine.model.listing import (
  LiveRegisters, cut, find_loops, iteration, lines_of, mean_of, short, size, sum_text)
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import UOp

CODE = """
  mov eax, 0
.outer:
  mov ecx, 0
.inner:
  vmovups ymm0, ymmword ptr [rdi + 4*rcx]
  vfmadd231ps ymm1, ymm0, ymmword ptr [rsi + 4*rcx]
  add ecx, 8
  cmp ecx, 64
  jl .inner
.after:
  vmovups ymmword ptr [rdx + 4*rax], ymm1
  add eax, 1
  cmp eax, 4
  jl .outer
.last:
  ret
"""

def loop(number: int, size: int, kind: AxisType = AxisType.LOOP) -> UOp:
  r = UOp(Ops.RANGE, dtypes.int32, (UOp.const(dtypes.int32, size),), (number, kind))
  return UOp(Ops.END, dtypes.void, (r,))

def nest(kind: AxisType = AxisType.LOOP) -> Function:
  """Two loops: 8 iterations inside of 4 iterations."""
  function = parse_function(CODE, "nest")
  jumps = [inst for block in function.blocks for inst in block.insts if inst.row.name == "jl"]
  for jump, end in zip(jumps, (loop(1, 8), loop(0, 4, kind))): jump.origin = end
  function.used = {"gpr": {0, 1}, "vec": {0, 1}}
  return function

def listed(function: Function, grid: int | None = None, uops: tuple[UOp, ...] = ()) -> list[str]:
  code, places = encode_function(function)
  return describe(function, code, places, "x86_64:avx2", "zen3", grid, uops).splitlines()

def test_loops_nest_and_know_how_often_they_run() -> None:
  outer, inner = find_loops(nest())
  assert (outer.first, outer.last, outer.times, outer.depth, outer.parent) == (1, 3, 4, 0, None)
  assert (inner.first, inner.last, inner.times, inner.depth, inner.parent) == (2, 2, 8, 1,
                                                                               outer) and outer.inner == [inner]
  assert [i.row.name for i in inner.own] == ["vmovups", "vfmadd231ps", "add", "cmp", "jl"] and len(outer.own) == 5
  assert [l.times for l in find_loops(parse_function(CODE))] == [None, None]

def test_an_iteration_includes_inner_loops() -> None:
  how = reader("zen3", 256)
  outer, inner = find_loops(nest())
  each, known = iteration(inner, how)
  assert known and (each.instructions, each.loaded, each.stored, each.operations) == (5, 64, 0, 16)
  whole, known = iteration(outer, how)
  assert known and (whole.instructions, whole.loaded, whole.stored, whole.operations) == (45, 512, 32, 128)

def test_live_registers() -> None:
  function = nest()
  registers = LiveRegisters(function, regs.BANKS, {"vec": tuple(range(16))})
  counts = registers.counts(2)
  assert [c["gpr"] for c in counts] == [5, 5, 5, 5, 5]       # rax, rcx, rdx, rsi, rdi
  assert [c["vec"] for c in counts] == [2, 2, 1, 1, 1]       # ymm1 goes around the loop; ymm0 only from load to use
  assert [c["gpr"] for c in registers.counts(4)] == [0]

def test_listing_of_a_nest() -> None:
  lines = listed(nest())
  assert lines[0] == "--- machine code of nest" and lines[1].split() == ["offset", "bytes", "instruction", "gpr", "vec",
                                                                         "from", "line"]
  assert [line[:2] for line in lines[2:17]] == ["  ", "/ ", "| ", "|/", "||", "||", "||", "||", "|\\", "| ", "| ", "| ",
                                                "\\ ", "  ", "ne"]
  assert lines[6].split() == ["||", "10", "c5fc10048f", "vmovups", "ymm0,", "ymmword", "ptr", "[rdi", "+", "4*rcx]",
                              "5", "2"]
  text = "\n".join(lines)
  assert "nest: 12 instructions, 43 bytes, 0 spills, 0 reloads" in text
  assert "columns gpr and vec: registers that hold a value at the instruction" in lines
  assert "    all 8 iterations: 40 instructions, 512 bytes loaded, 0 bytes stored, 128 flop" in text
  assert "  all 4 iterations: 180 instructions, 2048 bytes loaded, 128 bytes stored, 512 flop" in text
  assert "overall: 182 instructions, 2048 bytes loaded, 128 bytes stored, 512 flop" in text
  assert ("bound of .inner2 (r1 in LOOP 8): 4.0 cycles an iteration, by latency (ports 1.0, load/store 1.0, issue "
          "0.8, latency 4.0)" in text)
  assert "  at most 4.0 flop a cycle of 32, 12 %; 16.0 bytes a cycle" in text
  assert lines[-1].startswith("bounds: AMD Zen 3")

def test_loop_over_the_grid_runs_as_often_as_the_launch_says() -> None:
  assert "overall: not known: it depends on the launch" in listed(nest(AxisType.GLOBAL))
  assert "overall (10 work items): 452 instructions, 5120 bytes loaded, 320 bytes stored, 1280 flop" in listed(
    nest(AxisType.GLOBAL), 10)

def test_spills_are_counted_and_shown() -> None:
  function = nest()
  function.blocks[2].insts[0].comment = "reload"
  text = "\n".join(listed(function))
  assert "0 spills, 1 reloads" in text and "128 flop, 8 reloads" in text
  assert next(line for line in text.splitlines() if "vmovups ymm0" in line).endswith("reload")

def test_instructions_say_where_they_came_from() -> None:
  buffer, i = UOp.param(1, dtypes.float32, 64), loop(3, 4).src[0]
  load = UOp(Ops.LOAD, dtypes.float32.vec(8), (UOp(Ops.INDEX, dtypes.float32, (buffer, i * 8)),))
  square = load * load
  function = parse_function("vmovups ymm0, ymmword ptr [rdi]\nvmulps ymm0, ymm0, ymmword ptr [rdi]\nadd rax, 1\nret")
  first, second, third, _ = function.blocks[0].insts
  first.origin, second.origin, third.comment = load, square, "copy"
  assert [short(i) for i in (first, second, third)] == ["load data1[r3*8:+8]", "mul float32x8 of data1[r3*8:+8]",
                                                        "copy"]
  trace.record(square, ("/home/me/model.py", 12, "forward"))
  function.used = {"vec": {0}}
  lines = listed(function, uops=(buffer, i, load, square))
  assert [line.endswith("model.py:12 forward") for line in lines[2:6]] == [True, True, False, False]

def test_a_uop_without_a_line_has_that_of_its_user() -> None:
  a, end = UOp.const(dtypes.float32, 3.25), loop(7, 3)
  b = a * 2.125
  trace.record(b, ("a.py", 1, "f"))
  assert lines_of([a, *b.src, b])[a] == ("a.py", 1, "f")
  assert lines_of([end.src[0], end]) == {}

@pytest.mark.parametrize("count, text", [(0, "0"), (9999, "9999"), (10000, "10.0 k"), (123456, "123 k"),
                                         (2.5e6, "2500 k"), (2.5e7, "25.0 M")])
def test_sizes(count: float, text: str) -> None: assert size(count) == text

def test_sums_and_cuts() -> None:
  i, j = loop(0, 4).src[0], loop(1, 4).src[0]
  assert sum_text((i + j) * 8 + 3) == "(r0+r1)*8+3" and cut("abcdefgh", 6) == "abcd.." and cut("abc", 6) == "abc"

def test_the_mean_of_a_loop_whose_end_depends_on_the_work_item() -> None:
  grid = UOp(Ops.RANGE, dtypes.int32, (UOp.const(dtypes.int32, 8),), (0, AxisType.GLOBAL))
  two = UOp.const(dtypes.int32, 2)
  assert mean_of(UOp(Ops.ADD, dtypes.int32, (grid, UOp.const(dtypes.int32, 1)))) == 4, "of 1 to 8 the mean is 4.5"
  assert mean_of(UOp(Ops.MUL, dtypes.int32, (grid, two))) == 7
  assert mean_of(UOp(Ops.ADD, dtypes.int32, (grid, UOp(Ops.DEFINE_VAR, dtypes.int32, (), ("n", 1, 9))))) is None
  other = UOp(Ops.RANGE, dtypes.int32, (UOp.const(dtypes.int32, 8),), (1, AxisType.REDUCE))
  assert mean_of(other) is None
