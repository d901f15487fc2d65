"""A device on a virtual Mac of its own."""
from collections.abc import Callable, Iterator

import pytest

from tinyhw import emulator
from tinyhw.drivers import metal
from tinyhw.drivers.metal.device import MetalDevice
from tinyhw.emulator.metal.computer import MetalComputer
from tinyhw.machine.ir.code import Code

Opener = Callable[..., tuple[MetalComputer, MetalDevice]]
HEAD = "#include <metal_stdlib>\nusing namespace metal;\n#pragma METAL fp contract(off)\n"

@pytest.fixture
def mac(monkeypatch: pytest.MonkeyPatch) -> Iterator[Opener]:
  """Return a function that opens a device of a virtual Mac."""
  def make(name: str = "apple7", ordinal: int = 0, seed: int = 0) -> tuple[MetalComputer, MetalDevice]:
    made = emulator.make(name, seed)
    assert isinstance(made, MetalComputer)
    monkeypatch.setattr(metal, "load_library", lambda: made.metal)
    return made, metal.open(ordinal, lambda name: None)  # type: ignore[arg-type,return-value]
  yield make

def code(name: str = "example", body: str = "data0[group * 4 + lane] = data0[group * 4 + lane] + int(numbers[0]);",
         lanes: int = 4, local_bytes: int = 0, arch: str = "metal") -> Code:
  """A kernel of one buffer of int and a variable, with a body."""
  shared = "threadgroup uchar *shared_bytes [[threadgroup(0)]], " if local_bytes else ""
  lanes_of = "uint group [[threadgroup_position_in_grid]], uint lane [[thread_index_in_threadgroup]]"
  source = (f"{HEAD}kernel void k_{name}(device int *data0 [[buffer(0)]], constant long *numbers [[buffer(1)]], "
            f"{shared}{lanes_of}) {{\n  {body}\n}}\n")
  return Code(name, arch, source.encode(), ("buffer", "int64"), lanes=lanes, local_bytes=local_bytes)

def code_of_many(count: int = 32) -> Code:
  """A kernel with more buffers than Metal has arguments. It adds the last one and a variable to the first one."""
  direct = "".join(f"device int *data{k} [[buffer({k})]], " for k in range(29))
  pointers = "".join(f"device int *data{k}; " for k in range(29, count))
  source = (f"{HEAD}struct k_many_slots {{ {pointers}}};\n"
            f"kernel void k_many({direct}constant long *numbers [[buffer(29)]], "
            f"constant k_many_slots &slots [[buffer(30)]], uint group [[threadgroup_position_in_grid]], "
            f"uint lane [[thread_index_in_threadgroup]]) {{\n  device int *last = slots.data{count - 1};\n"
            f"  data0[lane] = data0[lane] + last[lane] + int(numbers[0]);\n}}\n")
  return Code("many", "metal", source.encode(), (*["buffer"] * count, "int64"), lanes=4)
