"""The x86-64 instruction table: rows in the manual's notation, made at first use.

The key of a row is the mnemonic and the kinds of the operands that the manual shows, in Intel order, joined by "_":

    TABLE["vaddps_y_y_y"]       vaddps ymm, ymm, ymm
    TABLE["vaddps_y_y_m"]       vaddps ymm, ymm, memory
    TABLE["vaddps_zk_z_b"]      vaddps zmm {k}, zmm, one element of memory broadcast to all lanes
    TABLE["add_r64_i32"]        add r64, immediate (the short encoding is used if it fits)
    TABLE["mov_m32_r32"]        mov dword ptr [...], r32

    r8 r16 r32 r64   a general register
    x y z k t        xmm, ymm, zmm, mask register, tile
    m                memory; its size is spelled (m8 ... m256) if no vector or mask register is an operand, and if
                     "m" would be ambiguous
    mx my mz         memory, each lane with an index of its own: the vector index of a gather or scatter
    b                one element of memory, broadcast
    i8 i16 i32 i64   an immediate, by the largest that is accepted
    rel              a block
    cl ...           that register
    yk mk            the destination, merged under a mask
    ykz              the destination, zeroed where the mask is 0

Operands of an MInst are flat: a memory operand is base, index, scale, displacement (base and index may be None). A mask
follows the destination. Registers that the manual does not show (rax and rdx of div) are operands with `fixed`, in the
order of the row's text. `assemble` fills them in. A destination that is also read is one operand with Access.BOTH.

Columns of the text are separated by two spaces: mnemonic, encodings separated by "|", operands, pipe and properties.
Encodings are as in the manual, with the additions below. An operand may have several kinds, separated by "/": one row
for each. "=" writes, "+" reads and writes, otherwise the operand is read. An operand in parentheses is not shown; "!"
in parentheses is a register that is clobbered.

    rv mv iz    16, 32 and 64 bits (iz: at most 32); ry my: 32 and 64. 66 and REX.W are implied; Wy is W0 for
                32 bits and W1 for 64
    v h q e     the vector register, or the register for half, a quarter, an eighth of it; m mh mq me is memory of
                that size. A VEX encoding without a length has 128 and 256, an EVEX encoding 512 too: one row for each
    b32 b64     an element that is broadcast to the vector (bh32: to half of it)
    vmv32       memory indexed by v, elements of 32 bits; a: an address, memory is not touched
    sm          memory with an index register, which is not optional
    m:4         the displacement counts elements of 4 bytes, not whole operands; "!": the key spells the size
    {k} {kz}    rows with merging, and with zeroing; {s}: the mask selects, so nothing is merged; {g}: a mask is
                required, and is overwritten
    RM MR RVM   location of the operands, in order: R reg, M rm, V vvvv, O opcode, I immediate, 4 the immediate's
                upper half; A: must be the accumulator, 1: must be 1. By default memory is M, then R, then V;
                a digit takes M, or V M

Properties: rf, wf (flags read, written), load, store, jump, end, call, barrier, repeat (cheaper to repeat than to
reload), commutes:01, and "@vex/evex", the features that the encodings need. A line "@ vex/evex" sets the features of
the following lines. The first of several encodings that fits is used, so shorter ones come first. Of VEX encodings the
shortest is used; EVEX only if VEX cannot express the operands. Two lines with one key are one row, whose encodings are
joined.
"""
from __future__ import annotations
from collections.abc import Iterator, Sequence

from tinyhw.errors import EncodeError
from tinyhw.isa.x86.rows import avx512, floats, integer, packed, tiles
from tinyhw.isa.x86.table import regs
from tinyhw.isa.x86.table.form import Encoding, Form, OperandKind, TableLine, Spec, kind_of
from tinyhw.machine.ir.inst import Access, Bank, Effect, Inst, MInst, Operand, RegClass

SIZES = {"v": (16, 32, 64), "y": (32, 64)}
LENGTHS = (128, 256, 512)

