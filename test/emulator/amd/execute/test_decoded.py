"""Steps: reads, writes and counters of an instruction; sharing between kernels; every vector of the assembler's tests
that is emulated."""
from __future__ import annotations

import pytest
from amd.kernels import Kernel

from tinyhw.emulator.amd.checks.strict import SCALAR_BASE, SCC
from tinyhw.emulator.amd.execute import arithmetic, control, lanes, matrix
from tinyhw.emulator.amd.execute.arithmetic import Mode
from tinyhw.emulator.amd.execute.decoded import DecodedInstruction, step_of
from tinyhw.emulator.errors import UnknownInstruction
from tinyhw.isa.amd.table import regs
from tinyhw.isa.amd.table.table import table

def step(arch: str, name: str, *operands: object, lanes: int | None = None, **modifiers: int) -> DecodedInstruction:
  k = Kernel(arch, lanes)
  return step_of(k(name, *operands, **modifiers).bytes(), Mode(arch, k.lanes))

K = Kernel()

def test_registers_of_an_instruction() -> None:
  s = step("gfx1100", "v_fma_f32", K.v(3), K.v(1), K.s(5), K.v(2))
  assert (s.vector_reads == (1, 2) and s.vector_writes == (3,) and s.scalar_reads == 1 << 5 and s.scalar_limit == 6
          and s.size == 8)
  s = step("gfx1100", "v_fmac_f32", K.v(3), K.v(1), K.v(2))
  assert set(s.vector_reads) == {1, 2, 3}
  s = step("gfx1100", "s_addc_u32", K.s(1), K.s(2), K.s(3))
  assert s.scalar_reads == 0b1100 | 1 << SCC and s.scalar_writes == 0b10 | 1 << SCC
  s = step("gfx942", "v_accvgpr_write_b32", regs.reg(regs.AE[1], 4), K.v(1))
  assert s.vector_writes == (260,)

def test_wide_operands() -> None:
  s = step("gfx1100", "global_load_b128", K.v(4, 4), K.v(1), K.s(2, 2))
  assert s.vector_writes == (4, 5, 6, 7) and s.results == {4, 5, 6, 7} and s.scalar_reads == 0b1100
  assert s.counters == ("vmcnt",) and s.kind == "vmem"
  s = step("gfx1100", "s_load_b64", K.s(4, 2), K.s(0, 2), None)
  assert s.results == {SCALAR_BASE + 4, SCALAR_BASE + 5} and s.counters == ("lgkmcnt",)
  s = step("gfx1100", "flat_load_b32", K.v(4), K.v(2, 2))
  assert set(s.counters) == {"vmcnt", "lgkmcnt"} and s.kind == "flat"
  assert step("gfx1100", "global_store_b32", K.v(1), K.v(2), K.s(2, 2)).counters == ("vscnt",)
  assert step("gfx1200", "global_store_b32", K.v(1), K.v(2), K.s(2, 2)).counters == ("storecnt",)

def test_masks_are_as_wide_as_the_wave() -> None:
  wide = Kernel("gfx1100", 64)
  s = step("gfx1100", "v_cmp_eq_u32", regs.reg(regs.S[2], 10), 0, wide.v(1), lanes=64)
  assert s.scalar_writes == 3 << 10
  assert step("gfx1100", "v_cmp_eq_u32", K.s(10), 0, K.v(1)).scalar_writes == 1 << 10

def test_what_dpp_and_half_loads_keep_is_not_read() -> None:
  assert step("gfx1100", "v_mov_b32_dpp", K.v(3), K.v(2), dpp_ctrl=0x101).vector_reads == (2,)
  assert step("gfx1100", "global_load_d16_b16", K.v(3), K.v(1), K.s(2, 2)).vector_reads == (1,)

def test_steps_are_shared() -> None:
  code = Kernel()("v_mov_b32", K.v(1), 0).bytes()
  assert step_of(code, Mode("gfx1100", 32)) is step_of(bytes(code), Mode("gfx1100", 32))

def test_wait_states() -> None:
  assert step("gfx942", "s_nop", 4).states == 5 and step("gfx942", "v_mov_b32", K.v(1), 0).states == 1

def test_what_is_unknown() -> None:
  with pytest.raises(UnknownInstruction, match="has no instruction that starts here"):
    step_of(b"\xff" * 8, Mode("gfx1100", 32))
  with pytest.raises(UnknownInstruction, match="s_quadmask_b32 is not emulated"):
    step("gfx1100", "s_quadmask_b32", K.s(1), K.s(2))
  with pytest.raises(UnknownInstruction, match="denormal mode"): step_of(bytes(4), Mode("gfx1100", 32, denormals=1))

# graphics, debugging, sparse and scaled matrices, and what no compiler for deep learning emits
OUT_OF_SCOPE = ("format", "gws", "_gs_reg", "bvh", "ordered", "swmmac", "smfmac", "f8f6f4", "scalef32", "cvt_sr_f16",
                "mfma_ld_scale", "movrel",
                "cube", "mullit", "sad",
                "cbranch_cdbg", "subvector", "atc_probe", "ttracedata", "rfe", "trap", "sethalt", "setkill", "endpgm_",
                "sendmsghalt", "code_end",
                "gpr_idx", "cbranch_join", "cbranch_g_fork", "cbranch_i_fork", "setvskip", "barrier_signal_isfirst",
                "get_barrier_state",
                "barrier_init",
                "barrier_join", "wakeup_barrier", "swaprel", "permlane16_bcast", "screen_partition", "cvt_pkaccum",
                "load_block", "store_block",
                "s_buffer_store", "s_store", "s_scratch", "s_atomic", "s_buffer_atomic", "dcache_discard", "_tr_",
                "mskor", "wrap_rtn", "consume",
                "append",
                "condxchg32", "quadmask", "wqm", "bitreplicate", "s_waitcnt", "bitop3")

@pytest.mark.parametrize("arch", ["gfx1100", "gfx1200", "gfx942", "gfx950"])
def test_every_other_instruction_is_emulated(arch: str) -> None:
  """Rows of the assembler, by their names: each has a meaning or a function."""
  missing = []
  for name in table(arch).index.names:
    if (name in control.BUILDERS or name in lanes.BUILDERS or arithmetic.semantics_of(name)
        or name.startswith(("v_dual_", "tbuffer"))):
      continue
    # test_transfer*
    if name.split("_")[0] in ("global", "flat", "scratch", "buffer",
                              "ds") or name.startswith(("s_load", "s_buffer_load")):
      continue
    if matrix.product_of(name) or any(word in name for word in OUT_OF_SCOPE): continue
    missing.append(name)
  assert not missing
