"""Control instructions of a wave: branches, the end, barriers, waits, messages, modes, cache maintenance, and
instructions without effect.

Waits end events of strict.py. `WAITCNT` has the fields of s_waitcnt per architecture. Sources: ISA guides, LLVM's
AMDGPUBaseInfo for field positions.
"""
from __future__ import annotations
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tinyhw.emulator.errors import StrictError, UnknownInstruction
from tinyhw.emulator.memory.memory import AccessKind, Scope, AccessUnit
from tinyhw.isa.amd.table import regs
from tinyhw.machine.ir.inst import Reg

if TYPE_CHECKING:
  from tinyhw.emulator.amd.execute.arithmetic import Mode, NamedOperands
  from tinyhw.emulator.amd.execute.state import Wave

Run = Callable[["Wave"], None]
Builder = Callable[["NamedOperands", "Mode"], Run]

def nothing(wave: Wave) -> None: pass

def _nothing(uses: NamedOperands, mode: Mode) -> Run: return nothing

def scalar_value(value: Any) -> Callable[[Wave], int]:
  """Return a reader of a scalar register or constant. It returns 0 if there is none."""
  if not isinstance(value, Reg): return lambda wave: int(value or 0)
  index = value.index
  assert index is not None, "a physical register is expected"
  return lambda wave: wave.s[index]

def signed16(n: int) -> int: return (n & 0xffff ^ 0x8000) - 0x8000

# ***** branches *****

CONDITIONS: dict[str, Callable[[Wave], bool]] = {
  "s_branch": lambda wave: True,
  "s_cbranch_scc0": lambda wave: not wave.scc, "s_cbranch_scc1": lambda wave: bool(wave.scc),
  "s_cbranch_vccz": lambda wave: not wave.mask(regs.VCC), "s_cbranch_vccnz": lambda wave: wave.mask(regs.VCC) != 0,
  "s_cbranch_execz": lambda wave: not wave.exec, "s_cbranch_execnz": lambda wave: wave.exec != 0,
}

def _branch(condition: Callable[[Wave], bool]) -> Builder:
  def bind(uses: NamedOperands, mode: Mode) -> Run:
    distance = 4 * signed16(uses["simm16"])
    def run(wave: Wave) -> None:
      if condition(wave): wave.pc += distance
    return run
  return bind

def _call(uses: NamedOperands, mode: Mode) -> Run:
  target, distance = uses["sdst"].index, 4 * signed16(uses["simm16"])
  def run(wave: Wave) -> None:
    wave.set_wide(target, 2, wave.pc)
    wave.pc += distance
  return run

def _end(uses: NamedOperands, mode: Mode) -> Run:
  def run(wave: Wave) -> None: wave.ended = True
  return run

def _refuse(why: str) -> Builder:
  """Return a builder for an instruction that a wave must never reach."""
  def bind(uses: NamedOperands, mode: Mode) -> Run:
    def run(wave: Wave) -> None: raise StrictError(f"{uses.name}: {why}")
    return run
  return bind

# ***** barriers *****

def _barrier(uses: NamedOperands, mode: Mode) -> Run:
  def run(wave: Wave) -> None: wave.waiting = True
  return run

def _barrier_signal(uses: NamedOperands, mode: Mode) -> Run:
  if uses["ssrc0"] not in (-1, 0xffffffff):
    raise UnknownInstruction("only barrier -1, that of the workgroup, is emulated")
  def run(wave: Wave) -> None:
    if wave.signalled:
      raise StrictError("s_barrier_signal comes twice without s_barrier_wait between; wait for the first barrier")
    wave.signalled = True
  return run

def _barrier_wait(uses: NamedOperands, mode: Mode) -> Run:
  if signed16(uses["simm16"]) != -1: raise UnknownInstruction("only barrier -1, that of the workgroup, is emulated")
  def run(wave: Wave) -> None:
    if not wave.signalled:
      raise StrictError("s_barrier_wait without s_barrier_signal before: this wave would wait for ever")
    wave.signalled, wave.waiting = False, True
  return run

