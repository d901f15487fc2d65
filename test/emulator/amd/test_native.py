"""Machine code of the host and Python give the same for every vector meaning that both have, with all lanes active and with some."""
from __future__ import annotations
import random

import pytest
from amd_kernels import Box, Kernel, floats
from amd_lanes import FLOAT32, INTEGERS, PLACES, Lanes, values

from tinyhw.emulator.amd import native
from tinyhw.emulator.amd.native import HOT, Hot, Translator, Untranslatable, faster
from tinyhw.emulator.amd.python_lanes import Form, Shape, Target, compiled, constant_argument
from tinyhw.emulator.amd.semantics_packed import HALF, PACKED
from tinyhw.emulator.amd.semantics_vector import VECTOR

pytestmark = pytest.mark.skipif(native.level() is None, reason="no x86-64 with AVX2, or no executable pages")

VECTOR_FORM = Form("v")

def shape(meaning: str, lanes: int = 32, s1: Form = VECTOR_FORM, **more: bool) -> Shape:
  sources = tuple((name, s1 if name == "S1" else Form("v")) for name in ("S0", "S1", "S2", "D", "K"))
  return Shape(meaning, ((sources, (("D", Target("v")),)),), lanes, **more)

def translates(meaning: str) -> bool:
  try: Translator(shape(meaning), False, 8).program()
  except Untranslatable: return False
  return True

NATIVE = sorted(name for name, meaning in VECTOR.items() if translates(meaning))

def filled(lanes: int, source: random.Random) -> Lanes:
  wave = Lanes(lanes)
  for row in range(10): wave.u[row][:] = memoryview(bytes().join(x.to_bytes(4, "little") for x in values(source, FLOAT32 + INTEGERS, 32,
                                                                                                         lanes))).cast("I")
  wave.s[106], wave.s[107], wave.s[4] = source.getrandbits(32), source.getrandbits(32), source.choice(FLOAT32 + INTEGERS)
  return wave

def same(a: int, b: int) -> bool:
  """Equal, or NaNs where the one has them: of float32, or of float16 in a half."""
  if a == b or a & 0x7fffffff > 0x7f800000 and b & 0x7fffffff > 0x7f800000: return True
  return all(x == y or x & 0x7fff > 0x7c00 and y & 0x7fff > 0x7c00 for x, y in ((a & 0xffff, b & 0xffff), (a >> 16, b >> 16)))

def compare(wanted: Shape, lanes: int, exec_mask: int, seed: object) -> None:
  python, machine = (filled(lanes, random.Random(f"{wanted.meaning}{seed}")) for _ in range(2))
  made = compiled(wanted)
  arguments: dict[str, int] = {**PLACES, "S1": 4 if dict(wanted.passes[0][0])["S1"].kind != "k" else 0xbf800000}
  run = made.make(*(arguments[p] if p in arguments else constant_argument(p, arguments[p.split("_")[0]]) for p in made.parameters))
  hot = faster(run, wanted, arguments)
  assert isinstance(hot, Hot)
  hot.count = HOT
  for wave in (python, machine): wave.set_exec(exec_mask)
  run(python)
  hot(machine)  # type: ignore[arg-type]  # as far as it goes a wave
  assert machine.prepared[machine.full], "it was not native code that ran"
  for row in range(10):
    for lane in range(lanes): assert same(python.u[row][lane], machine.u[row][lane]), (wanted.meaning, row, lane)
  assert python.s == machine.s

def test_what_is_native() -> None:
  assert {"v_add_f32", "v_fma_f32", "v_fmac_f32", "v_cndmask_b32", "v_cmp_lt_f32", "v_lshlrev_b32", "v_max_f32", "v_bfe_u32",
          "v_mov_b32"} <= set(NATIVE)
  assert not {"v_rcp_f32", "v_add_f64", "v_add_co_u32", "v_cvt_f32_u32"} & set(NATIVE)
  assert translates(HALF["v_cvt_f16_i16"]) is False and translates(PACKED["v_pk_add_f32"])

@pytest.mark.parametrize("name", NATIVE)
def test_both_agree(name: str) -> None:
  for lanes, mask in ((32, 0xffffffff), (32, 0x80f00a01), (64, (1 << 64) - 1), (64, 0x8000000100f0aa55)):
    for seed in range(2): compare(shape(VECTOR[name], lanes), lanes, mask, seed)

@pytest.mark.parametrize("form", [Form("s"), Form("k"), Form("v", negate=True), Form("v", magnitude=True), Form("s", negate=True, magnitude=True)])
def test_scalars_constants_signs_and_magnitudes(form: Form) -> None:
  for name in ("v_add_f32", "v_fma_f32", "v_cmp_le_f32", "v_min_f32"): compare(shape(VECTOR[name], s1=form), 32, 0xffffffff, 1)

