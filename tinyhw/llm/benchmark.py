"""Time the tokens of a language model, and each kernel of a token: `python3 -m tinyhw.llm -m model.gguf --benchmark`.

Decoding reads all parameters once a token, so the memory's rate is its limit. That rate is measured by the sum of a
large array, in the same process.
"""
from __future__ import annotations
import time
from collections.abc import Iterator
from typing import TextIO

from tinyhw.capture.jit import TinyJit
from tinyhw.engine.run.kernel_times import KernelTimes
from tinyhw.errors import TinyError
from tinyhw.llm.model import Transformer
from tinyhw.tensor import Tensor

SUM_BYTES = 1 << 28      # of the array whose sum shows the memory's rate: more than any cache holds
SUMS = 8                 # the fastest of these counts
TIMED_TOKENS = 8         # whose kernels are timed alone

def memory_rate(size: int) -> float:
  """Return the bytes per second at which the default device sums an array of `size` bytes. Raises what an allocation
  raises."""
  x = Tensor.ones(size // 4).contiguous().realize()
  total = TinyJit(lambda: x.sum().realize())
  least = float("inf")
  for _ in range(SUMS + 2):      # the first two calls compile and capture
    start = time.perf_counter()
    total().item()
    least = min(least, time.perf_counter() - start)
  return size / least

def benchmark(model: Transformer, count: int, out: TextIO) -> None:
  """Time tokens, after the first three, which compile and capture. Then print the kernels of a token."""
  tokens = model.generate([0])
  _take(tokens, 3)
  start = time.perf_counter()
  found = _take(tokens, count)
  taken = time.perf_counter() - start
  out.write(f"{found} tokens in {taken:.3f} s: {found / taken:.2f} tokens/s\n")
  tokens = model.generate([0])
  _take(tokens, 3)
  with KernelTimes() as times: timed = _take(tokens, TIMED_TOKENS)
  if not timed: return
  try: rate = memory_rate(SUM_BYTES)
  except TinyError as error:
    out.write(f"the memory's rate is not known: {error.message}\n")
    return
  out.write(f"the sum of {SUM_BYTES >> 20} MiB: {rate / 1e9:.1f} GB/s\n"
            f"kernels of {timed} tokens, each timed alone: {times.seconds / timed * 1e3:.2f} ms a token\n")
  for line in times.table(rate): out.write(f"{line}\n")

def _take(tokens: Iterator[int], count: int) -> int:
  """Take tokens, and return their number: less than `count` where the context is full."""
  return sum(next(tokens, None) is not None for _ in range(count))
