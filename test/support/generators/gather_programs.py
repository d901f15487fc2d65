"""Random programs that gather: rows and crops by index tensors, writes by index, slices, windows, reductions and
products, with gradients.

`make(seed)` is one of them: a text of Python and what each of its results is (generators/taped.py). Values are small
whole numbers, so a wrong element shows. `run(program, device)` computes it, `wrong(program, results)` says what
differs, `smaller(program, fails)` is the shortest that still fails.
"""
from __future__ import annotations
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
import random
import re
from typing import Any

import numpy as np
from generators.taped import Value, einsum, elementwise, gradients, largest, take, total

from tinyhw import Tensor

MOST_ELEMENTS, MOST_OF_A_STEP = 6000, 60000
LARGEST = 1e4        # float32 adds a few thousand products of these well enough to compare
NO_TIE = 0.0137     # what is compared is never equal but for this: a third may be rounded either way
TOLERANCE, OF_HALVES = 1e-4, 4e-3     # of the largest element; where gradients were rounded to float16
KINDS = ("int32", "int32", "int64", "int16", "uint8")
NAME = re.compile(r"\b[vigc]\d+\b")

@dataclass
class Program:
  """inputs: arrays by name. lines: of the text, each of which defines a name. results: names, and what they are."""
  seed: int
  inputs: dict[str, Any] = field(default_factory=dict)
  lines: list[str] = field(default_factory=list)
  results: dict[str, Any] = field(default_factory=dict)

  def source(self) -> str:
    """A program that can be run by itself and prints the results."""
    given = [f"{name} = Tensor({a.tolist()}, dtype={str(a.dtype)!r}).realize()" for name, a in self.inputs.items()]
    printed = [f"print({name!r}, {name}.tolist())   # {np.asarray(a).tolist()}" for name, a in self.results.items()]
    computed = f"Tensor.realize({', '.join(self.results)})"
    return "\n".join([f"# program {self.seed}", "from tinyhw import Tensor", *given, *self.lines, computed, *printed])

def run(program: Program, device: str | None = None) -> dict[str, Any]:
  """The results, in arrays."""
  names: dict[str, Any] = {"Tensor": Tensor}
  for name, a in program.inputs.items(): names[name] = Tensor(a, device=device).realize()
  exec("\n".join(program.lines), names)  # the text is our own
  Tensor.realize(*[names[name] for name in program.results])
  return {name: names[name].numpy() for name in program.results}

def wrong(program: Program, found: dict[str, Any]) -> list[str]:
  """The names of results that are not what they should be."""
  out = []
  tolerance = OF_HALVES if any(".half()" in line for line in program.lines) else TOLERANCE
  for name, want in program.results.items():
    scale = max(float(np.abs(want).max()) if want.size else 0.0, 1.0)
    if found[name].shape != want.shape or not np.allclose(found[name], want, rtol=0, atol=tolerance * scale):
      out.append(name)
  return out

def needed(program: Program, results: Iterable[str]) -> Program:
  """The program with these results alone, and only the lines that they need."""
  wanted, lines = set(results), []
  for line in reversed(program.lines):
    left, _, right = line.partition(" = ") if " += " not in line else line.partition(" += ")
    targets = set(NAME.findall(left))
    if not targets & wanted: continue
    wanted |= targets | set(NAME.findall(right))
    lines.append(line)
  inputs = {name: a for name, a in program.inputs.items() if name in wanted}
  return replace(program, inputs=inputs, lines=lines[::-1], results={name: program.results[name] for name in results})

def smaller(program: Program, fails: Callable[[Program], bool]) -> Program:
  """One result of the program that fails by itself, with what it needs; the whole program if it takes all of them."""
  for name in program.results:
    alone = needed(program, [name])
    if fails(alone): return alone
  return program

def positions(key: str) -> Callable[..., Any]:
  """The movement that an expression of p (and q) says."""
  return eval(f"lambda p, q=None: {key}")  # type: ignore[no-any-return]

