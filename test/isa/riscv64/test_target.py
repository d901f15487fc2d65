"""Instructions that the machine passes ask for, executed by QEMU; compilation."""
from __future__ import annotations
import struct

import pytest
from generators.program_builder import Builder
from riscv64.machine import cpu_of, execute, needs_qemu

from tinyhw.dtype import dtypes
from tinyhw.isa.riscv64 import target as module
from tinyhw.isa.riscv64.asm.syntax import assemble, parse, show
from tinyhw.isa.riscv64.table import regs
from tinyhw.machine.assembler.encode import encode
from tinyhw.machine.ir.inst import Block, MInst
from tinyhw.uop.enums import AxisType

X = [regs.reg(regs.X, k) for k in range(32)]
F = [regs.reg(regs.F, k) for k in range(32)]

def body(insts: list[MInst]) -> bytes: return b"".join(map(encode, insts))

@needs_qemu
@pytest.mark.parametrize("slot", (8, 2040, 2048, 40000))
def test_moves_swaps_and_spills(slot: int) -> None:
  """Two numbers go through all of them, and come out exchanged. Far slots are reached, too."""
  frame = 65536
  lines = ("ld t0, 0(a0)", "ld a4, 0(t0)", "ld a5, 8(t0)", "fld fa1, 16(t0)", "fld fa2, 24(t0)", "lui t1, 16",
           "sub sp, sp, t1")
  start = b"".join(map(assemble, lines))
  work = [module.move(X[16], X[14]), *module.swap(X[16], X[15]), *module.spill(X[16], slot),
          *module.reload(X[17], slot), module.move(F[13], F[11]), *module.swap(F[13], F[12]),
          *module.spill(F[13], slot + 8), *module.reload(F[14], slot + 8)]
  end = b"".join(map(assemble, ("add sp, sp, t1", "sd a7, 0(t0)", "sd a5, 8(t0)", "fsd fa4, 16(t0)", "fsd fa2, 24(t0)",
                                "ret")))
  found, = execute(start + body(work) + end, [struct.pack("<QQdd", 11, 22, 1.5, -2.5)], (0, 1))
  assert found == struct.pack("<QQdd", 22, 11, -2.5, 1.5) and frame == 16 << 12

@needs_qemu
@pytest.mark.parametrize("slot", (16, 5000))
def test_vectors_move_and_spill(slot: int) -> None:
  vectors = [regs.reg(regs.V, k) for k in range(8)]
  lines = ("ld t0, 0(a0)", "vsetivli zero, 16, e8, m1, ta, mu", "vle8.v v1, (t0)", "addi t1, t0, 16", "vle8.v v2, (t1)",
           "lui t2, 16", "sub sp, sp, t2")
  start = b"".join(map(assemble, lines))
  work = [module.move(vectors[3], vectors[1]), *module.swap(vectors[3], vectors[2]), *module.spill(vectors[3], slot),
          *module.reload(vectors[4], slot)]
  end = b"".join(map(assemble, ("add sp, sp, t2", "vse8.v v4, (t0)", "vse8.v v2, (t1)", "ret")))
  found, = execute(start + body(work) + end, [bytes(range(32))], (0, 1), cpu=cpu_of("riscv64:v128"))
  assert found == bytes(range(16, 32)) + bytes(range(16))

@pytest.mark.parametrize("text", ["beq a0, a1, 8", "blt a0, a1, 8", "bltu a0, a1, 8", "beqz a0, 8", "bltz a0, 8",
                                  "blez a0, 8"])
def test_inverted_branches(text: str) -> None:
  inst = MInst(parse(text).row, [*[X[10]] * (text.count(",")), Block(1)], None, ([],))
  found = module.invert(inst)
  assert found is not None and found.row.name == module.OPPOSITE[inst.row.name] and found.operands == inst.operands
  back = module.invert(found)
  assert back is not None and back.row is inst.row

def test_what_has_no_inverse() -> None: assert module.invert(module.jump(Block(1))) is None

@needs_qemu
@pytest.mark.parametrize("arch", ("riscv64:g", "riscv64:rva22"))
def test_the_compiled_code_runs(arch: str) -> None:
  b = Builder("twice")
  out, x = b.param(0, dtypes.int64, 8), b.param(1, dtypes.int64, 8)
  with b.loop(8, AxisType.GLOBAL) as g: b.store(out, g, b.add(b.load(x, g) * 2))
  code = module.compile(b.program(), arch)
  function, text, places = module.assemble(b.program(), arch)
  assert code.text == text and code.arguments == ("buffer", "buffer") and code.arch == arch
  assert [show(inst) for _, inst in places][-1] == "ret" and function.blocks[0].insts
  found, _ = execute(code.text, [bytes(64), struct.pack("<8q", *range(-4, 4))], (2, 7))
  assert struct.unpack("<8q", found) == (0, 0, -4, -2, 0, 2, 4, 0)
