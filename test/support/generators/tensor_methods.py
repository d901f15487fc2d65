"""Random operations beyond operators and movements (generators/tensor_maker.py): activations, statistics, sorting,
indexing, windows, writing in place."""
from __future__ import annotations
from collections.abc import Callable
import math
from typing import Any

import numpy as np
from generators.tensor_maker import DIGITS, FLOATS, SIGNED, TYPES, UNSIGNED, Maker, Value, largest
from generators.tensor_table import ROWS, Row

from tinyhw import Tensor, dtypes
from tinyhw.dtype import least_upper_dtype

INTEGERS = SIGNED + UNSIGNED
NOT_DRAWN = {"qr", "svd",     # hundreds of kernels
             "bfloat16"}      # NumPy has no such type to go on with
# want values that are equal everywhere
COMPARING = {"where", "masked_fill", "masked_select", "cummax", "cummin", "sort", "topk", "max_unpool2d"}
WIDE = ("float32", "float64")

def sigmoid(a: Any) -> Any: return 1 / (1 + np.exp(-a))
def softplus(a: Any) -> Any: return np.logaddexp(a, 0)

ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
  "silu": lambda a: a * sigmoid(a), "mish": lambda a: a * np.tanh(softplus(a)), "relu6": lambda a: np.clip(a, 0, 6),
  "softplus": softplus,
  "hardswish": lambda a: a * np.clip(a + 3, 0, 6) / 6, "hardsigmoid": lambda a: np.clip(a / 6 + 0.5, 0, 1),
  "hardtanh": lambda a: np.clip(a, -1, 1),
  "leaky_relu": lambda a: np.where(a < 0, a * 0.01, a), "elu": lambda a: np.where(a > 0, a, np.expm1(np.minimum(a, 0))),
  "celu": lambda a: np.where(a > 0, a, np.expm1(np.minimum(a, 0))), "softsign": lambda a: a / (1 + np.abs(a)),
  "logsigmoid": lambda a: -softplus(-a),
  "quick_gelu": lambda a: a * sigmoid(1.702 * a),
  "gelu": lambda a: a / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (a + 0.044715 * a ** 3))),
  "erf": lambda a: np.vectorize(math.erf, otypes=[float])(a), "cos": np.cos, "atan": np.arctan, "asinh": np.arcsinh,
}

