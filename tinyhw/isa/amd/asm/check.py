"""Rules of AMD instructions that no field expresses, and the reasons why an instruction cannot be encoded.

Sources: RDNA3, RDNA4, MI300 and CDNA4 ISA guides; refusals of an assembler (docs/hardware/amd.md).
"""
from __future__ import annotations
from typing import Any, TypeGuard
from collections.abc import Callable

from tinyhw.isa.amd.table import regs
from tinyhw.isa.amd.table.form import MX_UNITS, SIGNED, Encoding, Form, Spec
from tinyhw.machine.ir.inst import Reg
from tinyhw.machine.notation.text import one_of
from tinyhw.named_tuple import NamedTuple

class Check(NamedTuple):
  """A rule about operands. reason: the text of a conflict, or "". scalars: the rule only matters if two sources are not
  vector registers."""
  reason: Callable[[Form, Encoding, list[Any]], str]
  scalars: bool = False

def scalar_values(form: Form, encoding: Encoding, operands: list[Any]) -> str:
  """Limit the scalar registers and literals that a vector instruction reads.

  A register and a pair that contains it count as two.
  """
  seen: set[object] = set()
  for i, spec in enumerate(form.specs):
    value = operands[i]
    if spec.integer in ("k32", "k16"): seen.add(value)
    if spec.kinds == "i" or value is None or not spec.access & 1: continue
    if isinstance(value, Reg):
      if value.cls.bank is regs.SGPR and value.index != regs.NULL: seen.add((value.index, value.cls.units))
    elif spec.type is not None and value & spec.type.constants.mask not in spec.type.constants.codes:
      seen.add(spec.type.constants.literal(value & spec.type.constants.mask))
  if "vcc" in form.reads: seen.add("vcc" if form.first_operands else (regs.VCC, 2))
  limit = 1 if "scalar1" in form.words else form.generation.scalar_limit
  if len(seen) <= limit: return ""
  return (f"reads {len(seen)} scalar values (registers, literals), {form.generation.arch} can read {limit}; move the "
          f"others to vector registers first")

def address_units(form: Form, operands: list[Any]) -> int:
  """The number of registers of a memory instruction's vector address."""
  index = form.index
  if "idxen" in index: return int(operands[index["idxen"]] + operands[index["offen"]])
  if "saddr" not in index: return 2
  if form.encodings[0].format_name == "scratch": return 1
  return 2 if operands[index["saddr"]] is None else 1

def address(form: Form, encoding: Encoding, operands: list[Any]) -> str:
  """Check the vector address and the temporal hint th of a memory instruction.

  The vector address must have the number of registers that the other operands imply. th of an atomic must tell whether
  it returns the old value.
  """
  at = form.index.get("vaddr", -1)
  if at >= 0 and not (operands[at] is None and form.specs[at].optional and encoding.format_name == "scratch"):
    units = address_units(form, operands)
    given = 0 if operands[at] is None else operands[at].cls.units
    if units != given:
      return (f"vaddr has {given} registers; with {'idxen and offen' if 'idxen' in form.index else 'this saddr'} it "
              f"has {units}")
  if "atomic" in form.words and "th" in form.index:
    returns, th = form.key.endswith("_rtn"), operands[form.index["th"]]
    if bool(th & 1) != returns:
      return f"th must be {'odd' if returns else 'even'}: bit 0 says that the old value is returned"
    if th == BYPASS and operands[form.index["scope"]] == SYSTEM:
      return "th 3 (NT_RETURN) does not go with scope 3 (SYS)"
  return ""

def matrix(form: Form, encoding: Encoding, operands: list[Any]) -> str:
  """Check the operands of a matrix product.

  C is in the register file of D. It is D itself or does not overlap D. Operands of a product with formats have the
  number of registers that the formats imply.
  """
  d, c = operands[0], operands[form.index["src2"]]
  if isinstance(c, Reg) and not form.specs[0].access & 1:
    if c.cls.bank is not d.cls.bank:
      return f"src2 ({c}) and vdst ({d}) must both be vector or both accumulation registers"
    if 0 < abs(c.index - d.index) < d.cls.units:
      return f"src2 ({c}) overlaps vdst ({d}) in part; it must be the same or apart"
  if "mx" in form.words:
    for name, source in (("cbsz", "src0"), ("blgp", "src1")):
      code, given = operands[form.index[name]], operands[form.index[source]].cls.units
      if code >= len(MX_UNITS): return f"{name} must be in 0..4 (fp8, bf8, fp6, bf6, fp4), got {code}"
      if given != MX_UNITS[code]: return f"{source} has {given} registers; with {name}:{code} it has {MX_UNITS[code]}"
  return ""

def dual(form: Form, encoding: Encoding, operands: list[Any]) -> str:
  """Check an instruction of two operations: the banks of registers that they read and write, and the number of scalar
  values."""
  named = dict(zip((spec.name for spec in form.specs), operands))
  if "literalx" in named and named.get("literaly", named["literalx"]) != named["literalx"]:
    return "both operations must have the same literal"
  first, second = (Half(name, named[f"vdst{c}"], named[f"src{c}0"], named.get(f"vsrc{c}1"))
                   for name, c in zip(form.key.split("::"), "xy"))
  if bank(first.result, 2) == bank(second.result, 2):
    return f"{first.result} and {second.result} are written; one must be even and one odd"
  # Two moves on RDNA4 read their sources on different paths.
  moves = form.generation.family == "rdna4" and form.key == "v_dual_mov_b32::v_dual_mov_b32"
  for place, a, b in (("first", first.source, second.source), ("second", first.factor(), second.factor())):
    if not moves and is_vector(a) and is_vector(b) and bank(a, 4) == bank(b, 4):
      return (f"{a} and {b} are the {place} sources; their numbers must differ in the last two bits (they are in one "
              f"bank)")
  a, b = first.added(), second.added()
  if is_vector(a) and is_vector(b) and bank(a, 2) == bank(b, 2):
    return f"{a} and {b} are added; one must be even and one odd"
  return scalar_values(form, encoding, operands)

