"""`torch.func`: gradients as functions of functions.

Arguments get nodes of their own, so a derivative is by the argument alone, also where the function sees the same tensor
in another way. Results can be differentiated again. Jacobians are products with all unit vectors at once
(functional/batching.py). A product with a Jacobian from the right is the derivative of the one from the left.
"""
from __future__ import annotations
from collections.abc import Callable, Sequence
import functools
from typing import Any, TypeVar

from tinyhw.compat.torch.differentiation.modes import enable_grad
from tinyhw.compat.torch.differentiation.trees import mapped, rebuilt, tensors_of
from tinyhw.compat.torch.dress import dress, plain
from tinyhw.dtype import dtypes
from tinyhw.engine.memory.writes import fresh_tag
from tinyhw.errors import ArgumentError, ShapeError
from tinyhw.functional.batching import batched, placeholder
from tinyhw.functional.operands import sizes
from tinyhw.gradient import gradients
from tinyhw.methods.base import Handle
from tinyhw.tensor import Tensor
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

F = TypeVar("F", bound=Callable[..., Any])

def with_gradients(function: F) -> F:
  """Let results within a function have gradients, also where no_grad is on outside."""
  return enable_grad()(function)  # type: ignore[no-any-return]

def _alone(x: Any) -> Any:
  """Return a tensor with a node of its own, through which gradients flow."""
  if not isinstance(x, Handle) or x.holds_complex: return x
  u = plain(x).uop
  return dress(Tensor._new(UOp(Ops.CONTIGUOUS_BACKWARD, u.dtype, (u,), None, fresh_tag())))

def _slopes(ys: list[Any], seeds: list[Any], xs: list[Any]) -> list[Tensor]:
  """Return the gradients of results, weighted by seeds, for tensors. Zeros where nothing flows."""
  found: list[Tensor | None] = [None] * len(xs)
  targets = [plain(x).uop for x in xs]
  for y, seed in zip(ys, seeds):
    if not dtypes.is_float(y.dtype): continue
    for k, g in enumerate(gradients(plain(y).uop, plain(seed).uop, targets)):
      if g is None: continue
      part, old = Tensor._new(g), found[k]
      found[k] = part if old is None else old.add(part)
  return [plain(x).const_like(0) if g is None else g for x, g in zip(xs, found)]

def _called(func: Callable[..., Any], args: tuple[Any, ...], has_aux: bool) -> tuple[Any, Any]:
  found = func(*args)
  if not has_aux: return found, None
  if not isinstance(found, tuple) or len(found) != 2: raise ArgumentError("has_aux wants a function of (result, more)")
  return found

def _places(argnums: Any, args: tuple[Any, ...]) -> tuple[int, ...]:
  wanted = (argnums,) if isinstance(argnums, int) else tuple(argnums)
  for k in wanted:
    if not -len(args) <= k < len(args): raise ArgumentError(f"argnums has {k}, and there are {len(args)} arguments")
  return tuple([k % len(args) for k in wanted])

def _own(args: tuple[Any, ...], places: tuple[int, ...]) -> tuple[tuple[Any, ...], list[Any]]:
  """Return arguments, of which those at places have nodes of their own, and the tensors in these."""
  many = list(args)
  for k in places: many[k] = mapped(_alone, args[k])
  return tuple(many), tensors_of("arguments to differentiate", [many[k] for k in places])

def _arranged(leaves: list[Any], args: tuple[Any, ...], places: tuple[int, ...], argnums: Any) -> Any:
  """Return a result for each tensor in the structure of the arguments."""
  found = rebuilt([args[k] for k in places], leaves)
  return found[0] if isinstance(argnums, int) else tuple(found)

def grad_and_value(func: Callable[..., Any], argnums: Any = 0, has_aux: bool = False) -> Callable[..., Any]:
  """Return a function that returns (gradient, value) of a function whose result has no axes.

  argnums: the argument, or several; each may be a tree of tensors. has_aux: the function returns (result, more), and
  the value is that pair.
  """
  @functools.wraps(func)
  @with_gradients
  def called(*args: Any, **keywords: Any) -> Any:
    places = _places(argnums, args)
    own, xs = _own(args, places)
    y, more = _called(functools.partial(func, **keywords), own, has_aux)
    if not isinstance(y, Handle) or y.ndim:
      raise ShapeError(f"grad wants a function whose result is a tensor without axes, not {y!r:.80}")
    found = dress(_slopes([y], [plain(y).detach().const_like(1)], xs))
    slopes = _arranged(found, args, places, argnums)
    return slopes, (y, more) if has_aux else y
  return called

