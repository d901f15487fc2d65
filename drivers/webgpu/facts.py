"""Adapters of wgpu-native, and the facts about them on which kernels depend.

The order is that of WEBGPU:0, WEBGPU:1 and so on: discrete GPUs, then integrated ones, then processors.
WEBGPU_DEVICES chooses by names.
"""
from __future__ import annotations
import ctypes

from tinyhw.autogen import webgpu
from tinyhw.config import WEBGPU_DEVICES
from tinyhw.drivers.webgpu.library import WgpuLibrary, text_of
from tinyhw.errors import DeviceError
from tinyhw.named_tuple import NamedTuple

LEAST_LANES = 64        # of a workgroup
LEAST_BYTES = 16 << 10  # of shared memory
LEAST_BUFFERS = 8       # of a kernel
# Iterations after which a driver ends all loops of a lane, without a word, by a part of the adapter's name. Source:
# Mesa, lp_bld_limits.h, LP_MAX_TGSI_LOOP_ITERATIONS; seen with Mesa 22.3.6
LOOP_LIMITS = {"llvmpipe": 65535}
ORDER = (*webgpu.ADAPTER_TYPES.values(),)
DRIVERS = ("no adapter is there: wgpu-native found no driver of Vulkan, Metal or D3D12; install the GPU's driver, or a "
           "software Vulkan (Debian: apt install mesa-vulkan-drivers)")

class WgpuFacts(NamedTuple):
  """An adapter, as the library describes it. Sizes are in bytes. groups: of a dimension of a grid."""
  handle: int
  name: str
  backend: str
  kind: str
  driver: str
  most_lanes: int
  local_bytes: int
  most_buffers: int
  most_bytes: int
  binding_bytes: int
  uniform_bytes: int
  alignment: int
  uniform_alignment: int
  groups: int
  features: frozenset[int]

  @property
  def arch(self) -> str:
    """The architecture of its kernels: "wgsl" and features, as codegen/render/targets.py reads them."""
    found = [most for word, most in LOOP_LIMITS.items() if word in self.name]
    return f"wgsl:loops{found[0]}" if found else "wgsl"

  @property
  def title(self) -> str: return f"{self.name} by {self.backend}"

  def missing(self) -> list[str]:
    """Return what kernels need and the adapter does not have."""
    wanted = {
      f"allows {self.most_lanes} lanes in a workgroup, not {LEAST_LANES}": self.most_lanes >= LEAST_LANES,
      f"has {self.local_bytes} bytes of shared memory, not {LEAST_BYTES}": self.local_bytes >= LEAST_BYTES,
      f"binds {self.most_buffers} buffers to a kernel, not {LEAST_BUFFERS}": self.most_buffers >= LEAST_BUFFERS,
    }
    return [words for words, is_met in wanted.items() if not is_met]

  @property
  def has_timestamps(self) -> bool: return webgpu.FEATURE_TIMESTAMP_QUERY in self.features

def limits_of(library: WgpuLibrary, handle: int) -> webgpu.Limits:
  limits = webgpu.Limits()
  library.call("AdapterGetLimits", handle, ctypes.addressof(limits))
  return limits

def facts_of(library: WgpuLibrary, handle: int) -> WgpuFacts:
  """Ask an adapter."""
  info, features, limits = webgpu.AdapterInfo(), webgpu.SupportedFeatures(), limits_of(library, handle)
  library.call("AdapterGetInfo", handle, ctypes.addressof(info))
  library.call("AdapterGetFeatures", handle, ctypes.addressof(features))
  numbers = (ctypes.c_uint32 * features.featureCount).from_address(features.features) if features.featureCount else ()
  found = WgpuFacts(
    handle, text_of(info.device) or "unnamed adapter", webgpu.BACKENDS.get(info.backendType, "unknown"),
    webgpu.ADAPTER_TYPES.get(info.adapterType, "unknown"), text_of(info.description),
    most_lanes=min(limits.maxComputeInvocationsPerWorkgroup, limits.maxComputeWorkgroupSizeX),
    local_bytes=limits.maxComputeWorkgroupStorageSize, most_buffers=limits.maxStorageBuffersPerShaderStage,
    most_bytes=limits.maxBufferSize, binding_bytes=limits.maxStorageBufferBindingSize,
    uniform_bytes=limits.maxUniformBufferBindingSize, alignment=limits.minStorageBufferOffsetAlignment,
    uniform_alignment=limits.minUniformBufferOffsetAlignment, groups=limits.maxComputeWorkgroupsPerDimension,
    features=frozenset(numbers))
  library.call("AdapterInfoFreeMembers", info)
  library.call("SupportedFeaturesFreeMembers", features)
  return found

def all_adapters(library: WgpuLibrary) -> list[WgpuFacts]:
  """Return the adapters, whose handles the caller releases. Raises DeviceError if there is none."""
  found = [facts_of(library, handle) for handle in library.adapters()]
  if not found: raise DeviceError(DRIVERS)
  return sorted(found, key=lambda facts: ORDER.index(facts.kind))

def chosen(adapters: list[WgpuFacts]) -> list[WgpuFacts]:
  """Return the adapters that WEBGPU_DEVICES names, in its order: all of them if it is empty.

  A word of it is a part of the name of an adapter or of its backend. A word that is there twice gives its adapters
  twice: each is a device of its own. Raises DeviceError for a word that fits none.
  """
  words = [word.strip().lower() for word in WEBGPU_DEVICES.value.split(",") if word.strip()]
  found: list[WgpuFacts] = []
  for word in words:
    fitting = [facts for facts in adapters if word in facts.title.lower()]
    if not fitting:
      raise DeviceError(f"{WEBGPU_DEVICES.key}: no adapter has {word!r} in its name; there are "
                        f"{', '.join(facts.title for facts in adapters)}")
    found += fitting
  return found if words else adapters

def find_adapter(library: WgpuLibrary, ordinal: int) -> WgpuFacts:
  """Return adapter number `ordinal`; the caller releases its handle. Raises DeviceError if there is none, or if it
  lacks what kernels need."""
  adapters = all_adapters(library)
  found: WgpuFacts | None = None
  try:
    names = chosen(adapters)
    if ordinal >= len(names):
      words = ", ".join(f"{k}: {facts.title}" for k, facts in enumerate(names))
      raise DeviceError(f"there is no WebGPU adapter number {ordinal}; there are {words}")
    if missing := names[ordinal].missing():
      raise DeviceError(f"{names[ordinal].title} {', '.join(missing)}; kernels need that; use another adapter")
    found = names[ordinal]
    return found
  finally:
    for facts in adapters:
      if found is None or facts.handle != found.handle: library.call("AdapterRelease", facts.handle)
