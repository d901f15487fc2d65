"""A stand-in for wgpu-native as far as adapters go: names, limits, features; a device is refused.

What a device does is tested on a real adapter (adapter.py), where there is one.
"""
from __future__ import annotations
import ctypes
from typing import Any

from tinyhw.autogen import webgpu
from tinyhw.drivers.webgpu.library import CALLS, PREFIX

LIMITS = {"maxComputeInvocationsPerWorkgroup": 256, "maxComputeWorkgroupSizeX": 256,
          "maxComputeWorkgroupStorageSize": 32 << 10, "maxStorageBuffersPerShaderStage": 10,
          "maxBufferSize": 1 << 30, "maxStorageBufferBindingSize": 128 << 20, "maxUniformBufferBindingSize": 64 << 10,
          "minStorageBufferOffsetAlignment": 256, "minUniformBufferOffsetAlignment": 256,
          "maxComputeWorkgroupsPerDimension": 65535}

class Adapter:
  """An adapter. kind: 1 discrete, 2 integrated, 3 processor. limits: by the names of the header."""
  def __init__(self, name: str = "Card", kind: int = 1, backend: int = 6, timestamps: bool = True, **limits: int):
    self.name, self.kind, self.backend, self.limits = ctypes.create_string_buffer(name.encode()), kind, backend, limits
    self.features = (ctypes.c_uint32 * 1)(webgpu.FEATURE_TIMESTAMP_QUERY if timestamps else 1)

class Entry:
  """A function as ctypes has it: argument types are set and checked."""
  restype: Any = None
  argtypes: Any = ()
  def __init__(self, fake: FakeWgpu, name: str): self.fake, self.name = fake, name
  def __call__(self, *arguments: Any) -> Any:
    assert len(arguments) == len(self.argtypes), self.name
    for kind, value in zip(self.argtypes, arguments): kind.from_param(value)
    return getattr(self.fake, self.name)(*arguments)

class FakeWgpu:
  """held: handles of adapters that were given out and not released. without: functions that are missing."""
  def __init__(self, *adapters: Adapter, version: int = 29 << 24, without: tuple[str, ...] = ()):
    self.all, self.version, self.held = adapters, version, list[int]()
    for name in CALLS:
      if name not in without: setattr(self, PREFIX + name, Entry(self, name))

  def GetVersion(self) -> int: return self.version
  def CreateInstance(self, descriptor: Any) -> int: return 1

  def InstanceEnumerateAdapters(self, instance: int, options: int, place: Any) -> int:
    if place is not None:
      for k in range(len(self.all)): place[k] = k + 100
      self.held += [k + 100 for k in range(len(self.all))]
    return len(self.all)

  def AdapterRelease(self, handle: int) -> None: self.held.remove(handle)
  def AdapterInfoFreeMembers(self, info: Any) -> None: pass
  def SupportedFeaturesFreeMembers(self, features: Any) -> None: pass

  def AdapterGetInfo(self, handle: int, place: int) -> int:
    info, adapter = webgpu.AdapterInfo.from_address(place), self.all[handle - 100]
    info.device = webgpu.StringView(ctypes.addressof(adapter.name), len(adapter.name.value))
    info.backendType, info.adapterType = adapter.backend, adapter.kind
    return 1

  def AdapterGetLimits(self, handle: int, place: int) -> int:
    limits = webgpu.Limits.from_address(place)
    for name, value in (LIMITS | self.all[handle - 100].limits).items(): setattr(limits, name, value)
    return 1

  def AdapterGetFeatures(self, handle: int, place: int) -> None:
    features, own = webgpu.SupportedFeatures.from_address(place), self.all[handle - 100].features
    features.featureCount, features.features = len(own), ctypes.addressof(own)

  def AdapterRequestDevice(self, handle: int, descriptor: int, info: Any) -> Any:
    message = ctypes.create_string_buffer(b"no more devices")
    view = webgpu.StringView(ctypes.addressof(message), len(message.value))
    webgpu.RequestDeviceCallback(info.callback)(3, None, view, None, None)
    return webgpu.Future(1)
