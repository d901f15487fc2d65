"""In-place writes in program order: random programs of writes, views and pending values, against NumPy, which is
eager."""
from __future__ import annotations
import gc
import random
from typing import Any

from hypothesis import given, strategies as st
import numpy as np
import pytest

from test.helpers import ENGINES, on
from tinyhw import GlobalCounters, Tensor, nn
from tinyhw.engine.memory import writes
from tinyhw.engine.memory.buffers import buffer_of
from tinyhw.engine.run import realize as realizing
from tinyhw.errors import GradientError, UnknownValueError
from tinyhw.uop.enums import Ops

N = 6

class Program:
  """Pairs of a Tensor and its value in NumPy. memory: those that view storage. values: those that were computed."""
  def __init__(self, choices: random.Random):
    self.choices = choices
    self.memory: list[tuple[Tensor, Any]] = []
    self.values: list[tuple[Tensor, Any]] = []
    self.log: list[str] = []
    for _ in range(choices.randint(1, 3)):
      start = choices.randint(0, 9)
      self.memory.append((Tensor(list(range(start, start + N))).realize(), np.arange(start, start + N, dtype=np.int32)))

  def some(self) -> tuple[Tensor, Any]: return self.choices.choice(self.memory + self.values)

  def operand(self, size: int) -> tuple[Any, Any]:
    """Return a number, or a tensor of this size (or one element of one)."""
    t, a = self.some()
    if self.choices.random() < 0.3: return (k := self.choices.randint(-3, 3)), k
    if a.size < size: return t[:1], a[:1].copy()
    return t[a.size - size:], a[a.size - size:]

  def step(self) -> None:
    """One random step."""
    name = self.choices.choice([m for m in dir(self) if m.startswith("do_")])
    self.log.append(name)
    getattr(self, name)()

  def do_value(self) -> None:
    t, a = self.some()
    x, y = self.operand(a.size)
    self.values.append((t * 3 + x, a * 3 + y) if self.choices.random() < 0.5
                       else (t.maximum(x) - t, np.maximum(a, y) - a))

  def do_sum(self) -> None:
    t, a = self.some()
    self.values.append((t.sum().reshape(1) + t.flip(0), a.sum() + a[::-1]))

  def do_copy(self) -> None:
    t, a = self.some()
    self.values.append((self.choices.choice([Tensor.clone, Tensor.contiguous])(t), a.copy()))

  def do_view(self) -> None:
    t, a = self.choices.choice(self.memory)
    k = self.choices.randrange(a.size)
    self.memory.append(self.choices.choice([(t[k:], a[k:]), (t.flip(0), a[::-1]), (t.detach(), a),
                                            (t.reshape(-1, 1).reshape(-1), a)]))

  def do_assign(self) -> None:
    t, a = self.choices.choice(self.memory)
    x, y = self.operand(a.size)
    t.assign(x)
    a[...] = np.array(y)

  def do_add(self) -> None:
    t, a = self.choices.choice(self.memory)
    x, y = self.operand(a.size)
    t += x
    a += np.array(y)

  def do_set(self) -> None:
    t, a = self.choices.choice(self.memory)
    begin = self.choices.randrange(a.size)
    end = self.choices.randint(begin + 1, a.size)
    x, y = self.operand(end - begin)
    t[begin:end] = x
    a[begin:end] = np.array(y)

  def do_swap(self) -> None:
    (t, a), (s, b) = self.choices.choice(self.memory), self.choices.choice(self.memory)
    if a.size != b.size: return
    kept, copy = t.clone(), a.copy()
    t.assign(s)
    a[...] = b.copy()
    s.assign(kept)
    b[...] = copy

  def do_realize(self) -> None:
    found = [self.some() for _ in range(self.choices.randint(1, 3))]
    Tensor.realize(*[t for t, _ in found])
    for t, a in found:    # a view of a value that waits is a value; storage of its own from now on
      if any(t is s for s, _ in self.values) and writes.memory_of(t.uop)[0] is not None and self.choices.random() < 0.3:
        self.memory.append((t, a))

  def do_read(self) -> None:
    t, a = self.some()
    assert t.tolist() == a.tolist(), self.log

  def do_forget(self) -> None:
    for found in (self.memory, self.values):
      if len(found) > 1: del found[self.choices.randrange(len(found))]

def check(seed: int, steps: int) -> None:
  program = Program(random.Random(seed))
  for _ in range(steps): program.step()
  everything = program.memory + program.values
  program.choices.shuffle(everything)
  for t, a in everything: assert t.tolist() == a.tolist(), (seed, program.log)

@pytest.mark.parametrize("engine", ENGINES)
def test_random_programs_are_what_numpy_makes_of_them(engine: str) -> None:
  @given(st.integers(0, 1 << 30), st.integers(1, 25))
  def equal(seed: int, steps: int) -> None: check(seed, steps)
  with on(engine): equal()

# ***** what the programs do not say *****