# line, operand size, vector length, index of the kind if an operand has several, mask
Variant = tuple[TableLine, int, int, int, str]

class Table:
  """Rows by key.

  The text is split when the table is made. A mnemonic's keys are listed, and a row is made, at first use.
  """

  def __init__(self, texts: Sequence[str]):
    self.lines: dict[str, list[str]] = {}          # mnemonic -> lines, each preceded by its features
    self.parsed: dict[str, list[TableLine]] = {}
    self.made: dict[str, Inst] = {}
    self.listed: dict[str, list[Inst]] = {}
    self._keys: dict[tuple[str, int, str], dict[str, list[Variant]]] = {}
    for text in texts:
      features = "base"
      for line in text.split("\n"):
        if not line: continue
        if line[0] == "@": features = line[1:].strip()
        else: self.lines.setdefault(line[:line.index("  ")], []).append(f"{features}  {line}")

  def __getitem__(self, key: str) -> Inst:
    """The row of a key. If there is none, raises EncodeError with the keys of the mnemonic."""
    row = self.get(key)
    if row is not None: return row
    mnemonic = mnemonic_of(key)
    if mnemonic not in self.lines: raise EncodeError(f"no instruction is called {mnemonic}")
    raise EncodeError(f"{mnemonic} has no form {key}; it has {', '.join(r.isa.key for r in self.rows(mnemonic))}")

  def get(self, key: str) -> Inst | None:
    """The row of a key, or None."""
    row = self.made.get(key)
    if row is not None: return row
    mnemonic = mnemonic_of(key)
    words = key[len(mnemonic) + 1:].split("_") if len(key) > len(mnemonic) else []
    mask = ""
    if words and words[0][1:] == "kz": mask = "kz"
    elif words and "k" in (words[0][1:], words[0][2:]): mask = "k"
    variants = self._variants(mnemonic, len(words), mask).get(key)
    return self.made.setdefault(key, make_row(key, variants)) if variants else None

  def _variants(self, mnemonic: str, shown: int, mask: str) -> dict[str, list[Variant]]:
    """The keys of a mnemonic with this number of operands and this mask.

    Cached: selection and the runtime's text try several keys of each mnemonic.
    """
    found = self._keys.get((mnemonic, shown, mask))
    if found is not None: return found
    keys: dict[str, list[Variant]] = {}
    for line in self.parse(mnemonic):
      if line.shown != shown: continue
      for key, variant in variants_of(line, (mask,)): keys.setdefault(key, []).append(variant)
    return self._keys.setdefault((mnemonic, shown, mask), keys)

  def __contains__(self, key: str) -> bool: return self.get(key) is not None

  def parse(self, mnemonic: str) -> list[TableLine]:
    """The parsed lines of a mnemonic; empty if there is no such mnemonic."""
    lines = self.parsed.get(mnemonic)
    if lines is None:
      lines = self.parsed.setdefault(mnemonic, [TableLine(text) for text in self.lines.get(mnemonic, ())])
    return lines

  def rows(self, mnemonic: str) -> list[Inst]:
    """All rows of a mnemonic ("lock add" is one)."""
    rows = self.listed.get(mnemonic)
    if rows is None:
      keys: dict[str, list[Variant]] = {}
      for line in self.parse(mnemonic):
        for key, variant in variants_of(line, ("", "k", "kz")): keys.setdefault(key, []).append(variant)
      for key, variants in keys.items():
        if key not in self.made: self.made.setdefault(key, make_row(key, variants))
      rows = self.listed.setdefault(mnemonic, [self.made[key] for key in keys])
    return rows

  def mnemonics(self) -> Iterator[str]:
    return iter(self.lines)

  def __iter__(self) -> Iterator[Inst]:
    """Every row; makes them all."""
    for mnemonic in self.lines: yield from self.rows(mnemonic)

def mnemonic_of(key: str) -> str:
  """The mnemonic of a key: "lock_add_m32_r32" -> "lock add"."""
  parts = key.split("_", 2)
  return " ".join(parts[:2]) if parts[0] in ("lock", "rep") else parts[0]

