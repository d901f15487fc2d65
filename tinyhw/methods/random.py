"""Random tensors, from a counter-based generator: Threefry2x32 with 20 rounds (Salmon et al. 2011).

Each call takes the next draw number of its device when it is made, so numbers depend neither on the order of evaluation nor on fusion, and two
calls never share numbers. Element i of draw d is a function of (seed, d, i) alone: the same on every device, in every process, jitted or not.

The draw number and the seed reach kernels through a buffer of two numbers, so that kernels are equal for all draws. While a TinyJit captures, each
draw is noted in `Capture.draws`; a replay puts the next draw's buffer in its place. So a jitted function gives the numbers that it would give
without TinyJit. Buffers are filled many at a time, because filling one waits for the device.
"""
from __future__ import annotations
from collections.abc import Callable
from functools import partial
import math
import os
from typing import TYPE_CHECKING, Any

from tinyhw.config import SEED, TRAINING
from tinyhw.device import Buffer, Device, DeviceLike
from tinyhw.dtype import DType, DTypeLike, dtypes, to_dtype
from tinyhw.engine.buffers import MultiBuffer, new_buffer
from tinyhw.engine.realize import this_thread
from tinyhw.errors import ArgumentError, DTypeError, ShapeError
from tinyhw.methods import checks, graph
from tinyhw.methods.base import whole
from tinyhw.methods.checks import finite, real
from tinyhw.methods.creation import Creation, checked_shape
from tinyhw.methods.hostdata import pack
from tinyhw.methods.views import static
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp, sint_prod
if TYPE_CHECKING: from tinyhw.tensor import Tensor

_DRAW_BITS = 36   # elements of one draw: 2**36; draws of a seed: 2**28
_ROWS = 256       # draws whose buffers are filled together
_MASK64 = (1 << 64) - 1

class Generator:
  """The draws of one device: the next number, and a buffer with the rows (first counter, seed) of the next ones."""
  seed: int | None = None
  devices: dict[str, Generator] = {}

  def __init__(self, device: str):
    self.device, self.next, self.first = device, 0, -_ROWS
    self.rows: dict[str, Buffer] = {}   # by device: others share in draws for tensors that several devices have

  @classmethod
  def of(cls, device: str) -> Generator:
    found = cls.devices.get(device)
    return cls.devices.setdefault(device, Generator(device)) if found is None else found

  @classmethod
  def key(cls) -> int:
    """The seed that is in force: given, or another in each process."""
    if cls.seed is None: cls.seed = SEED.value if SEED.value >= 0 else int.from_bytes(os.urandom(8), "little")
    return cls.seed & _MASK64

  def draw(self) -> Buffer:
    """Two uint64: the first counter of the next draw, and the seed."""
    if not self.rows or self.next >= self.first + _ROWS:
      self.first = self.next
      self.rows.clear()
    self.next += 1
    return self.drawn(self.device)

  def drawn(self, device: str) -> Buffer:
    """The last draw, on any device."""
    if device not in self.rows:
      numbers = [x for i in range(_ROWS) for x in ((self.first + i) << _DRAW_BITS & _MASK64, self.key())]
      self.rows[device] = Buffer(device, len(numbers), dtypes.uint64).copyin(pack(numbers, dtypes.uint64))
    return self.rows[device].view(2, dtypes.uint64, 16 * (self.next - 1 - self.first))

def next_draw(device: DeviceLike) -> UOp:
  """Storage with the next draw of a device; several take that of the first one. A TinyJit that captures is told how to make the next ones for
  replays, in this order."""
  if isinstance(device, str): return new_buffer(device, 2, dtypes.uint64, storage=_noted(lambda: Generator.of(device).draw()))
  first = _noted(lambda: Generator.of(device[0]).draw())
  rows = [_noted(partial(lambda d: Generator.of(device[0]).drawn(d), d)) for d in device[1:]]
  return whole(new_buffer(device, 2, dtypes.uint64, storage=MultiBuffer((first, *rows))), (2,))

def _noted(draw: Callable[[], Buffer]) -> Buffer:
  row = draw()
  if this_thread.capture is not None: this_thread.capture.draws.append((row, draw))
  return row

def random_words(shape: tuple[Any, ...], device: DeviceLike | None) -> UOp:
  """64 random bits for each element, as uint64."""
  place = Device.canonicalize(device)
  count = sint_prod(shape)
  node = next_draw(place)
  first, key = (graph.broadcast(graph.shrink(node, [(i, i + 1)]), (count,)) for i in range(2))
  counters = graph.add(graph.iota(count, dtypes.uint64, place), first)
  return graph.reshape(graph.binary(Ops.THREEFRY, counters, key), shape)

def _high(u: UOp, bits: int) -> UOp: return graph.binary(Ops.SHR, u, graph.like(u, u.dtype.bitsize - bits))

