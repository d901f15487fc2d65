"""AArch64 as a `Target`: registers, instructions for the machine passes, and compilation of a Program to Code."""
from __future__ import annotations

from tinyhw.machine.assembler.encode import encode_function
from tinyhw.isa.arm64.asm.syntax import parse
from tinyhw.isa.arm64.capabilities import capabilities
from tinyhw.isa.arm64.frame import add_frame
from tinyhw.isa.arm64.select.select import select
from tinyhw.isa.arm64.table import regs
from tinyhw.isa.arm64.table.table import TABLE
from tinyhw.machine.ir.code import Code
from tinyhw.machine.ir.inst import Block, Function, Inst, MInst, Reg
from tinyhw.machine.ir.target import Hook, Target, region
from tinyhw.machine.passes import Before, cpu_code, hook_reasons, run
from tinyhw.machine.select.unused import drop_unused
from tinyhw.threads import once
from tinyhw.uop.program import Program

__all__ = ["capabilities", "compile", "target"]

OPPOSITE = {"eq": "ne", "hs": "lo", "mi": "pl", "vs": "vc", "hi": "ls", "ge": "lt", "gt": "le"}
OPPOSITE |= {b: a for a, b in OPPOSITE.items()}

@once
def row(text: str) -> Inst:
  """The row of an instruction's text."""
  return parse(text).row

def move(dst: Reg, src: Reg) -> MInst:
  if dst.cls.bank is regs.VECTOR: return MInst(row("mov v0.16b, v1.16b"), [dst, src])
  return MInst(row("mov x0, x1"), [dst, src])

def spill(value: Reg, slot: int) -> MInst:
  """Slots are multiples of the size: 16 bytes for vectors, 8 for others."""
  return MInst(row("str q0, [sp]" if value.cls.bank is regs.VECTOR else "str x0, [sp]"), [value, regs.SP, slot])

def reload(value: Reg, slot: int) -> MInst:
  return MInst(row("ldr q0, [sp]" if value.cls.bank is regs.VECTOR else "ldr x0, [sp]"), [value, regs.SP, slot])

def swap(a: Reg, b: Reg) -> list[MInst]:
  """Exchange two registers without a third, by exclusive or."""
  text = "eor v0.16b, v1.16b, v2.16b" if a.cls.bank is regs.VECTOR else "eor x0, x1, x2"
  rest: list[int] = [] if a.cls.bank is regs.VECTOR else [0, 0]
  return [MInst(row(text), [dst, a, b, *rest]) for dst in (a, b, a)]

def jump(block: Block) -> MInst: return MInst(row("b #8"), [block], None, ([],))

def invert(inst: MInst) -> MInst | None:
  """The conditional jump with the opposite condition."""
  name, dot, condition = inst.row.name.partition(".")
  if not dot or condition not in OPPOSITE: return None
  return MInst(row(f"{name}.{OPPOSITE[condition]} #8"), list(inst.operands), inst.origin, inst.arguments)

HOOKS: dict[str, tuple[Hook, ...]] = {"before:order": (drop_unused,), "after:expand": (add_frame,)}
REASONS = hook_reasons(HOOKS, (
  Before("drop_unused", "order", "an instruction without users would take a place in the order"),
  Before("expand", "add_frame", "the registers that the code writes are known, so those that it must save are"),))

@once
def target(arch: str) -> Target:
  """The Target of a level of select/rules.py, such as "arm64:neon"."""
  return Target(
    name=arch, capabilities=capabilities(arch), banks=regs.BANKS, classes=(regs.X, regs.V), move=move, spill=spill,
    reload=reload, jump=jump, swap=swap, invert=invert, select=select, table=TABLE, region=region, hooks=HOOKS,
    reasons=REASONS)

def assemble(program: Program, arch: str) -> tuple[Function, bytes, list[tuple[int, MInst]]]:
  """The laid out function, its bytes, and the offset of each instruction in them."""
  t = target(arch)
  function = run(select(program, t), t)
  return function, *encode_function(function)

def compile(program: Program, arch: str) -> Code:
  """Compile a program to machine code for the CPU's kernel ABI. describe.py does this with a listing."""
  function, text, _ = assemble(program, arch)
  return cpu_code(program, arch, function, text)
