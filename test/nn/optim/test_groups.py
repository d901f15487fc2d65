"""nn/optim/groups.py: options in memory, shared counts of steps, and a step of a group."""
from __future__ import annotations
import copy
import pickle
from typing import Any

import pytest

from tinyhw.errors import ArgumentError
from tinyhw.nn.optim import rules, widest_float
from tinyhw.nn.optim.groups import ParameterGroup, begin, join, separate, step_group
from tinyhw.tensor import Tensor

def group(**options: Any) -> ParameterGroup:
  return ParameterGroup({"params": [], "lr": 0.5, "betas": (0.9, 0.99), "eps": 1e-8, "weight_decay": 0.0,
                         "amsgrad": False, "decoupled_weight_decay": False, **options})

def test_options_are_read_in_memory() -> None:
  given = group()
  options = given.options(Tensor(0).device)
  assert options.dtype == widest_float(Tensor(0).device) and options.lr.item() == 0.5
  assert [x.item() for x in options.betas] == Tensor([0.9, 0.99], dtype=options.dtype).tolist()
  given["lr"] = 0.25
  given.update(betas=(0.5, 0.75))
  again = given.options(Tensor(0).device)
  assert again._memory is options._memory and again.lr.item() == 0.25 and again.betas[1].item() == 0.75
  given["lr"] = Tensor([0.125])
  assert given.options(Tensor(0).device).lr.item() == 0.125 and again.given("eps") == 1e-8
  given["lr"] = Tensor([1.0, 2.0])
  with pytest.raises(ArgumentError, match="an option is a number"): _ = given.options(Tensor(0).device).lr

def test_copies_have_memory_of_their_own() -> None:
  given = group()
  given.options(Tensor(0).device)
  for other in (copy.deepcopy(given), pickle.loads(pickle.dumps(given))):
    other["lr"] = 3.0
    assert given["lr"] == 0.5 and given.options(Tensor(0).device).lr.item() == 0.5

def test_counts_of_steps_part_and_join() -> None:
  given = group()
  options = given.options(Tensor(0).device)
  params, states = [Tensor([1.0]), Tensor([2.0])], [dict[str, Any](), dict[str, Any]()]
  begin(rules.ADAM, options, list(zip(params, states)))
  assert states[0]["step"] is states[1]["step"]
  separate(rules.ADAM, options, states[:1], states[1:])
  Tensor.realize(*step_group(rules.ADAM, options, [(params[0], Tensor([1.0]), states[0])]))
  assert [s["step"].item() for s in states] == [1.0, 0.0] and params[0].item() == pytest.approx(0.5)
  Tensor.realize(*step_group(rules.ADAM, options, [(params[1], Tensor([1.0]), states[1])]))
  join(rules.ADAM, options, states)
  assert states[0]["step"] is states[1]["step"] and states[1]["step"].item() == 1.0

def test_maximize() -> None:
  options = ParameterGroup({"lr": 0.5, "momentum": 0, "dampening": 0, "weight_decay": 0}).options(Tensor(0).device)
  p = Tensor([1.0])
  Tensor.realize(*step_group(rules.SGD, options, [(p, Tensor([1.0]), {})], maximize=True))
  assert p.item() == 1.5
