"""compat/torch/differentiation/modes.py: modes of gradients as contexts, decorators and functions."""
from __future__ import annotations
from collections.abc import Iterator
from typing import Any

import pytest

import tinyhw.compat.torch as torch
from tinyhw.errors import ArgumentError

def has_gradients() -> bool:
  x = torch.ones(1, requires_grad=True)
  y = (x * 2).sum()
  try: y.backward()
  except Exception: return False  # noqa: BLE001
  return x.grad is not None and torch.is_grad_enabled()

def test_contexts_nest() -> None:
  with torch.no_grad():
    assert not torch.is_grad_enabled()
    with torch.enable_grad(): assert has_gradients()
    with torch.inference_mode(False): assert torch.is_grad_enabled()
    assert not torch.is_grad_enabled() and torch.is_inference_mode_enabled()
  with torch.inference_mode(): assert not torch.is_grad_enabled()
  assert has_gradients()

def test_decorators() -> None:
  @torch.no_grad()
  def a() -> bool: return torch.is_grad_enabled()
  @torch.no_grad
  def b() -> bool: return torch.is_grad_enabled()
  @torch.inference_mode()
  def c() -> bool: return torch.is_grad_enabled()
  @torch.no_grad()
  def numbers() -> Iterator[bool]:
    yield torch.is_grad_enabled()
    yield torch.is_grad_enabled()
  @torch.set_grad_enabled(False)
  def d() -> bool: return torch.is_grad_enabled()
  assert not a() and not b() and not c() and not d() and torch.is_grad_enabled()
  for inside in numbers(): assert not inside and torch.is_grad_enabled()
  with pytest.raises(ArgumentError, match="decorates a function"):
    wrong: Any = 3
    torch.no_grad()(wrong)

def test_set_grad_enabled() -> None:
  torch.set_grad_enabled(False)
  assert not torch.is_grad_enabled()
  torch.set_grad_enabled(True)
  with torch.set_grad_enabled(False): assert not torch.is_grad_enabled()
  assert torch.is_grad_enabled()

def test_contexts_that_change_nothing() -> None:
  x = torch.tensor([3.0], requires_grad=True)
  graph = torch.autograd.graph
  with torch.autograd.set_detect_anomaly(True), torch.autograd.detect_anomaly(), graph.save_on_cpu(pin_memory=True):
    (x * x).sum().backward()
  assert x.grad.tolist() == [6.0]