def grad(func: Callable[..., Any], argnums: Any = 0, has_aux: bool = False) -> Callable[..., Any]:
  """Return a function that returns the gradient of a function whose result has no axes. has_aux: (gradient, more)."""
  both = grad_and_value(func, argnums, has_aux)
  @functools.wraps(func)
  def called(*args: Any, **keywords: Any) -> Any:
    slopes, value = both(*args, **keywords)
    return (slopes, value[1]) if has_aux else slopes
  return called

@with_gradients
def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
  """Return (result, function of a vector). The function returns, for each argument, the vector's product with the
  Jacobian from the left."""
  own, xs = _own(primals, tuple(range(len(primals))))
  y, more = _called(func, own, has_aux)
  ys = tensors_of("results", y)
  @with_gradients
  def product(cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
    seeds = tensors_of("cotangents", cotangents)
    _want_shapes("cotangents", seeds, ys)
    return tuple(rebuilt(list(primals), dress(_slopes(ys, seeds, xs))))
  return (y, product, more) if has_aux else (y, product)

def _want_shapes(what: str, vectors: list[Any], values: list[Any]) -> None:
  if [sizes(v) for v in vectors] != [sizes(y) for y in values]:
    raise ShapeError(f"{what} have shapes {[tuple(v.shape) for v in vectors]}, and the values "
                     f"{[tuple(y.shape) for y in values]}")

def _forward(ys: list[Any], xs: list[Any], tangents: list[Any]) -> list[Tensor]:
  """Return the products of the Jacobian of ys with tangents of xs, from the right."""
  seeds = [Tensor._new(placeholder(tuple(sizes(y)), plain(y).uop)) for y in ys]
  back = _slopes(ys, seeds, xs)
  return _slopes(back, tangents, seeds)      # the placeholders are gone: back is linear in them

@with_gradients
def jvp(func: Callable[..., Any], primals: tuple[Any, ...], tangents: tuple[Any, ...], *, strict: bool = False,
        has_aux: bool = False) -> Any:
  """Return (result, product of the Jacobian with tangents of the arguments)."""
  own, xs = _own(tuple(primals), tuple(range(len(primals))))
  y, more = _called(func, own, has_aux)
  vectors = tensors_of("tangents", list(tangents))
  _want_shapes("tangents", vectors, xs)
  found = rebuilt(y, dress(_forward(tensors_of("results", y), xs, vectors)))
  return (y, found, more) if has_aux else (y, found)

# ***** Jacobians *****

def _units(x: Any) -> Tensor:
  """Return all unit vectors of a tensor's shape, along a new first axis."""
  count = int(plain(x).numel())
  return Tensor.eye(count, dtype=x.dtype, device=plain(x).device).reshape(count, *sizes(x))

def jacrev(func: Callable[..., Any], argnums: Any = 0, *, has_aux: bool = False, chunk_size: int | None = None,
           _preallocate_and_copy: bool = False) -> Callable[..., Any]:
  """Return a function that returns the Jacobian, by products from the left: fast for few results.

  Its axes are those of the result, then those of the argument. Trees of results and arguments give trees.
  """
  return _jacobian(func, argnums, has_aux, _rows)

def jacfwd(func: Callable[..., Any], argnums: Any = 0, has_aux: bool = False, *, randomness: str = "error",
           chunk_size: int | None = None) -> Callable[..., Any]:
  """Return a function that returns the Jacobian, by products from the right: fast for few elements of the argument."""
  return _jacobian(func, argnums, has_aux, _columns)

def hessian(func: Callable[..., Any], argnums: Any = 0) -> Callable[..., Any]:
  """Return a function that returns the matrix of second derivatives."""
  return jacfwd(jacrev(func, argnums), argnums)

_Table = list[list[Tensor]]

def _jacobian(func: Callable[..., Any], argnums: Any, has_aux: bool,
              by: Callable[[list[Any], list[Any]], _Table]) -> Callable[..., Any]:
  @functools.wraps(func)
  @with_gradients
  def called(*args: Any, **keywords: Any) -> Any:
    places = _places(argnums, args)
    own, xs = _own(args, places)
    y, more = _called(functools.partial(func, **keywords), own, has_aux)
    table = by(tensors_of("results", y), xs)
    found = rebuilt(y, [_arranged(dress(row), args, places, argnums) for row in table])
    return (found, more) if has_aux else found
  return called

def _rows(ys: list[Any], xs: list[Any]) -> _Table:
  """Return the Jacobian of each result (outer) for each tensor (inner)."""
  found = []
  for y in ys:
    seed = Tensor._new(placeholder(tuple(sizes(y)), plain(y).uop))
    units = _units(y)
    many = batched([g.uop for g in _slopes([y], [seed], xs)], {seed.uop: units.uop}, int(units.shape[0]))
    found.append([Tensor._new(u).reshape(*sizes(y), *sizes(x)) for u, x in zip(many, xs)])
  return found

def _columns(ys: list[Any], xs: list[Any]) -> _Table:
  found: _Table = [[] for _ in ys]
  for k, x in enumerate(xs):
    vector = Tensor._new(placeholder(tuple(sizes(x)), plain(x).uop))
    others = [plain(t).const_like(0) if i != k else vector for i, t in enumerate(xs)]
    units = _units(x)
    many = batched([t.uop for t in _forward(ys, xs, others)], {vector.uop: units.uop}, int(units.shape[0]))
    for row, u, y in zip(found, many, ys):
      row.append(Tensor._new(u).permute(*range(1, y.ndim + 1), 0).reshape(*sizes(y), *sizes(x)))
  return found

# ***** modules as functions *****

def functional_call(module: Any, parameter_and_buffer_dicts: Any, args: Any = None, kwargs: Any = None, *,
                    tie_weights: bool = True, strict: bool = False) -> Any:
  """Call a module with other tensors in the place of its parameters and buffers, by their dotted names."""
  given: dict[str, Any] = {}
  for part in ([parameter_and_buffer_dicts] if isinstance(parameter_and_buffer_dicts, dict)
               else parameter_and_buffer_dicts): given.update(part)
  slots: dict[str, list[tuple[dict[str, Any], str]]] = {}
  first: dict[int, str] = {}
  for path, owner in module.named_modules(remove_duplicate=False):
    for kind in (owner._parameters, owner._buffers):
      for name, value in kind.items():
        full = f"{path}.{name}" if path else name
        tied = first.setdefault(id(value), full) if value is not None and tie_weights else full
        slots.setdefault(full, []).append((kind, name))
        if tied != full: slots[tied].append((kind, name))
  unknown = [name for name in given if name not in slots]
  if unknown: raise ArgumentError(f"{type(module).__name__} has no tensors {unknown}")
  missing = [name for name, places in slots.items() if places[0][0][places[0][1]] is not None and name not in given]
  if strict and missing: raise ArgumentError(f"functional_call(strict=True) lacks {missing}")
  before = [(kind, name, kind[name]) for full in given for kind, name in slots[full]]
  try:
    for full, value in given.items():
      for kind, name in slots[full]: kind[name] = value
    many = () if args is None else args if isinstance(args, tuple) else (args,)
    return module(*many, **(kwargs or {}))
  finally:
    for kind, name, value in before: kind[name] = value

def stack_module_state(models: Sequence[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
  """Return the parameters and the buffers of equal modules, each stacked along a new first axis."""
  if not models: raise ArgumentError("stack_module_state wants a module at least")
  if len({type(m) for m in models}) > 1: raise ArgumentError("stack_module_state wants modules of one class")
  def stacked(kind: str) -> dict[str, Any]:
    tables = [dict(getattr(m, kind)()) for m in models]
    return {name: dress(plain(tables[0][name]).detach().stack(*[plain(t[name]).detach() for t in tables[1:]], dim=0)
                        .clone().realize()) for name in tables[0]}
  parameters = stacked("named_parameters")
  for x in parameters.values(): x.requires_grad_()
  return parameters, stacked("named_buffers")
