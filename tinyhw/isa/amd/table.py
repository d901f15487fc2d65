"""The AMD instruction table: a line for each instruction with a column for each generation; rows are made when they are
asked for.

  table("gfx1100")["v_add_f32"]             the instruction in any encoding; the encoder takes the shortest that can say the operands
  table("gfx1100")["v_add_f32_e64"]         the same, held to one encoding
  table("gfx1100")["v_add_f32_dpp"]         its forms with operands of their own: _dpp, _dpp8, _sdwa, and _e64_dpp, _e64_dpp8
  table("gfx1100")["global_atomic_add_u32_rtn"]   an atomic that returns the old value, where the text has no name of its own for that
  table("gfx1100")["v_dual_mul_f32::v_dual_add_f32"]   two operations in one instruction (VOPD)

Operands of an MInst are those of the text in its order, then the modifiers that the row knows, as integers: neg, abs,
clamp, omod, op_sel, offset, glc ... `build` fills in the modifiers that are left out. neg, abs, op_sel ... have a bit
for each source (op_sel: bit 3 is the destination).

An instruction has one name in all generations, RDNA3's where it has it. What another generation calls it stands
behind it, and `table[...]` and the text take each of them; `Inst.name` is the one name, `Form.mnemonic` the
generation's.

The text. Columns are separated by two spaces: names, opcodes, operands, pipe and properties. A line "@ format pipe
properties" sets them for what follows. Opcodes are hexadecimal, for CDNA3, CDNA4, RDNA3 and RDNA4 (gfx942, gfx950,
gfx1100, gfx1200): "-" where there is no such instruction, "." for the one of the column before, "vop2:1f" in another
format than the section's. VOP1, VOP2 and VOPC instructions are VOP3 instructions too, with an opcode that follows
from theirs, unless "short" says otherwise. Operands have the names of the format's slots in order, or `name:`; then a
type:
  f32 bf16 i64 u16 b32    a float, bfloat, integer, unsigned integer, anything of so many bits
  f16x2 f32x8 f32x8/4     several; with a slash in waves of 64 lanes
  mask                    a bit for each lane: one scalar register or two
and "=" for an operand that is written, "+" for one that is read and written; [v], [s], [a], [c], [l]: what it may be
(a vector, scalar, accumulation register, inline constant, literal) where the slot does not say it; "?" may be left
out.
Properties: short, nodpp, nosdwa, clamp, omod, op_sel; load, store, jump, end, barrier; reads:vcc, writes:scc; each
may be limited by "@cdna", "@rdna4" ...
"""
from __future__ import annotations
import functools
import re
from typing import Any, NamedTuple
from collections.abc import Iterator, Sequence

from tinyhw.errors import EncodeError
from tinyhw.isa.amd import regs
from tinyhw.isa.amd import rows_compare, rows_dual, rows_lds, rows_matrix, rows_memory, rows_packed, rows_scalar, rows_scaled, rows_vector
from tinyhw.isa.amd import rows_vector3
from tinyhw.isa.amd.form import EFFECTS, GROUPS, INTEGERS, MX_UNITS, Encoding, Form, Generation, Spec, type_of
from tinyhw.machine.inst import Access, Effect, Inst, MInst, Operand

TEXTS = tuple(rows.TEXT for rows in (
  rows_scalar, rows_vector, rows_vector3, rows_scaled, rows_compare, rows_packed, rows_matrix, rows_memory, rows_lds, rows_dual))
