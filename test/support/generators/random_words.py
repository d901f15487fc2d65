"""Random instructions of an ISA of 32-bit words, over physical registers: random fields in the word of a row."""
from __future__ import annotations
import random

from tinyhw.machine.assembler.decode import operands_of
from tinyhw.machine.assembler.form import WordForm
from tinyhw.machine.ir.inst import Inst, MInst

TRIES = 5000

def random_instruction(row: Inst, rng: random.Random) -> MInst:
  """An instruction of a row. Fields of all zeros and all ones are as likely as others."""
  form: WordForm = row.isa
  for _ in range(TRIES):
    word = form.value
    for pieces in form.pieces:
      width = sum(bin(mask).count("1") for _, mask, _ in pieces)
      code = rng.choice((rng.getrandbits(width), rng.getrandbits(width), 0, (1 << width) - 1)) if width else 0
      for low, mask, shift in pieces: word |= (code >> low & mask) << shift
    operands = operands_of(form, word)
    if operands is not None and not form.clash(operands): return MInst(row, operands)
  raise AssertionError(f"{form.mnemonic} {form.text}: no operands found")
