"""RISC-V as a `Target`: registers, instructions for the machine passes, and compilation of a Program to Code."""
from __future__ import annotations

from tinyhw.isa.riscv64.asm.syntax import parse
from tinyhw.isa.riscv64.capabilities import capabilities
from tinyhw.isa.riscv64.frame import add_frame
from tinyhw.isa.riscv64.reach import extend_branches
from tinyhw.isa.riscv64.select.part import lower_12
from tinyhw.isa.riscv64.select.select import select
from tinyhw.isa.riscv64.table import regs
from tinyhw.isa.riscv64.table.table import TABLE
from tinyhw.isa.riscv64.vector_types import set_vector_types
from tinyhw.machine.assembler.encode import encode_function
from tinyhw.machine.ir.code import Code
from tinyhw.machine.ir.inst import Block, Function, Inst, MInst, Reg
from tinyhw.machine.ir.target import Hook, Target, region
from tinyhw.machine.passes import Before, cpu_code, hook_reasons, run
from tinyhw.machine.select.unused import drop_unused
from tinyhw.threads import once
from tinyhw.uop.program import Program

__all__ = ["capabilities", "compile", "target"]

OPPOSITE = {"beq": "bne", "blt": "bge", "bltu": "bgeu", "beqz": "bnez", "bltz": "bgez", "blez": "bgtz"}
OPPOSITE |= {b: a for a, b in OPPOSITE.items()}

@once
def row(text: str) -> Inst:
  """The row of an instruction's text."""
  return parse(text).row

MOVES = {regs.GENERAL: "mv a0, a1", regs.FLOAT: "fmv.d fa0, fa1", regs.VECTOR: "vmv1r.v v1, v2"}

def move(dst: Reg, src: Reg) -> MInst:
  return MInst(row(MOVES[dst.cls.bank]), [dst, src])

def access(text: str, value: Reg, slot: int) -> list[MInst]:
  """Load or store a register at a slot. The address of a far one, and of a vector, is made in t6."""
  if value.cls.bank is regs.VECTOR: return [*slot_address(slot), MInst(row(text), [value, regs.T6])]
  if slot < 2048: return [MInst(row(text), [value, slot, regs.SP])]
  low = lower_12(slot)
  return [MInst(row("lui a0, 1"), [regs.T6, slot - low >> 12]),
          MInst(row("add a0, a1, a2"), [regs.T6, regs.T6, regs.SP]), MInst(row(text), [value, low, regs.T6])]

def slot_address(slot: int) -> list[MInst]:
  """The address of a slot in t6."""
  if slot < 2048: return [MInst(row("addi a0, a1, 1"), [regs.T6, regs.SP, slot])]
  low = lower_12(slot)
  made = [MInst(row("lui a0, 1"), [regs.T6, slot - low >> 12]),
          MInst(row("add a0, a1, a2"), [regs.T6, regs.T6, regs.SP])]
  return [*made, MInst(row("addi a0, a1, 1"), [regs.T6, regs.T6, low])] if low else made

SPILLS = {regs.GENERAL: "sd a0, 0(sp)", regs.FLOAT: "fsd fa0, 0(sp)", regs.VECTOR: "vs1r.v v1, (a0)"}
RELOADS = {regs.GENERAL: "ld a0, 0(sp)", regs.FLOAT: "fld fa0, 0(sp)", regs.VECTOR: "vl1re8.v v1, (a0)"}

def spill(value: Reg, slot: int) -> list[MInst]: return access(SPILLS[value.cls.bank], value, slot)
def reload(value: Reg, slot: int) -> list[MInst]: return access(RELOADS[value.cls.bank], value, slot)

def swap(a: Reg, b: Reg) -> list[MInst]:
  """Exchange two registers: integers by exclusive or, floats through t6, vectors through v31."""
  if a.cls.bank is regs.VECTOR: return [move(regs.V31, a), move(a, b), move(b, regs.V31)]
  if a.cls.bank is regs.FLOAT:
    return [MInst(row("fmv.x.d a0, fa0"), [regs.T6, a]), move(a, b), MInst(row("fmv.d.x fa0, a0"), [b, regs.T6])]
  return [MInst(row("xor a0, a1, a2"), [dst, a, b]) for dst in (a, b, a)]

def jump(block: Block) -> MInst: return MInst(row("j 8"), [block], None, ([],))

def invert(inst: MInst) -> MInst | None:
  """The conditional branch with the opposite condition."""
  other = OPPOSITE.get(inst.row.name)
  if other is None: return None
  operands = ", ".join(["a0"] * (len(inst.operands) - 1))
  return MInst(row(f"{other} {operands}, 8"), list(inst.operands), inst.origin, inst.arguments)

HOOKS: dict[str, tuple[Hook, ...]] = {"before:order": (drop_unused,), "after:expand": (set_vector_types, add_frame),
                                      "after:layout": (extend_branches,)}
REASONS = hook_reasons(HOOKS, (
  Before("drop_unused", "order", "an instruction without users would take a place in the order"),
  Before("expand", "add_frame", "the registers that the code writes are known, so those that it must save are"),
  Before("expand", "set_vector_types", "spills and copies of vectors work in any state, and must not hide one"),
  Before("set_vector_types", "layout", "it asks which blocks come before each"),
  Before("layout", "extend_branches", "the distances of branches are known")))

@once
def target(arch: str) -> Target:
  """The Target of a level of select/rules.py, such as "riscv64:rva22"."""
  return Target(
    name=arch, capabilities=capabilities(arch), banks=regs.BANKS, classes=(regs.X, regs.F, regs.V), move=move,
    spill=spill, reload=reload, jump=jump, swap=swap, invert=invert, select=select, table=TABLE, region=region,
    hooks=HOOKS, reasons=REASONS)

def assemble(program: Program, arch: str) -> tuple[Function, bytes, list[tuple[int, MInst]]]:
  """The laid out function, its bytes, and the offset of each instruction in them."""
  t = target(arch)
  function = run(select(program, t), t)
  return function, *encode_function(function)

def compile(program: Program, arch: str) -> Code:
  """Compile a program to machine code for the CPU's kernel ABI."""
  function, text, _ = assemble(program, arch)
  return cpu_code(program, arch, function, text)
