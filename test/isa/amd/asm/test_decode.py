"""Decoding of bytes to instructions, against golden files of other assemblers."""
from __future__ import annotations
import random

from hypothesis import given, settings, strategies as st
import pytest

from amd.golden import ARCHS, vectors
from amd.random import random_instruction
from tinyhw.errors import DecodeError
from tinyhw.isa.amd.asm.decode import decode, decode_all
from tinyhw.isa.amd.asm.encode import encode
from tinyhw.isa.amd.asm.syntax import assemble, show
from tinyhw.isa.amd.table import regs
from tinyhw.isa.amd.table.table import table

@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHS)
def test_bytes_of_other_assemblers_decode_and_encode_again(arch: str) -> None:
  wrong = []
  for vector in vectors(arch, ";"):
    code = bytes.fromhex(vector.right)
    inst, size = decode(code, 0, vector.arch)
    if size != len(code) or encode(inst) != code:
      wrong.append((vector.text, repr(inst), encode(inst).hex(), vector.right))
  assert not wrong, f"{len(wrong)} differ: {wrong[:3]}"

KEYS = [(arch, row.isa.key) for arch in ("gfx942", "gfx950", "gfx1100", "gfx1200", "gfx1100:wave64", "gfx1200:wave64")
        for row in table(arch)]

@pytest.mark.slow
@settings(max_examples=400, deadline=None)
@given(st.sampled_from(KEYS), st.integers(0, 1 << 32))
def test_decode_inverts_encode(key: tuple[str, str], seed: int) -> None:
  inst = random_instruction(table(key[0])[key[1]], random.Random(seed))
  code = encode(inst)
  assert decode(b"\0" * 4 + code + b"\0" * 4, 4, key[0]) == (inst, len(code))

@pytest.mark.slow
@settings(max_examples=400, deadline=None)
@given(st.sampled_from(("gfx942", "gfx950", "gfx1100", "gfx1200", "gfx1100:wave64")),
       st.binary(min_size=4, max_size=16))
def test_any_bytes_decode_to_what_encodes_or_are_refused(arch: str, code: bytes) -> None:
  try: inst, size = decode(code, 0, arch)
  except DecodeError: return
  assert 0 < size <= len(code)
  again = encode(inst)
  assert decode(again, 0, arch) == (inst, len(again))

def test_operands_have_names_and_values() -> None:
  inst, size = decode(bytes.fromhex("ff000a0678563412"), 0, "gfx1100")
  assert (inst.row.name, size) == ("v_add_f32", 8)
  assert inst.operands[:3] == [regs.v(5), 0x12345678, regs.v(0)]
  assert inst.operands[inst.row.isa.index["clamp"]] == 0

def test_an_offset_and_what_follows() -> None:
  code = bytes.fromhex("00050a06" "000013d6fa040e04011101ff" "0000b0bf")
  assert ([(offset, inst.row.isa.key) for offset, inst in decode_all(code, "gfx1100")]
          == [(0, "v_add_f32"), (4, "v_fma_f32_dpp"), (16, "s_endpgm")])

def test_a_longer_encoding_than_needed_is_kept() -> None:
  code = bytes.fromhex("000003d501050200")
  inst, _ = decode(code, 0, "gfx1100")
  assert inst.row.isa.key == "v_add_f32_e64" and inst.row.name == "v_add_f32" and encode(inst) == code

def test_an_atomic_that_returns_is_another_row() -> None:
  assert decode(bytes.fromhex("0000d6dc02017c00"), 0, "gfx1100")[0].row.name == "global_atomic_add_u32"
  assert decode(bytes.fromhex("0040d6dc02017c00"), 0, "gfx1100")[0].row.name == "global_atomic_add_u32_rtn"

def test_255_is_a_literal_in_sources_only() -> None:
  with pytest.raises(DecodeError, match="no instruction that starts here: 52 fe 3d 0c"):
    decode(bytes.fromhex("52fe3d0c00000000"), 0, "gfx1200")

@pytest.mark.parametrize("code,text", [
  ("cbfe8b74", "v_min_f16_e32 v69.l, -11, v127.h"),  # v255 of 16 bits
  ("02070365", "v_add_f16_e32 v1.h, v2.l, v3.h"), ("8105027c", "v_cmp_lt_f16_e32 vcc_lo, v1.h, v2.l"),
  ("8217027e", "v_cvt_f32_f16_e32 v1, v2.h"),
  ("010801d401050200", "v_cmp_lt_f16_e64 s1, v1.h, v2.l"), ("014832d5fa060200c8e400ff",
      "v_add_f16_e64_dpp v1.h, v200.h, v3.l quad_perm:[0,1,2,3] row_mask:0xf bank_mask:0xf"),
  ("02070264", "v_add_f16_e32 v1, v2, v3"),
  ("0207036f34120000", "v_fmamk_f16 v1.h, v2.l, 0x1234, v3.h"), ("0239027e", "v_mov_b16_e32 v1.l, v2.l")])
def test_halves_of_registers(code: str, text: str) -> None:
  inst, size = decode(bytes.fromhex(code), 0, "gfx1100")
  assert (show(inst), size) == (text, len(code) // 2) and assemble(text, "gfx1100").hex() == code

@pytest.mark.parametrize("code,message", [
  ("", "offset 0: the code ends within an instruction: "),
  ("ff000a06", "offset 0: gfx1100 has no instruction that starts here: ff 00 0a 06"),   # the literal is missing
  # a rule that no field expresses
  ("000013d601040c00", "offset 0: v_fma_f32: reads 3 scalar values (registers, literals), gfx1100 can read 2; move "
   "the others to vector registers "
   "first: 00 00 13 d6 01 04 0c 00"),
  ("ffffffff", "offset 0: gfx1100 has no instruction that starts here: ff ff ff ff"),
])
def test_what_is_no_instruction(code: str, message: str) -> None:
  with pytest.raises(DecodeError) as caught: decode(bytes.fromhex(code), 0, "gfx1100")
  assert caught.value.message == message
