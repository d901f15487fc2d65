"""Latencies that the hardware does not check: cycles from an instruction to the next use of its result.

Most arithmetic has a fixed latency. Only the compiler's stall counts keep a reader from being too early. The numbers
are the smallest distances between such instructions in code of NVIDIA's own assembler, for sm_80 and sm_90a. They are
rounded up where few distances were seen. None is below the numbers that NVIDIA gave the Mesa project for Ampere and Ada
(src/nouveau/compiler/nak, sm80_instr_latencies.rs). The distances between two writers, and from a reader to a writer,
come from there. Instructions of variable latency (`Form.result` and `Form.sources` are "board") use a scoreboard
instead.
"""
from __future__ import annotations

from tinyhw.isa.sass.table.uses import PRODUCTS
from tinyhw.machine.ir.costs import PipeCost
from tinyhw.machine.ir.inst import Inst
from tinyhw.named_tuple import NamedTuple

class Latency(NamedTuple):
  """Cycles until a reader may issue.

  same: on the same pipe. other: on another pipe. predicate: of a predicate as an operand. guard: of a predicate as a
  guard or as the condition of a jump.
  """
  same: int
  other: int
  predicate: int = 5
  guard: int = 13

LATENCIES = {  # by pipe; the latencies of other pipes are unknown
  "alu": Latency(4, 5, 5, 13),
  "fma": Latency(4, 5, 5, 13),
  "half": Latency(6, 6, 6, 13),
  "pack": Latency(6, 6),
  "fp64": Latency(8, 10, 8, 14),
  "tensor": Latency(24, 24),        # IMMA.16832, HMMA.1688 of TF32 and QMMA have the distances of HMMA.16816
  "r2ur": Latency(15, 15, 8, 13),
  "uniform": Latency(12, 12, 12, 13),
  "warp": Latency(8, 8, 8, 13),
  "misc": Latency(5, 5),
}
WIDE = Latency(6, 6, 6, 13)                # a product of 64 bits: its high word is late
LATE_READERS = {"fp64": 7, "tensor": 11}   # the least distance from another pipe to these
# the least distance to an asynchronous product (pipe "gmma") that reads a vector register
PRODUCT_READS = 16
MOST = 24                                  # the maximum of all latencies

# Cycles until the next instruction issues, for schedule.py. A wait for a scoreboard may follow two cycles after the
# instruction that takes it
LEAST_STALL = {"branch": 5, "sync": 6, "fp64": 2, "tensor": 2}
BOARD_STALL = 2
# The shortest stalls in code of NVIDIA's assembler, by pipe or instruction. All others have 1, as has the last
# instruction
SHORTEST_STALL = {"branch": 5, "BSSY": 1, "EXIT": 1, "MEMBAR": 6, "DEPBAR": 4, "DEPBAR.LE": 4}

def shortest_stall(row: Inst) -> int:
  """Return the cycles until the next instruction may issue, as NVIDIA's assembler sets them."""
  return SHORTEST_STALL.get(row.name) or SHORTEST_STALL.get(row.pipe, 1)

def latency_of(row: Inst) -> Latency:
  """Return the latency of an instruction with a fixed one."""
  if row.name.startswith("IMAD.WIDE"): return WIDE
  return LATENCIES[row.pipe]

def distance(producer: Latency, pipe: str, reader: Inst, bank: str, guard: bool) -> int:
  """Return the cycles from the producer, on a pipe, to a reader of its result.

  guard: the result decides whether the reader is executed.
  """
  if bank in ("P", "UP"): return producer.guard if guard else producer.predicate
  cycles = producer.same if reader.pipe == pipe else producer.other
  if reader.pipe == PRODUCTS and bank == "R": return max(cycles, PRODUCT_READS)
  return max(cycles, LATE_READERS.get(reader.pipe, 0)) if reader.pipe != pipe else cycles

def overwrite_distance(producer: Latency, pipe: str, writer: Inst, board: bool) -> int:
  """Return the cycles from the producer, on a pipe, to an instruction that overwrites its result, whatever the guards
  are.

  board: the later instruction has a variable latency, so it may be quick.
  """
  if pipe == writer.pipe == "tensor": return PRODUCT_AFTER_PRODUCT
  return producer.other + 1 if board or writer.pipe in (*LATE_READERS, PRODUCTS) else max(1, producer.other - 2)

def reuse_distance(writer: Inst, board: bool) -> int:
  """Return the cycles from an instruction of fixed latency that reads a register to one that overwrites it."""
  return 2 if board or writer.pipe == "tensor" else 1

PRODUCT_AFTER_PRODUCT = 8
FIXED_READ = 2   # cycles after which every instruction of fixed latency has read its sources

# Costs for instruction ordering, by pipe or instruction: the fixed latencies, and for others measurements on Hopper
# (arXiv 2402.13499). Those of conversions, shuffles, the special function unit and mbarriers are assumed
COSTS = {**{pipe: PipeCost(latency.other) for pipe, latency in LATENCIES.items()}, "memory": PipeCost(480),
         "LDS": PipeCost(30), "LDSM": PipeCost(33),
         "SHFL": PipeCost(24),
         "SYNCS": PipeCost(30), "LDC": PipeCost(40), "LDL": PipeCost(40), "convert": PipeCost(20), "xu": PipeCost(20)}
