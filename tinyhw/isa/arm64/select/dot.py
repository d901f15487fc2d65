"""Sums of products of bytes (DOT4) and of pairs of bfloat16 (DOT2) for AArch64: which rule fits the signs of the bytes,
and products of bytes with and without signs where no instruction has them.

Of an unsigned a and a signed b, a * b = (a - 128) * b + 128 * b. a - 128 is a with its highest bit flipped, as signed
bytes. The second term is the sum of b's bytes, times 128. A chain of DOT4s owes it until its end, and it depends on the
words b only. So the rows that a kernel multiplies by the same words share it.
"""
from __future__ import annotations
from collections.abc import Iterator
from typing import Any

from tinyhw.dtype import dtypes
from tinyhw.isa.arm64.select.part import Part, arrangement
from tinyhw.machine.ir.inst import Reg
from tinyhw.machine.select.rules import SelectionRule
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp
from tinyhw.uop.symbolic.words import bits_of_bytes

# operations whose first two sources may be exchanged for a rule
PRODUCTS = frozenset({Ops.MUL, Ops.MULACC, Ops.DOT4, Ops.DOT2})
FLIP = 0x80808080

def orders(u: UOp, rule: SelectionRule) -> Iterator[list[UOp]]:
  """The sources in the orders in which a rule may take them: as they are, and factors exchanged."""
  sources = list(u.src)
  if fits_signs(rule.signs, sources): yield sources
  if u.op not in PRODUCTS or not (rule.signs or rule.condition == "b:element"): return
  sources[:2] = sources[1::-1]
  if fits_signs(rule.signs, sources): yield sources

def fits_signs(signs: str, sources: list[UOp]) -> bool:
  """Whether the bytes of words have signs (s) or none (u). Bytes below 128 are the same numbers in both."""
  return all(dtypes.is_unsigned(word.dtype.scalar()) if sign == "u" else
             word.dtype.scalar() in dtypes.sints or bits_of_bytes(word) < 128 for sign, word in zip(signs, sources))

class Dots(Part):
  """Products of bytes. owed: DOT4s whose register lacks 128 times the sum of the bytes of these words."""

  def mixed(self, u: UOp) -> Reg:
    """A DOT4 of unsigned and signed bytes, by the rule for signed ones."""
    a, b, total = u.src
    if not dtypes.is_unsigned(a.dtype.scalar()): a, b = b, a
    flipped = self.code("eor v%d.16b, v%a.16b, v%k.16b", a=self.value(a), k=self.constant(dtypes.uint32.vec(4), FLIP))
    owed = (*self.owed.pop(total, ()), b)
    values: dict[str, Any] = {"a": flipped, "b": self.value(b), "c": self.value(total)}
    rule = next(rule for rule in self.rules[u.op, dtypes.int32] if rule.signs == "ss" and not rule.condition)
    for text in rule.lines: self.put(self.spelled(text, u.dtype, {}), values)
    made: Reg = values["d"]
    users = self.users[u]
    if len(users) == 1 and users[0].op is Ops.DOT4 and users[0].src[2] is u and self.is_mixed(users[0]):
      self.owed[u] = owed
      return made
    return self.code("add v%d.4s, v%a.4s, v%b.4s", a=made, b=self.sum_of_bytes(owed))

  def is_mixed(self, u: UOp) -> bool:
    """Whether no rule fits the signs of a DOT4."""
    return not any(True for rule in self.rules[u.op, dtypes.int32] for _ in orders(u, rule))

  def sum_of_bytes(self, words: tuple[UOp, ...]) -> Reg:
    """128 times the sum of the signed bytes of words, in each lane; made once in a block."""
    def make() -> Reg:
      one = self.code("saddlp v%p.8h, v%a.16b; saddlp v%q.4s, v%p.8h; shl v%d.4s, v%q.4s, #7", a=self.value(words[-1]))
      if len(words) == 1: return one
      return self.code("add v%d.4s, v%a.4s, v%b.4s", a=self.sum_of_bytes(words[:-1]), b=one)
    return self.shared(("sum of bytes", *words), make)

  def shifted_bytes(self, u: UOp) -> Reg | None:
    """(x >> n) & mask, where the mask keeps only what each byte of x has: bytes shifted by themselves."""
    if u.op is not Ops.AND or u.dtype.scalar() is not dtypes.uint32 or u.src[0].op is not Ops.SHR: return None
    (x, n), mask = u.src[0].src, u.src[1]
    if n.op is not Ops.CONST or mask.op is not Ops.CONST or not 0 < n.arg < 8: return None
    if mask.arg != (255 >> n.arg) * 0x01010101: return None
    lanes = arrangement(1, u.dtype.itemsize)
    return self.code(f"ushr v%d.{lanes}, v%a.{lanes}, #{n.arg}", a=self.value(x))
