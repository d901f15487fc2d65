"""Kernels that a GPU must run, in each generation's own words, and the steps of the self-test that run them through the opened device.

The kernels use one ability each (a store, local memory, scratch memory, an approximation) and nothing of the compilers; text becomes bytes by the
assembler that the self-test brings. Names of instructions are RDNA3's, which all assemblers take; what has no common name is in `WORDS`.
"""
from __future__ import annotations
import contextlib
import math
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tinyhw.config import EMULATE, Context
from tinyhw.device import Compiled, Device, Launch
from tinyhw.drivers.amd.device import AMDDevice
from tinyhw.drivers.amd.topology import gpus
from tinyhw.errors import DeviceError, DriverError
from tinyhw.machine.code import Code
from tinyhw.selftest.frame import Absent, Step, Wrong, short_bytes, ulps
if TYPE_CHECKING: from tinyhw.drivers.amd.selftest import AMDSession

LANES, GROUPS = 64, 5
N = LANES * GROUPS
MANY_GROUPS = 1000
REDUCING_LANES = 256
HANG_MS = 1500, 20        # how long a kernel that never ends may run: on a card, on a virtual one (which takes 20 times as long)
BAD_ADDRESS = 0x100000    # no memory of a device is so low

# By generation: where the workgroup's number is, waits for scalar loads, vector loads, stores and local memory, and a barrier
WORDS = {
  9: {"group": "s2", "scalars": "s_waitcnt lgkmcnt(0)", "vectors": "s_waitcnt vmcnt(0)", "stores": "s_waitcnt vmcnt(0)",
      "local": "s_waitcnt lgkmcnt(0)", "barrier": "s_barrier"},
  11: {"group": "s15", "scalars": "s_waitcnt lgkmcnt(0)", "vectors": "s_waitcnt vmcnt(0)", "stores": "s_waitcnt_vscnt null, 0x0",
       "local": "s_waitcnt lgkmcnt(0)", "barrier": "s_barrier"},
  12: {"group": "ttmp9", "scalars": "s_wait_kmcnt 0x0", "vectors": "s_wait_loadcnt 0x0", "stores": "s_wait_storecnt 0x0", "local": "s_wait_dscnt 0x0",
       "barrier": "s_barrier_signal -1\ns_barrier_wait -1"},
}
# v0: the number of the work-item, v1: 4 times that
INDEX = """s_lshl_b32 s11, {group}, 6
v_and_b32 v0, 0x3ff, v0
v_add_nc_u32 v0, s11, v0
v_lshlrev_b32 v1, 2, v0
"""
EMPTY = "s_endpgm"
# out[i] = i
STORE = "s_load_b64 s[4:5], s[0:1], 0x0\n" + INDEX + """{scalars}
global_store_b32 v1, v0, s[4:5]
s_endpgm"""
# out[i] = a[i] + b[i] + x
ADD = """s_load_b128 s[4:7], s[0:1], 0x0
s_load_b64 s[8:9], s[0:1], 0x10
s_load_b32 s10, s[0:1], 0x18
""" + INDEX + """{scalars}
global_load_b32 v2, v1, s[6:7]
global_load_b32 v3, v1, s[8:9]
{vectors}
v_add_f32 v2, v2, v3
v_add_f32 v2, s10, v2
global_store_b32 v1, v2, s[4:5]
s_endpgm"""
# out[i] = i + (i + 7), both spilled before they are added
SPILL = "s_load_b64 s[4:5], s[0:1], 0x0\n" + INDEX + """v_add_nc_u32 v3, 7, v0
scratch_store_b32 off, v0, off offset:4
scratch_store_b32 off, v3, off offset:64
{stores}
scratch_load_b32 v2, off, off offset:4
scratch_load_b32 v3, off, off offset:64
{vectors}
v_add_nc_u32 v2, v2, v3
{scalars}
global_store_b32 v1, v2, s[4:5]
s_endpgm"""
# out[i] = the word at `from`, by a scalar load
SCALAR = """s_load_b128 s[4:7], s[0:1], 0x0
""" + INDEX + """{scalars}
s_load_b32 s10, s[6:7], 0x0
{scalars}
v_mov_b32 v2, s10
global_store_b32 v1, v2, s[4:5]
s_endpgm"""
# out[i] = number
CONSTANT = "s_load_b64 s[4:5], s[0:1], 0x0\n" + INDEX + """v_mov_b32 v2, {number}
{scalars}
global_store_b32 v1, v2, s[4:5]
s_endpgm"""
# One exchange of a sum over 256 lanes: each adds what the lane has whose number differs in one bit
EXCHANGE = """ds_store_b32 v2, v3
{local}
{barrier}
v_xor_b32 v4, {distance}, v2
ds_load_b32 v5, v4
{local}
{barrier}
v_add_nc_u32 v3, v3, v5
"""
# out[group * 256 + lane] = 1 + 2 + ... + 256
REDUCE = """s_load_b64 s[4:5], s[0:1], 0x0
s_lshl_b32 s11, {group}, 10
v_and_b32 v0, 0x3ff, v0
v_lshlrev_b32 v2, 2, v0
v_add_nc_u32 v1, s11, v2
v_add_nc_u32 v3, 1, v0
""" + "".join(EXCHANGE.replace("{distance}", str(4 << bit)) for bit in range(8)) + """{scalars}
global_store_b32 v1, v3, s[4:5]
s_endpgm"""
# out[i] = op(in[i])
FLOAT = """s_load_b128 s[4:7], s[0:1], 0x0
""" + INDEX + """{scalars}
global_load_b32 v2, v1, s[6:7]
{vectors}
{op} v2, v2
s_nop 4
global_store_b32 v1, v2, s[4:5]
s_endpgm"""
DOUBLE = """s_load_b128 s[4:7], s[0:1], 0x0
""" + INDEX + """v_lshlrev_b32 v1, 3, v0
{scalars}
global_load_b64 v[2:3], v1, s[6:7]
{vectors}
{op} v[2:3], v[2:3]
s_nop 4
global_store_b64 v1, v[2:3], s[4:5]
s_endpgm"""
# It never ends, and looks at memory meanwhile
HANG = "s_nop 0\ns_branch -2\ns_endpgm"

