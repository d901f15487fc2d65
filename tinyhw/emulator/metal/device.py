"""Devices of a virtual Metal: buffers, the compiler, pipelines. `CHIPS` has the facts of each GPU."""
from __future__ import annotations
import mmap
import time

from tinyhw.autogen import metal
from tinyhw.emulator.metal.commands import ApiMistake, FenceThing, QueueThing
from tinyhw.emulator.metal.memory import ProgramMemory, SharedMemory
from tinyhw.emulator.metal.objects import ErrorThing, TextThing, Thing, ObjectWorld
from tinyhw.emulator.metal.runtime import ErrorPlace
from tinyhw.emulator.metal.translate import MslKernel, translate
from tinyhw.emulator.metal.words import SourceError
from tinyhw.named_tuple import NamedTuple

LANES = 32
GPU_PAGE, FIRST_ADDRESS = 16 << 10, 0x11_0000_0000    # of the GPU's addresses
LIMITS = (1024, 896, 512)     # threads of a threadgroup that a pipeline may allow: it depends on its registers
LEAST_VERSION = 0x30000       # of the language: kernels are for macOS 13
SHARED_OPTIONS = (metal.STORAGE_SHARED, metal.HAZARDS_UNTRACKED, metal.HAZARDS_TRACKED)

class AppleChip(NamedTuple):
  """The facts of a GPU. Sizes are in bytes. macos: the version of the system, 15 knows math modes."""
  name: str
  families: tuple[str, ...]
  memory_bytes: int
  most_bytes: int
  macos: int

def chip(name: str, count: int, memory: int, macos: int) -> AppleChip:
  """Return the facts of a GPU with the first `count` families of M1 and newer. memory: in GiB, less than a Mac has."""
  families = tuple(f"apple{7 + k}" for k in range(count))
  return AppleChip(name, (*families, "mac2", "common3", "metal3"), memory << 30, memory << 29, macos)

CHIPS = {"apple7": chip("Apple M1", 1, 2, 13), "apple8": chip("Apple M2", 2, 4, 14),
         "apple9": chip("Apple M3", 3, 6, 15)}

class AppleGpu:
  """The hardware. workgroups: that it has executed. is_stuck: it does not go on. faults: (code, text) of the next
  command buffers, which fail. refused: selectors that give nil, as where memory is short."""
  def __init__(self, number: int, chip: AppleChip):
    self.number, self.chip, self.workgroups = number, chip, 0
    self.is_stuck = False
    self.faults: list[tuple[int, str]] = []
    self.refused: set[str] = set()
    self.device: DeviceThing | None = None

  def clock(self) -> float: return time.monotonic()

class DeviceThing(Thing):
  """An MTLDevice."""
  protocols = ("MTLDevice",)

  def __init__(self, world: ObjectWorld, gpu: AppleGpu):
    super().__init__(world)
    self.gpu, self.allocated, self.made = gpu, 0, 0
    self.fences: list[FenceThing] = []
    self.pages: list[ProgramMemory] = []
    self.next_address = FIRST_ADDRESS

  def ended(self) -> None: self.gpu.device = None

  # **** facts ****

  def name(self) -> Thing: return TextThing(self.world, self.gpu.chip.name)
  def supportsFamily_(self, number: int) -> bool:
    return number in (metal.FAMILIES[name] for name in self.gpu.chip.families)
  def hasUnifiedMemory(self) -> bool: return True
  def maxBufferLength(self) -> int: return self.gpu.chip.most_bytes
  def maxThreadgroupMemoryLength(self) -> int: return 32768
  def recommendedMaxWorkingSetSize(self) -> int: return self.gpu.chip.memory_bytes
  def currentAllocatedSize(self) -> int: return self.allocated

  # **** objects ****

  def newCommandQueue(self) -> Thing | None:
    return None if "newCommandQueue" in self.gpu.refused else QueueThing(self)

  def newFence(self) -> Thing | None: return None if "newFence" in self.gpu.refused else FenceThing(self)

  def newBufferWithLength_options_(self, length: int, options: int) -> Thing | None:
    if not length: raise ApiMistake("a buffer of 0 bytes")
    if not self.allows(length, options): return None
    return BufferThing(self, SharedMemory(f"buffer {self.made}", length, self.world.seed))

  def newBufferWithBytesNoCopy_length_options_deallocator_(self, address: int, length: int, options: int, block: int
                                                           ) -> Thing | None:
    if not address or not length or address % mmap.PAGESIZE or length % mmap.PAGESIZE:
      raise ApiMistake(f"memory of the program at {address:#x}, {length} bytes; it is whole pages of {mmap.PAGESIZE}")
    if block: raise ApiMistake("a deallocator is not part of the virtual Metal")
    if not self.allows(length, options): return None
    return BufferThing(self, ProgramMemory(f"buffer {self.made}", address, length, self.pages))

  def allows(self, length: int, options: int) -> bool:
    """Is there memory for one more buffer? Raises ApiMistake for options that kernels of programs cannot want."""
    if options not in SHARED_OPTIONS: raise ApiMistake(f"options {options:#x} of a buffer; programs read shared memory")
    if options != metal.HAZARDS_UNTRACKED: raise ApiMistake("tracked buffers are not part of the virtual Metal")
    self.made += 1
    return length <= self.gpu.chip.most_bytes and "newBuffer" not in self.gpu.refused

  # **** kernels ****

  def newLibraryWithSource_options_error_(self, source: TextThing, options: OptionsThing, error: ErrorPlace
                                          ) -> Thing | None:
    options.check()
    try: return LibraryThing(self, translate(source.text))
    except SourceError as refused:
      error.put(ErrorThing(self.world, metal.COMPILE_FAILURE, refused.message))
      return None

  def newComputePipelineStateWithFunction_error_(self, function: FunctionThing, error: ErrorPlace) -> Thing | None:
    if "newComputePipelineState" in self.gpu.refused:
      error.put(ErrorThing(self.world, 1, "XPC_ERROR_CONNECTION_INTERRUPTED"))
      return None
    return PipelineThing(self, function.kernel)