# ***** waits *****

# (counter, lowest bit, bits) of s_waitcnt; a second entry has further bits of a counter
WAITCNT = {
  "gfx9": (("vmcnt", ((0, 4), (14, 2))), ("lgkmcnt", ((8, 4),))),
  "gfx11": (("vmcnt", ((10, 6),)), ("lgkmcnt", ((4, 6),))),
}
WAITS = {"s_wait_loadcnt": ("loadcnt",), "s_wait_storecnt": ("storecnt",), "s_wait_dscnt": ("dscnt",),
         "s_wait_kmcnt": ("kmcnt",),
         "s_wait_loadcnt_dscnt": ("dscnt", "loadcnt"), "s_wait_storecnt_dscnt": ("dscnt", "storecnt"),
         "s_waitcnt_vscnt": ("vscnt",),
         "s_waitcnt_vmcnt": ("vmcnt",), "s_waitcnt_lgkmcnt": ("lgkmcnt",)}

def wait_limits(name: str, immediate: int, arch: str) -> list[tuple[str, int]]:
  """Return (counter, how many may be outstanding) for each counter of a wait."""
  if name == "s_wait_idle":
    return [(counter, 0) for counter in ("vmcnt", "vscnt", "lgkmcnt", "loadcnt", "storecnt", "dscnt", "kmcnt")]
  if name == "s_waitcnt":
    family = "gfx9" if arch.startswith("gfx9") else "gfx11"
    if arch.startswith("gfx12"):
      raise UnknownInstruction("s_waitcnt waits for nothing that gfx12 counts; use s_wait_loadcnt, s_wait_dscnt ...")
    limits = []
    for counter, pieces in WAITCNT[family]:
      value = shift = 0
      for low, bits in pieces:
        value |= (immediate >> low & (1 << bits) - 1) << shift
        shift += bits
      limits.append((counter, value))
    return limits
  counters = WAITS[name]
  return [(counter, immediate >> 8 * i & 63) for i, counter in enumerate(counters)]

def _wait(uses: NamedOperands, mode: Mode) -> Run:
  limits = wait_limits(uses.name, uses.get("simm16"), mode.arch)
  def run(wave: Wave) -> None:
    if wave.strict.outstanding:
      for counter, limit in limits: wave.strict.wait(counter, limit)
  return run

def _wait_alu(uses: NamedOperands, mode: Mode) -> Run:
  """s_waitcnt_depctr, s_wait_alu: the issued ALU instructions are done. Fields that are 0 end their hazards."""
  immediate = uses["simm16"]
  return lambda wave: wave.strict.hazards.wait_alu(immediate)

# ***** modes, messages *****

def _denorm_mode(uses: NamedOperands, mode: Mode) -> Run:
  value = uses["simm16"] & 15
  return lambda wave: wave.set_mode(wave.mode & ~0xf0 | value << 4)

def _round_mode(uses: NamedOperands, mode: Mode) -> Run:
  value = uses["simm16"] & 15
  return lambda wave: wave.set_mode(wave.mode & ~0xf | value)

HWREG_MODE, HWREG_XCC_ID = 1, 20

def _setreg(uses: NamedOperands, mode: Mode) -> Run:
  place = uses["simm16"]
  register, low, size = place & 63, place >> 6 & 31, (place >> 11 & 31) + 1
  if register != HWREG_MODE:
    raise UnknownInstruction(f"writing hardware register {register} is not emulated, only MODE (1)")
  mask = (1 << size) - 1 << low
  source = scalar_value(uses["literal"] if "literal" in uses else uses["sdst"])
  def run(wave: Wave) -> None:
    value = source(wave)
    wave.set_mode(wave.mode & ~mask | value << low & mask)
  return run