def kernel(assemble: Callable[[str, str], bytes], arch: str, generation: int, text: str, name: str, arguments: Sequence[str] = ("buffer",),
           lanes: int = LANES, words: dict[str, str] | None = None, **fields: Any) -> Code:
  """A kernel of the texts above. words: what else stands in braces there."""
  made = assemble(text.format(**WORDS[generation], **(words or {})), arch)
  return Code(name, arch, made, tuple(arguments), lanes=lanes, registers=(("vgpr", 8), ("sgpr", 16)), **fields)

def bits(value: float) -> int: return int(struct.unpack("<i", struct.pack("<f", value))[0])

class Kernels:
  """Kernels and buffers on the opened device of a session."""
  def __init__(self, session: AMDSession):
    device = session.device
    assert isinstance(device, AMDDevice)
    self.session, self.device, self.taken = session, device, list[Any]()

  def load(self, text: str, name: str, arguments: Sequence[str] = ("buffer",), lanes: int = LANES, words: dict[str, str] | None = None,
           **fields: Any) -> Any:
    return self.device.load(kernel(self.session.tools.assemble, self.device.arch, self.device.gpu.chip.gc, text, name, arguments, lanes, words,
                                   **fields))

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
    """Raises Wrong with the number of differences and the first one."""
    found = self.read(opaque, kind, len(wanted))
    wrong = [i for i, (f, w) in enumerate(zip(found, wanted)) if f != w]
    if wrong: raise Wrong(f"{what}: {len(wrong)} of {len(wanted)} elements differ; the first is number {wrong[0]}, {found[wrong[0]]!r} instead of "
                          f"{wanted[wrong[0]]!r}, the last number {wrong[-1]}")

@contextlib.contextmanager
def kernels(session: AMDSession) -> Iterator[Kernels]:
  """Its buffers are given back at the end."""
  found = Kernels(session)
  try: yield found
  finally:
    if found.device.lost is None:
      for opaque in found.taken: found.device.allocator.free(opaque)

# **** steps ****

def empty(s: AMDSession) -> str:
  with kernels(s) as k:
    program = k.load(EMPTY, "empty", ())
    for groups in (1, GROUPS, MANY_GROUPS): k.run(program, (), groups)
  return f"1, {GROUPS} and {MANY_GROUPS} workgroups started and ended"

