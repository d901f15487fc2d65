"""The AMD instruction table: a line for each instruction with a column for each generation. Rows are made at first use.

    table("gfx1100")["v_add_f32"]       the instruction in any encoding; the encoder uses the shortest that fits
    table("gfx1100")["v_add_f32_e64"]   the same, fixed to one encoding
    table("gfx1100")["v_add_f32_dpp"]   its forms with other operands: _dpp, _dpp8, _sdwa, _e64_dpp, _e64_dpp8
    table("gfx1100")["global_atomic_add_u32_rtn"]
                                        an atomic that returns the old value, if it has no other name in the text
    table("gfx1100")["v_dual_mul_f32::v_dual_add_f32"]
                                        two operations in one instruction (VOPD)

Operands of an MInst are those of the text in its order. Then follow the modifiers of the row, as integers: neg, abs,
clamp, omod, op_sel, offset, glc ... `build` fills in the modifiers that are left out. neg, abs, op_sel ... have a bit
for each source (op_sel: bit 3 is the destination).

An instruction has one main name in all generations, RDNA3's if it has one. Names of other generations follow it.
`table[...]` and the text take each of them. `Inst.name` is the main name, `Form.mnemonic` the generation's.

Columns of the text are separated by two spaces: names, opcodes, operands and properties. A line "@ format pipe
properties" sets these for the following lines. A line that begins with "#" is a comment on the next one. Names: the
main name, then other names; "name@group" is the name in a group of generations. Opcodes are hexadecimal, for CDNA3,
CDNA4, RDNA3 and RDNA4 (gfx942, gfx950, gfx1100, gfx1200). "-" means no such instruction, "." the opcode of the previous
column, "vop2:1f" another format than the section's.

VOP1, VOP2 and VOPC instructions are VOP3 instructions too, unless they have the property "short". Their VOP3 opcode
follows from the short one. Operands have the names of the format's slots in order, or `name:`. Then follows a type:

    f32 bf16 i64 u16 b32    a float, bfloat, integer, unsigned integer, anything of that number of bits
    f16x2 f32x8 f32x8/4     several; after a slash: in waves of 64 lanes
    mask                    a bit for each lane: one scalar register or two
    mx                      floats of the format that cbsz and blgp select: fp8, bf8, fp6, bf6 or fp4
    imm simm block ...      integers that are no values: INTEGERS of form.py

An operand with "=" is written, with "+" it is read and written, with "?" it may be left out. Letters are the operands
that it may be, if the slot does not tell: [v] [s] vector or scalar register, [m] m0, [a] accumulation register, [c]
inline constant, [l] literal. Properties can be limited to some generations by "@cdna", "@rdna4" ... (GROUPS of
form.py):

    clamp omod op_sel neg noneg        modifiers of VOP3; instructions that read floats always have neg and abs
    op_sel=3 op_sel=1/3 neg_lo=4       only these bits can be set; after a slash: in waves of 64 lanes
    byte_sel index_key lanes           spelling of op_sel in the text: a byte, a part of src2, fi
    true16                             the text always has the half of a register; RDNA's rows with operands of
                                       16 bits in VOP1, VOP2, VOPC and VOP3 have op_sel for that by default
    mix                                neg_lo and neg_hi are neg and abs
    short nodpp nodpp64 nodpp8 nosdwa  missing encodings
    vdpp nodst                         with DPP each source is a vector register; SDWA selects no part of the result
    twice                              an inline float is in both halves
    nom0 noexec                        registers that cannot be the result
    scalar1                            reads one scalar value where others may read two
    noabid noblgp mx                   of matrix products
    bare only:sc1                      memory without offset and cache policy; with this modifier alone
    atomic                             has a form with _rtn, which returns the old value
    second                             only the second operation of a pair
    early                              vdst is written before all sources are read: they do not share registers
    early:sum                          but vdst may have exactly those of src2
    glc:0 vdst:126 ...                 value of a field
    load store jump call end barrier   effects
    reads:vcc writes:scc               registers that no operand names
    pipe:trans                         the pipe, if it is not the section's
"""
from __future__ import annotations
import functools
from typing import Any
from collections.abc import Iterator