class Maker:
  """Chooses operations. A method named op_... adds a value, or nothing if it does not fit what there is."""
  def __init__(self, seed: int):
    self.most = MOST_ELEMENTS
    self.random = random.Random(seed)
    self.numpy = np.random.default_rng(seed)
    self.program = Program(seed)
    self.values: dict[str, Value] = {}
    self.leaves: dict[str, Value] = {}
    self.count = 0

  def chance(self, p: float) -> bool: return self.random.random() < p
  def some(self, *choices: Any) -> Any: return self.random.choice(choices)

  def name(self, kind: str = "v") -> str:
    self.count += 1
    return f"{kind}{self.count}"

  # ***** inputs *****

  def input(self, *shape: int) -> str:
    """A new float input that gradients are taken of."""
    name, array = self.name(), self.numpy.integers(-3, 4, shape)
    self.program.inputs[name] = array.astype("float32")
    self.values[name] = self.leaves[name] = Value(array)
    return name

  def index(self, n: int, *shape: int, negative: bool = False, unique: bool = False) -> tuple[str, Any]:
    """A tensor of places below n: loaded, or computed of what is loaded. Its text and its numbers."""
    name, kind = self.name("i"), self.some(*KINDS)
    array = self.numpy.permutation(n)[:shape[0]] if unique else self.numpy.integers(0, n, shape)
    if negative and kind != "uint8" and self.chance(0.5):
      array = np.where(self.numpy.random(array.shape) < 0.5, array - n, array)
    array = array.astype(kind)
    self.program.inputs[name] = array
    way = self.random.random()
    if unique or way < 0.5: return name, array
    if way < 0.65: return f"({name} + 1) % {n}", (array.astype(np.int64) + 1) % n
    if way < 0.75: return f"{name}.flip(0)", array[::-1]
    if way < 0.85 and len(shape) == 1:
      start = self.random.randrange(n)
      return f"(Tensor.arange({shape[0]}) * 3 + {start}) % {n}", (np.arange(shape[0]) * 3 + start) % n
    if len(shape) > 1: return f"{name}.contiguous()", array
    of, other = self.index(n, n)
    return f"({of})[{name}]", other[array]

  def pick(self, fits: Callable[[tuple[int, ...]], bool] = lambda shape: True) -> str | None:
    """A value whose shape fits, rather a new one."""
    found = [name for name, v in self.values.items() if fits(v.shape)]
    return found[-1 - min(self.random.randrange(len(found)) for _ in range(2))] if found else None

  def add(self, text: str, value: Value) -> bool:
    """A new value, unless it is too large."""
    if value.array.size > self.most or not value.array.size or np.abs(value.array).max() > LARGEST: return False
    name = self.name()
    way = self.random.random()
    if way < 0.1: text = f"({text}).contiguous()"
    # no gradient goes through what is computed already
    elif way < 0.15: text, value = f"({text}).contiguous().realize()", Value(value.array)
    self.program.lines.append(f"{name} = {text}")
    self.values[name] = value
    return True

  def move(self, name: str, text: str, key: str) -> bool:
    """A movement that NumPy writes in the same way."""
    return self.add(f"{name}{text}", take(positions(key), self.values[name]))

  # ***** gathers *****

  def op_rows(self) -> bool:
    """x[i], x[:, i]: rows by an index tensor of any shape."""
    x = self.pick(lambda s: 0 < len(s) < 5)
    if x is None: return False
    shape = self.values[x].shape
    axis = self.random.randrange(len(shape))
    text, array = self.index(shape[axis], *[self.some(1, 2, 4, 8, 9, 16) for _ in range(self.some(1, 1, 1, 2))],
                             negative=True)
    key = (slice(None),) * axis
    return self.add(f"{x}[{':, ' * axis}{text}]", take(lambda p: p[key + (array,)], self.values[x]))

  def op_pairs(self) -> bool:
    """x[i, j]: elements by index tensors that broadcast."""
    x = self.pick(lambda s: 1 < len(s) < 5)
    if x is None: return False
    shape = self.values[x].shape
    n, apart = self.some(1, 3, 8, 16), self.chance(0.4)
    i, rows = self.index(shape[0], n, 1, negative=True) if apart else self.index(shape[0], n, negative=True)
    j, columns = self.index(shape[1], self.some(1, 4, 9) if apart else n, negative=True)
    return self.add(f"{x}[{i}, {j}]", take(lambda p: p[rows, columns], self.values[x]))

  def op_gather(self) -> bool:
    """x.gather(axis, i)."""
    x = self.pick(lambda s: 0 < len(s) < 4)
    if x is None: return False
    shape = self.values[x].shape
    axis = self.random.randrange(len(shape))
    text, array = self.index(shape[axis], *[self.some(1, 3, 8, 17) if k == axis else n for k, n in enumerate(shape)])
    return self.add(f"{x}.gather({axis}, {text})", take(lambda p: np.take_along_axis(p, array.astype(np.int64), axis),
                                                        self.values[x]))

  def op_crop(self) -> bool:
    """A part of each image, at a place of its own."""
    x = self.pick(lambda s: len(s) == 4 and s[2] > 3 and s[3] > 3)
    if x is None: return False
    (b, c, h, w), pad = self.values[x].shape, self.some(0, 1, 2, 4)
    n, m = self.random.randint(2, h), self.random.randint(2, w)
    i, top = self.crop_index(h + 2 * pad - n + 1, b, n)
    j, left = self.crop_index(w + 2 * pad - m + 1, b, m)
    images, channels = np.arange(b)[:, None, None, None], np.arange(c)[None, :, None, None]
    def crop(p: Any) -> Any:
      padded = np.pad(p, ((0, 0), (0, 0), (pad, pad), (pad, pad)), constant_values=-1)
      return padded[images, channels, top[:, None, :, None], left[:, None, None, :]]
    padded = f"{x}.pad(({pad}, {pad}, {pad}, {pad}))" + (".contiguous()" if self.chance(0.3) else "") if pad else x
    if self.chance(0.5):
      first = f"Tensor.arange({b}).reshape({b}, 1, 1, 1), Tensor.arange({c}).reshape(1, {c}, 1, 1)"
      text = f"{padded}[{first}, {i}[:, None, :, None], {j}[:, None, None]]"
    else:
      rows = f"{padded}.gather(2, {i}[:, None, :, None].expand({b}, {c}, {n}, {w + 2 * pad}))"
      text = f"{rows}.gather(3, {j}[:, None, None].expand({b}, {c}, {n}, {m}))"
    return self.add(text, take(crop, self.values[x]))

  def crop_index(self, places: int, images: int, n: int) -> tuple[str, Any]:
    """The rows of each image's crop: loaded, or counted from its first one."""
    name, first = self.name("i"), self.numpy.integers(0, places, images)
    rows = first[:, None] + np.arange(n)
    loaded = self.chance(0.5)
    self.program.inputs[name] = (rows if loaded else first[:, None]).astype("int32")
    return (name if loaded else f"({name} + Tensor.arange({n}))"), rows

  # ***** writes by index *****

  def op_write(self) -> bool:
    """c[i] = y, c[:, i] += y, on a copy."""
    x = self.pick(lambda s: 0 < len(s) < 4)
    if x is None: return False
    shape = self.values[x].shape
    axis, copy = self.random.randrange(len(shape)), self.name("c")
    n = self.random.randint(1, shape[axis])
    text, array = self.index(shape[axis], n, unique=True)
    key = (slice(None),) * axis + (array,)
    place = f"{copy}[{':, ' * axis}{text}]"
    if self.chance(0.3):
      start = shape[axis] - n
      key, place = (slice(None),) * axis + (slice(start, start + n),), f"{copy}[{':, ' * axis}{start}:{start + n}]"
    part = (*shape[:axis], n, *shape[axis + 1:])
    y = self.pick(lambda s: s == part) or self.input(*part)
    added = self.chance(0.4)
    self.program.lines += [f"{copy} = {x}.clone()", f"{place} {'+=' if added else '='} {y}"]
    def write(p: Any, q: Any) -> Any:
      found = p.copy()
      found[key] = q
      return found
    value = take(write, self.values[x], self.values[y])
    if added:
      old = take(lambda p: p[key], self.values[x])
      value = take(write, self.values[x], elementwise(old.array + self.values[y].array, (old, 1.0),
                                                      (self.values[y], 1.0)))
    return self.add(f"{copy} * 1" if self.chance(0.5) else copy, value)

  def op_scatter(self) -> bool:
    """x.scatter_reduce(axis, i, y, "sum"): indices may be equal."""
    x = self.pick(lambda s: 0 < len(s) < 4)
    if x is None: return False
    shape = self.values[x].shape
    axis = self.random.randrange(len(shape))
    text, array = self.index(shape[axis], *[self.some(1, 3, 8, 17) if k == axis else n for k, n in enumerate(shape)])
    y = self.pick(lambda s: s == array.shape) or self.input(*array.shape)
    hot = array[..., None] == np.arange(shape[axis])     # which element of y goes where
    letters = "abcd"[:len(shape)]
    out = letters.replace(letters[axis], "z")
    moved = einsum(f"{letters},{letters}z->{out}", self.values[y], Value(hot))
    both = elementwise(self.values[x].array + moved.array, (self.values[x], 1.0), (moved, 1.0))
    return self.add(f'{x}.scatter_reduce({axis}, {text}, {y}, "sum")', both)

  # ***** movements *****

  def op_slice(self) -> bool:
    x = self.pick(lambda s: len(s) > 0)
    if x is None: return False
    keys = []
    for n in self.values[x].shape:
      start, stop = sorted(self.random.sample(range(n + 1), 2))
      keys.append(self.some(":", ":", f"{start}:{stop}", f"{start}::2" if start < n else "::2", "::-1",
                            str(self.random.randrange(-n, n))))
    key = ", ".join(keys)
    return self.move(x, f"[{key}]", f"p[{key}]")

  def op_pad(self) -> bool:
    x = self.pick(lambda s: len(s) > 0)
    if x is None: return False
    pads = tuple((self.random.randint(0, 2), self.random.randint(0, 2)) for _ in self.values[x].shape)
    return self.add(f"{x}.pad({pads})", take(lambda p: np.pad(p, pads, constant_values=-1), self.values[x]))

  def op_permute(self) -> bool:
    x = self.pick(lambda s: len(s) > 1)
    if x is None: return False
    order = self.random.sample(range(len(self.values[x].shape)), len(self.values[x].shape))
    return self.move(x, f".permute({order})", f"p.transpose({order})")

  def op_reshape(self) -> bool:
    x = self.pick(lambda s: len(s) > 1)
    if x is None: return False
    shape = self.values[x].shape
    k = self.random.randrange(len(shape) - 1)
    merged = (*shape[:k], shape[k] * shape[k + 1], *shape[k + 2:])
    return self.add(f"{x}.reshape({merged})", take(lambda p: p.reshape(merged), self.values[x]))

  def op_cat(self) -> bool:
    x = self.pick(lambda s: 0 < len(s) < 5)
    if x is None: return False
    shape = self.values[x].shape
    axis = self.random.randrange(len(shape))
    y = self.pick(lambda s: len(s) == len(shape) and s[:axis] == shape[:axis] and s[axis + 1:] == shape[axis + 1:])
    assert y is not None
    return self.add(f"{x}.cat({y}, dim={axis})", take(lambda p, q: np.concatenate([p, q], axis), self.values[x],
                                                      self.values[y]))

  # ***** elements *****

  def op_both(self) -> bool:
    """Two values of one shape, or one and a part of it that broadcasts."""
    a = self.pick()
    assert a is not None
    shape = self.values[a].shape
    b = self.pick(lambda s: len(s) <= len(shape) and all(n in (1, m) for n, m in zip(s[::-1], shape[::-1])))
    assert b is not None
    x, y = self.values[a], self.values[b]
    larger = x.array > y.array + NO_TIE
    chosen = elementwise(np.where(larger, x.array, y.array * 2), (x, larger), (y, ~larger * 2.0))
    return self.some(
      lambda: self.add(f"{a} + {b}", elementwise(x.array + y.array, (x, 1.0), (y, 1.0))),
      lambda: self.add(f"{a} - {b}", elementwise(x.array - y.array, (x, 1.0), (y, -1.0))),
      lambda: self.add(f"{a} * {b}", elementwise(x.array * y.array, (x, y.array), (y, x.array))),
      lambda: self.add(f"({a} > {b} + {NO_TIE}).where({a}, {b} * 2)", chosen))()  # type: ignore[no-any-return]

  def op_one(self) -> bool:
    a = self.pick()
    assert a is not None
    x = self.values[a]
    return self.some(
      lambda: self.add(f"{a}.relu()", elementwise(np.maximum(x.array, 0), (x, x.array > 0))),
      lambda: self.add(f"{a}.square()", elementwise(x.array ** 2, (x, 2 * x.array))),
      lambda: self.add(f"{a} * -0.5 + 1", elementwise(x.array * -0.5 + 1, (x, -0.5))))()  # type: ignore[no-any-return]

  def op_reduce(self) -> bool:
    a = self.pick(lambda s: len(s) > 0)
    if a is None: return False
    x = self.values[a]
    axes = tuple(sorted(self.random.sample(range(len(x.shape)), self.random.randint(1, len(x.shape)))))
    keep, n = self.chance(0.4), int(np.prod([x.shape[k] for k in axes]))
    return self.some(
      lambda: self.add(f"{a}.sum({axes}, keepdim={keep})", total(x, axes, keep)),
      lambda: self.add(f"{a}.mean({axes}, keepdim={keep})", total(x, axes, keep, 1 / n)),
      lambda: self.add(f"{a}.max({axes}, keepdim={keep})", largest(x, axes, keep)))()  # type: ignore[no-any-return]

  # ***** products and windows *****

  def op_matmul(self) -> bool:
    a = self.pick(lambda s: len(s) > 1)
    if a is None: return False
    shape = self.values[a].shape
    b = self.input(shape[-1], self.some(1, 4, 8, 16, 17, 32))
    letters = "abcde"[:len(shape) - 1]
    product = einsum(f"{letters}y,yz->{letters}z", self.values[a], self.values[b])
    half = self.chance(0.3) and all(is_half(v) for v in (self.values[a], product))
    return self.add(f"({a}.half() @ {b}.half()).float()" if half else f"{a} @ {b}", product)

  def op_conv(self) -> bool:
    """A convolution, of the windows that a movement makes."""
    x = self.pick(lambda s: len(s) == 4 and s[2] > 2 and s[3] > 2)
    if x is None: return False
    b, c, h, w = self.values[x].shape
    k, l, pad, step = self.some(1, 2, 3, 3), self.some(1, 3, 3,
                                                       5 if w > 4 else 2), self.some(0, 1, 1, 2), self.some(1, 1, 2)
    groups = self.some(1, 1, 1, *([2] if c % 2 == 0 else []), *([c] if c < 9 else []))
    f = self.input(groups * self.some(1, 2, 4, 8), c // groups, k, l)
    v = take(windows(k, l, step, pad), self.values[x])
    out = v.shape[2:4]
    split = take(lambda p: p.reshape(b, groups, c // groups, *out, k, l), v)
    weight = take(lambda p: p.reshape(groups, -1, c // groups, k, l), self.values[f])
    product = einsum("bgchwij,gocij->bgohw", split, weight)
    return self.add(f"{x}.conv2d({f}, groups={groups}, stride={step}, padding={pad})",
                    take(lambda p: p.reshape(b, -1, *out), product))

  def op_pool(self) -> bool:
    x = self.pick(lambda s: len(s) == 4 and s[2] > 3 and s[3] > 3)
    if x is None: return False
    k, l, step = self.some(2, 3), self.some(2, 2, 3), self.some(1, 2, 2, 3)
    v = take(windows(k, l, step, 0), self.values[x])
    if self.chance(0.5): return self.add(f"{x}.max_pool2d(({k}, {l}), stride={step})", largest(v, (4, 5)))
    return self.add(f"{x}.avg_pool2d(({k}, {l}), stride={step})", total(v, (4, 5), factor=1 / (k * l)))

  # ***** the end *****

  def finish(self, gradient: float = 0.75) -> Program:
    """Results are what nothing else uses, and gradients of a sum of one of them."""
    while not (made := [name for name in self.values if name not in self.leaves]): self.op_rows()
    used = {name for line in self.program.lines for name in NAME.findall(line.partition("=")[2])}
    ends = [name for name in made if name not in used] or made[-1:]
    self.program.results = {name: self.values[name].array for name in ends}
    last = ends[-1]
    if self.chance(gradient): self.differentiate(last)
    return self.program

  def differentiate(self, last: str) -> None:
    weights, loss = self.name(), self.name()
    v = self.values[last]
    self.program.inputs[weights] = self.numpy.integers(-2, 3, v.shape).astype("float32")
    result = total(elementwise(v.array * self.program.inputs[weights], (v, self.program.inputs[weights])),
                   tuple(range(len(v.shape))))
    reached = [(name, g) for name, g in zip(self.leaves, gradients(result, list(self.leaves.values())))
               if g is not None]
    if not reached: return
    reached = self.random.sample(reached, min(len(reached), 2))
    self.program.lines.append(f"{loss} = ({last} * {weights}).sum()")
    names = [self.name("g") for _ in reached]
    self.program.lines.append(f"{', '.join(names)}, = {loss}.gradient({', '.join(name for name, _ in reached)})")
    self.program.results |= dict(zip(names, (g for _, g in reached)))

def is_half(v: Value) -> bool: return bool((v.array.astype(np.float16) == v.array).all())

def windows(k: int, l: int, step: int, pad: int) -> Callable[[Any], Any]:
  """The movement of images to the windows that a filter of k times l sees."""
  def move(p: Any) -> Any:
    padded = np.pad(p, ((0, 0), (0, 0), (pad, pad), (pad, pad)), constant_values=-1)
    return np.lib.stride_tricks.sliding_window_view(padded, (k, l), (2, 3))[:, :, ::step, ::step]
  return move

GATHERING = ("op_rows", "op_rows", "op_pairs", "op_gather", "op_crop", "op_crop", "op_write", "op_scatter")
OTHERS = ("op_slice", "op_pad", "op_permute", "op_reshape", "op_cat", "op_both", "op_both", "op_one", "op_reduce",
          "op_reduce", "op_matmul",
          "op_conv", "op_conv", "op_conv", "op_pool")

def step(maker: Maker) -> Program:
  """Images as a training takes them: some of them by an index, a crop of each, convolutions; and gradients."""
  maker.most = MOST_OF_A_STEP
  maker.input(maker.some(8, 16, 32), maker.some(1, 3, 8, 16),
              *maker.some((8, 8), (16, 16), (17, 12), (28, 28), (32, 32)))
  for operation in maker.some(("op_rows", "op_crop"), ("op_crop",), ("op_crop",), ("op_rows",), ("op_pairs",)):
    getattr(maker, operation)()
  for operation in maker.some(("op_conv",), ("op_conv", "op_one"), ("op_one", "op_conv"), ("op_conv", "op_pool")):
    getattr(maker, operation)()
  return maker.finish(gradient=1.0)

def make(seed: int) -> Program:
  """A random program: one or two inputs, two to five operations, at least one of them a gather or a write, often a
  gradient."""
  maker = Maker(seed)
  if maker.chance(0.1): return step(maker)
  b, c = maker.some(1, 2, 4, 8), maker.some(1, 2, 3, 8)
  if maker.chance(0.6): maker.input(b, c, *maker.some((8, 8), (9, 7), (16, 16), (5, 17), (4, 33)))
  else: maker.input(*maker.some((7,), (33,), (16, 8), (40, 3), (9, 5, 4), (3, 8, 17)))
  if maker.chance(0.3): maker.input(*maker.some((5,), (16, 8), (33,)))
  steps, done, tries = maker.some(2, 2, 3, 3, 4, 5), 0, 0
  first = maker.random.randrange(steps)
  while done < steps and tries < 60:
    done += getattr(maker, maker.random.choice(GATHERING if done == first else GATHERING[:4] + OTHERS))()
    tries += 1
  return maker.finish()
