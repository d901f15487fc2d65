"""Devices of all OpenCL platforms, and the facts about them on which kernels depend. Nothing is assumed of a vendor.

The order is that of OPENCL:0, OPENCL:1 and so on: GPUs, then accelerators, then processors; among these, the order of
the platforms. OPENCL_DEVICES chooses by names.
"""
from __future__ import annotations

from tinyhw.autogen import opencl as cl
from tinyhw.config import OPENCL_DEVICES, OPENCL_LANES
from tinyhw.drivers.opencl.library import ClFailure, ClLibrary
from tinyhw.errors import DeviceError
from tinyhw.named_tuple import NamedTuple

KINDS = {cl.DEVICE_TYPE_GPU: "GPU", cl.DEVICE_TYPE_ACCELERATOR: "accelerator", cl.DEVICE_TYPE_CPU: "processor"}
LEAST_LANES = 256   # of a workgroup: what kernels may have
LEAST_BYTES = 16 << 10  # of shared memory

class ClFacts(NamedTuple):
  """A device, as its platform describes it. Sizes are in bytes; handle: of the device; floats: of its vectors."""
  handle: int
  platform: str
  name: str
  kind: str
  version: str
  driver: str
  units: int
  most_lanes: int
  local_bytes: int
  cache_bytes: int
  memory_bytes: int
  most_bytes: int
  address_bits: int
  subgroups: int
  extensions: frozenset[str]
  single: int
  double: int
  floats: int
  available: bool
  little: bool
  compiles: bool

  @property
  def title(self) -> str: return f"{self.name} of {self.platform}"

  @property
  def arch(self) -> str:
    """The architecture of its kernels: "opencl" and features, as codegen/render/targets.py reads them."""
    features = ["fp64"] * bool(self.double)
    if self.kind == "processor" and self.floats > 1 and not OPENCL_LANES: features.append(f"vectors{4 * self.floats}")
    return ":".join(["opencl", *["+".join(features)] * bool(features)])

  def missing(self) -> list[str]:
    """Return what kernels need and the device does not have."""
    wanted = {
      "is not available now": self.available, "has no compiler for source": self.compiles,
      "has other than 64-bit addresses": self.address_bits == 64, "is not little-endian": self.little,
      f"allows {self.most_lanes} lanes in a workgroup, not {LEAST_LANES}": self.most_lanes >= LEAST_LANES,
      f"has {self.local_bytes} bytes of shared memory, not {LEAST_BYTES}": self.local_bytes >= LEAST_BYTES,
      "divides float32 and takes square roots inexactly": self.single & cl.FP_CORRECTLY_ROUNDED_DIVIDE_SQRT,
      "has no infinities and NaNs": self.single & cl.FP_INF_NAN,
    }
    return [words for words, is_met in wanted.items() if not is_met]

  @property
  def flushes(self) -> bool:
    """Does it replace subnormal numbers of float32 by 0?"""
    return not self.single & cl.FP_DENORM

def facts_of(library: ClLibrary, platform: str, handle: int) -> ClFacts:
  """Ask a device. Questions that its version does not know have the answer 0."""
  def number(asked: int) -> int:
    try: return library.number("clGetDeviceInfo", handle, asked)
    except ClFailure: return 0
  def text(asked: int) -> str: return library.text("clGetDeviceInfo", handle, asked)
  extensions = frozenset(text(cl.DEVICE_EXTENSIONS).split())
  kind = next((word for bit, word in KINDS.items() if number(cl.DEVICE_TYPE) & bit), "device")
  return ClFacts(
    handle, platform, text(cl.DEVICE_NAME), kind, text(cl.DEVICE_VERSION), text(cl.DRIVER_VERSION),
    units=number(cl.DEVICE_MAX_COMPUTE_UNITS), most_lanes=number(cl.DEVICE_MAX_WORK_GROUP_SIZE),
    local_bytes=number(cl.DEVICE_LOCAL_MEM_SIZE), cache_bytes=number(cl.DEVICE_GLOBAL_MEM_CACHE_SIZE),
    memory_bytes=number(cl.DEVICE_GLOBAL_MEM_SIZE), most_bytes=number(cl.DEVICE_MAX_MEM_ALLOC_SIZE),
    address_bits=number(cl.DEVICE_ADDRESS_BITS), subgroups=number(cl.DEVICE_MAX_NUM_SUB_GROUPS), extensions=extensions,
    single=number(cl.DEVICE_SINGLE_FP_CONFIG), double=number(cl.DEVICE_DOUBLE_FP_CONFIG),
    floats=number(cl.DEVICE_NATIVE_VECTOR_WIDTH_FLOAT),
    available=bool(number(cl.DEVICE_AVAILABLE)), little=bool(number(cl.DEVICE_ENDIAN_LITTLE)),
    compiles=bool(number(cl.DEVICE_COMPILER_AVAILABLE)))

def all_devices(library: ClLibrary) -> list[ClFacts]:
  """Return the devices of all platforms. Raises DeviceError if there is no platform."""
  try: platforms = library.list("clGetPlatformIDs")
  except ClFailure as error: raise DeviceError(f"no OpenCL driver answers: {error.message}") from error
  found: list[ClFacts] = []
  for platform in platforms:
    name = library.text("clGetPlatformInfo", platform, cl.PLATFORM_NAME)
    try: handles = library.list("clGetDeviceIDs", platform, cl.DEVICE_TYPE_ALL)
    except ClFailure as error:
      if error.status == "DEVICE_NOT_FOUND": continue
      raise
    found += [facts_of(library, name, handle) for handle in handles]
  order = [*KINDS.values(), "device"]
  return sorted(found, key=lambda facts: order.index(facts.kind))

def chosen(devices: list[ClFacts]) -> list[ClFacts]:
  """Return the devices that OPENCL_DEVICES names, in its order: all of them if it is empty.

  A word of it is a part of the name of a device or platform. Raises DeviceError for a word that fits none.
  """
  words = [word.strip().lower() for word in OPENCL_DEVICES.value.split(",") if word.strip()]
  found: list[ClFacts] = []
  for word in words:
    fitting = [facts for facts in devices if word in facts.title.lower()]
    if not fitting:
      raise DeviceError(f"{OPENCL_DEVICES.key}: no OpenCL device has {word!r} in its name; there are "
                        f"{', '.join(facts.title for facts in devices) or 'none'}")
    found += [facts for facts in fitting if facts not in found]
  return found if words else devices

def find_device(library: ClLibrary, ordinal: int) -> ClFacts:
  """Return device number `ordinal`. Raises DeviceError if there is none, or if it lacks what kernels need."""
  devices = chosen(all_devices(library))
  if not devices:
    raise DeviceError("the OpenCL drivers here have no device; clinfo shows them, and the groups of /dev/dri may be "
                      "missing")
  if ordinal >= len(devices):
    names = ", ".join(f"{k}: {facts.title}" for k, facts in enumerate(devices))
    raise DeviceError(f"there is no OpenCL device number {ordinal}; there are {names}")
  missing = devices[ordinal].missing()
  if missing:
    others = [f"OPENCL:{k}" for k, facts in enumerate(devices) if not facts.missing()]
    raise DeviceError(f"{devices[ordinal].title} {', '.join(missing)}; kernels need that; "
                      f"{'use ' + ', '.join(others) if others else 'use another device'}")
  return devices[ordinal]
