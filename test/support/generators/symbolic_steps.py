"""The steps of random programs with symbolic sizes: one function for each kind. It gets a source of choices and the
values that there are, with their shapes under each of the program's values of the Variables, and gives a step, or None
where none fits.

A step's `run` takes the Variables, which are numbers or bound, and the values so far. Floats begin as small whole
numbers. `exact` says that a value is a whole number still, so that the order of additions does not matter; only such
values are sorted, compared or searched.
"""
from __future__ import annotations
import random
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tinyhw import Tensor
from tinyhw.errors import IndexRangeError

LARGEST = 1e5     # bound on values that stay exact

class Value(NamedTuple):
  """The known facts of a value: its shape (for the first values of the Variables), a bound on its elements, whether it
  is exact, and its kind."""
  shape: tuple[int, ...]
  bound: float
  exact: bool
  kind: str = "float"

class Step(NamedTuple):
  """One operation: as text, on which values, what it does, and what is known of its result."""
  text: str
  operands: tuple[int, ...]
  run: Callable[[dict[str, Any], Any], Tensor]
  value: Value

Known = Sequence[tuple[int, list[tuple[int, ...]], Value]]     # place, shape for each values of the Variables, what is
                                                               # known
Maker = Callable[[random.Random, Known], "Step | None"]

def _pick(rng: random.Random, known: Known, wanted: Callable[[Value], bool] = lambda v: True, axes: int = 0) -> Any:
  found = [x for x in known if wanted(x[2]) and len(x[1][0]) >= axes]
  return rng.choice(found[-3:] if rng.random() < 0.7 else found) if found else None

def _size(rng: random.Random) -> tuple[str, Callable[[dict[str, Any]], Any]]:
  """An expression of the Variables, as text and as a function."""
  name, k = rng.choice("vvw"), rng.randint(1, 2)
  return rng.choice([(name, lambda e: e[name]), (name, lambda e: e[name]), (f"{name}+{k}", lambda e: e[name] + k),
                     (f"{name}-1", lambda e: e[name] - 1), ("v+w", lambda e: e["v"] + e["w"]),
                     (f"{name}*2", lambda e: e[name] * 2), (str(k + 1), lambda e: k + 1)])

def _unary(text: str, f: Callable[..., Tensor], bound: Callable[[float, int], float] = lambda b, n: b,
           exact: bool = True,
           wanted: Callable[[Value], bool] = lambda v: True, axes: int = 1, kind: str | None = None) -> Maker:
  """A step of one value: f(x, variables, axis, rng's numbers)."""
  def make(rng: random.Random, known: Known) -> Step | None:
    found = _pick(rng, known, wanted, axes)
    if found is None: return None
    place, shapes, value = found
    axis, numbers, size = rng.randrange(max(len(shapes[0]), 1)), [rng.randint(1, 3) for _ in range(3)], _size(rng)
    most = bound(value.bound, max(max(shape[axis] if shape else 1 for shape in shapes), 1))
    made = Value((), most, value.exact and exact and most < LARGEST, kind or value.kind)
    return Step(f"{text}(%{place}, axis {axis}, {numbers}, {size[0]})", (place,), lambda e,
                s: f(s[place], e, axis, numbers, size[1]), made)
  return make

def _on(axis: int, item: Any) -> tuple[Any, ...]: return (slice(None),) * axis + (item,)

def _cut(x: Tensor, axis: int, begin: Any, end: Any, step: int = 1) -> Tensor:
  """A slice whose bounds are inside of the axis: Python would limit numbers to it, and Variables are refused."""
  size = x.shape[axis]
  for bound in (begin, end):
    if isinstance(bound, int) and isinstance(size, int) and not -size <= bound <= size:
      raise IndexRangeError(f"{bound} of {size}")
  return x[_on(axis, slice(begin, end, step))]

def _is_float(v: Value) -> bool: return v.kind == "float"
def _is_exact(v: Value) -> bool: return v.exact
def _is_exact_float(v: Value) -> bool: return v.exact and v.kind == "float"

def _padded(x: Tensor, axis: int, before: Any, after: Any, **more: Any) -> Tensor:
  return x.pad([(before, after) if k == axis else None for k in range(x.ndim)], **more)

def _part(parts: Sequence[Tensor], k: int) -> Tensor: return parts[min(k, len(parts) - 1)]

