"""The steps of `python3 -m tinyhw selftest METAL` before tensors: messages, memory, kernels, order, limits.

Kernels are written here, so that a failed step is no fault of the compiler. A step that does not end is ended by the
driver's deadline, and the device is lost then: later steps fail.
"""
from __future__ import annotations
import ctypes
import mmap
import struct
import time
from collections.abc import Sequence
from typing import Any

from tinyhw.device import Device, Launch
from tinyhw.drivers.metal.device import MetalDevice
from tinyhw.drivers.metal.facts import FAMILIES, all_devices
from tinyhw.drivers.metal.launch import DIRECT, MOST_ARGUMENTS
from tinyhw.drivers.metal.library import load_library
from tinyhw.drivers.metal.memory import MetalMemory
from tinyhw.drivers.metal.objc import SELECTORS, ObjectiveC
from tinyhw.errors import CompileError, OutOfMemory
from tinyhw.machine.ir.code import Code
from tinyhw.selftest.frame import Probe, Session, Tools, Wrong, short_bytes

HEAD = "#include <metal_stdlib>\nusing namespace metal;\n#pragma METAL fp contract(off)\n"
LANES = "uint group [[threadgroup_position_in_grid]], uint lane [[thread_index_in_threadgroup]]"
SIMD = 32
SUBMISSIONS = 100     # more than a queue has command buffers
TIMED = 200           # launches
LEAST_LANES = 512     # that small kernels may have

class MetalSession(Session):
  def first(self) -> Sequence[Probe]: return STEPS
  def last(self) -> Sequence[Probe]: return LAST

def begin(name: str, tools: Tools) -> MetalSession: return MetalSession(name, tools)

def device_of(s: Session) -> MetalDevice:
  found = Device[s.name]
  assert isinstance(found, MetalDevice), "METAL is driven by this driver"
  return found

# **** kernels ****

def code(name: str, body: str, types: Sequence[str], variables: int = 0, lanes: int = SIMD, local_bytes: int = 0,
         helpers: str = "") -> Code:
  """A kernel of buffers x0, x1, ... of these types, and `numbers`, the variables."""
  arguments = [f"device {kind} *x{k} [[buffer({k})]]" for k, kind in enumerate(types)]
  if variables: arguments.append(f"constant long *numbers [[buffer({len(types)})]]")
  if local_bytes: arguments.append("threadgroup uchar *shared [[threadgroup(0)]]")
  source = f"{HEAD}{helpers}kernel void k_{name}({', '.join([*arguments, LANES])}) {{\n{body}\n}}\n"
  return Code(name, "metal", source.encode(), (*["buffer"] * len(types), *["int64"] * variables), lanes=lanes,
              local_bytes=local_bytes)

def filled(device: MetalDevice, data: bytes) -> MetalMemory:
  memory: MetalMemory = device.allocator.alloc(len(data))
  device.allocator.copyin(memory, memoryview(data))
  return memory

def contents(device: MetalDevice, memory: MetalMemory, form: str, count: int) -> tuple[Any, ...]:
  found = bytearray(struct.calcsize(f"<{count}{form}"))
  device.allocator.copyout(memoryview(found), device.allocator.offset(memory, len(found), 0))
  return struct.unpack(f"<{count}{form}", found)

def packed(form: str, values: Sequence[Any]) -> bytes: return struct.pack(f"<{len(values)}{form}", *values)

def result(s: Session, made: Code, form: str, inputs: Sequence[bytes], count: int, numbers: Sequence[int] = (),
           groups: int = 1) -> tuple[Any, ...]:
  """Run a kernel whose x0 is its result, of `count` elements."""
  device = device_of(s)
  memories = [filled(device, bytes(struct.calcsize(f"<{count}{form}"))), *[filled(device, data) for data in inputs]]
  device.submit([Launch(device.load(made), memories, numbers, groups)])
  found = contents(device, memories[0], form, count)
  for memory in memories: device.allocator.free(memory)
  return found

