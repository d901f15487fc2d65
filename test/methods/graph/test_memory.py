"""Storage and constants; writes through views: bits as another type, of the same size and of others; elements that
share memory; views of tensors without storage."""
from __future__ import annotations
from collections.abc import Callable
import copy as copying
import gc
import weakref
from typing import Any

import numpy as np
import pytest

from tinyhw import TinyJit, Variable
from tinyhw.engine.memory.writes import assigned
from tinyhw.errors import ArgumentError, GradientError, JitError
from tinyhw.methods.graph import memory
from tinyhw.tensor import Tensor
from tinyhw.uop.enums import Ops

pytestmark = pytest.mark.usefixtures("engine")

def data(*shape: int) -> Tensor:
  return Tensor(np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape)).realize()

def test_storage_is_memory_whose_elements_stay_apart() -> None:
  x = data(4, 6)
  for view in (x, x.reshape(24), x.permute(1, 0), x[1:3], x.flip(0), x.permute(1, 0).reshape(3, 8)[1:]):
    assert memory.is_storage(view.uop)
  for value in (x + 1, x.expand(4, 6) * 1.5, x.reshape(1, 4, 6).expand(2, 4, 6), x.pad(((1, 0), (0, 0)))):
    assert not memory.is_storage(value.uop)
  assert memory.storage_view((x + 1).uop) is None and memory.storage_view(x.permute(1, 0).uop) is x.permute(1, 0).uop

def test_the_view_behind_assignments() -> None:
  x = data(6)
  plain = x.uop
  x.assign(x + 1)
  assert x.uop.op is Ops.ASSIGN and memory.is_storage(x.uop) and memory.storage_view(x.uop) is plain
  part = x[2:4]
  found = memory.storage_view(part.uop)
  assert found is not None and found.shape == (2,) and not any(u.op is Ops.ASSIGN for u in found.toposort())

def test_constants() -> None:
  for t, value in ((Tensor.full((3, 4), 2.5), 2.5), (Tensor.zeros(5).reshape(1, 5).expand(3, 5), 0.0),
                   (Tensor.ones(2, 2).permute(1, 0), 1.0)):
    assert memory.constant_value(t.uop) == value
  assert memory.constant_value(Tensor.ones(3).pad(((1, 1),)).uop) is None and memory.constant_value(data(3).uop) is None

def test_two_assigns_are_two_nodes() -> None:
  x = data(2)
  first = assigned(x.uop, (x + 1).uop)
  assert assigned(x.uop, (x + 1).uop) is not first and first.shape == (2,)

# ***** the bits as another type *****

def both(dtype: str = "float32") -> tuple[Tensor, Any]:
  """Return the same elements as a Tensor, and as a NumPy array, whose views are the oracle."""
  array = np.arange(1, 25, dtype=dtype).reshape(4, 6)
  return Tensor(array).realize(), array.copy()

VIEWS: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[Any], Any]]] = {
  "of one size": (lambda t: t.bitcast("int32"), lambda a: a.view("int32")),
  "of smaller size": (lambda t: t.bitcast("uint8"), lambda a: a.view("uint8")),
  "of half the size": (lambda t: t.bitcast("int16"), lambda a: a.view("int16")),
  "of twice the size": (lambda t: t.bitcast("int64"), lambda a: a.view("int64")),
  "a part of smaller ones": (lambda t: t.bitcast("uint8")[1:3, 5:10], lambda a: a.view("uint8")[1:3, 5:10]),
  "a part of greater ones": (lambda t: t.bitcast("uint64")[1:3, 1:], lambda a: a.view("uint64")[1:3, 1:]),
  "a column": (lambda t: t.bitcast("uint16").permute(1, 0)[3:5], lambda a: a.view("uint16").T[3:5]),
  "backwards": (lambda t: t.bitcast("uint8")[:, ::-1], lambda a: a.view("uint8")[:, ::-1]),
  "each third one": (lambda t: t.bitcast("uint8")[:, ::3], lambda a: a.view("uint8")[:, ::3]),
  "of a part": (lambda t: t[1:3, 2:4].bitcast("uint8"), lambda a: a[1:3, 2:4].view("uint8") if a.flags.c_contiguous
                else None),
  "and back": (lambda t: t.bitcast("uint8").bitcast("uint32"), lambda a: a.view("uint8").view("uint32")),
  "in another shape": (lambda t: t.reshape(24).bitcast("uint8").reshape(6, 16)[2:, 1::2],
                       lambda a: a.reshape(24).view("uint8").reshape(6, 16)[2:, 1::2]),
  "without a gradient": (lambda t: t.detach().bitcast("int16").detach()[2], lambda a: a.view("int16")[2]),
}

