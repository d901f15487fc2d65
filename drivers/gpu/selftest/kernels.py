"""Kernels that a GPU must run, and the steps of the self-test that run them through the opened device.

A kernel uses one ability and nothing of the compilers: a store, shared memory, spills, an approximation, or the matrix
unit. Its text is in each vendor's assembly (`Texts`). The self-test provides the assembler.
"""
from __future__ import annotations
import contextlib
import math
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from tinyhw.config import EMULATE, Context
from tinyhw.data_class import dataclass
from tinyhw.device import Compiled, Device, Launch
from tinyhw.drivers.gpu.device import GpuDevice
from tinyhw.errors import DeviceError, DriverError
from tinyhw.named_tuple import NamedTuple
from tinyhw.selftest.frame import Absent, Probe, Wrong, short_bytes, ulps
if TYPE_CHECKING: from tinyhw.drivers.gpu.selftest.session import GpuSession

LANES, GROUPS = 64, 5
N = LANES * GROUPS
MANY_GROUPS = 1000
REDUCING_LANES = 256
SPILLED_BYTES = 68
# time limit of a kernel that never ends: on a card, and on a virtual GPU (which takes 20 times as long)
HANG_MS = 1500, 20
BAD_ADDRESS = 0x100000    # below all memory of a device

UNITS = {"f": "units of the last place", "d": "parts of the result"}  # units of errors, by the kind of numbers

class Approximation(NamedTuple):
  """An instruction and the function that it approximates.

  kind: of numbers (UNITS). bound: units of the last place (float32) or relative error (float64) that the compiler and
  the emulator assume. needed: the compiler relies on it; others are only measured. low, high: the tested interval.
  """
  op: str
  exact: Callable[[float], float]
  low: float
  high: float
  bound: float = 1.0
  needed: bool = False
  kind: str = "f"

class MatrixProduct(NamedTuple):
  """One product of the matrix unit: (m, k) x (k, n) of float16, sums in float32.

  The kernel's arguments are the result, A and B, in which a lane's elements are contiguous. a, b, c: (lane, number of
  its element) -> the element's position: (row, step), (step, column), (row, column).
  """
  text: str
  lanes: int
  m: int
  n: int
  k: int
  of_lane: tuple[int, int, int]  # counts of elements of A, B and the result
  a: Callable[[int, int], tuple[int, int]]
  b: Callable[[int, int], tuple[int, int]]
  c: Callable[[int, int], tuple[int, int]]

@dataclass(frozen=True)
class Texts:
  """A vendor's kernels. The first argument is the result. `i` is the global number of a work-item. Blocks have LANES of
  them.

  empty: nothing.
  store: out[i] = i.
  add: out[i] = a[i] + b[i] + x, where x is the bits of the fourth argument.
  spill: out[i] = 2 * i + 7; both terms are first kept in the lane's memory.
  constant: out[i] = {number}.
  reduce: out[i] = 1 + 2 + ... + REDUCING_LANES, by exchanges of all lanes.
  scalar: out[i] = the second argument's first word, by a scalar load; empty if the GPU has none.
  hang: never ends.
  points: by kind, out[i] = {op}(a[i]).
  """
  empty: str
  store: str
  add: str
  spill: str
  constant: str
  reduce: str
  hang: str
  points: dict[str, str]
  approximations: Sequence[Approximation]
  matrix: MatrixProduct
  scalar: str = ""

def bits(value: float) -> int: return int(struct.unpack("<i", struct.pack("<f", value))[0])

class KernelRunner:
  """Kernels and buffers on the opened device of a session."""
  def __init__(self, session: GpuSession):
    self.session, self.taken = session, list[Any]()
    self.device: Any = session.device   # a GpuDevice, or a device of a vendor's library

  def load(self, text: str, name: str, arguments: Sequence[str] = ("buffer",), lanes: int = LANES,
           words: dict[str, str] | None = None,
           **fields: Any) -> Any:
    return self.device.load(self.session.code(text, name, arguments, lanes, words or {}, **fields))

  def buffer(self, content: bytes) -> Any:
    opaque = self.device.allocator.alloc(len(content))
    self.taken.append(opaque)
    self.device.allocator.copyin(opaque, memoryview(content))
    return opaque

  def floats(self, values: Iterable[float]) -> Any:
    found = list(values)
    return self.buffer(struct.pack(f"<{len(found)}f", *found))

  def run(self, program: Any, buffers: Sequence[Any], groups: int = GROUPS, variables: Sequence[int] = ()) -> None:
    self.device.submit([Launch(program, buffers, variables, groups)])
    self.device.synchronize()

  def read(self, opaque: Any, kind: str, count: int) -> list[Any]:
    out = bytearray(struct.calcsize(f"<{count}{kind}"))
    self.device.allocator.copyout(memoryview(out), opaque)
    return list(struct.unpack(f"<{count}{kind}", out))

  def expect(self, opaque: Any, wanted: Sequence[Any], what: str, kind: str = "I") -> None:
    """Compare the elements. Raises Wrong with the count of differences and the first one."""
    found = self.read(opaque, kind, len(wanted))
    wrong = [i for i, (f, w) in enumerate(zip(found, wanted)) if f != w]
    if wrong:
      raise Wrong(f"{what}: {len(wrong)} of {len(wanted)} elements differ; the first is number {wrong[0]}, "
                  f"{found[wrong[0]]!r} instead of "
                  f"{wanted[wrong[0]]!r}, the last number {wrong[-1]}")

