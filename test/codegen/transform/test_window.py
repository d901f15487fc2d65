"""Windows change no result, are found where loops share their inputs, and are copied once."""
from __future__ import annotations
import random

import pytest
from hypothesis import given, settings, strategies as st

from test.codegen.kernels import agree, axis, data_for
from tinyhw.codegen.kernel.access import access_of
from tinyhw.codegen.kernel.grid import ranges_of
from tinyhw.codegen.optimize import with_opts
from tinyhw.codegen.transform.tiling import Opt, OptOps, size_of
from tinyhw.codegen.transform.window import Window, stage_windows, window_of
from tinyhw.dtype import dtypes
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

F32 = dtypes.float32

def convolution(width: int, taps: int, stride: int = 1, dilation: int = 1, padding: int = 0, channels: int = 3,
                outputs: int = 4) -> UOp:
  """Return out[o, w] = sum over c and k of x[c, w * stride + k * dilation - padding] * f[o, c, k], x being 0 outside.
  """
  length = (width - 1) * stride + (taps - 1) * dilation + 1 - 2 * padding
  out, x, f = UOp.param(0, F32, outputs * width), UOp.param(1, F32,
                                                            channels * length), UOp.param(2, F32,
                                                                                          outputs * channels * taps)
  o, w, c, k = axis(outputs, 0), axis(width, 1), axis(channels, 2, "REDUCE"), axis(taps, 3, "REDUCE")
  at = w * stride + k * dilation - padding
  gate = (at > -1) & (at < length) if padding else None
  product = x.index(c * length + at).load(gate) * f.index((o * channels + c) * taps + k).load()
  return UOp.sink(out.index(o * width + w).store(product.reduce(Ops.ADD, c, k), o, w))

def window(kernel: UOp, slot: int = 1) -> Window | None:
  """Return the window of the first load of a buffer."""
  store = kernel.src[0]
  reduce = next(u for u in store.toposort() if u.op is Ops.REDUCE)
  load = next(u for u in reduce.toposort() if u.op is Ops.LOAD and u.src[0].src[0].arg[0] == slot)
  return window_of(access_of(load), reduce.src[0], ranges_of(store), ranges_of(reduce))

def staged(kernel: UOp) -> list[UOp]: return [u for u in kernel.toposort() if u.op is Ops.STAGE]

@pytest.mark.parametrize("stride, dilation, padding",
                         ((1, 1, 0), (2, 1, 0), (1, 2, 0), (1, 1, 2), (2, 1, 1), (1, 3, 2)))
def test_a_convolution_reads_through_a_window(stride: int, dilation: int, padding: int) -> None:
  kernel = convolution(11, 4, stride, dilation, padding)
  found = window(kernel)
  assert found is not None and [(size_of(p.output), size_of(p.inner), p.step, p.dilation)
                                for p in found.pairs] == [(11, 4, stride, dilation)]
  assert found.pairs[0].size == 10 * stride + 3 * dilation + 1 and [size_of(r) for r in found.loops] == [3]
  changed, copying = stage_windows(kernel, (Opt(OptOps.WINDOW, 1, 1),))
  assert len(staged(changed)) == 1 and copying == ()
  agree(kernel, changed)

def test_what_nothing_shares_has_no_window() -> None:
  assert window(convolution(11, 4), slot=2) is None               # each output has its own filter
  assert window(convolution(8, 2, stride=2)) is None              # patches without overlap
  assert window(convolution(8, 2, stride=3)) is None              # values in between without a reader
  kernel = convolution(11, 4)
  assert stage_windows(kernel, (Opt(OptOps.WINDOW, 2, 1),))[0] is kernel and stage_windows(kernel, ())[0] is kernel

def test_a_gate_that_knows_more_than_the_sum_forbids_the_window() -> None:
  out, x = UOp.param(0, F32, 8), UOp.param(1, F32, 12)
  w, k = axis(8, 0), axis(4, 1, "REDUCE")
  kernel = UOp.sink(out.index(w).store(x.index(w + k).load(k < 3).reduce(Ops.ADD, k), w))
  assert window(kernel) is None

def test_gates_and_producers_are_computed_while_copying() -> None:
  """Zeros of padding around the result of a producer: WHERE(inside, x * 2, 0)."""
  out, x, f = UOp.param(0, F32, 10), UOp.param(1, F32, 8), UOp.param(2, F32, 4)
  w, k = axis(10, 0), axis(4, 1, "REDUCE")
  at = w + k - 3
  inside = (at > -1) & (at < 8)
  value = inside.where(x.index(at).load(inside) * 2, 0.0)
  kernel = UOp.sink(out.index(w).store((value * f.index(k).load()).reduce(Ops.ADD, k), w))
  found = window(kernel)
  assert found is not None and found.value is value
  changed, _ = stage_windows(kernel, (Opt(OptOps.WINDOW, 1, 1),))
  assert not any(u.op is Ops.WHERE for s in changed.src for u in s.src[1].src[0].src if u.op is not Ops.LOAD)
  agree(kernel, changed)

def test_a_buffer_that_the_kernel_writes_is_left_alone() -> None:
  x = UOp.param(0, F32, 12)
  w, k = axis(8, 0), axis(4, 1, "REDUCE")
  kernel = UOp.sink(x.index(w).store(x.index(w + k).load().reduce(Ops.ADD, k), w))
  assert stage_windows(kernel, (Opt(OptOps.WINDOW, 0, 1),))[0] is kernel

