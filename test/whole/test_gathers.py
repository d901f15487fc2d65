"""Gathers into everything: random programs against NumPy, some of them new each day, and a test of the oracle.

test/campaigns/gathers.py runs ten thousands of them.
"""
from __future__ import annotations
from pathlib import Path
import subprocess
import sys
import time

from generators import gather_programs
import numpy as np
import pytest
from generators.taped import Value, einsum, elementwise, gradients, largest, take, total

from test.helpers import HOME, on
from tinyhw import Tensor

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = 200
SEED = int(time.time() // 86400) * 100_000 + 50_000   # of today, and not that of the nightly campaign; a failure prints
                                                      # its own

@pytest.mark.parametrize("part", range(4))
def test_random_programs_are_what_numpy_gives(part: int) -> None:
  with on(HOME):
    for seed in range(SEED + part * PROGRAMS // 4, SEED + (part + 1) * PROGRAMS // 4):
      program = gather_programs.make(seed)
      found = gather_programs.run(program)
      assert not gather_programs.wrong(program, found), (f"python3 test/campaigns/gathers.py --programs 1 --seed "
                                                         f"{seed}\n{program.source()}")

def test_a_seed_is_one_program() -> None:
  first, second = gather_programs.make(7), gather_programs.make(7)
  assert first.source() == second.source() != gather_programs.make(8).source()

def test_a_program_runs_by_itself() -> None:
  program = gather_programs.make(3)
  ran = subprocess.run([sys.executable, "-c", program.source()], cwd=ROOT, capture_output=True, text=True, check=True)
  assert [line.split()[0] for line in ran.stdout.splitlines()] == list(program.results)

def test_what_fails_is_told_as_short_as_it_is() -> None:
  program = gather_programs.make(3)
  name = next(iter(program.results))
  short = gather_programs.smaller(program, lambda p: name in p.results)
  assert list(short.results) == [name] and len(short.lines) <= len(program.lines)
  found = gather_programs.run(short)
  assert not gather_programs.wrong(short, found) and gather_programs.wrong(short, {name: found[name] + 1}) == [name]

def test_every_operation_is_drawn() -> None:
  drawn = "".join("\n".join(gather_programs.make(seed).lines) for seed in range(300))
  for text in (".gather(", "scatter_reduce", "] += ", ".pad(", ".conv2d(", "max_pool2d", "avg_pool2d", " @ ", ".cat(",
               ".gradient(", "::2", ".half()",
               "Tensor.arange"):
    assert text in drawn, f"{text} is never drawn"

def test_gradients_of_the_oracle_are_those_by_differences() -> None:
  rng = np.random.default_rng(0)
  x, w, step = rng.permutation(12).reshape(3, 4) / 4, rng.random((4, 2)), 1e-6
  rows = np.array([2, 0, 2, 1])
  def f(a: np.ndarray, b: np.ndarray) -> tuple[Value, list[Value]]:
    u, v = Value(a), Value(b)
    moved = take(lambda p: np.pad(p[rows], 1, constant_values=-1)[:, 1:5], u)
    product = einsum("ab,bc->ac", moved, v)
    both = elementwise(product.array * u.array[:1, :1], (product, u.array[:1, :1]),
                       (take(lambda p: p[:1, :1], u), product.array))
    return elementwise(total(largest(both, (0,)), (0,)).array + total(both, (0, 1)).array,
                       (total(largest(both, (0,)), (0,)), 1.0),
                       (total(both, (0, 1)), 1.0)), [u, v]
  for k, g in enumerate(gradients(*f(x, w))):
    for at in np.ndindex(g.shape):
      moved = [x.copy(), w.copy()]
      moved[k][at] += step
      assert abs((f(*moved)[0].array - f(x, w)[0].array) / step - g[at]) < 1e-4

# ***** what the programs found *****

def test_rows_that_an_index_names_into_the_backward_of_a_convolution() -> None:
  """The window of a convolution held an index, a number of no width: vectorize did not know it (KeyError)."""
  rng = np.random.default_rng(0)
  x, i, j, f = rng.integers(-2, 3, (32, 3, 16, 16)), rng.integers(0, 16,
                                                                  (32, 16)), rng.integers(0, 16,
                                                                                          (32, 16)), rng.integers(
    -2, 3, (8, 3, 3, 3))
  u, v = Value(x), Value(f)
  images, channels = np.arange(32)[:, None, None, None], np.arange(3)[None, :, None, None]
  crop = take(lambda p: p[images, channels, i[:, None, :, None], j[:, None, None]], u)
  product = einsum("bchwij,ocij->bohw", take(gather_programs.windows(3, 3, 1, 1), crop), v)
  want, = gradients(total(elementwise(product.array ** 2, (product, 2 * product.array)), (0, 1, 2, 3)), [v])
  with on(HOME):
    t, weight, rows, columns = Tensor(x.astype("float32")), Tensor(f.astype("float32")), Tensor(
      i.astype("int32")), Tensor(j.astype("int32"))
    taken = t.gather(2, rows.reshape(32, 1, 16, 1).expand(32, 3, 16, 16)).gather(3,
                                                                                 columns.reshape(32, 1, 1, 16).expand(
      32, 3, 16, 16))
    got, = taken.conv2d(weight, padding=1).square().sum().gradient(weight)
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-5, atol=1)
