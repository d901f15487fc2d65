"""Random programs of in-place writes, views and gradients, the same text for PyTorch and for tinyhw.

`make(seed)` is one of them; PyTorch, which runs it as it is made, says what its results are and which lines it refuses.
There are two kinds. *views* write through views of storage, and of values that have none yet: slices, permutations,
bits as another type, expanded ones. They keep values from before and after, compute some of them on the way and let go
of others. *gradients* write results, data and their views in place, retain gradients and call backward.
`check(program)` runs it here: "same", "refused" (a gradient through overwritten contents, which PyTorch may refuse or
not), or the difference.
"""
from __future__ import annotations
from collections.abc import Callable
from dataclasses import dataclass, field
import random
from typing import Any

import numpy as np
import torch

from tinyhw import Tensor
from tinyhw.errors import ArgumentError, GradientError

BITS = ("int32", "uint8", "int16", "int64")

@dataclass
class Program:
  """lines: of the text, each with whether it is refused. results: names, and what they are at the end; gradients:
  names, and None for no gradient."""
  seed: int
  lines: list[tuple[str, bool]] = field(default_factory=list)
  results: dict[str, Any] = field(default_factory=dict)
  gradients: dict[str, Any] = field(default_factory=dict)
  backward_refused: bool = False

  def __str__(self) -> str:
    return "\n".join([f"# program {self.seed}", *(f"{line}{'   # refused' if no else ''}" for line, no in self.lines)])

def names_of_torch() -> dict[str, Any]:
  """Return the names in the text, for PyTorch."""
  def assign(x: Any, y: Any) -> None: x.copy_(torch.as_tensor(y))
  return {"data": lambda values: torch.tensor(values), "leaf": lambda values: torch.tensor(values, requires_grad=True),
          "assign": assign,
          "bits": lambda x, dtype: x.view(getattr(torch, dtype)), "fresh": lambda x: x.clone(),
          "value": lambda x: x * 2, "realize": lambda x: None,
          "ones": lambda shape: torch.ones(shape)}

def names_of_tinyhw() -> dict[str, Any]:
  """Return the names in the text, for tinyhw."""
  return {"data": lambda values: Tensor(values), "leaf": lambda values: Tensor(values, requires_grad=True),
          "assign": lambda x, y: x.assign(y),
          "bits": lambda x, dtype: x.bitcast(dtype), "fresh": lambda x: x.clone().realize(), "value": lambda x: x * 2,
          "realize": lambda x: x.realize(), "ones": lambda shape: Tensor.ones(shape)}

class Maker:
  """Chooses lines, and runs each with PyTorch."""
  def __init__(self, seed: int):
    self.random = random.Random(seed)
    self.program = Program(seed)
    self.names = names_of_torch()
    self.base: dict[str, str] = {}      # of names that are views: what they are views of
    self.detached: set[str] = set()     # past detach(): what is written there has a gradient in PyTorch, and none here
    self.count = 0

  def some(self, *choices: Any) -> Any: return self.random.choice(choices)
  def number(self) -> float: return self.random.randrange(-12, 13) / 4

  def run(self, line: str, refusal: str | None = None) -> bool:
    """Run a line. One that PyTorch refuses is left out, but where it refuses with these words."""
    try: exec(line, self.names)  # the text is our own
    except (RuntimeError, IndexError) as error:
      if refusal is None or refusal not in str(error): return False
      self.program.lines.append((line, True))
      return False
    self.program.lines.append((line, False))
    return True

  def define(self, expression: str, base: str = "") -> str:
    """A new name for an expression; "" if it cannot be, or is there already."""
    if any(line.partition(" = ")[2] == expression for line, _ in self.program.lines): return ""
    self.count += 1
    name = f"v{self.count}"
    if not self.run(f"{name} = {expression}"): return ""
    if base: self.base[name] = self.base.get(base, base)
    if base and (base in self.detached or ".detach()" in expression): self.detached.add(name)
    return name

  def drop(self, names: list[str]) -> None:
    """Let go of tensors."""
    for name in names: self.run(f"del {name}")

  def values(self, shape: tuple[int, ...]) -> str:
    return repr(np.array([self.random.randrange(1, 25) / 4 for _ in range(int(np.prod(shape)))]).reshape(
      shape).tolist())

  def index(self, name: str) -> str:
    """An index of a tensor's first axis, or of two."""
    shape = self.names[name].shape
    if not len(shape): return "..."
    n = shape[0]
    k = self.random.randrange(n)
    # PyTorch writes these by index, and warns
    repeats = any(step == 0 and size > 1 for step, size in zip(self.names[name].stride(), shape))
    listed = str(k) if repeats else f"[{k}]"
    return self.some(str(k), f"{k}:", f":{k + 1}", "::2", "...", f"..., {self.random.randrange(shape[-1])}",
                     listed)  # type: ignore[no-any-return]

  def value_for(self, name: str, index: str, others: list[str]) -> str:
    """A number, or a part of another tensor, that fits."""
    part = eval(f"{name}[{index}]", self.names)
    if name in self.detached: others = [x for x in others if not self.names[x].requires_grad]
    fits = [f"{x}[{i}] * {self.number()}" for x in others for i in ("...", "0", "1:", ":1") if self.fits(x, i, part)]
    return self.some(str(self.number()), *fits[:6])  # type: ignore[no-any-return]

  def fits(self, other: str, index: str, part: Any) -> bool:
    try: found = eval(f"{other}[{index}]", self.names)
    except (IndexError, RuntimeError): return False
    return found.dtype is part.dtype and found.numel() > 0 and torch.broadcast_shapes(found.shape,
                                                                                      part.shape) == part.shape \
      if self.broadcast(found, part) else False

  def broadcast(self, a: Any, b: Any) -> bool:
    try: torch.broadcast_shapes(a.shape, b.shape)
    except RuntimeError: return False
    return True

