"""The QMD of a launch, and refusals; the words of a launch, in a reviewed file and in the documents."""
import random
import re
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from nvidia.box import KINDS, code

from tinyhw.autogen.nvidia import qmd
from tinyhw.codegen.optimize import optimize
from tinyhw.codegen.passes import lower
from tinyhw.codegen.transform.tiling import Opt, OptOps
from tinyhw.device import Launch
from tinyhw.drivers.nvidia.chips import CHIPS
from tinyhw.drivers.nvidia.launch import describe
from tinyhw.dtype import dtypes
from tinyhw.errors import DeviceError
from tinyhw.isa.sass import target as sass
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import KernelInfo, UOp

@pytest.mark.parametrize("chip", CHIPS, ids=lambda chip: chip.arch)
def test_fields_fit_into_each_generation(chip) -> None:
  fields = describe(code(chip.arch, lanes=256, local_bytes=20000, private_bytes=40), chip, 0x12_3456_7800)
  data = qmd.layout(chip.generation).encode(fields)
  shown = qmd.layout(chip.generation).show(data)
  assert (shown["cta_thread_dimension0"] == 256 and shown["program_address"] == 0x12_3456_7800
          and shown["sass_version"] == chip.version)
  assert shown["shared_memory_size"] >= 20000 + chip.reserved and shown["shader_local_memory_low_size"] == 48

@pytest.mark.parametrize("used, given", [(0, 4), (2, 4), (8, 10), (79, 81), (253, 255)])
def test_a_launch_asks_for_registers_of_the_hardware_too(used: int, given: int) -> None:
  for chip in CHIPS: assert describe(code(chip.arch, registers=(("r", used),)), chip, 0)["register_count"] == given

@pytest.mark.parametrize("fields, said", [({"registers": (("r", 254),)}, "wants 254 registers, and sm_90 has 253"),
                                          ({"lanes": 2048}, "wants 2048 lanes, and sm_90 has 1024"),
                                          ({"local_bytes": 300000}, "bytes of shared memory")])
def test_more_than_the_chip_has_is_refused(opened, fields, said: str) -> None:
  _, device = opened("sm_90")
  with pytest.raises(DeviceError, match=said): device.load(code(**fields))

@pytest.mark.parametrize("kind", KINDS)
def test_the_data_of_a_launch(opened, kind: str) -> None:
  _, device = opened(kind)
  program, a = device.load(code(kind)), device.allocator.alloc(100)
  data = bytearray(program.pack(Launch(program, [a], [-3], 7)))
  words = program.launch(0x10_0000, 7, memoryview(data))
  assert len(words) == program.words_of_launch and 0x1000 in words
  shown = program.layout.show(data)
  assert shown["grid_width"] == 7 and shown["constant_buffer_addr[0]"] == 0x10_0000 + 512
  place = program.argument_offset
  assert int.from_bytes(data[place:place + 8],
                        "little") == a.address and data[place + 8:place + 16] == (-3).to_bytes(8, "little", signed=True)

# of one buffer, the first from byte 64 on
MAPS = (0, (64).to_bytes(8, "little") + bytes(range(120))), (0, bytes(8) + bytes(120))

def addresses(data: bytes, program) -> list[int]:
  """Return the addresses in the maps to which the last argument of a launch at 0x10_0000 points."""
  place = program.argument_offset + 16
  at = int.from_bytes(data[place:place + 8], "little") - 0x10_0000
  assert at % 128 == 0 and at >= place + 8 and data[at + 8:at + 128] == bytes(range(120)) and len(data) == at + 256
  return [int.from_bytes(data[k:k + 8], "little") for k in (at, at + 128)]

def test_tensor_maps_are_behind_the_constant_bank(opened) -> None:
  _, device = opened("sm_90")
  program, a = device.load(code("sm_90", descriptors=MAPS)), device.allocator.alloc(1000)
  data = bytearray(program.pack(Launch(program, [a], [-3], 7)))
  program.launch(0x10_0000, 7, memoryview(data))
  assert addresses(data, program) == [a.address + 64, a.address]
  assert program.layout.show(data)["constant_buffer_size[0]"] >= program.argument_offset + 24 - 512

