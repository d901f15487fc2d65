"""Branches, calls, waits, messages, modes, hardware registers, cache operations."""
from __future__ import annotations

import pytest
from amd.kernels import Box, Kernel, words

from tinyhw.emulator.amd.execute.control import signed16, wait_limits
from tinyhw.emulator.errors import StrictError, UnknownInstruction
from tinyhw.emulator.memory.memory import AccessKind, Scope, AccessUnit
from tinyhw.isa.amd.table import regs

VCC, EXEC = regs.reg(regs.S[1], regs.VCC), regs.reg(regs.S[1], regs.EXEC)

def store_scalars(k: Kernel, *registers: int) -> None:
  """Write scalar registers to the first buffer, contiguously."""
  k("s_load_b64", k.s(40, 2), k.s(0, 2), None)
  k("v_mov_b32", k.v(40), 0)
  k.wait(lgkm=0)
  for i, register in enumerate(registers):
    k("v_mov_b32", k.v(41), k.s(register))
    k("global_store_b32", k.v(40), k.v(41), k.s(40, 2), offset=4 * i)
  k("s_endpgm")

def taken(condition: str, **setup: int) -> bool:
  """Return whether a branch is taken."""
  k, box = Kernel(), Box()
  out = box.buffer(4)
  if "scc" in setup: k("s_cmp_eq_u32", 0, 1 - setup["scc"])
  if "vcc" in setup: k("s_mov_b32", VCC, setup["vcc"])
  if "exec" in setup: k("s_mov_b32", EXEC, setup["exec"])
  k("s_mov_b32", k.s(10), 1)
  k.jump(condition, "over")
  k("s_mov_b32", k.s(10), 0)
  k.label("over")
  k("s_mov_b32", EXEC, 1)
  store_scalars(k, 10)
  box.run(k)
  return words(out) == [1]

def test_branches() -> None:
  assert taken("s_branch")
  assert taken("s_cbranch_scc1", scc=1) and not taken("s_cbranch_scc1", scc=0) and taken("s_cbranch_scc0", scc=0)
  assert taken("s_cbranch_vccz", vcc=0) and not taken("s_cbranch_vccz", vcc=4) and taken("s_cbranch_vccnz", vcc=4)
  assert taken("s_cbranch_execz", exec=0) and not taken("s_cbranch_execz", exec=2) and taken("s_cbranch_execnz", exec=2)

def test_calls_and_returns() -> None:
  k, box = Kernel(), Box()
  out = box.buffer(4)
  k.jump("s_branch", "main")
  k.label("function")
  k("s_add_u32", k.s(10), k.s(10), 5)
  k("s_setpc_b64", k.s(20, 2))
  k.label("main")
  k("s_mov_b32", k.s(10), 1)
  for _ in range(2): k("s_call_b64", k.s(20, 2), -(len(k.code) - 1 + 1))
  store_scalars(k, 10)
  box.run(k)
  assert words(out) == [11]

def test_fields_of_waits() -> None:
  assert signed16(0xffff) == -1 and signed16(5) == 5
  assert dict(wait_limits("s_waitcnt", 0x3f70 | 0x8000, "gfx942")) == {"vmcnt": 32, "lgkmcnt": 15}
  assert dict(wait_limits("s_waitcnt", 0xfc07, "gfx1100")) == {"vmcnt": 63, "lgkmcnt": 0}
  assert dict(wait_limits("s_wait_loadcnt_dscnt", 3 << 8 | 2, "gfx1200")) == {"loadcnt": 3, "dscnt": 2}
  with pytest.raises(UnknownInstruction, match="use s_wait_loadcnt"): wait_limits("s_waitcnt", 0, "gfx1200")

def test_denormals_follow_the_mode_that_instructions_set() -> None:
  k, box = Kernel(), Box()
  out = box.buffer(8)
  k("v_mov_b32", k.v(2), 0x00400000)
  k("v_add_f32", k.v(3), k.v(2), k.v(2))
  k("s_denorm_mode", 0xc)                     # float32: flush
  k("v_add_f32", k.v(4), k.v(2), k.v(2))
  k("v_readfirstlane_b32", k.s(10), k.v(3))
  k("v_readfirstlane_b32", k.s(11), k.v(4))
  store_scalars(k, 10, 11)
  box.run(k)
  assert words(out) == [0x00800000, 0]