@contextlib.contextmanager
def kernels(session: GpuSession) -> Iterator[KernelRunner]:
  """Open a KernelRunner, whose buffers are freed at the end."""
  found = KernelRunner(session)
  try: yield found
  finally:
    if found.device.lost is None:
      for opaque in found.taken: found.device.allocator.free(opaque)

# **** steps ****

SUM = ("buffer", "buffer", "buffer", "int64")

def empty(s: GpuSession) -> str:
  with kernels(s) as k:
    program = k.load(s.texts.empty, "empty", ())
    for groups in (1, GROUPS, MANY_GROUPS): k.run(program, (), groups)
  return f"1, {GROUPS} and {MANY_GROUPS} workgroups started and ended"

def store(s: GpuSession) -> str:
  with kernels(s) as k:
    out = k.buffer(bytes(4 * LANES * MANY_GROUPS))
    k.run(k.load(s.texts.store, "store"), [out], MANY_GROUPS)
    k.expect(out, range(LANES * MANY_GROUPS), "numbers of work-items")
  return f"{MANY_GROUPS} workgroups of {LANES} lanes stored their numbers"

def arithmetic(s: GpuSession) -> str:
  with kernels(s) as k:
    a, b, out = [i * 0.37 for i in range(N)], [1e3 / (i + 1) for i in range(N)], k.floats([0.0] * N)
    x, y = k.floats(a), k.floats(b)
    k.run(k.load(s.texts.add, "add", SUM), [out, x, y], GROUPS, [bits(0.3)])
    def rounded(value: float) -> float: return float(struct.unpack("<f", struct.pack("<f", value))[0])
    wanted = [rounded(rounded(rounded(p) + rounded(q)) + rounded(0.3)) for p, q in zip(a, b)]
    k.expect(out, wanted, "a + b + 0.3", "f")
  return f"{N} sums, the bits of the CPU"

