"""The selection pass that GPUs share: its requests to an ISA, with an ISA that records them.

The actions of ISAs are tested with them.
"""
from __future__ import annotations
from typing import Any

import pytest

from tinyhw.dtype import DType, dtypes
from tinyhw.errors import CompileError
from tinyhw.machine.ir.inst import Bank, Block, Function, Reg, RegClass
from tinyhw.machine.select.selection import Selection, constant_bits, constant_part, gate_of, is_extended
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import UOp
from tinyhw.uop.program import Program

ANY = RegClass("r", Bank("r", 8, tuple(range(8))), 32)

class Recorder(Selection):
  """An ISA whose instructions are records of requests."""
  def __init__(self) -> None:
    super().__init__(Function("k"))
    self.notes: list[str] = []
    self.enter(self.function.new_block(name="entry"))

  def note(self, text: str) -> Reg:
    self.notes.append(text)
    return self.new(ANY)

  def home(self, u: UOp) -> RegClass: return ANY
  def define(self, u: UOp) -> Reg: return self.note("define")
  def lane_or_block(self, u: UOp) -> Reg: return self.note(f"hardware {u.arg[1].name}")
  def load(self, u: UOp) -> Reg: return self.note("load")
  def store(self, u: UOp) -> None: self.note("store")
  def element(self, dtype: DType, source: UOp, number: int) -> Reg:
    return self.note(f"element {number} of {source.op.name}")
  def filled(self, dtype: DType, number: Any) -> Reg: return self.note(f"filled with {number}")
  def part_of(self, u: UOp) -> Reg: return self.note(f"part from {u.arg}")
  def joined(self, u: UOp) -> Reg: return self.note(f"joined {len(u.src)}")
  def variable_value(self, variable: UOp, u: UOp) -> Reg: return self.note(f"variable {u.op.name}")
  def number(self, u: UOp) -> Reg: return self.note(f"number {u.op.name}")
  def cast(self, u: UOp) -> Reg: return self.resize(u)
  def half(self, value: Any, which: str) -> Any: return self.note(which)
  def moved(self, value: Any, u: UOp) -> Reg: return self.note("moved")
  def widen(self, value: Any, source: DType, u: UOp) -> Reg: return self.note(f"widen {source.name}")
  def extend(self, value: Any, u: UOp) -> Reg: return self.note(f"extend to {u.dtype.name}")
  def logic(self, u: UOp) -> Reg: return self.note(f"logic {u.op.name}")
  def branch(self, block: Block, values: list[Reg]) -> None: self.note(f"branch {block.name}")
  def branch_unless(self, condition: UOp, block: Block) -> None: self.note(f"unless {block.name}")
  def branch_if(self, predicate: str, dtype: DType, a: Any, b: Any, block: Block, values: list[Reg]) -> None:
    self.note(f"if {predicate} {block.name}")
  def counter(self, dtype: DType) -> Reg: return self.note("zero")
  def count(self, counter: Reg) -> Reg: return self.note("count")
  def barrier(self, u: UOp) -> None: self.note("barrier")
  def finish(self) -> None: self.note("finish")

def notes(*uops: UOp) -> list[str]:
  recorder = Recorder()
  assert recorder.select(Program("k", uops)) is recorder.function
  return recorder.notes

def const(value: int) -> UOp: return UOp.const(dtypes.int32, value)

def test_ranges_of_the_hardware_are_no_loops() -> None:
  ranges = [UOp(Ops.RANGE, dtypes.int32, (const(4),), (k, kind))
            for k, kind in enumerate((AxisType.GLOBAL, AxisType.LOCAL, AxisType.REDUCE))]
  ends = [UOp(Ops.END, dtypes.void, (r,)) for r in reversed(ranges)]
  assert notes(*ranges, *ends) == ["hardware GLOBAL", "hardware LOCAL", "zero", "branch loop", "count", "if lt loop",
                                   "branch after", "finish"]

def test_a_condition_is_a_jump_around_its_statements() -> None:
  condition = UOp(Ops.IF, dtypes.void, (UOp.const(dtypes.bool, True),))
  assert notes(condition, UOp(Ops.BARRIER, dtypes.void), UOp(Ops.ENDIF, dtypes.void, (condition,))) == [
    "unless after", "branch then", "barrier", "branch after", "finish"]

def test_lanes_do_not_part() -> None:
  recorder = Recorder()
  lane = UOp(Ops.DEFINE_VAR, dtypes.bool, (), ("x", False, True))
  recorder.varying.add(lane)
  with pytest.raises(CompileError, match="k: an IF that lanes take differently"):
    recorder.select(Program("k", (lane, UOp(Ops.IF, dtypes.void, (lane,)))))
  end = UOp(Ops.DEFINE_VAR, dtypes.int32, (), ("n", 1, 4))
  recorder.varying.add(end)
  with pytest.raises(CompileError, match="k: a loop that lanes end differently; go round for all, and gate its stores"):
    recorder.select(Program("k", (end, UOp(Ops.RANGE, dtypes.int32, (end,), (0, AxisType.LOOP)))))