# The operands of a format, in the order of the text.
SLOTS = {
  "sop1": "sdst ssrc0", "sop2": "sdst ssrc0 ssrc1", "sopc": "ssrc0 ssrc1", "sopk": "sdst simm16", "sopp": "simm16",
  "vop1": "vdst src0", "vop2": "vdst src0 src1", "vopc": "sdst src0 src1", "vop3": "vdst src0 src1 src2",
  "vop3_bitop": "vdst src0 src1 src2", "vop3p": "vdst src0 src1 src2",
  "vop3sd": "vdst sdst src0 src1 src2", "mfma": "vdst src0 src1 src2", "mfma_scale": "vdst src0 src1 src2 scale_src0 scale_src1",
  "vopd": "vdst src0 vsrc1", "smem": "sdata sbase soffset", "ds": "vdst addr data0 data1", "ds2": "vdst addr data0 data1", "flat": "vdst vaddr vdata",
  "global": "vdst vaddr vdata saddr", "scratch": "vdst vaddr vdata saddr", "mubuf": "vdata vaddr srsrc soffset", "mtbuf": "vdata vaddr srsrc soffset",
}
# What an operand may be, by its name; "a" where the generation has accumulation registers.
KINDS = {"sdst": "s", "ssrc0": "scl", "ssrc1": "scl", "sdata": "s", "sbase": "s", "saddr": "s", "srsrc": "s", "soffset": "sc",
         "vaddr": "v", "addr": "v"}
DATA = ("vdst", "vdata", "data0", "data1")
# An encoding has this in a field for which the row has no operand.
FIELD_VALUES = {"op_sel_hi": 7, "dst_sel": 6}
OTHER_FIELD = {"literal": ("literalx", "literaly"), "vsrc1": ("src1",), "vdst": ("sdst",), "neg_lo": ("neg",), "neg_hi": ("abs",)}
# Modifiers that are what is on the right where they are left out.
IMPLIED = {"op_sel_hi": 7, "row_mask": 15, "bank_mask": 15, "src0_sel": 6, "src1_sel": 6, "dst_sel": 6}
NEWBCAST = 0x150  # row_newbcast:0, the first of the lane permutations that CDNA has for 64 bits
MEMORY = ("offset", "offset0", "offset1", "idxen", "offen", "sc0", "nt", "sc1", "glc", "slc", "dlc", "th", "scope", "format", "gds")
PROMOTED = {"vopc": {"cdna": 0, "rdna3": 0, "rdna4": 0}, "vop2": {"cdna": 0x100, "rdna3": 0x100, "rdna4": 0x100},
            "vop1": {"cdna": 0x140, "rdna3": 0x180, "rdna4": 0x180}}
SUFFIXES = ("_e64_dpp8", "_e64_dpp", "_dpp8", "_dpp", "_sdwa", "_e32", "_e64", "_rtn")

class Line:
  """A line of the table as one generation has it. name: in all generations; mnemonic: in this one."""
  __slots__ = ("name", "mnemonic", "format", "op", "operands", "pipe", "words", "text")

  def __init__(self, text: str, section: str, generation: Generation):
    names, cells, operands, extra = (*(c.strip() for c in text.split("  ") if c and not c.isspace()), "", "")[:4]
    self.text = text
    form, pipe, *words = section.split()
    self.name, *others = names.split()
    spelled = [other.partition("@") for other in others]
    self.mnemonic = next((name for name, _, group in spelled if group and generation.name in GROUPS[group]), self.name)
    self.format, self.op = cell(cells, generation.column, form)
    chosen = [w for w in (limited(word, generation) for word in (*words, *extra.split())) if w]
    self.words = frozenset(w for w in chosen if w[:5] != "pipe:")
    self.pipe = next((w[5:] for w in reversed(chosen) if w[:5] == "pipe:"), pipe)
    self.operands: list[Token] = []
    slots = SLOTS.get(self.format, "").split()
    for word in operands.split():
      word = limited(word, generation)
      if word in ("", "-"): continue
      found = TOKEN.match(word)
      assert found is not None, f"{self.name}: {word} is no operand"
      name = found["name"] or slots[0]
      if name in slots: slots = slots[slots.index(name) + 1:]
      elif name == "sdst" and slots[:1] == ["vdst"]: slots = slots[1:]  # a scalar result in its place
      access = {"=": Access.WRITE, "+": Access.BOTH, "": Access.READ}[found["access"]]
      self.operands.append(Token(name, access, found["kinds"] or "", found["type"], bool(found["optional"])))

TOKEN = re.compile(r"(?:(?P<name>\w+):)?(?P<type>[\w/]+)(?:\[(?P<kinds>\w+)\])?(?P<optional>\??)(?P<access>[=+]?)$")

class Token(NamedTuple):
  """An operand of a line."""
  name: str
  access: Access
  kinds: str
  type: str
  optional: bool