def tensor(*values: float) -> Tensor: return Tensor([float(v) for v in values]).realize()

def test_a_loss_that_is_read_after_the_step_is_that_before_it() -> None:
  w = tensor(3)
  w.requires_grad = True
  optimizer = nn.optim.SGD([w], lr=0.5)
  loss = (w * w).sum()
  loss.backward()
  with Tensor.train(): optimizer.step()
  assert loss.item() == 9 and w.item() == 0 and w.grad is not None and w.grad.item() == 6

def test_what_keeps_its_value_is_computed_with_the_write() -> None:
  """One schedule: nothing is computed twice."""
  x = tensor(1, 2, 3)
  y = x * 3
  x.assign(y + 1)
  before = GlobalCounters.kernel_count
  x.realize()
  assert GlobalCounters.kernel_count - before <= 2
  before = GlobalCounters.kernel_count
  assert y.tolist() == [3, 6, 9] and x.tolist() == [4, 7, 10] and GlobalCounters.kernel_count == before

def test_equal_values_keep_storage_of_their_own() -> None:
  x = tensor(1, 2)
  a, b, c = x * 2, x * 2, x * 2
  assert c.tolist() == [2, 4]
  x.assign(x + 1).realize()
  a.assign(Tensor([7.0, 7.0])).realize()
  assert (a.tolist(), b.tolist(), c.tolist()) == ([7, 7], [2, 4], [2, 4])
  d, e = x * 2, x * 2
  d.realize()
  d.assign(d * 0).realize()
  assert (d.tolist(), e.tolist(), (x * 2).tolist()) == ([0, 0], [4, 6], [4, 6])

def test_values_that_are_equal_without_detach_do_not_share_storage() -> None:
  x = tensor(1, 2)
  a, b = x * 2, x.detach() * 2
  Tensor.realize(a, b)
  a.assign(a * 0).realize()
  assert (a.tolist(), b.tolist()) == ([0, 0], [2, 4])

def test_expressions_of_kept_values_are_not_taken_for_new_ones() -> None:
  x = tensor(1, 2)
  first = x * 3
  second = first + 1
  assert first.tolist() == [3, 6] and second.tolist() == [4, 7]
  x.assign(x * 10).realize()
  assert (x * 3 + 1).tolist() == [31, 61] and second.tolist() == [4, 7]

def test_gradients_do_not_flow_through_what_was_overwritten() -> None:
  x = tensor(1, 2)
  y = (x * x).sum()
  x.assign(x + 1).realize()
  with pytest.raises(GradientError): y.gradient(x)
  z = (x * x).sum()
  assert z.gradient(x)[0].tolist() == [4, 6]

def test_a_detached_view_that_was_realized_still_stops_gradients() -> None:
  x = tensor(3)
  d = x.detach().realize()
  assert (d * x).sum().gradient(x)[0].item() == 3
  x.assign(x + 1).realize()
  assert d.item() == 4 and (d * x).sum().gradient(x)[0].item() == 4

def test_a_write_that_others_would_see_is_done_at_once() -> None:
  x = tensor(1, 2, 3)
  x.assign(x + 1)
  assert x.uop.op is Ops.ASSIGN       # nobody looks
  view = x[1:]
  view.assign(view * 10)
  assert x.uop.op is not Ops.ASSIGN and x.tolist() == [2, 30, 40] and view.tolist() == [30, 40]

@pytest.mark.slow
def test_nodes_of_overwritten_contents_are_refused() -> None:
  x = tensor(1, 2)
  node = (x + 1).uop
  gc.collect()
  x.assign(x * 2).realize()
  with pytest.raises(UnknownValueError, match="overwritten in place"): realizing.realize([node])
  with pytest.raises(UnknownValueError, match="overwritten in place"): Tensor(node).tolist()

def test_the_notes_do_not_grow() -> None:
  x = tensor(1, 2)
  for _ in range(50):
    x.assign(x + 1).realize()
    x[0] = 3
  memory = buffer_of(x.uop.base)
  writes.viewers(memory)
  assert memory.viewers is not None and len(memory.viewers) == 1
  for _ in range(3 * writes._MOST_UNCLASSIFIED): Tensor._new(x.uop)
  assert len(writes._unclassified) <= writes._MOST_UNCLASSIFIED

def test_a_failed_write_leaves_everything_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
  x = tensor(1, 2)
  y = x * 3
  x.assign(x + 1)
  with monkeypatch.context() as patch:
    def stop(*_: object) -> None: raise KeyboardInterrupt
    patch.setattr(realizing, "schedule_of_any_numbers", stop)
    with pytest.raises(KeyboardInterrupt): x.realize()
  assert y.tolist() == [3, 6] and x.tolist() == [2, 3]