def test_a_recording_with_another_buffer_has_other_maps(opened) -> None:
  _, device = opened("sm_90")
  program, a, b = device.load(code("sm_90", descriptors=MAPS)), *(device.allocator.alloc(1000) for _ in range(2))
  recording = device.record([Launch(program, [a], [-3], 7)])
  recording.patch(0, 0, b)
  recording.patch(0, 1, 5)
  size = len(program.pack(Launch(program, [a], [-3], 7)))
  data, start = bytearray(size), recording.slots[0]
  recording.memory.mapping.copyout(start, memoryview(data))
  place = program.argument_offset + 16
  own = int.from_bytes(data[place:place + 8], "little") - (recording.memory.address + start)
  data[place:place + 8] = (own + 0x10_0000).to_bytes(8, "little")
  assert addresses(data, program) == [b.address + 64, b.address] and int.from_bytes(data[place - 16:place - 8],
                                                                                    "little") == b.address

def boxed_product() -> UOp:
  """Make a product of four warps, (64, 256) x (256, 64), with factors from bulk tensor copies."""
  out, a, b = UOp.param(0, dtypes.float32, 64 * 64), UOp.param(1, dtypes.float16,
                                                               64 * 256), UOp.param(2, dtypes.float16, 256 * 64)
  i, j, x = (UOp(Ops.RANGE, dtypes.weakint, (UOp.const(dtypes.weakint, n),), (k, kind))
             for k, (n, kind) in enumerate(((64, AxisType.LOOP), (64, AxisType.LOOP), (256, AxisType.REDUCE))))
  left, right = (place.load().cast(dtypes.float32) for place in (a.index(i * 256 + x), b.index(x * 64 + j)))
  opts = *(Opt(OptOps.MATRIX, axis, 64) for axis in range(3)), Opt(OptOps.BULK_COPY, 2, 1)
  return UOp.sink(out.index(i * 64 + j).store((left * right).reduce(Ops.ADD, x), i, j), arg=KernelInfo(opts=opts))

def test_a_replay_with_other_buffers_copies_boxes_of_those(opened) -> None:
  """Use small whole numbers, whose sums are exact."""
  _, device = opened("sm_90")
  capable = sass.capabilities("sm_90")
  program = device.load(sass.compile(lower(optimize(boxed_product(), capable), capable, "product"), "sm_90"))
  assert len(program.code.descriptors) == 2
  draw, buffers = random.Random(3), []
  for _ in range(3):
    values = [draw.randrange(-4, 5) for _ in range(64 * 256)]
    buffer = device.allocator.alloc(2 * len(values))
    device.allocator.copyin(buffer, memoryview(struct.pack(f"<{len(values)}e", *values)))
    buffers.append((buffer, values))
  (first, _), (other, a), (second, b) = buffers
  out, result = device.allocator.alloc(4 * 64 * 64), bytearray(4 * 64 * 64)
  recording = device.record([Launch(program, [out, first, second], [], 1)])
  recording.submit()
  recording.patch(0, 1, other)
  recording.submit()
  device.allocator.copyout(memoryview(result), out)
  expected = [sum(a[256 * i + x] * b[64 * x + j] for x in range(256)) for i in range(64) for j in range(64)]
  assert list(struct.unpack(f"<{64 * 64}f", result)) == expected

GOLDEN = Path(__file__).parents[2] / "golden"

def test_a_launch_is_as_it_was_reviewed() -> None:
  program = "import make_nvidia_launch as m; print(*(text for chip in m.CHIPS for text in m.dump(chip)), sep='\\n')"
  made = subprocess.run([sys.executable, "-c", f"import sys; sys.path.insert(0, {str(GOLDEN)!r}); {program}"],
                        check=True, capture_output=True,
                        text=True).stdout
  assert made == (GOLDEN / "nvidia_launch.txt").read_text(), ("python3 test/golden/make_nvidia_launch.py, and review "
                                                              "the difference")

def test_the_launch_in_the_documents_is_this_one() -> None:
  """Compare words of commands; bits, names and values of the QMD; offsets and values of the constant bank."""
  text = (GOLDEN.parents[1] / "docs/hardware/nvidia.md").read_text(encoding="utf-8")
  block = text.partition("<!-- launch of sm_90")[2].split("```")[1]
  golden = (GOLDEN / "nvidia_launch.txt").read_text().partition("# sm_90")[2]
  def facts(line: str) -> list[str]:
    words = re.match(r"((?:[0-9a-f]{8}|\.{8})(?: |$))+", line)
    if words: return words[0].split()
    field = re.match(r"(\d+(?:-\d+)?) +(\S+) +(\S+)", line)
    return list(field.groups()) if field else line.split() if line.startswith("0x") else []
  wanted, found = ([facts(line) for line in lines.splitlines() if facts(line)] for lines in (golden, block))
  assert found == wanted and len(found) > 40
