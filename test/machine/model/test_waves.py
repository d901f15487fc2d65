"""The model of waves, on instructions of its own: sums of resources, latency, barriers and inner loops, computed by
hand."""
from __future__ import annotations
from collections.abc import Mapping, Sequence

from tinyhw.dtype import dtypes
from tinyhw.machine.ir.inst import Access, Bank, Block, Effect, Function, Inst, MInst, Operand, Reg, RegClass
from tinyhw.machine.model.listing import find_loops
from tinyhw.machine.model.occupancy import KernelResources, RegisterFile, Residency, ComputeUnit, residency
from tinyhw.machine.model.waves import Cost, Model, kernel_cost, loop_cost
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import UOp

BANK = Bank("v", 16, tuple(range(16)))
CLASS = RegClass("v", BANK, 32, names=tuple(f"v{i}" for i in range(16)))
D, A = Operand("d", Access.WRITE, CLASS), Operand("a", Access.READ, CLASS)
ADD = Inst("add", None, (D, A), "alu")
LOAD = Inst("load", None, (D, A), "memory", Effect.LOAD)
STORE = Inst("store", None, (A,), "memory", Effect.STORE)
WAIT = Inst("wait", None, (Operand("n", Access.READ, kind="imm"),), "control")
MEET = Inst("meet", None, (), "control")
JUMP = Inst("jump", None, (Operand("to", Access.READ, kind="block"),), "control", Effect.JUMP | Effect.END)

TAKES = {"alu": {"a": 2.0}, "memory": {"m": 3.0}, "control": {}}
LATENCY = {"alu": 5.0, "memory": 97.0, "control": 0.0}

def takes(inst: MInst) -> Mapping[str, float]: return TAKES[inst.row.pipe]
def counters(inst: MInst) -> Sequence[str]: return ("loads",) if inst.row is LOAD else ()
def waits(inst: MInst) -> Mapping[str, int]: return {"loads": inst.operands[0]} if inst.row is WAIT else {}

MODEL = Model(ComputeUnit("unit", 2, 8, 4, {"v": RegisterFile(128, 8)}, 1024, 64, 8), takes, {"a": "simd", "m": "unit"},
              {"a": "adders", "m": "memory"},
              lambda inst: LATENCY[inst.row.pipe], lambda inst: 1.0, counters, waits, lambda inst: inst.row is MEET)

def v(i: int) -> Reg: return Reg(CLASS, index=i)
def add(d: int, a: int) -> MInst: return MInst(ADD, [v(d), v(a)])
def load(d: int, a: int) -> MInst: return MInst(LOAD, [v(d), v(a)])
def store(a: int) -> MInst: return MInst(STORE, [v(a)])
def wait(n: int) -> MInst: return MInst(WAIT, [n])
def meet() -> MInst: return MInst(MEET, [])

def one_loop(*insts: MInst, times: int = 10) -> Function:
  """A loop of these instructions."""
  function = Function("test")
  entry, body = function.new_block(), function.new_block(1)
  entry.insts.append(add(15, 15))
  body.insts += [*insts, jump(body, 0, times)]
  return function

def jump(to: Block, number: int, times: int) -> MInst:
  counted = UOp(Ops.RANGE, dtypes.int32, (UOp.const(dtypes.int32, times),), (number, AxisType.LOOP))
  return MInst(JUMP, [to], UOp(Ops.END, dtypes.void, (counted,)))

def held(lanes: int, registers: int = 16, local: int = 0) -> Residency:
  return residency(MODEL.unit, KernelResources({"v": registers}, local, lanes))

def cost(function: Function, lanes: int = 4, local: int = 0) -> Cost:
  return loop_cost(MODEL, function, find_loops(function)[0], held(lanes, local=local))

def test_resources_count_the_waves_that_share_them() -> None:
  found = cost(one_loop(add(0, 1), add(2, 3), store(4)), 8)
  assert found.waves == 16 and found.resources == {"a": 2 * 2 * 8, "m": 3 * 16}  # 8 waves a SIMD; all 16 share memory
  assert found.binding() == ["m"] and found.cycles == 48

def test_a_chain_is_as_long_as_its_latency() -> None:
  assert cost(one_loop(add(0, 0), add(0, 0)), local=1024).alone == 2 * 5  # one workgroup alone
  assert cost(one_loop(add(0, 1), add(2, 3)), local=1024).alone == 2 + 2  # only the adder delays

def test_waits_let_loads_overlap() -> None:
  serial = cost(one_loop(load(0, 9), wait(0), load(1, 9), wait(0)), local=1024)
  together = cost(one_loop(load(0, 9), load(1, 9), wait(0)), local=1024)
  ahead = cost(one_loop(wait(1), load(0, 9), load(1, 9)), local=1024)
  assert serial.alone > 2 * 100 > 110 > together.alone > 100 and ahead.alone < together.alone

def test_a_barrier_waits_for_what_the_workgroup_takes() -> None:
  """Eight waves, 4 a SIMD: their additions take 4 * 2 * 3 cycles until the barrier. Without it they overlap with the
  loads of others."""
  phases = one_loop(add(0, 9), add(1, 9), add(2, 9), meet(), load(3, 9), load(4, 9), meet())
  found = cost(phases, 32, local=1024)
  assert found.waves == 8 and found.alone >= 4 * 2 * 3 + 8 * 3 * 2
  assert max(found.resources.values()) == 48 < found.alone

def test_inner_loops_count_all_their_iterations() -> None:
  function = Function("nest")
  outer, inner, last = function.new_block(1), function.new_block(2), function.new_block(1)
  outer.insts.append(add(0, 0))
  inner.insts += [add(1, 1), jump(inner, 0, 20)]
  last.insts += [add(2, 2), jump(outer, 1, 5)]
  loops = find_loops(function)
  found = loop_cost(MODEL, function, loops[0], held(4, local=1024))
  assert found.resources == {"a": 2 * 22} and 20 * 5 <= found.alone <= 20 * 5 + 10
  whole = kernel_cost(MODEL, function, loops, held(4, local=1024))
  assert whole.resources == {"a": 2 * 22 * 5} and whole.alone >= 5 * 20 * 5
