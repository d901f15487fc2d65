"""Text of a function, for DUMP and for errors: blocks with parameters, instructions with virtual (%7:r64) or physical
registers.

It is for people and for comparing in tests. An ISA's own syntax, which parses back, is in its syntax.py.
"""
from __future__ import annotations
from collections.abc import Sequence

from tinyhw.machine.ir.inst import Block, Effect, Function, MInst
from tinyhw.machine.ir.pseudo import PARALLEL

def show_inst(inst: MInst) -> str:
  """One instruction: written operands (of BOTH: new<-old), the others in their order, arguments after their block."""
  row, parts, old = inst.row, [], list(inst.ties)
  if row is PARALLEL:
    return "parallel " + ", ".join(f"{d!r} <- {s!r}" for d, s in zip(inst.operands[::2], inst.operands[1::2]))
  passed = list(inst.arguments)
  for i, operand in enumerate(inst.operands):
    if operand is None: continue
    text = repr(operand)
    if i in row.both and old: text += f"<-{old.pop(0)!r}"
    elif i in row.writes and i not in row.both: text += "="
    if isinstance(operand, Block) and passed:
      values = passed.pop(0)
      if values: text += f"({', '.join(map(repr, values))})"
    parts.append(text)
  return f"{row.name} {', '.join(parts)}".rstrip()

def show_block(block: Block, controls: Sequence[object] = ()) -> list[str]:
  """A block's lines, its name first."""
  params = f"({', '.join(map(repr, block.params))})" if block.params else ""
  lines = [f"{block!r}{params}:" + (f"  ; depth {block.depth}" if block.depth else "")]
  words = [f"  {control} " for control in controls] or ["  "] * len(block.insts)
  for word, inst in zip(words, block.insts):
    text = f"{word}{show_inst(inst)}"
    lines.append(f"{text:<60}; {inst.comment}" if inst.comment else text)
  if block.insts and not block.insts[-1].row.effects & Effect.END: lines.append("  ; falls through")
  return lines

def show(function: Function) -> str:
  """The whole function. Its frame and pinned parameters are in the first line."""
  notes = [f"stack {function.stack_bytes}"] if function.stack_bytes else []
  if function.spills or function.reloads: notes.append(f"{function.spills} spills, {function.reloads} reloads")
  if function.fixed_params:
    notes.append("parameters in " + ", ".join(f"{i}: {unit}" for i, unit in sorted(function.fixed_params.items())))
  lines = [f"function {function.name}" + (f"  ; {'; '.join(notes)}" if notes else "")]
  for block in function.blocks: lines += show_block(block, function.controls.get(block, ()))
  return "\n".join(lines)