def cell(cells: str, column: int, form: str) -> tuple[str, int]:
  """The format and opcode of a column; -1 if there is none."""
  words = cells.split()
  while words[column] == ".": column -= 1
  if words[column] == "-": return form, -1
  other, _, op = words[column].rpartition(":")
  return other or form, int(op, 16)

def limited(word: str, generation: Generation) -> str:
  """The word without "@group", or "" where the generation is not of the group."""
  word, _, group = word.partition("@")
  return word if not group or generation.name in GROUPS[group] else ""

class Table:
  """The rows of a generation by key. Lines are found when the table is made; one is taken apart, and a row made, at first use."""

  def __init__(self, arch: str):
    self.generation = Generation(arch)
    self.texts: dict[str, tuple[str, str]] = {}            # any name -> (line, section)
    self.by_opcode: dict[tuple[str, int], list[str]] = {}   # (format, opcode) -> names
    self.made: dict[str, Inst | None] = {}
    self.lines: dict[str, Line] = {}
    self.names: list[str] = []                              # the one name of each instruction
    self.by_spelling: dict[str, list[str]] = {}             # any name -> names
    self.sections: set[str] = set()                         # formats that sections and opcodes name
    others: list[tuple[str, tuple[str, str]]] = []
    column = self.generation.column
    for text in TEXTS:
      section = ""
      for line in text.split("\n"):
        if not line: continue
        if line[0] == "@":
          section = line[1:].strip()
          continue
        self.add(line, section, column, others)
    for name, entry in others: self.texts.setdefault(name, entry)

  def add(self, line: str, section: str, column: int, others: list[tuple[str, tuple[str, str]]]) -> None:
    """File a line under its names and its opcode, if this generation has it."""
    names, rest = line.split("  ", 1)
    cells = rest.lstrip().split("  ", 1)[0]
    form, op = cell(cells, column, section.split(None, 1)[0])
    if op < 0: return
    self.sections.add(form)
    first = names.split(" ", 1)[0]
    for name in names.split():
      spelled, _, group = name.partition("@")
      if not group or self.generation.name in GROUPS[group]: self.by_spelling.setdefault(spelled, []).append(first)
    first, *rest_of_names = names.split()
    entry = line, section
    self.texts[first] = entry
    self.names.append(first)
    for name in rest_of_names: others.append((name.partition("@")[0], entry))
    self.by_opcode.setdefault((form, op), []).append(first)

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
    elif name in self.texts:
      line = self.line(name)
      if line.format == "vopd": row = None
      elif line.name != name: row = self.get(line.name + suffix)
      else: row = make_row(key, line, suffix, self.generation)
    self.made[key] = row
    return row

  def pair(self, first: str, second: str) -> Inst | None:
    """The row of two operations in one instruction, or None."""
    if self.generation.wave == 64 or first not in self.texts or second not in self.texts: return None
    x, y = self.line(first), self.line(second)
    if x.format != "vopd" or y.format != "vopd" or "second" in x.words: return None
    if (x.name, y.name) != (first, second): return self.get(f"{x.name}::{y.name}")
    return make_pair(x, y, self.generation)

  def split(self, key: str) -> tuple[str, str]:
    """A key as name and suffix."""
    if key in self.texts: return key, ""
    for suffix in SUFFIXES:
      if key.endswith(suffix) and key[:-len(suffix)] in self.texts: return key[:-len(suffix)], suffix
    return key, ""

  def spelled(self, name: str) -> list[str]:
    """The instructions that the text calls so: in this generation, else in another one."""
    found = self.by_spelling.get(name, [])
    return found or ([self.line(name).name] if name in self.texts else [])

  def line(self, name: str) -> Line:
    """The line of a name of `texts`."""
    line = self.lines.get(name)
    if line is None: line = self.lines[name] = Line(*self.texts[name], self.generation)
    return line

  def __contains__(self, key: str) -> bool: return self.get(key) is not None

  def rows_of(self, name: str) -> list[Inst]:
    """The rows of one name that are not held to an encoding: the plain one, _dpp, _dpp8, _sdwa, _rtn; all pairs of one of `rows_dual`."""
    if self.line(name).format == "vopd":
      return [row for other in self.names if other[:7] == "v_dual_" and (row := self.get(f"{name}::{other}")) is not None]
    return [row for row in map(self.get, (name, name + "_rtn", name + "_dpp", name + "_dpp8", name + "_sdwa")) if row is not None]

  def __iter__(self) -> Iterator[Inst]:
    """Every row that is not held to one encoding; makes them all."""
    for name in self.names: yield from self.rows_of(name)

