"""Scalar semantics against plain integers."""
from __future__ import annotations
import random
from collections.abc import Callable

import pytest
from amd.lanes import FLOAT64, INTEGERS, scalar, values

from tinyhw.emulator.amd.semantics.scalar import SCALAR, rows

M32, M64 = (1 << 32) - 1, (1 << 64) - 1

def i(x: int, bits: int = 32) -> int: return x - (1 << bits) if x >> bits - 1 else x
def nonzero(value: int) -> tuple[int, int]: return value, int(value != 0)
def field(x: int, control: int, bits: int, signed: bool) -> int:
  """Return bits of x from control's low bits on, as many as control[22:16] says."""
  low, count = control & bits - 1, control >> 16 & 127
  part = (i(x, bits) >> low if signed else x >> low) & (1 << count) - 1
  return (part - (1 << count) if signed and count and part >> count - 1 else part) & (1 << bits) - 1

# name: (s0, s1) -> (result, SCC)
WITH_SCC: dict[str, Callable[[int, int], tuple[int, int]]] = {
  "s_add_u32": lambda a, b: (a + b & M32, a + b >> 32), "s_sub_u32": lambda a, b: (a - b & M32, int(b > a)),
  "s_add_i32": lambda a, b: (a + b & M32, int(not -2**31 <= i(a) + i(b) < 2**31)),
  "s_sub_i32": lambda a, b: (a - b & M32, int(not -2**31 <= i(a) - i(b) < 2**31)),
  "s_and_b32": lambda a, b: nonzero(a & b), "s_or_b32": lambda a, b: nonzero(a | b), "s_xor_b32": lambda a,
  b: nonzero(a ^ b),
  "s_nand_b32": lambda a, b: nonzero(~(a & b) & M32), "s_nor_b32": lambda a, b: nonzero(~(a | b) & M32),
  "s_xnor_b32": lambda a, b: nonzero(~(a ^ b) & M32), "s_and_not1_b32": lambda a, b: nonzero(a & ~b),
  "s_orn2_b32": lambda a,
  b: nonzero(a | ~b & M32),
  "s_lshl_b32": lambda a, b: nonzero(a << (b & 31) & M32), "s_lshr_b32": lambda a, b: nonzero(a >> (b & 31)),
  "s_ashr_i32": lambda a, b: nonzero(i(a) >> (b & 31) & M32), "s_not_b32": lambda a, b: nonzero(~a & M32),
  "s_bfe_u32": lambda a, b: nonzero(field(a, b, 32, False)), "s_bfe_i32": lambda a, b: nonzero(field(a, b, 32, True)),
  "s_min_i32": lambda a, b: (min(i(a), i(b)) & M32, int(i(a) < i(b))), "s_max_u32": lambda a,
  b: (max(a, b), int(a >= b)),
  "s_lshl3_add_u32": lambda a, b: ((a << 3) + b & M32, int((a << 3) + b > M32)), "s_abs_i32": lambda a,
  b: nonzero(abs(i(a)) & M32),
  "s_absdiff_i32": lambda a, b: nonzero(abs(i(a) - i(b)) & M32), "s_bcnt1_i32_b32": lambda a,
  b: nonzero(bin(a).count("1")),
}
WIDE: dict[str, Callable[[int, int], tuple[int, int]]] = {
  "s_and_b64": lambda a, b: nonzero(a & b), "s_xor_b64": lambda a, b: nonzero(a ^ b), "s_and_not1_b64": lambda a,
  b: nonzero(a & ~b),
  "s_not_b64": lambda a, b: nonzero(~a & M64), "s_lshl_b64": lambda a, b: nonzero(a << (b & 63) & M64),
  "s_lshr_b64": lambda a,
  b: nonzero(a >> (b & 63)),
  "s_ashr_i64": lambda a, b: nonzero(i(a, 64) >> (b & 63) & M64), "s_bfe_u64": lambda a,
  b: nonzero(field(a, b, 64, False)),
  "s_bfe_i64": lambda a, b: nonzero(field(a, b, 64, True)),
}
WITHOUT_SCC: dict[str, Callable[[int, int], int]] = {
  "s_mul_i32": lambda a, b: a * b & M32, "s_mul_hi_u32": lambda a, b: a * b >> 32, "s_mul_hi_i32": lambda a,
  b: i(a) * i(b) >> 32 & M32,
  "s_bfm_b32": lambda a, b: ((1 << (a & 31)) - 1) << (b & 31) & M32, "s_pack_lh_b32_b16": lambda a,
  b: a & 65535 | b & 0xffff0000,
  "s_mov_b32": lambda a, b: a, "s_brev_b32": lambda a, b: int(f"{a:032b}"[::-1], 2), "s_sext_i32_i8": lambda a,
  b: ((a & 255 ^ 128) - 128) & M32,
  "s_clz_i32_u32": lambda a, b: 32 - a.bit_length() if a else M32, "s_ctz_i32_b32": lambda a,
  b: (a & -a).bit_length() - 1 & M32,
}

