"""Instructions between lanes: DPP permutations of a source, lane reads and writes, row permutations, swaps. LDS
permutations are in transfer_local.py.

A table of moves gives for each lane the lane that it reads, -1 for none. Sources: ISA guides of RDNA3 and CDNA3, "Data
Parallel Processing" and the instructions' descriptions; DPP control numbers as in LLVM's AMDGPUAsmUtils.
"""
from __future__ import annotations
from collections.abc import Callable
from typing import TYPE_CHECKING

from tinyhw.emulator.amd.execute.transfer import row_at
from tinyhw.emulator.errors import UninitialisedRead, UnknownInstruction
from tinyhw.isa.amd.table import regs
from tinyhw.machine.ir.inst import Reg
from tinyhw.named_tuple import NamedTuple
from tinyhw.threads import once

if TYPE_CHECKING:
  from tinyhw.emulator.amd.execute.arithmetic import Mode, NamedOperands
  from tinyhw.emulator.amd.execute.state import Wave

Run = Callable[["Wave"], None]

class LanePermutation(NamedTuple):
  """A permutation of a source's lanes. enabled: lanes that row_mask and bank_mask let write, as bits.

  zero: a lane without a source reads 0 (else it is not written). any_lane: sources need not be active.
  """
  source: tuple[int, ...]
  enabled: int
  zero: bool
  any_lane: bool

def dpp_moves(uses: NamedOperands, lanes: int) -> LanePermutation:
  """Return the permutation of an instruction with a DPP control."""
  if "dpp8" in uses.index:
    selects = uses["dpp8"]
    # Without fi an inactive lane gives 0, and the lane that reads it is written. Source: LLVM, AMDGPUModifierSyntax,
    # "fi" of dpp8
    return LanePermutation(tuple(lane & ~7 | selects >> 3 * (lane & 7) & 7 for lane in range(lanes)), (1 << lanes) - 1,
                           True,
                           bool(uses.get("fi")))
  rows, banks = uses["row_mask"], uses["bank_mask"]
  enabled = sum(1 << lane for lane in range(lanes) if rows >> (lane >> 4 & 3) & 1 and banks >> (lane >> 2 & 3) & 1)
  return LanePermutation(dpp_sources(uses["dpp_ctrl"], lanes), enabled, bool(uses["bound_ctrl"]), bool(uses.get("fi")))

@once
def dpp_sources(control: int, lanes: int) -> tuple[int, ...]:
  """Return for each lane the source lane of a DPP control, -1 if that is outside of the row (or wave)."""
  return tuple(_dpp_source(control, lane, lanes) for lane in range(lanes))

def _dpp_source(control: int, lane: int, lanes: int) -> int:
  """Return the source lane of one lane. Rows have 16 lanes."""
  row, place, n = lane & ~15, lane & 15, control & 15
  kind = control >> 4
  if control < 0x100: return lane & ~3 | control >> 2 * (lane & 3) & 3
  if kind == 0x10: return row + place + n if place + n < 16 else -1         # row_shl
  if kind == 0x11: return row + place - n if place >= n else -1             # row_shr
  if kind == 0x12: return row + (place - n & 15)                            # row_ror
  if control == 0x130: return lane + 1 if lane + 1 < lanes else -1          # wave_shl
  if control == 0x134: return (lane + 1) % lanes                            # wave_rol
  if control == 0x138: return lane - 1                                      # wave_shr
  if control == 0x13c: return (lane - 1) % lanes                            # wave_ror
  if control == 0x140: return row + 15 - place                              # row_mirror
  if control == 0x141: return lane & ~7 | 7 - (lane & 7)                    # row_half_mirror
  if control == 0x142: return row - 1 if row else -1                        # row_bcast:15
  if control == 0x143: return 31 if lane >= 32 else -1                      # row_bcast:31
  if kind == 0x15: return row + n                                           # row_share, row_newbcast
  if kind == 0x16: return row + (place ^ n)                                 # row_xmask
  raise UnknownInstruction(f"no DPP control has the number {control:#x}")

def permutation(wave: Wave, moves: LanePermutation) -> tuple[list[int], list[int]]:
  """Return (lanes that are written, source of each lane, -1 for a 0)."""
  active = wave.exec
  sources = [lane if lane >= 0 and (moves.any_lane or active >> lane & 1) else -1 for lane in moves.source]
  return [lane for lane in wave.active if moves.enabled >> lane & 1 and (moves.zero or sources[lane] >= 0)], sources

# ***** single lanes *****

def _value(uses: NamedOperands, name: str) -> Callable[[Wave], int]:
  """Return a reader of a scalar operand or constant."""
  value = uses[name]
  if not isinstance(value, Reg): return lambda wave: int(value)
  index = value.index
  assert index is not None, "a physical register is expected"
  return lambda wave: wave.s[index]

def _zero(wave: Wave) -> int: return 0

