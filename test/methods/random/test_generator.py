"""Draws are unique, in all threads and generations. A thread's own generator does not change the others."""
from __future__ import annotations
import threading

import pytest

from tinyhw.arithmetic import threefry
from tinyhw.capture.jit import TinyJit
from tinyhw.methods.random.generator import Generator, current
from tinyhw.tensor import Tensor

def test_a_generation_of_draws_has_a_key_of_its_own() -> None:
  Tensor.manual_seed(3)
  current().next = (1 << 28) - 1
  last, first = Tensor.rand(2).tolist(), Tensor.rand(2).tolist()
  assert last == [(threefry((((1 << 28) - 1) << 36) + i, 3) >> 41) / 2 ** 23 for i in range(2)]
  assert first == [(threefry(i, threefry(1, 3)) >> 41) / 2 ** 23 for i in range(2)]
  rows = {current().row(n) for g in (0, 1, 2, 1 << 4, 1 << 36) for n in range(g << 28, (g << 28) + 50)}
  assert len(rows) == 5 * 50

def test_threads_never_share_a_draw() -> None:
  Tensor.manual_seed(1)
  rows: list[bytes] = []
  def work() -> None:
    for _ in range(100): rows.append(bytes(current().of("PYTHON").draw().as_memoryview()))
  threads = [threading.Thread(target=work) for _ in range(4)]
  for t in threads: t.start()
  for t in threads: t.join()
  assert len(set(rows)) == 400

@pytest.mark.slow
def test_more_draws_than_one_buffer_holds() -> None:
  seen = {Tensor.rand(1, contiguous=False).item() for _ in range(300)}
  assert len(seen) > 295

def numbers(count: int) -> list[float]:
  return [Tensor.rand(1, contiguous=False).item() for _ in range(count)]

def test_a_generator_of_ones_own_leaves_the_others_alone() -> None:
  Tensor.manual_seed(7)
  plain = numbers(5)
  Tensor.manual_seed(7)
  found, own = numbers(2), Generator(7)
  with own: assert numbers(3) == plain[:3]
  found += numbers(2)
  with Generator(8), own: assert numbers(2) == plain[3:], "it goes on where it was"
  assert found + numbers(1) == plain
  with Generator(None) as other:
    assert numbers(1) != plain[:1]
    Tensor.manual_seed(7)     # restarts the generator that is entered
    assert other is current() and numbers(2) == plain[:2]
  assert current() is not other and numbers(1) != plain[:1]

def test_generators_are_of_a_thread() -> None:
  seen: dict[str, list[float]] = {}
  inside, left = threading.Event(), threading.Event()
  Tensor.manual_seed(7)
  plain = numbers(2)
  Tensor.manual_seed(7)
  def other() -> None:
    inside.wait()
    seen["other"] = numbers(2)
    left.set()
  thread = threading.Thread(target=other)
  thread.start()
  with Generator(5):
    inside.set()
    left.wait()
    assert numbers(2) != plain
  thread.join()
  assert seen["other"] == plain

@pytest.mark.slow
def test_replays_draw_from_the_generator_of_their_call(engine: str) -> None:
  if engine == "interpreter": pytest.skip("it runs no kernels, so there is nothing to capture")
  def plain(x: Tensor) -> Tensor: return (x + Tensor.rand(2)).realize()
  jitted, x = TinyJit(plain), Tensor([0.0, 0.0]).realize()
  for _ in range(2): jitted(x)
  with Generator(3): expected = [plain(x).tolist() for _ in range(3)]
  with Generator(3): assert [jitted(x).tolist() for _ in range(3)] == expected
  assert jitted.captured is not None and len({str(e) for e in expected}) == 3
