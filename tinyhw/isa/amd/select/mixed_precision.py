"""Select mixed precision arithmetic: float32 operations that read float16 elements, and round to them
(macros/mixed_precision.py), without separate conversions.

Codegen computes in float32 and rounds before stores. Two kinds of instructions give the same bits:

- v_pk_add_f16 and v_pk_mul_f16, if two adjacent elements are one rounded sum or product (machine/select/packed.py) of
  elements that are in the same words.
- v_fma_mixlo_f16 and v_fma_mixhi_f16, for any last operation. A product of two float16 is exact in float32, so a fused
  multiply-add rounds as often as the two operations do. Other values than sums and products are rounded as x * 1.0 +
  -0.0.

v_pk_fma_f16 rounds once, while the others round to float32 first. The bits differ in rare cases, so it is not used.
"""
from __future__ import annotations
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from tinyhw.dtype import dtypes
from tinyhw.isa.amd.macros.mixed_precision import NOTHING, UNIT, Fused, Pair, Term, Word, fused_row, rounded_row
from tinyhw.isa.amd.select.vector import Vectors
from tinyhw.isa.amd.table import regs
from tinyhw.isa.amd.table.constants import KINDS, float_bits
from tinyhw.machine.ir.inst import Function, MInst, Reg
from tinyhw.machine.ir.structure import LOOSE, element_of, origin_of
from tinyhw.machine.select.packed import (
  PackedOperation, PairFinder, ElementPair, Parts, is_number_of, is_rounded, is_widened, parts_of, unsigned)
from tinyhw.machine.select.selection import constant_bits
from tinyhw.uop.enums import GroupOp, Ops
from tinyhw.uop.ops import UOp
if TYPE_CHECKING:
  from tinyhw.isa.amd.table.form import Generation
  from tinyhw.uop.program import Program

Sources = dict[Reg, int]   # sources of a macro, numbered
ONE = UOp.const(dtypes.float32, 1.0)
ONES = ElementPair(ONE, ONE)
PACKED = {Ops.ADD: "v_pk_add_f16", Ops.MUL: "v_pk_mul_f16"}
# an element with more readers is converted: instructions that read float16 cannot be one of two in a dual instruction
FEW = 2

