"""Structures and numbers of WebGPU's C interface, by the names of its header without WGPU, as wgpu-native has them.

Structures are passed by address, except callbacks' infos and texts, which are passed by value. A structure is the same
in all versions of VERSIONS.

Source: `webgpu.h` and `wgpu.h` of wgpu-native 29.0.1, by hand.
"""
from __future__ import annotations
import ctypes

VERSIONS = (29,)   # of wgpu-native, whose structures these are: the highest byte of wgpuGetVersion

pointer, size, u32, u64 = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint32, ctypes.c_uint64
UNDEFINED_U32, UNDEFINED_U64 = 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF   # a limit that is not asked for

class StringView(ctypes.Structure):
  """A text of `length` bytes, without a zero at its end."""
  _fields_ = (("data", pointer), ("length", size))

class ChainedStruct(ctypes.Structure): _fields_ = (("next", pointer), ("sType", u32))
class Future(ctypes.Structure): _fields_ = (("id", u64),)

class InstanceDescriptor(ctypes.Structure):
  _fields_ = (("nextInChain", pointer), ("requiredFeatureCount", size), ("requiredFeatures", pointer),
              ("requiredLimits", pointer))

class InstanceEnumerateAdapterOptions(ctypes.Structure): _fields_ = (("nextInChain", pointer), ("backends", u64))

class AdapterInfo(ctypes.Structure):
  _fields_ = (("nextInChain", pointer), ("vendor", StringView), ("architecture", StringView), ("device", StringView),
              ("description", StringView), ("backendType", u32), ("adapterType", u32), ("vendorID", u32),
              ("deviceID", u32), ("subgroupMinSize", u32), ("subgroupMaxSize", u32))

class SupportedFeatures(ctypes.Structure): _fields_ = (("featureCount", size), ("features", pointer))

class Limits(ctypes.Structure):
  _fields_ = (
    ("nextInChain", pointer), ("maxTextureDimension1D", u32), ("maxTextureDimension2D", u32),
    ("maxTextureDimension3D", u32), ("maxTextureArrayLayers", u32), ("maxBindGroups", u32),
    ("maxBindGroupsPlusVertexBuffers", u32), ("maxBindingsPerBindGroup", u32),
    ("maxDynamicUniformBuffersPerPipelineLayout", u32), ("maxDynamicStorageBuffersPerPipelineLayout", u32),
    ("maxSampledTexturesPerShaderStage", u32), ("maxSamplersPerShaderStage", u32),
    ("maxStorageBuffersPerShaderStage", u32), ("maxStorageTexturesPerShaderStage", u32),
    ("maxUniformBuffersPerShaderStage", u32), ("maxUniformBufferBindingSize", u64),
    ("maxStorageBufferBindingSize", u64), ("minUniformBufferOffsetAlignment", u32),
    ("minStorageBufferOffsetAlignment", u32), ("maxVertexBuffers", u32), ("maxBufferSize", u64),
    ("maxVertexAttributes", u32), ("maxVertexBufferArrayStride", u32), ("maxInterStageShaderVariables", u32),
    ("maxColorAttachments", u32), ("maxColorAttachmentBytesPerSample", u32), ("maxComputeWorkgroupStorageSize", u32),
    ("maxComputeInvocationsPerWorkgroup", u32), ("maxComputeWorkgroupSizeX", u32), ("maxComputeWorkgroupSizeY", u32),
    ("maxComputeWorkgroupSizeZ", u32), ("maxComputeWorkgroupsPerDimension", u32), ("maxImmediateSize", u32))

class QueueDescriptor(ctypes.Structure): _fields_ = (("nextInChain", pointer), ("label", StringView))

class CallbackInfo(ctypes.Structure):
  """RequestDeviceCallbackInfo, DeviceLostCallbackInfo, BufferMapCallbackInfo, QueueWorkDoneCallbackInfo."""
  _fields_ = (("nextInChain", pointer), ("mode", u32), ("callback", pointer), ("userdata1", pointer),
              ("userdata2", pointer))

class UncapturedErrorCallbackInfo(ctypes.Structure):
  _fields_ = (("nextInChain", pointer), ("callback", pointer), ("userdata1", pointer), ("userdata2", pointer))

class DeviceDescriptor(ctypes.Structure):
  _fields_ = (("nextInChain", pointer), ("label", StringView), ("requiredFeatureCount", size),
              ("requiredFeatures", pointer), ("requiredLimits", pointer), ("defaultQueue", QueueDescriptor),
              ("deviceLostCallbackInfo", CallbackInfo), ("uncapturedErrorCallbackInfo", UncapturedErrorCallbackInfo))

class BufferDescriptor(ctypes.Structure):
  _fields_ = (("nextInChain", pointer), ("label", StringView), ("usage", u64), ("size", u64),
              ("mappedAtCreation", u32))

class ShaderSourceWGSL(ctypes.Structure): _fields_ = (("chain", ChainedStruct), ("code", StringView))
class ShaderModuleDescriptor(ctypes.Structure): _fields_ = (("nextInChain", pointer), ("label", StringView))

