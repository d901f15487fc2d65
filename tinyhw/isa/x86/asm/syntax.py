"""x86-64 assembly text, in the Intel syntax of llvm-mc and objdump.

Example: `vaddps ymm0 {k1} {z}, ymm1, ymmword ptr [rax + 4*rcx + 16]`. `show` prints one form. `parse` accepts more:
sizes may be left out if another operand decides, and brackets may have any order. Hexadecimal numbers and the usual
aliases are accepted too. A jump's target is `.+N` or `.-N`, counted from the start of the jump. In the text of a
function it may be a label, `.name`.
"""
from __future__ import annotations
import re
from typing import Any

from tinyhw.errors import ParseError
from tinyhw.isa.x86.asm.check import bounds
from tinyhw.isa.x86.asm.decode import decode
from tinyhw.isa.x86.asm.encode import encode, encode_function
from tinyhw.isa.x86.table import regs
from tinyhw.isa.x86.table.form import CLASS_OF, Form, OperandKind
from tinyhw.isa.x86.table.table import TABLE
from tinyhw.machine.ir.assembly import function_of, whole_text
from tinyhw.machine.ir.inst import Function, Inst, MInst, Operand, Reg
from tinyhw.machine.notation.text import ascii_only, one_of, parse_integer, split_operands, statements

SIZES = {8: "byte", 16: "word", 32: "dword", 64: "qword", 128: "xmmword", 256: "ymmword", 512: "zmmword"}
BITS = {**{name: bits for bits, name in SIZES.items()}, "oword": 128}
CONDITION_ALIASES = {"c": "b", "nae": "b", "nc": "ae", "nb": "ae", "z": "e", "nz": "ne", "na": "be", "nbe": "a",
                     "pe": "p", "po": "np", "nge": "l",
                     "nl": "ge", "ng": "le", "nle": "g"}
ALIASES = {"sal": "shl", "retq": "ret", "int 3": "int3",
           **{f"{stem}{alias}": f"{stem}{name}" for stem in ("j", "set", "cmov")
             for alias, name in CONDITION_ALIASES.items()}}
PREDICATES = ("eq lt le unord neq nlt nle ord eq_uq nge ngt false neq_oq ge gt true eq_os lt_oq le_oq unord_s neq_us "
              "nlt_uq nle_uq ord_s eq_us "
              "nge_uq ngt_uq false_os neq_os ge_oq gt_oq true_us").split()
INTEGER_PREDICATES = {"eq": 0, "lt": 1, "le": 2, "neq": 4, "nlt": 5, "nle": 6}
FLOAT_COMPARE = re.compile(r"vcmp(\w+)(ps|pd|ss|sd)$")
INTEGER_COMPARE = re.compile(r"vpcmp(eq|lt|le|neq|nlt|nle)(u?[bwdq])$")
DECORATION = re.compile(r"\{\s*(\w+)\s*\}")
MEMORY = re.compile(r"(?:(\w+)\s+(?:ptr\s*)?)?(?:[ed]s:)?\[(.*)\]\s*$")
TERM = re.compile(r"([+-]?)([^+-]+)")
MADE_BY_ONE = {"shl", "shr", "sar", "rol", "ror", "rcl", "rcr"}  # "shl eax" means "shl eax, 1"

def assemble(text: str, arch: str = "x86_64") -> bytes:
  """The bytes of one instruction. They do not depend on the processor's level of x86-64."""
  return encode(parse(text))

def disassemble(code: bytes, arch: str = "x86_64") -> str:
  """The text of the one instruction that makes up all of the bytes."""
  return whole_text(code, decode, show)

def assemble_function(text: str) -> bytes:
  """The bytes of lines that are instructions, labels (`.name:`), or empty."""
  return encode_function(parse_function(text))[0]

def parse_function(text: str, name: str = "text") -> Function:
  """Parse lines of assembly text to a function over physical registers. A label starts a block. Errors have the number
  of the line."""
  return function_of(statements(text.splitlines()), lambda line: parse(line, labels=True), name)

