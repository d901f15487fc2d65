"""How many cycles after an instruction another one may issue that uses its result, where the hardware does not see to
that itself.

Results of most arithmetic come a fixed time after the instruction was issued; nothing but the compiler's stall counts
keeps a reader from being too early. The numbers are the smallest distances that are left between such instructions in
code of NVIDIA's own assembler, for sm_80 and sm_90a, rounded up where few were seen; none is below what NVIDIA gave the
Mesa project for Ampere and Ada (src/nouveau/compiler/nak, sm80_instr_latencies.rs), from where the distances between
two writers, and from a reader to a writer, are. What takes no fixed time (`Form.result` and `Form.sources` are "board")
has a scoreboard instead.
"""
from __future__ import annotations

from tinyhw.isa.sass.table.uses import PRODUCTS
from tinyhw.machine.ir.costs import PipeCost
from tinyhw.machine.ir.inst import Inst
from tinyhw.named_tuple import NamedTuple

class Latency(NamedTuple):
  """Cycles until a reader may issue: on the same pipe, on another one; of a predicate as an operand, and as a guard or
  the condition of a jump."""
  same: int
  other: int
  predicate: int = 5
  guard: int = 13

LATENCIES = {  # by pipe; of what is not here nothing is known
  "alu": Latency(4, 5, 5, 13),
  "fma": Latency(4, 5, 5, 13),
  "half": Latency(6, 6, 6, 13),
  "pack": Latency(6, 6),
  "fp64": Latency(8, 10, 8, 14),
  "tensor": Latency(24, 24),        # HMMA.16816; IMMA.16832, HMMA.1688 of TF32 and QMMA have the same distances there
  "r2ur": Latency(15, 15, 8, 13),
  "uniform": Latency(12, 12, 12, 13),
  "warp": Latency(8, 8, 8, 13),
  "misc": Latency(5, 5),
}
WIDE = Latency(6, 6, 6, 13)                # a product of 64 bits: its high word comes later
LATE_READERS = {"fp64": 7, "tensor": 11}   # pipes that other pipes' results reach no sooner
PRODUCT_READS = 16                         # vector registers that asynchronous products read (pipe "gmma") are there no
                                           # sooner
MOST = 24                                  # of all latencies

# Cycles until the next instruction issues, as schedule.py has it. A scoreboard can be waited for two cycles after it
# was taken
LEAST_STALL = {"branch": 5, "sync": 6, "fp64": 2, "tensor": 2}
BOARD_STALL = 2
# The shortest stalls in code of NVIDIA's assembler, by pipe or instruction; 1 of all others, and where nothing follows
SHORTEST_STALL = {"branch": 5, "BSSY": 1, "EXIT": 1, "MEMBAR": 6, "DEPBAR": 4, "DEPBAR.LE": 4}

def shortest_stall(row: Inst) -> int:
  """Cycles until the next instruction may issue, as NVIDIA's assembler keeps them."""
  return SHORTEST_STALL.get(row.name) or SHORTEST_STALL.get(row.pipe, 1)

def latency_of(row: Inst) -> Latency:
  """Of an instruction whose result takes a fixed time."""
  if row.name.startswith("IMAD.WIDE"): return WIDE
  return LATENCIES[row.pipe]

def distance(producer: Latency, pipe: str, reader: Inst, bank: str, guard: bool) -> int:
  """Cycles from the producer, of a pipe, to a reader of its result. guard: the result decides whether the reader is
  executed."""
  if bank in ("P", "UP"): return producer.guard if guard else producer.predicate
  cycles = producer.same if reader.pipe == pipe else producer.other
  if reader.pipe == PRODUCTS and bank == "R": return max(cycles, PRODUCT_READS)
  return max(cycles, LATE_READERS.get(reader.pipe, 0)) if reader.pipe != pipe else cycles

def overwrite_distance(producer: Latency, pipe: str, writer: Inst, board: bool) -> int:
  """Cycles from the producer, of a pipe, to an instruction that overwrites its result, so that the later one stays,
  whatever guards there are.

  board: the later one takes no fixed time, so it may be quick.
  """
  if pipe == writer.pipe == "tensor": return PRODUCT_AFTER_PRODUCT
  return producer.other + 1 if board or writer.pipe in (*LATE_READERS, PRODUCTS) else max(1, producer.other - 2)

def reuse_distance(writer: Inst, board: bool) -> int:
  """Cycles from an instruction of fixed time that reads a register to one that overwrites it."""
  return 2 if board or writer.pipe == "tensor" else 1

PRODUCT_AFTER_PRODUCT = 8
FIXED_READ = 2   # cycles after which no instruction of fixed time reads its sources any more

# What ordering counts with, by pipe or instruction: fixed latencies, and for the others what papers measured on Hopper
# (arXiv 2402.13499) or, of conversions, shuffles, the special function unit and mbarriers, assumed
COSTS = {**{pipe: PipeCost(latency.other) for pipe, latency in LATENCIES.items()}, "memory": PipeCost(480),
         "LDS": PipeCost(30), "LDSM": PipeCost(33),
         "SHFL": PipeCost(24),
         "SYNCS": PipeCost(30), "LDC": PipeCost(40), "LDL": PipeCost(40), "convert": PipeCost(20), "xu": PipeCost(20)}