@functools.lru_cache(maxsize=None)
def table(arch: str) -> Table:
  """The table of an architecture: gfx942, gfx950, gfx1100, gfx1200, gfx1201; for waves of 64 lanes on RDNA "gfx1100:wave64"."""
  return Table(arch)

# ---- from a line to a row

def make_row(key: str, line: Line, suffix: str, generation: Generation) -> Inst | None:
  """The row of a line with a suffix; None if the instruction has no such form."""
  group = suffix.replace("_e64", "").replace("_e32", "")
  variants = [v for v in encodings_of(line, generation) if fits_suffix(v[0], group)]
  chosen = [v for v in variants if group == suffix or v[0] == suffix]
  if not chosen or suffix == "_rtn" and "atomic" not in line.words: return None
  tokens = [t for t in line.operands if not ("atomic" in line.words and t.name == "vdst" and suffix != "_rtn")]
  specs = [spec_of(token, line, suffix, generation) for token in tokens]
  specs += modifiers_of(line, suffix, variants, specs, generation)
  encodings = tuple(encoding_of(v, line, specs, suffix, generation) for v in chosen)
  reads = tuple(w[6:] for w in line.words if w[:6] == "reads:") + (() if line.pipe in SCALAR_PIPES else ("exec",))
  writes = tuple(w[7:] for w in line.words if w[:7] == "writes:")
  form = Form(key, line.mnemonic, generation, tuple(specs), encodings, reads, writes, counter_of(line, suffix, generation), line.words,
              {spec.name: i for i, spec in enumerate(specs)})
  effects = sum({EFFECTS[w] for w in line.words if w in EFFECTS})
  if "scc" in reads: effects |= Effect.READ_FLAGS
  if "scc" in writes: effects |= Effect.WRITE_FLAGS
  clobbers = tuple((regs.SGPR, regs.SPECIAL[w][0] + i) for w in writes if w in regs.SPECIAL for i in range(regs.SPECIAL[w][1]))
  name = line.name + ("_rtn" if suffix == "_rtn" else "")
  row = Inst(name, line.text, tuple(map(machine_operand, specs)), line.pipe, effects, isa=form, clobbers=clobbers)
  form.row = row
  return row

def make_pair(x: Line, y: Line, generation: Generation) -> Inst:
  """The row of two operations in one instruction."""
  tokens = [token._replace(name=placed(token.name, place)) for line, place in ((x, "x"), (y, "y")) for token in line.operands]
  specs = [spec_of(token, x, "", generation) for token in tokens]
  literal = any(spec.integer == "k32" for spec in specs)
  encoding = encoding_of(("", "vopd_k" if literal else "vopd", x.op << 5 | y.op, {}), x, specs, "", generation)
  encoding.needs.clear()
  reads = tuple(w[6:] for w in sorted(x.words | y.words) if w[:6] == "reads:") + ("exec",)
  key = f"{x.name}::{y.name}"
  form = Form(key, f"{x.mnemonic} :: {y.mnemonic}", generation, tuple(specs), (encoding,), reads, words=x.words | y.words,
              index={spec.name: i for i, spec in enumerate(specs)}, halves=len(x.operands))
  row = Inst(key, f"{x.text} :: {y.text}", tuple(map(machine_operand, specs)), "dual", isa=form)
  form.row = row
  return row

def placed(name: str, place: str) -> str:
  """The name of a slot in the first (x) or second (y) operation: vsrc1 is vsrcx1 or vsrcy1."""
  return name[:-1] + place + name[-1] if name[-1].isdigit() else name + place

SCALAR_PIPES = ("salu", "smem", "branch")

Variant = tuple[str, str, int, dict[str, int]]  # suffix of the text, format, opcode, values of fields

