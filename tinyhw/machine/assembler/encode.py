"""Encode instructions that are words of 32 bits: MInst -> 4 bytes, and a function with its jumps.

A jump that does not reach its block is an error that says how far it reaches.
"""
from __future__ import annotations
import struct

from tinyhw.errors import EncodeError
from tinyhw.machine.assembler.form import WordForm
from tinyhw.machine.ir.inst import Block, Function, MInst

BYTES = 4

def encode(inst: MInst) -> bytes:
  """The bytes of an instruction over physical registers, in memory order (little endian)."""
  return struct.pack("<I", word_of(inst, inst.operands))

def word_of(inst: MInst, operands: list[object]) -> int:
  """The word of an instruction with other operands. Raises EncodeError with the operand and the values that fit."""
  form: WordForm = inst.row.isa
  if len(operands) != form.count:
    raise EncodeError(f"{form.mnemonic}: it has {form.count} operands, got {len(operands)}")
  word = form.value
  for at, (hole, start, pieces) in enumerate(zip(form.holes, form.starts, form.pieces)):
    try: code = hole.code(operands[start:start + len(hole.names)])
    except EncodeError as e: raise EncodeError(f"{form.mnemonic} {form.text}: operand {at + 1} {e.message}") from None
    for low, mask, shift in pieces: word |= (code >> low & mask) << shift
  reason = form.clash(operands)
  if reason: raise EncodeError(f"{form.mnemonic}: {reason}")
  return word

def encode_function(function: Function) -> tuple[bytes, list[tuple[int, MInst]]]:
  """The bytes of a function in its block order, and the offset of each instruction.

  A literal (bytes as the operand of a load) stands after the code, once for equal ones, at a multiple of its size.
  """
  places: list[tuple[int, MInst]] = []
  offsets: dict[Block, int] = {}
  for block in function.blocks:
    offsets[block] = BYTES * len(places)
    places += [(BYTES * (len(places) + k), inst) for k, inst in enumerate(block.insts)]
  tail, literals = pooled(places)
  words = [word_of(inst, resolved(inst, offset, offsets, literals)) for offset, inst in places]
  return struct.pack(f"<{len(words)}I", *words) + tail, places

def pooled(places: list[tuple[int, MInst]]) -> tuple[bytes, dict[bytes, int]]:
  """The bytes after the code, and the offset of each literal. Long ones come first, so all are aligned."""
  found = {inst.operands[inst.row.isa.block] for _, inst in places if inst.row.isa.block >= 0}
  literals = sorted((data for data in found if isinstance(data, bytes)), key=lambda data: (-len(data), data))
  end = BYTES * len(places)
  tail = bytes(-end % 16) if literals else b""
  offsets: dict[bytes, int] = {}
  for data in literals:
    offsets[data] = end + len(tail)
    tail += data
  return tail, offsets

def resolved(inst: MInst, offset: int, offsets: dict[Block, int], literals: dict[bytes, int]) -> list[object]:
  """The operands of an instruction, with the distance in place of a block or literal."""
  at = inst.row.isa.block
  if at < 0 or not isinstance(inst.operands[at], (Block, bytes)): return inst.operands
  block = inst.operands[at]
  if isinstance(block, bytes): return [*inst.operands[:at], literals[block] - offset, *inst.operands[at + 1:]]
  if block not in offsets: raise EncodeError(f"{inst.row.name}: block {block!r} is not in the function")
  return [*inst.operands[:at], offsets[block] - offset, *inst.operands[at + 1:]]