def compare(found: Sequence[Any], wanted: Sequence[Any], what: str) -> None:
  wrong = [k for k, (f, w) in enumerate(zip(found, wanted, strict=True)) if f != w and (f == f or w == w)]
  if wrong: raise Wrong(f"{what}: {len(wrong)} of {len(wanted)} differ; the first is number {wrong[0]}, "
                        f"{found[wrong[0]]!r} instead of {wanted[wrong[0]]!r}")

# **** messages and objects ****

def messages(s: Session) -> str:
  """Ask real objects whether they have the methods of this driver."""
  objc = ObjectiveC(load_library())
  with objc.pool():
    devices = all_devices(objc)
    if not devices: raise Wrong("Metal has no device")
    handle = devices[0].handle
    queue, fence = objc.send(handle, "newCommandQueue"), objc.send(handle, "newFence")
    buffer = objc.send(handle, "newBufferWithLength:options:", mmap.PAGESIZE, 0x100)
    commands = objc.send(queue, "commandBuffer")
    encoder = objc.send(commands, "computeCommandEncoderWithDispatchType:", 1)
    options = objc.make("MTLCompileOptions")
    receivers = {"device": handle, "queue": queue, "buffer": buffer, "command buffer": commands, "encoder": encoder,
                 "options": options, "string": objc.string("x")}
    missing = [f"{who} has no {selector}" for who, names in METHODS.items() for selector in names.split()
               if not objc.responds(receivers[who], selector)]
    objc.send(encoder, "endEncoding")
    for thing in (queue, fence, buffer, options, *[found.handle for found in devices]): objc.release(thing)
  if missing: raise Wrong("; ".join(missing))
  return f"{sum(len(names.split()) for names in METHODS.values())} methods of {len(METHODS)} classes"

METHODS = {
  "device": "name supportsFamily: hasUnifiedMemory maxBufferLength maxThreadgroupMemoryLength newCommandQueue newFence "
            "recommendedMaxWorkingSetSize newBufferWithLength:options: newLibraryWithSource:options:error: "
            "newBufferWithBytesNoCopy:length:options:deallocator: newComputePipelineStateWithFunction:error:",
  "queue": "commandBuffer", "buffer": "contents gpuAddress",
  "command buffer": "computeCommandEncoderWithDispatchType: commit status error GPUStartTime GPUEndTime",
  "encoder": "setComputePipelineState: setBuffer:offset:atIndex: setBytes:length:atIndex: useResource:usage: "
             "setThreadgroupMemoryLength:atIndex: memoryBarrierWithScope: waitForFence: updateFence: endEncoding "
             "dispatchThreadgroups:threadsPerThreadgroup:",
  "options": "setLanguageVersion:", "string": "UTF8String"}
assert all(name in SELECTORS for names in METHODS.values() for name in names.split()), "the driver sends them"

def opens(s: Session) -> str:
  about = device_of(s).about
  if list(about.families) != list(FAMILIES)[:len(about.families)]: raise Wrong(f"families {about.families} have a gap")
  return (f"{about.title}: {short_bytes(about.memory_bytes)} for all buffers, {short_bytes(about.most_bytes)} for one, "
          f"{short_bytes(about.local_bytes)} of threadgroup memory")

def strings(s: Session) -> str:
  """Send texts there and back, and read the compiler's words about a mistake in line 5."""
  device, text = device_of(s), "Zahl π, 数"
  with device.objc.pool():
    found = device.objc.text(device.objc.string(text))
  if found != text: raise Wrong(f"{text!r} came back as {found!r}")
  try: device.load(code("mistake", "x0[0] = mistake;", ["int"]))
  except CompileError as error:
    if ":5:" not in error.message: raise Wrong(f"the compiler names no line: {error.message}") from None
    return "a text there and back; the compiler names the line of a mistake"
  raise Wrong("the compiler took a mistake")