def _getreg(uses: NamedOperands, mode: Mode) -> Run:
  place, target = uses["simm16"], uses["sdst"].index
  register, low, size = place & 63, place >> 6 & 31, (place >> 11 & 31) + 1
  if register not in (HWREG_MODE, HWREG_XCC_ID):
    raise UnknownInstruction(f"reading hardware register {register} is not emulated, only MODE (1) and XCC_ID (20)")
  def run(wave: Wave) -> None:
    value = wave.mode if register == HWREG_MODE else wave.xcc
    wave.set_wide(target, 1, value >> low & (1 << size) - 1)
  return run

MSG_DEALLOC_VGPRS, MSG_RTN_GET_REALTIME = 3, 131

def _message(uses: NamedOperands, mode: Mode) -> Run:
  number = uses["simm16"] & 0xff
  if number != MSG_DEALLOC_VGPRS or mode.cdna:
    raise UnknownInstruction(f"message {number} is not emulated, only DEALLOC_VGPRS (3)")
  return lambda wave: wave.strict.vectors.clear()  # no vector register exists from here on

def _message_return(uses: NamedOperands, mode: Mode) -> Run:
  number = uses["ssrc0"]
  target, count = uses["sdst"].index, uses.count("sdst")
  if number != MSG_RTN_GET_REALTIME:
    raise UnknownInstruction(f"message {number} is not emulated, only RTN_GET_REALTIME (131)")
  return lambda wave: wave.set_wide(target, count, wave.clock())

def _time(uses: NamedOperands, mode: Mode) -> Run:
  target = uses["sdata"].index
  return lambda wave: wave.set_wide(target, 2, wave.clock())

# ***** caches *****

def cache_scope(uses: NamedOperands, mode: Mode) -> Scope:
  """Return the scope of an access or a cache operation."""
  if mode.arch.startswith("gfx12"): return Scope(uses.get("scope"))
  if mode.cdna: return Scope(2 * uses.get("sc1") + uses.get("sc0"))
  return Scope.DEVICE if uses.get("glc") else Scope.UNIT

def _cache(invalidate: bool, write_back: bool, unit: AccessUnit = AccessUnit.VECTOR,
           scope: Scope | None = None) -> Builder:
  """Return a builder for a cache operation. Without a scope it uses the instruction's."""
  def bind(uses: NamedOperands, mode: Mode) -> Run:
    kind = AccessKind(unit, cache_scope(uses, mode) if scope is None else scope)
    def run(wave: Wave) -> None:
      if write_back: wave.memory.write_back(kind)
      if invalidate: wave.memory.invalidate(kind)
    return run
  return bind

def _s_sleep(uses: NamedOperands, mode: Mode) -> Run: return nothing

def _movrel(source_relative: bool, count: int) -> Builder:
  """s_movrels, s_movreld: M0 is added to the number of the source or of the destination."""
  def bind(uses: NamedOperands, mode: Mode) -> Run:
    target, source = uses["sdst"].index, uses["ssrc0"]
    origin = source.index if isinstance(source, Reg) and source.index is not None else 0
    def run(wave: Wave) -> None:
      offset = wave.s[regs.M0]
      first = origin + offset * source_relative
      if isinstance(source, Reg) and not all(wave.strict.scalars >> first + i & 1 for i in range(count)):
        raise StrictError(f"s{first}, chosen by M0, is read and nothing has written it")
      place = target + offset * (not source_relative)
      wave.set_wide(place, count, wave.wide(first, count) if isinstance(source, Reg) else source)
      wave.strict.set_scalars((1 << count) - 1 << place)
    return run
  return bind

