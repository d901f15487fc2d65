"""Paired loads of fragments, and the elements that a FRAGMENT gives each lane."""
from __future__ import annotations
from typing import Any

import pytest

from tinyhw.codegen.lower.fragments import paired, widen_fragments
from tinyhw.dtype import dtypes
from tinyhw.errors import VerifyError
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.evaluate.evaluate import evaluate
from tinyhw.uop.ops import UOp
from tinyhw.uop.program import Program
from tinyhw.uop.verify.verify import verify

HALF, weakint = dtypes.float16, dtypes.weakint
LOCAL = UOp(Ops.DEFINE_LOCAL, HALF, (), (0, 1024))
LANE = UOp(Ops.RANGE, weakint, (UOp.const(weakint, 32),), (0, AxisType.LOCAL))

def fragment(offset: int, blocks: int = 2, buffer: UOp = LOCAL, transposed: bool = False) -> UOp:
  return UOp(Ops.FRAGMENT, HALF.vec(2 * blocks), (UOp(Ops.INDEX, HALF, (buffer, LANE % 16 * 8 + offset)), LANE),
             transposed)

def wide(*parts: UOp) -> tuple[list[UOp], UOp]:
  """Return the parts, and all of them, after the pass."""
  result = widen_fragments(UOp(Ops.GROUP, dtypes.void, parts))
  return list(result.src), result

def test_neighbours_become_one() -> None:
  parts, whole = wide(fragment(0), fragment(256), fragment(512), fragment(768))
  assert [p.op for p in parts] == [Ops.GEP] * 4 and [p.arg for p in parts] == [0, 4, 0, 4]
  loads = [u for u in whole.toposort() if u.op is Ops.FRAGMENT]
  assert len(loads) == 2 and all(u.dtype is HALF.vec(8) and len(u.src) == 1 for u in loads)
  first = loads[0].src[0].src[1]
  found = [first.substitute({LANE: UOp.const(weakint, lane)}).simplify().arg for lane in range(32)]
  assert found == [lane % 16 * 8 + lane // 16 * 256 for lane in range(32)]

def test_what_has_no_partner_stays() -> None:
  other = UOp(Ops.DEFINE_LOCAL, HALF, (), (1, 1024))
  parts, _ = wide(fragment(0), fragment(256, transposed=True), fragment(256, buffer=other), fragment(512, blocks=4))
  assert [p.op for p in parts] == [Ops.FRAGMENT] * 4 and all(len(p.src) == 1 for p in parts)

def test_pairs_have_one_distance() -> None:
  fragments = {at: fragment(at) for at in (0, 64, 256, 320, 512, 600)}
  assert [[u.src[0].src[1].simplify() for u in pair] for pair in paired(fragments)] == \
         [[fragments[a].src[0].src[1].simplify(), fragments[b].src[0].src[1].simplify()]
          for a, b in ((0, 64), (256, 320))]
  assert paired({0: fragment(0, 4), 64: fragment(64, 4)}) == []

def program(transposed: bool, blocks: int, lanes: int = 32, pitch: int = 8) -> Program:
  """Each lane stores numbers 8 * lane to 8 * lane + 7 as the row of its number, and its FRAGMENT to its own element."""
  int32 = dtypes.int32
  out, end = UOp.param(0, HALF, lanes * 2 * blocks), UOp.const(int32, lanes)
  local = UOp(Ops.DEFINE_LOCAL, HALF, (), (0, 256))
  lane = UOp(Ops.RANGE, int32, (end,), (0, AxisType.LOCAL))
  uops: list[UOp] = [out, local, end, lane]
  def put(op: Ops, dtype: Any, *src: UOp, arg: Any = None) -> UOp:
    uops.append(UOp(op, dtype, src, arg))
    return uops[-1]
  eight, width = put(Ops.CONST, int32, arg=8), put(Ops.CONST, int32, arg=2 * blocks)
  start = put(Ops.MUL, int32, lane, eight)
  for k in range(8):
    at = put(Ops.ADD, int32, start, put(Ops.CONST, int32, arg=k))
    put(Ops.STORE, dtypes.void, put(Ops.INDEX, HALF, local, at), put(Ops.CAST, HALF, at))
  put(Ops.BARRIER, dtypes.void)
  loaded = put(Ops.FRAGMENT, HALF.vec(2 * blocks), put(Ops.INDEX, HALF, local, start), arg=transposed)
  put(Ops.STORE, dtypes.void, put(Ops.INDEX, HALF, out, put(Ops.MUL, int32, lane, width)), loaded)
  put(Ops.END, dtypes.void, lane)
  return Program("fragment", tuple(uops), 1, frozenset({0}), local_bytes=512)

@pytest.mark.parametrize("transposed", (False, True))
@pytest.mark.parametrize("blocks", (1, 2, 4))
def test_what_lanes_get(blocks: int, transposed: bool) -> None:
  data: dict[int, list[Any]] = {0: [0.0] * (64 * blocks)}
  one = program(transposed, blocks)
  verify(one, 1)
  evaluate(one, data)
  for lane in range(32):
    g, t = divmod(lane, 4)
    places = [(g, 2 * t), (g, 2 * t + 1)] if not transposed else [(2 * t, g), (2 * t + 1, g)]
    assert data[0][2 * blocks * lane:2 * blocks * (lane + 1)] == [64 * b + 8 * row + column for b in range(blocks)
                                                                  for row, column in places]

def test_a_wave_of_another_size_is_refused() -> None:
  with pytest.raises(VerifyError, match="16 lanes load a FRAGMENT, not 32"):
    evaluate(program(False, 1, 16), {0: [0.0] * 32})

@pytest.mark.parametrize("dtype, arg, message", [(HALF.vec(6), False, "of 12 bytes, not of 4, 8 or 16"),
                                                 (dtypes.int8.vec(4), True, "have not two bytes")])
def test_the_verifier_knows_its_form(dtype: Any, arg: bool, message: str) -> None:
  scalar = dtype.scalar()
  local, zero = UOp(Ops.DEFINE_LOCAL, scalar, (), (0, 256)), UOp.const(dtypes.int32, 0)
  place = UOp(Ops.INDEX, scalar, (local, zero))
  with pytest.raises(VerifyError, match=message):
    verify(Program("k", (local, zero, place, UOp(Ops.FRAGMENT, dtype, (place,), arg)), 1, frozenset()), 1)
