"""How fast a card is with us, and with PyTorch where that is installed: the same work on both, the best of several
runs.

Times are of the host's clock around work that is waited for, so small work is repeated in one run. Sizes are small
where EMULATE is set, where times say nothing.
"""
from __future__ import annotations
import contextlib
import dataclasses
import functools
import importlib.util
import time
from collections.abc import Callable, Iterator
from typing import Any

from card.bars import PRODUCT, by_unit
from card.frame import FAILED, Absent, Notes, start_anew
from card.system import device_of

from tinyhw import Tensor, TinyJit, dtypes
from tinyhw.config import EMULATE, Context
from tinyhw.device import Compiled, Launch
from tinyhw.drivers.nvidia.cuda import CudaDevice
from tinyhw.drivers.nvidia.device import NVDevice
from tinyhw.drivers.nvidia.selftest.kernels import EMPTY, kernel
from tinyhw.dtype import DType
from tinyhw.engine.run import compile as engine
from tinyhw.isa.sass.asm.decode import decode_all
from tinyhw.isa.sass.capabilities import capabilities
from tinyhw.machine.ir.code import Code
from tinyhw.machine.ir.target import Capabilities
from tinyhw.selftest.command import assemble
from tinyhw.uop.ops import UOp

RUNS = 5

def best(work: Callable[[], None], wait: Callable[[], None], runs: int = RUNS) -> float:
  """Seconds of the fastest run."""
  work()
  wait()
  found = []
  for _ in range(runs):
    begin = time.perf_counter()
    work()
    wait()
    found.append(time.perf_counter() - begin)
  return min(found)

def size(full: int, small: int) -> int: return small if EMULATE.value else full

# units: whether they read operands in shared memory, as those of four warps do
SHARED_OPERANDS = {"HMMA": False, "wgmma": True}
INSTRUCTIONS = {"HMMA": "HMMA", "wgmma": "HGMMA"}   # that multiply, without what stands behind their points

@contextlib.contextmanager
def only(unit: str, device: Compiled) -> Iterator[list[Code]]:
  """Meanwhile kernels of a device are compiled for no other matrix unit, and not kept. Gives their code."""
  made = list[Code]()
  def of_unit(arch: str, name: str, kept: Callable[[str, str], Capabilities] = engine.capabilities_of) -> Capabilities:
    found = kept(arch, name)
    shared = SHARED_OPERANDS[unit]
    return dataclasses.replace(found, matrix=tuple(m for m in found.matrix if m.shared_operands == shared))
  def compiled(sink: UOp, arch: str, name: str = "",
               kept: Callable[..., engine.CachedKernel] = engine.compile_kernel) -> engine.CachedKernel:
    kernel = kept(sink, arch, name)
    made.append(kernel.code)
    return kernel
  before = engine.capabilities_of, engine.compile_kernel, device.kernels
  engine.capabilities_of, engine.compile_kernel, device.kernels = of_unit, compiled, {}
  try:
    with Context(CACHE=0, BEAM=0): yield made
  finally: engine.capabilities_of, engine.compile_kernel, device.kernels = before

def multiplied_with(made: list[Code]) -> set[str]:
  """The units whose instructions are in code."""
  names = {inst.row.name.partition(".")[0] for code in made for _, inst, _ in decode_all(code.text, code.arch)}
  return {unit for unit, name in INSTRUCTIONS.items() if name in names}

