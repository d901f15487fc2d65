"""The tensors of models by name, and loading them."""
import collections
import os
import subprocess
import sys

import pytest

from tinyhw import nn
from tinyhw.capture.jit import TinyJit
from tinyhw.config import Context
from tinyhw.dtype import dtypes
from tinyhw.errors import ArgumentError
import tinyhw.nn.state as state_module
from tinyhw.nn.state import get_parameters, get_state_dict, load_state_dict, safe_load, safe_save
from tinyhw.tensor import Tensor
from tinyhw.uop.enums import Ops

pytestmark = pytest.mark.usefixtures("engine")

class Model:
  def __init__(self) -> None:
    self.layers = [nn.Linear(2, 3), {"norm": nn.LayerNorm(3)}]
    self.scale, self.name, self.me = Tensor(2.0), "x", self

def test_names():
  model = Model()
  assert list(get_state_dict(model)) == ["layers.0.weight", "layers.0.bias", "layers.1.norm.weight",
                                         "layers.1.norm.bias", "scale"]
  assert list(get_state_dict(model.layers[0], "p")) == ["p.weight",
                                                        "p.bias"] and len(get_parameters([model, (1, None)])) == 5

def test_load_state_dict():
  a, b = Model(), Model()
  assert load_state_dict(a, get_state_dict(b), verbose=False) == get_parameters(a)
  assert a.layers[0].weight.tolist() == b.layers[0].weight.tolist() and a.layers[0].weight is not b.layers[0].weight
  a.layers[0].weight.assign(Tensor.zeros(3, 2)).realize()
  assert b.layers[0].weight.tolist() != a.layers[0].weight.tolist()
  with pytest.raises(ArgumentError, match="has no 'layers.0.weight' and 4 more"): load_state_dict(a, {}, verbose=False)
  assert (load_state_dict(a, {"scale": Tensor([5.0])}, strict=False, verbose=False) == [a.scale]
          and a.scale.item() == 5.0)
  with pytest.raises(ArgumentError, match="shape"):
    load_state_dict(a, {"scale": Tensor([5.0, 6.0])}, strict=False, verbose=False)
  state = get_state_dict(b)
  load_state_dict(a, state, verbose=False, consume=True)
  assert not state

def test_shapes_and_values_are_checked_before_anything_changes(tmp_path):
  model = Model()
  before = model.scale.item()
  state = {**get_state_dict(Model()), "layers.1.norm.bias": Tensor.ones(4), "scale": Tensor(7.0)}
  with pytest.raises(ArgumentError, match=r"'layers.1.norm.bias' has shape \(3,\) in the model and \(4,\) in the "
                     r"state; was it saved"):
    load_state_dict(model, state, verbose=False)
  with pytest.raises(ArgumentError, match="'scale' is <class 'float'> in the state, not a Tensor"):
    load_state_dict(model, {"scale": 1.0},
                    strict=False)
  with pytest.raises(ArgumentError, match="wants a dict of Tensors by name, not <class 'list'>"):
    load_state_dict(model, [Tensor(1.0)])
  assert model.scale.item() == before

def test_types_and_shapes_of_one_element():
  model = Model()
  load_state_dict(model, {"scale": Tensor([3.0], dtype="float64"), "layers.1.norm.bias": Tensor([1, 2, 3])},
                  strict=False, verbose=False)
  assert model.scale.dtype is dtypes.float32 and model.scale.item() == 3.0 and model.scale.shape == ()
  assert model.layers[1]["norm"].bias.tolist() == [1.0, 2.0, 3.0]

@pytest.mark.parametrize("consume", (False, True))
@pytest.mark.parametrize("realize", (False, True))
def test_from_files(tmp_path, consume, realize, engine):
  if engine == "interpreter": pytest.skip("it knows no copies")
  source, model = Model(), Model()
  safe_save(get_state_dict(source), tmp_path / "f")
  state = safe_load(tmp_path / "f")
  assert load_state_dict(model, state, verbose=False, consume=consume, realize=realize) == get_parameters(model)
  assert all((t.uop.base.op is Ops.BUFFER) is realize for t in get_parameters(model)) and bool(state) is not consume
  for name, t in get_state_dict(source).items(): assert get_state_dict(model)[name].tolist() == t.tolist()
  assert all(not t.device.startswith("DISK") for t in get_parameters(model))

def test_unused_entries_are_told(capsys):
  with Context(DEBUG=1): load_state_dict(Model(), {"more": Tensor(1.0)}, strict=False, verbose=False)
  assert "1 entries that the model does not have: more" in capsys.readouterr().err

