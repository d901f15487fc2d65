"""A kernel of attention computes the same in blocks of its rows, with the layouts of real matrix units."""
from __future__ import annotations
import math
import random

import pytest

from test.codegen.attention.attentions import attention
from test.codegen.kernels import data_for
from tinyhw.arithmetic import round_to
from tinyhw.codegen.attention.plan import with_attention
from tinyhw.codegen.passes import lower
from tinyhw.codegen.transform.tiling import Opt, OptOps
from tinyhw.data_class import replace
from tinyhw.dtype import DType, dtypes
from tinyhw.engine.run.compile import capabilities_of
from tinyhw.uop.enums import Ops
from tinyhw.uop.evaluate.evaluate import evaluate
from tinyhw.uop.ops import UOp
from tinyhw.uop.program import Program
from tinyhw.uop.verify.verify import verify

ARCHS = ("gfx1100", "gfx1200", "gfx942", "sm_80")

def normal(dtype: DType, rng: random.Random) -> float:
  return round_to(dtype)(rng.gauss(0, 1))  # type: ignore[no-any-return]

def tile(waves: int, block: int) -> tuple[Opt, ...]:
  return Opt(OptOps.MATRIX, 1, 16), Opt(OptOps.LOCAL, 1, waves), Opt(OptOps.BLOCK, 3, block)

def program_of(kernel: UOp, arch: str, waves: int = 1, block: int = 16) -> Program:
  target = capabilities_of(arch, "")
  program = lower(with_attention(kernel, tile(waves, block), target), target, "attention")
  verify(program, 1)
  return program

def check_same(kernel: UOp, program: Program, seed: int = 0, tolerance: float = 2e-3) -> None:
  want, got = data_for(kernel, seed, normal), data_for(kernel, seed, normal)
  evaluate(kernel, want)
  evaluate(program, got)
  for a, b in zip(want[0], got[0]):
    assert math.isnan(a) and math.isnan(b) or abs(a - b) <= tolerance * max(1, abs(a)), (a, b)

@pytest.mark.parametrize("arch", ARCHS)
def test_results_agree(arch: str) -> None:
  kernel = attention(1, 16, 32, 16, 16)
  check_same(kernel, program_of(kernel, arch))

@pytest.mark.parametrize("arch", ARCHS)
def test_sizes_that_are_no_multiples_and_masks(arch: str) -> None:
  kernel = attention(1, 19, 21, 5, 7, causal=True)
  check_same(kernel, program_of(kernel, arch))

@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHS)
def test_random_shapes(arch: str) -> None:
  rng = random.Random(arch)
  for seed in range(6):
    rows, positions, terms, columns = (rng.randint(*ends) for ends in ((16, 40), (1, 50), (1, 24), (1, 20)))
    kernel = attention(rng.randint(1, 2), rows, positions, terms, columns, *[rng.random() < 0.5 for _ in range(3)])
    check_same(kernel, program_of(kernel, arch, rng.choice((1, 2)), rng.choice((16, 32))), seed)

def test_one_block_needs_no_loop() -> None:
  kernel = attention(1, 16, 9, 8, 8)
  program = program_of(kernel, "sm_80")
  assert sum(u.op is Ops.RANGE for u in program.uops) == 1, "the lanes"
  check_same(kernel, program)

def test_rows_that_see_nothing() -> None:
  kernel = attention(1, 16, 32, 8, 8, bias=True, guarded=True)
  program = program_of(kernel, "sm_80")
  want, got = data_for(kernel, 1, normal), data_for(kernel, 1, normal)
  for data in (want, got):
    data[4][32 * 3:32 * 4] = [-math.inf] * 32     # row 3 sees nothing,
    data[4][32 * 5:32 * 5 + 16] = [-math.inf] * 16      # and row 5 nothing of the first block
  evaluate(kernel, want)
  evaluate(program, got)
  assert got[0][8 * 3:8 * 4] == [0.0] * 8
  assert all(abs(a - b) < 2e-3 for a, b in zip(want[0], got[0]))

def test_nan_and_infinity_reach_their_row_alone() -> None:
  kernel = attention(1, 16, 16, 8, 8)
  got = data_for(kernel, 2, normal)
  got[1][8 * 2], got[1][8 * 4] = math.nan, math.inf
  evaluate(program_of(kernel, "sm_80"), got)
  for row in range(16):
    assert all(math.isnan(x) is (row in (2, 4)) for x in got[0][8 * row:8 * row + 8]), row

def test_a_causal_loop_ends_early_and_copies_run_ahead() -> None:
  kernel = attention(1, 64, 64, 16, 16, causal=True)
  program = program_of(kernel, "sm_80")
  loop = next(u for u in program.uops if u.op is Ops.RANGE and u.src[0].op is not Ops.CONST)
  assert (loop.src[0].vmin, loop.src[0].vmax) == (1, 4)
  copies = [u for u in program.uops[:program.uops.index(loop)] if u.op is Ops.ASYNC_COPY]
  assert copies and all(len(u.src) == 3 for u in copies), "a loop of one block copies no second one"
  check_same(kernel, program)

def test_a_target_without_rough_operations() -> None:
  kernel = attention(1, 16, 32, 8, 8)
  target = replace(capabilities_of("sm_80", ""), rough=False, maxima=frozenset())
  program = lower(with_attention(kernel, tile(1, 16), target), target, "attention")
  assert not any(u.op is Ops.EXP2 for u in program.uops)
  check_same(kernel, program)

def test_bfloat16() -> None:
  kernel = attention(1, 16, 32, 16, 16, dtype=dtypes.bfloat16)
  check_same(kernel, program_of(kernel, "gfx1100"), tolerance=2e-2)