class BufferThing(Thing):
  """An MTLBuffer."""
  protocols = ("MTLBuffer", "MTLResource")
  def __init__(self, device: DeviceThing, memory: SharedMemory):
    super().__init__(device.world)
    self.device, self.memory, self.address = device, memory, device.next_address
    device.allocated += memory.size
    device.next_address += -(-memory.size // GPU_PAGE) * GPU_PAGE + GPU_PAGE     # no two are adjacent
    self.hold(device)

  def ended(self) -> None:
    self.device.allocated -= self.memory.size
    self.memory.close()

  def contents(self) -> int: return self.memory.address
  def gpuAddress(self) -> int: return self.address
  def length(self) -> int: return self.memory.size

class OptionsThing(Thing):
  """An MTLCompileOptions. A new one has fast math, in both ways of saying it."""
  protocols = ("MTLCompileOptions",)

  def __init__(self, world: ObjectWorld):
    super().__init__(world)
    self.mode, self.functions, self.version = metal.MATH_FAST, metal.FUNCTIONS_FAST, 0

  def respondsToSelector_(self, selector: str) -> bool:
    is_new = selector in ("setMathMode:", "setMathFloatingPointFunctions:")
    return super().respondsToSelector_(selector) and (not is_new or self.world.macos >= 15)

  def setFastMathEnabled_(self, is_fast: bool) -> None:
    self.mode, self.functions = (metal.MATH_FAST, metal.FUNCTIONS_FAST) if is_fast else (metal.MATH_SAFE,
                                                                                        metal.FUNCTIONS_PRECISE)
  def setMathMode_(self, mode: int) -> None:
    if self.world.macos < 15: raise ApiMistake("setMathMode: is of macOS 15; ask respondsToSelector: before")
    self.mode = mode

  def setMathFloatingPointFunctions_(self, functions: int) -> None: self.functions = functions
  def setLanguageVersion_(self, version: int) -> None: self.version = version

  def check(self) -> None:
    """Raise ApiMistake if the compiler would change results of kernels, or not know their language."""
    if self.mode != metal.MATH_SAFE or self.functions != metal.FUNCTIONS_PRECISE:
      raise ApiMistake("fast math is on: NaNs, infinities and quotients are not float32's; switch both parts off")
    if self.version not in metal.VERSIONS or self.version < LEAST_VERSION:
      raise ApiMistake(f"language version {self.version:#x}; kernels are for 3.0 and newer")

class LibraryThing(Thing):
  """An MTLLibrary."""
  protocols = ("MTLLibrary",)
  def __init__(self, device: DeviceThing, kernels: dict[str, MslKernel]):
    super().__init__(device.world)
    self.kernels = kernels
    self.hold(device)

  def newFunctionWithName_(self, name: TextThing) -> Thing | None:
    return FunctionThing(self, self.kernels[name.text]) if name.text in self.kernels else None

class FunctionThing(Thing):
  """An MTLFunction."""
  protocols = ("MTLFunction",)
  def __init__(self, library: LibraryThing, kernel: MslKernel):
    super().__init__(library.world)
    self.kernel = kernel
    self.hold(library)

class PipelineThing(Thing):
  """An MTLComputePipelineState. most: threads of a threadgroup."""
  protocols = ("MTLComputePipelineState",)
  def __init__(self, device: DeviceThing, kernel: MslKernel):
    super().__init__(device.world)
    self.kernel, self.most = kernel, device.world.seed.choice(LIMITS)
    self.hold(device)

  def maxTotalThreadsPerThreadgroup(self) -> int: return self.most
  def threadExecutionWidth(self) -> int: return LANES
