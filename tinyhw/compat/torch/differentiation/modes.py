"""Modes of gradients: no_grad, enable_grad, set_grad_enabled, inference_mode, as contexts, decorators and functions.

inference_mode is no_grad: a tensor made in it may be used afterwards as any other.
"""
from __future__ import annotations
from collections.abc import Callable
import functools
import inspect
from typing import Any

from tinyhw.errors import ArgumentError
from tinyhw.methods.base import GradMode
from tinyhw.methods.checks import flag

class GradientMode:
  """A context, and a decorator of functions and generators, in which results have gradients or do not."""
  enabled = False

  def __init__(self) -> None: self._before: list[bool] = []

  def __enter__(self) -> None:
    self._before.append(GradMode.off)
    GradMode.off = not self.enabled

  def __exit__(self, *_: object) -> None: GradMode.off = self._before.pop()

  def _again(self) -> GradientMode: return type(self)()

  def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
    if not callable(function): raise ArgumentError(f"{type(self).__name__} decorates a function, not {function!r}")
    if inspect.isgeneratorfunction(function): return self._generator(function)
    @functools.wraps(function)
    def called(*args: Any, **keywords: Any) -> Any:
      with self._again(): return function(*args, **keywords)
    return called

  def _generator(self, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def called(*args: Any, **keywords: Any) -> Any:
      made = function(*args, **keywords)
      while True:
        try:
          with self._again(): value = next(made)
        except StopIteration as end: return end.value
        yield value
    return called

class no_grad(GradientMode):
  """Results are cut off from their operands. `@no_grad` and `@no_grad()` decorate."""
  def __new__(cls, function: Any = None) -> Any:
    made = super().__new__(cls)
    if function is None: return made
    made._before = []
    return made(function)

class enable_grad(no_grad):
  """Results have gradients, also inside of no_grad."""
  enabled = True

class set_grad_enabled(GradientMode):
  """Let results have gradients or not: from here on, or within a `with`."""
  def __init__(self, mode: bool):
    super().__init__()
    self._outside, self.enabled = GradMode.off, flag("mode", mode)
    GradMode.off = not self.enabled

  def __enter__(self) -> None:
    self._before.append(self._outside)
    GradMode.off = not self.enabled

  def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
    GradMode.off = self._outside
    return super().__call__(function)

  def _again(self) -> GradientMode: return set_grad_enabled(self.enabled)

class inference_mode(GradientMode):
  """no_grad, unless mode is False."""
  def __new__(cls, mode: Any = True) -> Any:
    made = super().__new__(cls)
    if not callable(mode): return made
    made._before = []
    return made(mode)

  def __init__(self, mode: bool = True):
    super().__init__()
    self.enabled = not flag("mode", mode)

  def _again(self) -> GradientMode: return inference_mode(not self.enabled)

def is_grad_enabled() -> bool:
  """Do results have gradients here?"""
  return not GradMode.off

def is_inference_mode_enabled() -> bool:
  """Are results cut off from their operands here?"""
  return GradMode.off

class Unneeded:
  """A context that changes nothing: a check of PyTorch's engine, or a place for tensors that it saves. Here a graph
  keeps expressions, and what they need is computed when it is asked for."""
  def __init__(self, *args: Any, **keywords: Any): pass
  def __enter__(self) -> Unneeded: return self
  def __exit__(self, *_: object) -> None: pass