class Half(NamedTuple):
  """One of the two operations of an instruction. other: its second source."""
  name: str
  result: Reg
  source: Any
  other: Any

  def factor(self) -> Any:
    """The second source if it is a factor of the product, or None."""
    return None if "fmamk" in self.name else self.other

  def added(self) -> Any:
    """The addend of a multiply-add if it is a register, or None."""
    return (self.other if "fmamk" in self.name else self.result if "fmac" in self.name or "dot2acc" in self.name
            else None)

def is_vector(value: Any) -> TypeGuard[Reg]:
  return isinstance(value, Reg) and value.cls.bank is regs.VGPR

def bank(value: Reg, banks: int) -> int:
  """The number of a register's bank, out of a number of banks."""
  return (value.index or 0) % banks

BYPASS, SYSTEM = 3, 3  # values of th and scope

CHECKS = {name: Check(scalar_values, scalars=True) for name in ("vop1", "vop2", "vopc", "vop3", "vop3sd", "vop3p")}
def scalar_memory(form: Form, encoding: Encoding, operands: list[Any]) -> str:
  """Refuse a negative offset where the address is a buffer."""
  if "buffer" not in form.key or operands[form.index["offset"]] >= 0: return ""
  return f"offset must not be negative where the address is a buffer, got {operands[form.index['offset']]}"

CHECKS["smem"] = Check(scalar_memory)
CHECKS["mfma"], CHECKS["vopd"] = Check(matrix), Check(dual)
CHECKS.update({name: Check(address) for name in ("flat", "global", "scratch", "mubuf", "mtbuf")})

FILES = {"vgpr": "vector", "sgpr": "scalar", "agpr": "accumulation"}

def describe(spec: Spec) -> str:
  """The operands that a spec accepts, in words."""
  if spec.kinds == "i": return "an integer"
  words = [f"{cls.units} {FILES[cls.bank.name]} registers" if cls.units > 1
           else f"a {FILES[cls.bank.name]} register".replace("a a", "an a")
           for cls in spec.classes]
  if "c" in spec.kinds: words.append("an inline constant")
  if "l" in spec.kinds: words.append("a literal")
  if spec.optional: words.append("off")
  return one_of(words)

def explain(form: Form, operands: list[Any]) -> str:
  """The reason why no encoding of the form fits the operands. It is that of the last encoding, which accepts the
  most."""
  encoding = form.encodings[-1]
  literals: dict[int, int] = {}
  for name, i in encoding.places.items():
    reason = wrong_operand(form, encoding, name, i, operands[i], literals)
    if reason: return reason
  if len(literals) > 1:
    return (f"one literal at most can be in an instruction, got {' and '.join(map(hex, literals))}; move one to a "
            f"register first")
  for i, value in encoding.needs.items():
    if operands[i] != value: return f"operand {form.specs[i].name} must be {value} here, got {operands[i]}"
  check = CHECKS.get(encoding.format_name.partition("_")[0])
  reason = check.reason(form, encoding, operands) if check is not None else ""
  return reason or f"the operands do not fit together: {', '.join(str(o) for o in operands)}"

def wrong_operand(form: Form, encoding: Encoding, name: str, i: int, value: Any, literals: dict[int, int]) -> str:
  """The reason why an operand does not fit its field, or "". Literals are collected by their dword."""
  spec, bits = form.specs[i], encoding.format.fields[name]
  if spec.kinds == "i":
    low, high = (-1 << bits.width - 1, (1 << bits.width - 1) - 1) if spec.integer in SIGNED else bits.range
    if spec.mask >= 0 and isinstance(value, int) and (value ^ spec.implied) & ~spec.mask:
      return f"{spec.name} has bits for operands that take none: {value:#b}, of which {spec.mask:#b} can be set"
    return ("" if isinstance(value, int) and low <= value <= high else f"{spec.name} must be in {low}..{high}, got "
            f"{value}")
  if value is None: return "" if spec.optional else f"operand {spec.name} is missing; it wants {describe(spec)}"
  if isinstance(value, Reg):
    if value.cls not in spec.classes: return f"operand {spec.name} wants {describe(spec)}, got {value}"
    return "" if value.index is not None else f"operand {spec.name} is virtual: {value!r}"
  if name not in encoding.sources or spec.type is None:
    return f"operand {spec.name} wants {describe(spec)}, got {value:#x}"
  kind = spec.type.constants
  if not -1 << kind.bits - 1 <= value <= kind.mask: return f"operand {spec.name} has {kind.bits} bits, got {value:#x}"
  if value & kind.mask in kind.codes: return ""
  if not encoding.literal or "l" not in spec.kinds:
    return (f"operand {spec.name}: {value:#x} is no inline constant, and this instruction takes no literal on "
            f"{form.generation.arch}; "
            "move it to a register first")
  dword = kind.literal(value & kind.mask)
  if dword is None:
    return (f"operand {spec.name}: {value:#x} is no literal of 32 bits as a {spec.type.name}; move it to a register "
            f"first")
  literals[dword] = i
  return ""