@pytest.mark.parametrize("lanes", (4, 8, 16))
def test_the_copy_has_the_tiles_lanes(lanes: int) -> None:
  kernel = convolution(11, 4, padding=2, outputs=16)
  for axis_of_lanes in (0, 1):
    if lanes > (16, 11)[axis_of_lanes]: continue
    opts = (Opt(OptOps.VECTOR, axis_of_lanes, lanes), Opt(OptOps.WINDOW, 1, 1))
    changed, copying = stage_windows(kernel, opts)
    assert [o.amount for o in copying] == [lanes]
    size, = [size_of(r) for s in staged(changed) for r in ranges_of(s) if r.arg[0] == copying[0].axis]
    assert size % lanes == 0 and size - lanes < 14 <= size
    agree(kernel, with_opts(kernel, opts))

@settings(max_examples=60)
@given(st.integers(0, 1 << 30))
def test_any_tile_of_a_convolution_with_windows_changes_no_result(seed: int) -> None:
  rng = random.Random(seed)
  if rng.random() < 0.6:
    kernel = convolution(rng.randint(2, 13), rng.randint(2, 5), rng.randint(1, 2), rng.randint(1, 2),
                         rng.randint(0, 2) * rng.randint(0, 1), rng.randint(1, 3), rng.randint(1, 9))
  else: kernel = rng.choice((plane, rows_by_index))(rng)
  ranges = ranges_of(kernel.src[0])
  opts = [Opt(OptOps.WINDOW, slot, rng.randint(1, 2)) for slot in (1, 2, 3) if rng.random() < 0.8]
  opts += [Opt(OptOps.STAGE, slot) for slot in (1, 2, 3) if rng.random() < 0.3]
  long = [r for r in ranges if size_of(r) >= 4]
  if long and rng.random() < 0.7: opts.append(Opt(OptOps.VECTOR, rng.choice(long).arg[0], 4))
  for r in ranges:
    if size_of(r) > 2 and rng.random() < 0.5: opts.append(Opt(OptOps.UPCAST, r.arg[0], rng.randint(2, 3)))
    if rng.random() < 0.3: opts.append(Opt(OptOps.GRID, r.arg[0]))
  agree(kernel, with_opts(kernel, tuple(opts)))

def plane(rng: random.Random) -> UOp:
  """Return out[h, w] = sum over i and j of x[h * s + i, w * s + j], padded or not."""
  h, w, i, j = axis(rng.randint(2, 5), 0), axis(rng.randint(2, 6), 1), axis(rng.randint(2, 3), 2,
                                                                            "REDUCE"), axis(rng.randint(2, 3), 3,
                                                                                            "REDUCE")
  step, pad = rng.randint(1, 2), rng.randint(0, 1)
  rows = (size_of(h) - 1) * step + size_of(i) - 2 * pad
  columns = (size_of(w) - 1) * step + size_of(j) - 2 * pad
  if rows < 1 or columns < 1: step, pad, rows, columns = 1, 0, size_of(h) + size_of(i) - 1, size_of(w) + size_of(j) - 1
  out, x = UOp.param(0, F32, size_of(h) * size_of(w)), UOp.param(1, F32, rows * columns)
  row, column = h * step + i - pad, w * step + j - pad
  gate = (row > -1) & (row < rows) & (column > -1) & (column < columns) if pad else None
  return UOp.sink(out.index(h * size_of(w) + w).store(x.index(row * columns + column).load(gate).reduce(Ops.ADD, i, j),
                                                      h, w))

def rows_by_index(rng: random.Random) -> UOp:
  """Return out[h, w] = sum over i and j of x[rows[h * s + i], w * s + j] * f[i, j].

  This is a convolution of rows that an index tensor selects.
  """
  h, w, i, j = axis(rng.randint(2, 9), 0), axis(rng.randint(2, 9), 1), axis(rng.randint(2, 3), 2,
                                                                            "REDUCE"), axis(rng.randint(2, 3), 3,
                                                                                            "REDUCE")
  step, height = rng.randint(1, 2), 12
  width = (size_of(w) - 1) * step + size_of(j)
  out, x = UOp.param(0, F32, size_of(h) * size_of(w)), UOp.param(1, F32, height * width)
  rows, f = UOp.param(2, dtypes.int32, (size_of(h) - 1) * step + size_of(i)), UOp.param(3, F32, size_of(i) * size_of(j))
  row = rows.index(h * step + i).load().cast(dtypes.weakint)
  product = x.index(row * width + (w * step + j)).load((row > -1) & (row < height)) * f.index(i * size_of(j) + j).load()
  return UOp.sink(out.index(h * size_of(w) + w).store(product.reduce(Ops.ADD, i, j), h, w))

def test_a_window_of_an_index_holds_what_was_loaded() -> None:
  """It does not hold the index itself, a weakint, since memory has no such type."""
  kernel = rows_by_index(random.Random(1))
  found = window(kernel, slot=2)
  assert found is not None and found.value.op is Ops.LOAD
  changed, _ = stage_windows(kernel, (Opt(OptOps.WINDOW, 2, 1),))
  assert [s.dtype for s in staged(changed)] == [dtypes.int32]
  agree(kernel, with_opts(kernel, (Opt(OptOps.VECTOR, 0, 2), Opt(OptOps.WINDOW, 2, 1))))

def test_both_dimensions_are_closed_or_one() -> None:
  kernel = plane(random.Random(7))
  found = window(kernel)
  assert found is not None and len(found.pairs) == 2
  assert len(found.closing(1).pairs) == 1 and found.closing(1).loops == (found.pairs[1].inner,)
  for n in (1, 2):
    changed, _ = stage_windows(kernel, (Opt(OptOps.WINDOW, 1, n),))
    stage, = staged(changed)
    assert len(stage.ranges) == 2 - n
    assert data_for(changed).keys() == data_for(kernel).keys()
    agree(kernel, changed)