def pools(s: Session) -> str:
  objc = device_of(s).objc
  for _ in range(4):
    with objc.pool():
      for k in range(1000): objc.string(f"text {k}")
  return "4 of 1000 objects"

def memory(s: Session) -> str:
  device = device_of(s)
  a = filled(device, bytes(range(200)))
  if contents(device, a, "B", 200) != tuple(range(200)): raise Wrong("bytes of a buffer differ from what was written")
  pages = mmap.mmap(-1, 2 * mmap.PAGESIZE)
  place = ctypes.addressof(ctypes.c_char.from_buffer(pages)) + 64
  mine = device.allocator.external(place, 64)
  device.submit([Launch(device.load(code("own", "x0[lane] = lane;", ["uint"], lanes=16)), [mine], [], 1)])
  device.synchronize()
  compare(struct.unpack("<16I", pages[64:128]), range(16), "memory of the program")
  try: device.allocator.alloc(device.about.most_bytes + 1)
  except OutOfMemory: return "written and read; memory of the program in place; one that is too large is refused"
  raise Wrong(f"a buffer of {device.about.most_bytes + 1} bytes was made, and {device.about.most_bytes} is the most")

# **** kernels: what they compute ****

def empty(s: Session) -> str:
  device = device_of(s)
  device.submit([Launch(device.load(code("empty", "", ["int"])), [filled(device, bytes(4))], [], 1)])
  device.synchronize()
  return "it ends"

def numbers(s: Session) -> str:
  groups, lanes = 7, 96
  made = code("numbers", f"x0[group * {lanes}u + lane] = group * 1000u + lane;", ["uint"], lanes=lanes)
  compare(result(s, made, "I", [], groups * lanes, groups=groups),
          [g * 1000 + k for g in range(groups) for k in range(lanes)], "numbers of threads")
  return f"{groups} threadgroups of {lanes}"

def arguments(s: Session) -> str:
  """Sum the first elements of many buffers, and a large variable."""
  device, large = device_of(s), (1 << 40) + 7
  for count in (1, 2, MOST_ARGUMENTS - 1):
    body = "long total = numbers[0];\n" + "\n".join(f"x0[{k}] = total + x{k}[0];" for k in range(1, count))
    made = code(f"arguments{count}", body + "\nx0[0] = total;", ["long"] * count, 1, lanes=1)
    inputs = [packed("q", [k]) for k in range(1, count)]
    compare(result(s, made, "q", inputs, count, [large]), [large + k for k in range(count)], f"{count} buffers")
  pointers = 40
  direct = ", ".join(f"device long *x{k} [[buffer({k})]]" for k in range(DIRECT))
  fields = " ".join(f"device long *x{k};" for k in range(DIRECT, pointers))
  body = "\n".join(f"x0[{k}] = slots.x{k}[0];" for k in range(DIRECT, pointers))
  source = (f"{HEAD}struct k_s {{ {fields} }};\nkernel void k_pointers({direct}, constant k_s &slots "
            f"[[buffer({MOST_ARGUMENTS - 1})]], {LANES}) {{\n{body}\n}}\n")
  many = Code("pointers", "metal", source.encode(), ("buffer",) * pointers, lanes=1)
  found = result(s, many, "q", [packed("q", [k]) for k in range(1, pointers)], pointers)
  compare(found[DIRECT:], range(DIRECT, pointers), "pointers of a structure")
  device.synchronize()
  return f"1 to {MOST_ARGUMENTS} arguments, {pointers} buffers by pointers, variables of 64 bits"