# ---- printing

def show(inst: MInst) -> str:
  """The text of an instruction. Virtual registers and blocks have the same text as elsewhere."""
  form: Form = inst.row.isa
  parts = [show_operand(inst, at, kind) for at, kind in form.syntax]
  if form.mask >= 0: parts[0] += f" {{{inst.operands[form.mask]}}}" + (" {z}" if form.zeroing else "")
  return f"{inst.row.name} {', '.join(parts)}" if parts else inst.row.name

def show_operand(inst: MInst, at: int, kind: OperandKind) -> str:
  """The text of one operand, without its mask."""
  value = inst.operands[at]
  if kind.category in ("memory", "broadcast"): return show_memory(inst, at, kind)
  if kind.category == "block" and isinstance(value, int): return f".{value:+d}"
  return str(value)

def show_memory(inst: MInst, at: int, kind: OperandKind) -> str:
  """The text of a memory operand: dword ptr [base + scale*index + disp]{1to8}."""
  base, index, scale, disp = inst.operands[at:at + 4]
  terms = [str(base)] if base is not None else []
  if index is not None: terms.append(f"{scale}*{index}" if scale != 1 or base is None else str(index))
  text = " + ".join(terms)
  if isinstance(disp, bytes): text += f" + constant 0x{disp[::-1].hex()}"
  elif not isinstance(disp, int): text += f" + {disp}"
  elif not text: text = str(disp)
  elif disp: text += f" {'-' if disp < 0 else '+'} {abs(disp)}"
  bits = gathered_bits(inst.row, kind)
  size = f"{SIZES[bits]} ptr " if bits else ""
  return f"{size}[{text}]" + (f"{{1to{kind.lanes}}}" if kind.category == "broadcast" else "")