MASKS = {"": ("",), "k": ("", "k"), "kz": ("", "k", "kz"), "s": ("", "k", "kz"), "g": ("k",)}

def variants_of(line: TableLine, wanted: Sequence[str]) -> Iterator[tuple[str, Variant]]:
  """The rows of a line with one of these masks, each with its key."""
  masks = [m for m in (MASKS[line.mask] if line.evex else MASKS[""]) if m in wanted]
  if not masks: return
  lengths = [n for n in LENGTHS if any(n in spec.lengths for spec in line.specs)] or [0]
  several = next((t for t in line.tokens if len(t.kinds) > 1), None)
  head = line.mnemonic.replace(" ", "_")
  for size in SIZES.get(line.sized, (0,)):
    for length in lengths:
      for choice in range(len(several.kinds) if several else 1):
        kinds = [kind_of(t.kinds[choice if t is several else 0], size, length) for t in line.tokens if not t.hidden]
        if not line.evex and any(k.category == "broadcast" for k in kinds): continue
        plain = any(k.cls in VECTORS for k in kinds)
        parts = [k.short if plain and not k.spelled else k.key for k in kinds]
        for mask in masks:
          if mask == "kz" and kinds[0].category == "memory": continue
          suffix = [parts[0] + mask] + parts[1:] if mask else parts
          yield "_".join((head, *suffix)), (line, size, length, choice, mask)

VECTORS = (regs.XMM, regs.YMM, regs.ZMM, regs.K, regs.TMM)

OPERANDS: dict[tuple[object, ...], Operand] = {}

def operand(name: str, access: Access, cls: RegClass | None = None, kind: str = "reg", fixed: int | None = None,
            optional: bool = False) -> Operand:
  """An Operand. Equal ones are one object, since a look-up costs less than making one."""
  key = (name, access, cls, kind, fixed, optional)
  found = OPERANDS.get(key)
  if found is None: found = OPERANDS.setdefault(key, Operand(name, access, cls, kind, None, fixed, optional))
  return found

def make_row(key: str, variants: list[Variant]) -> Inst:
  """The row of a key, from the first line that has it. Later lines add encodings."""
  line, size, length, choice, mask = variants[0]
  form = Form(key)
  operands: list[Operand] = []
  clobbers: list[tuple[Bank, int]] = []
  effects, sources = line.effects, 0
  for token in line.tokens:
    kind = kind_of(token.kinds[choice if len(token.kinds) > 1 else 0], size, length)
    access, at = token.access, len(operands)
    if access == 0:
      assert kind.cls is not None and kind.fixed is not None, f"{key}: only a register that is named can be lost"
      clobbers.append((kind.cls.bank, kind.fixed))
      continue
    first = not token.hidden and not form.syntax
    if kind.category in ("register", "fixed"):
      if first and mask == "k" and line.mask in ("k", "kz") and kind.cls is not regs.K: access = Access.BOTH
      name = "dst" if access & Access.WRITE else f"src{sources}"
      sources += access == Access.READ
      operands.append(operand(name, access, kind.cls, fixed=kind.fixed))
    elif kind.category in ("memory", "broadcast"):
      operands += memory_operands(kind)
      form.set_memory(at, kind)
      if kind.touched:
        if access & Access.READ: effects |= Effect.LOAD
        if access & Access.WRITE: effects |= Effect.STORE
    else: operands.append(operand("imm" if kind.category == "immediate" else "block", Access.READ, kind=kind.key))
    form.add(kind, at, token.hidden)
    if first and mask:
      form.mask, form.zeroing = len(operands), mask == "kz"
      operands.append(operand("mask", Access.BOTH if line.mask == "g" else Access.READ, regs.K))
  form.encodings = [e for v in variants for e in encodings_of(form, *v)]
  form.effects = effects
  assert form.encodings, f"{key} has no encoding"
  row = Inst(line.mnemonic, line.encoding, tuple(operands), line.pipe, effects, line.feature(form.encodings[0], length),
             form, tuple(clobbers),
             rematerialize=line.repeat and form.memory < 0)
  if line.commutes and not mask: row.commutes = commuting(row, line.commutes)
  form.row = row
  return row