def arithmetic(s: Session) -> str:
  """Test what numerics.md wants of float32; tell what becomes of subnormal numbers."""
  x = [1 + 2.0 ** -12, 3.0, -7.5, 1e30, float("nan"), 0.1, 2.0 ** -126, 16777216.0]
  y = [1 + 2.0 ** -12, 7.0, 0.3, 1e30, 1.0, 0.3, 0.5, 3.0]
  z = [-(1 + 2.0 ** -11), 1.0, 2.0, 1.0, 1.0, -0.03, 1.0, 1.0]
  one = [struct.unpack("<f", struct.pack("<f", v))[0] for v in (*x, *y, *z)]
  x, y, z = one[:8], one[8:16], one[16:]
  body = ("float p = x1[lane] * x2[lane]; x0[lane] = p + x3[lane];\nx0[lane + 8u] = x1[lane] / x2[lane];\n"
          "x0[lane + 16u] = precise::sqrt(x1[lane]);\nx0[lane + 24u] = x1[lane] < x2[lane] ? 1.0f : 0.0f;\n"
          "x0[lane + 32u] = x1[lane] * 0.5f;")
  found = result(s, code("arithmetic", body, ["float"] * 4, lanes=8), "f", [packed("f", v) for v in (x, y, z)], 40)
  def rounded(v: float) -> float:
    try: return float(struct.unpack("<f", struct.pack("<f", v))[0])
    except OverflowError: return float("inf") if v > 0 else float("-inf")
  compare(found[:8], [rounded(rounded(a * b) + c) for a, b, c in zip(x, y, z)], "a * b + c, each rounded")
  compare(found[8:16], [rounded(a / b) for a, b in zip(x, y)], "quotients")
  compare(found[16:24], [rounded(a ** 0.5) if a >= 0 else float("nan") for a in x], "square roots")
  compare(found[24:32], [float(a < b) for a, b in zip(x, y)], "comparisons")
  return f"rounded as it should be; subnormal numbers are {'kept' if found[38] else 'zeros'}"