def shared_memory(s: GpuSession) -> str:
  with kernels(s) as k:
    out = k.buffer(bytes(4 * REDUCING_LANES * GROUPS))
    k.run(k.load(s.texts.reduce, "reduce", lanes=REDUCING_LANES, local_bytes=4 * REDUCING_LANES), [out])
    k.expect(out, [REDUCING_LANES * (REDUCING_LANES + 1) // 2] * (REDUCING_LANES * GROUPS), "sums over a workgroup")
  return f"{GROUPS} workgroups of {REDUCING_LANES} lanes added up in 8 exchanges with barriers"

def scratch(s: GpuSession) -> str:
  with kernels(s) as k:
    groups = 40
    out = k.buffer(bytes(4 * LANES * groups))
    k.run(k.load(s.texts.spill, "spill", private_bytes=SPILLED_BYTES), [out], groups)
    k.expect(out, [2 * i + 7 for i in range(LANES * groups)], "spilled and read again")
    return f"{groups} workgroups; {short_bytes(s.spill_bytes())} for all lanes that run at once"

def caches(s: GpuSession) -> str:
  """Check that a kernel reads the latest writes of the copy engine or of kernels: as vectors, as scalars, as code.

  Arguments must be those of the same launch.
  """
  with kernels(s) as k:
    out, a, b = k.floats([0.0] * N), k.floats(range(N)), k.floats([1.0] * N)
    add = k.load(s.texts.add, "add", SUM)
    k.device.submit([Launch(add, [out, a, b], [0], GROUPS), *[Launch(add, [out, out, b], [0], GROUPS)] * 3])
    k.expect(out, [i + 4.0 for i in range(N)], "kernels of one submission that read what the one before wrote", "f")
    k.device.allocator.copyin(a, memoryview(struct.pack(f"<{N}f", *[5.0] * N)))
    k.run(add, [out, a, b], variables=[0])
    k.expect(out, [6.0] * N, "vector loads of what the copy engine wrote", "f")
    for value in (0.5, 0.25):
      k.run(add, [out, a, b], variables=[bits(value)])
      k.expect(out, [6.0 + value] * N, "arguments of this launch, not of the one before", "f")
    if s.texts.scalar: _scalars(s, k, out, a)
    places = set[int]()
    for number in (41, 42, 43):
      program = k.load(s.texts.constant, "constant", words={"number": str(number)})
      k.run(program, [out])
      places.add(program.place.address)
      k.expect(out, [number] * N, "code in the place of code that was freed")
      del program
  words = "vectors, arguments, scalars" if s.texts.scalar else "vectors, arguments"
  return f"{words}, code ({'in one place' if len(places) == 1 else f'in {len(places)} places'})"

def _scalars(s: GpuSession, k: KernelRunner, out: Any, a: Any) -> None:
  scalar = k.load(s.texts.scalar, "scalar", ("buffer", "buffer"))
  for value in (7.0, 8.0):
    k.device.allocator.copyin(a, memoryview(struct.pack("<f", value)))
    k.run(scalar, [out, a])
    k.expect(out, [value] * N, "scalar loads of what the copy engine wrote", "f")

def order(s: GpuSession) -> str:
  """Submit launches and copies of which some depend on each other. Independent ones may run in parallel, without a
  visible effect."""
  rounds = 8
  with kernels(s) as k:
    add = k.load(s.texts.add, "add", SUM)
    a, b, c, d, e, f = (k.floats([float(start)] * N) for start in range(6))
    def sums(*triples: tuple[Any, Any, Any]) -> list[Launch]:
      return [Launch(add, list(t), [0], GROUPS, written=[0]) for t in triples]
    # the copy may run while the sums of the round before run; c and d run in parallel, then e, then a
    for i in range(rounds):
      k.device.allocator.copyin(f, memoryview(struct.pack(f"<{N}f", *[float(i)] * N)))
      k.device.submit(sums((c, a, b), (d, b, b), (e, c, d), (a, e, f)))
    values = [0.0, 1.0]
    for i in range(rounds): values[0] = values[0] + values[1] + 2 * values[1] + i
    k.expect(a, [values[0]] * N, f"{rounds} rounds of sums that need each other, with copies between", "f")
  return f"{rounds} rounds of 4 launches and a copy"

def matrix(s: GpuSession) -> str:
  """Multiply matrices of different small integers. A misplaced element changes a sum, and all sums are exact."""
  u = s.texts.matrix
  left = [[(3 * i + 5 * step) % 17 - 8 for step in range(u.k)] for i in range(u.m)]
  right = [[(7 * step + 11 * j) % 19 - 9 for j in range(u.n)] for step in range(u.k)]
  with kernels(s) as k:
    def spread(rows: list[list[int]], place: Callable[[int, int], tuple[int, int]], count: int) -> Any:
      found = [rows[i][j] for i, j in (place(lane, e) for lane in range(u.lanes) for e in range(count))]
      return k.buffer(struct.pack(f"<{len(found)}e", *found))
    a, b, out = spread(left, u.a, u.of_lane[0]), spread(right, u.b,
                                                        u.of_lane[1]), k.floats([0.0] * u.lanes * u.of_lane[2])
    k.run(k.load(u.text, "matrix", ("buffer",) * 3, u.lanes), [out, a, b], 1)
    places = [u.c(lane, e) for lane in range(u.lanes) for e in range(u.of_lane[2])]
    sums = [float(sum(left[i][step] * right[step][j] for step in range(u.k))) for i, j in places]
    k.expect(out, sums, "the product of two matrices", "f")
  return f"({u.m}, {u.k}) x ({u.k}, {u.n}) of float16, all {u.m * u.n} elements exact"

def error_of(a: Approximation, x: float, found: float) -> float:
  if a.kind == "f": return ulps(found, a.exact(x))
  return abs(found / a.exact(x) - 1) if math.isfinite(found) else math.inf

def approximations(s: GpuSession) -> str:
  """Measure the worst error of each over a few thousand operands, with the ends of a binade and mantissas of ones."""
  groups, report = 40, {kind: dict[str, tuple[float, str]]() for kind in UNITS}
  with kernels(s) as k:
    for a in s.texts.approximations:
      size, count = struct.calcsize(a.kind), LANES * groups
      points = [a.low + (a.high - a.low) * i / (count - 1)
                for i in range(count - 1)] + [2.0 - 2.0 ** -23 if a.low <= 1.0 < a.high else a.low]
      data = struct.pack(f"<{count}{a.kind}", *points)
      source, out = k.buffer(data), k.buffer(bytes(size * count))
      k.run(k.load(s.texts.points[a.kind], "approximation", ("buffer", "buffer"), words={"op": a.op}), [out, source],
            groups)
      worst, x = max((error_of(a, x, y), x) for x, y in zip(struct.unpack(f"<{count}{a.kind}", data),
                                                            k.read(out, a.kind, count)))
      words = f"{a.op} {worst:.3g}" + ("" if worst <= a.bound else f" at {x!r}, where the emulator assumes "
                                       f"{a.bound:.3g}")
      if a.needed and worst > a.bound: raise Wrong(f"{words}; the compiler relies on that")
      report[a.kind][a.op] = max(report[a.kind].get(a.op, (-1.0, "")), (worst, words))
  return "; ".join(f"worst errors in {UNITS[kind]}: {', '.join(words for _, words in rows.values())}"
                   for kind, rows in report.items() if rows)

def peers(s: GpuSession) -> str:
  """Copy between this GPU and the next one, in both directions, without the host."""
  others = [i for i in range(s.count()) if i != s.ordinal]
  if not others: raise Absent("there is one GPU")
  kind = s.name.partition(":")[0]
  name = f"{kind}:{others[0]}" if others[0] else kind
  other: Compiled = Device[name]
  assert isinstance(other, GpuDevice)
  with kernels(s) as k:
    here, back, there = k.floats(range(N)), k.floats([0.0] * N), other.allocator.alloc(4 * N)
    try:
      for dest, src, allocator in ((there, here, other.allocator), (back, there, k.device.allocator)):
        if not allocator.transfer(dest, src, 4 * N):
          raise Absent(f"{s.name} and {name} cannot see each other's memory; copies go through the host")
      k.expect(back, [float(i) for i in range(N)], f"a copy to {name} and back", "f")
    finally:
      other.allocator.free(there)
      Device.close(name)
  return f"{4 * N} bytes to {name} and back"

def lost(s: GpuSession, text: str, name: str, wanted: str, address: int) -> str:
  """Run a faulty kernel. Return the driver's message, which must contain the expected words."""
  if not s.tools.faults: raise Absent("only with --faults: it may cost every process on the GPU its work")
  k = KernelRunner(s)
  program = k.load(text, name)
  with Context(HCQDEV_WAIT_TIMEOUT_MS=HANG_MS[bool(EMULATE.value)]):
    try: k.run(program, [RawAddress(address)], 1)
    except (DriverError, DeviceError) as error: message = error.message
    else: raise Wrong("the GPU ended it without a word")
  Device.close(s.name)
  if wanted not in message: raise Wrong(f"it was told in other words than \"{wanted}\": {message}")
  return message.splitlines()[0]

class RawAddress(NamedTuple):
  """An address instead of a buffer."""
  address: int

def hang(s: GpuSession) -> str:
  return f"told: {lost(s, s.texts.hang, 'hang', 'did not finish', 0)}; opened again: {store(s)}"

def bad_address(s: GpuSession) -> str:
  """Access a bad address. This is the last step: some kernel drivers give the process no more queues after it."""
  return f"told: {lost(s, s.texts.store, 'astray', 'touches memory that it has not', BAD_ADDRESS)}"

QUESTIONS = (
  Probe("empty kernel", "does a kernel that does nothing start and end", "", empty, basic=True),
  Probe("store", "do all lanes of all workgroups know who they are, and write to memory", "", store, basic=True),
  Probe("arithmetic", "do loads, additions and arguments give the CPU's bits", "", arithmetic),
  Probe("shared memory", "do lanes of several waves exchange values through shared memory", "", shared_memory),
  Probe("scratch", "has each lane memory of its own to spill to", "", scratch),
  Probe("caches", "does a kernel see what was written just before, and by whom", "", caches),
  Probe("order", "do launches and copies that run at the same time give what they would one after the other", "",
        order),
  Probe("matrix unit", "are factors and sums where the compiler thinks that lanes have them", "", matrix),
  Probe("approximations", "are the hardware's approximations as exact as the compiler assumes", "", approximations),
  Probe("peer copy", "do two GPUs copy from each other", "", peers),
  Probe("hang", "is a kernel that never ends noticed, and does the device recover", "", hang),
  Probe("bad address", "is an access to memory that the device has not told", "", bad_address),
)
AT_THE_END = ("peer copy", "hang")   # after the steps with tensors; the bad address is the last of all

def steps(checks: dict[str, str]) -> tuple[tuple[Probe, ...], tuple[Probe, ...], Probe]:
  """Return the steps before those with tensors, those after them, and the very last.

  checks: a vendor's advice about a failed step, by the step's name.
  """
  made = {step.name: step._replace(check=checks[step.name]) for step in QUESTIONS}
  *others, last = made.values()
  return tuple(s for s in others if s.name not in AT_THE_END), tuple(s for s in others if s.name in AT_THE_END), last