def test_after_an_interrupt_values_that_may_be_lost_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
  x = tensor(1, 2)
  lost, known = x * 3, x * 4
  assert known.tolist() == [4, 8]
  x.assign(x + 1)
  def stop(*_: object) -> None: raise KeyboardInterrupt
  with monkeypatch.context() as patch:
    patch.setattr(realizing, "run_prepared", stop)
    with pytest.raises(KeyboardInterrupt): x.realize()
  assert known.tolist() == [4, 8] and x.shape == (2,)
  with pytest.raises(UnknownValueError, match="overwritten in place"): lost.tolist()

# ***** parts of what has no storage *****

def test_assign_to_a_part_of_a_tensor_without_storage_reaches_it() -> None:
  made = [Tensor.zeros(4), Tensor([1.0, 2, 3, 4]) * 2, Tensor.zeros(4).reshape(2, 2).reshape(4),
          Tensor.ones(4).contiguous()]
  for whole in made:
    last = whole[3].item()
    for part, expected in ((lambda t: t[0:2], [7, 8]), (lambda t: t.shrink(((1, 3),)), [7, 7, 8]),
                           (lambda t: t[1:3].flip(0), [7, 8, 7]),
                           (lambda t: t.reshape(2, 2)[0], [7, 8, 7])):
      part(whole).assign(Tensor([7.0, 8.0]))
      assert whole.tolist()[:len(expected)] == expected and whole[3].item() == last
    before = whole.tolist()
    whole[0:2] += 1
    whole[3] = 9
    assert whole.tolist() == [before[0] + 1, before[1] + 1, before[2], 9]
    whole.realize()
    whole[0:2].assign(Tensor([7.0, 8.0])).realize()
    assert whole.tolist() == [7, 8, before[2], 9]

def test_assign_to_a_part_that_nobody_has_the_whole_of() -> None:
  part = (Tensor([1.0, 2, 3, 4]) * 2)[0:2]
  assert part.assign(Tensor([7.0, 8.0])).tolist() == [7, 8]
  state = Tensor.zeros(4)
  assert state.assign(Tensor([1.0, 2, 3, 4])).tolist() == [1, 2, 3, 4]

def test_gradients_past_an_overwrite_are_refused_by_that_name() -> None:
  x, w = Tensor([1.0, 2.0]).realize(), Tensor([3.0, 4.0]).realize()
  y = (x * w).sum()
  x.assign(x + 1).realize()
  with pytest.raises(GradientError, match="backward.. finds nothing to go on to: .* overwritten in place since "
                     ".assign, an opt"):
    y.backward()
  with pytest.raises(GradientError, match="was not computed from the target of shape .2,.; a tensor below it .* "
                     "overwritten"):
    (y * 2).gradient(x)
  assert x.grad is None and w.grad is None and y.grad is None
  y.requires_grad = True      # then it is meant
  (y * 2).backward()
  assert y.grad is not None and y.grad.item() == 2

@pytest.mark.slow
def test_writes_beside_values_of_others_do_not_walk_them_again() -> None:
  def walked(n: int) -> int:
    target, source = Tensor.zeros(4).contiguous().realize(), tensor(1, 2)
    beside = [source * float(k) for k in range(n)]
    count = [0]
    real = writes._reads
    def counted(*args: Any) -> bool:
      count[0] += 1
      return real(*args)
    writes._reads = counted
    try:
      for k in range(8): target[k % 4] = float(k)
    finally: writes._reads = real
    assert target.tolist() == [4, 5, 6, 7] and [t.tolist() for t in beside] == [[k, 2 * k] for k in range(n)]
    return count[0]
  gc.collect()
  assert walked(40) - walked(20) <= 2 * 20      # each value is looked at twice, not by each of eight writes

def test_values_that_will_be_written_are_found_by_the_write_after() -> None:
  """A value of the state after a pending write does not concern that write, but the next one."""
  x, other = tensor(1, 2), tensor(0, 0)
  stranger = other + 1
  x.assign(x * 10)
  later = x + 1         # of the state after the write
  x.realize()
  assert later.tolist() == [11, 21]
  later = x + 2
  x[0] = 5
  x[1] = 6
  assert later.tolist() == [12, 22] and x.tolist() == [5, 6] and stranger.tolist() == [1, 1]
  other[0] = 9          # and the other way round
  assert stranger.tolist() == [1, 1] and (other + 1).tolist() == [10, 1]

def test_leaves_are_kept_once_each_and_go_when_they_are_dead() -> None:
  weight = Tensor([1.0]).realize()
  before = len(writes.leaves())
  for _ in range(5):
    weight.assign(weight * 2).realize()
    Tensor([2.0])
  assert sum(t is weight for t in writes.leaves()) == 1 and len(writes._leaves) <= before

def test_many_leaves_are_sorted_without_being_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(writes, "_MOST_UNCLASSIFIED", 2)
  monkeypatch.setattr(writes, "_kept_leaves", 0)
  held = [Tensor([float(k)]) for k in range(9)]
  assert all(any(t is found for found in writes.leaves()) for t in held)