def gathered_bits(row: Inst, kind: OperandKind) -> int:
  """The size in the text of a memory operand. That of a gather or scatter is the size of all elements."""
  if kind.cls is None or kind.cls.bank is not regs.VEC: return kind.bits
  data = next(o.cls.bits for o in row.operands if o.cls is not None and o.cls.bank is regs.VEC and o.name != "index")
  # gatherd, scatterd: indices of 32 bits
  return min(data, kind.cls.bits * kind.bits // (32 if "erd" in row.name else 64))

# ---- parsing

class ParsedOperand:
  """A parsed operand. category: register, memory, immediate, block."""
  __slots__ = ("text", "category", "value", "bits", "lanes")

  def __init__(self, text: str, category: str, value: Any, bits: int = 0, lanes: int = 0):
    self.text, self.category, self.value, self.bits, self.lanes = text, category, value, bits, lanes

NAMES = regs.by_name()

def parse(text: str, labels: bool = False) -> MInst:
  """Parse one line of text to an instruction. With `labels`, a block operand may be a name, which is left unchanged.

  Raises ParseError with the mistake and the expected text.
  """
  words = ascii_only(text).lower().strip().split(None, 1)
  if not words: raise ParseError("an instruction is expected")
  mnemonic, rest = words[0], words[1] if len(words) > 1 else ""
  if mnemonic in ("lock", "rep") and rest:
    second, _, rest = rest.partition(" ")
    mnemonic = f"{mnemonic} {second}"
  mnemonic, extra = canonical(mnemonic)
  mask, zeroing = None, False
  operands = [] if mnemonic.startswith("rep ") else split_operands(rest)
  given = []
  for position, operand in enumerate(operands, 1):
    operand, lanes, k, z = decorations(operand, position)
    if (k or z) and position > 1: raise ParseError(f"operand {position}: only the destination takes a mask")
    mask, zeroing = k or mask, z or zeroing
    given.append(parse_operand(operand, position, lanes, labels))
  if mnemonic in MADE_BY_ONE and len(given) == 1: extra = 1
  if extra is not None: given.append(ParsedOperand(str(extra), "immediate", extra))
  return choose(mnemonic, given, mask, zeroing)

def canonical(mnemonic: str) -> tuple[str, int | None]:
  """The table's name of a mnemonic, and the immediate that an alias implies ("vcmpltps" is vcmpps with 1)."""
  if mnemonic in TABLE.lines: return mnemonic, None
  if mnemonic in ALIASES: return ALIASES[mnemonic], None
  found = FLOAT_COMPARE.match(mnemonic)
  if found:
    name = found[1].replace("_", "")
    for number, predicate in enumerate(PREDICATES):
      if predicate.replace("_", "") == name: return f"vcmp{found[2]}", number
  found = INTEGER_COMPARE.match(mnemonic)
  if found: return f"vpcmp{found[2]}", INTEGER_PREDICATES[found[1]]
  close = [m for m in TABLE.mnemonics() if " " not in m and m[:4] == mnemonic[:4]
           and abs(len(m) - len(mnemonic)) < 2][:4]
  raise ParseError(f"no instruction is called {mnemonic}" + (f"; did you mean {one_of(close)}?" if close else ""))

def decorations(text: str, position: int) -> tuple[str, int, Reg | None, bool]:
  """Strip {k1}, {z} and {1to8} from an operand: (rest, lanes, mask, zeroing)."""
  lanes, mask, zeroing = 0, None, False
  for word in DECORATION.findall(text):
    if word == "z": zeroing = True
    elif word[:3] == "1to" and word[3:].isdigit(): lanes = int(word[3:])
    elif word in NAMES and NAMES[word].cls is regs.K: mask = NAMES[word]
    else:
      raise ParseError(f"operand {position}: {{{word}}} is neither a mask ({{k1}} to {{k7}}), {{z}} nor a broadcast "
                       f"({{1to8}})")
  if mask is not None and mask.index == 0:
    raise ParseError(f"operand {position}: k0 cannot be a mask: as a mask it means that there is none")
  return DECORATION.sub("", text).strip(), lanes, mask, zeroing

def parse_operand(text: str, position: int, lanes: int, labels: bool) -> ParsedOperand:
  """Parse a register, memory, immediate or jump target."""
  if text in NAMES and text != "rip": return ParsedOperand(text, "register", NAMES[text])
  if text.startswith("."):
    offset = parse_integer(text[1:]) if text != "." else 0
    if offset is None and labels: return ParsedOperand(text, "block", text)
    if offset is None: raise ParseError(f"operand {position}: a jump target is written .+N or .-N, got {text}")
    return ParsedOperand(text, "block", offset)
  found = MEMORY.match(text)
  if found:
    if found[1] and found[1] not in BITS:
      raise ParseError(f"operand {position}: {found[1]} is no size; use {one_of(list(BITS))}")
    return ParsedOperand(text, "memory", parse_address(found[2], position), BITS.get(found[1], 0), lanes)
  value = parse_integer(text)
  if value is None:
    raise ParseError(f"operand {position}: {text or 'nothing'} is no register, memory operand or integer")
  return ParsedOperand(text, "immediate", value)

def parse_address(text: str, position: int) -> list[Any]:
  """Parse an address to base, index, scale, displacement."""
  base: Reg | None = None
  index: Reg | None = None
  scale, disp = 1, 0
  compact = text.replace(" ", "").replace("+-", "-").replace("--", "+")
  for sign, term in TERM.findall(compact):
    value = parse_integer(term)
    if value is not None:
      disp += -value if sign == "-" else value
      continue
    factors = term.split("*")
    numbers = [n for n in map(parse_integer, factors) if n is not None]
    names = [f for f in factors if f in NAMES]
    if sign == "-" or len(names) != 1 or len(numbers) + 1 != len(factors) or len(numbers) > 1:
      raise ParseError(f"operand {position}: {term} is no register, scaled register or integer")
    register = NAMES[names[0]]
    if numbers or register.cls.bank is regs.VEC or base is not None:
      if index is not None:
        raise ParseError(f"operand {position}: an address has one index, got {index} and {register}")
      index, scale = register, numbers[0] if numbers else 1
    else: base = register
  if index is not None and scale == 1 and index.cls is regs.R64 and index.index == 4: base, index = index, base
  if scale not in (1, 2, 4, 8): raise ParseError(f"operand {position}: the scale must be 1, 2, 4 or 8, got {scale}")
  if index is not None and index.cls is regs.R64 and index.index == 4:
    raise ParseError(f"operand {position}: rsp cannot be an index")
  if base is not None and base.cls not in (regs.R64, regs.RIP_CLASS):
    raise ParseError(f"operand {position}: the base wants r64, got {base}")
  if index is not None and (index.cls.bank is regs.MASK or index.cls.bits < 64 or base is regs.RIP):
    raise ParseError(f"operand {position}: the index wants r64 or a vector register, got {index}")
  if not -1 << 31 <= disp < 1 << 31:
    if not 0 < (1 << 64) - disp <= 1 << 31:
      raise ParseError(f"operand {position}: the displacement must fit 32 bits, got {disp}")
    disp -= 1 << 64  # 0xffffffff80000000 and up
  return [base, index, scale, disp]

def choose(mnemonic: str, given: list[ParsedOperand], mask: Reg | None, zeroing: bool) -> MInst:
  """The row that fits the text. Several fit only if a necessary size was left out."""
  quick = guess(mnemonic, given) if mask is None and not zeroing else None
  if quick is not None: return fill(quick, given, mask)
  rows = TABLE.rows(mnemonic)
  same = [r for r in rows if len(r.isa.syntax) == len(given)]
  if not same:
    counts = one_of([str(n) for n in sorted({len(r.isa.syntax) for r in rows})])
    raise ParseError(f"{mnemonic} takes {counts} operand{'s' if counts != '1' else ''}, got {len(given)}")
  reached = [mismatch(r, given) for r in same]
  fitting = [r for r, at in zip(same, reached) if at == len(given)]
  if not fitting and mnemonic == "mov": fitting = [r for r in TABLE.rows("movabs") if mismatch(r, given) == len(given)]
  if not fitting: raise ParseError(expectation(mnemonic, same, reached, given))
  masked = [r for r in fitting if (r.isa.mask >= 0) == (mask is not None) and r.isa.zeroing == zeroing]
  if not masked: raise ParseError(mask_expectation(mnemonic, fitting, mask, zeroing))
  sizes = {r.isa.bits for r in masked}
  if len(sizes) > 1:
    position = next(i for i, g in enumerate(given, 1) if g.category == "memory")
    raise ParseError(f"operand {position}: say the size of the memory operand: "
                     f"{one_of([SIZES[s] + ' ptr' for s in sorted(sizes)])}")
  return fill(masked[0], given, mask)

SHORT = {cls: name for name, cls in CLASS_OF.items()}

def guess(mnemonic: str, given: list[ParsedOperand]) -> Inst | None:
  """Find the row whose key the operands spell, without making all rows of the mnemonic. None if it needs a search."""
  words = []
  for g in given:
    if g.category == "register" and g.value.cls in SHORT: words.append(SHORT[g.value.cls])
    elif g.category == "memory" and not g.lanes and (g.value[1] is None or g.value[1].cls is regs.R64):
      words.append(f"m{g.bits or ''}")
    elif g.category == "block": words.append("rel")
    elif g.category == "immediate" and g is given[-1]: words.append("i")
    else: return None
  key = "_".join((mnemonic.replace(" ", "_"), *words))
  for ending in ("8", "32", "16") if key[-2:] == "_i" else ("",):
    row = TABLE.get(key + ending)
    if row is not None and mismatch(row, given) == len(given): return row
  return None

def mismatch(row: Inst, given: list[ParsedOperand]) -> int:
  """The index of the first operand that the row does not take; the number of operands if it takes all."""
  form: Form = row.isa
  for i, ((at, kind), g) in enumerate(zip(form.syntax, given)):
    if not accepts(form, kind, row.operands[at], g): return i
  return len(given)

def accepts(form: Form, kind: OperandKind, operand: Operand, g: ParsedOperand) -> bool:
  """Whether an operand of a row takes a parsed operand."""
  if kind.category in ("memory", "broadcast"):
    if g.category != "memory" or (kind.category == "broadcast") != (g.lanes > 0) or g.lanes and g.lanes != kind.lanes:
      return False
    index = g.value[1].cls if g.value[1] is not None else None
    if index is not kind.cls and (kind.cls is not None or index is not regs.R64): return False
    return not g.bits or not kind.bits or kind.cls is not None or g.bits == kind.bits
  if g.category != ("register" if kind.category == "fixed" else kind.category): return False
  if kind.category in ("register", "fixed"):
    return isinstance(g.value, Reg) and g.value.cls is kind.cls and kind.fixed in (None, g.value.index)
  if kind.category == "block": return True
  low, high = bounds(form, operand.kind)
  return low <= int(g.value) <= high

def fill(row: Inst, given: list[ParsedOperand], mask: Reg | None) -> MInst:
  """The instruction, with its implicit operands added."""
  form: Form = row.isa
  operands: list[Any] = [None if o.cls is None or o.fixed is None else regs.reg(o.cls, o.fixed) for o in row.operands]
  for (at, kind), g in zip(form.syntax, given):
    if kind.category in ("memory", "broadcast"): operands[at:at + 4] = g.value
    elif kind.category == "immediate": operands[at] = canonical_immediate(kind, g.value)
    else: operands[at] = g.value
  if form.mask >= 0: operands[form.mask] = mask
  return MInst(row, operands)

def canonical_immediate(kind: OperandKind, value: int) -> int:
  """The signed or unsigned view of an immediate that the decoder would return."""
  if kind.signed: return value - (1 << kind.bits) if value >= 1 << kind.bits - 1 else value
  return value & (1 << kind.bits) - 1

# ---- explaining

def expectation(mnemonic: str, rows: list[Inst], reached: list[int], given: list[ParsedOperand]) -> str:
  """An error text from the rows that fit longest: "operand 2 wants ymm or m256, got xmm3"."""
  at = max(reached)
  wanted = [describe(r, at) for r, n in zip(rows, reached) if n == at]
  return f"{mnemonic}: operand {at + 1} wants {one_of(wanted)}, got {given[at].text}"

def describe(row: Inst, position: int) -> str:
  """The operands that a row accepts at a position, in the manual's words."""
  form: Form = row.isa
  at, kind = form.syntax[position]
  if kind.category == "register": return kind.cls.name if kind.cls is not None else kind.key
  if kind.category == "broadcast": return f"m{kind.bits}{{1to{kind.lanes}}}"
  if kind.category == "memory" and kind.cls is not None: return f"memory with {kind.cls.name} as index"
  if kind.category == "memory": return kind.key if kind.bits else "memory"
  if kind.category == "immediate": return "an integer in {}..{}".format(*bounds(form, row.operands[at].kind))
  return ".+N" if kind.category == "block" else kind.key

def mask_expectation(mnemonic: str, rows: list[Inst], mask: Reg | None, zeroing: bool) -> str:
  """The reason why no row goes with the mask."""
  if mask is None and not zeroing: return f"{mnemonic}: operand 1 wants a mask, like {{k1}}"
  if mask is None: return f"{mnemonic}: {{z}} goes with a mask, like {{k1}} {{z}}"
  if zeroing and any(r.isa.mask >= 0 for r in rows): return f"{mnemonic}: operand 1 takes no {{z}}"
  return f"{mnemonic}: operand 1 takes no mask"