MOVEMENTS = [
  _unary("front", lambda x, e, a, n, z: _cut(x, a, 0, z(e))),
  _unary("first", lambda x, e, a, n, z: x.shrink_to([None] * a + [z(e)] + [None] * (x.ndim - a - 1))),
  _unary("back", lambda x, e, a, n, z: _cut(x, a, e["p"], None)),
  _unary("window", lambda x, e, a, n, z: _cut(x, a, e["p"], e["p"] + n[0])),
  _unary("window of v", lambda x, e, a, n, z: _cut(x, a, e["p"], e["p"] + e["v"])),
  _unary("from the end", lambda x, e, a, n, z: x[_on(a, slice(-n[0], None))]),
  _unary("but the end", lambda x, e, a, n, z: x[_on(a, slice(None, -n[0]))]),
  _unary("last v", lambda x, e, a, n, z: _cut(x, a, -e["v"], None)),
  _unary("to a number", lambda x, e, a, n, z: x[_on(a, slice(None, n[0] + n[1]))]),
  _unary("step", lambda x, e, a, n, z: x[_on(a, slice(None, None, n[0]))]),
  _unary("step down", lambda x, e, a, n, z: x[_on(a, slice(None, None, -n[0]))]),
  _unary("step of a part", lambda x, e, a, n, z: _cut(x, a, n[1] - 1, z(e), n[0])),
  _unary("element", lambda x, e, a, n, z: x[_on(a, e["p"])]),
  _unary("last element", lambda x, e, a, n, z: x[_on(a, -n[0])]),
  _unary("flip", lambda x, e, a, n, z: x.flip(a)),
  _unary("permute", lambda x, e, a, n, z: x.transpose(0, a), axes=2),
  _unary("flatten", lambda x, e, a, n, z: x.flatten()),
  _unary("reshape", lambda x, e, a, n, z: x.reshape(-1, x.shape[-1]), axes=2),
  _unary("unflatten", lambda x, e, a, n, z: x.unflatten(a, (-1, n[0]))),
  _unary("reshape to v", lambda x, e, a, n, z: x.reshape(e["v"], -1)),
  _unary("unsqueeze", lambda x, e, a, n, z: x.unsqueeze(a)),
  _unary("squeeze", lambda x, e, a, n, z: x.squeeze()),
  _unary("expand", lambda x, e, a, n, z: x.unsqueeze(a).expand(*x.shape[:a], z(e), *x.shape[a:])),
  _unary("pad", lambda x, e, a, n, z: _padded(x, a, n[0], z(e), value=n[1] - 2)),
  _unary("pad before", lambda x, e, a, n, z: _padded(x, a, z(e), 0)),
  _unary("cut by padding", lambda x, e, a, n, z: _padded(x, a, n[0], 1 - e["v"])),
  _unary("reflect", lambda x, e, a, n, z: _padded(x, a, n[0], n[1] - 1, mode="reflect")),
  _unary("replicate", lambda x, e, a, n, z: _padded(x, a, n[0], n[1], mode="replicate")),
  _unary("circular", lambda x, e, a, n, z: _padded(x, a, n[0], n[1] - 1, mode="circular")),
  _unary("pad_to", lambda x, e, a, n, z: x.pad_to([z(e) + 3 if k == a else None for k in range(x.ndim)])),
  _unary("roll", lambda x, e, a, n, z: x.roll(n[0] - 2, a)),
  _unary("roll by v", lambda x, e, a, n, z: x.roll(e["v"], a)),
  _unary("roll all", lambda x, e, a, n, z: x.roll(n[0])),
  _unary("repeat", lambda x, e, a, n, z: x.repeat([n[0] if k == a else 1 for k in range(x.ndim)])),
  _unary("repeat v", lambda x, e, a, n, z: x.repeat([z(e) if k == a else 1 for k in range(x.ndim)])),
  _unary("repeat_interleave", lambda x, e, a, n, z: x.repeat_interleave(n[0], a)),
  _unary("split", lambda x, e, a, n, z: _part(x.split(n[0], a), n[1] - 1)),
  _unary("split by v", lambda x, e, a, n, z: _part(x.split(e["v"], a), n[1] - 1)),
  _unary("split sizes", lambda x, e, a, n, z: x.split([n[0], x.shape[a] - n[0]], a)[n[1] % 2]),
  _unary("chunk", lambda x, e, a, n, z: _part(x.chunk(n[0], a), n[1] - 1)),
  _unary("unfold", lambda x, e, a, n, z: x.unfold(a, n[0], n[1])),
  _unary("diagonal", lambda x, e, a, n, z: x.diagonal(n[0] - 2), axes=2),
]