from tinyhw.errors import EncodeError
from tinyhw.isa.amd.rows import compare, dual, lds, matrix, memory, packed, scalar, scaled, vector, vector3
from tinyhw.isa.amd.table.form import GROUPS, Form, Generation
from tinyhw.isa.amd.table.line import TableLine, cell
from tinyhw.isa.amd.table.make import make_pair, make_row
from tinyhw.machine.ir.inst import Inst, MInst
from tinyhw.threads import once

TEXTS = tuple(rows.TEXT for rows in (scalar, vector, vector3, scaled, compare, packed, matrix, memory, lds, dual))
SUFFIXES = ("_e64_dpp8", "_e64_dpp", "_dpp8", "_dpp", "_sdwa", "_e32", "_e64", "_rtn")

Entry = tuple[str, str]  # a line of the text, and its section

@once
def entries() -> dict[str, list[Entry]]:
  """The lines of all generations by any of their names. Lines with this as their main name come first."""
  found: dict[str, list[Entry]] = {}
  others: list[tuple[str, Entry]] = []
  for text in TEXTS:
    section = ""
    for line in text.split("\n"):
      if not line: continue
      end = line.find(" ")
      first = line[:end]
      if first[:1] == "@": section = line[1:].strip()
      elif first != "#":
        entry = line, section
        if first in found: found[first].append(entry)
        else: found[first] = [entry]
        if line[end + 1] != " ":
          others += [(name.partition("@")[0], entry) for name in line[end:line.index("  ")].split()]
  for name, entry in others: found.setdefault(name, []).append(entry)
  return found

class Index:
  """Data of a generation's table that only the decoder, the text and iteration over all rows need.

  - names: the main name of each instruction.
  - by_opcode: (format, opcode) -> names.
  - by_spelling: any name -> names.
  - sections: formats that sections and opcodes name.
  """

  def __init__(self, generation: Generation):
    self.names: list[str] = []
    self.by_opcode: dict[tuple[str, int], list[str]] = {}
    self.by_spelling: dict[str, list[str]] = {}
    self.sections: set[str] = set()
    for first, lines in entries().items():
      for line, section in lines:
        names = line[:line.index("  ")].split()
        form, op = opcode(line, section, generation)
        if op < 0 or names[0] != first: continue
        self.names.append(first)
        self.sections.add(form)
        self.by_opcode.setdefault((form, op), []).append(first)
        for name in names:
          spelled, _, group = name.partition("@")
          if not group or generation.name in GROUPS[group]: self.by_spelling.setdefault(spelled, []).append(first)

def opcode(line: str, section: str, generation: Generation) -> tuple[str, int]:
  """The format and opcode of a line; opcode -1 if the generation has no such instruction."""
  return cell(line[line.index("  "):].lstrip().split("  ", 1)[0], generation.column, section.split(None, 1)[0])

