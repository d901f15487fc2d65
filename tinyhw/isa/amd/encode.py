"""MInst to bytes: each encoding of a row becomes a function at first use.

An encoding fits if every operand is one that its field can say, and every operand without a field has the value that
the encoding implies (no modifiers, vcc as the mask). Encodings are tried in the order of the table, shorter ones
first. Cost: 1 us for a vector instruction (CPython 3.12).
"""
from __future__ import annotations
import functools
from typing import Any
from collections.abc import Callable

from tinyhw.errors import EncodeError
from tinyhw.isa.amd import regs
from tinyhw.isa.amd.check import CHECKS, explain
from tinyhw.isa.amd.constants import LITERAL
from tinyhw.isa.amd.form import SIGNED, Encoding, Form, Generation, Spec
from tinyhw.machine.bits import Field
from tinyhw.machine.inst import Access, MInst, Reg, RegClass

Codes = dict[RegClass, tuple[int, ...]]  # class -> code of each first register of it, -1 where there is none

def encode(inst: MInst) -> bytes:
  """The bytes of an instruction over physical registers. Raises EncodeError saying which operand does not fit, and what would."""
  form: Form = inst.row.isa
  try:
    for encoding in form.encodings:
      code = (encoding.encode or compiled(form, encoding))(inst.operands)
      if code is not None: return code
  except (AttributeError, TypeError): pass  # an operand is of another kind: None, an integer or virtual where a register belongs
  raise EncodeError(f"{form.mnemonic}: {explain(form, inst.operands)}")

def chosen(inst: MInst) -> Encoding:
  """The encoding that `encode` takes."""
  form: Form = inst.row.isa
  code = encode(inst)
  if len(form.encodings) == 1: return form.encodings[0]
  return next(encoding for encoding in form.encodings if (encoding.encode or compiled(form, encoding))(inst.operands) == code)

# ---- how a field says a register

# Fields with the number of a scalar register divided by this.
GRANULE = {"sbase": 2, "srsrc": 4}
# Fields where a flag above the number says what it is: an accumulation register, a scalar register, that there is a register at all.
# Registers that cannot stand in a field.
RESULTS = {"nom0": (regs.M0,), "noexec": (regs.EXEC, regs.EXEC + 1)}  # by a word of the line
NOT_SAID = {**RESULTS, "saddr": (regs.EXEC, regs.EXEC + 1), "sdata": (regs.EXEC, regs.EXEC + 1, regs.M0)}
NONE = {"saddr": {"cdna": 127, "rdna3": 124, "rdna4": 124}, "soffset": {"cdna": -1, "rdna3": 124, "rdna4": 124}}

@functools.lru_cache(maxsize=None)
def codes_of(generation: Generation, cls: RegClass, kind: str, width: int, half: bool, source: bool, none: int) -> tuple[int, ...]:
  """The codes of the registers of a class in a field.

  kind: as kind_of has it. half: only half of the vector registers. source: it can be a constant, too. none: the code that says that there is none.
  """
  codes = [-1] * cls.bank.count
  for i in range(0, cls.bank.count - cls.units + 1, cls.align):
    if cls.bank is regs.SGPR:
      code = scalar_code(generation, cls, i, kind, source)
      codes[i] = -1 if code == none or i in NOT_SAID.get(kind, ()) else code
    elif not half or i < 128:
      flag = 256 if kind in ("source", "scratch") else 0
      if cls.bank is regs.AGPR: flag += 512 if width == 10 else 256 if kind == "matrix" else 0
      codes[i] = (i >> 1 if kind == "vdsty" else i) + flag
  return tuple(codes)

def scalar_code(generation: Generation, cls: RegClass, index: int, kind: str, source: bool) -> int:
  """The code of a scalar register, or of the first of a group, in a field; -1 if it cannot be said."""
  code = generation.codes[index]
  if code < 0 or not whole(generation, cls.units, index, source): return -1
  if kind == "sdwa": return code + 256
  if kind == "sdwa_mask": return 0 if index == regs.VCC else code + 128
  granule = GRANULE.get(kind, 1) if kind != "srsrc" or generation.family != "rdna4" else 1
  return code // granule if code % granule == 0 else -1

