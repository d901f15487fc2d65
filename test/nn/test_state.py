"""The tensors of models by name, and loading them."""
import pytest

from tinyhw import nn
from tinyhw.errors import ArgumentError
from tinyhw.nn.state import get_parameters, get_state_dict, load_state_dict
from tinyhw.tensor import Tensor

pytestmark = pytest.mark.usefixtures("engine")

class Model:
  def __init__(self) -> None:
    self.layers = [nn.Linear(2, 3), {"norm": nn.LayerNorm(3)}]
    self.scale, self.name, self.me = Tensor(2.0), "x", self

def test_names():
  model = Model()
  assert list(get_state_dict(model)) == ["layers.0.weight", "layers.0.bias", "layers.1.norm.weight", "layers.1.norm.bias", "scale"]
  assert list(get_state_dict(model.layers[0], "p")) == ["p.weight", "p.bias"] and len(get_parameters([model, (1, None)])) == 5

def test_load_state_dict():
  a, b = Model(), Model()
  assert load_state_dict(a, get_state_dict(b), verbose=False) == get_parameters(a)
  assert a.layers[0].weight.tolist() == b.layers[0].weight.tolist() and a.layers[0].weight is not b.layers[0].weight
  a.layers[0].weight.assign(Tensor.zeros(3, 2)).realize()
  assert b.layers[0].weight.tolist() != a.layers[0].weight.tolist()
  with pytest.raises(ArgumentError, match="has no 'layers.0.weight' and 4 more"): load_state_dict(a, {}, verbose=False)
  assert load_state_dict(a, {"scale": Tensor([5.0])}, strict=False, verbose=False) == [a.scale] and a.scale.item() == 5.0
  with pytest.raises(ArgumentError, match="shape"): load_state_dict(a, {"scale": Tensor([5.0, 6.0])}, strict=False, verbose=False)
  state = get_state_dict(b)
  load_state_dict(a, state, verbose=False, consume=True)
  assert not state
