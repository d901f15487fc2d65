"""Kernels for any number of elements: their numbers equal those of the plain kernels, and few kernels serve many
shapes."""
from __future__ import annotations
import pytest

from test.helpers import HOME
from tinyhw.config import Context
from tinyhw.device import Device
from tinyhw.engine.run import compile as compiling
from tinyhw.engine.run.compile import parts
from tinyhw.engine.run.sizes import MOST, START, any_size
from tinyhw.engine.schedule.schedule import canonicalize, schedule
from tinyhw.errors import DeviceError
from tinyhw.tensor import Tensor
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp
from tinyhw.uop.verify.verify import verify

DEVICES = ("PYTHON", HOME)

def needs(device: str) -> None:
  try: Device[device]
  except DeviceError as error: pytest.skip(error.message)

def kernels(*tensors: Tensor) -> list[UOp]:
  return [k.sink for k in schedule(canonicalize([t.uop for t in tensors])).kernels]

def drawn(device: str, plain: bool) -> list[list[float]]:
  """Return random numbers of many kinds and sizes, around tile sizes."""
  Tensor.manual_seed(11)
  found = []
  with Context(NOOPT=int(plain)):
    for shape in ((1,), (5,), (63,), (64,), (65,), (3, 5, 7), (1000,)):
      found.append(Tensor.rand(*shape, device=device).flatten().tolist())
    for dtype in ("float16", "float64"): found.append(Tensor.rand(70, dtype=dtype, device=device).tolist())
    found.append(Tensor.randn(9, 8, device=device).flatten().tolist())
    found.append(Tensor.randint(70, low=-5, high=60, device=device).tolist())
    for bound in (0.25, 3.0):
      found.append(Tensor.uniform(2, 37, low=-bound, high=bound, device=device).flatten().tolist())
    x = Tensor([float(k) for k in range(130)], device=device)
    found.append((x * Tensor.rand(130, device=device, contiguous=False)).tolist())
  return found

@pytest.mark.parametrize("device", DEVICES)
def test_the_numbers_are_those_of_plain_kernels(device: str) -> None:
  needs(device)
  assert drawn(device, plain=False) == drawn(device, plain=True)

@pytest.mark.parametrize("device", DEVICES)
def test_what_is_written_in_place_is_written_once(device: str) -> None:
  needs(device)
  Tensor.manual_seed(2)
  x = Tensor.ones(100, device=device).contiguous().realize()
  x.assign(x + Tensor.rand(100, device=device, contiguous=False)).realize()
  Tensor.manual_seed(2)
  assert x.tolist() == [1 + y for y in Tensor.rand(100, device=device).tolist()]

@pytest.mark.parametrize("device", DEVICES)
def test_shapes_and_ranges_share_kernels(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
  needs(device)
  names: list[str] = []
  plain = compiling._compile
  monkeypatch.setattr(compiling, "_compile", lambda *args: names.append(compiling.kernel_name(args[0])) or plain(*args))
  monkeypatch.setattr(Device[device], "kernels", {})
  with Context(CACHE=0):
    for n in (2, 10, 64, 100, 640, 999): Tensor.uniform(n, low=-0.7 / n, high=0.7 / n, device=device).realize()
    for shape in ((4, 25), (32, 1, 5, 5), (10, 576)):
      Tensor.uniform(*shape, low=-0.3, high=0.3, device=device).realize()
  assert sorted(names) == ["E_n", "E_n_1"] or names == ["E_n"], "one element is a tile where there are no vectors"

def test_all_elements_are_done_once() -> None:
  for n in (2, 63, 64, 65, 1000, 4097):
    sink, = kernels(Tensor.rand(n, device="PYTHON"))
    done = 0
    for part in parts("PYTHON", [sink])[0]:
      runner = part.runner
      assert part.fixed[-1] == done and runner.variables == () and runner.small
      whole = next(p[0].runner for p in Device["PYTHON"].kernels.values() if p[0].runner.program is runner.program
                   and p[0].runner.variables)
      done += runner.grid * (MOST // whole.grid)
    assert done == n

def test_forms() -> None:
  sink, = kernels(Tensor.uniform(7, 9, low=-0.3, high=0.5, device="PYTHON"))
  found = any_size(sink)
  assert found is not None and found.elements == 63 and len(found.values) == 4 and START.expr not in found.values
  for form in found.forms:
    verify(form, 2)
    assert not any(u.op is Ops.CONST and u.arg == 63 for u in form.toposort())

def test_what_stays_as_it_is() -> None:
  a, b = Tensor.empty(6, 8, device="PYTHON"), Tensor.rand(6, 8, device="PYTHON", contiguous=False)
  for t in (a + 1, b.sum(0), a.transpose() * b.reshape(8, 6), b.pad((1, 1)).contiguous(), (b * a[:, :1]).contiguous()):
    assert all(any_size(sink) is None for sink in kernels(t))

def test_a_place_beyond_32_bits():
  n = 2 ** 31 + 9
  assert Tensor.arange(n, dtype="int64", device="CPU").eq(n - 2).argmax().item() == n - 2
