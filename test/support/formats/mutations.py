"""Fuzzing of what reads files: mutations of valid files, and the check that a reader survives them.

A reader survives if it gives a result or raises a TinyError, does not hang, and takes memory bounded by the file's
size. Which mutations there are follows from how readers fail: lengths and offsets that lie, ends that come too early,
parts of one place or file in another.
"""
from __future__ import annotations
import contextlib
import random
import signal
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from types import FrameType
from typing import Any

import hypothesis

from tinyhw.errors import OutOfMemory, TinyError
from tinyhw.helpers import GlobalCounters
from tinyhw.tensor import Tensor

SECONDS = 30.0           # of processor time, after which a reader hangs: a hundred times what the slowest file here
                         # takes on a slow machine
BASE_BYTES = 16 << 20    # what a reader may take whatever the file's size
TIMES_FILE = 64          # and as many times the file's bytes on top: Python objects for bytes

def cases(ci: int = 200, nightly: int = 10_000) -> int:
  """How many mutations: few in CI, many under --hypothesis-profile=nightly."""
  return nightly if hypothesis.settings.default.max_examples > 1000 else ci

_NUMBERS = (0, 1, 2, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 1 << 20, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 40,
            (1 << 63) - 1, 1 << 63,
            (1 << 64) - 1)

def _flip(data: bytearray, rng: random.Random, other: bytes) -> None:
  for _ in range(rng.randint(1, 4)): data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)

def _byte(data: bytearray, rng: random.Random, other: bytes) -> None:
  data[rng.randrange(len(data))] = rng.choice((0, 1, 0x7F, 0x80, 0xFE, 0xFF, rng.randrange(256)))

def _truncate(data: bytearray, rng: random.Random, other: bytes) -> None: del data[rng.randrange(len(data)):]

def _extend(data: bytearray, rng: random.Random, other: bytes) -> None: data += rng.randbytes(rng.randint(1, 64))

def _number(data: bytearray, rng: random.Random, other: bytes) -> None:
  """A number of 1, 2, 4 or 8 bytes becomes an extreme one, or one near the file's size."""
  width = rng.choice((1, 2, 4, 8))
  at = rng.randrange(max(len(data) - width, 0) + 1)
  value = rng.choice((*_NUMBERS, len(data) + rng.randint(-2, 2))) & ((1 << 8 * width) - 1)
  data[at:at + width] = value.to_bytes(width, rng.choice(("little", "big")))

def _digits(data: bytearray, rng: random.Random, other: bytes) -> None:
  """A run of digits, as in a text header, becomes another number."""
  places = [i for i, c in enumerate(data) if 48 <= c <= 57 and not (i and 48 <= data[i - 1] <= 57)]
  if not places: return _number(data, rng, other)
  at = end = rng.choice(places)
  while end < len(data) and 48 <= data[end] <= 57: end += 1
  text = b"%d" % rng.choice((*_NUMBERS, 10 ** rng.randint(2, 400), len(data)))
  data[at:end] = text if rng.random() < 0.5 else text[:end - at].rjust(end - at, b"0")

def _remove(data: bytearray, rng: random.Random, other: bytes) -> None:
  at = rng.randrange(len(data))
  del data[at:at + rng.choice((1, 2, 4, 8, 64, 512))]

def _repeat(data: bytearray, rng: random.Random, other: bytes) -> None:
  at = rng.randrange(len(data))
  data[at:at] = data[at:at + rng.choice((1, 2, 8, 64, 512))] * rng.choice((1, 2, 50))

def _splice(data: bytearray, rng: random.Random, other: bytes) -> None:
  """A part of this or another file over a part of this one."""
  if not other: return _flip(data, rng, other)
  source, at, count = rng.randrange(len(other)), rng.randrange(len(data)), rng.choice((1, 4, 16, 64, 512))
  data[at:at + count] = other[source:source + count]

_KINDS = (_flip, _byte, _truncate, _extend, _number, _number, _digits, _remove, _repeat, _splice)