# ***** views *****

def _views(maker: Maker) -> Program:
  """Storage and values, views of them, and writes through all of these."""
  shape = maker.some((2, 4), (3, 4), (4, 2), (8,))
  data = [f"data({maker.values(shape)})" for _ in range(3)]
  made = [maker.define(text) for text in (f"fresh({data[0]})", f"value({data[1]})", f"value({data[2]})",
                                          f"ones({shape})")]
  tensors = maker.random.sample(made, 2)
  maker.drop([name for name in made if name not in tensors])
  kept: list[str] = []
  drops = maker.random.random() < 0.4    # an expanded view is refused only while others see what it sees, so here are
                                         # none
  for _ in range(maker.random.randrange(8, 20)):
    x = maker.random.choice(tensors)
    t = maker.names[x]
    action = maker.random.random()
    if action < 0.4:
      view = maker.define(_view(maker, x, t, expands=not drops), x)
      if view and maker.names[view].numel(): tensors.append(view)
    elif action < 0.55:
      value = maker.define(f"{x} + {maker.some(1, 2, 3)}")
      if value: kept.append(value)
    elif action < 0.6: maker.run(f"realize({x})")
    elif action < 0.68 and drops and len(tensors) > 1:
      tensors.remove(x)
      maker.drop([x])
    else: _write(maker, x, t, tensors)
  maker.program.results = {name: maker.names[name].tolist() for name in (*tensors, *kept)}
  return maker.program

def _view(maker: Maker, x: str, t: Any, expands: bool) -> str:
  """A view of a tensor, as an expression."""
  choices = [f"{x}[{i}]" for i in ("1:", "::2", "0", "..., 0", "None")] if t.ndim else [f"{x}[None]"]
  if t.is_contiguous(): choices += [f"{x}.reshape({maker.some(-1, '2, -1', '-1, 2')})"]
  if t.ndim == 2: choices += [f"{x}.permute(1, 0)", f"{x}.diagonal()"]
  choices += [f"{x}.detach()"]
  if expands:
    choices += [f"{x}[None].expand({maker.some(2, 3)}, {', '.join(['-1'] * t.ndim)})" if t.ndim else f"{x}.expand(3)"]
  choices += [f"bits({x}, {maker.some(*BITS, 'float32')!r})"] * 2 if t.ndim else []
  return maker.some(*choices)  # type: ignore[no-any-return]

def _write(maker: Maker, x: str, t: Any, tensors: list[str]) -> None:
  """A write in one of the ways there are. Of shared elements PyTorch refuses it."""
  shared = "more than one element of the written-to tensor refers to a single memory location"
  number = maker.some(0, 1, 2, 3) if not t.is_floating_point() else maker.number()
  kind = maker.random.random()
  if kind < 0.4:
    index = maker.index(x)
    value = str(number) if not t.is_floating_point() else maker.value_for(x, index, tensors)
    maker.run(f"{x}[{index}] = {value}", shared if "[" not in index else None)
  elif kind < 0.55: maker.run(f"assign({x}, {x} * 2)" if t.is_floating_point() else f"assign({x}, {x} ^ 3)", shared)
  elif kind < 0.8: maker.run(f"{x} += {number}", shared)
  else: maker.run(f"{x}[{maker.index(x)}] += {number}")