# instructions that only change the state of strict.py
FOR_STRICT = frozenset({*WAITS, "s_waitcnt", "s_wait_idle", "s_waitcnt_depctr", "s_wait_alu"})
# A block ends after these. The next instruction is not the following one, or it depends on their effect. Or strict.py
# must check them as they execute
ALONE = frozenset({"s_sendmsg", "s_movrels_b32", "s_movrels_b64", "s_movreld_b32", "s_movreld_b64"})
ENDS = frozenset({*CONDITIONS, *ALONE, "s_call_b64", "s_setpc_b64", "s_swappc_b64"})
BREAKS = frozenset({"s_endpgm", "s_barrier", "s_barrier_wait", "s_denorm_mode", "s_round_mode", "s_setreg_b32",
                    "s_setreg_imm32_b32"})

BUILDERS: dict[str, Builder] = {
  **{name: _branch(condition) for name, condition in CONDITIONS.items()},
  **dict.fromkeys(("s_nop", "s_clause", "s_delay_alu", "s_sleep", "s_setprio", "s_set_inst_prefetch_distance",
                   "s_icache_inv", "s_wakeup",
                   "s_sleep_var", "s_prefetch_inst", "s_prefetch_inst_pc_rel", "s_prefetch_data",
                   "s_prefetch_data_pc_rel", "s_buffer_prefetch_data",
                   "s_incperflevel", "s_decperflevel", "v_nop", "v_pipeflush", "v_clrexcp", "ds_nop", "s_ttracedata",
                   "s_ttracedata_imm",
                   "s_barrier_leave", "s_version", "s_wait_samplecnt",
                   "s_wait_bvhcnt", "s_wait_expcnt", "s_waitcnt_expcnt", "s_singleuse_vdst", "s_wait_event"), _nothing),
  **dict.fromkeys((*WAITS, "s_waitcnt", "s_wait_idle"), _wait),
  **dict.fromkeys(("s_waitcnt_depctr", "s_wait_alu"), _wait_alu),
  "s_code_end": _refuse("the wave has run into what fills the memory behind the kernel; an s_endpgm is missing, or a "
                        "branch goes wrong"),
  **dict.fromkeys(("s_trap", "s_sethalt", "s_setkill"),
                  _refuse("the kernel stops itself, and there is no trap handler that would go on")),
  "s_call_b64": _call, "s_endpgm": _end, "s_barrier": _barrier, "s_barrier_signal": _barrier_signal,
  "s_barrier_wait": _barrier_wait,
  "s_denorm_mode": _denorm_mode, "s_round_mode": _round_mode, "s_setreg_b32": _setreg, "s_setreg_imm32_b32": _setreg,
  "s_getreg_b32": _getreg,
  "s_sendmsg": _message, "s_sendmsg_rtn_b32": _message_return, "s_sendmsg_rtn_b64": _message_return, "s_memtime": _time,
  "s_memrealtime": _time,
  "s_movrels_b32": _movrel(True, 1), "s_movrels_b64": _movrel(True, 2), "s_movreld_b32": _movrel(False, 1),
  "s_movreld_b64": _movrel(False, 2),
  "buffer_gl0_inv": _cache(True, False, scope=Scope.GROUP), "buffer_gl1_inv": _cache(True, False, scope=Scope.DEVICE),
  "buffer_inv": _cache(True, False), "buffer_wbl2": _cache(False, True),
  "buffer_wbinvl1": _cache(True, False, scope=Scope.DEVICE),
  "buffer_wbinvl1_vol": _cache(True, False, scope=Scope.DEVICE),
  "global_inv": _cache(True, False), "global_wb": _cache(False, True), "global_wbinv": _cache(True, True),
  "s_dcache_inv": _cache(True, False, AccessUnit.SCALAR, Scope.DEVICE),
  "s_gl1_inv": _cache(True, False, AccessUnit.VECTOR, Scope.DEVICE),
  "s_dcache_wb": _cache(False, True, AccessUnit.SCALAR, Scope.DEVICE),
  "s_dcache_inv_vol": _cache(True, False, AccessUnit.SCALAR, Scope.DEVICE),
  "s_dcache_wb_vol": _cache(False, True, AccessUnit.SCALAR, Scope.DEVICE),
}
