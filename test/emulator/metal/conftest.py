"""Kernels of Metal's language on threads of the virtual GPU, without a driver."""
import random
from collections.abc import Callable

import pytest

from tinyhw.emulator.metal.lanes import MslRegion, ThreadGroup
from tinyhw.emulator.metal.translate import MslKernel, translate

HEAD = "#include <metal_stdlib>\nusing namespace metal;\n#pragma METAL fp contract(off)\n"
LANES_OF = "uint group [[threadgroup_position_in_grid]], uint lane [[thread_index_in_threadgroup]]"
FIRST_LINE = 5   # of a body

def kernel_of(body: str, element: str = "int", helpers: str = "") -> str:
  """A source with one kernel: two buffers of an element, threadgroup memory, and a body."""
  return (f"{HEAD}{helpers}kernel void k_t(device {element} *out [[buffer(0)]], device {element} *x [[buffer(1)]], "
          f"constant long *numbers [[buffer(2)]], threadgroup uchar *shared_bytes [[threadgroup(0)]], {LANES_OF}) {{\n"
          f"{body}\n}}\n")

def regions_of(kernel: MslKernel, memory: dict[str, bytearray]) -> dict[str, MslRegion]:
  """Memory by argument; what is not given was never written."""
  found: dict[str, MslRegion] = {}
  for argument in kernel.arguments:
    if argument.attribute[0] not in ("buffer", "threadgroup"): continue
    data = memory.get(argument.name)
    found[argument.name] = MslRegion(argument.name, data if data is not None else bytearray(256),
                                  bytearray([data is not None]) * len(data if data is not None else bytes(256)))
  return found

Runner = Callable[..., MslRegion]

@pytest.fixture
def run() -> Runner:
  """Return a function that runs a body, with x and numbers given, and returns the region of `out`."""
  def make(body: str, x: bytes = bytes(range(64)), element: str = "int", lanes: int = 4, groups: int = 1, seed: int = 0,
           helpers: str = "") -> MslRegion:
    kernel = translate(kernel_of(body, element, helpers))["k_t"]
    regions = regions_of(kernel, {"x": bytearray(x), "numbers": bytearray((7).to_bytes(8, "little"))})
    group = ThreadGroup(kernel, regions, regions["shared_bytes"], lanes, random.Random(seed))
    for k in range(groups): group.run(k)
    return regions["out"]
  return make