def mutations(samples: Mapping[str, bytes], count: int, seed: int = 0) -> Iterator[tuple[str, bytes]]:
  """(what was done, bytes) `count` times, the samples in turn.

  Each mutation is a function of seed and its number alone.
  """
  names = list(samples)
  for i in range(count):
    rng = random.Random(f"{seed} {i}")
    name = names[i % len(names)]
    data = bytearray(samples[name])
    done = []
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
      if not data: break
      kind = rng.choice(_KINDS)
      kind(data, rng, samples[rng.choice(names)])
      done.append(kind.__name__.strip("_"))
    yield f"seed {seed}, number {i}: {name} {' '.join(done)}", bytes(data)

def use(x: Any, most: int = 1 << 16) -> None:
  """Read the Tensors in what a reader gave, those of at most so many elements: a file may rightly say that one number
  stands for many."""
  if isinstance(x, Tensor):
    if x.numel() <= most: x._read()   # not tolist(): (1 << 60, 0) is a shape, and as many lists
  elif isinstance(x, (dict, list, tuple)):
    for part in x.values() if isinstance(x, dict) else x: use(part, most)

class Hang(BaseException):
  """A reader ran for longer than SECONDS; no handler in it catches this."""

class TookMemory(AssertionError):
  """A reader took more memory than a file of its size may."""

@contextlib.contextmanager
def limited(what: str, size: int, seconds: float = SECONDS) -> Iterator[None]:
  """Inside, Python and devices may take only so much memory, and must not hang. size: bytes of the file.

  Raises Hang, AssertionError.
  """
  def late(number: int, frame: FrameType | None) -> None: raise Hang(f"{what}: still busy after {seconds} s")
  before = signal.signal(signal.SIGVTALRM, late)
  tracing = tracemalloc.is_tracing()
  if not tracing: tracemalloc.start(1)
  tracemalloc.reset_peak()
  held, on_devices = tracemalloc.get_traced_memory()[0], GlobalCounters.mem_used
  signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
  try: yield
  finally:
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    signal.signal(signal.SIGVTALRM, before)
    peak = tracemalloc.get_traced_memory()[1] - held + GlobalCounters.mem_used - on_devices
    if not tracing: tracemalloc.stop()
  if peak > BASE_BYTES + TIMES_FILE * size:
    raise TookMemory(f"{what}: took {peak} bytes of memory for a file of {size}")

def survives(read: Callable[[bytes], Any], data: bytes, what: str) -> bool:
  """Whether reading gave a result; a TinyError is as good. Anything else, and more than the limits of time and memory,
  fails.

  What took too much memory is read again: the table of all nodes, which other tests have filled, may have grown in its
  midst, and does so once.
  """
  try: return _survives(read, data, what)
  except TookMemory: return _survives(read, data, what)

def _survives(read: Callable[[bytes], Any], data: bytes, what: str) -> bool:
  with limited(what, len(data)):
    try: read(data)
    except OutOfMemory as error:
      raise AssertionError(f"{what}: memory for what the file claims was asked for before it was checked") from error
    except TinyError as error:
      assert str(error), f"{what}: {type(error).__name__} without a message"
      return False
    except Exception as error: raise AssertionError(f"{what}: {type(error).__name__}: {error}") from error
  return True

def fuzz(read: Callable[[bytes], Any], samples: Mapping[str, bytes], count: int | None = None,
         seed: int | None = None) -> None:
  """A reader survives the samples, which it must read, and mutations of them. read gets a file's bytes and should use
  what it finds."""
  for name, data in samples.items(): assert survives(read, data, name), f"{name} is valid, and was refused"
  nightly = cases() > 200
  if seed is None: seed = random.SystemRandom().randrange(1 << 32) if nightly else 0
  refused = sum(not survives(read, data, what) for what, data in mutations(samples, cases() if count is None else count,
                                                                           seed))
  assert refused, "no mutation was refused: the reader checks nothing, or the mutations miss it"
