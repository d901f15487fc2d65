"""Memory and words for self-tests."""
import time

import pytest
from amd.box import Opener

from tinyhw.drivers.amd.kfd import HOST, VRAM
from tinyhw.drivers.gpu.polling import SPIN_SECONDS
from tinyhw.drivers.gpu.queue import VIRTUAL_LOOKS
from tinyhw.drivers.gpu.selftest.bench import COPIED, Bench
from tinyhw.selftest.frame import Wrong

def bench_of(device, limit_ms: int = 50, virtual: bool = True) -> Bench:
  return Bench(lambda size, kind, label: device.kfd.allocate(device.gpu, size, kind, label), HOST, VRAM, 64, limit_ms,
               virtual)

def test_words_and_waits(opened: Opener) -> None:
  box, device = opened("gfx1100")
  before = box.held()
  bench = bench_of(device)
  word = bench.word()
  assert word != bench.word() and bench.page.mapping.load64(word) == 0
  with pytest.raises(Wrong, match=r"an answer did not come in 0.05 s"): bench.wait_word(word, 1, "an answer")
  bench.page.mapping.store32(word, 1)
  bench.wait_word(word, 1, "an answer")
  bench.close()
  assert box.held() == before

@pytest.mark.parametrize("virtual", (True, False))
def test_waits_for_virtual_gpus_count_looks(opened: Opener, virtual: bool) -> None:
  """Each poll advances the GPU. So the count of polls before a pause does not depend on the speed of this computer."""
  bench, looks, pauses = bench_of(opened("gfx1100")[1], 60_000, virtual), 0, list[int]()
  bench.look = lambda ms: pauses.append(looks)  # type: ignore[method-assign]
  def done() -> bool:
    nonlocal looks
    looks += 1
    time.sleep(SPIN_SECONDS)
    return looks == VIRTUAL_LOOKS + 3
  bench.wait_for(done, "the last look")
  assert (pauses[0] == VIRTUAL_LOOKS + 1) == virtual and len(pauses) >= 2
  bench.close()

def test_a_copy_that_loses_bytes_is_told(opened: Opener) -> None:
  box, device = opened("gfx1100")
  bench = bench_of(device)
  def copy(dest: int, source: int, size: int) -> None: device.enqueue_copy(dest, source, size)
  assert bench.there_and_back(copy, device.synchronize) == "64.00 KB there and back"
  with pytest.raises(Wrong, match=f"1 of {COPIED} bytes differ .* number {COPIED - 1}"):
    bench.there_and_back(lambda dest, source, size: copy(dest, source, size - 1), device.synchronize)
  bench.close()