@pytest.mark.parametrize("name", WITH_SCC)
def test_32_bits(name: str) -> None:
  source = random.Random(name)
  for a, b in zip(values(source, INTEGERS, 32, 100), values(source, INTEGERS, 32, 100)):
    wave = scalar(SCALAR[name], a, b, scc=source.getrandbits(1))
    assert (wave.s[0], wave.scc) == WITH_SCC[name](a, b), (hex(a), hex(b))

@pytest.mark.parametrize("name", WIDE)
def test_64_bits(name: str) -> None:
  source = random.Random(name)
  for a, b in zip(values(source, FLOAT64, 64, 60), values(source, FLOAT64 + INTEGERS, 64, 60)):
    wave = scalar(SCALAR[name], a, b)
    assert (wave.s[0] | wave.s[1] << 32, wave.scc) == WIDE[name](a, b), (hex(a), hex(b))

@pytest.mark.parametrize("name", WITHOUT_SCC)
def test_scc_stays(name: str) -> None:
  source = random.Random(name)
  for a, b in zip(values(source, INTEGERS, 32, 60), values(source, INTEGERS, 32, 60)):
    wave = scalar(SCALAR[name], a, b, scc=1)
    assert (wave.s[0], wave.scc) == (WITHOUT_SCC[name](a, b), 1)

def test_carries_and_choices() -> None:
  wave = scalar(SCALAR["s_addc_u32"], M32, 0, scc=1)
  assert (wave.s[0], wave.scc) == (0, 1)
  wave = scalar(SCALAR["s_subb_u32"], 0, 0, scc=1)
  assert (wave.s[0], wave.scc) == (M32, 1)
  assert scalar(SCALAR["s_cselect_b64"], 1 << 40, 5, scc=1).s[1] == 1 << 8 and scalar(SCALAR["s_cselect_b64"], 1,
                                                                                      5).s[0] == 5
  assert scalar(SCALAR["s_cmov_b32"], 1, old=9).s[0] == 9 and scalar(SCALAR["s_cmov_b32"], 1, old=9, scc=1).s[0] == 1
  assert scalar(SCALAR["s_bitset1_b32"], 35, old=0).s[0] == 8 and scalar(SCALAR["s_bitset0_b64"], 40,
                                                                         old=M64).s[1] == M32 & ~(1 << 8)

def test_comparisons() -> None:
  for name, truth in (("eq_i32", 0), ("lg_u32", 1), ("gt_i32", 0), ("gt_u32", 1), ("lt_i32", 1), ("le_u32", 0),
                      ("ge_i32", 0)):
    assert scalar(SCALAR[f"s_cmp_{name}"], M32, 1).scc == truth, name
  assert scalar(SCALAR["s_bitcmp1_b32"], 8, 3).scc == 1 and scalar(SCALAR["s_bitcmp0_b32"], 8, 35).scc == 0

def test_exec_is_saved_and_changed() -> None:
  wave = scalar(SCALAR["s_and_saveexec_b64"], 0xff00ff00ff, exec_mask=0xffff)
  assert (wave.s[0], wave.exec, wave.scc) == (0xffff, 0xff, 1)
  wave = scalar(SCALAR["s_andn2_wrexec_b64"], 0xf, exec_mask=0xf)
  assert (wave.exec, wave.s[0], wave.scc) == (0, 0, 0)

def test_calls() -> None:
  wave = scalar(SCALAR["s_swappc_b64"], 0x123456789a)
  assert wave.pc == 0x123456789a and wave.s[0] == 0x1000

def test_no_name_has_two_meanings() -> None:
  with pytest.raises(AssertionError, match="two meanings of a"): rows("a : D.u32 = S0.u32\nb a : D.u32 = S1.u32")