SCANS = [
  _unary("sum", lambda x, e, a, n, z: x.sum(a), lambda b, n: b * n),
  _unary("sum all", lambda x, e, a, n, z: x.sum(), lambda b, n: b * n * 100),
  _unary("sum keep", lambda x, e, a, n, z: x.sum(a, keepdim=True), lambda b, n: b * n),
  _unary("max", lambda x, e, a, n, z: x.max(a)),
  _unary("min", lambda x, e, a, n, z: x.min(a)),
  _unary("prod", lambda x, e, a, n, z: x.clamp(-2, 2).prod(a), lambda b, n: 2.0 ** n),
  _unary("mean", lambda x, e, a, n, z: x.mean(a), exact=False, wanted=_is_float),
  _unary("var", lambda x, e, a, n, z: x.var(a, correction=0), lambda b, n: b * b, exact=False, wanted=_is_float),
  _unary("std", lambda x, e, a, n, z: x.mul(0.5).std(a, correction=0), exact=False, wanted=_is_exact_float),
  _unary("logsumexp", lambda x, e, a, n, z: x.clamp(-9, 9).logsumexp(a), exact=False, wanted=_is_float),
  _unary("argmax", lambda x, e, a, n, z: x.argmax(a), lambda b, n: n, wanted=_is_exact, kind="int"),
  _unary("argmax all", lambda x, e, a, n, z: x.argmax(), lambda b, n: n * 100, wanted=_is_exact, kind="int"),
  _unary("argmin", lambda x, e, a, n, z: x.argmin(a), lambda b, n: n, wanted=_is_exact, kind="int"),
  _unary("any", lambda x, e, a, n, z: (x > 1).any(a).float(), lambda b, n: 1, wanted=_is_exact, kind="float"),
  _unary("cumsum", lambda x, e, a, n, z: x.cumsum(a), lambda b, n: b * n),
  _unary("cumprod", lambda x, e, a, n, z: x.clamp(-2, 2).cumprod(a), lambda b, n: 2.0 ** n),
  _unary("cummax", lambda x, e, a, n, z: x.cummax(a)[0]),
  _unary("softmax", lambda x, e, a, n, z: x.clamp(-9, 9).softmax(a), lambda b, n: 1, exact=False, wanted=_is_float),
  _unary("log_softmax", lambda x, e, a, n, z: x.clamp(-9, 9).log_softmax(a), lambda b, n: 30, exact=False,
         wanted=_is_float),
  _unary("layernorm", lambda x, e, a, n, z: x.layernorm(a, eps=0.1), lambda b, n: 10, exact=False,
         wanted=_is_exact_float),
  _unary("sort", lambda x, e, a, n, z: x.sort(a)[n[0] % 2], wanted=_is_exact),
  _unary("topk", lambda x, e, a, n, z: x.topk(n[0], a)[0], wanted=_is_exact),
]

def _convolved(x: Tensor, n: list[int]) -> Tensor:
  weight = Tensor.arange(n[0] * 2).reshape(2, 1, n[0]).cast(x.dtype)
  return x.reshape(-1, 1, x.shape[-1]).conv2d(weight, padding=n[1] - 1, stride=n[2])