class Ours:
  """The work on a device of ours."""
  def __init__(self, device: str): self.name, self.device = device, device_of(device)

  def wait(self) -> None: self.device.synchronize()
  def array(self, *shape: int, half: bool = False) -> Any:
    return Tensor.rand(*shape, dtype=dtypes.float32, device=self.name).cast(dtypes.bfloat16 if half
                                                                            else dtypes.float32).contiguous().realize()
  def compiled(self, function: Callable[..., Any]) -> Callable[..., Any]:
    return TinyJit(lambda *arrays: function(*arrays).realize())
  def captured(self, function: Callable[..., Any], *arrays: Any) -> Callable[..., Any]: return self.compiled(function)
  def empty(self) -> Callable[[], None] | None:
    """Starts a kernel that does nothing; None for what is no GPU."""
    if not isinstance(self.device, (NVDevice, CudaDevice)): return None
    chip = self.device.card.chip if isinstance(self.device, NVDevice) else self.device.chip
    launch, device = Launch(self.device.load(kernel(assemble, chip, EMPTY, "empty", ())), [], [], 1), self.device
    return lambda: device.submit([launch])
  def units(self) -> list[str]:
    """The matrix units that a product can be compiled for; none for what is no GPU."""
    if not isinstance(self.device, (NVDevice, CudaDevice)): return []
    return [unit for unit, shared in SHARED_OPERANDS.items()
            if any(matrix.shared_operands == shared for matrix in capabilities(self.device.arch).matrix)]
  def with_unit(self, unit: str, work: Callable[[], float]) -> float:
    """Return the result of some work whose product is compiled for that unit.

    Raises AssertionError where its code has other instructions.
    """
    with only(unit, self.device) as made: found = work()
    assert multiplied_with(made) == {unit}, (f"compiled for {unit}, the code multiplies with "
                                             f"{multiplied_with(made) or 'no matrix unit'}")
    return found
  def softmax(self, x: Any) -> Any: return x.softmax(-1)
  def layernorm(self, x: Any) -> Any: return x.layernorm()
  def copied(self, x: Any) -> Any: return x + 0

class Torch(Ours):
  """The same with PyTorch."""
  def __init__(self, device: str):
    if importlib.util.find_spec("torch") is None: raise Absent("PyTorch is not installed")
    import torch
    if not torch.cuda.is_available() and not EMULATE.value: raise Absent("PyTorch sees no GPU")
    self.torch, self.place = torch, "cuda" if torch.cuda.is_available() else "cpu"

  def wait(self) -> None:
    if self.place == "cuda": self.torch.cuda.synchronize()
  def array(self, *shape: int, half: bool = False) -> Any:
    return self.torch.rand(*shape, device=self.place).to(self.torch.bfloat16 if half else self.torch.float32)
  def compiled(self, function: Callable[..., Any]) -> Callable[..., Any]: return function
  def captured(self, function: Callable[..., Any], *arrays: Any) -> Callable[..., Any]:
    """A CUDA graph, where there is a GPU."""
    if self.place != "cuda": return function
    graph, stream = self.torch.cuda.CUDAGraph(), self.torch.cuda.Stream()
    with self.torch.cuda.stream(stream): function(*arrays)   # what it does once only
    self.wait()
    with self.torch.cuda.graph(graph): function(*arrays)
    return lambda *again: graph.replay()
  def units(self) -> list[str]: return []
  def empty(self) -> Callable[[], None] | None:
    return (lambda: self.torch.cuda._sleep(0)) if self.place == "cuda" else None
  def layernorm(self, x: Any) -> Any: return self.torch.nn.functional.layer_norm(x, (x.shape[-1],))
  def copied(self, x: Any) -> Any: return x.clone()

def told(notes: Notes, name: str, work: Callable[[], Any]) -> None:
  """Note the result of some work, unless it is known.

  An error is told in its place, and the process begins anew: a GPU that met one may be lost to it.
  """
  if name in notes.found: return
  try: notes(name, work())
  except Exception as error:  # noqa: BLE001 - whatever it is, what comes behind is asked, too
    notes(name, f"{FAILED}: {type(error).__name__}: {getattr(error, 'message', error)}"[:1000])
    if notes.path is not None: start_anew()

def failed(notes: Notes) -> list[str]:
  """Return the work that ended with an error."""
  return [name for name, value in notes.found.items() if str(value).startswith(FAILED)]