def test_elements_of_vectors_that_are_their_elements() -> None:
  acc = UOp(Ops.ACC, dtypes.int32.vec(2), (UOp.const(dtypes.int32.vec(2), 0),), 0)
  vector = UOp(Ops.VECTORIZE, dtypes.int32.vec(2), (const(1), const(2)))
  taken = [UOp(Ops.GEP, dtypes.int32, (source,), 1) for source in (acc, vector)]
  whole = UOp(Ops.GEP, dtypes.int32.vec(2), (acc,), 0)
  assert notes(acc, vector, *taken, whole) == ["variable CONST", "element 1 of ACC", "variable CONST", "finish"]

def test_a_group_is_made_where_it_is_first_used_and_once() -> None:
  pair = dtypes.int32.vec(2)
  recorder, vector = Recorder(), UOp(Ops.VECTORIZE, pair, (const(1), const(2)))
  groups = (UOp.const(pair, 7), vector, UOp(Ops.BROADCAST, pair, (const(3),)), UOp(Ops.GEP, pair, (vector,), 0))
  registers = [recorder.group(u) for u in (*groups, *groups)]
  assert registers[:4] == registers[4:] and recorder.notes == ["filled with 7", "joined 2", "joined 1", "part from 0"]
  loaded = UOp(Ops.LOAD, pair, (UOp(Ops.PARAM, pair, (), (0, 2)),))
  with pytest.raises(CompileError, match="k: selection for GPUs has no registers for LOAD of dtypes.int32.vec"):
    recorder.group(loaded)

def test_bools_have_logic_and_others_numbers() -> None:
  flags = UOp.const(dtypes.bool, True)
  assert notes(UOp(Ops.AND, dtypes.bool, (flags, flags)),
               UOp(Ops.AND, dtypes.int32, (const(1), const(2)))) == ["logic AND", "number AND", "finish"]

# a type, another type, the conversion of an integer, the conversion of its bits (of types of one size)
SIZES = [
  (dtypes.int64, dtypes.uint64, "moved", "moved"), (dtypes.int64, dtypes.int16, "low; extend to short", ""),
  (dtypes.uint64, dtypes.uint32, "low; moved", ""), (dtypes.int8, dtypes.int64, "widen signed char", ""),
  (dtypes.int8, dtypes.int16, "moved", ""), (dtypes.uint8, dtypes.int16, "moved", ""),
  (dtypes.int8, dtypes.uint16, "extend to unsigned short", ""),
  (dtypes.int16, dtypes.int8, "extend to signed char", ""), (dtypes.int16, dtypes.uint16, "extend to unsigned short",
                                                             "extend to unsigned short"),
  (dtypes.float16, dtypes.uint16, "", "moved"), (dtypes.float16, dtypes.int16, "", "extend to short"),
  (dtypes.float32, dtypes.int32, "", "moved")]

@pytest.mark.parametrize("source, target, resized, taken", SIZES)
def test_integers_of_other_sizes(source: DType, target: DType, resized: str, taken: str) -> None:
  for op, wanted in ((Ops.CAST, resized), (Ops.BITCAST, taken)):
    if wanted: assert notes(UOp(op, target, (UOp.const(source, 1),))) == [*wanted.split("; "), "finish"]

def test_an_integer_stands_extended_as_its_type_wants_it() -> None:
  narrow = (dtypes.int8, dtypes.uint8, dtypes.int16, dtypes.uint16)
  wanted = {(a, b) for a in narrow for b in narrow if int(b.min) <= int(a.min) and int(a.max) <= int(b.max)}
  assert {(a, b) for a in narrow for b in narrow if is_extended(a, b)} == wanted

def test_indices_and_gates() -> None:
  n = UOp(Ops.DEFINE_VAR, dtypes.int32, (), ("n", 0, 8))
  assert constant_part(n + 5) == (5, n) and constant_part(n) == (0, n) and constant_part(const(3)) == (3, None)
  place, gate = UOp.param(0, dtypes.int32, 8).index(n), n < 3
  def store(*gates: UOp) -> UOp: return UOp(Ops.STORE, dtypes.void, (place, const(1), *gates))
  assert (gate_of(store()) is None and gate_of(store(UOp.const(dtypes.bool, True))) is None
          and gate_of(store(gate)) is gate)
  never = UOp.const(dtypes.bool, False)
  assert gate_of(store(never)) is never

def test_what_is_not_known_is_named() -> None:
  with pytest.raises(CompileError, match="k: selection for GPUs does not know SINK"): notes(UOp(Ops.SINK, dtypes.void))
  with pytest.raises(CompileError, match="k: no value for .* before its use"):
    Recorder().value(UOp(Ops.DEFINE_VAR, dtypes.int32, (), ("x", 0, 1)))

@pytest.mark.parametrize("dtype, value, bits", [
  (dtypes.bool, True, 1), (dtypes.int8, -1, -1), (dtypes.uint8, 255, 255), (dtypes.int32, -1, 0xffffffff),
  (dtypes.int64, -2, (1 << 64) - 2),
  (dtypes.float16, 1.0, 0x3c00), (dtypes.float32, -0.0, 1 << 31), (dtypes.float64, 1.0, 0x3ff << 52)])
def test_constants_as_registers_hold_them(dtype: DType, value: float, bits: int) -> None:
  assert constant_bits(UOp.const(dtype, value)) == bits