def put(t: Tensor, a: Any) -> None:
  t[0] = 7
  a[0] = 7

def put_last(t: Tensor, a: Any) -> None:
  t[..., -1] = 9
  a[..., -1] = 9

def put_places(t: Tensor, a: Any) -> None:
  t[Tensor([0])] = 5
  a[[0]] = 5

def put_where(t: Tensor, a: Any) -> None:
  t[t.ne(3)] = 1
  a[a != 3] = 1

def assign(t: Tensor, a: Any) -> None:
  t.assign(t + 3).realize()
  a += 3

def assign_later(t: Tensor, a: Any) -> None:
  t.assign(t * 2)
  a *= 2

def add(t: Tensor, a: Any) -> None:
  t += 1
  a += 1

def add_to_a_part(t: Tensor, a: Any) -> None:
  t[0] += 2
  a[0] += 2

def put_all(t: Tensor, a: Any) -> None:
  t[:] = 4
  a[:] = 4

WAYS = (put_all, put, put_last, put_places, put_where, assign, assign_later, add, add_to_a_part)

@pytest.mark.slow
@pytest.mark.parametrize("write", WAYS)
@pytest.mark.parametrize("name", VIEWS)
def test_a_write_through_a_bitcast_reaches_the_storage(name: str, write: Callable[[Tensor, Any], None]) -> None:
  tensor, array = both()
  view, expected = VIEWS[name][0](tensor), VIEWS[name][1](array)
  before = tensor.bitcast("int32") + 0
  kept = array.view("int32").copy()
  write(view, expected)
  assert view.tolist() == expected.tolist()
  assert tensor.bitcast("int32").tolist() == array.view("int32").tolist() and before.tolist() == kept.tolist()
  write(view, expected)
  assert tensor.bitcast("int32").tolist() == array.view("int32").tolist() and view.tolist() == expected.tolist()

@pytest.mark.parametrize("name", VIEWS)
def test_a_bitcast_sees_what_is_written_to_the_storage(name: str) -> None:
  tensor, array = both()
  view, expected = VIEWS[name][0](tensor), VIEWS[name][1](array)
  for value, rows in ((50.0, slice(1, 3)), (60.0, slice(None))):
    tensor[rows] = value
    array[rows] = value
    assert view.tolist() == expected.tolist()

def test_values_of_a_bitcast_are_what_they_were_where_they_were_expressed() -> None:
  x = data(4)
  bits, total = x.bitcast("uint8"), x.bitcast("uint8").sum()
  before = total.item()
  again = bits.sum()
  bits[3] = 255
  x += 1
  assert again.item() == before == total.item()

@pytest.mark.slow
def test_all_views_see_a_write_through_one() -> None:
  x = Tensor([1.0, 2.0, 3.0, 4.0]).realize()
  rows, bytes_, words = x.reshape(2, 2), x.bitcast("uint8"), x.bitcast("int32")
  bytes_[4:8] = 0
  assert x.tolist() == [1, 0, 3, 4] == rows.flatten().tolist() and words[1].item() == 0
  words[2:].assign(Tensor([0x40000000, 0], dtype="int32"))
  assert x.tolist() == [1, 0, 2, 0] and bytes_[8:].tolist() == [0, 0, 0, 64, 0, 0, 0,
                                                                0] and rows.tolist() == [[1, 0], [2, 0]]

@pytest.mark.slow
@pytest.mark.parametrize("dtype", ("int32", "uint8", "int64"))
def test_replays_write_through_a_bitcast(dtype: str) -> None:
  @TinyJit
  def step(x: Tensor, y: Tensor) -> Tensor:
    bits = x.bitcast(dtype)  # type: ignore[arg-type]  # one of the names
    bits[1:] += y.cast(bits.dtype)
    return (x * 2).realize()
  x, a = Tensor([1.0, 2.0, 3.0, 4.0]).realize(), np.array([1, 2, 3, 4], dtype=np.float32)
  for k in range(5):
    found = step(x, Tensor([k + 1]).realize())
    a.view(dtype)[1:] += k + 1
    assert x.tolist() == a.tolist() and found.tolist() == (a * 2).tolist()