def half_shape(meaning: str, lanes: int, op_sel: int, keep: bool = True, negate: bool = False) -> Shape:
  """A 16-bit instruction on chosen halves: bit 0 and 1 of op_sel for the sources, bit 3 for the result."""
  sources = tuple((name, Form("v", shift=16 * (op_sel >> i & 1), width=16, negate=negate and i == 0)) for i, name in enumerate(("S0", "S1", "S2")))
  return Shape(meaning, (((*sources, ("D", Form("v")), ("K", Form("v"))), (("D", Target("v", shift=16 * (op_sel >> 3), width=16, keep=keep)),)),),
               lanes)

@pytest.mark.parametrize("name", ["v_add_f16", "v_sub_f16", "v_mul_f16", "v_max_f16", "v_min_f16"])
def test_half_precision(name: str) -> None:
  meaning = {**VECTOR, **HALF}[name]
  for op_sel, keep, negate in ((0, True, False), (9, True, True), (3, False, False)):
    for lanes, mask in ((32, 0xffffffff), (64, 0x8000000100f0aa55)):
      for seed in range(4): compare(half_shape(meaning, lanes, op_sel, keep, negate), lanes, mask, seed)

def test_conversions_between_precisions() -> None:
  for meaning in ("D.f16 = f16(S0.f32)", "D.f32 = f32(S0.f16)"):
    for seed in range(8): compare(shape(meaning), 32, 0xffffffff, seed)

@pytest.mark.parametrize("name", ["v_pk_add_f16", "v_pk_mul_f16", "v_pk_max_f16"])
def test_packed_half_precision(name: str) -> None:
  passes = tuple(((("S0", Form("v", shift=16 * half, width=16)), ("S1", Form("v", shift=16 - 16 * half, width=16, negate=bool(half)))),
                  (("D", Target("v", shift=16 * half, width=16)),)) for half in (0, 1))
  for lanes, mask in ((32, 0xffffffff), (64, 0x8000000100f0aa55)):
    for seed in range(4): compare(Shape(PACKED[name], passes, lanes), lanes, mask, seed)

def test_what_stays_python() -> None:
  for wrong in (shape(VECTOR["v_add_f32"], clamp=True), shape(VECTOR["v_add_f32"], flush32=True), shape(VECTOR["v_add_f32"], permuted=True),
                shape(VECTOR["v_add_f32"], s1=Form("v", shift=16, width=16)), shape(VECTOR["v_sqrt_f32"])):
    assert faster(print, wrong, {}) is print
  two = Shape("D.u32 = S0.u32; D2.u32 = S1.u32", (((("S0", Form("v")), ("S1", Form("v"))), (("D", Target("v")), ("D2", Target("v")))),), 32)
  assert faster(print, two, {}) is print, "a second result would be lost"

def test_a_loop_becomes_native_and_counts_right(monkeypatch: pytest.MonkeyPatch) -> None:
  """The same kernel with and without machine code: 100 sums in each lane, of which some lanes do 50 more."""
  found = []
  for machine in (True, False):
    if not machine: monkeypatch.setattr(native, "native", lambda shape, masked: None)
    k, box = Kernel(), Box()
    out = box.buffer(128)
    k("s_load_b64", k.s(4, 2), k.s(0, 2), None)
    k("v_and_b32", k.v(0), 0x3ff, k.v(0))
    k("v_lshlrev_b32", k.v(1), 2, k.v(0))
    k("v_cvt_f32_i32", k.v(2), k.v(0))
    k("v_mov_b32", k.v(3), 0)
    k("s_mov_b32", k.s(10), 100)
    for label in ("first", "second"):
      k.label(label)
      k("v_fmac_f32", k.v(3), k.v(2), k.v(2))
      k("v_add_f32", k.v(3), 0x3e800000, k.v(3))
      k("s_sub_u32", k.s(10), k.s(10), 1)
      k("s_cmp_lg_u32", k.s(10), 0)
      k.jump("s_cbranch_scc1", label)
      if label == "first":
        k("v_cmpx_gt_u32", 7, k.v(0))
        k("s_mov_b32", k.s(10), 50)
    k("s_mov_b32", Kernel().s(126), 0xffffffff)
    k.wait(lgkm=0)
    k("global_store_b32", k.v(1), k.v(3), k.s(4, 2))
    k("s_endpgm")
    box.run(k)
    found.append(floats(out))
  assert found[0] == found[1] and found[0][1] == 150 * 1.25 and found[0][9] == 100 * 81.25