def encodings_of(line: Line, generation: Generation) -> list[Variant]:
  """All encodings of a line, shorter ones first."""
  base, op = line.format, line.op
  words = line.words
  found: list[Variant] = []
  names = {token.name for token in line.operands}
  if base == "smem" and generation.cdna:
    return [("", name, op, {}) for name in (("smem_imm", "smem_register", "smem_both") if "soffset" in names else ("smem_none",))]
  if base in PROMOTED and "short" not in words:
    found += [("_e32", base, op, {}), ("_e64", long_format(line), op + PROMOTED[base][generation.family], {})]
  else: found.append(("", base + ("_k" if "literal" in names else ""), op, {}))
  if base[:3] != "vop": return found
  wide = any(wide_operand(token) for token in line.operands) or "literal" in names
  for suffix, name, code, _ in list(found) if not wide or generation.cdna and "literal" not in names else ():
    long = "" if suffix != "_e64" and base in PROMOTED else "_e64"
    if name + "_dpp" in generation.formats and "nodpp" not in words and not (long and "nodpp64" in words):
      found.append((f"{long}_dpp", name + "_dpp", code, {}))
    if name + "_dpp8" in generation.formats and "nodpp" not in words and "nodpp8" not in words and not (long and "nodpp64" in words):
      found += [(f"{long}_dpp8", name + "_dpp8", code, {}), (f"{long}_dpp8", name + "_dpp8fi", code, {"fi": 1})]
    if name + "_sdwa" in generation.formats and not wide and "nosdwa" not in words: found.append(("_sdwa", name + "_sdwa", code, {}))
  return found

def wide_operand(token: Token) -> bool:
  """Whether an operand has more than one register; lanes are permuted a register at a time."""
  return token.type not in ("mask", "mx", *INTEGERS) and type_of(token.type, 32).units > 1

def long_format(line: Line) -> str:
  """VOP3 or, with two destinations, VOP3SD."""
  names = {token.name for token in line.operands}
  return "vop3sd" if "vdst" in names and "sdst" in names else "vop3"

def fits_suffix(encoding: str, group: str) -> bool:
  """Whether an encoding is among those of a group: the plain ones (and _rtn), _dpp, _dpp8 or _sdwa."""
  if group in ("", "_rtn"): return encoding in ("", "_e32", "_e64")
  return encoding in (group, "_e64" + group)

MASKS = {"k16": 0xffff, "gpr_idx": 15, "length": 31}  # of integers that do not fill their field

def spec_of(token: Token, line: Line, suffix: str, generation: Generation) -> Spec:
  """The operand that a word of a line means in a form of the row."""
  if token.type in INTEGERS: return Spec(token.name, token.access, "i", integer=token.type, mask=MASKS.get(token.type, -1))
  name, access = token.name, token.access
  kinds = token.kinds or KINDS.get(name, "vscl")
  if name[:4] in ("vdst", "vsrc") and not token.kinds: kinds = "v"
  if name in DATA and not token.kinds: kinds = "va" if generation.cdna and line.format in ACCUMULATING else "v"
  if token.type == "mask" and name in ("src2", "sdst"): kinds = token.kinds or "s"
  if "dpp" in suffix:
    if (name in ("src0", "src1") or "vdpp" in line.words) and "v" in kinds: kinds = "v"
    if name == "vdst": access = Access.BOTH
  if suffix == "_rtn" and name == "vdata" and line.format == "mubuf": access = Access.BOTH
  if suffix == "_sdwa":
    if name in ("src0", "src1") and not token.kinds: kinds = "vs"
    if name == "vdst": access = Access.BOTH
  kind = type_of(token.type, generation.wave) if token.type != "address" else None
  if kind is None: sizes: tuple[int, ...] = (2, 1) if name == "vaddr" else (2,)
  else: sizes = tuple(dict.fromkeys(MX_UNITS)) if kind.name == "mx" else (kind.units,)
  files = {"v": generation.vectors, "s": regs.S, "m": regs.S, "a": regs.AE}
  classes = tuple(files[k][n] for k in kinds if k in files for n in sizes if n in files[k])
  implied = generation.vcc if token.type == "mask" else None
  return Spec(name, access, kinds, kind, classes, token.optional, implied=implied)