def test_optimizers_move_too(tmp_path):
  """After loading a checkpoint of model and optimizer, training continues as if it had not stopped."""
  def step(model, optimizer):
    with Tensor.train():
      optimizer.zero_grad()
      (model.weight * Tensor([[1.0, 2.0]])).square().sum().backward()
      optimizer.step()
  def pair():
    Tensor.manual_seed(3)
    model = nn.Linear(2, 2, bias=False)
    return model, nn.optim.Adam([model.weight], lr=0.1)
  one, two = pair(), pair()
  for _ in range(2): step(*one)
  safe_save(get_state_dict(one[1]), tmp_path / "f")
  load_state_dict(two[1], safe_load(tmp_path / "f"), verbose=False)
  for model, optimizer in (one, two): step(model, optimizer)
  assert one[0].weight.tolist() == two[0].weight.tolist()

def test_storage_stays_where_it_is():
  model, state = {"a": Tensor([1.0, 2.0, 3.0]), "b": Tensor.ones(2)}, {"a": Tensor([4, 5, 6]), "b": Tensor([7.0, 8.0])}
  storage, view, before = model["a"].uop.base.storage, model["a"][1:], model["a"] * 2
  for consume in (False, True): load_state_dict(model, dict(state), verbose=False, consume=consume)
  assert model["a"].uop.base.storage is storage and view.tolist() == [5.0, 6.0] and before.tolist() == [2.0, 4.0, 6.0]
  model["a"].assign(Tensor.zeros(3)).realize()
  assert state["a"].tolist() == [4, 5, 6] and model["b"].tolist() == [7.0, 8.0], "the model has copies"
  load_state_dict(model, model, verbose=False)
  assert model["b"].tolist() == [7.0, 8.0]

@pytest.mark.parametrize("consume", (False, True))
@pytest.mark.parametrize("realize", (False, True))
def test_a_captured_step_goes_on_after_loading(tmp_path, consume, realize, engine):
  """Checkpoints of model and optimizer, in memory and in a file, are restored between replays."""
  if engine == "interpreter": pytest.skip("it knows no copies")
  model = nn.Linear(2, 2)
  optimizer = nn.optim.Adam(get_parameters(model), lr=0.1)
  @TinyJit
  @Tensor.train()
  def step(x):
    optimizer.zero_grad()
    loss = model(x).square().sum().backward()
    return loss.realize(*optimizer.schedule_step())
  both, x = {"model": model, "optimizer": optimizer}, Tensor([[1.0, 2.0]])
  def run(): return [step(x).item() for _ in range(3)]
  for _ in range(2): step(x)
  assert step.captured is not None
  kept = {name: t.clone().realize() for name, t in get_state_dict(both).items()}
  safe_save(kept, tmp_path / "f")
  expected = run()
  assert len(set(expected)) == 3
  for restored in (safe_load(tmp_path / "f"), kept):
    load_state_dict(both, dict(restored), verbose=False, consume=consume, realize=realize)
    assert run() == expected

class Slotted:
  __slots__ = ("weight", "missing", "__weakref__")
  def __init__(self): self.weight = Tensor([1.0])

class Node:
  def __init__(self): self.t, self.others = Tensor([1.0]), []

def test_what_is_walked():
  shared = nn.Linear(1, 1)
  assert list(get_state_dict({"a": shared, "b": [shared]})) == ["a.weight", "a.bias", "b.0.weight",
                                                                "b.0.bias"], "tied parts have both names"
  loop = [Tensor([1.0])]
  loop.append(loop)
  assert (list(get_state_dict(loop)) == ["0"] and list(get_state_dict(Slotted())) == ["weight"]
          and get_state_dict(5) == {} == get_state_dict("text"))
  pair = collections.namedtuple("pair", "x y")(Tensor(1), [Tensor(2)])
  assert list(get_state_dict(pair, "p.")) == ["p.x", "p.y.0"] and list(get_state_dict(Tensor(1), "only")) == ["only"]
  assert list(get_state_dict({"w": Tensor(1), "s": Slotted()}, tensor_type=Slotted)) == ["s"]
  deep = []
  for _ in range(5000): deep = [deep]
  assert get_state_dict(deep) == {}

def test_tangles_end(monkeypatch):
  monkeypatch.setattr(state_module, "_MOST_STEPS", 5000)
  nodes = [Node() for _ in range(12)]
  for node in nodes: node.others = list(nodes)
  with pytest.raises(ArgumentError, match="refers to itself in so many ways"): get_state_dict(nodes)

def test_formats_are_loaded_when_they_are_used():
  program = ("import sys; from tinyhw import nn; before = set(sys.modules); from tinyhw.nn.state import npz_load, "
             "torch_load; "
             "print(*sorted(before & {'json', 'zipfile', 'tinyhw.nn.safetensors', 'tinyhw.nn.npy', "
             "'tinyhw.nn.unpickle'}), 'zipfile' in sys.modules)")
  done = subprocess.run([sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": os.getcwd()},
                        capture_output=True, text=True, timeout=60)
  assert done.stdout == "True\n", done.stdout + done.stderr
  assert set(state_module._FORMATS) <= set(dir(state_module)) and all(getattr(state_module, name) is not None
                                                                      for name in state_module._FORMATS)
  with pytest.raises(AttributeError, match="has no attribute 'nothing'"): getattr(state_module, "nothing")
