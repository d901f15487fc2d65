"""Placement of code that belongs to an edge of the control flow graph.

If the source has one successor, the code is placed before the source's jumps. If the target has one predecessor, the
code is placed at the target's start. Otherwise the edge is critical. Copies on a critical edge may still precede the
jumps if they destroy nothing that another successor needs, which is the usual case for a loop's back-edge. Otherwise a
block is put on the edge.
"""
from __future__ import annotations
from typing import TYPE_CHECKING

from tinyhw.machine.ir.inst import Block, Effect, Function
from tinyhw.machine.ir.liveness import Edge, bits, first_jump
from tinyhw.machine.ir.target import Target

if TYPE_CHECKING:
  from tinyhw.machine.allocate.allocate import RegisterAllocator, Pairs

def split(function: Function, target: Target, edge: Edge, source: Block, successor: Block, depth: int) -> Block:
  """Make a new block on the edge that jumps to the successor.

  The edge's jump passes its arguments through the block unchanged: they move to the block's jump.
  """
  block = Block(max(b.id for b in function.blocks) + 1, depth, "edge")
  function.blocks.insert(function.blocks.index(source) + 1, block)
  jump = target.jump(successor)
  assert jump.row.effects & Effect.JUMP and jump.row.effects & Effect.END, (f"{target.name}: target.jump must make a "
                                                                            f"row with JUMP and END")
  if edge.jump.arguments:
    jump.arguments = (edge.jump.arguments[edge.operand],)
    edge.jump.arguments = tuple([] if k == edge.operand else a for k, a in enumerate(edge.jump.arguments))
  block.insts.append(jump)
  places = [i for i, o in enumerate(edge.jump.operands) if isinstance(o, Block)]
  edge.jump.operands[places[edge.operand]] = block
  return block

def put_on_edge(allocator: RegisterAllocator, edge: Edge, pairs: Pairs) -> None:
  """Place the copies of an edge whose source has just been allocated."""
  flow = allocator.flow
  source, successor = flow.blocks[edge.source], flow.blocks[edge.target]
  out = flow.out[edge.source]
  read = _read_by_jumps(allocator, source)
  first = len(out) == 1 or allocator.hoisted is None and len(flow.into[edge.target]) > 1
  if first and not _destroys(allocator, edge, pairs, read):
    free = [units & ~kept for units, kept in zip(allocator.free, read)]  # the jumps still read these
    source.insts.insert(first_jump(source), allocator.parallel(pairs, free))
    allocator.hoisted = edge
    return
  copy = allocator.parallel(pairs, allocator.free)
  if len(flow.into[edge.target]) == 1: allocator.prefix.setdefault(edge.target, []).append(copy)
  else:
    block = split(allocator.function, allocator.target, edge, source, successor, min(source.depth, successor.depth))
    block.insts.insert(0, copy)

def _read_by_jumps(allocator: RegisterAllocator, block: Block) -> list[int]:
  """Per bank, the units that the jumps at a block's end read."""
  file = allocator.file
  read = [0] * len(file.banks)
  for jump in block.insts[first_jump(block):]:
    for i in jump.row.reads:
      r = jump.operands[i]
      if r is None or r.cls not in file.views: continue
      view = file.views[r.cls]
      read[view.bank] |= view.mask << file.banks[view.bank].unit_of[r.index]
  return read

def _destroys(allocator: RegisterAllocator, edge: Edge, pairs: Pairs, read: list[int]) -> bool:
  """Whether the copies overwrite a register that the jumps (`read`) or another edge need."""
  where, views, file = allocator.where, allocator.views, allocator.file
  written = [0] * len(file.banks)
  for dst, _ in pairs:
    view = file.views[dst.cls]
    written[view.bank] |= view.mask << file.banks[view.bank].unit_of[dst.index or 0]
  if any(a & b for a, b in zip(written, read)): return True
  for other in allocator.flow.out[edge.source]:
    if other is edge: continue
    params, starts = allocator.liveness.params[other.target], allocator.liveness.starts[other.target]
    needed = set(bits(allocator.liveness.live_in[other.target]))
    needed.update(a.id for p, a in zip(params, other.arguments) if a.index is None and p in starts)
    if any(views[v].mask << where[v] & written[views[v].bank] for v in needed): return True
  return False
