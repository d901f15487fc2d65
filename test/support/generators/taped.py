"""Arrays with gradients, in NumPy and float64: the oracle of programs that gather, write by index, fold windows and
multiply.

Movement of any kind, gathers and writes included, is one operation: `take` moves the positions of elements, and so
knows where each came from. With products (`einsum`), sums, maxima and elementwise functions that is all there is.
Elements that are equally large share the gradient of a maximum.
"""
from __future__ import annotations
from collections.abc import Callable
from typing import Any

import numpy as np

class Value:
  """An array, what it was made of, and what turns its gradient into theirs."""
  def __init__(self, array: Any, sources: tuple[Value, ...] = (), back: Callable[[Any], list[Any]] = lambda g: []):
    self.array, self.sources, self.back = np.asarray(array, np.float64), sources, back

  @property
  def shape(self) -> tuple[int, ...]: return tuple(self.array.shape)

def take(move: Callable[..., Any], *values: Value) -> Value:
  """Return the arrays that `move` makes, element by element.

  It gets arrays of positions; -1 in its result stands for a zero.
  """
  starts = np.cumsum([0, *[v.array.size for v in values]])
  at = move(*[np.arange(start, start + v.array.size).reshape(v.shape) for start, v in zip(starts, values)])
  flat = np.concatenate([v.array.ravel() for v in values])
  def back(g: Any) -> list[Any]:
    total = np.bincount(at[at >= 0].ravel(), weights=np.broadcast_to(g, at.shape)[at >= 0].ravel(), minlength=len(flat))
    return [total[start:start + v.array.size].reshape(v.shape) for start, v in zip(starts, values)]
  return Value(np.where(at < 0, 0.0, flat[np.maximum(at, 0)]) if flat.size else np.zeros(at.shape), values, back)

def einsum(text: str, a: Value, b: Value) -> Value:
  """A product of two arrays. Each letter of one of them is in the other one, or in the result."""
  left, out = text.split("->")
  x, y = left.split(",")
  def back(g: Any) -> list[Any]:
    return [np.einsum(f"{out},{y}->{x}", g, b.array), np.einsum(f"{out},{x}->{y}", g, a.array)]
  return Value(np.einsum(text, a.array, b.array), (a, b), back)

def _unbroadcast(g: Any, shape: tuple[int, ...]) -> Any:
  g = g.sum(tuple(range(g.ndim - len(shape))))
  return g.sum(tuple(k for k, n in enumerate(shape) if n == 1 and g.shape[k] != 1), keepdims=True)

def elementwise(array: Any, *terms: tuple[Value, Any]) -> Value:
  """A result, and for each operand the derivative by it."""
  def back(g: Any) -> list[Any]:
    return [_unbroadcast(np.broadcast_to(g * slope, array.shape), v.shape) for v, slope in terms]
  return Value(array, tuple(v for v, _ in terms), back)

def total(v: Value, axes: tuple[int, ...], keep: bool = False, factor: float = 1.0) -> Value:
  """A sum over axes."""
  def back(g: Any) -> list[Any]: return [np.broadcast_to(g if keep else np.expand_dims(g, axes), v.shape) * factor]
  return Value(v.array.sum(axes, keepdims=keep) * factor, (v,), back)

def largest(v: Value, axes: tuple[int, ...], keep: bool = False) -> Value:
  """A maximum over axes."""
  top = v.array.max(axes, keepdims=True)
  equal = v.array == top
  def back(g: Any) -> list[Any]:
    return [(g if keep else np.expand_dims(g, axes)) * equal / equal.sum(axes, keepdims=True)]
  return Value(top if keep else top.reshape([n for k, n in enumerate(v.shape) if k not in axes]), (v,), back)

def gradients(result: Value, wanted: list[Value]) -> list[Any]:
  """The gradient of a number by each of these values; None where it is not made of one."""
  found: dict[int, Any] = {id(result): np.ones(result.shape)}
  for v in _users_first(result):
    if id(v) not in found: continue
    for source, g in zip(v.sources, v.back(found[id(v)])): found[id(source)] = found.get(id(source), 0.0) + g
  return [np.broadcast_to(found[id(v)], v.shape) if id(v) in found else None for v in wanted]

def _users_first(result: Value) -> list[Value]:
  order: list[Value] = []
  seen: set[int] = set()
  stack: list[tuple[Value, bool]] = [(result, False)]
  while stack:
    v, done = stack.pop()
    if done: order.append(v)
    elif id(v) not in seen:
      seen.add(id(v))
      stack += [(v, True), *[(s, False) for s in v.sources]]
  return order[::-1]