ACCUMULATING = ("ds", "ds2", "flat", "global", "scratch", "mubuf")

def modifiers_of(line: Line, suffix: str, variants: Sequence[Variant], specs: list[Spec], generation: Generation) -> list[Spec]:
  """The integers that stand behind the operands of a form: those that the line allows and an encoding has a field for."""
  fields = {name for _, form, _, _ in variants for name in generation.formats[form].fields}
  floating = any(s.type is not None and s.type.floating and s.name[:3] == "src" for s in specs)
  words = line.words
  names: list[str] = []
  if line.format[:3] == "vop":
    if "mix" in words: names += ["neg", "abs"]
    elif (floating or "neg" in words) and "noneg" not in words: names += ["neg_lo", "neg_hi"] if "vop3p" in line.format else ["neg", "abs"]
    elif suffix == "_sdwa" and "noneg" not in words: names.append("sext")
    rounded = specs[0].type is not None and specs[0].type.floating if specs else False
    given = {word.partition("=")[0] for word in words}
    names += [name for name in ("op_sel", "clamp", "omod") if name in given and (rounded or name != "omod" or suffix != "_sdwa")]
    if suffix == "_sdwa" and "clamp" not in words: names.append("clamp")
    if "op_sel" in given: names.append("op_sel_hi")
    names.append("bitop3")
    if "dpp" in suffix: names += ["dpp_ctrl", "row_mask", "bank_mask", "bound_ctrl"] if "dpp8" not in suffix else ["dpp8"]
    if suffix == "_sdwa": names += ["src0_sel", "src1_sel"] if "nodst" in words else ["dst_sel", "dst_unused", "src0_sel", "src1_sel"]
  elif line.format[:4] == "mfma": names += [name for name in ("op_sel", "op_sel_hi", "cbsz", "abid", "blgp") if f"no{name}" not in words]
  else: names += [name for name in MEMORY if "bare" not in words and (name != "gds" or not generation.cdna)]
  if "fi" in fields or "dpp8" in suffix: names.append("fi")
  names += [w[5:] for w in words if w[:5] == "only:"]
  if "mix" in words: fields |= {"neg", "abs"}  # which are neg_lo and neg_hi
  implied = {**IMPLIED, "op_sel_hi": 0} if line.format == "mfma_scale" or "mix" in words else IMPLIED
  if line.format == "mtbuf": implied = {**implied, "format": 1}
  if generation.cdna and suffix == "_dpp" and any(wide_operand(token) for token in line.operands): implied = {**implied, "dpp_ctrl": NEWBCAST}
  fixed = {w.partition(":")[0] for w in words if ":" in w}
  has = [name for name in names if (name in fields or name == "fi" and "dpp8" in suffix) and name not in fixed]
  usual = {name: implied.get(name, 0) for name in has}
  return [Spec(name, Access.READ, "i", show=False, implied=usual[name], integer=name, mask=mask_of(name, specs, line, usual[name], generation))
          for name in has]

def mask_of(name: str, specs: list[Spec], line: Line, implied: int, generation: Generation) -> int:
  """The bits that a modifier has: one for each source that it can change."""
  sources = [spec for spec in specs if spec.name in ("src0", "src1", "src2")]
  every = (1 << len(sources)) - 1
  given = next((w for w in line.words if w.partition("=")[0] == name and "=" in w), "")
  if given: return int(given.partition("=")[2].split("/")[-1 if generation.wave == 64 else 0])
  if name in ("neg", "abs") and "mix" not in line.words: return sum(1 << i for i, s in enumerate(sources) if s.type is not None and s.type.floating)
  if name in ("neg", "abs", "sext", "neg_lo", "neg_hi", "op_sel_hi"): return every
  if name == "op_sel" and line.format != "mfma_scale": return every | (8 if "vop3p" not in line.format else 0)
  return 15 if implied == NEWBCAST else -1