class Methods(Maker):
  """All operations: those of Maker and these."""

  def exact(self, v: Value, factor: float = 1.0, more: int = 0) -> int | None:
    """Bits of a result whose values, and partial sums, are at most `factor` times v's largest, with `more` bits of
    fraction."""
    if v.bits is None or not v.is_float: return v.bits
    return v.bits + more if largest(v.array) * factor * 2.0 ** (v.bits + more) < 2.0 ** DIGITS[v.kind] else None

  def axis(self, k: int) -> int:
    """An axis of value k, counted from either end."""
    n = self.values[k].array.ndim
    return self.random.randrange(-n, n)

  # ***** elementwise *****

  def op_activation(self) -> bool:
    k = self.pick(lambda v: v.is_float and largest(v.array) < 20)
    if k is None: return False
    v, name = self.values[k], self.random.choice(list(ACTIVATIONS))
    return self.add(name, (k,), ACTIVATIONS[name](v.array.astype(np.float64)).astype(v.kind),
                    lambda t: getattr(t, name)(), None)

  def op_clamp(self) -> bool:
    k = self.pick(lambda v: v.kind != "bool")
    if k is None: return False
    v, (low, high) = self.values[k], sorted(self.random.sample(range(9), 2))
    if v.kind not in UNSIGNED: low, high = low - 4, high - 4
    only = self.random.randrange(3)
    least, most = (None if only == 1 else low), (None if only == 2 else high)
    return self.add(f"clamp[{least}, {most}]", (k,), np.clip(v.array, least, most).astype(v.kind),
                    lambda t: t.clamp(least, most), v.bits)

  def op_division(self) -> bool:
    """By what is nowhere 0; integers give floats, or are divided towards zero."""
    k = self.pick(lambda v: v.kind != "bool" and v.bits is not None)
    if k is None: return False
    x = self.values[k]
    b = self.alike(k)
    y = self.values[b]
    if y.array.size and np.abs(y.array.astype(np.float64)).min() < 0.2: return False
    # the smallest number has no negative
    if y.bits is None or (y.kind in SIGNED and (y.array == -1).any()): return False
    if x.is_float:
      if x.array.size and np.abs(x.array).max() > 1e3: return False
      if self.random.random() < 0.5:
        return self.add("fmod", (k, b), np.fmod(x.array, y.array), lambda s, t: s.fmod(t), max(x.bits or 0, y.bits))
      return self.add("div", (k, b), x.array / y.array, lambda s, t: s / t, None)
    if self.random.random() < 0.5: return self.add("fmod", (k, b), np.fmod(x.array, y.array), lambda s, t: s.fmod(t))
    quotient = (np.sign(x.array) * np.sign(y.array) * (abs(x.array) // abs(y.array)) if x.kind in SIGNED
                else x.array // y.array)
    if x.kind in SIGNED and x.array.size and x.array.min() == np.iinfo(x.kind).min: return False
    return self.add("div[trunc]", (k, b), quotient.astype(x.kind), lambda s, t: s.div(t, rounding_mode="trunc"))

  def op_power(self) -> bool:
    """To a small power."""
    k = self.pick(lambda v: v.kind != "bool")
    if k is None: return False
    v, n = self.values[k], self.random.choice([0, 1, 2, 3])
    with np.errstate(all="ignore"): array = v.array ** v.array.dtype.type(n)
    return self.add(f"pow[{n}]", (k,), array, lambda t: t ** n, None if v.is_float and v.bits is None
                    or v.kind == "float16" else (v.bits or 0) * n)

  def op_shift(self) -> bool:
    k = self.pick(lambda v: v.kind in UNSIGNED)
    if k is None: return False
    x, b = self.values[k], self.alike(k)
    width = x.array.dtype.itemsize * 8
    by = self.values[b].array % x.array.dtype.type(width)
    if self.random.random() < 0.5: return self.add("shl", (k, b), x.array << by, lambda s, t: s << (t % width))
    return self.add("shr", (k, b), x.array >> by, lambda s, t: s >> (t % width))

  def op_promoted(self) -> bool:
    """Of two types."""
    a = self.pick(lambda v: v.bits is not None)
    if a is None: return False
    x = self.values[a]
    def fits(v: Value) -> bool:
      if v.kind == x.kind or v.bits is None: return False
      try: return len(np.broadcast_shapes(v.array.shape, x.array.shape)) >= 0
      except ValueError: return False
    b = self.pick(fits)
    if b is None: return False
    y = self.values[b]
    kind = str(least_upper_dtype(*[getattr(dtypes, v.kind) for v in (x, y)])).rpartition(".")[2]
    kind = {"float": "float32", "double": "float64", "half": "float16"}.get(kind, kind)
    if kind not in TYPES: return False
    assert x.bits is not None and y.bits is not None
    if kind in FLOATS and max(largest(x.array), largest(y.array)) * 2.0 ** (x.bits + y.bits + 1) >= 2.0 ** DIGITS[kind]:
      return False
    p, q = x.array.astype(kind), y.array.astype(kind)
    with np.errstate(all="ignore"):
      if kind == "bool": return self.add("promoted |", (a, b), p | q, lambda s, t: s | t)
      if self.random.random() < 0.3: return self.add("promoted <", (a, b), p < q, lambda s, t: s < t)
      if self.random.random() < 0.5: return self.add("promoted *", (a, b), p * q, lambda s, t: s * t, x.bits + y.bits)
      return self.add("promoted +", (a, b), p + q, lambda s, t: s + t, max(x.bits, y.bits))

  def op_chain(self) -> bool:
    """A few operations that become one kernel, with one value used many times."""
    k = self.pick(lambda v: v.kind in WIDE and v.bits is not None and largest(v.array) < 8)
    if k is None: return False
    v, n = self.values[k], self.random.randint(2, 6)
    a = v.array
    for _ in range(n): a = np.maximum(a * v.array.dtype.type(0.5), v.array) - v.array.dtype.type(1)
    def tensor(t: Tensor) -> Tensor:
      u = t
      for _ in range(n): u = (u * 0.5).maximum(t) - 1
      return u
    return self.add(f"chain[{n}]", (k,), a, tensor, (v.bits or 0) + n)

  # ***** rows of the table *****

  def op_row(self) -> bool:
    """A method of the table, which may be rounded differently."""
    return self.row([row for row in ROWS if row.result == "about" and row.name not in NOT_DRAWN])

  def op_exact_row(self) -> bool:
    """A method of the table whose values are those of its operand, or exact."""
    return self.row([row for row in ROWS if row.result != "about" and row.name not in NOT_DRAWN])

  def row(self, rows: list[Row]) -> bool:
    row = self.random.choice(rows)
    k = self.pick(lambda v: row.takes(v.array) and v.array.size <= 512 and (v.bits is not None or row.result == "same"))
    if k is None: return False
    v = self.values[k]
    if v.bits is None and row.name in COMPARING: return False
    with np.errstate(all="ignore"): array = np.asarray(row.array(v.array))
    bits = {"same": v.bits, "exact": 0, "about": None}[row.result]
    if bits is None and array.dtype.kind in "iub": bits = 0
    return self.add(f"{row.name}[row]", (k,), array, row.tensor, bits)

  # ***** movement *****

  def op_rearranged(self) -> bool:
    k = self.pick(lambda v: v.array.ndim > 0)
    if k is None: return False
    a, axis, n = self.values[k].array, self.axis(k), self.random.randint(1, 3)
    other, size = self.axis(k), self.values[k].array.shape[axis]
    table: list[tuple[str, Any, Callable[[Tensor], Tensor]]] = [
      ("transpose", np.swapaxes(a, axis, other), lambda t: t.transpose(axis, other)),
      ("flatten", a.reshape(-1), lambda t: t.flatten()),
      ("repeat", np.tile(a, (n,) + (1,) * (a.ndim - 1)), lambda t: t.repeat(*[n] + [1] * (t.ndim - 1))),
      ("repeat_interleave", np.repeat(a, n, axis), lambda t: t.repeat_interleave(n, axis)),
      ("stack", np.stack([a, a], axis), lambda t: t.stack(t, dim=axis)),
      ("unsqueeze", np.expand_dims(a, axis), lambda t: t.unsqueeze(axis)),
      ("pad_to", np.pad(a, [(0, n)] + [(0, 0)] * (a.ndim - 1)), lambda t: t.pad_to(t.shape[0] + n, *t.shape[1:]))]
    if size > 2: table += [("narrow", np.take(a, range(1, size), axis), lambda t: t.split([1, size - 1], axis)[1]),
                           ("chunk", np.take(a, range(-(-size // 2)), axis), lambda t: t.chunk(2, axis)[0])]
    if size >= 2 * n:
      view = np.lib.stride_tricks.sliding_window_view(a, n, axis=axis)
      view = np.take(view, range(0, view.shape[axis % a.ndim], 2), axis % a.ndim)
      table.append((f"unfold[{n}, 2]", view, lambda t: t.unfold(axis, n, 2)))
    if a.ndim >= 2:
      table += [(f"tril[{n - 2}]", np.tril(a, n - 2), lambda t: t.tril(n - 2)),
                (f"triu[{n - 2}]", np.triu(a, n - 2), lambda t: t.triu(n - 2)),
                ("diagonal", np.diagonal(a, 0), lambda t: t.diagonal()),
                ("T", np.swapaxes(a, 0, 1), lambda t: t.transpose(0, 1))]
    if a.ndim == 1: table.append(("diag", np.diag(a), lambda t: t.diag()))
    name, array, tensor = self.random.choice(table)
    return self.moved(f"{name}[{axis}, {other}, {n}]", k, array, tensor)

  # ***** reductions, running folds, order *****

  def op_statistic(self) -> bool:
    k = self.pick(lambda v: v.array.ndim > 0 and v.array.size > 1 and v.kind in WIDE and largest(v.array) < 20)
    if k is None: return False
    v, axis, keep = self.values[k], self.axis(k), self.random.random() < 0.3
    a, n = v.array, v.array.shape[axis]
    def norm(x: Any) -> Any: return x / np.maximum(np.sqrt((x * x).sum(axis, keepdims=True)), 1e-12)
    table = [("logsumexp", lambda: np.logaddexp.reduce(a, axis, keepdims=keep), lambda t: t.logsumexp(axis, keep)),
             ("log_softmax", lambda: a - np.logaddexp.reduce(a, axis, keepdims=True), lambda t: t.log_softmax(axis)),
             ("softmin", lambda: np.exp(-a - np.logaddexp.reduce(-a, axis, keepdims=True)), lambda t: t.softmin(axis)),
             ("logcumsumexp", lambda: np.logaddexp.accumulate(a, axis), lambda t: t.logcumsumexp(axis))]
    if n > 1: table += [("var", lambda: a.var(axis, ddof=1, keepdims=keep), lambda t: t.var(axis, keep)),
                        ("std", lambda: a.std(axis, ddof=0, keepdims=keep), lambda t: t.std(axis, keep, correction=0))]
    if a.size and np.abs(a).min() > 0.1: table.append(("normalize", lambda: norm(a), lambda t: t.normalize(dim=axis)))
    name, array, tensor = self.random.choice(table)
    result = array().astype(v.kind)
    if name == "std" and result.size and result.min() < 0.05: return False
    return self.add(f"{name}[{axis}, {keep}]", (k,), result, tensor, None)

  def op_product(self) -> bool:
    k = self.pick(lambda v: v.array.ndim > 0 and v.kind in ("int32", "int64", "uint32", "uint64"))
    if k is None: return False
    v, axis = self.values[k], self.axis(k)
    if self.random.random() < 0.5:
      return self.add(f"prod[{axis}]", (k,), v.array.prod(axis, dtype=v.kind), lambda t: t.prod(axis))
    return self.add(f"cumprod[{axis}]", (k,), v.array.cumprod(axis, dtype=v.kind), lambda t: t.cumprod(axis))

  def op_sum_of_its_type(self) -> bool:
    """The sum, or running sum, of a narrow type has the type that the method chooses."""
    k = self.pick(lambda v: v.array.ndim > 0 and (v.kind == "bool" or v.kind in INTEGERS))
    if k is None: return False
    v, axis = self.values[k], self.axis(k)
    wide = {"bool": "int32", "int8": "int32", "int16": "int32", "uint8": "uint32",
            "uint16": "uint32"}.get(v.kind, v.kind)
    if self.random.random() < 0.5:
      return self.add(f"sum[{axis}]", (k,), v.array.sum(axis, dtype=wide), lambda t: t.sum(axis))
    return self.add(f"cumsum[{axis}]", (k,), v.array.cumsum(axis, dtype=wide), lambda t: t.cumsum(axis))

  def op_running_extreme(self) -> bool:
    k = self.pick(lambda v: v.array.ndim > 0 and v.kind != "bool" and v.bits is not None)
    if k is None: return False
    v, axis = self.values[k], self.axis(k)
    table = [("cummax", np.maximum.accumulate, lambda t: t.cummax(axis)[0]),
             ("cummin", np.minimum.accumulate, lambda t: t.cummin(axis)[0])]
    name, array, tensor = self.random.choice(table)
    return self.add(f"{name}[{axis}]", (k,), array(v.array, axis), tensor, v.bits)

  def op_argmin(self) -> bool:
    k = self.pick(lambda v: v.array.size > 0 and v.bits is not None and v.kind != "bool")
    if k is None: return False
    v = self.values[k]
    if v.array.ndim == 0 or self.random.random() < 0.3:
      return self.add("argmin", (k,), np.int32(v.array.argmin()), lambda t: t.argmin())
    axis = self.axis(k)
    return self.add(f"argmin[{axis}]", (k,), v.array.argmin(axis).astype(np.int32), lambda t: t.argmin(axis))

  def op_order(self) -> bool:
    k = self.pick(lambda v: v.array.ndim > 0 and v.kind != "bool" and v.bits is not None and v.array.size <= 512)
    if k is None: return False
    v, axis = self.values[k], self.axis(k)
    a, n = v.array, v.array.shape[axis]
    most = self.random.randint(0, n)
    table: list[tuple[str, Any, Callable[[Tensor], Tensor], int | None]] = [
      ("sort", np.sort(a, axis), lambda t: t.sort(axis)[0], v.bits),
      ("argsort", np.argsort(a, axis, kind="stable").astype(np.int32), lambda t: t.argsort(axis), 0),
      (f"topk {most}", np.take(np.flip(np.sort(a, axis), axis), range(most), axis), lambda t: t.topk(most, axis)[0],
       v.bits)]
    name, array, tensor, bits = self.random.choice(table)
    return self.add(f"{name}[{axis}]", (k,), array, tensor, bits)

  # ***** indexing *****

  def rows(self, k: int, size: int) -> int | None:
    """A value that holds integers, to be taken modulo `size`."""
    return (self.pick(lambda v: v.kind in INTEGERS and 0 < v.array.size <= 64 and v.array.ndim <= 2) if size
            and size <= 100 else None)

  def op_index_two(self) -> bool:
    """Two Tensors index two axes."""
    k = self.pick(lambda v: v.array.ndim >= 2 and v.array.size > 0)
    if k is None: return False
    a = self.values[k].array
    first, second = sorted(self.random.sample(range(a.ndim), 2))
    i = self.rows(k, max(a.shape[first], a.shape[second]))
    if i is None: return False
    x = self.values[i].array
    p, q = (x % x.dtype.type(n) for n in (a.shape[first], a.shape[second]))
    def key(s: Any, t: Any) -> Any: return tuple({first: s, second: t}.get(j, slice(None)) for j in range(a.ndim))
    def tensor(t: Tensor, r: Tensor) -> Tensor: return t[key(r % a.shape[first], r % a.shape[second])]
    return self.add(f"index[{first}, {second}]", (k, i), a[key(p, q)], tensor, self.values[k].bits)

  def op_along(self) -> bool:
    """gather, scatter and their relatives, with the operand itself as the source."""
    k = self.pick(lambda v: v.array.ndim > 0 and 0 < v.array.size <= 512 and v.bits is not None)
    if k is None: return False
    v = self.values[k]
    a, axis = v.array, self.axis(k)
    n = a.shape[axis]
    i = self.pick(lambda w: w.kind in INTEGERS and w.array.shape == a.shape)
    if i is None or n > 100: return False
    where = self.values[i].array % self.values[i].array.dtype.type(n)
    def index(r: Tensor) -> Tensor: return r % n
    mode = self.random.choice(["gather", "scatter", "sum", "amax", "amin"])
    if mode == "gather":
      return self.add(f"gather[{axis}]", (k, i), np.take_along_axis(a, where.astype(np.int64), axis), lambda t,
                      r: t.gather(axis, index(r)), v.bits)
    if v.kind == "bool": return False
    out = a.copy()
    fold = {"scatter": lambda p, q: q, "sum": lambda p, q: p + q, "amax": max, "amin": min}[mode]
    with np.errstate(all="ignore"):
      for at in np.ndindex(*a.shape):
        to = list(at)
        to[axis] = int(where[at])
        out[tuple(to)] = fold(out[tuple(to)], a[at])
    if mode == "scatter":
      return self.add(f"scatter[{axis}]", (k, i), out, lambda t, r: t.scatter(axis, index(r), t), v.bits)
    bits = self.exact(v, n + 1) if mode == "sum" else v.bits
    if mode == "sum" and v.kind == "float16": return False
    return self.add(f"scatter_reduce[{axis}, {mode}]", (k, i), out, lambda t,
                    r: t.scatter_reduce(axis, index(r), t, mode), bits)

  def op_masked(self) -> bool:
    k = self.pick(lambda v: v.array.ndim > 0)
    m = None if k is None else self.pick(lambda v: v.kind == "bool" and v.array.shape == self.values[k].array.shape)
    if k is None or m is None: return False
    a, mask = self.values[k].array, self.values[m].array
    if self.random.random() < 0.4:
      one = True if a.dtype == np.bool_ else 1
      return self.add("masked_fill", (k, m), np.where(mask, a.dtype.type(1), a), lambda t, c: t.masked_fill(c, one),
                      self.values[k].bits)
    if self.random.random() < 0.5:
      return self.add("index[mask]", (k, m), a[mask], lambda t, c: t[c], self.values[k].bits)
    chosen = np.zeros(7, a.dtype)
    chosen[:min(7, mask.sum())] = a[mask][:7]
    return self.add("masked_select[7]", (k, m), chosen, lambda t, c: t.masked_select(c, size=7), self.values[k].bits)

  def op_one_hot(self) -> bool:
    k = self.pick(lambda v: v.kind in INTEGERS and v.array.size <= 256)
    if k is None: return False
    a, n = self.values[k].array, self.random.choice([1, 4, 9])
    x = a % a.dtype.type(n)
    return self.add(f"one_hot[{n}]", (k,), (x[..., None] == np.arange(n)).astype(np.int32),
                    lambda t: (t % n).one_hot(n).cast(dtypes.int32))

  # ***** windows and products *****

  def image(self, kinds: tuple[str, ...] = WIDE) -> tuple[int, tuple[int, ...]] | None:
    """A value, and a shape (batch, channels, height, width) that its first elements fill."""
    k = self.pick(lambda v: v.kind in kinds and v.array.size >= 6)
    if k is None: return None
    size = min(self.values[k].array.size, 400)
    channels = self.random.choice([c for c in (1, 2, 4) if c <= size])
    batch = self.random.choice([b for b in (1, 2) if b * channels <= size])
    width = self.random.randint(1, min(12, size // (channels * batch)))
    return k, (batch, channels, min(size // (channels * batch * width), 12), width)

  def op_convolution(self) -> bool:
    found = self.image()
    if found is None: return False
    k, shape = found
    v = self.values[k]
    w = self.pick(lambda o: o.kind == v.kind and o.array.size >= 4)
    assert w is not None or v.array.size < 4
    if w is None: return False
    weights = self.values[w]
    groups = self.random.choice([1, shape[1]])
    outputs, kernel = groups * self.random.randint(1, 2), (self.random.randint(1, 3), self.random.randint(1, 3))
    filters = (outputs, shape[1] // groups, *kernel)
    if int(np.prod(filters)) > weights.array.size: return False
    stride, dilation, pad = self.random.randint(1, 2), self.random.randint(1, 2), self.random.randint(0, 2)
    x, y = v.array.reshape(-1)[:int(np.prod(shape))].reshape(shape), weights.array.reshape(-1)[
      :int(np.prod(filters))].reshape(filters)
    padded = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    reach = [dilation * (m - 1) + 1 for m in kernel]
    if any(n < r for n, r in zip(padded.shape[2:], reach)): return False
    windows = np.lib.stride_tricks.sliding_window_view(padded, reach, axis=(2, 3))[:, :, ::stride, ::stride, ::dilation,
                                                                                   ::dilation]
    windows = windows.reshape(shape[0], groups, shape[1] // groups, *windows.shape[2:])
    out = np.einsum("bgchwij,gocij->bgohw", windows, y.reshape(groups, outputs // groups, *filters[1:]))
    terms = filters[1] * kernel[0] * kernel[1]
    bits = None if weights.bits is None else self.exact(v, largest(weights.array) * terms, weights.bits)
    def tensor(t: Tensor, u: Tensor) -> Tensor:
      image, filter_ = (z.flatten()[:math.prod(s)].reshape(s) for z, s in ((t, shape), (u, filters)))
      return image.conv2d(filter_, groups=groups, stride=stride, dilation=dilation, padding=pad)
    out = out.reshape(shape[0], outputs, *out.shape[3:]).astype(v.kind)
    return self.add(f"conv2d[{shape}, {filters}, {groups, stride, dilation, pad}]", (k, w), out, tensor, bits)

  def op_pool(self) -> bool:
    found = self.image((*WIDE, "int32"))
    if found is None: return False
    k, shape = found
    v = self.values[k]
    kernel, stride = (self.random.randint(1, 3), self.random.randint(1, 3)), self.random.randint(1, 3)
    if any(n < m for n, m in zip(shape[2:], kernel)): return False
    x = v.array.reshape(-1)[:int(np.prod(shape))].reshape(shape)
    windows = np.lib.stride_tricks.sliding_window_view(x, kernel, axis=(2, 3))[:, :, ::stride, ::stride]
    name = f"pool2d[{shape}, {kernel, stride}]"
    def image(t: Tensor) -> Tensor: return t.flatten()[:math.prod(shape)].reshape(shape)
    if v.is_float and self.random.random() < 0.5:
      return self.add("avg_" + name, (k,), windows.mean((-1, -2)), lambda t: image(t).avg_pool2d(kernel, stride), None)
    return self.add("max_" + name, (k,), windows.max((-1, -2)), lambda t: image(t).max_pool2d(kernel, stride), v.bits)

  def op_einsum(self) -> bool:
    k = self.pick(lambda v: v.array.ndim in (2, 3) and v.kind in (*WIDE, "int32") and v.array.size <= 600)
    if k is None: return False
    v = self.values[k]
    formulas = {2: ["ij,ij->i", "ij,ij->", "ij,kj->ik", "ij,ij->ji"], 3: ["bij,bkj->bik", "bij,bij->j", "bij,bij->bji"]}
    formula = self.random.choice(formulas[v.array.ndim])
    bits = None if v.bits is None else self.exact(v, largest(v.array) * v.array.size, v.bits)
    array = np.einsum(formula, v.array, v.array).astype(v.kind)
    return self.add(f"einsum[{formula}]", (k, k), array, lambda s, t: Tensor.einsum(formula, s, t), bits)

  # ***** writing *****

  def op_setitem(self) -> bool:
    """Into a copy, which is storage or not yet computed, at ints, steps, places or a mask."""
    k = self.pick(lambda v: v.array.ndim > 0 and 0 < v.array.size <= 600)
    if k is None: return False
    v = self.values[k]
    a, n, stored = v.array.copy(), v.array.shape[0], self.random.random() < 0.5
    at, places = self.random.randrange(-n, n), [self.random.randrange(n) for _ in range(3)]
    one = a.dtype.type(1)
    mode = self.random.choice(["int", "step", "add", "places", "mask", "twice"])
    if mode == "int": a[at] = one
    elif mode == "step": a[::2] = v.array[::-1][::2] if n % 2 else one
    elif mode == "add" and v.kind != "bool":
      with np.errstate(all="ignore"): a[at] += one
    elif mode == "places": a[places] = one
    elif mode == "mask": a[a == one] = a.dtype.type(0)
    elif mode == "twice":
      a[0] = one
      a[n // 2:] = a[:n - n // 2].copy()
    def tensor(t: Tensor) -> Tensor:
      same = t + 0 if v.kind != "bool" else t | False
      c = t.clone().realize() if stored else same
      if mode == "int": c[at] = 1
      elif mode == "step": c[::2] = t.flip(0)[::2] if n % 2 else 1
      elif mode == "add" and v.kind != "bool": c[at] += 1
      elif mode == "places": c[Tensor(places, device=t.device)] = 1
      elif mode == "mask": c[c == 1] = 0
      elif mode == "twice":
        c[0] = 1
        c[n // 2:] = c[:n - n // 2]
      return c
    return self.moved(f"setitem[{mode}, {at}, {places}, {stored}]", k, a, tensor)

  def op_updates(self) -> bool:
    """Storage that is assigned to again and again, with reads in between that are computed at the end."""
    k = self.pick(lambda v: v.kind in ("int32", "int64", "uint8", "float32", "float64") and v.bits is not None
                  and largest(v.array) < 100)
    if k is None: return False
    v, n = self.values[k], self.random.randint(1, 4)
    seen, a = np.zeros_like(v.array), v.array.copy()
    for j in range(n):
      seen = seen + a
      a = a + a.dtype.type(j + 1)
    def tensor(t: Tensor) -> Tensor:
      state, total = t.clone().realize(), t * 0
      for j in range(n):
        total = (total + state).realize()
        state.assign(state + (j + 1))
      return total.stack(state)
    return self.moved(f"updates[{n}]", k, np.stack([seen, a]), tensor)
