"""`torch.Generator`, and the seeds of `torch` and `torch.random`. Numbers are tinyhw's, so a seed gives other ones than
PyTorch's."""
from __future__ import annotations
from collections.abc import Callable, Iterator
import contextlib
import functools
import os
from typing import Any, TypeVar

from tinyhw.compat.torch.machine import TorchDevice
from tinyhw.dtype import dtypes
from tinyhw.errors import ArgumentError
from tinyhw.methods.checks import whole
from tinyhw.methods.random.generator import Generator, current, restart
from tinyhw.tensor import Tensor

F = TypeVar("F", bound=Callable[..., Any])

_MASK = (1 << 64) - 1

class TorchGenerator:
  """A source of random numbers: `generator=` of the functions that draw. device: accepted, and changes nothing."""
  def __init__(self, device: Any = "cpu"):
    self.device, self._own = TorchDevice(device), Generator(67280421310721)

  @property
  def _source(self) -> Generator: return self._own

  def __enter__(self) -> TorchGenerator:
    self._source.__enter__()
    return self

  def __exit__(self, *_: object) -> None: self._source.__exit__()

  def manual_seed(self, seed: int) -> TorchGenerator:
    """Restart with a seed."""
    self._source.start(whole("seed", seed) & _MASK)
    return self

  def seed(self) -> int:
    """Restart with a random seed, and return it."""
    found = int.from_bytes(os.urandom(8), "little") >> 1
    self.manual_seed(found)
    return found

  def initial_seed(self) -> int:
    """Return the seed."""
    return self._source.key()

  def get_state(self) -> Any:
    """Return the state as a tensor of bytes."""
    numbers = self._source.key(), self._source.next
    found = Tensor(b"".join([n.to_bytes(16, "little") for n in numbers]), dtype=dtypes.uint8)
    return found.realize()

  def set_state(self, new_state: Any) -> TorchGenerator:
    """Go on from a state."""
    data = bytes(new_state.tolist())
    if len(data) != 32: raise ArgumentError(f"a state of {len(data)} bytes; get_state returns 32")
    self._source.start(int.from_bytes(data[:16], "little"))
    self._source.next = int.from_bytes(data[16:], "little")
    return self

  def clone_state(self) -> TorchGenerator:
    """Return a generator of its own with the same state."""
    return TorchGenerator(self.device).set_state(self.get_state())

class _Default(TorchGenerator):
  """The generator from which all draw that name none."""
  @property
  def _source(self) -> Generator: return current()
  def manual_seed(self, seed: int) -> TorchGenerator:
    """Restart with a seed. A captured function does so in each call."""
    restart(whole("seed", seed) & _MASK)
    return self

default_generator = _Default()

def manual_seed(seed: int) -> TorchGenerator:
  """Restart the random numbers with a seed. Return the default generator."""
  return default_generator.manual_seed(seed)

def seed() -> int:
  """Restart the random numbers with a random seed, and return it."""
  return default_generator.seed()

def initial_seed() -> int:
  """Return the seed of the random numbers."""
  return default_generator.initial_seed()

def get_rng_state() -> Any:
  """Return the state of the random numbers as a tensor of bytes."""
  return default_generator.get_state()

def set_rng_state(new_state: Any) -> None:
  """Go on with random numbers from a state."""
  default_generator.set_state(new_state)

@contextlib.contextmanager
def fork_rng(devices: Any = None, enabled: bool = True, device_type: str = "cpu") -> Iterator[None]:
  """Restore the state of the random numbers at the end of a `with`."""
  state = get_rng_state()
  try: yield
  finally:
    if enabled: set_rng_state(state)

def drawing(function: F) -> F:
  """Let a function draw from the generator that it is given."""
  @functools.wraps(function)
  def called(*args: Any, generator: Any = None, **keywords: Any) -> Any:
    if generator is None: return function(*args, **keywords)
    if not hasattr(generator, "__enter__"):
      raise ArgumentError(f"generator is a torch.Generator, not {generator!r}")
    with generator: return function(*args, **keywords)
  return called  # type: ignore[return-value]