class BufferBindingLayout(ctypes.Structure):
  _fields_ = (("nextInChain", pointer), ("type", u32), ("hasDynamicOffset", u32), ("minBindingSize", u64))

class SamplerBindingLayout(ctypes.Structure): _fields_ = (("nextInChain", pointer), ("type", u32))

class TextureBindingLayout(ctypes.Structure):
  _fields_ = (("nextInChain", pointer), ("sampleType", u32), ("viewDimension", u32), ("multisampled", u32))

class StorageTextureBindingLayout(ctypes.Structure):
  _fields_ = (("nextInChain", pointer), ("access", u32), ("format", u32), ("viewDimension", u32))

class BindGroupLayoutEntry(ctypes.Structure):
  _fields_ = (("nextInChain", pointer), ("binding", u32), ("visibility", u64), ("bindingArraySize", u32),
              ("buffer", BufferBindingLayout), ("sampler", SamplerBindingLayout), ("texture", TextureBindingLayout),
              ("storageTexture", StorageTextureBindingLayout))

class BindGroupLayoutDescriptor(ctypes.Structure):
  _fields_ = (("nextInChain", pointer), ("label", StringView), ("entryCount", size), ("entries", pointer))

class PipelineLayoutDescriptor(ctypes.Structure):
  _fields_ = (("nextInChain", pointer), ("label", StringView), ("bindGroupLayoutCount", size),
              ("bindGroupLayouts", pointer), ("immediateSize", u32))

class ComputeState(ctypes.Structure):
  _fields_ = (("nextInChain", pointer), ("module", pointer), ("entryPoint", StringView), ("constantCount", size),
              ("constants", pointer))

class ComputePipelineDescriptor(ctypes.Structure):
  _fields_ = (("nextInChain", pointer), ("label", StringView), ("layout", pointer), ("compute", ComputeState))

class BindGroupEntry(ctypes.Structure):
  _fields_ = (("nextInChain", pointer), ("binding", u32), ("buffer", pointer), ("offset", u64), ("size", u64),
              ("sampler", pointer), ("textureView", pointer))

class BindGroupDescriptor(ctypes.Structure):
  _fields_ = (("nextInChain", pointer), ("label", StringView), ("layout", pointer), ("entryCount", size),
              ("entries", pointer))

class PassTimestampWrites(ctypes.Structure):
  _fields_ = (("nextInChain", pointer), ("querySet", pointer), ("beginningOfPassWriteIndex", u32),
              ("endOfPassWriteIndex", u32))

class ComputePassDescriptor(ctypes.Structure):
  _fields_ = (("nextInChain", pointer), ("label", StringView), ("timestampWrites", pointer))

class QuerySetDescriptor(ctypes.Structure):
  _fields_ = (("nextInChain", pointer), ("label", StringView), ("type", u32), ("count", u32))

STATUS_SUCCESS = 1   # Status, and those of callbacks: RequestDeviceStatus, MapAsyncStatus, QueueWorkDoneStatus
CALLBACK_ALLOW_SPONTANEOUS = 3                                            # CallbackMode
ADAPTER_TYPES = {1: "discrete GPU", 2: "integrated GPU", 3: "processor", 4: "unknown"}   # AdapterType
BACKENDS = {1: "Null", 2: "WebGPU", 3: "D3D11", 4: "D3D12", 5: "Metal", 6: "Vulkan", 7: "OpenGL", 8: "OpenGLES"}
BACKEND_PRIMARY = 1 << 0 | 1 << 2 | 1 << 3 | 1 << 5                       # InstanceBackend: all but OpenGL
FEATURE_TIMESTAMP_QUERY = 0x9                                             # FeatureName
SHADER_SOURCE_WGSL = 0x2                                                  # SType
BINDING_UNIFORM, BINDING_STORAGE = 0x2, 0x3                               # BufferBindingType
STAGE_COMPUTE = 0x4                                                       # ShaderStage
USAGE_MAP_READ, USAGE_COPY_SRC, USAGE_COPY_DST = 0x1, 0x4, 0x8            # BufferUsage
USAGE_UNIFORM, USAGE_STORAGE, USAGE_QUERY_RESOLVE = 0x40, 0x80, 0x200
MAP_READ = 0x1                                                            # MapMode
QUERY_TIMESTAMP = 0x2                                                     # QueryType
ERROR_TYPES = {1: "no error", 2: "validation", 3: "out of memory", 4: "internal", 5: "unknown"}   # ErrorType
LOST_DESTROYED = 0x2                                                      # DeviceLostReason

# the callbacks
RequestDeviceCallback = ctypes.CFUNCTYPE(None, u32, pointer, StringView, pointer, pointer)
DeviceCallback = ctypes.CFUNCTYPE(None, pointer, u32, StringView, pointer, pointer)   # of losses and of errors
StatusCallback = ctypes.CFUNCTYPE(None, u32, StringView, pointer, pointer)            # of maps and of submitted work