def store(s: AMDSession) -> str:
  with kernels(s) as k:
    out = k.buffer(bytes(4 * LANES * MANY_GROUPS))
    k.run(k.load(STORE, "store"), [out], MANY_GROUPS)
    k.expect(out, range(LANES * MANY_GROUPS), "numbers of work-items")
  return f"{MANY_GROUPS} workgroups of {LANES} lanes stored their numbers"

def arithmetic(s: AMDSession) -> str:
  with kernels(s) as k:
    a, b, out = [i * 0.37 for i in range(N)], [1e3 / (i + 1) for i in range(N)], k.floats([0.0] * N)
    x, y = k.floats(a), k.floats(b)
    k.run(k.load(ADD, "add", ("buffer", "buffer", "buffer", "int64")), [out, x, y], GROUPS, [bits(0.3)])
    def rounded(value: float) -> float: return float(struct.unpack("<f", struct.pack("<f", value))[0])
    wanted = [rounded(rounded(rounded(p) + rounded(q)) + rounded(0.3)) for p, q in zip(a, b)]
    k.expect(out, wanted, "a + b + 0.3", "f")
  return f"{N} sums, the bits of the CPU"

def local_memory(s: AMDSession) -> str:
  with kernels(s) as k:
    out = k.buffer(bytes(4 * REDUCING_LANES * GROUPS))
    k.run(k.load(REDUCE, "reduce", lanes=REDUCING_LANES, local_bytes=4 * REDUCING_LANES), [out])
    k.expect(out, [REDUCING_LANES * (REDUCING_LANES + 1) // 2] * (REDUCING_LANES * GROUPS), "sums over a workgroup")
  return f"{GROUPS} workgroups of {REDUCING_LANES} lanes added up in 8 exchanges with barriers"

def scratch(s: AMDSession) -> str:
  with kernels(s) as k:
    groups = 40
    out = k.buffer(bytes(4 * LANES * groups))
    k.run(k.load(SPILL, "spill", private_bytes=68), [out], groups)
    k.expect(out, [2 * i + 7 for i in range(LANES * groups)], "spilled and read again")
    assert k.device.scratch is not None
    return f"{groups} workgroups; {short_bytes(k.device.scratch[0].size)} for all lanes that run at once"

def caches(s: AMDSession) -> str:
  """What the copy engine or a kernel wrote is what the next kernel reads, through vectors, scalars and as code."""
  with kernels(s) as k:
    out, a, b = k.floats([0.0] * N), k.floats(range(N)), k.floats([1.0] * N)
    add = k.load(ADD, "add", ("buffer", "buffer", "buffer", "int64"))
    k.device.submit([Launch(add, [out, a, b], [0], GROUPS), *[Launch(add, [out, out, b], [0], GROUPS)] * 3])
    k.expect(out, [i + 4.0 for i in range(N)], "kernels of one submission that read what the one before wrote", "f")
    k.device.allocator.copyin(a, memoryview(struct.pack(f"<{N}f", *[5.0] * N)))
    k.run(add, [out, a, b], variables=[0])
    k.expect(out, [6.0] * N, "vector loads of what the copy engine wrote", "f")
    scalar = k.load(SCALAR, "scalar", ("buffer", "buffer"))
    for value in (7.0, 8.0):
      k.device.allocator.copyin(a, memoryview(struct.pack("<f", value)))
      k.run(scalar, [out, a])
      k.expect(out, [value] * N, "scalar loads of what the copy engine wrote", "f")
    places = set[int]()
    for number in (41, 42, 43):
      program = k.load(CONSTANT, "constant", words={"number": str(number)})
      k.run(program, [out])
      places.add(program.place.address)
      k.expect(out, [number] * N, "code in the place of code that was freed")
      del program
  return f"vectors, scalars, code ({'in one place' if len(places) == 1 else f'in {len(places)} places'})"

def order(s: AMDSession) -> str:
  """Launches and copies of which some need each other and some do not: they may run at the same time, but not seem to."""
  rounds = 8
  with kernels(s) as k:
    add = k.load(ADD, "add", ("buffer", "buffer", "buffer", "int64"))
    a, b, c, d, e, f = (k.floats([float(start)] * N) for start in range(6))
    def sums(*triples: tuple[Any, Any, Any]) -> list[Launch]: return [Launch(add, list(t), [0], GROUPS, written=[0]) for t in triples]
    for i in range(rounds):
      k.device.allocator.copyin(f, memoryview(struct.pack(f"<{N}f", *[float(i)] * N)))  # while the sums of the round before may still run
      k.device.submit(sums((c, a, b), (d, b, b), (e, c, d), (a, e, f)))                  # c and d at once, then e, then a
    values = [0.0, 1.0]
    for i in range(rounds): values[0] = values[0] + values[1] + 2 * values[1] + i
    k.expect(a, [values[0]] * N, f"{rounds} rounds of sums that need each other, with copies between", "f")
  return f"{rounds} rounds of 4 launches and a copy"

class Approximation(NamedTuple):
  """An instruction and the function that it approximates. bound: units of the last place (float32) or relative error (float64) that the compiler and
  the emulator assume. needed: the compiler's recipes and macros rely on it; others are measured only. low, high: where it is asked.
  """
  op: str
  exact: Callable[[float], float]
  low: float
  high: float
  bound: float = 1.0
  needed: bool = False

HALF_OF_64 = 2.0 ** -23   # the 24 bits of a float64 that reciprocals and roots have
APPROXIMATIONS = (
  Approximation("v_rcp_f32", lambda x: 1 / x, 1.0, 2.0, needed=True), Approximation("v_sqrt_f32", math.sqrt, 1.0, 4.0, needed=True),
  Approximation("v_rcp_f64", lambda x: 1 / x, 1.0, 2.0, HALF_OF_64, needed=True),
  Approximation("v_rsq_f64", lambda x: 1 / math.sqrt(x), 1.0, 4.0, HALF_OF_64, needed=True),
  Approximation("v_exp_f32", lambda x: 2.0 ** x, -0.5, 0.5, needed=True), Approximation("v_log_f32", math.log2, 0.5, 2.0, needed=True),
  Approximation("v_log_f32", math.log2, 2.0, 64.0, needed=True), Approximation("v_exp_f32", lambda x: 2.0 ** x, -8.0, 8.0),
  Approximation("v_rsq_f32", lambda x: 1 / math.sqrt(x), 1.0, 4.0), Approximation("v_sin_f32", lambda x: math.sin(2 * math.pi * x), 0.01, 0.49),
  Approximation("v_cos_f32", lambda x: math.cos(2 * math.pi * x), 0.26, 0.74),
)

def error_of(a: Approximation, x: float, found: float) -> float:
  if a.op.endswith("f32"): return ulps(found, a.exact(x))
  return abs(found / a.exact(x) - 1) if math.isfinite(found) else math.inf

def approximations(s: AMDSession) -> str:
  """The worst error of each over a few thousand operands, the ends of a binade and mantissas of ones among them."""
  groups, report = 40, list[str]()
  with kernels(s) as k:
    for a in APPROXIMATIONS:
      kind, text, size = ("f", FLOAT, 4) if a.op.endswith("f32") else ("d", DOUBLE, 8)
      count = LANES * groups
      points = [a.low + (a.high - a.low) * i / (count - 1) for i in range(count - 1)] + [2.0 - 2.0 ** -23 if a.low <= 1.0 < a.high else a.low]
      data = struct.pack(f"<{count}{kind}", *points)
      source, out = k.buffer(data), k.buffer(bytes(size * count))
      k.run(k.load(text, a.op, ("buffer", "buffer"), words={"op": a.op}), [out, source], groups)
      worst, x = max((error_of(a, x, y), x) for x, y in zip(struct.unpack(f"<{count}{kind}", data), k.read(out, kind, count)))
      words = f"{a.op} {worst:.3g}" + ("" if worst <= a.bound else f" at {x!r}, where the emulator assumes {a.bound:.3g}")
      if a.needed and worst > a.bound: raise Wrong(f"{words}; the compiler relies on that")
      report.append(words)
  return "worst errors: " + ", ".join(report)

def peers(s: AMDSession) -> str:
  """Between this GPU and the next one, both ways, without the host."""
  others = [i for i in range(len(gpus(s.box))) if i != s.ordinal]
  if not others: raise Absent("there is one GPU")
  name = f"AMD:{others[0]}" if others[0] else "AMD"
  other: Compiled = Device[name]
  assert isinstance(other, AMDDevice)
  with kernels(s) as k:
    here, back, there = k.floats(range(N)), k.floats([0.0] * N), other.allocator.alloc(4 * N)
    try:
      for dest, src, allocator in ((there, here, other.allocator), (back, there, k.device.allocator)):
        if not allocator.transfer(dest, src, 4 * N): raise Absent(f"{s.name} and {name} cannot see each other's memory; copies go through the host")
      k.expect(back, [float(i) for i in range(N)], f"a copy to {name} and back", "f")
    finally:
      other.allocator.free(there)
      Device.close(name)
  return f"{4 * N} bytes to {name} and back"

def lost(s: AMDSession, text: str, name: str, wanted: str, address: int) -> str:
  """A kernel that goes wrong: what the driver says of it, which must have the words that are wanted."""
  if not s.tools.faults: raise Absent("only with --faults: it may cost every process on the GPU its work")
  k = Kernels(s)
  program = k.load(text, name)
  with Context(HCQDEV_WAIT_TIMEOUT_MS=HANG_MS[bool(EMULATE.value)]):
    try: k.run(program, [Place(address)], 1)
    except (DriverError, DeviceError) as error: message = error.message
    else: raise Wrong("the GPU ended it without a word")
  Device.close(s.name)
  if wanted not in message: raise Wrong(f"it was told in other words than \"{wanted}\": {message}")
  return message.splitlines()[0]

class Place(NamedTuple):
  """An address in place of a buffer."""
  address: int

def hang(s: AMDSession) -> str: return f"told: {lost(s, HANG, 'hang', 'did not finish', 0)}; opened again: {store(s)}"

def bad_address(s: AMDSession) -> str:
  """The kernel's driver gives a process that has done this no more queues, so it is the last that is tried."""
  return f"told: {lost(s, STORE, 'astray', 'touches memory that it has not', BAD_ADDRESS)}"

LAUNCH = ("the words of a launch (docs/amd.md shows them, with what each is for): registers that this chip wants and nobody has set; the code's "
          "address")
STEPS = (
  Step("empty kernel", "does a kernel that does nothing start and end", LAUNCH, empty, basic=True),
  Step("store", "do all lanes of all workgroups know who they are, and write to memory", "where the workgroup's number is (user_sgprs of "
       "topology.py); if whole lines or dies are missing, the write-back of caches (RELEASE in commands.py)", store, basic=True),
  Step("arithmetic", "do loads, additions and arguments give the CPU's bits", "the mode of rounding (FLOAT_MODE in launch.py) if last bits differ; "
       "waits for loads if values are old", arithmetic),
  Step("local memory", "do lanes of several waves exchange values through local memory", "LDS_SIZE in launch.py (lds_step of topology.py), barriers",
       local_memory),
  Step("scratch", "has each lane memory of its own to spill to", "TMPRING_SIZE and the scratch base (reserve_scratch in device.py); "
       "scratch_unit of topology.py", scratch),
  Step("caches", "does a kernel see what was written just before, and by whom", "the flags of ACQUIRE and RELEASE in commands.py for this "
       "generation; the message says which cache kept old lines", caches),
  Step("order", "do launches and copies that run at the same time give what they would one after the other", "what waits for what: gpu/order.py; the "
       "barrier of a launch (launch.py); POLL_REGMEM and WAIT_REG_MEM on the timeline", order),
  Step("approximations", "are the hardware's approximations as exact as the compiler assumes", "isa/amd/macros.py and recipes.py make good an error "
       "of less than one unit in the last place; send the line with the operand", approximations),
)
LAST = (
  Step("peer copy", "do two GPUs copy from each other", "PCIe peer access (dmesg: amdgpu, P2P), Resizable BAR, IOMMU", peers),
  Step("hang", "is a kernel that never ends noticed, and does the device recover", "dmesg: whether the kernel reset the GPU; the deadline is "
       "HCQDEV_WAIT_TIMEOUT_MS", hang),
)
BAD_ADDRESS_STEP = Step("bad address", "is an access to memory that the device has not told",
                        "the fault's event (events.py); dmesg has the kernel's own words", bad_address)
