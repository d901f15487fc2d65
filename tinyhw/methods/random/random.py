"""Random tensors: uniform, normal and whole numbers, permutations, initialisers, dropout. All are made from the bits of
generator.py.

Numbers have at least as many random bits as the mantissa of their type. Whole numbers of a range are equally likely, to
within 2**-32 of the probability.
"""
from __future__ import annotations
import math
from typing import TYPE_CHECKING, Any

from tinyhw.arithmetic import elements
from tinyhw.config import TRAINING
from tinyhw.device import Device, DeviceLike
from tinyhw.dtype import DType, DTypeLike, dtypes, least_upper_dtype, to_dtype, truncate
from tinyhw.errors import ArgumentError, DTypeError, ShapeError
from tinyhw.methods import checks
from tinyhw.methods.checks import finite, flag, real
from tinyhw.methods.creation import Creation, checked_shape
from tinyhw.methods.data.hostdata import pack
from tinyhw.methods.graph import graph
from tinyhw.methods.graph.views import static
from tinyhw.methods.random.generator import next_draw, restart
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp, sint_prod
if TYPE_CHECKING: from tinyhw.tensor import Tensor

_MASK64 = (1 << 64) - 1
_MASK32 = (1 << 32) - 1

def random_words(shape: tuple[Any, ...], device: DeviceLike | None) -> UOp:
  """Return 64 random bits for each element, as uint64."""
  place = Device.canonicalize(device)
  count = sint_prod(shape)
  node = next_draw(place)
  first, key = (graph.broadcast(graph.shrink(node, [(i, i + 1)]), (count,)) for i in range(2))
  counters = graph.add(graph.iota(count, dtypes.uint64, place), first)
  return graph.reshape(graph.binary(Ops.THREEFRY, counters, key), shape)

def _high(u: UOp, bits: int) -> UOp: return graph.binary(Ops.SHR, u, graph.like(u, u.dtype.bitsize - bits))

def _scaled(words: UOp, span: int) -> UOp:
  """Return random uint64 as integers below span <= 2**64, equally likely to within 2**-32: the upper half of the
  128-bit product words * span."""
  if span > 1 << 32: return _product_high(words, span)
  low = _high(graph.scale(graph.binary(Ops.AND, words, graph.like(words, _MASK32)), span), 32)
  return _high(graph.add(graph.scale(_high(words, 32), span), low), 32)

def _product_high(words: UOp, factor: int) -> UOp:
  """Return the upper 64 bits of words * factor, factor < 2**64, by schoolbook multiplication of 32-bit halves."""
  a1, a0 = _high(words, 32), graph.binary(Ops.AND, words, graph.like(words, _MASK32))
  b1, b0 = factor >> 32, factor & _MASK32
  middle = graph.add(graph.scale(a1, b0), _high(graph.scale(a0, b0), 32))
  other = graph.add(graph.scale(a0, b1), graph.binary(Ops.AND, middle, graph.like(middle, _MASK32)))
  return graph.add(graph.add(graph.scale(a1, b1), _high(middle, 32)), _high(other, 32))

def _below(words: UOp, more: UOp, span: int) -> UOp:
  """Return 128 random bits as integers below span < 2**64, equally likely to within 2**-64: the upper part of their
  product with span."""
  low, carried = graph.scale(words, span), _product_high(more, span)
  total = graph.add(low, carried)
  carry = graph.cast(graph.compare(Ops.CMPLT, total, low), dtypes.uint64)
  return graph.add(_product_high(words, span), carry)

def to_unit(words: UOp, dtype: DType) -> UOp:
  """Return random uint64 as floats in [0, 1): as many random bits as the mantissa has, after the exponent of 1."""
  if dtype.bitsize == 8: return _coarse(words, dtype)
  whole = {16: dtypes.uint16, 32: dtypes.uint32, 64: dtypes.uint64}[dtype.bitsize]
  exponent_bits, mantissa = dtypes.finfo(dtype)
  one = ((1 << (exponent_bits - 1)) - 1) << mantissa
  code = graph.cast(_high(words, mantissa), whole)
  code = graph.binary(Ops.OR, code, graph.like(code, one))
  u = graph.node(Ops.BITCAST, dtype, (code,), None, words.shape)
  return graph.binary(Ops.SUB, u, graph.like(u, 1))

