"""Functions and single instructions from assembly text and bytes: what ISAs whose jumps name labels have in common.

An ISA's syntax.py parses a line. Here the lines become blocks, and the labels in jumps become those blocks.
"""
from __future__ import annotations
from collections.abc import Callable, Iterable

from tinyhw.errors import DecodeError, ParseError
from tinyhw.machine.ir.inst import Block, Function, MInst

def function_of(statements: Iterable[tuple[int, str]], parse: Callable[[str], MInst], name: str) -> Function:
  """The function of numbered lines, over physical registers. A line `.name:` is a label, and starts a block.

  `parse` leaves a label in a jump as text. Raises ParseError with the number of the line.
  """
  function = Function(name)
  blocks: dict[str, Block] = {}
  block = function.new_block()
  for number, line in statements:
    if line.endswith(":"):
      if line[:-1] in blocks: raise ParseError(f"line {number}: {line[:-1]} stands twice")
      block = blocks[line[:-1]] = function.new_block(name=line[1:-1])
    else:
      try: block.insts.append(parse(line))
      except ParseError as e: raise ParseError(f"line {number}: {e.message}") from None
  for block in function.blocks:
    for inst in block.insts: resolve(inst, blocks)
  return function

def resolve(inst: MInst, blocks: dict[str, Block]) -> None:
  """Put the block in the place of a jump's label."""
  at = inst.row.isa.block
  if at < 0 or not isinstance(inst.operands[at], str): return
  if inst.operands[at] not in blocks: raise ParseError(f"no line is the label {inst.operands[at]}:")
  inst.operands[at] = blocks[inst.operands[at]]

def whole_text(code: bytes, decode: Callable[[bytes], tuple[MInst, int]], show: Callable[[MInst], str]) -> str:
  """The text of the one instruction that makes up all of the bytes. Raises DecodeError if some are left."""
  inst, size = decode(code)
  if size < len(code):
    raise DecodeError(f"{show(inst)} ends after {size} bytes; these are left: {code[size:].hex(' ')}")
  return show(inst)