def test_hardware_registers() -> None:
  mode = 1 | 3 << 11 | 4 << 6                 # MODE[7:4]
  k, box = Kernel(), Box()
  out = box.buffer(8)
  k("s_getreg_b32", k.s(10), mode)
  k("s_setreg_imm32_b32", mode, 0xc)
  k("s_getreg_b32", k.s(11), mode)
  store_scalars(k, 10, 11)
  box.run(k)
  assert words(out) == [15, 12]
  k = Kernel()
  k("s_getreg_b32", k.s(10), 2)
  with pytest.raises(UnknownInstruction, match="hardware register 2"): Box().run(k)

def test_modes_that_are_not_emulated() -> None:
  k = Kernel()
  k("s_round_mode", 1)
  k("s_nop", 0)
  with pytest.raises(UnknownInstruction, match="rounding mode"): Box().run(k)

def test_cache_operations_reach_memory_with_their_scope() -> None:
  calls = []
  for arch, name, modifiers, expected in (
      ("gfx1100", "buffer_gl0_inv", {}, ("invalidate", AccessKind(AccessUnit.VECTOR, Scope.GROUP))),
      ("gfx1100", "buffer_gl1_inv", {}, ("invalidate", AccessKind(AccessUnit.VECTOR, Scope.DEVICE))),
      ("gfx942", "buffer_inv", {"sc1": 1}, ("invalidate", AccessKind(AccessUnit.VECTOR, Scope.DEVICE))),
      ("gfx942", "buffer_wbl2", {"sc0": 1, "sc1": 1}, ("write_back", AccessKind(AccessUnit.VECTOR, Scope.SYSTEM))),
      ("gfx1200", "global_inv", {"scope": 2}, ("invalidate", AccessKind(AccessUnit.VECTOR, Scope.DEVICE))),
      ("gfx1100", "s_dcache_inv", {}, ("invalidate", AccessKind(AccessUnit.SCALAR, Scope.DEVICE)))):
    k, box = Kernel(arch), Box()
    k(name, **modifiers)
    k("s_endpgm")
    calls.clear()
    box.memory.invalidate = lambda kind: calls.append(("invalidate", kind))  # type: ignore[method-assign]
    box.memory.write_back = lambda kind: calls.append(("write_back", kind))  # type: ignore[method-assign]
    box.run(k)
    assert calls == [expected], name

def test_relative_moves() -> None:
  k, box = Kernel(), Box()
  out = box.buffer(8)
  for i in range(4): k("s_mov_b32", k.s(20 + i), 70 + i)
  k("s_mov_b32", regs.s(regs.M0), 2)
  k("s_movrels_b32", k.s(10), k.s(20))
  k("s_movreld_b32", k.s(11), k.s(21))
  k("s_mov_b32", k.s(11), 0)
  store_scalars(k, 10, 13)
  box.run(k)
  assert words(out) == [72, 71]
  k = Kernel()
  k("s_mov_b32", regs.s(regs.M0), 5)
  k("s_mov_b32", k.s(20), 1)
  k("s_movrels_b32", k.s(10), k.s(20))
  with pytest.raises(StrictError, match="s25, chosen by M0"): Box().run(k)

def test_clocks_go_on() -> None:
  k, box = Kernel("gfx942"), Box()
  out = box.buffer(16)
  k("s_memtime", k.s(10, 2))
  k("s_memrealtime", k.s(12, 2))
  k.wait(lgkm=0)
  store_scalars(k, 10, 11, 12, 13)
  box.run(k, (64,))
  first, second = (words(out)[i] | words(out)[i + 1] << 32 for i in (0, 2))
  assert first < second

def test_what_a_wave_must_not_come_to() -> None:
  for name, operands, why in (("s_code_end", (), "s_endpgm is missing"), ("s_trap", (2,), "no trap handler")):
    k = Kernel()
    k(name, *operands)
    with pytest.raises(StrictError, match=why): Box().run(k)

def test_messages() -> None:
  k = Kernel()
  k("s_sendmsg", 1)
  with pytest.raises(UnknownInstruction, match="message 1"): Box().run(k)