class MixedPrecision(Vectors):
  """The float16 arithmetic of Selector. uses: the number of users of each node."""

  def __init__(self, generation: Generation, function: Function):
    super().__init__(generation, function)
    self.uses: Counter[UOp] = Counter()
    self.finder = PairFinder(dtypes.float16, frozenset(PACKED), self.in_one_word)

  def select(self, program: Program) -> Function:
    self.uses.update(s for u in program.uops if u.op in GroupOp.Elementwise for s in u.src)
    return super().select(program)

  def cast(self, u: UOp) -> Reg:
    """Select a conversion, or the rounding of a float32 vector to float16. A 16-bit element is read in place."""
    if u.dtype.count > 1: return self.rounded(u)
    if u.dtype is not dtypes.float32 or u.src[0] not in self.halves: return super().cast(u)
    sources: Sources = {}
    return self.mixed(Fused(self.half_term(u.src[0], sources), UNIT, NOTHING), sources)

  def mixed(self, fused: Fused, sources: Sources) -> Reg:
    dst = self.new(regs.V[1])
    self.block.insts.append(MInst(fused_row(self.generation, tuple(s.cls for s in sources), fused), [dst, *sources],
                                  self.origin))
    return dst

  def make_group(self, u: UOp) -> Reg:
    """Make a vector, or one of float16 with elements that were rounded one by one."""
    if u.op is not Ops.VECTORIZE or not any(map(is_rounded, u.src)): return super().make_group(u)
    sources: Sources = {}
    return self.rounded_group(u, [self.word_of_halves(low, high, sources)
                                  for low, high in zip(u.src[::2], u.src[1::2])], sources)

  def word_of_halves(self, low: UOp, high: UOp, sources: Sources) -> Word:
    """Two float16, each rounded or read in place."""
    if is_rounded(low) and is_rounded(high): return self.rounded_word(low.src[0], high.src[0], sources)
    if self.in_one_word(low, high): return self.packed_word("v_pk_mul_f16", (ElementPair(low, high), ONES), sources)
    return self.sum_of_half(low, sources), self.sum_of_half(high, sources)

  def sum_of_half(self, u: UOp, sources: Sources) -> Fused:
    """A float16, rounded or read in place."""
    return self.sum_of(u.src[0], sources) if is_rounded(u) else Fused(self.half_term(u, sources), UNIT, NOTHING)

  def rounded(self, u: UOp) -> Reg:
    """Round a vector of float32 to float16."""
    sources: Sources = {}
    vector, start = origin_of(u.src[0]) if u.src[0].op is Ops.GEP else (u.src[0], 0)
    if vector.op in LOOSE:
      words = [self.rounded_word(element_of(vector, start + k), element_of(vector, start + k + 1), sources)
               for k in range(0, u.dtype.count, 2)]
    else:
      group = sources.setdefault(self.group(vector), 0)
      sums = [Fused(Term(group, start + k), UNIT, NOTHING) for k in range(u.dtype.count)]
      words = list(zip(sums[::2], sums[1::2]))
    return self.rounded_group(u, words, sources)

  def rounded_group(self, u: UOp, words: list[Word], sources: Sources) -> Reg:
    cls = self.group_class(u.dtype)
    dst = self.new(cls)
    self.block.insts.append(MInst(rounded_row(self.generation, cls, tuple(s.cls for s in sources), tuple(words)),
                                  [dst, *sources], self.origin))
    return dst

  # ***** two at once *****

  def rounded_word(self, low: UOp, high: UOp, sources: Sources) -> Word:
    """Round two float32 by one float16 instruction, if possible."""
    found = self.finder.rounded(low, high)
    key: str = "v_pk_mul_f16"
    operands: tuple[PackedOperation | ElementPair | None, ...] = (found, ONES)
    if isinstance(found, PackedOperation): key, operands = PACKED[found.op], found.sources
    near = [s for s in operands if isinstance(s, ElementPair) and self.in_one_word(s.low, s.high)]
    if len(near) == len(operands): return self.packed_word(key, near, sources)
    return self.sum_of(low, sources), self.sum_of(high, sources)

  def packed_word(self, key: str, operands: Iterable[ElementPair], sources: Sources) -> Pair:
    def terms(o: ElementPair) -> tuple[Term, Term]:
      return self.pair_term(o.low, o.signs[0], sources), self.pair_term(o.high, o.signs[1], sources)
    return Pair(key, tuple(map(terms, operands)))

  def in_one_word(self, low: UOp, high: UOp) -> bool:
    """Whether two float16 are the halves of one word, or the same half."""
    if low is high: return True
    first, second = self.halves.get(low), self.halves.get(high)
    return first is not None and second is not None and first[0] is second[0] and first[1] // 2 == second[1] // 2

  def pair_term(self, u: UOp, minus: bool, sources: Sources) -> Term:
    """A float16 operand. Constants that float16 instructions can have as operands are the low half of a word."""
    if u.op is not Ops.CONST: found = self.half_term(u, sources)
    elif constant_bits(u) in KINDS["f32"].codes: found = Term(-1, float_bits(u.arg, "e"), 0)
    else: found = self.constant_term(u, sources)
    return negated(found) if minus else found

  # ***** sums and products *****

  def float_operation(self, u: UOp) -> Reg:
    """Select a float32 operation. It reads float16 elements with few users directly, so that they need no
    conversion."""
    parts = parts_of(u)
    narrow = [x for part in parts if part is not None and is_widened(x := unsigned(part)[0])]
    if parts[0] is u or not narrow or any(self.uses[x] > FEW for x in narrow): return super().float_operation(u)
    sources: Sources = {}
    return self.mixed(self.fused(parts, sources), sources)

  def sum_of(self, u: UOp, sources: Sources) -> Fused:
    """A float32 as a fused multiply-add that rounds in the same way.

    A value that depends on variables is not recomputed, as they may have changed since.
    """
    parts = parts_of(u)
    changed = any(part is not None and unsigned(part)[0].op is Ops.ACC for part in parts)
    return self.fused((u, None, None) if changed else parts, sources)

  def fused(self, parts: Parts, sources: Sources) -> Fused:
    a, b, c = parts
    return Fused(self.term(a, sources), UNIT if b is None else self.term(b, sources),
                 NOTHING if c is None else self.term(c, sources))

  def term(self, u: UOp, sources: Sources) -> Term:
    """An operand of a fused operation."""
    u, minus = unsigned(u)
    if u.op is Ops.CONST: found = self.constant_term(u, sources)
    elif is_widened(u): found = self.half_term(u.src[0], sources)
    else: found = Term(sources.setdefault(self.vector(u), len(sources)), 0)
    return negated(found) if minus else found

  def constant_term(self, u: UOp, sources: Sources) -> Term:
    """A constant as an operand. If it has no code in the instruction, it is in a register; a number of float16 is in
    both halves of it."""
    bits = constant_bits(u)
    if bits in KINDS["f32"].codes: return Term(-1, bits)
    if not is_number_of(dtypes.float16, u.arg):
      return Term(sources.setdefault(self.in_vector(bits, 4), len(sources)), 0)
    return Term(sources.setdefault(self.in_vector(float_bits(u.arg, "e") * 0x10001, 4), len(sources)), 0, 0)

  def half_term(self, u: UOp, sources: Sources) -> Term:
    """A 16-bit value, in place."""
    group, number = self.halves.get(u) or (self.vector(u), 0)
    return Term(sources.setdefault(group, len(sources)), number // 2, number % 2)

def negated(term: Term) -> Term: return term._replace(negated=not term.negated)
