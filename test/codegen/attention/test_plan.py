"""The tile of an attention: which units take it, how many waves, and how large its blocks are."""
from __future__ import annotations

import pytest

from test.codegen.attention.attentions import attention
from tinyhw.codegen.attention.build import AttentionTile
from tinyhw.codegen.attention.plan import choices, predict, types_of, unit_of, with_attention
from tinyhw.codegen.attention.recognize import Attention, attention_in
from tinyhw.codegen.optimize import optimize
from tinyhw.codegen.search import search
from tinyhw.codegen.transform.tiling import Opt, OptOps
from tinyhw.data_class import replace
from tinyhw.dtype import dtypes
from tinyhw.engine.run.compile import attention_types, capabilities_of
from tinyhw.errors import CompileError
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

def parts(*shape: int) -> Attention:
  found = attention_in(attention(*shape))
  assert found is not None
  return found

def test_types() -> None:
  both = {dtypes.float16, dtypes.bfloat16}
  for arch in ("gfx1100", "gfx1200", "gfx942", "sm_80", "sm_90"): assert attention_types(arch) == both
  for arch in ("c", "opencl", "wgsl", "metal"): assert attention_types(arch) == set()
  assert not types_of(replace(capabilities_of("sm_80", ""), exchanges=False))

@pytest.mark.parametrize("arch, shape, waves, block", (("gfx1100", (16, 2048, 2048, 128, 128), 8, 64),
                                                       ("gfx942", (16, 2048, 2048, 128, 128), 8, 64),
                                                       ("sm_80", (16, 2048, 2048, 128, 128), 8, 64),
                                                       ("sm_80", (12, 2048, 2048, 64, 64), 8, 32)))
def test_tiles_of_common_attentions(arch: str, shape: tuple[int, ...], waves: int, block: int) -> None:
  opts = choices(attention(*shape), capabilities_of(arch, ""))
  assert opts[0] == (Opt(OptOps.MATRIX, 1, 16), Opt(OptOps.LOCAL, 1, waves), Opt(OptOps.BLOCK, 3, block))
  assert len(opts) == len(set(opts)) == 4

def test_a_search_measures_all_tiles() -> None:
  kernel, target, seen = attention(1, 64, 64, 16, 16), capabilities_of("sm_80", ""), []
  best = Opt(OptOps.MATRIX, 1, 16), Opt(OptOps.LOCAL, 1, 4), Opt(OptOps.BLOCK, 3, 64)
  def measure(opts: tuple[Opt, ...]) -> float:
    seen.append(opts)
    return 0.5 if opts == best else 1.0
  assert search(kernel, target, measure, 2) == best
  assert len(seen) == 4

def test_more_units_never_take_longer() -> None:
  target, found = capabilities_of("sm_80", ""), parts(16, 2048, 2048, 128, 128)
  matrix = unit_of(found, target)
  assert matrix is not None
  times = [predict(found, AttentionTile(8, 64), matrix, replace(target, threads=16 * n)) for n in (8, 16, 64, 108, 256)]
  assert times == sorted(times, reverse=True) and times[0] > times[-1]

def test_optimize_applies_it_and_notes_the_opts() -> None:
  kernel = optimize(attention(1, 64, 64, 16, 16), capabilities_of("sm_80", ""))
  assert [o.op for o in kernel.arg.opts] == [OptOps.MATRIX, OptOps.LOCAL, OptOps.BLOCK]
  assert any(u.op is Ops.MMA for u in kernel.toposort()) and not any(u.op is Ops.STAGE for u in kernel.toposort())

def test_other_kernels_that_keep_rows_are_refused() -> None:
  kernel, target = attention(1, 16, 16, 8, 8), capabilities_of("sm_80", "")
  most = next(u for u in kernel.toposort() if u.op is Ops.REDUCE and u.arg is Ops.MAX)
  with pytest.raises(CompileError, match="no attention"):
    with_attention(kernel.substitute({most: UOp.const(dtypes.float32, 1)}), None, target)
  with pytest.raises(CompileError, match="no attention"):
    with_attention(attention(1, 16, 16, 8, 8, dtype=dtypes.float32), None, target)
