"""The reachable instructions of a kernel, found without executing any."""
from __future__ import annotations

from tinyhw.emulator.errors import PageFault, StrictError
from tinyhw.emulator.nvidia.execute.decoded import DecodedInstruction, DecodedCode
from tinyhw.emulator.nvidia.warp.launch import LaunchParameters
from tinyhw.isa.sass.asm.encode import BYTES
from tinyhw.isa.sass.table import regs
from tinyhw.isa.sass.table.form import Generation
from tinyhw.isa.sass.table.uses import PRODUCTS
from tinyhw.machine.ir.inst import Effect

ANYWHERE = ("BRX", "CALL", "CALL.ABS", "RET", "BSYNC", "WARPSYNC.COLLECTIVE")   # registers determine their target
ASYNCHRONOUS = frozenset({PRODUCTS, "tma"})     # pipes that read and write shared memory along with the warps
MBARRIER = "SYNCS"
KEPT = 256   # kernels

def reachable(code: int, decoder: DecodedCode) -> tuple[dict[int, DecodedInstruction], bool]:
  """Return the instructions by address, and whether these are all. code: the address of the first one."""
  found: dict[int, DecodedInstruction] = {}
  work, whole = [code], True
  while work:
    at = work.pop()
    if at in found: continue
    try: step = found[at] = decoder.at(at)
    except (StrictError, PageFault): whole = False  # a warp that comes there raises it
    else:
      if step.inst.row.name in ANYWHERE: whole = False
      else: work += successors(step, at)
  return found, whole

def successors(step: DecodedInstruction, at: int) -> list[int]:
  """Return the possible addresses of the next instruction."""
  values = dict(zip(step.inst.row.isa.index, step.inst.operands))
  always = (step.guard, step.inverted) == (regs.TRUE, False) and ("pp" not in values or values["pp"] is regs.PT
                                                                  and not values["pp_not"])
  if step.inst.row.name == "EXIT": return [] if always else [at + BYTES]
  if step.inst.row.name == "BSSY": return [at + BYTES + values["t"], at + BYTES]   # it names the target of BSYNC
  if "t" not in values or not step.inst.row.effects & Effect.JUMP: return [at + BYTES]
  return [at + BYTES + values["t"], *([] if always else [at + BYTES])]

_kept: dict[tuple[str, int], tuple[bytes, bool]] = {}

def is_asynchronous(launch: LaunchParameters, decoder: DecodedCode) -> bool:
  """Return whether a kernel has asynchronous instructions on shared memory, or mbarriers.

  The answer is kept for a kernel whose instructions are all known, as long as its code is the same.
  """
  if not Generation(launch.arch).has("9+"): return False
  key = launch.arch, launch.code
  code, answer = _kept.get(key, (b"", False))
  if code and same(code, launch.code, decoder): return answer
  steps, whole = reachable(launch.code, decoder)
  answer = any(step.inst.row.pipe in ASYNCHRONOUS or step.inst.row.isa.mnemonic == MBARRIER for step in steps.values())
  _kept.pop(key, None)
  if whole: _kept[key] = decoder.read(launch.code, max(steps) + BYTES - launch.code), answer
  if len(_kept) > KEPT: del _kept[next(iter(_kept))]
  return answer

def same(code: bytes, address: int, decoder: DecodedCode) -> bool:
  """Return whether the same bytes are at an address."""
  try: return decoder.read(address, len(code)) == code
  except (StrictError, PageFault): return False