def whole(generation: Generation, units: int, index: int, source: bool) -> bool:
  """Whether a group of scalar registers lies in one kind of them. What can only be read is no group, but a source of 64 bits reads it, too."""
  if index < regs.SGPRS: return index + units <= generation.sgprs
  if regs.TTMP <= index < regs.TTMP + 16: return index + units <= regs.TTMP + 16
  if index >= min(regs.READ_ONLY.values()): return source and units <= 2
  return units == 1 or units == 2 and index != regs.M0

def kind_of(encoding: Encoding, name: str, bits: Field) -> str:
  """How a field says registers; see codes_of."""
  if name in GRANULE or name in NOT_SAID: return name
  if name == "vdsty": return "vdsty"
  if "sdwa" in encoding.format_name and name in ("src0", "src1"): return "sdwa"
  if "sdwa" in encoding.format_name and name == "sdst": return "sdwa_mask"
  if name == "vaddr" and bits.width == 9: return "scratch"
  if bits.width >= 9 and name != "vdst": return "source"
  return "matrix" if bits.width == 9 else "number"

def field_codes(form: Form, encoding: Encoding, name: str, spec: Spec) -> Codes:
  """For each class that the operand takes, the codes of its registers in a field."""
  bits = encoding.format.fields[name]
  half = short_half(form, encoding, spec)
  kind = next((word for word in RESULTS if word in form.words and spec.access is Access.WRITE), kind_of(encoding, name, bits))
  none = none_code(form, name) if spec.optional else -1
  if "m" in spec.kinds:
    m0 = tuple(form.generation.codes[i] if i == regs.M0 else -1 for i in range(regs.SCALARS))
    return {cls: m0 for cls in spec.classes}
  return {cls: codes_of(form.generation, cls, kind, bits.width, half, name in encoding.sources, none if cls.bank is regs.SGPR else -1)
          for cls in spec.classes if cls.bank is regs.VGPR or name != "vsrc1"}

def short_half(form: Form, encoding: Encoding, spec: Spec) -> bool:
  """Whether only v0 to v127 can be said: RDNA3 and later use the topmost bit of a 16-bit operand of a short encoding for the half of the register."""
  short = encoding.format_name[:4] in ("vop1", "vop2", "vopc")
  return short and not form.generation.cdna and spec.type is not None and spec.type.bits * spec.type.count == 16 and "s" not in spec.kinds[:1]

def none_code(form: Form, name: str) -> int:
  """What a field has where there is no register; -1 if it cannot say that."""
  return NONE[name][form.generation.family] if name in NONE else 0

# ---- compiling

def compiled(form: Form, encoding: Encoding) -> Callable[[list[Any]], bytes | None]:
  """The function of an encoding: operands -> bytes, or None if it does not fit."""
  scope: dict[str, Any] = {"LITERAL": LITERAL}
  lines = ["def encode(o):"]
  for i, value in encoding.needs.items():
    scope[f"need{i}"] = value
    lines.append(f"  if o[{i}] != need{i}: return None")
  constant = encoding.format.constant
  for name, value in encoding.values.items(): constant |= place(encoding.format.fields[name], value)
  terms, sources = [hex(constant)], []
  lines.append(f"  literal = o[{encoding.places['literal']}]" if "literal" in encoding.places else "  literal = None")
  for name, i in encoding.places.items():
    spec, bits = form.specs[i], encoding.format.fields[name]
    if spec.kinds == "i": lines += integer_lines(i, spec, bits)
    else:
      scope[f"codes{i}"] = field_codes(form, encoding, name, spec)
      lines += register_lines(form, encoding, i, name, spec, scope)
      if bits.width >= 9 and name[:3] == "src": sources.append(f"x{i}")
    terms += pieces(f"x{i}", bits)
  if "acc" in encoding.format.fields:
    scope["AGPR"] = regs.AGPR
    data = [i for i, spec in enumerate(form.specs) if spec.name in ("vdst", "vdata", "data0", "data1") and "a" in spec.kinds]
    if data:
      lines.append(f"  acc = o[{data[0]}].cls.bank is AGPR")
      lines += [f"  if (o[{i}].cls.bank is AGPR) != acc: return None" for i in data[1:]]
      terms += pieces("acc", encoding.format.fields["acc"])
  if encoding.halves: lines += half_lines(form, encoding)
  check = CHECKS.get(encoding.format_name.partition("_")[0])
  if check is not None:
    scope["check"], scope["form"], scope["encoding"] = check, form, encoding
    needed = any(isinstance(need, Reg) and form.specs[i].access & Access.READ for i, need in encoding.needs.items())
    implied = needed or "vcc" in form.reads or "literal" in encoding.places
    test = ">= 256" if "sdwa" in encoding.format_name else "< 256"
    condition = f"if {' + '.join(f'({s} {test})' for s in sources)} > {int(not implied)} and " if sources and check.scalars else "if "
    lines.append(f"  {condition}check.reason(form, encoding, o): return None")
  size = encoding.format.width // 8
  lines.append(f"  code = ({' | '.join(terms)}).to_bytes({size}, 'little')")
  if "literal" in encoding.places: lines.append("  return code")
  else: lines.append("  return code if literal is None else code + literal.to_bytes(4, 'little')")
  exec("\n".join(lines), scope)  # the text is made of names and numbers of the table
  function: Callable[[list[Any]], bytes | None] = scope["encode"]
  encoding.encode = function
  return function