def commuting(row: Inst, positions: tuple[int, int]) -> tuple[int, int] | None:
  """The positions, if both are registers of one class in this form."""
  a, b = positions
  if b >= len(row.operands) or row.operands[a].cls is None or row.operands[a].cls is not row.operands[b].cls:
    return None
  return positions if row.operands[a].access == Access.BOTH else None

def memory_operands(kind: OperandKind) -> list[Operand]:
  """The operands base, index, scale, displacement."""
  index = kind.cls or regs.R64
  return [operand("base", Access.READ, regs.R64, optional=True),
          operand("index", Access.READ, index, optional=kind.cls is None),
          operand("scale", Access.READ, kind="scale"), operand("disp", Access.READ, kind="disp32")]

def encodings_of(form: Form, line: TableLine, size: int, length: int, choice: int, mask: str) -> Iterator[Encoding]:
  """The encodings of a line that can express this form."""
  for spec in line.specs:
    if length and length not in spec.lengths: continue
    if spec.space != "evex" and (mask or form.broadcast): continue
    places = places_of(spec, line, form, choice, size, length)
    if places is not None: yield Encoding(form, spec, size, length, places)

def places_of(spec: Spec, line: TableLine, form: Form, choice: int, size: int,
              length: int) -> list[tuple[str, int, OperandKind]] | None:
  """The location of each operand in the encoding: (letter, operand index, kind). None if this encoding does not have
  the form."""
  shown = [(at, kind) for at, kind in form.syntax if kind.category != "fixed"]
  letters = spec.letters or default_letters(spec, [kind for _, kind in shown], line)
  letters += "I" * (len(shown) - len(letters))
  places = []
  for letter, (at, kind) in zip(letters, shown):
    memory = kind.category in ("memory", "broadcast")
    if memory and letter != "M": return None
    places.append((letter, at, kind))
  return places

def default_letters(spec: Spec, kinds: list[OperandKind], line: TableLine) -> str:
  """The letters, if the text omits them."""
  registers = [i for i, k in enumerate(kinds) if k.category in ("register", "memory", "broadcast")]
  letters = ["D" if k.category == "block" else "I" for k in kinds]
  if spec.digit >= 0: order = "VM" if len(registers) == 2 else "M"
  elif spec.plus: order = "O"
  elif spec.is4: order = "RVM4"
  else:
    shown = [t for t in line.tokens if not t.hidden and not t.fixed]
    rm = next((i for i in registers if shown[i].memory), registers[-1] if registers else -1)
    rest = iter("RV")
    order = "".join("M" if i == rm else next(rest) for i in registers)
  for i, letter in zip(registers, order): letters[i] = letter
  return "".join(letters)

def assemble(row: Inst | str, *shown: object) -> MInst:
  """An instruction over physical registers, from the operands that the manual shows, in Intel order.

  A memory operand is a tuple (base, index, scale, displacement). Fixed registers, shown (cl) or not, are omitted. A
  mask follows the destination.
  """
  if isinstance(row, str): row = TABLE[row]
  given, flat = iter(shown), []
  skip = 0
  for i, o in enumerate(row.operands):
    if skip: skip -= 1
    elif o.fixed is not None and o.cls is not None: flat.append(regs.reg(o.cls, o.fixed))
    elif i == row.isa.memory:
      value = next(given)
      assert isinstance(value, tuple) and len(value) == 4, (f"{row.isa.key}: memory is (base, index, scale, "
                                                            f"displacement), not {value}")
      flat += value
      skip = 3
    else: flat.append(next(given))  # type: ignore[arg-type]  # no tuple: memory was taken above
  return MInst(row, flat)

TABLE = Table((integer.TEXT, floats.TEXT, packed.TEXT, avx512.TEXT, tiles.TEXT))
