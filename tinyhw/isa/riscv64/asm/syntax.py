"""RISC-V assembly text, in the syntax of LLVM and GNU as.

Example: `vfmacc.vf v8, fa0, v16`. `show` prints one form: names of registers as the calling convention has them, and
the aliases that LLVM prefers. `parse` accepts numbers of registers (x10) and the other spellings of the table. A jump's
target is a distance in bytes; in the text of a function it may be a label, `.name`.
"""
from __future__ import annotations

from tinyhw.isa.riscv64.table.table import TABLE
from tinyhw.machine.assembler.reader import TextMismatch
from tinyhw.machine.assembler.syntax import WordAssembler, show
from tinyhw.machine.ir.inst import MInst

# other names of instructions
SPELLINGS = {"scall": "ecall", "sbreak": "ebreak", "move": "mv", "fmv.x.s": "fmv.x.w", "fmv.s.x": "fmv.w.x",
             "vle1.v": "vlm.v", "vse1.v": "vsm.v", "vpopc.m": "vcpop.m", "vmandnot.mm": "vmandn.mm",
             "vmornot.mm": "vmorn.mm", "vfredsum.vs": "vfredusum.vs", "vfwredsum.vs": "vfwredusum.vs", "csrsr": "csrs"}
# the same instruction with a number as the last operand
IMMEDIATE = {"add": "addi", "and": "andi", "or": "ori", "xor": "xori", "slt": "slti", "sltu": "sltiu", "sll": "slli",
             "srl": "srli", "sra": "srai", "addw": "addiw", "sllw": "slliw", "srlw": "srliw", "sraw": "sraiw",
             "ror": "rori", "rorw": "roriw", "bclr": "bclri", "bext": "bexti", "binv": "binvi", "bset": "bseti",
             "csrr": "csrr", "csrw": "csrwi", "csrs": "csrsi", "csrc": "csrci", "csrrw": "csrrwi", "csrrs": "csrrsi",
             "csrrc": "csrrci"}
# comparisons of vectors whose sources are exchanged
EXCHANGED = {"vmsgt.vv": "vmslt.vv", "vmsgtu.vv": "vmsltu.vv", "vmsge.vv": "vmsle.vv", "vmsgeu.vv": "vmsleu.vv",
             "vmfgt.vv": "vmflt.vv", "vmfge.vv": "vmfle.vv"}

def other(mnemonic: str, rest: str) -> MInst | None:
  """An instruction with a number in place of the last register."""
  if mnemonic not in IMMEDIATE: return None
  try: return ASSEMBLER.chosen(IMMEDIATE[mnemonic], rest)
  except TextMismatch: return None

class RiscvAssembler(WordAssembler):
  """The assembler, with comparisons that are another one with exchanged sources."""

  def parse(self, text: str) -> MInst:
    mnemonic, _, rest = text.strip().lower().partition(" ")
    if mnemonic in EXCHANGED and rest.count(",") > 1:
      result, first, second, *mask = rest.split(",")
      text = f"{EXCHANGED[mnemonic]} {','.join((result, second, first, *mask))}"
    return super().parse(text)

ASSEMBLER = RiscvAssembler(TABLE, SPELLINGS, other)
parse, parse_function = ASSEMBLER.parse, ASSEMBLER.parse_function
assemble_function, decode = ASSEMBLER.assemble_function, ASSEMBLER.decode

def assemble(text: str, arch: str = "riscv64") -> bytes:
  """The bytes of one instruction. They do not depend on the processor's extensions."""
  return ASSEMBLER.assemble(text)

def disassemble(code: bytes, arch: str = "riscv64") -> str:
  """The text of the one instruction that makes up all of the bytes."""
  return ASSEMBLER.disassemble(code)

__all__ = ["assemble", "assemble_function", "decode", "disassemble", "parse", "parse_function", "show"]
