"""Select arithmetic on pairs of float16 or bfloat16 in one instruction, if it gives the bits of rounded float32 results
(machine/select/packed.py).

A sum is HADD2 and a product HMUL2. A comparison is HSET2, which makes a mask, and a choice is LOP3 with that mask. A
bound other than zero is HMNMX2.

An operand is a word: both halves, or one half twice. PRMT brings other elements together.

HFMA2 rounds a product and a sum once, but codegen expects two roundings. So it is used only for sums of bfloat16 on
generations whose HADD2 has no bfloat16. In rare cases its products are too small for float32, so it makes no products
here. The conversions of the elements become unused, and unused.py removes them (machine/select/unused.py).
"""
from __future__ import annotations
import functools
from collections import Counter

from tinyhw.arithmetic import to_bytes
from tinyhw.dtype import DType, dtypes
from tinyhw.isa.sass.capabilities import HALVES
from tinyhw.isa.sass.select.alu import LIMITS
from tinyhw.isa.sass.select.vector import Vectors
from tinyhw.isa.sass.table import regs
from tinyhw.machine.ir.inst import Access, Reg
from tinyhw.machine.select.macros import Macro
from tinyhw.machine.select.packed import PackedOperation, PairFinder, Found, ElementPair
from tinyhw.threads import once
from tinyhw.uop.enums import GroupOp, Ops
from tinyhw.uop.ops import UOp

# an operand: its register, or None for a constant, and its text in the instruction, with "?" for the register
Term = tuple[Reg | None, str]

SUMS, PRODUCTS = frozenset({Ops.ADD, Ops.NEG}), frozenset({Ops.MUL})
CHOICES = frozenset({Ops.WHERE, *GroupOp.Comparison, Ops.AND, Ops.OR, Ops.XOR})
LOGIC = {Ops.AND: "and32", Ops.OR: "or32", Ops.XOR: "xor32"}
COMPARISONS = {Ops.CMPLT: "LT", Ops.CMPEQ: "EQ", Ops.CMPNE: "NEU"}
MIRRORED = {"LT": "GT"}        # names after an exchange of the operands; others stay
SIGNS = 0x80008000
EXTREMES = {"least_f32": ("", "PT"), "least_nan_f32": (".NAN", "PT"), "most_f32": ("", "!PT"),
            "most_nan_f32": (".NAN", "!PT")}