def test_replays_take_arguments_that_are_bitcasts() -> None:
  step = TinyJit(lambda bits: (bits + 1).realize())
  for k in range(4):
    x = Tensor([k, k + 1], dtype="float32").realize()
    assert step(x.bitcast("uint8")).tolist() == [(b + 1) % 256
                                                 for b in np.array([k, k + 1], dtype=np.float32).tobytes()]

@pytest.mark.host_memory("a GPU's own memory is none that NumPy or PyTorch could look at")
def test_a_bitcast_is_read_and_shared_as_it_lies() -> None:
  x = data(4)
  assert (np.from_dlpack(x.bitcast("uint8")[4:].bitcast("int16")).tolist()
          == np.arange(4, dtype=np.float32).view("int16")[2:].tolist())
  np.from_dlpack(x.bitcast("uint8"))[:] = 0
  assert x.tolist() == [0] * 4 and "realized" in repr(x.bitcast("uint8")) and "[0, 0, 0, 0]" in repr(x.bitcast("int32"))

def test_a_parameter_that_is_a_bitcast_has_a_gradient() -> None:
  w = Tensor(np.array([1.0, 2.0], dtype=np.float32).view("uint8")).realize().bitcast("float32").requires_grad_()
  for _ in range(2):
    w.grad = None
    (w * w).sum().backward()
    assert w.grad is not None
    w.assign((w - 0.25 * w.grad).detach()).realize()
  assert w.tolist() == [0.25, 0.5]

# ***** writes that would be lost *****

@pytest.mark.parametrize("write", (put_all, put_places, put_where, assign, add))
@pytest.mark.parametrize("view", (lambda t: t.reshape(1, 4, 6).expand(3, 4, 6), lambda t: t[:, :1].expand(4, 5),
                                  lambda t: t.unfold(1, 3, 1),
                                  lambda t: t[0].expand(2, 6).T.detach(),
                                  lambda t: t[:1].bitcast("int32").expand(2, 6)))
def test_elements_that_share_memory_are_not_written(view: Callable[[Tensor], Tensor],
                                                    write: Callable[[Tensor, Any], None]) -> None:
  x = data(4, 6)
  shared = view(x)
  values = shared.tolist()
  with pytest.raises(ArgumentError, match=r"elements share memory .*; write to a copy: \.contiguous\(\) or "
                     r"\.clone\(\)"):
    write(shared, np.zeros(shared.shape, dtype=np.float32))
  assert x.tolist() == np.arange(24).reshape(4, 6).tolist() and view(x).tolist() == values
  for copy in (shared.clone(), shared.contiguous()): write(copy, np.zeros(shared.shape, dtype=np.float32))
  assert x.tolist() == np.arange(24).reshape(4, 6).tolist()

@pytest.mark.slow
def test_one_of_repeated_elements_is_written_for_all() -> None:
  x = data(2)
  rows = x.reshape(1, 2).expand(3, 2)
  rows[1] = 5.0
  assert x.tolist() == [5, 5] and rows.tolist() == [[5, 5]] * 3
  rows[2, 1:] += 1
  rows.permute(1, 0).flip(1)[0, 2] = 8.0
  assert x.tolist() == [8, 6] and rows.tolist() == [[8, 6]] * 3
  rows.bitcast("int16")[1, 2:] = 0
  assert x.tolist() == [8, 0] and rows.tolist() == [[8, 0]] * 3
  x[1] = 6.0
  part = x.detach().reshape(2, 1).expand(2, 4)[:, 3]
  part.assign(part * 2)
  assert part.tolist() == [16, 12] and x.tolist() == [16, 12]

def test_results_that_repeat_a_value_are_written() -> None:
  for make in (lambda: Tensor.zeros(3, 2), lambda: (data(1, 2) * 0).expand(3, 2),
               lambda: data(2).expand(3, 2).contiguous() * 0):
    x = make()
    x[0] = 5
    x += 1
    assert x.tolist() == [[6, 6], [1, 1], [1, 1]]

