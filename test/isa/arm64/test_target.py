"""Instructions that the machine passes ask for, executed by QEMU; compilation."""
from __future__ import annotations
import struct

import pytest
from arm64.machine import execute, needs_qemu
from generators.program_builder import Builder

from tinyhw.dtype import dtypes
from tinyhw.isa.arm64 import target as module
from tinyhw.machine.assembler.encode import encode
from tinyhw.isa.arm64.asm.syntax import assemble, parse, show
from tinyhw.isa.arm64.table import regs
from tinyhw.machine.ir.inst import Block, MInst
from tinyhw.uop.enums import AxisType

X = [regs.reg(regs.X, k) for k in range(31)]
V = [regs.reg(regs.V, k) for k in range(32)]

def body(insts: list[MInst]) -> bytes: return b"".join(map(encode, insts))

@needs_qemu
def test_moves_swaps_and_spills() -> None:
  """Two numbers go through all of them, and come out exchanged."""
  start = b"".join(map(assemble, ("ldr x9, [x0]", "ldp x4, x5, [x9]", "ldr q1, [x9, #16]", "ldr q2, [x9, #32]",
                                  "sub sp, sp, #64")))
  work = [module.move(X[6], X[4]), *module.swap(X[6], X[5]), module.spill(X[6], 8), module.reload(X[7], 8),
          module.move(V[3], V[1]), *module.swap(V[3], V[2]), module.spill(V[3], 16), module.reload(V[4], 16)]
  end = b"".join(map(assemble, ("add sp, sp, #64", "stp x7, x5, [x9]", "str q4, [x9, #16]", "str q2, [x9, #32]",
                                "ret")))
  data = struct.pack("<QQ", 11, 22) + bytes(range(32))
  found, = execute(start + body(work) + end, [data], (0, 1))
  assert found == struct.pack("<QQ", 22, 11) + bytes(range(16, 32)) + bytes(range(16))

@pytest.mark.parametrize("condition,other", [("eq", "ne"), ("lt", "ge"), ("lo", "hs"), ("mi", "pl"), ("gt", "le"),
                                             ("vs", "vc"), ("hi", "ls")])
def test_inverted_jumps(condition: str, other: str) -> None:
  inst = MInst(parse(f"b.{condition} #8").row, [Block(1)], None, ([],))
  found = module.invert(inst)
  assert found is not None and found.row.name == f"b.{other}" and found.operands == inst.operands
  back = module.invert(found)
  assert back is not None and back.row is inst.row

def test_what_has_no_inverse() -> None:
  assert module.invert(module.jump(Block(1))) is None
  assert module.invert(MInst(parse("cbz x0, #8").row, [X[0], Block(1)])) is None

def test_compilation() -> None:
  b = Builder("twice")
  out, x = b.param(0, dtypes.int64, 8), b.param(1, dtypes.int64, 8)
  with b.loop(8, AxisType.GLOBAL) as g: b.store(out, g, b.add(b.load(x, g) * 2))
  code = module.compile(b.program(), "arm64:neon")
  function, text, places = module.assemble(b.program(), "arm64:neon")
  assert code.text == text and code.arguments == ("buffer", "buffer") and code.arch == "arm64:neon"
  assert [show(inst) for _, inst in places][-1] == "ret" and function.blocks[0].insts

@needs_qemu
def test_the_compiled_code_runs() -> None:
  b = Builder("twice")
  out, x = b.param(0, dtypes.int64, 8), b.param(1, dtypes.int64, 8)
  with b.loop(8, AxisType.GLOBAL) as g: b.store(out, g, b.add(b.load(x, g) * 2))
  given = struct.pack("<8q", *range(-4, 4))
  found, _ = execute(module.compile(b.program(), "arm64:neon").text, [bytes(64), given], (2, 7))
  assert struct.unpack("<8q", found) == (0, 0, -4, -2, 0, 2, 4, 0)