class Packed(Vectors):
  """The layer of Selector that computes two elements at once.

  uses: of nodes by others. kept: how many of those uses store the node to memory.
  """
  kept: Counter[UOp] = Counter()

  @functools.cached_property
  def finders(self) -> dict[DType, PairFinder]:
    """Map each type to the finder of its packed operations."""
    choices = CHOICES if self.generation.has("9+") else frozenset()
    return {dtypes.float16: PairFinder(dtypes.float16, SUMS | PRODUCTS | CHOICES, self.adjacent),
            dtypes.bfloat16: PairFinder(dtypes.bfloat16, SUMS | choices, self.adjacent)}

  def rounded_word(self, dtype: DType, low: UOp, high: UOp) -> Reg:
    found = self.finders[dtype].rounded(low, high)
    return super().rounded_word(dtype, low, high) if found is None else self.both(found, dtype)

  def cast(self, u: UOp) -> Reg:
    """Convert. A single number is computed in both halves of a register, if only stores use it."""
    if u.dtype not in HALVES or u.src[0].dtype is not dtypes.float32 or self.kept[u] < self.uses[u]:
      return super().cast(u)
    found = self.finders[u.dtype].rounded(u.src[0], u.src[0])
    return super().cast(u) if not isinstance(found, PackedOperation) else self.both(found, u.dtype)

  def both(self, found: Found, dtype: DType) -> Reg:
    """Return a register with both results, computed once in a block. A comparison gives all bits or none of each
    half."""
    key = (found, dtype)
    if key not in self.made:
      self.made[key] = self.together(found, dtype) if isinstance(found, ElementPair) else self.computed(found, dtype)
    return self.made[key]

  def together(self, found: ElementPair, dtype: DType) -> Reg:
    """Return two adjacent elements in a register."""
    low, high = (UOp.const(dtype, u.arg) if u.op is Ops.CONST else u for u in (found.low, found.high))
    word = self.packed(dtype.vec(2), [low, high])
    signs = sum(0x8000 << 16 * k for k, sign in enumerate(found.signs) if sign)
    return self.op(regs.R[1], "xor32", word, signs) if signs else word

  def computed(self, found: PackedOperation, dtype: DType) -> Reg:
    op, sources = found.op, found.sources
    if op is Ops.NEG: return self.op(regs.R[1], "xor32", self.both(sources[0], dtype), SIGNS)
    if op is Ops.WHERE: return self.chosen(found, dtype)
    if op in LOGIC: return self.op(regs.R[1], LOGIC[op], *[self.both(s, dtype) for s in sources])
    a, b = sources
    exchanged = is_constant(a)   # only the second operand can be a constant
    if exchanged: a, b = b, a
    kind = kind_of(dtype)
    if op is Ops.MUL: return self.packed_line(f"HMUL2{kind}", dtype, a, b)
    if op in COMPARISONS:
      name = MIRRORED.get(COMPARISONS[op], COMPARISONS[op]) if exchanged else COMPARISONS[op]
      return self.packed_line(f"HSET2{kind}.{name}.AND", dtype, a, b, ", PT")
    if not kind or self.generation.has("9+"): return self.packed_line(f"HADD2{kind}", dtype, a, b)
    return self.packed_line(f"HFMA2{kind}", dtype, a, b, middle="1, 1, ")

  def chosen(self, found: PackedOperation, dtype: DType) -> Reg:
    """Select WHERE by bits. The minimum or maximum of a number and a bound is one instruction.

    Zeros are excluded, because the instruction orders them.
    """
    condition, yes, no = found.sources
    limit = limit_of(found)
    if limit is not None:
      nan, least = EXTREMES[limit]
      bound, x = (yes, no) if is_constant(yes) else (no, yes)
      return self.packed_line(f"HMNMX2{kind_of(dtype)}{nan}", dtype, x, bound, f", {least}")
    if isinstance(condition, ElementPair): return self.chosen_by_truths(condition, yes, no, dtype)
    mask = self.both(condition, dtype)
    for name, kept, other in (("choose_bits", no, yes), ("choose_bits_not", yes, no)):
      if not isinstance(other, ElementPair) or not is_constant(other): continue
      return self.op(regs.R[1], name, mask, constant_word(other, dtype), self.both(kept, dtype))
    return self.op(regs.R[1], "choose_bits", mask, self.both(yes, dtype), self.both(no, dtype))

  def chosen_by_truths(self, condition: ElementPair, yes: Found, no: Found, dtype: DType) -> Reg:
    """Select by a bool for each half: choose whole words by each of them, and take half of each."""
    words = [constant_word(s, dtype) if isinstance(s, ElementPair) and is_constant(s) else self.both(s, dtype)
             for s in (yes, no)]
    low, high = (self.once(regs.R[1], *self.choice_of(self.value(truth), *words))
                 for truth in (condition.low, condition.high))
    return low if low is high else self.op(regs.R[1], "pack_halves", low, high)

  # ***** operands *****

  def packed_line(self, key: str, dtype: DType, a: Found, b: Found, end: str = "", middle: str = "") -> Reg:
    """Emit an instruction of two operands. middle: the text between them; end: the text after them."""
    terms = [self.register_term(a, dtype), self.register_term(b, dtype) if middle else self.term(b, dtype)]
    return self.op(regs.R[1], packed_macro(key, tuple(text for _, text in terms), middle, end),
                   *[r for r, _ in terms if r is not None])

  def register_term(self, found: Found, dtype: DType) -> Term:
    """Return an operand that is no constant in the text."""
    return (self.both(found, dtype), "?") if is_constant(found) else self.term(found, dtype)

  def term(self, found: Found, dtype: DType) -> Term:
    """Return an operand. Two elements in one word are taken from that word."""
    if isinstance(found, PackedOperation):
      minus = found.op is Ops.NEG
      return self.both(found.sources[0] if minus else found, dtype), "-?" if minus else "?"
    if is_constant(found): return None, constant_text(found)
    if found.signs[0] is not found.signs[1]: return self.both(found, dtype), "?"
    sign = "-" * found.signs[0]
    if not self.adjacent(found.low, found.high):
      return self.both(found._replace(signs=(False, False)), dtype), f"{sign}?"
    (group, first), (_, second) = self.half_place(found.low), self.half_place(found.high)
    return self.part(regs.R[1], group, first // 2), sign + {(0, 1): "?", (0, 0): "?.H0_H0",
                                                            (1, 1): "?.H1_H1"}[first % 2, second % 2]

  def adjacent(self, low: UOp, high: UOp) -> bool:
    """Return whether two numbers are halves of a word that an instruction takes: both halves, or one half twice."""
    if low.op is Ops.CONST or high.op is Ops.CONST: return low is high
    (group, first), (other, second) = self.half_place(low), self.half_place(high)
    return group is other and second - first in (0, 1 - first % 2)

  def half_place(self, u: UOp) -> tuple[Reg, int]:
    """Return the register or group of a number, and the number of its half."""
    value, byte = self.byte_source(u)
    if isinstance(value, regs.Element): return value.group, 2 * value.at + byte // 2
    return self.in_register(value, 1), byte // 2

def kind_of(dtype: DType) -> str: return ".BF16_V2" if dtype is dtypes.bfloat16 else ""

def is_constant(found: Found) -> bool:
  return isinstance(found, ElementPair) and found.low.op is Ops.CONST and found.high.op is Ops.CONST

def constant_text(found: ElementPair) -> str:
  """Return two constants in the text of an instruction, the upper one first."""
  low, high = (-u.arg if minus else u.arg for u, minus in zip(found[:2], found.signs))
  return ("RZ" if str(low) == str(high) == "0.0"
          else ", ".join({"inf": "+INF ", "-inf": "-INF "}.get(str(x), repr(float(x))) for x in (high, low)))

def constant_word(found: ElementPair, dtype: DType) -> int:
  """Return the bits of two constants."""
  low, high = (int.from_bytes(to_bytes(-u.arg if minus else u.arg, dtype), "little")
               for u, minus in zip(found[:2], found.signs))
  return high << 16 | low

def limit_of(found: PackedOperation) -> str | None:
  """Return the name in EXTREMES of the minimum or maximum of a number and a constant bound other than zero, else
  None."""
  condition, yes, no = found.sources
  if not isinstance(condition, PackedOperation) or condition.op is not Ops.CMPLT: return None
  if yes == no or {yes, no} != set(condition.sources): return None
  bound = next((s for s in (yes, no) if isinstance(s, ElementPair) and is_constant(s)), None)
  if bound is None or not bound.low.arg or not bound.high.arg: return None
  return LIMITS[condition.sources[0] == bound, yes == bound]

@once
def packed_macro(key: str, terms: tuple[str, ...], middle: str, end: str) -> Macro:
  """Return the macro of an instruction with these operands."""
  names = [name for name, text in zip("ab", terms) if "?" in text]
  first, second = (text.replace("?", name) for name, text in zip("ab", terms))
  return Macro("packed", (("d", Access.WRITE, "v1"), *((name, Access.READ, "v1") for name in names)), 1 + len(names),
               (f"{key} d, {first}, {middle}{second}{end}",))