def half_lines(form: Form, encoding: Encoding) -> list[str]:
  """What op_sel says of halves, which only vector registers have; short encodings have it in the fields of the registers."""
  at = form.index["op_sel"]
  short = "op_sel" not in encoding.places
  lines = [f"  h = o[{at}]", f"  if h & {~form.specs[at].mask}: return None"] if short else [f"  h = x{at}"]
  for name, bit in encoding.halves.items():
    i = encoding.places[name]
    if encoding.format.fields[name].width == 9: lines.append(f"  if h & {1 << bit} and x{i} < 256: return None")
    if short: lines.append(f"  if h & {1 << bit}: x{i} |= 128")
  return lines

def place(bits: Field, value: int) -> int:
  """A value in the places of its field."""
  return sum((value >> p.low & (1 << p.width) - 1) << p.shift for p in bits.pieces)

def pieces(name: str, bits: Field) -> list[str]:
  """Terms that put a variable into its places."""
  if bits.signed: name = f"({name} & {(1 << bits.width) - 1:#x})"
  if len(bits.pieces) == 1: return [f"{name} << {bits.pieces[0].shift}"]
  return [f"({name} >> {p.low} & {(1 << p.width) - 1:#x}) << {p.shift}" for p in bits.pieces]

def integer_lines(i: int, spec: Spec, bits: Field) -> list[str]:
  low, high = bits.range
  if spec.integer in SIGNED: return [f"  if not {-1 << bits.width - 1} <= o[{i}] < {1 << bits.width - 1}: return None", f"  x{i} = o[{i}] & {high}"]
  lines = [f"  x{i} = o[{i}]", f"  if not {low} <= x{i} <= {high}: return None"]
  return lines if spec.mask < 0 else [*lines, f"  if (x{i} ^ {spec.implied}) & {~spec.mask}: return None"]

def register_lines(form: Form, encoding: Encoding, i: int, name: str, spec: Spec, scope: dict[str, Any]) -> list[str]:
  """From operand i to x{i}, its code in the field."""
  lines = [f"  v{i} = o[{i}]"]
  constants = name in encoding.sources
  opening = "if"
  if constants:
    assert spec.type is not None
    kind = spec.type.constants
    scope[f"inline{i}"], scope[f"literal{i}"] = kind.codes, kind.literal
    lines += [f"  if v{i}.__class__ is int:", f"    x{i} = inline{i}.get(v{i})", f"    if x{i} is None:"]
    lines += [f"      if not {-1 << kind.bits - 1} <= v{i} <= {kind.mask}: return None", f"      if v{i} < 0: v{i} &= {kind.mask}"]
    lines += [f"      x{i} = inline{i}.get(v{i})", f"      if x{i} is None:"]
    if encoding.literal and "l" in spec.kinds:
      lines += [f"        dword = literal{i}(v{i})", "        if dword is None or literal is not None and literal != dword: return None",
                f"        literal, x{i} = dword, LITERAL"]
    else: lines.append("        return None")
    opening = "elif"
  elif "c" in spec.kinds: lines.append(f"  if v{i}.__class__ is int: return None")
  if spec.optional:
    none = none_code(form, name)
    lines.append(f"  {opening} v{i} is None: {f'x{i} = {none}' if none >= 0 else 'return None'}")
    opening = "elif"
  body = "  " if opening == "if" else "    "
  if opening == "elif": lines.append("  else:")
  lines += [f"{body}table = codes{i}.get(v{i}.cls)", f"{body}if table is None: return None", f"{body}x{i} = table[v{i}.index]",
            f"{body}if x{i} < 0: return None"]
  return lines
