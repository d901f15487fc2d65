"""Values inside of a schedule stay known while the program holds their nodes."""
from __future__ import annotations
import gc
import sys

import pytest

from tinyhw import Context, Tensor, TinyJit, Variable
from tinyhw.engine.memory.held import held_outside, references
from tinyhw.engine.run import realize as realizing
from tinyhw.engine.run.realize import held_inside_of
from tinyhw.engine.schedule.schedule import Canonical, Schedule
from tinyhw.helpers import GlobalCounters
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

def some_nodes(count: int) -> dict[UOp, None]:
  """New nodes, and one over all of them."""
  nodes = [UOp(Ops.SINK, tag=object()) for _ in range(count)]
  return dict.fromkeys([*nodes, UOp(Ops.SINK, src=(*nodes, nodes[0]))])

def first(graph: dict[UOp, None], count: int) -> dict[UOp, None]: return dict.fromkeys(list(graph)[:count])

def test_nodes_of_the_graph_alone_are_not_held() -> None:
  graph = some_nodes(3)
  assert held_outside(graph, first(graph, 3)) == []

def test_what_something_else_refers_to_is_held() -> None:
  graph = some_nodes(4)
  held, over = list(graph)[1], UOp(Ops.SINK, src=(list(graph)[2],), tag=1)
  assert held_outside(graph, first(graph, 4)) == [held, over.src[0]]

def test_an_interpreter_that_does_not_count_keeps_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
  graph = some_nodes(2)
  held = list(graph)[0]
  monkeypatch.delattr(sys, "getrefcount")
  assert held_outside(graph, graph) == [] and references(graph, [held]) == [0]

def kernels_of(run: object) -> int:
  """How many kernels a call takes the second time, when numbers are no longer constants."""
  assert callable(run)
  for _ in range(4):
    before = GlobalCounters.kernel_count
    run()
  return GlobalCounters.kernel_count - before

class Decoder:
  """Layers with a cache each, that is written before it is read."""
  def __init__(self, layers: int):
    self.weights = [Tensor.randn(8, 8).realize() for _ in range(layers)]
    self.caches = [Tensor.zeros(16, 8).contiguous().realize() for _ in range(layers)]

  def __call__(self, position: int | UOp) -> Tensor:
    x = Tensor.ones(1, 8).contiguous()
    for w, cache in zip(self.weights, self.caches):
      k = (x @ w).relu()
      cache[position:position + 1] = k
      seen = cache[:position + 1]
      x = x + (k @ seen.T).softmax() @ seen
    return x.realize()

@pytest.mark.parametrize("device", ["CPU", "PYTHON"])
def test_a_decoder_of_twice_the_layers_takes_twice_the_kernels(device: str) -> None:
  with Context(DEV=device):
    models = [Decoder(layers) for layers in (3, 6)]
    few, many = (kernels_of(lambda: model(3)) for model in models)
  assert many <= 2.2 * few

def test_a_captured_decoder_of_twice_the_layers_takes_twice_the_kernels() -> None:
  counts = []
  for layers in (3, 6):
    step, i = TinyJit(Decoder(layers)), Variable("i", 1, 14)
    counts.append(kernels_of(lambda: step(i.bind(3))))
  assert counts[1] <= 2.2 * counts[0]

def test_a_loss_that_was_read_is_not_computed_again_for_its_gradient() -> None:
  w, x = Tensor.randn(32, 32, requires_grad=True).realize(), Tensor.randn(16, 32).realize()
  def kernels(read: bool) -> int:
    hidden = (x @ w).relu().contiguous()
    loss = (hidden @ w).square().sum()
    before = GlobalCounters.kernel_count
    if read: loss.item()
    loss.gradient(w)[0].realize()
    return GlobalCounters.kernel_count - before
  assert kernels(read=True) <= kernels(read=False) + 1

