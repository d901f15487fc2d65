"""Bounds of loops that can be computed by hand."""
from __future__ import annotations
from generators.invented import Build, cisc, matmul_loop

from tinyhw.isa.x86.asm.syntax import parse
from tinyhw.machine.ir.costs import PipeCost
from tinyhw.machine.ir.inst import Block, MInst, Reg
from tinyhw.machine.model.scoreboard import bound, costs_of, latency_bound, port_bound
from tinyhw.machine.passes import run

def test_ports_by_hall() -> None:
  assert port_bound({"01": 4}) == (2.0, "01")
  assert port_bound({"0": 3, "01": 1}) == (3.0, "0")
  assert port_bound({"0": 3, "01": 3}) == (3.0, "0")
  assert port_bound({"0": 2, "1": 2, "01": 4}) == (4.0, "01")
  assert port_bound({"01": 3, "12": 3, "02": 3}) == (3.0, "012")
  assert port_bound({}) == (0.0, "")

def loop(vectors: int, accumulators: int) -> tuple[list[MInst], Build]:
  target = cisc(15, vectors)
  function = run(matmul_loop(target, accumulators, 2), target)
  b = Build(target)
  return next(block.insts for block in function.blocks if block.name == "loop"), b

def test_matmul_is_bound_by_the_multipliers() -> None:
  insts, b = loop(15, 12)
  found = bound(insts, b.target.latency, 6)
  assert (found.ports, found.busiest, found.latency) == (6.0, "01", 4.0)
  assert (found.memory, found.cycles, found.reason, found.unknown) == (4.0, 6.0, "ports 01", ())

def test_few_accumulators_are_bound_by_latency() -> None:
  insts, b = loop(15, 4)
  found = bound(insts, b.target.latency, 6)
  assert found.latency == 4.0 and found.reason == "latency"

def test_chain_through_several_registers() -> None:
  """a, b = b, f(a): the chain advances once in two iterations."""
  b = Build(cisc())
  x, y, z = b.new("v"), b.new("v"), b.new("v")
  b.emit("vadd", z, x, x)
  assert latency_bound(b.at.insts, b.target.latency, [(x, y), (y, z)]) == 2.0
  assert latency_bound(b.at.insts, b.target.latency, [(x, z)]) == 4.0
  assert latency_bound(b.at.insts, b.target.latency, []) == 0.0

def test_unknown_pipes_are_listed() -> None:
  b = Build(cisc())
  b.emit("mulx", b.new("r64"), b.new("r64"), b.new("r64"), b.new("r64"))
  assert bound(b.at.insts, b.target.latency, 4).unknown == ("mulx",)

def test_issue_width() -> None:
  insts, b = loop(15, 12)
  assert bound(insts, b.target.latency, 1).reason == "issue"
  assert isinstance(insts[-1].operands[0], Block) and isinstance(insts[0].operands[0], Reg)
  assert PipeCost(1, "01|5").ports.split("|") == ["01", "5"]

def test_an_accumulator_does_not_wait_for_the_load() -> None:
  """Only the registers of an address wait: x = fma(x, [p]) has the latency of fma, p = [p] that of the load."""
  table = {"fma": PipeCost(4, "01"), "int_mov": PipeCost(0), "load": PipeCost(5, "23", "load")}
  assert latency_bound([parse("vfmadd231ps ymm0, ymm1, ymmword ptr [rax]")], table) == 4
  assert latency_bound([parse("mov rax, qword ptr [rax]")], table) == 5

def test_rows_by_width_and_memory_operand() -> None:
  table = {"fma": PipeCost(4, "01"), "fma/512": PipeCost(4, "05"), "broadcast": PipeCost(3, "5"),
           "broadcast/memory": PipeCost(0),
           "load": PipeCost(5, "23", "load"), "load/256": PipeCost(7, "23", "load")}
  assert costs_of(parse("vfmadd231ps zmm0, zmm1, zmm2"), table) == [table["fma/512"]]
  assert costs_of(parse("vfmadd231ps ymm0, ymm1, ymmword ptr [rax]"), table) == [table["fma"], table["load/256"]]
  assert costs_of(parse("vbroadcastss ymm0, dword ptr [rax]"), table) == [table["broadcast/memory"], table["load/256"]]

def test_a_swallowed_load_takes_no_slot_of_its_own() -> None:
  table = {"fma": PipeCost(4, "01"), "load": PipeCost(5, "23", "load"), "gather": PipeCost(20, "23*8", "load", 39)}
  found = bound([parse("vfmadd231ps ymm0, ymm1, ymmword ptr [rax]")], table, 4)
  assert (found.issue, found.micro_operations, found.memory) == (0.25, 1, 0.5)
  assert bound([parse("vgatherdps ymm0, dword ptr [rax + 4*ymm1], ymm2")], table, 4).micro_operations == 39