class Table:
  """The rows of a generation by key. A line is found, parsed, and made into a row at first use."""

  def __init__(self, arch: str):
    self.generation = Generation(arch)
    self.found: dict[str, Entry | None] = {}
    self.made: dict[str, Inst | None] = {}
    self.lines: dict[str, TableLine] = {}

  @functools.cached_property
  def index(self) -> Index: return Index(self.generation)

  def entry(self, name: str) -> Entry | None:
    """The line of any name that this generation has, or None."""
    if name in self.found: return self.found[name]
    return self.found.setdefault(name,
                                 next((entry for entry in entries().get(name, ()) if opcode(*entry, self.generation)[1]
                                       >= 0), None))

  def __getitem__(self, key: str) -> Inst:
    """The row of a key. Raises EncodeError if there is none."""
    row = self.get(key)
    if row is None: raise EncodeError(f"{self.generation.arch} has no instruction {key}")
    return row

  def get(self, key: str) -> Inst | None:
    """The row of a key, or None."""
    if key in self.made: return self.made[key]
    name, suffix = self.split(key)
    row = None
    if "::" in key: row = self.pair(*key.split("::", 1))
    elif self.entry(name):
      line = self.line(name)
      if line.format == "vopd": row = None
      elif line.name != name: row = self.get(line.name + suffix)
      else: row = make_row(key, line, suffix, self.generation)
    return self.made.setdefault(key, row)

  def pair(self, first: str, second: str) -> Inst | None:
    """The row of two operations in one instruction, or None."""
    if self.generation.wave == 64 or not self.entry(first) or not self.entry(second): return None
    x, y = self.line(first), self.line(second)
    if x.format != "vopd" or y.format != "vopd" or "second" in x.words: return None
    if (x.name, y.name) != (first, second): return self.get(f"{x.name}::{y.name}")
    return make_pair(x, y, self.generation)

  def split(self, key: str) -> tuple[str, str]:
    """Split a key into name and suffix."""
    if self.entry(key): return key, ""
    for suffix in SUFFIXES:
      if key.endswith(suffix) and self.entry(key[:-len(suffix)]): return key[:-len(suffix)], suffix
    return key, ""

  def spelled(self, name: str) -> list[str]:
    """The instructions with this name in the text: in this generation, else in another one."""
    found = self.index.by_spelling.get(name, [])
    return found or ([self.line(name).name] if self.entry(name) else [])

  def line(self, name: str) -> TableLine:
    """The parsed line of a name that has an entry."""
    line = self.lines.get(name)
    if line is None:
      entry = self.entry(name)
      if entry is None: raise EncodeError(f"{self.generation.arch} has no instruction {name}")
      line = self.lines.setdefault(name, TableLine(*entry, self.generation))
    return line

  def __contains__(self, key: str) -> bool: return self.get(key) is not None

  def rows_of(self, name: str) -> list[Inst]:
    """The rows of one name that are not fixed to an encoding.

    These are the plain one, _dpp, _dpp8, _sdwa and _rtn, or all pairs of a row of rows/dual.py.
    """
    if self.line(name).format == "vopd":
      return [row for other in self.index.names if other[:7] == "v_dual_"
              and (row := self.get(f"{name}::{other}")) is not None]
    return [row for row in map(self.get, (name, name + "_rtn", name + "_dpp", name + "_dpp8", name + "_sdwa"))
            if row is not None]

  def __iter__(self) -> Iterator[Inst]:
    """Every row that is not fixed to one encoding; makes them all."""
    for name in self.index.names: yield from self.rows_of(name)

@once
def table(arch: str) -> Table:
  """The table of an architecture: gfx942, gfx950, gfx1100, gfx1200, gfx1201. "gfx1100:wave64" is for waves of 64 lanes
  on RDNA."""
  return Table(arch)

def build(row: Inst, *operands: Any, **modifiers: int) -> MInst:
  """Build an instruction over physical registers. operands: those of the text in its order; modifiers: by name.

  Modifiers that are left out have their usual value. So have bits for operands that the row does not have (op_sel_hi=0
  of two sources is 0b100).

  Raises EncodeError for a wrong number of operands, or for a modifier that the row does not have.
  """
  form: Form = row.isa
  shown = sum(spec.show for spec in form.specs)
  names = [spec.name for spec in form.specs]
  if len(operands) != shown:
    raise EncodeError(f"{form.mnemonic} takes {shown} operands ({', '.join(names[:shown])}), got {len(operands)}")
  values = [*operands, *(modifiers.pop(spec.name, spec.implied) | spec.implied & ~spec.mask
                         for spec in form.specs[shown:])]
  if modifiers:
    raise EncodeError(f"{form.mnemonic} has no modifier {', '.join(modifiers)}; it has "
                      f"{', '.join(names[shown:]) or 'none'}")
  return MInst(row, values)