def test_values_are_those_of_the_state_that_was_read() -> None:
  """A value that is kept is not computed from what was written since."""
  memory = Tensor([1.0, 2.0, 3.0]).realize()
  hidden = (memory * 2).contiguous()
  first, later = (hidden + 1).contiguous(), hidden * 10
  first.realize()
  memory[0] = 100
  assert later.tolist() == [20, 40, 60] and (memory * 2).contiguous().tolist() == [200, 4, 6]

def test_memory_of_values_that_nobody_holds_returns() -> None:
  x = Tensor.randn(64, 64).realize()
  def run() -> Tensor:
    hidden = (x @ x).contiguous()
    return (hidden @ x).contiguous().realize()
  kept = run()
  gc.collect()    # of other tests
  before = GlobalCounters.mem_used
  for _ in range(4): kept = run()
  assert GlobalCounters.mem_used == before and kept.shape == (64, 64)

def test_a_value_that_is_not_held_stays_temporary(monkeypatch: pytest.MonkeyPatch) -> None:
  """Each step of the loop drops the tensor of the step before; one node is held."""
  found: list[int] = []
  def watched(made: Schedule, canonical: Canonical) -> dict[UOp, UOp]:
    inner = held_inside_of(made, canonical)
    found.extend((len(made.inner), len(inner)))
    return inner
  monkeypatch.setattr(realizing, "held_inside_of", watched)
  x = Tensor.randn(64, 64).realize()
  for k in range(6):
    x = (x.flip(0) + 1).contiguous()
    if k == 2: held = x.uop
  x.realize()
  assert found == [5, 1] and held.realized is not None

def test_memory_of_held_values_is_theirs_alone() -> None:
  x = Tensor.randn(64, 64).realize()
  before = GlobalCounters.mem_used
  for _ in range(6): x = (x.flip(0) + 1).contiguous()
  nodes = [u for u in x.uop.toposort() if u.op is Ops.CONTIGUOUS and u is not x.uop]
  held = nodes[2]
  del nodes
  x.realize()
  assert held.realized is not None
  assert GlobalCounters.mem_used <= before + 2 * x.nbytes(), "the result, and the node that is held; x itself is gone"

def test_a_held_value_is_released_with_its_tensor() -> None:
  x = Tensor.randn(64, 64).realize()
  hidden = (x @ x).contiguous()
  before = GlobalCounters.mem_used
  result = (hidden @ x).contiguous().realize()
  count = GlobalCounters.kernel_count
  hidden.realize()
  assert GlobalCounters.kernel_count == count, "its value was kept"
  del hidden
  assert GlobalCounters.mem_used <= before + result.nbytes()

def test_numbers_that_change_keep_values_too() -> None:
  x = Tensor.randn(8, 8).realize()
  counts = []
  for number in (3.5, 4.5, 5.5, 6.5):
    hidden = ((x * number) @ x).contiguous()
    (hidden @ x).contiguous().realize()
    count = GlobalCounters.kernel_count
    hidden.realize()
    counts.append(GlobalCounters.kernel_count - count)
  assert counts == [0, 0, 0, 0]

def test_an_empty_result_next_to_a_value_that_is_held() -> None:
  hidden = (Tensor.randn(4, 4).realize() + 1).contiguous()
  empty, full = Tensor.zeros(0, 4).contiguous() + 1, (hidden @ hidden).contiguous()
  Tensor.realize(empty, full)
  assert empty.tolist() == [] and full.shape == (4, 4) and hidden.uop.realized is not None

def test_values_on_several_devices_are_kept() -> None:
  x = Tensor.arange(8).reshape(4, 2).float().shard(("CPU", "CPU:1"), axis=0).realize()
  hidden = (x + 1).contiguous()
  total = (hidden @ Tensor.ones(2, 2).shard(("CPU", "CPU:1"))).contiguous().realize()
  count = GlobalCounters.kernel_count
  hidden.realize()
  assert GlobalCounters.kernel_count == count
  assert hidden.tolist() == [[1, 2], [3, 4], [5, 6], [7, 8]] and total.tolist() == [[3, 3], [7, 7], [11, 11], [15, 15]]
