"""The source of random numbers: a counter-based generator, Threefry2x32 with 20 rounds (Salmon et al. 2011).

Each call takes the next draw number when it is made. So numbers depend neither on the order of evaluation nor on
fusion, and two calls never share numbers, on one device or two. Element i of draw d is a function of (seed, d, i)
alone. It is the same on every device, in every process, jitted or not.

The first 2**28 draws use the seed as the key, and elements count from draw * 2**36 on. After that, each 2**28 draws
have a key of their own, made from the seed. So there are 2**92 draws, of up to 2**36 elements.

The draw number and the seed reach kernels through a buffer of two numbers, so that kernels are equal for all draws.
While a TinyJit captures, each draw is noted in `Capture.draws`. A replay puts the next draw's buffer in its place, so a
jitted function gives the numbers that it would give without TinyJit. Many buffers are filled at a time, because filling
one waits for the device.

All threads draw from one generator, that of `Tensor.manual_seed`. Inside of `with Generator(seed):` a thread draws from
that generator instead.
"""
from __future__ import annotations
from collections.abc import Callable
from functools import partial
import os
import threading

from tinyhw.arithmetic import threefry
from tinyhw.config import SEED
from tinyhw.device import Buffer, DeviceLike
from tinyhw.dtype import dtypes
from tinyhw.engine.memory.buffers import MultiBuffer, new_buffer
from tinyhw.engine.run.realize import this_thread
from tinyhw.methods.base import whole
from tinyhw.methods.data.hostdata import pack
from tinyhw.threads import kept_in_forks
from tinyhw.uop.ops import UOp

_DRAW_BITS = 36   # elements of one draw: 2**36
_KEY_BITS = 64 - _DRAW_BITS   # draws of one key: 2**28
_ROWS = 256       # draws whose buffers are filled together
_MASK64 = (1 << 64) - 1
_lock = kept_in_forks(threading.RLock())

class Generator:
  """The sequence of draws for a seed. None: SEED, or else a random seed in each process. `with generator:` makes this
  thread draw from it.

  next: the number of the next draw; may be set.
  """
  def __init__(self, seed: int | None = None):
    self.start(seed)

  def start(self, seed: int | None) -> None:
    """Restart with the first draw of a seed."""
    with _lock:
      self.seed, self.next = seed, 0
      self.devices: dict[str, DrawBuffer] = {}

  def __enter__(self) -> Generator:
    _thread.entered.append(self)
    return self

  def __exit__(self, *_: object) -> None: _thread.entered.pop()

  def of(self, device: str) -> DrawBuffer:
    """Return the draws of a device."""
    found = self.devices.get(device)
    return self.devices.setdefault(device, DrawBuffer(self, device)) if found is None else found

  def key(self) -> int:
    """Return the seed in use."""
    if self.seed is None: self.seed = SEED.value if SEED.value >= 0 else int.from_bytes(os.urandom(8), "little")
    return self.seed & _MASK64

  def row(self, draw: int) -> tuple[int, int]:
    """Return the counter of a draw's first element, and its key."""
    generation = draw >> _KEY_BITS
    return draw << _DRAW_BITS & _MASK64, threefry(generation, self.key()) if generation else self.key()

class DrawBuffer:
  """A buffer for one device, with the rows (first counter, key) of a generator's next draws."""
  def __init__(self, generator: Generator, device: str):
    self.generator, self.device, self.first, self.last = generator, device, -_ROWS, 0
    self.rows: dict[str, Buffer] = {}   # by device: other devices share the draws of a tensor on several devices

  def draw(self) -> Buffer:
    """Return two uint64: the first counter of the next draw, and its key."""
    with _lock:
      self.last = self.generator.next
      self.generator.next += 1
      if not self.first <= self.last < self.first + _ROWS:
        self.rows.clear()   # cleared before the rest changes, so that after an interrupt the rows are made again
        self.first = self.last
      return self.drawn(self.device)

  def drawn(self, device: str) -> Buffer:
    """Return the last draw, on any device."""
    if device not in self.rows:
      numbers = [x for i in range(_ROWS) for x in self.generator.row(self.first + i)]
      self.rows[device] = Buffer(device, len(numbers), dtypes.uint64).copyin(pack(numbers, dtypes.uint64))
    return self.rows[device].view(2, dtypes.uint64, 16 * (self.last - self.first))

class _Thread(threading.local):
  def __init__(self) -> None: self.entered: list[Generator] = []

_thread = _Thread()
_of_all = Generator()   # for threads that have entered no generator

def current() -> Generator:
  """Return the generator of this thread."""
  return _thread.entered[-1] if _thread.entered else _of_all

def restart(seed: int) -> None:
  """Restart with the first draw of a seed. Replays of a TinyJit that captures now do the same."""
  current().start(seed)
  if this_thread.capture is not None: this_thread.capture.draws.append((None, partial(_start, seed)))

def next_draw(device: DeviceLike) -> UOp:
  """Return storage with the next draw of a device. Several devices share the draw of the first one.

  A TinyJit that captures now is told how to make the next draws in replays, in this order.
  """
  if isinstance(device, str): return new_buffer(device, 2, dtypes.uint64, storage=_noted(partial(_draw, device)))
  with _lock:
    first = _noted(partial(_draw, device[0]))
    rows = [_noted(partial(_drawn, device[0], d)) for d in device[1:]]
  return whole(new_buffer(device, 2, dtypes.uint64, storage=MultiBuffer((first, *rows))), (2,))

# Actions of replays. A pickled TinyJit refers to these functions by name.
def _start(seed: int) -> None: current().start(seed)
def _draw(device: str) -> Buffer: return current().of(device).draw()
def _drawn(first: str, device: str) -> Buffer: return current().of(first).drawn(device)

def _noted(draw: Callable[[], Buffer]) -> Buffer:
  row = draw()
  if this_thread.capture is not None: this_thread.capture.draws.append((row, draw))
  return row
