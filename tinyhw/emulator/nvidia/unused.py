"""Results of warps' instructions that nothing reads (unused.py). What a guard lets be written overwrites nothing: other lanes keep the old value.
Code that goes where only registers tell (calls, indirect branches) is left alone.
"""
from __future__ import annotations
import functools

from tinyhw.emulator.errors import PageFault, StrictError
from tinyhw.emulator.nvidia.decoded import Decoded, Decoder
from tinyhw.emulator.nvidia.launch import Launch
from tinyhw.emulator.unused import Node, refuse, unused
from tinyhw.isa.sass import regs
from tinyhw.isa.sass.encode import BYTES
from tinyhw.isa.sass.syntax import show
from tinyhw.machine.inst import Effect

ANYWHERE = ("BRX", "CALL", "CALL.ABS", "RET", "BSYNC", "WARPSYNC.COLLECTIVE")
SCALAR = frozenset({"UR", "UP", "B"})

def check(launch: Launch, decoder: Decoder) -> None:
  """Raise UnusedResult for a kernel with results that nothing reads."""
  found: dict[int, Decoded] = {}
  work = [launch.code]
  while work:
    at = work.pop()
    if at in found: continue
    try: step = decoder.at(at)
    except (StrictError, PageFault): return  # a warp that comes there tells
    if step.inst.row.name in ANYWHERE: return
    found[at] = step
    work += follow(step, at)
  code = tuple((at - launch.code, decoder.read(at, BYTES)) for at in sorted(found))
  refuse(looked_at(launch.arch, code), f"kernel {launch.name}")

def follow(step: Decoded, at: int) -> list[int]:
  """The addresses that may come next."""
  values = dict(zip(step.inst.row.isa.index, step.inst.operands))
  always = (step.guard, step.inverted) == (regs.TRUE, False) and ("pp" not in values or values["pp"] is regs.PT and not values["pp_not"])
  if step.inst.row.name == "EXIT": return [] if always else [at + BYTES]
  if "t" not in values or not step.inst.row.effects & Effect.JUMP: return [at + BYTES]
  return [at + BYTES + values["t"], *([] if always else [at + BYTES])]

@functools.lru_cache(maxsize=256)
def looked_at(arch: str, code: tuple[tuple[int, bytes], ...]) -> tuple[tuple[int, str], ...]:
  """(offset, text) of the instructions whose results nothing reads. code: offsets and bytes of all that can be reached."""
  pieces = dict(code)
  decoder = Decoder(arch, lambda at, size: pieces[at])
  return unused({at: node(decoder.at(at), at) for at in pieces}, SCALAR)

def node(step: Decoded, at: int) -> Node:
  """An instruction with what it reads and writes."""
  reads, writes = frozenset(unit for unit, _ in step.uses.reads), frozenset(step.uses.writes)
  results = () if step.inst.row.effects & (Effect.STORE | Effect.BARRIER) else (writes,)
  return Node(show(step.inst, step.control), reads, writes if step.guard == regs.TRUE else frozenset(), results, False, tuple(follow(step, at)))