# ***** gradients *****

def _gradients(maker: Maker) -> Program:
  """Leaves, data and results; writes to results, data and views of both; retained gradients."""
  shape = maker.some((3,), (2, 3))
  leaves = [maker.define(f"leaf({maker.values(shape)})") for _ in range(2)]
  data = [maker.define(f"data({maker.values(shape)})") for _ in range(2)]
  pool, retained = [*leaves, *data], list[str]()
  for _ in range(maker.random.randrange(6, 16)):
    x = maker.random.choice(pool)
    action = maker.random.random()
    if action < 0.55:
      made = maker.define(*_result(maker, x, pool))
      if made: pool.append(made)
    elif action < 0.7:
      # equal expressions are one value here, so views, which are soon expressed again, retain none
      if maker.names[x].requires_grad and x not in leaves and x not in maker.base and maker.run(f"{x}.retain_grad()"):
        retained.append(x)
    # a write that PyTorch does not see leaves that the tensor it was
    elif x in maker.detached and maker.base[x] in retained: continue
    elif x not in leaves and (maker.base.get(x, x) not in data or maker.random.random() < 0.4):
      index = maker.index(x)
      value = maker.value_for(x, index, pool)
      maker.run(maker.some(f"{x}[{index}] = {value}", f"{x} *= {maker.number()}",
                           f"{x} += {maker.value_for(x, '...', pool)}"))
  terms = [f"({x} * {maker.number()}).sum()" for x in pool]
  maker.run(f"loss = {' + '.join(terms)}")
  try: maker.names["loss"].backward()
  except RuntimeError: maker.program.backward_refused = True
  else:
    maker.program.gradients = {x: None if (g := maker.names[x].grad) is None else g.tolist()
                               for x in (*leaves, *dict.fromkeys(retained))}
  return maker.program

def _result(maker: Maker, x: str, pool: list[str]) -> tuple[str, str]:
  """An expression, and what it is a view of."""
  t, other = maker.names[x], maker.random.choice(pool)
  choices = [(f"{x} * {maker.number()} + {maker.number()}", ""), (f"{x}.clone()", ""), (f"{x}.detach()", x),
             (f"{x} * {x}", ""),
             (f"{x}[None].expand(2, {', '.join(['-1'] * t.ndim)})" if t.ndim else f"{x}.expand(2)", x)]
  if t.ndim: choices += [(f"{x}[{maker.some('0', '1:', '::2')}]", x), (f"{x}.sum(0)", "")]
  if t.ndim > 1 and t.is_contiguous(): choices += [(f"{x}.reshape(-1)", x)]
  if maker.broadcast(t, maker.names[other]): choices += [(f"{x} {maker.some('*', '+', '-')} {other}", "")] * 4
  return maker.some(*choices)  # type: ignore[no-any-return]

# ***** programs *****

def make(seed: int) -> Program:
  """The program of a seed."""
  kinds: tuple[Callable[[Maker], Program], ...] = (_views, _gradients)
  return kinds[seed % 2](Maker(seed))

def _differ(found: Any, expected: Any) -> bool:
  a, b = np.array(found, dtype=np.float64), np.array(expected, dtype=np.float64)
  return a.shape != b.shape or not np.allclose(a, b, rtol=1e-4, atol=1e-4, equal_nan=True)

def check(program: Program) -> str:
  """"same", "refused", or what is wrong."""
  names = names_of_tinyhw()
  for line, refused in program.lines:
    try: exec(line, names)  # the text is our own
    except ArgumentError as error:
      # that an expanded view's elements are apart is not always seen
      hidden = any(view in str(program) for view in (".diagonal()", "::2"))
      if not refused: return "refused" if "elements share memory" in str(error) and hidden else f"{line}: {error}"
    else:
      if refused: return f"{line}: is not refused"
  for name, expected in program.results.items():
    if _differ(names[name].tolist(), expected): return f"{name} is {names[name].tolist()}, not {expected}"
  if not program.gradients and not program.backward_refused: return "same"
  try: names["loss"].backward()
  except GradientError as error:
    return "refused" if "overwritten in place" in str(error) or "found no tensor" in str(error) else str(error)
  if program.backward_refused: return "same"
  for name, expected in program.gradients.items():
    g = names[name].grad
    found = None if g is None else g.tolist()
    # zeros are none where everything was overwritten
    if found is None and expected is not None and not np.any(expected): continue
    if (found is None) != (expected is None) or found is not None and _differ(found, expected):
      return f"{name}.grad is {found}, not {expected}"
  return "same"