def measure(notes: Notes, device: str) -> None:
  """Bandwidth, reductions, products of 4096^3 and 8192^3, the latter also with each matrix unit alone, what a launch
  costs, alone and as one of 100.

  device: one of ours, or "torch".
  """
  it = Torch(device) if device == "torch" else Ours(device)
  def seconds(function: Callable[..., Any], *arrays: Any, captured: bool = False) -> float:
    made = it.captured(function, *arrays) if captured else it.compiled(function)
    for _ in range(3): made(*arrays)
    return best(lambda: made(*arrays), it.wait)
  def rate(amount: float, function: Callable[..., Any], *shapes: tuple[int, ...],
           half: bool = False) -> Callable[[], float]:
    return lambda: round(amount / seconds(function, *(it.array(*shape, half=half) for shape in shapes)), 3)
  n, rows, columns = size(1 << 28, 1 << 12), size(8192, 8), size(8192, 64)
  told(notes, "copy GB/s", rate(8e-9 * n, it.copied, (n,)))
  told(notes, "a + b GB/s", rate(12e-9 * n, lambda a, b: a + b, (n,), (n,)))
  told(notes, "softmax GB/s", rate(8e-9 * rows * columns, it.softmax, (rows, columns)))
  told(notes, "layernorm GB/s", rate(8e-9 * rows * columns, it.layernorm, (rows, columns)))
  def product(side: int, depth: int, half: bool) -> Callable[[], float]:
    return rate(2e-12 * side ** 2 * depth, lambda a, b: a @ b, (side, depth), (depth, side), half=half)
  halves = product(size(8192, 64), size(8192, 256), True)   # the smallest that products of four warps are used for
  told(notes, "float32 matmul TFLOP/s", product(size(4096, 16), size(4096, 16), False))
  told(notes, PRODUCT, halves)
  for unit in it.units(): told(notes, by_unit(unit), functools.partial(it.with_unit, unit, halves))
  count = size(100, 4)
  def many(a: Any) -> Any:
    for _ in range(count): a = (a + 1).contiguous()
    return a
  told(notes, "one captured small kernel, us",
       lambda: round(seconds(lambda a: a + 1, it.array(64), captured=True) * 1e6, 1))
  told(notes, "each small kernel of a captured step, us",
       lambda: round(seconds(many, it.array(64), captured=True) / count * 1e6, 2))
  empty = it.empty()
  if empty is not None:
    told(notes, "empty launch to completion, us", lambda: round(best(empty, it.wait, 10 * RUNS) * 1e6, 1))
  if failed(notes): raise AssertionError(f"not measured: {', '.join(failed(notes))}")

PRODUCTS = ((dtypes.float16, dtypes.float32), (dtypes.bfloat16, dtypes.float32), (dtypes.int8, dtypes.int32),
            (dtypes.uint8, dtypes.uint32),
            (dtypes.float32, dtypes.float32))  # of factors, and of their sums

def factor(rows: int, columns: int, kind: DType, step: int) -> Tensor:
  """Small whole numbers, so that no sum of them is rounded."""
  return ((Tensor.arange(rows * columns, device="CPU").reshape(rows, columns) * step)
          % 7).cast(kind).contiguous().realize()

def differing(expected: list[list[float]], found: list[list[float]]) -> list[tuple[int, int]]:
  """The places of elements that are not as expected."""
  return [(i, j) for i, row in enumerate(expected) for j, value in enumerate(row) if found[i][j] != value]

def products(notes: Notes, device: str) -> None:
  """Are products right, of each type that has instructions of its own, with the second factor as it is and transposed?
  What differs is told by place: a whole row or column points at how lanes share a matrix, scattered ones at a wait that
  is missing."""
  device_of(device)
  rows, columns, depth = size(256, 16), size(256, 32), size(1024, 64)
  def judged(kind: DType, total: DType, turned: bool) -> str:
    x, y = factor(rows, depth, kind, 3), factor(*((columns, depth) if turned else (depth, columns)), kind, 5)
    def multiplied(place: str) -> list[list[float]]:
      a, b = x.to(place), y.to(place)
      return a.matmul(b.T if turned else b, dtype=total).tolist()
    places = differing(multiplied("CPU"), multiplied(device))
    return f"{len(places)} of {rows * columns} wrong: {places[:8]}" if places else "right"
  for kind, total in PRODUCTS:
    for turned in (False, True):
      told(notes, f"{str(kind).rpartition('.')[2]}{', transposed' if turned else ''}",
           functools.partial(judged, kind, total, turned))
  wrong = [name for name, value in notes.found.items() if value != "right"]
  if wrong: raise AssertionError(f"products are wrong: {'; '.join(wrong)}")