def encoding_of(variant: Variant, line: Line, specs: list[Spec], suffix: str, generation: Generation) -> Encoding:
  """Where an encoding has the operands."""
  ending, name, op, extra = variant
  form = generation.formats[name]
  index = {spec.name: i for i, spec in enumerate(specs)}
  values: dict[str, int] = {"op": op}
  places: dict[str, int] = {}
  for word in line.words:
    key, _, value = word.partition(":")
    if value.isdecimal() and key in form.fields: values[key] = int(value)
  if "atomic" in line.words and generation.family != "rdna4":
    values["sc0" if generation.cdna else "glc"] = int(suffix == "_rtn")
  for bits in form.fields:
    if bits in values or bits == "acc": continue
    operand = next((n for n in (bits, *OTHER_FIELD.get(bits, ())) if n in index), None)
    if operand is not None: places[bits] = index[operand]
    elif bits == "saddr": values[bits] = 124 if generation.family == "rdna4" else 0
    else: values[bits] = FIELD_VALUES.get(bits, 0)
  needs = {i: extra.get(spec.name, spec.implied) for i, spec in enumerate(specs) if i not in places.values()}
  literal = "dpp" not in name and "sdwa" not in name and not (generation.cdna and name[:4] in ("vop3", "mfma")) and name[:4] != "mfma"
  wide = {field: specs[i] for field, i in places.items() if form.fields[field].width >= 8 and field not in VECTOR_FIELDS}
  sources = tuple(field for field, spec in wide.items() if "c" in spec.kinds and "sdwa" not in name)
  return Encoding(ending, form, name, values, needs, places, literal, sources)

VECTOR_FIELDS = ("vsrc1", "vsrcx1", "vsrcy1")  # of eight bits: a vector register

def machine_operand(spec: Spec) -> Operand:
  """The operand as machine code shared by all ISAs sees it."""
  return Operand(spec.name, spec.access, spec.classes[0] if spec.classes else None, "reg" if spec.classes else spec.integer, optional=spec.optional)

# What an instruction increments until it is done: for (pipe, whether it only stores).
COUNTERS = {
  "cdna": {"vmem": ("vmcnt", "vmcnt"), "flat": ("vmcnt+lgkmcnt", "vmcnt+lgkmcnt"), "lds": ("lgkmcnt", "lgkmcnt"), "smem": ("lgkmcnt", "lgkmcnt"),
           "message": ("lgkmcnt", "lgkmcnt")},
  "rdna3": {"vmem": ("vmcnt", "vscnt"), "flat": ("vmcnt+lgkmcnt", "vscnt+lgkmcnt"), "lds": ("lgkmcnt", "lgkmcnt"), "smem": ("lgkmcnt", "lgkmcnt"),
            "message": ("lgkmcnt", "lgkmcnt")},
  "rdna4": {"vmem": ("loadcnt", "storecnt"), "flat": ("loadcnt+dscnt", "storecnt+dscnt"), "lds": ("dscnt", "dscnt"), "smem": ("kmcnt", "kmcnt"),
            "message": ("kmcnt", "kmcnt")},
}

def counter_of(line: Line, suffix: str, generation: Generation) -> str:
  """What the row increments until it is done, or "": atomics that return nothing count as stores."""
  stores = "atomic" in line.words and suffix != "_rtn" or "store" in line.words and "load" not in line.words
  return COUNTERS[generation.family].get(line.pipe, ("", ""))[stores]

def build(row: Inst, *operands: Any, **modifiers: int) -> MInst:
  """An instruction over physical registers: the operands of the text in its order, then modifiers by name; those left out have their usual value,
  and so have bits for operands that the row does not have (op_sel_hi=0 of two sources is 0b100).

  Raises EncodeError for a number of operands or a modifier that the row does not have.
  """
  form: Form = row.isa
  shown = sum(spec.show for spec in form.specs)
  names = [spec.name for spec in form.specs]
  if len(operands) != shown: raise EncodeError(f"{form.mnemonic} takes {shown} operands ({', '.join(names[:shown])}), got {len(operands)}")
  values = [*operands, *(modifiers.pop(spec.name, spec.implied) | spec.implied & ~spec.mask for spec in form.specs[shown:])]
  if modifiers: raise EncodeError(f"{form.mnemonic} has no modifier {', '.join(modifiers)}; it has {', '.join(names[shown:]) or 'none'}")
  return MInst(row, values)
