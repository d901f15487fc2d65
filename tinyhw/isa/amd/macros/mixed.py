"""Macros of float16 and float32 mixed: instructions that read 16-bit elements of groups where they stand, and round
results into them.

v_fma_mix computes a fused product and sum in float32; each source is a register, or a half of one that it converts, and
the result is float32 or is rounded to one half of a register, of which the other stays. So a conversion is x * 1.0 +
-0.0. v_pk_add_f16 and v_pk_mul_f16 do both halves at
once, in float16: the same bits as float32 rounded, since 24 bits are enough for sums and products of 11 (Figueroa 1995,
When is double rounding innocuous?). What is to be computed is select/mixed.py's.
"""
from __future__ import annotations
import functools
from typing import Any

from tinyhw.isa.amd.macros.macros import registers
from tinyhw.isa.amd.table import regs
from tinyhw.isa.amd.table.form import Generation
from tinyhw.isa.amd.table.table import build, table
from tinyhw.machine.ir.inst import Access, Inst, MInst, Operand, RegClass
from tinyhw.machine.select.macros import MACRO
from tinyhw.named_tuple import NamedTuple
from tinyhw.once import once

class Term(NamedTuple):
  """An operand: a word of a source of the macro (its number; -1: the word is a constant), which half of it (None:
  all), and whether it is negated."""
  source: int
  word: int
  half: int | None = None
  negated: bool = False

class Fused(NamedTuple):
  """a * b + c in float32."""
  a: Term
  b: Term
  c: Term

class Pair(NamedTuple):
  """What one instruction does for both halves of a word: its key, and for each operand the terms of the low and the
  high half."""
  key: str
  operands: tuple[tuple[Term, Term], ...]

Word = Pair | tuple[Fused, Fused]

UNIT, NOTHING = Term(-1, 0x3f800000), Term(-1, 0, negated=True)   # 1.0, and -0.0: a sum with it is what it is added to

@once
def rounded_row(generation: Generation, cls: RegClass, sources: tuple[RegClass, ...], words: tuple[Word, ...]) -> Inst:
  """A macro that makes a group of float16."""
  return _row("rounded", generation, cls, sources, functools.partial(_rounded, words))

@once
def fused_row(generation: Generation, sources: tuple[RegClass, ...], fused: Fused) -> Inst:
  """A macro that makes a float32."""
  return _row("mixed", generation, regs.V[1], sources, functools.partial(_fused, fused))

def _row(name: str, generation: Generation, cls: RegClass, sources: tuple[RegClass, ...], made: Any) -> Inst:
  early = name == "rounded"   # which writes its first word before it has read all sources
  operands = [Operand("d", Access.WRITE, cls, early=early),
              *(Operand(f"a{k}", Access.READ, c) for k, c in enumerate(sources))]
  return Inst(f"{name}_{cls.name}", MACRO, tuple(operands), "valu", 0, isa=(generation, made))

def _rounded(words: tuple[Word, ...], generation: Generation, operands: list[Any]) -> list[MInst]:
  """All low halves before the high ones, so that no instruction waits for the one before it."""
  group, *sources = operands
  found: list[MInst] = []
  for high in (0, 1):
    for d, word in zip(registers(group), words):
      if not isinstance(word, Pair):
        found.append(_mix(generation, ("v_fma_mixlo_f16", "v_fma_mixhi_f16")[high], d, word[high], sources))
      elif not high: found.append(_pair(generation, d, word, sources))
  return found

def _fused(fused: Fused, generation: Generation, operands: list[Any]) -> list[MInst]:
  d, *sources = operands
  if fused[1:] == (UNIT, NOTHING) and fused.a.half == 0 and not fused.a.negated:
    return [build(table(generation.arch)["v_cvt_f32_f16"], d, _register(fused.a, sources))]   # shorter
  return [_mix(generation, "v_fma_mix_f32", d, fused, sources)]

def _register(term: Term, sources: list[Any]) -> Any:
  return term.word if term.source < 0 else registers(sources[term.source])[term.word]

def _bits(flags: list[bool]) -> int: return sum(1 << k for k, flag in enumerate(flags) if flag)

def _mix(generation: Generation, key: str, d: Any, fused: Fused, sources: list[Any]) -> MInst:
  """op_sel_hi: the source is half of a register; op_sel: the high one."""
  return build(table(generation.arch)[key], d, *(_register(t, sources) for t in fused),
               neg=_bits([t.negated for t in fused]),
               op_sel=_bits([t.half == 1 for t in fused]), op_sel_hi=_bits([t.half is not None for t in fused]))

def _pair(generation: Generation, d: Any, pair: Pair, sources: list[Any]) -> MInst:
  """op_sel and op_sel_hi: which half of the source the low and the high half of the result take."""
  low, high = [t for t, _ in pair.operands], [t for _, t in pair.operands]
  return build(table(generation.arch)[pair.key], d, *(_register(t, sources) for t in low),
               op_sel=_bits([t.half == 1 for t in low]),
               op_sel_hi=_bits([t.half == 1 for t in high]), neg_lo=_bits([t.negated for t in low]),
               neg_hi=_bits([t.negated for t in high]))