@pytest.mark.parametrize("copy", (lambda t: t.roll(1, 0), lambda t: t.pad((-1, 0)), lambda t: t.pad((1, -1)),
                                  lambda t: t.pad((0, 1))[1:],
                                  lambda t: t.repeat(2), lambda t: t.pad((1, 0), mode="reflect")[:4],
                                  lambda t: t.clone()[1:3]))
def test_copies_of_a_value_are_written(copy: Callable[[Tensor], Tensor]) -> None:
  x = data(4) + 1
  y = copy(x)
  expected = y.tolist()
  y[0] = 9
  y += 1
  y.assign(y * 2)
  assert y.tolist() == [20, *((e + 1) * 2 for e in expected[1:])] and x.tolist() == [1, 2, 3,
                                                                                     4] and copy(x).tolist() == expected

# ***** views of tensors without storage *****

PARTS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
  "a part": (lambda t: t[1:3], lambda a: a[1:3]),
  "rows": (lambda t: t.reshape(6, 4)[1:, :3], lambda a: a.reshape(6, 4)[1:, :3]),
  "an element": (lambda t: t[1, 2], lambda a: a[1, 2:3].reshape(())),
  "a column": (lambda t: t[:, 1], lambda a: a[:, 1]),
  "a step": (lambda t: t[:, 1::2], lambda a: a[:, 1::2]), "backwards": (lambda t: t.flip(1), lambda a: a[:, ::-1]),
  "a view of a view": (lambda t: t[1:].permute(1, 0)[2:], lambda a: a[1:].T[2:]),
  "the diagonal": (lambda t: t[:, 1:5].diagonal(), lambda a: np.einsum("ii->i", a[:, 1:5])),
  "all": (lambda t: t.reshape(24), lambda a: a.reshape(24)), "past detach": (lambda t: t.detach()[2:], lambda a: a[2:]),
  "its bits": (lambda t: t.bitcast("int32")[0], lambda a: a.view("int32")[0]),
  "half bits": (lambda t: t[1:].bitcast("int16")[:, 3:5], lambda a: a[1:].view("int16")[:, 3:5]),
  "one of repeated": (lambda t: t.reshape(1, 4, 6).expand(3, 4, 6)[1], lambda a: a),
  "another tensor": (lambda t: Tensor(t), lambda a: a)}

def two() -> tuple[Tensor, Any]:
  """Return a tensor without storage, and the same in NumPy, whose views are the oracle."""
  return data(4, 6) * 2 - 7, np.arange(24, dtype=np.float32).reshape(4, 6) * 2 - 7

@pytest.mark.parametrize("write", (put, put_all, put_places, assign, add))
@pytest.mark.parametrize("name", PARTS)
def test_a_write_to_a_view_reaches_the_value_and_its_other_views(name: str, write: Callable[[Any, Any], None]) -> None:
  part, oracle = PARTS[name]
  x, array = two()
  others = [x[2], x.permute(1, 0), x.reshape(2, 12).bitcast("int32")]
  view = part(x)
  before, old = x + 1, array + 1
  (write if view.shape else add)(view, oracle(array))
  assert x.tolist() == array.tolist() and view.tolist() == oracle(array).tolist() and before.tolist() == old.tolist()
  assert [t.tolist() for t in others] == [a.tolist() for a in (array[2], array.T, array.reshape(2, 12).view("int32"))]

@pytest.mark.slow
@pytest.mark.parametrize("name", PARTS)
def test_a_write_to_a_value_reaches_its_views(name: str) -> None:
  part, oracle = PARTS[name]
  x, array = two()
  view, same = part(x), oracle(array)
  x += 5
  array += 5
  assert view.tolist() == same.tolist()
  x[1:3] *= 2
  array[1:3] *= 2
  x.assign(x - 1)
  array -= 1
  assert view.tolist() == same.tolist() and x.tolist() == array.tolist()

@pytest.mark.parametrize("make", (lambda: Tensor.zeros(4), lambda: Tensor.full((4,), 3.0),
                                  lambda: Tensor.arange(4) * 1.5, lambda: data(8)[::2] + 0))