def _convolved2(x: Tensor, n: list[int]) -> Tensor:
  weight = Tensor.arange(n[0] * n[1]).reshape(1, 1, n[0], n[1]).cast(x.dtype)
  return x.reshape(-1, 1, *x.shape[-2:]).conv2d(weight, padding=1, dilation=(n[2] + 1) // 2)

def _attended(x: Tensor, masked: int) -> Tensor:
  """Attention of x to itself; masked 1: causal, 2: with a mask, 3: without."""
  x = x.clamp(-3, 3)
  places = Tensor.arange(x.shape[-2])
  mask = places.reshape(-1, 1) >= places.reshape(1, -1)
  return x.scaled_dot_product_attention(x, x * 0.5, attn_mask=mask if masked == 2 else None, is_causal=masked == 1)

def _into_cache(x: Tensor, e: dict[str, Any], cache: Tensor, k: int) -> Tensor:
  """Write rows into the cache at a place that a Variable says, and read what is there so far."""
  row = x.flatten()[:k].cast(cache.dtype)
  # as a Variable is refused
  if isinstance(e["p"], int) and e["p"] + k > cache.shape[1]: raise IndexRangeError("behind the cache")
  cache[1:3, e["p"]:e["p"] + k] = row.clamp(-99, 99)
  return cache[:, :e["p"] + k]

def _gradient(x: Tensor, f: Callable[[Tensor], Tensor]) -> Tensor:
  y = f(x)
  return (y * (y.flatten().cumsum().reshape(y.shape).clamp(-3, 3).detach())).sum().gradient(x)[0]

def _gradients(text: str, f: Callable[[Tensor, dict[str, Any], int, list[int]], Tensor]) -> Maker:
  return _unary(f"gradient of {text}", lambda x, e, a, n, z: _gradient(x, lambda y: f(y, e, a, n)), lambda b,
                n: b * 1e3, exact=False,
                wanted=_is_exact_float)

PRODUCTS = [
  _unary("gram", lambda x, e, a, n, z: x @ x.transpose(-1, -2), lambda b, n: b * b * 36, axes=2, wanted=_is_float),
  _unary("inner", lambda x, e, a, n, z: x.transpose(-1, -2) @ x, lambda b, n: b * b * 36, axes=2, wanted=_is_float),
  _unary("einsum", lambda x, e, a, n, z: Tensor.einsum("...ij,...ik->...jk", x, x), lambda b, n: b * b * 36, axes=2,
         wanted=_is_float),
  _unary("conv1d", lambda x, e, a, n, z: _convolved(x, n), lambda b, n: b * 15, wanted=_is_float),
  _unary("conv2d", lambda x, e, a, n, z: _convolved2(x, n), lambda b, n: b * 40, axes=2, wanted=_is_float),
  _unary("max_pool", lambda x, e, a, n, z: x.max_pool2d((n[0],), stride=n[1]), axes=2),
  _unary("avg_pool", lambda x, e, a, n, z: x.avg_pool2d((n[0],), stride=n[1], padding=(n[0] - 1) // 2), exact=False,
         axes=2, wanted=_is_float),
  _unary("attention", lambda x, e, a, n, z: _attended(x, n[0]), exact=False, axes=2, wanted=_is_exact_float),
  _unary("tril", lambda x, e, a, n, z: x.tril(n[0] - 2), axes=2),
  _unary("triu", lambda x, e, a, n, z: x.triu(n[0] - 2), axes=2),
  _unary("times v", lambda x, e, a, n, z: x * z(e), lambda b, n: b * 20),
  _unary("v times", lambda x, e, a, n, z: z(e) * x, lambda b, n: b * 20),
  _unary("minus v", lambda x, e, a, n, z: x - e["v"], lambda b, n: b + 20),
  _unary("over v", lambda x, e, a, n, z: x / e["v"], exact=False, wanted=_is_float),
  _unary("where", lambda x, e, a, n, z: (x > z(e)).where(e["w"], x), lambda b, n: b + 20, wanted=_is_exact),
  _unary("take", lambda x, e, a, n, z: x[_on(a, Tensor.arange(z(e)) % x.shape[a])]),
  _unary("take a list", lambda x, e, a, n, z: x[_on(a, [0, -1])]),
  _unary("gather", lambda x, e, a, n, z: x.gather(a, (Tensor.zeros(*x.shape, dtype="int32") + e["p"]) % x.shape[a])),
  _unary("plus arange", lambda x, e, a, n, z: x.transpose(a, -1) + Tensor.arange(x.shape[a]), lambda b, n: b + n),
  _unary("arange", lambda x, e, a, n, z: Tensor.arange(n[0], z(e) + 5, n[1]), lambda b, n: 20, kind="int"),
  _unary("arange down", lambda x, e, a, n, z: Tensor.arange(z(e) + 5, n[0] - 2, -n[1]), lambda b, n: 20, kind="int"),
  _unary("arange by v", lambda x, e, a, n, z: Tensor.arange(e["w"], 15, e["v"]), lambda b, n: 20, kind="int"),
  _unary("eye", lambda x, e, a, n, z: Tensor.eye(z(e)), lambda b, n: 1, kind="float"),
  _unary("full", lambda x, e, a, n, z: Tensor.full((n[0], z(e)), e["w"]), lambda b, n: 20, kind="int"),
  _unary("ones", lambda x, e, a, n, z: Tensor.ones(z(e), n[0]).cumsum(0), lambda b, n: 20, kind="float"),
  _unary("contiguous", lambda x, e, a, n, z: x.contiguous()),
  _unary("clamp", lambda x, e, a, n, z: x.clamp(-5, 5), lambda b, n: 5),
  _unary("int", lambda x, e, a, n, z: x.cast("int32"), wanted=_is_exact, kind="int"),
  _unary("float", lambda x, e, a, n, z: x.float(), kind="float"),
  _gradients("a part", lambda x, e, a, n: _cut(x, a, e["p"], e["p"] + e["v"])),
  _gradients("cat", lambda x, e, a, n: _cut(x, a, 0, e["v"]).cat(x, dim=a)),
  _gradients("softmax", lambda x, e, a, n: x.clamp(-3, 3).softmax(a)),
  _gradients("max", lambda x, e, a, n: x.max(a)),
  _gradients("cumsum", lambda x, e, a, n: x.cumsum(a)),
  _gradients("conv1d", lambda x, e, a, n: _convolved(x, n)),
  _gradients("pad", lambda x, e, a, n: _padded(x, a, e["v"], n[0])),
  _gradients("step", lambda x, e, a, n: x[_on(a, slice(None, None, -n[0]))]),
  _gradients("roll", lambda x, e, a, n: x.roll(n[0], a)),
  _gradients("take", lambda x, e, a, n: x[_on(a, Tensor.arange(e["v"]) % x.shape[a])]),
  _gradients("gram", lambda x, e, a, n: x.reshape(-1, x.shape[-1]) @ x.reshape(-1, x.shape[-1]).T),
]

def cache(rng: random.Random, known: Known) -> Step | None:
  found = _pick(rng, known, _is_exact, 1)
  if found is None: return None
  place, k = found[0], rng.randint(1, 3)
  return Step(f"cache[1:3, p:p+{k}] = %{place}; cache[:, :p+{k}]", (place,), lambda e,
              s: _into_cache(s[place], e, s.cache, k), Value((), 99.0, True))

BINARY: list[tuple[str, Callable[[Tensor, Tensor], Tensor], Callable[[float, float], float], bool]] = [
  ("add", lambda x, y: x + y, lambda a, b: a + b, True), ("sub", lambda x, y: x - y, lambda a, b: a + b, True),
  ("mul", lambda x, y: x * y, lambda a, b: a * b, True), ("max", lambda x, y: x.maximum(y), max, True),
  ("less", lambda x, y: (x < y).where(x, y), max, False), ("matmul", lambda x, y: x @ y, lambda a, b: a * b * 36, True),
  ("dot", lambda x, y: x.transpose(-1, -2) @ y, lambda a, b: a * b * 36, True),
]

def _rough(a: Value, b: Value, most: float) -> Value:
  kind = "float" if "float" in (a.kind, b.kind) else "int"
  return Value((), most, a.exact and b.exact and most < LARGEST, kind)

def binary(rng: random.Random, known: Known) -> Step | None:
  """Two values, elementwise or multiplied."""
  name, f, bound, any_kind = rng.choice(BINARY)
  first, second = _pick(rng, known), _pick(rng, known)
  if not any_kind and not (first[2].exact and second[2].exact): return None
  i, j = first[0], second[0]
  return Step(f"{name}(%{i}, %{j})", (i, j), lambda e, s: f(s[i], s[j]),
              _rough(first[2], second[2], bound(first[2].bound, second[2].bound)))

def together(rng: random.Random, known: Known) -> Step | None:
  """cat and stack, of a value, parts of it, and others."""
  first, second = _pick(rng, known, axes=1), _pick(rng, known, axes=1)
  i, j = first[0], second[0]
  axis, size = rng.randrange(len(first[1][0])), _size(rng)
  value = _rough(first[2], second[2], max(first[2].bound, second[2].bound))
  choices: list[tuple[str, Callable[[dict[str, Any], Any], Tensor]]] = [
    ("cat", lambda e, s: s[i].cat(s[j], dim=axis)), ("stack", lambda e, s: s[i].stack(s[j], dim=axis)),
    ("cat with a part", lambda e, s: _cut(s[i], axis, 0, size[1](e)).cat(s[j], s[i], dim=axis)),
    ("cat with its end", lambda e, s: s[i].cat(s[i][_on(axis, slice(-1, None))], dim=axis))]
  text, run = rng.choice(choices)
  return Step(f"{text}(%{i}, %{j}, axis {axis}, {size[0]})", (i, j), run, value)

STEPS: list[Maker] = [*MOVEMENTS, *SCANS, *PRODUCTS, *[cache] * 3, *[binary] * 12, *[together] * 8, *MOVEMENTS[:10]]
