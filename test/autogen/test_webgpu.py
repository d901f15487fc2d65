"""Structures and numbers of WebGPU against a copy of some lines of its header, and against the header of the Python
package wgpu where it is there."""
import ctypes
import importlib.util
import re
from pathlib import Path

import pytest

from tinyhw.autogen import webgpu

# From webgpu.h and wgpu.h of wgpu-native 29.0.1, without comments
HEADER = """
typedef struct WGPUStringView { char const * data; size_t length; } WGPUStringView;
typedef struct WGPUAdapterInfo { WGPUChainedStruct * nextInChain; WGPUStringView vendor; WGPUStringView architecture;
  WGPUStringView device; WGPUStringView description; WGPUBackendType backendType; WGPUAdapterType adapterType;
  uint32_t vendorID; uint32_t deviceID; uint32_t subgroupMinSize; uint32_t subgroupMaxSize; } WGPUAdapterInfo;
typedef struct WGPUBufferDescriptor { WGPUChainedStruct * nextInChain; WGPUStringView label; WGPUBufferUsage usage;
  uint64_t size; WGPUBool mappedAtCreation; } WGPUBufferDescriptor;
typedef struct WGPUBindGroupEntry { WGPUChainedStruct * nextInChain; uint32_t binding; WGPUBuffer buffer;
  uint64_t offset; uint64_t size; WGPUSampler sampler; WGPUTextureView textureView; } WGPUBindGroupEntry;
typedef struct WGPUComputeState { WGPUChainedStruct * nextInChain; WGPUShaderModule module;
  WGPUStringView entryPoint; size_t constantCount; WGPUConstantEntry const * constants; } WGPUComputeState;
WGPUCallbackMode_AllowSpontaneous = 0x00000003,
WGPUFeatureName_TimestampQuery = 0x00000009,
WGPUSType_ShaderSourceWGSL = 0x00000002,
static const WGPUBufferUsage WGPUBufferUsage_Storage = 0x0000000000000080;
static const WGPUBufferUsage WGPUBufferUsage_QueryResolve = 0x0000000000000200;
WGPUBufferBindingType_Uniform = 0x00000002,
"""
HANDLES = "Buffer Sampler TextureView ShaderModule PipelineLayout BindGroupLayout QuerySet".split()
FLAGS = "BufferUsage ShaderStage MapMode InstanceBackend".split()
SIZES = {"size_t": 8, "uint32_t": 4, "uint64_t": 8, **dict.fromkeys(map("WGPU{}".format, HANDLES), 8),
         **dict.fromkeys(map("WGPU{}".format, FLAGS), 8)}
SAME = {name: "CallbackInfo" for name in (
  "RequestDeviceCallbackInfo", "DeviceLostCallbackInfo", "BufferMapCallbackInfo", "QueueWorkDoneCallbackInfo")}
NUMBERS = {"CALLBACK_ALLOW_SPONTANEOUS": "CallbackMode_AllowSpontaneous", "FEATURE_TIMESTAMP_QUERY":
           "FeatureName_TimestampQuery", "SHADER_SOURCE_WGSL": "SType_ShaderSourceWGSL", "BINDING_UNIFORM":
           "BufferBindingType_Uniform", "BINDING_STORAGE": "BufferBindingType_Storage", "STAGE_COMPUTE":
           "ShaderStage_Compute", "USAGE_MAP_READ": "BufferUsage_MapRead", "USAGE_COPY_SRC": "BufferUsage_CopySrc",
           "USAGE_COPY_DST": "BufferUsage_CopyDst", "USAGE_UNIFORM": "BufferUsage_Uniform", "USAGE_STORAGE":
           "BufferUsage_Storage", "USAGE_QUERY_RESOLVE": "BufferUsage_QueryResolve", "MAP_READ": "MapMode_Read",
           "QUERY_TIMESTAMP": "QueryType_Timestamp", "LOST_DESTROYED": "DeviceLostReason_Destroyed"}

def structures() -> dict[str, type[ctypes.Structure]]:
  return {name: value for name, value in vars(webgpu).items()
          if isinstance(value, type) and issubclass(value, ctypes.Structure)}

def size_of(kind: str) -> int:
  """Bytes of a C type: structures by ours, enumerations and WGPUBool 4."""
  if kind.endswith("*") or kind.endswith("Callback"): return 8
  name = SAME.get(kind.removeprefix("WGPU"), kind.removeprefix("WGPU"))
  return ctypes.sizeof(structures()[name]) if name in structures() else SIZES.get(kind, 4)

def compare(header: str) -> int:
  """Assert that structures of a header are ours; return how many there are."""
  found = 0
  for name, body in re.findall(r"typedef struct WGPU(\w+)\s*\{(.*?)\}", header, re.DOTALL):
    ours = structures().get(SAME.get(name, name))
    if ours is None: continue
    fields = [re.sub(r"\s*\*\s*", "* ", field).rsplit(None, 1) for field in body.split(";") if field.strip()]
    wanted = [(word, size_of(kind.removeprefix("struct ").replace(" const", "").strip())) for kind, word in fields]
    assert [(word, getattr(ours, word).size) for word, *_ in ours._fields_] == wanted, name
    found += 1
  return found

def numbers(header: str) -> dict[str, int]:
  return {name: int(value, 16) for name, value in re.findall(r"WGPU(\w+_\w+) = (0x\w+)[,;]", header)}

def test_the_copied_lines() -> None:
  assert compare(HEADER) == 5
  known = numbers(HEADER)
  assert len(known) == 6
  assert all(getattr(webgpu, ours) == known[name] for ours, name in NUMBERS.items() if name in known)

def test_all_of_the_header() -> None:
  spec = importlib.util.find_spec("wgpu")
  if spec is None: pytest.skip("the Python package wgpu, which has the header, is not installed")
  text = Path(next(iter(spec.submodule_search_locations or ())), "resources", "combined_header.h").read_text("utf-8")
  assert compare(text) >= len(structures()) - 1
  known = numbers(text)
  assert {ours: getattr(webgpu, ours) for ours in NUMBERS} == {ours: known[name] for ours, name in NUMBERS.items()}