def _coarse(words: UOp, dtype: DType) -> UOp:
  """Return random uint64 as 8-bit floats in [0, 1). All are multiples of 2**-mantissa."""
  bits = dtypes.finfo(dtype)[1]
  return graph.cast(graph.scale(graph.cast(_high(words, bits), dtypes.float32), 2.0 ** -bits), dtype)

def _joined(pair: UOp) -> UOp:
  """Return two uint32, low word first, as one uint64."""
  low, high = (graph.cast(graph.shrink(pair, [(i, i + 1)]), dtypes.uint64) for i in range(2))
  return graph.binary(Ops.OR, low, graph.binary(Ops.SHL, high, graph.like(high, 32)))

def _generator_options(what: str, options: dict[str, Any]) -> bool:
  """Return `contiguous` from the remaining arguments. Raises ArgumentError for others."""
  contiguous = flag("contiguous", options.pop("contiguous", True))
  if options:
    raise ArgumentError(f"{what} does not know {', '.join(sorted(options))}; it takes device, dtype, contiguous and "
                        f"requires_grad")
  return contiguous

class Random(Creation):
  """rand, randn, randint, initialisers, dropout."""
  __slots__ = ()

  @staticmethod
  def manual_seed(seed: int = 0) -> None:
    """Restart the generator with this seed, on all devices.

    >>> Tensor.manual_seed(42)
    >>> a = Tensor.rand(2).tolist()
    >>> Tensor.manual_seed(42)
    >>> a == Tensor.rand(2).tolist()
    True
    """
    if not isinstance(seed, int): raise ArgumentError(f"a seed is an int, not {seed!r}")
    restart(seed)

  @classmethod
  def rand(cls, *shape: Any, device: DeviceLike | None = None, dtype: DTypeLike | None = None, contiguous: bool = True,
           requires_grad: bool | None = None) -> Tensor:
    """Return uniform numbers in [0, 1). contiguous: they are stored, rather than computed where they are used.

    >>> Tensor.manual_seed(42)
    >>> Tensor.rand(3).realize()
    <Tensor (3,) float32 on CPU, realized: [0.31025, 0.99275, 0.10647]>
    """
    kind = dtypes.default_float if dtype is None else to_dtype(dtype)
    if not dtypes.is_float(kind): raise DTypeError(f"rand makes floats, not {kind}; use randint for integers")
    sizes = checked_shape(shape)
    u = to_unit(random_words(sizes, device), kind)
    return cls._leaf(graph.contiguous(u) if contiguous else u, requires_grad)

  def rand_like(self, **kwargs: Any) -> Tensor:
    """Return rand with the shape, type and device of this tensor.

    >>> Tensor.zeros(2, 3).rand_like().shape
    (2, 3)
    """
    return self.rand(*self.shape, **{"device": self.device, "dtype": self.dtype, **kwargs})

  @classmethod
  def randn(cls, *shape: Any, dtype: DTypeLike | None = None, device: DeviceLike | None = None,
            requires_grad: bool | None = None,
            **kwargs: Any) -> Tensor:
    """Return normally distributed numbers with mean 0 and standard deviation 1. Source: Box and Muller 1958.

    >>> Tensor.randn(3, 2).shape
    (3, 2)
    """
    contiguous = _generator_options("randn", kwargs)
    kind = dtypes.default_float if dtype is None else to_dtype(dtype)
    if not dtypes.is_float(kind): raise DTypeError(f"randn makes floats, not {kind}")
    sizes = checked_shape(shape)
    wide = dtypes.float64 if kind is dtypes.float64 else dtypes.float32
    words = random_words(sizes, device)
    other = random_words(sizes, device) if wide is dtypes.float64 else graph.binary(Ops.SHL, words,
                                                                                    graph.like(words, 32))
    radius = cls._new(to_unit(words, wide)).sub(1, reverse=True).log().mul(-2).sqrt()
    u = radius.mul(cls._new(to_unit(other, wide)).mul(2 * math.pi).cos()).cast(kind).uop
    return cls._leaf(graph.contiguous(u) if contiguous else u, requires_grad)

  def randn_like(self, dtype: DTypeLike | None = None, **kwargs: Any) -> Tensor:
    """Return randn with the shape, type and device of this tensor.

    >>> Tensor.zeros(2, 3).randn_like().shape
    (2, 3)
    """
    return self.randn(*self.shape, **{"dtype": self.dtype if dtype is None else dtype, "device": self.device, **kwargs})

  @classmethod
  def randint(cls, *shape: Any, low: int = 0, high: int = 10, dtype: DTypeLike = dtypes.int32,
              device: DeviceLike | None = None,
              requires_grad: bool | None = None, **kwargs: Any) -> Tensor:
    """Return integers from low to high - 1, equally likely. The largest and smallest probability differ by at most
    2**-32 of them.

    >>> set(Tensor.randint(100, low=2, high=5).tolist()) == {2, 3, 4}
    True
    """
    contiguous = _generator_options("randint", kwargs)
    kind = to_dtype(dtype)
    if not dtypes.is_int(kind): raise DTypeError(f"randint makes integers, not {kind}; use rand or uniform for floats")
    low, high = (int(x) if isinstance(x, UOp) and dtypes.is_int(x.dtype) else x for x in (low, high))
    if not all(isinstance(x, int) for x in (low, high)):
      raise ArgumentError(f"randint wants ints for low and high, not {low!r} and {high!r}")
    if high <= low: raise ArgumentError(f"randint needs low < high, not {low} and {high}")
    if low < kind.min or high - 1 > kind.max:
      raise ArgumentError(f"{low} to {high - 1} does not fit into {kind}; choose a wider dtype")
    sizes, span = checked_shape(shape), high - low
    words = random_words(sizes, device)
    if span <= 1 << 32: picked = _scaled(words, span)
    else: picked = _below(words, random_words(sizes, device), span) if span < 1 << 64 else words
    u = graph.cast(picked, kind)
    u = graph.add(u, graph.like(u, low)) if low else u
    return cls._leaf(graph.contiguous(u) if contiguous else u, requires_grad)

  @classmethod
  def uniform(cls, *shape: Any, low: float = 0.0, high: float = 1.0, dtype: DTypeLike | None = None,
              requires_grad: bool | None = None,
              **kwargs: Any) -> Tensor:
    """Return uniform numbers in [low, high). Raises ArgumentError for limits that are not finite.

    >>> x = Tensor.uniform(100, low=2, high=3)
    >>> x.min().item() >= 2 and x.max().item() < 3
    True
    """
    kind = dtypes.default_float if dtype is None else to_dtype(dtype)
    low, high = finite("low", low), finite("high", high)
    wide = least_upper_dtype(kind if dtypes.is_float(kind) else dtypes.float32, dtypes.float32)
    if math.isinf(truncate[wide](high - low)):
      raise ArgumentError(f"uniform cannot spread over {low} to {high}: the distance is more than {wide} holds")
    x = cls.rand(*shape, dtype=wide, **{"contiguous": False, **kwargs}).mul(high - low).add(low).cast(kind)
    # roundings must not reach high
    if high > low and dtypes.is_float(kind): x = x.minimum(max(largest_below(kind, high), low))
    return cls._leaf(graph.contiguous(x.uop), requires_grad)

  @classmethod
  def normal(cls, *shape: Any, mean: float = 0.0, std: float = 1.0, requires_grad: bool | None = None,
             **kwargs: Any) -> Tensor:
    """Return normally distributed numbers with a mean and a standard deviation. Raises ArgumentError for a negative
    deviation.

    >>> Tensor.manual_seed(42)
    >>> Tensor.normal(3, mean=10, std=0.1).realize()
    <Tensor (3,) float32 on CPU, realized: [10.059, 10.184, 9.9529]>
    """
    if finite("std", std) < 0: raise ArgumentError(f"normal needs a deviation of 0 or more, not {std}")
    x = cls.randn(*shape, **{"contiguous": False, **kwargs}).mul(std).add(finite("mean", mean))
    return cls._leaf(graph.contiguous(x.uop), requires_grad)

  @classmethod
  def scaled_uniform(cls, *shape: Any, **kwargs: Any) -> Tensor:
    """Return uniform numbers between -1 and 1, divided by the square root of the number of elements.

    >>> Tensor.scaled_uniform(10, 10).abs().max().item() <= 0.1
    True
    """
    bound = max(math.prod(_known_sizes(shape)), 1) ** -0.5
    return cls.uniform(*shape, low=-bound, high=bound, **kwargs)

  @classmethod
  def glorot_uniform(cls, *shape: Any, **kwargs: Any) -> Tensor:
    """Return uniform numbers for a layer, by Glorot's rule. Source: Glorot and Bengio 2010, equation 16.

    >>> Tensor.glorot_uniform(3, 3).abs().max().item() <= 1
    True
    """
    sizes = _known_sizes(shape)
    bound = (6 / max(sizes[0] + math.prod(sizes[1:]), 1)) ** 0.5
    return cls.uniform(*shape, low=-bound, high=bound, **kwargs)

  @classmethod
  def kaiming_uniform(cls, *shape: Any, a: float = 0.01, **kwargs: Any) -> Tensor:
    """Return uniform numbers for a layer before a leaky ReLU of slope a. All axes but the first are inputs. Source: He
    et al. 2015.

    >>> Tensor.kaiming_uniform(8, 24).shape
    (8, 24)
    """
    bound = math.sqrt(6 / (1 + finite("a", a) ** 2) / _inputs(shape))
    return cls.uniform(*shape, low=-bound, high=bound, **kwargs)

  @classmethod
  def kaiming_normal(cls, *shape: Any, a: float = 0.01, **kwargs: Any) -> Tensor:
    """Return normally distributed numbers, otherwise as kaiming_uniform.

    >>> Tensor.kaiming_normal(8, 24).shape
    (8, 24)
    """
    return cls.normal(*shape, mean=0.0, std=math.sqrt(2 / (1 + finite("a", a) ** 2) / _inputs(shape)), **kwargs)

  def multinomial(self, num_samples: int = 1, replacement: bool = False) -> Tensor:
    """Draw indices with these weights, for each row. Weights are not negative, and not all 0.

    Without replacement, the result is the first indices of an exponential race. If fewer weights than num_samples are
    above 0, indices of zeros follow. Raises ShapeError, ArgumentError.

    >>> Tensor([0.0, 1.0, 0.0]).multinomial(4, replacement=True).tolist()
    [1, 1, 1, 1]
    """
    if self.ndim not in (1, 2):
      raise ShapeError(f"multinomial wants one row of weights or a matrix, not {graph.show(self.shape)}")
    num_samples = checks.whole("num_samples", num_samples, 1)
    weights = self.unsqueeze(0) if self.ndim == 1 else self._self()
    weights = weights.cast(dtypes.float32)
    rows, n = weights.shape
    if isinstance(n, int) and n == 0:
      raise ShapeError(f"multinomial has nothing to draw from: the shape is {graph.show(self.shape)}")
    if flag("replacement", replacement) or num_samples == 1:
      edges = weights._running(-1, Ops.ADD, 0)
      u = self.rand(rows, num_samples, device=self.device, dtype=dtypes.float32).mul(edges[..., -1:])
      below = edges.unsqueeze(1).expand(rows, num_samples, n) <= u.unsqueeze(-1)
      picked = below.sum(-1, dtype=graph.place_type(n)).minimum(n - 1)
    else:
      if isinstance(n, int) and num_samples > n:
        raise ArgumentError(f"cannot draw {num_samples} of {n} without replacement")
      time = self.rand(rows, n, device=self.device, dtype=dtypes.float32).sub(1, reverse=True).log().neg()
      race = weights.gt(0).where(time.div(weights.gt(0).where(weights, 1)), math.inf)
      picked = race.topk(num_samples, largest=False)[1]
    return picked.squeeze(0) if self.ndim == 1 else picked

  @classmethod
  def randperm(cls, n: int, device: DeviceLike | None = None, dtype: DTypeLike = dtypes.int32, **kwargs: Any) -> Tensor:
    """Return 0 to n-1 in random order. Raises ArgumentError for a negative n, or one that the type does not hold.

    >>> sorted(Tensor.randperm(5).tolist())
    [0, 1, 2, 3, 4]
    """
    kind = to_dtype(dtype)
    n = checks.whole("n", n, 0)
    if not dtypes.is_float(kind) and n - 1 > kind.max:
      raise ArgumentError(f"0 to {n - 1} does not fit into {kind}; choose a wider dtype")
    order = cls._new(random_words((n,), device)).argsort() if n else cls._new(random_words((n,), device))
    return cls._leaf(order.cast(kind).uop, **kwargs)

  @classmethod
  def random_bits(cls, key: Tensor, counter: Tensor, num: int) -> Tensor:
    """Return num random uint32, a function of key and counter alone. Each of these is two uint32, low word first.

    Threefry makes a key for this counter, and from that key the words. The first halves of all blocks come before the
    second halves.

    >>> key, counter = Tensor([1, 2], dtype="uint32"), Tensor([0, 0], dtype="uint32")
    >>> Tensor.random_bits(key, counter, 4).tolist()
    [2804340251, 2492954182, 2733399006, 1127316618]
    """
    for name, x in (("key", key), ("counter", counter)):
      if not isinstance(x, Random) or x.shape != (2,) or x.dtype is not dtypes.uint32:
        shown = f"{x.dtype} of shape {graph.show(x.shape)}" if isinstance(x, Random) else repr(x)
        raise ArgumentError(f"random_bits wants a {name} of two uint32, not {shown}")
    num = checks.whole("num", num, 0)
    half = (num + 1) // 2
    own = graph.binary(Ops.THREEFRY, _joined(counter.uop), _joined(key.uop))
    first = graph.iota(half, dtypes.uint64, key.device)
    second = graph.binary(Ops.SHL, graph.add(first, graph.like(first, half)), graph.like(first, 32))
    words = graph.binary(Ops.THREEFRY, graph.binary(Ops.OR, first, second), graph.broadcast(own, (half,)))
    return cls._new(graph.cast(words, dtypes.uint32)).cat(cls._new(graph.cast(_high(words, 32), dtypes.uint32))).shrink(
      ((0, num),))

  def threefry(self, seed: Any) -> Tensor:
    """Return 64 random bits for each counter (uint64) and key (uint64).

    >>> Tensor([0], dtype="uint64").threefry(Tensor([0], dtype="uint64")).tolist()
    [11077253088097075545]
    """
    a, b = self._pair("hash", seed)
    if a.dtype is not dtypes.uint64: raise DTypeError(f"threefry wants uint64, not {a.dtype}; cast first")
    return self._new(graph.binary(Ops.THREEFRY, a, b))

  def dropout(self, p: float = 0.5) -> Tensor:
    """While training, set elements to zero with probability p, and multiply the others by 1 / (1 - p).

    >>> Tensor([1.0, 2.0]).dropout(0.5).tolist()   # not training
    [1.0, 2.0]
    """
    if not 0 <= real("p", p) <= 1: raise ArgumentError(f"dropout needs a probability, from 0 to 1, not {p!r}")
    if not TRAINING or p == 0: return self._self()
    if p == 1: return self.zeros_like()
    keep = self.rand(*self.shape, device=self.device, dtype=dtypes.float32, contiguous=False).ge(p).contiguous()
    return keep.where(self, 0).mul(1 / (1 - p))

def largest_below(dtype: DType, limit: float) -> float:
  """Return the largest number of a float type that is less than limit."""
  found = float(truncate[dtype](limit))
  if found < limit: return found
  code = int.from_bytes(pack([found], dtype), "little")
  sign = 1 << (dtype.bitsize - 1)
  if not code & ~sign: code = sign | 1     # the smallest negative number is below both zeros
  else: code += 1 if code & sign else -1
  return float(elements(code.to_bytes(dtype.itemsize, "little"), dtype)[0])

def _known_sizes(shape: tuple[Any, ...]) -> tuple[int, ...]:
  """Return sizes that decide how large values are: at least one. Raises ShapeError."""
  sizes = tuple([static(d, "scale by") for d in checked_shape(shape)])
  if not sizes: raise ShapeError("values that are scaled by sizes need an axis at least; give a shape")
  return sizes

def _inputs(shape: tuple[Any, ...]) -> int: return math.prod(_known_sizes(shape)[1:]) or 1