def halves(s: Session) -> str:
  count = 1 << 16
  made = code("halves", "uint k = group * 256u + lane; x0[k] = float(as_type<half>(x1[k]));", ["float", "ushort"],
              lanes=256)
  found = result(s, made, "f", [packed("H", range(count))], count, groups=count // 256)
  compare(found, struct.unpack(f"<{count}e", packed("H", range(count))), "half as float")
  made = code("rounded", "x0[lane] = as_type<ushort>(half(x1[lane]));", ["ushort", "float"], lanes=5)
  values = [1 + 2.0 ** -11, 1 + 3 * 2.0 ** -11, 2.0 ** -25, 65519.0, -2.5]
  compare(result(s, made, "H", [packed("f", values)], 5), [0x3C00, 0x3C02, 0, 0x7BFF, 0xC100], "float as half")
  return "all 65536; ties to even"

def shared(s: Session) -> str:
  lanes, size = 256, device_of(s).about.local_bytes
  last = size // 4 - lanes
  body = (f"threadgroup int *a = (threadgroup int *)(shared + {4 * last});\na[lane] = x1[lane];\n"
          f"threadgroup_barrier(mem_flags::mem_threadgroup);\nx0[lane] = a[{lanes - 1}u - lane];")
  found = result(s, code("shared", body, ["int"] * 2, lanes=lanes, local_bytes=size), "i",
                 [packed("i", range(lanes))], lanes)
  compare(found, range(lanes - 1, -1, -1), "threadgroup memory after a barrier")
  return f"{lanes} threads, {short_bytes(size)}"

def shuffles(s: Session) -> str:
  by = (1, 2, 4, 8, 16)
  body = "\n".join(f"x0[lane + {SIMD * k}u] = simd_shuffle_xor(x1[lane], {d});" for k, d in enumerate(by))
  found = result(s, code("shuffles", body, ["int"] * 2), "i", [packed("i", range(SIMD))], SIMD * len(by))
  compare(found, [lane ^ d for d in by for lane in range(SIMD)], "values of other lanes")
  return f"32 lanes, at the distances {', '.join(map(str, by))}"

def matrices(s: Session) -> str:
  """Test the layout of simdgroup_matrix, which Metal does not define, by a product of distinct whole numbers."""
  def place(lane: int, k: int) -> tuple[int, int]:
    return (lane // 4 & 4) + lane // 2 % 4, (lane // 4 & 2) * 2 + lane % 2 * 2 + k
  a, b = ([[(3 * r + 5 * c + n) % 17 - 8 for c in range(8)] for r in range(8)] for n in (1, 6))
  product = [[sum(a[r][k] * b[k][c] for k in range(8)) for c in range(8)] for r in range(8)]
  def shares(rows: list[list[int]]) -> list[float]:
    return [float(rows[r][c]) for lane in range(SIMD) for r, c in (place(lane, 0), place(lane, 1))]
  lines = []
  for letter, x in zip("ab", ("x1", "x2")):
    lines.append(f"simdgroup_float8x8 {letter};")
    lines += [f"{letter}.thread_elements()[{k}] = {x}[lane * 2u + {k}u];" for k in (0, 1)]
  lines += ["simdgroup_float8x8 c;", "c.thread_elements()[0] = 0.0f;", "c.thread_elements()[1] = 0.0f;",
            "simdgroup_multiply_accumulate(c, a, b, c);",
            *[f"x0[lane * 2u + {k}u] = c.thread_elements()[{k}];" for k in (0, 1)]]
  found = result(s, code("matrices", "\n".join(lines), ["float"] * 3), "f", [packed("f", shares(m)) for m in (a, b)],
                 2 * SIMD)
  compare(found, shares(product), "a product of 8 x 8, by the shares of the lanes")
  return "two adjacent elements of a row in each lane, as kernels expect"

# **** order, limits, time ****

def counting(s: Session) -> tuple[MetalDevice, Any, MetalMemory]:
  device = device_of(s)
  made = code("count", "x0[lane] = x0[lane] * 3 + int(numbers[0]);", ["int"], 1)
  return device, device.load(made), filled(device, bytes(4 * SIMD))

def counted(numbers: Sequence[int]) -> int:
  total = 0
  for k in numbers: total = (total * 3 + k) % (1 << 16)
  return total

def order(s: Session) -> str:
  """Run dependent launches: in one encoder, and in several command buffers. Numbers stay small."""
  device, program, a = counting(s)
  for sizes in ((8,), (1,) * 8, (3, 1, 4)):
    device.allocator.copyin(a, memoryview(bytes(4 * SIMD)))
    at = 0
    for size in sizes:
      device.submit([Launch(program, [a], [k], 1) for k in range(at, at + size)])
      at += size
    compare(contents(device, a, "i", SIMD), [counted(range(at))] * SIMD, f"launches in submissions of {sizes}")
  return "in one encoder, and from one command buffer to the next"

def many(s: Session) -> str:
  device, _, a = counting(s)
  program = device.load(code("add", "x0[lane] = x0[lane] + int(numbers[0]);", ["int"], 1))
  for k in range(SUBMISSIONS): device.submit([Launch(program, [a], [k], 1)])
  compare(contents(device, a, "i", SIMD), [sum(range(SUBMISSIONS))] * SIMD, f"{SUBMISSIONS} submissions")
  return f"{SUBMISSIONS} command buffers without a wait"

def limits(s: Session) -> str:
  """Launch many lanes."""
  device = device_of(s)
  def made(lanes: int) -> Code: return code("limits", "x0[lane] = lane;", ["uint"], lanes=lanes)
  pipeline, most, width = device.build(made(SIMD).text, "k_limits", "limits")
  device.release(pipeline)
  most = min(most, LEAST_LANES)     # another pipeline may have fewer
  found = result(s, made(most), "I", [], most)
  compare(found, range(most), f"{most} lanes")
  if width != SIMD: raise Wrong(f"a SIMD-group has {width} lanes, and kernels expect {SIMD}")
  if most < LEAST_LANES: raise Wrong(f"a small kernel may have {most} lanes, and products need {LEAST_LANES}")
  return f"{most} lanes in a threadgroup, {width} in a SIMD-group"

def times(s: Session) -> str:
  device, program, a = counting(s)
  found = device.submit_timed([Launch(program, [a], [1], 1)] * 4)
  if any(end < start for start, end in found): raise Wrong(f"a launch ends before it begins: {found}")
  return f"the shortest launch took {min(end - start for start, end in found) / 1e3:.1f} us by the GPU's clock"

def recordings(s: Session) -> str:
  device, program, a = counting(s)
  recording = device.record([Launch(program, [a], [k], 1) for k in (1, 2)])
  recording.submit()
  recording.patch(1, 1, 5)
  recording.submit()
  compare(contents(device, a, "i", SIMD), [counted((1, 2, 1, 5))] * SIMD, "two replays, with a patch between them")
  return "replayed, and patched"

def speed(s: Session) -> str:
  """Tell numbers; none is a failure."""
  device, program, a = counting(s)
  start = time.perf_counter()
  for _ in range(TIMED // 10): device.submit([Launch(program, [a], [0], 1)] * 10)
  device.synchronize()
  each = (time.perf_counter() - start) / TIMED * 1e6
  start = time.perf_counter()
  for _ in range(1000): device.objc.send(device.about.handle, "hasUnifiedMemory")
  message = (time.perf_counter() - start) * 1e3
  return f"a launch of ten in a submission {each:.1f} us, a message {message:.2f} us"

def step(name: str, question: str, check: str, run: Any, basic: bool = False) -> Probe:
  return Probe(name, question, check, run, basic)

STEPS = (
  step("messages", "has this macOS the methods of the driver", "macOS 13 or newer; the names in drivers/metal/objc.py",
       messages, True),
  step("opens", "does the device open as programs open it", "`python3 -m tinyhw doctor` says why it does not", opens,
       True),
  step("texts", "do texts and errors of the compiler arrive", "the types of messages in drivers/metal/objc.py", strings,
       True),
  step("pools", "do autorelease pools end", "NSZombieEnabled=YES finds objects that are used too long", pools, True),
  step("memory", "do processor and GPU share memory", "other programs that hold memory; MTL_DEBUG_LAYER=1", memory,
       True),
  step("empty", "does an empty kernel end", "the command buffer's error; start the program again", empty, True),
  step("numbers", "has each thread its number", "the attributes in a kernel's arguments", numbers, True),
  step("arguments", "do kernels get their arguments", "MTL_DEBUG_LAYER=1 checks each binding", arguments, True),
  step("arithmetic", "is float32 rounded as IEEE 754 says", "the pragma against contraction; fast math", arithmetic),
  step("halves", "are conversions of float16 right", "the row of float16 in docs/numerics.md", halves),
  step("shared", "do barriers order threadgroup memory", "the length of threadgroup memory", shared),
  step("shuffles", "do lanes exchange values", "the order of lanes in a SIMD-group", shuffles),
  step("matrices", "is the layout of simdgroup matrices the expected one", "MATRICES in codegen/render/metal.py; "
       "products are wrong until then", matrices),
  step("order", "do dependent launches follow each other", "MTL_SHADER_VALIDATION=1; fences and barriers", order),
  step("many", "can there be more submissions than a queue has buffers", "MOST_FLYING in drivers/metal/device.py",
       many),
  step("limits", "does a kernel run with many lanes", "maxTotalThreadsPerThreadgroup of pipelines", limits),
  step("times", "does the GPU tell times", "GPUStartTime and GPUEndTime of command buffers", times),
  step("recordings", "are replays right", "docs/hardware/metal.md, a launch message by message", recordings),
)
LAST = (step("speed", "how long do launches and messages take", "low power mode; MTL_DEBUG_LAYER is slow", speed),)