def test_views_of_constants_and_results_are_written(make: Callable[[], Tensor]) -> None:
  x = make()
  array = np.array(x.tolist(), dtype=np.float32)
  x.reshape(2, 2)[0] = 9
  array.reshape(2, 2)[0] = 9
  view = x[1:3]
  view += 1
  array[1:3] += 1
  assert x.tolist() == array.tolist() and view.tolist() == array[1:3].tolist()

def test_views_see_each_other_when_the_tensor_is_gone() -> None:
  x, array = two()
  gone = weakref.ref(x)
  first, second = x[:3], x[2:]
  del x
  assert gone() is None
  first += 10
  array[:3] += 10
  assert second.tolist() == array[2:].tolist()
  second[0, 1] = 5
  array[2, 1] = 5
  assert first.tolist() == array[:3].tolist()

def test_a_view_alone_is_a_value_of_its_own() -> None:
  rows = (data(2) * 2).reshape(1, 2).expand(3, 2)
  rows[0] = 7
  assert rows.tolist() == [[7, 7], [0, 2], [0, 2]]
  first, second = (data(4) * 2).split(2)
  node = second.uop
  first += 1
  assert first.tolist() == [1, 3] and second.uop is node     # they have no element in common

@pytest.mark.slow
@pytest.mark.parametrize("which", ("whole", "view", "other", "both", "all"))
@pytest.mark.parametrize("written", ("whole", "view", "other"))
def test_realized_between_the_view_and_the_write(which: str, written: str) -> None:
  x, array = two()
  names = {"whole": (x, array), "view": (x[1:3], array[1:3]), "other": (x[2:, 1:], array[2:, 1:])}
  for name in {"both": ("view", "other"), "all": ("view", "whole", "other")}.get(which, (which,)):
    names[name][0].realize()
  names["late"] = names["view"][0][1], names["view"][1][1]     # views of a tensor that may have storage by now
  kept = x * 3, array * 3
  for _ in range(2):
    t, a = names[written]
    t += 4
    a += 4
    t[0] = -1
    a[0] = -1
    assert {name: t.tolist() for name, (t, _) in names.items()} == {name: a.tolist() for name, (_, a) in names.items()}
  assert kept[0].tolist() == kept[1].tolist()

@pytest.mark.slow
def test_parts_that_were_realized_see_each_other_when_the_tensor_is_gone() -> None:
  x, array = two()
  first, second = x[:3], x[2:]
  Tensor.realize(first, second)
  del x
  first += 1
  array[:3] += 1
  assert second.tolist() == array[2:].tolist() and first.tolist() == array[:3].tolist()

@pytest.mark.slow
def test_a_realized_part_holds_no_graph() -> None:
  x, _ = two()
  root, part = weakref.ref(x.uop), x[:2].realize()
  del x
  gc.collect()
  assert root() is None and part.shape == (2, 6)

def test_copies_are_no_views() -> None:
  x, array = two()
  for copy in (x.clone(), x.contiguous(), x[1:3].clone(), x[1:].contiguous(), x.roll(1, 0),
               x.pad(((0, 1), (0, 0)))[:4] + 0, copying.deepcopy(x)):
    copy += 100
  assert x.tolist() == array.tolist()

@pytest.mark.slow
def test_replace_takes_a_tensor_out_of_its_views() -> None:
  x, array = two()
  first, second = x[:3], x[2:]
  x.replace(data(4, 6))
  late = x[0]
  first += 1
  array[:3] += 1
  assert second.tolist() == array[2:].tolist() and x.tolist() == np.arange(24).reshape(4, 6).tolist()
  x += 1
  assert late.tolist() == [1, 2, 3, 4, 5, 6] and first.tolist() == array[:3].tolist()

def test_expanded_views_of_a_value_see_writes_and_are_not_written() -> None:
  x = data(2) + 1
  rows = x.reshape(1, 2).expand(3, 2)
  x += 1
  assert rows.tolist() == [[2, 3]] * 3
  rows[1] = 5.0
  assert x.tolist() == [5, 5]
  for write in (put_all, put_places, assign, add):
    with pytest.raises(ArgumentError, match=r"elements share memory \(an expanded view of 2 elements\); write to a "
                       r"copy"):
      write(rows, np.zeros((3, 2)))
  assert rows.tolist() == [[5, 5]] * 3

