"""The toy accelerator as a `Target`: the answers to questions of codegen and of the machine passes, the waits, and the
compilation of a Program to Code."""
from __future__ import annotations

from tinyhw.dtype import dtypes
from tinyhw.machine.ir.code import Code
from tinyhw.machine.ir.inst import Effect, Function, MInst, Reg
from tinyhw.machine.ir.moves import units_of
from tinyhw.machine.ir.target import Capabilities, Target
from tinyhw.machine.passes import run
from tinyhw.uop.enums import Ops
from tinyhw.uop.matrix import by_columns
from tinyhw.uop.program import Program
from examples.toy_accelerator.select import Selector
from examples.toy_accelerator.table import CLASSES, LANES, LINES, PREDICATE, SCALAR, TABLE, VECTOR, encode

OPERATIONS = frozenset((Ops[name.upper()], dtype) for line in LINES for name in line.operations.split()
                       if name.upper() in Ops.__members__ for dtype in line.types)
CAPABILITIES = Capabilities(
  vector_bytes=0, vector_registers=32, operations=OPERATIONS, vector_operations=frozenset({(Ops.MMA, dtypes.float32)}),
  threads=4, lanes=LANES, local_bytes=16384, matrix=(by_columns(4, 8, 4, dtypes.float32, dtypes.float32, LANES),))

def add_waits(function: Function, target: Target) -> Function:
  """Insert waits: before an instruction that touches the destination of a load in flight, and before a block ends.

  Loads finish in order.
  """
  for block in function.blocks:
    flying: list[set[tuple[str, int]]] = []
    insts: list[MInst] = []
    for inst in block.insts:
      touched = {unit for r in inst.operands if isinstance(r, Reg) for unit in units_of(r)}
      leaves = inst.row.effects & (Effect.JUMP | Effect.END) or inst is block.insts[-1]
      most = max((k + 1 for k, units in enumerate(flying) if leaves or units & touched), default=0)
      if most:
        del flying[:most]
        insts.append(MInst(TABLE["wait"], [len(flying)], inst.origin))
      if inst.row.effects & Effect.LOAD: flying.append(set(units_of(inst.operands[0])))
      insts.append(inst)
    block.insts = insts + [MInst(TABLE["wait"], [0])] * bool(flying)
  return function

TARGET = Target(
  name="toy", capabilities=CAPABILITIES, banks=(SCALAR, VECTOR, PREDICATE), classes=tuple(CLASSES.values()),
  table=TABLE, select=lambda program, target: Selector(program).run(),
  move=lambda dst, src: MInst(TABLE[f"move_{dst.cls.name}"], [dst, src]),
  swap=lambda a, b: [MInst(TABLE[f"swap_{a.cls.name}"], [a, b])],
  spill=lambda reg, slot: MInst(TABLE[f"save_{reg.cls.name}"], [reg, slot]),
  reload=lambda reg, slot: MInst(TABLE[f"restore_{reg.cls.name}"], [reg, slot]),
  jump=lambda block: MInst(TABLE["jump"], [block], None, ([],)), hooks={"after:layout": (add_waits,)})

def capabilities(arch: str) -> Capabilities: return CAPABILITIES

def compile(program: Program, arch: str) -> Code:
  """Compile the program to machine code."""
  function = run(Selector(program).run(), TARGET)
  position = {block: sum(len(b.insts) for b in function.blocks[:k]) for k, block in enumerate(function.blocks)}
  text = b"".join(encode(inst, position) for block in function.blocks for inst in block.insts)
  arguments = ("buffer",) * len(program.params) + ("int64",) * len(program.variables)
  return Code(program.name, arch, text, arguments, local_bytes=program.local_bytes, lanes=program.lanes,
              registers=tuple((bank, len(used)) for bank, used in function.used.items()))