def to_unit(words: UOp, dtype: DType) -> UOp:
  """Random uint64 as floats in [0, 1): as many bits as the mantissa has, put behind the exponent of 1."""
  whole = {16: dtypes.uint16, 32: dtypes.uint32, 64: dtypes.uint64}[dtype.bitsize]
  exponent_bits, mantissa = dtypes.finfo(dtype)
  one = ((1 << (exponent_bits - 1)) - 1) << mantissa
  code = graph.cast(_high(words, mantissa), whole)
  code = graph.binary(Ops.OR, code, graph.like(code, one))
  u = graph.node(Ops.BITCAST, dtype, (code,), None, words.shape)
  return graph.binary(Ops.SUB, u, graph.like(u, 1))

class Random(Creation):
  """rand, randn, randint, initialisers, dropout."""
  __slots__ = ()

  @staticmethod
  def manual_seed(seed: int = 0) -> None:
    """Start again with this seed, on all devices."""
    if not isinstance(seed, int): raise ArgumentError(f"a seed is an int, not {seed!r}")
    def start() -> None:
      Generator.seed = seed
      Generator.devices.clear()
    start()
    if this_thread.capture is not None: this_thread.capture.draws.append((None, start))

  @classmethod
  def rand(cls, *shape: Any, device: DeviceLike | None = None, dtype: DTypeLike | None = None, contiguous: bool = True,
           requires_grad: bool | None = None) -> Tensor:
    """Uniform in [0, 1). contiguous: in memory of its own, rather than computed where it is used."""
    kind = dtypes.default_float if dtype is None else to_dtype(dtype)
    if not dtypes.is_float(kind): raise DTypeError(f"rand makes floats, not {kind}; use randint for integers")
    sizes = checked_shape(shape)
    exact = kind if kind.bitsize > 8 else dtypes.float16
    u = graph.cast(to_unit(random_words(sizes, device), exact), kind)
    return cls._leaf(graph.contiguous(u) if contiguous else u, requires_grad)

  def rand_like(self, **kwargs: Any) -> Tensor:
    """rand in this tensor's shape, type and place."""
    return self.rand(*self.shape, **{"device": self.device, "dtype": self.dtype, **kwargs})

  @classmethod
  def randn(cls, *shape: Any, dtype: DTypeLike | None = None, device: DeviceLike | None = None, requires_grad: bool | None = None,
            **kwargs: Any) -> Tensor:
    """Normal with mean 0 and deviation 1. Source: Box and Muller 1958."""
    kind = dtypes.default_float if dtype is None else to_dtype(dtype)
    if not dtypes.is_float(kind): raise DTypeError(f"randn makes floats, not {kind}")
    sizes = checked_shape(shape)
    wide = dtypes.float64 if kind is dtypes.float64 else dtypes.float32
    words = random_words(sizes, device)
    other = random_words(sizes, device) if wide is dtypes.float64 else graph.binary(Ops.SHL, words, graph.like(words, 32))
    radius = cls._new(to_unit(words, wide)).sub(1, reverse=True).log().mul(-2).sqrt()
    u = radius.mul(cls._new(to_unit(other, wide)).mul(2 * math.pi).cos()).cast(kind).uop
    return cls._leaf(graph.contiguous(u) if kwargs.get("contiguous", True) else u, requires_grad)

  def randn_like(self, dtype: DTypeLike | None = None, **kwargs: Any) -> Tensor:
    """randn in this tensor's shape, type and place."""
    return self.randn(*self.shape, **{"dtype": self.dtype if dtype is None else dtype, "device": self.device, **kwargs})

  @classmethod
  def randint(cls, *shape: Any, low: int = 0, high: int = 10, dtype: DTypeLike = dtypes.int32, device: DeviceLike | None = None,
              requires_grad: bool | None = None) -> Tensor:
    """Integers from low to high - 1, equally likely (to 2**-32 of the range)."""
    kind = to_dtype(dtype)
    if not dtypes.is_int(kind): raise DTypeError(f"randint makes integers, not {kind}; use rand or uniform for floats")
    if not all(isinstance(x, int) for x in (low, high)): raise ArgumentError(f"randint wants ints for low and high, not {low!r} and {high!r}")
    if high <= low: raise ArgumentError(f"randint needs low < high, not {low} and {high}")
    if low < kind.min or high - 1 > kind.max: raise ArgumentError(f"{low} to {high - 1} does not fit into {kind}; choose a wider dtype")
    words, span = random_words(checked_shape(shape), device), high - low
    if span <= 1 << 32: picked = _high(graph.scale(_high(words, 32), span), 32)
    else: picked = graph.binary(Ops.MOD, words, graph.like(words, span)) if span < 1 << 64 else words
    u = graph.cast(picked, kind)
    return cls._leaf(graph.contiguous(graph.add(u, graph.like(u, low)) if low else u), requires_grad)

  @classmethod
  def uniform(cls, *shape: Any, low: float = 0.0, high: float = 1.0, dtype: DTypeLike | None = None, requires_grad: bool | None = None,
              **kwargs: Any) -> Tensor:
    """Uniform in [low, high)."""
    x = cls.rand(*shape, dtype=dtype if dtype is None or dtypes.is_float(to_dtype(dtype)) else None, **{"contiguous": False, **kwargs})
    low, high = finite("low", low), finite("high", high)
    x = x.mul(high - low).add(low)
    return cls._leaf(graph.contiguous((x if dtype is None else x.cast(dtype)).uop), requires_grad)

  @classmethod
  def normal(cls, *shape: Any, mean: float = 0.0, std: float = 1.0, requires_grad: bool | None = None, **kwargs: Any) -> Tensor:
    """Normal with a mean and a deviation."""
    return cls._leaf(graph.contiguous(cls.randn(*shape, **{"contiguous": False, **kwargs}).mul(std).add(mean).uop), requires_grad)

  @classmethod
  def scaled_uniform(cls, *shape: Any, **kwargs: Any) -> Tensor:
    """Uniform in -1..1 over the square root of the number of elements."""
    bound = max(math.prod(_known_sizes(shape)), 1) ** -0.5
    return cls.uniform(*shape, low=-bound, high=bound, **kwargs)

  @classmethod
  def glorot_uniform(cls, *shape: Any, **kwargs: Any) -> Tensor:
    """Source: Glorot and Bengio 2010, equation 16."""
    sizes = _known_sizes(shape)
    bound = (6 / max(sizes[0] + math.prod(sizes[1:]), 1)) ** 0.5
    return cls.uniform(*shape, low=-bound, high=bound, **kwargs)

  @classmethod
  def kaiming_uniform(cls, *shape: Any, a: float = 0.01, **kwargs: Any) -> Tensor:
    """For layers before a leaky ReLU of slope a; the inputs are all axes but the first. Source: He et al. 2015."""
    bound = math.sqrt(6 / (1 + finite("a", a) ** 2) / _inputs(shape))
    return cls.uniform(*shape, low=-bound, high=bound, **kwargs)

  @classmethod
  def kaiming_normal(cls, *shape: Any, a: float = 0.01, **kwargs: Any) -> Tensor:
    """As kaiming_uniform, with a normal distribution."""
    return cls.normal(*shape, mean=0.0, std=math.sqrt(2 / (1 + finite("a", a) ** 2) / _inputs(shape)), **kwargs)

  def multinomial(self, num_samples: int = 1, replacement: bool = False) -> Tensor:
    """Indices drawn with these weights, per row. Without replacement: the largest of weight ** -1 exponential races."""
    if self.ndim not in (1, 2): raise ShapeError(f"multinomial wants one row of weights or a matrix, not {graph.show(self.shape)}")
    num_samples = checks.whole("num_samples", num_samples, 1)
    weights = self.unsqueeze(0) if self.ndim == 1 else self._self()
    weights = weights.cast(dtypes.float32)
    rows, n = weights.shape
    if replacement or num_samples == 1:
      edges = weights._running(-1, Ops.ADD, 0)
      u = self.rand(rows, num_samples, device=self.device, dtype=dtypes.float32).mul(edges[..., -1:])
      below = edges.unsqueeze(1).expand(rows, num_samples, n) <= u.unsqueeze(-1)
      picked = below.sum(-1).cast(dtypes.int32).minimum(n - 1)
    else:
      if isinstance(n, int) and num_samples > n: raise ArgumentError(f"cannot draw {num_samples} of {n} without replacement")
      race = self.rand(rows, n, device=self.device, dtype=dtypes.float32).sub(1, reverse=True).log().neg().div(weights)
      picked = race.topk(num_samples, largest=False)[1].cast(dtypes.int32)
    return picked.squeeze(0) if self.ndim == 1 else picked

  @classmethod
  def randperm(cls, n: int, device: DeviceLike | None = None, dtype: DTypeLike = dtypes.int32, **kwargs: Any) -> Tensor:
    """0 to n-1 in random order."""
    n = checks.whole("n", n, 0)
    return cls._leaf(cls._new(_high(random_words((n,), device), 32)).cast(dtypes.uint32).argsort().cast(dtype).uop, **kwargs)

  def threefry(self, seed: Any) -> Tensor:
    """64 random bits for each counter (uint64) and key (uint64)."""
    a, b = self._pair("hash", seed)
    if a.dtype is not dtypes.uint64: raise DTypeError(f"threefry wants uint64, not {a.dtype}; cast first")
    return self._new(graph.binary(Ops.THREEFRY, a, b))

  def dropout(self, p: float = 0.5) -> Tensor:
    """While training, zero with probability p, and the rest larger by 1 / (1 - p)."""
    if not 0 <= real("p", p) <= 1: raise ArgumentError(f"dropout needs a probability, not {p}")
    if not TRAINING or p == 0: return self._self()
    if p == 1: return self.zeros_like()
    keep = self.rand(*self.shape, device=self.device, dtype=dtypes.float32, contiguous=False).ge(p).contiguous()
    return keep.where(self, 0).mul(1 / (1 - p))

def _known_sizes(shape: tuple[Any, ...]) -> tuple[int, ...]:
  """Sizes that decide how large values are, at least one. Raises ShapeError."""
  sizes = tuple([static(d, "scale by") for d in checked_shape(shape)])
  if not sizes: raise ShapeError("values that are scaled by sizes need an axis at least; give a shape")
  return sizes

def _inputs(shape: tuple[Any, ...]) -> int: return math.prod(_known_sizes(shape)[1:]) or 1