@pytest.mark.slow
def test_views_of_symbolic_sizes_are_written() -> None:
  n, at = Variable("n", 1, 4).bind(3), Variable("at", 0, 2).bind(1)
  x, array = data(4) * 2, np.arange(4, dtype=np.float32) * 2
  first, second = x[:n], x[at:at + 2]
  first += 1
  array[:3] += 1
  second[0] = 9
  array[1] = 9
  assert (first.tolist() == array[:3].tolist() and second.tolist() == array[1:3].tolist()
          and x.tolist() == array.tolist())

@pytest.mark.slow
def test_captures_write_through_views() -> None:
  def step(x: Tensor) -> Tensor:
    y = x * 2
    view, rows = y[1:3], y.reshape(2, 2)
    view *= 2
    y += 1
    part = y[3:].realize()
    part -= 1
    return rows.realize()
  jitted = TinyJit(step)
  for k in range(4): assert jitted(data(4) + k).tolist() == [[2 * k + 1, 4 * k + 5], [4 * k + 9, 2 * k + 6]]

@pytest.mark.slow
def test_captures_write_views_of_state() -> None:
  state = Tensor.zeros(2, 2)
  first, second = state[0], state[1]
  Tensor.realize(first, second)
  def step(x: Tensor) -> Tensor:
    first.assign(first + x)
    second.assign(second + first)
    return (first + second).realize()
  jitted = TinyJit(step)
  for k in range(1, 5):
    jitted(data(2) + 1)
    assert state.tolist() == [[k, 2 * k], [k * (k + 1) / 2, k * (k + 1)]]

def test_a_capture_that_would_move_a_view_is_refused() -> None:
  state = Tensor.zeros(4) + 1
  view = state[1:3]
  def step(x: Tensor) -> Tensor: return view.assign(view + x).realize()
  jitted = TinyJit(step)
  jitted(data(2))
  with pytest.raises(JitError, match=r"realize\(\) that tensor before the function is captured"): jitted(data(2))

def test_gradients_are_those_of_pytorch() -> None:
  torch = pytest.importorskip("torch", reason="PyTorch is the oracle")
  def program(make: Callable[[Any], Any], to: Callable[[Any], Any]) -> list[Any]:
    w, u = make([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), make([2.0, -1.0, 0.5])
    y = w * w
    early, row, column, flat = (y * 3).sum(), y[0], y[:, 1], y.reshape(-1)
    row *= u
    column += u[:2]
    flat[4:] = 7.0
    y[1, :2] *= 2
    y.detach()[0, 0] = 100.0
    (early + (y * y).sum() + (row * column[0]).sum() + (flat * 0.5).sum()).backward()
    return [to(t) for t in (w.grad, u.grad, y, row, column, flat)]
  def leaf(values: Any) -> Any: return torch.tensor(values, requires_grad=True)
  expected = program(leaf, lambda t: t.tolist())
  for found, wanted in zip(program(lambda values: Tensor(values, requires_grad=True), lambda t: t.tolist()), expected,
                           strict=True):
    np.testing.assert_allclose(found, wanted, rtol=1e-6)

@pytest.mark.slow
def test_a_loop_that_fills_storage_is_refused_and_told_the_way_round() -> None:
  def loop(x: Tensor, w: Tensor) -> Tensor:
    for i in range(4): x[i] = (x[i - 1] * w + 1).sum() if i else (w * 2).sum()
    return x.sum()
  w = Tensor([2.0], requires_grad=True)
  with pytest.raises(GradientError, match="make a clone.. of the storage before the first write, and write to that"):
    loop(Tensor.zeros(4).realize(), w).backward()
  for x in (Tensor.zeros(4), Tensor.zeros(4).realize().clone()):   # 4, 9, 19, 39
    w = Tensor([2.0], requires_grad=True)
    loop(x, w).backward()
    assert w.grad is not None and w.grad.tolist() == [104.0]

def test_what_was_moved_into_storage_says_that_gradients_end() -> None:
  w = Tensor([1.0, 2.0, 3.0], requires_grad=True)
  y = w * 2
  part = y[:2].realize()
  part += 1
  with pytest.raises(GradientError, match="overwritten in place"): y.sum().backward()