def _read_lane(wave: Wave, row: int, lane: int) -> int:
  if not wave.strict.vectors[row] >> lane & 1:
    raise UninitialisedRead(f"lane {lane} of v{row} is read and nothing has written it")
  return int(wave.u[row][lane])

def _readfirstlane(uses: NamedOperands, mode: Mode) -> Run:
  target, source = uses["vdst" if "vdst" in uses else "sdst"].index, uses["src0"]
  if source.cls.bank is regs.SGPR: return lambda wave: wave.set_wide(target, 1, wave.s[source.index])
  row = row_at(uses, "src0")
  def run(wave: Wave) -> None: wave.set_wide(target, 1, _read_lane(wave, row, wave.active[0] if wave.exec else 0))
  return run

def _readlane(uses: NamedOperands, mode: Mode) -> Run:
  target, row, lane = uses["vdst" if "vdst" in uses else "sdst"].index, row_at(uses, "src0"), _value(uses, "src1")
  def run(wave: Wave) -> None: wave.set_wide(target, 1, _read_lane(wave, row, lane(wave) % wave.lanes))
  return run

def _writelane(uses: NamedOperands, mode: Mode) -> Run:
  row, value, lane = row_at(uses, "vdst"), _value(uses, "src0"), _value(uses, "src1")
  def run(wave: Wave) -> None:
    place = lane(wave) % wave.lanes
    wave.u[row][place] = value(wave)
    wave.strict.set_vector(row, 1 << place)
  return run

# ***** whole rows *****

def _permute_rows(cross: bool, variable: bool) -> Callable[[NamedOperands, Mode], Run]:
  """v_permlane16 and v_permlanex16: each lane reads a lane of its own row of 16, or of the other row of a pair."""
  def bind(uses: NamedOperands, mode: Mode) -> Run:
    row, target, op_sel = row_at(uses, "src0"), row_at(uses, "vdst"), uses.get("op_sel")
    selects = row_at(uses, "src1") if variable else 0
    low, high = (_zero, _zero) if variable else (_value(uses, "src1"), _value(uses, "src2"))
    def run(wave: Wave) -> None:
      if variable: places = [n & 15 for n in wave.u[selects].tolist()]
      else:
        bits = low(wave) | high(wave) << 32
        places = [bits >> 4 * (lane & 15) & 15 for lane in range(wave.lanes)]
      moves = LanePermutation(tuple((lane & ~15) ^ 16 * cross | places[lane] for lane in range(wave.lanes)), wave.all,
                              bool(op_sel & 2), bool(op_sel & 1))
      written, sources = permutation(wave, moves)
      values = wave.moved(wave.u[row], sources)
      for lane in written: wave.u[target][lane] = values[lane]
    return run
  return bind

def _swap_halves(uses: NamedOperands, mode: Mode) -> Run:
  """v_permlane64: swap the two halves of a wave of 64 lanes."""
  row, target = row_at(uses, "src0"), row_at(uses, "vdst")
  def run(wave: Wave) -> None:
    values = wave.u[row].tolist()
    if wave.lanes == 64: values = values[32:] + values[:32]
    for lane in wave.active: wave.u[target][lane] = values[lane]
  return run

def _swap(uses: NamedOperands, mode: Mode) -> Run:
  first, second = row_at(uses, "vdst"), row_at(uses, "src0")
  def run(wave: Wave) -> None:
    a, b = wave.u[first].tolist(), wave.u[second].tolist()
    for lane in wave.active: wave.u[first][lane], wave.u[second][lane] = b[lane], a[lane]
  return run

def _swap_rows(size: int) -> Callable[[NamedOperands, Mode], Run]:
  """v_permlane16_swap, v_permlane32_swap: swap odd groups of `size` lanes of the first register with even ones of the
  second."""
  def bind(uses: NamedOperands, mode: Mode) -> Run:
    first, second = row_at(uses, "vdst"), row_at(uses, "src0")
    def run(wave: Wave) -> None:
      a, b = wave.u[first].tolist(), wave.u[second].tolist()
      for lane in range(wave.lanes):
        if lane & size: wave.u[first][lane] = b[lane - size]
        else: wave.u[second][lane] = a[lane + size]
    return run
  return bind

BUILDERS: dict[str, Callable[[NamedOperands, Mode], Run]] = {
  "v_readfirstlane_b32": _readfirstlane, "v_readlane_b32": _readlane, "v_writelane_b32": _writelane,
  "v_permlane16_b32": _permute_rows(False, False), "v_permlanex16_b32": _permute_rows(True, False),
  "v_permlane16_var_b32": _permute_rows(False, True), "v_permlanex16_var_b32": _permute_rows(True, True),
  "v_permlane64_b32": _swap_halves, "v_swap_b32": _swap, "v_permlane16_swap_b32": _swap_rows(16),
  "v_permlane32_swap_b32": _swap_rows(32),
}
ONE_LANE = frozenset({"v_readfirstlane_b32", "v_readlane_b32", "v_writelane_b32"})  # they check lanes themselves
