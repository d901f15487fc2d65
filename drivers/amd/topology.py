"""AMD's GPUs in sysfs: their kinds, and the sizes that the kernel requires for the memory of their queues.

Only reads. Sources: Linux, uapi/linux/kfd_sysfs.h and drivers/gpu/drm/amd/amdkfd/kfd_queue.c (the formulas of
`queue_sizes`).
"""
from __future__ import annotations
import errno
from collections.abc import Mapping

from tinyhw.config import EMULATE
from tinyhw.data_class import dataclass
from tinyhw.drivers.linux.files import PAGE, HostFiles
from tinyhw.errors import DeviceError
from tinyhw.named_tuple import NamedTuple

KFD = "/dev/kfd"
NODES = "/sys/devices/virtual/kfd/kfd/topology/nodes"
HEAP_VRAM_PUBLIC, HEAP_VRAM_PRIVATE = 1, 2  # mem_banks: heap_type
MAX_LANES = 1024                            # of a workgroup

@dataclass(frozen=True)
class Chip:
  """A kind of GPU that this driver knows.

  gc: the generation of autogen/amd/gc.py. sdma: the generation of autogen/amd/sdma.py. packets: 9 or 10 of pm4.py.
  user_sgprs: the scalar registers that are set before a kernel starts; the first two hold the address of its arguments.
  scratch_unit: the unit of scratch sizes, in bytes. lds_bytes: shared memory of a workgroup. lds_step: its allocation
  unit, a multiple of 512, the unit of the register.
  """
  arch: str
  gc: int
  sdma: int
  packets: int
  waves: tuple[int, ...]
  user_sgprs: int
  scratch_unit: int
  lds_bytes: int = 65536
  lds_step: int = 512
  saved_lds_bytes: int = 65536              # of a compute unit, in the save area of waves
  vgpr_bytes: int = 0x60000                 # of a compute unit

# gfx_target_version -> kind. The workgroup's number follows the user SGPRs on 9 and 11. On gfx1100 their total must be
# 16.
CHIPS = {
  90402: Chip("gfx942", gc=9, sdma=4, packets=9, waves=(64,), user_sgprs=2, scratch_unit=1024, vgpr_bytes=0x80000),
  # guess: LDS_SIZE counts 512 bytes, as on other chips. LLVM says that memory is allocated in steps of 1280
  90500: Chip("gfx950", gc=9, sdma=4, packets=9, waves=(64,), user_sgprs=2, scratch_unit=1024, vgpr_bytes=0x80000,
              lds_bytes=160 << 10, lds_step=2560,
              saved_lds_bytes=160 << 10),
  110000: Chip("gfx1100", gc=11, sdma=6, packets=10, waves=(32, 64), user_sgprs=15, scratch_unit=256),
  120000: Chip("gfx1200", gc=12, sdma=7, packets=10, waves=(32, 64), user_sgprs=2, scratch_unit=256),
  120001: Chip("gfx1201", gc=12, sdma=7, packets=10, waves=(32, 64), user_sgprs=2, scratch_unit=256),
}
UNKNOWN = Chip("unknown", gc=0, sdma=0, packets=0, waves=(), user_sgprs=0, scratch_unit=1)
NEEDED = ("simd_count", "simd_per_cu", "array_count", "simd_arrays_per_engine", "drm_render_minor")  # properties
XCCS = (1, 2, 4, 8)                         # counts of compute dies that their barrier can handle

class QueueSizes(NamedTuple):
  """Bytes of a compute queue: its control stack, the saved waves of one XCC, and the whole save area."""
  control_stack: int
  save: int
  total: int

@dataclass(frozen=True)
class Gpu:
  """A GPU, as its node of the topology describes it.

  values: the node's properties. caches: bytes of L1, L2, L3. vram_bytes: all of its memory. visible_bytes: the part
  that the processor can see.
  """
  chip: Chip
  node: int
  gpu_id: int
  values: Mapping[str, int]
  vram_bytes: int
  visible_bytes: int
  caches: tuple[int, ...] = ()

  @property
  def xccs(self) -> int: return max(1, self.values.get("num_xcc", 1))
  @property
  def compute_units(self) -> int:
    """The compute units of one XCC."""
    return self.values["simd_count"] // self.values["simd_per_cu"] // self.xccs
  @property
  def shader_engines(self) -> int:
    """The shader engines of one XCC."""
    return max(1, self.values["array_count"] // self.values["simd_arrays_per_engine"] // self.xccs)
  @property
  def render_node(self) -> str: return f"/dev/dri/renderD{self.values['drm_render_minor']}"

  def queue_sizes(self) -> QueueSizes:
    """Return the sizes that the kernel requires, by its own formulas. Newer kernels report two of the numbers."""
    units, gfx9 = self.compute_units, self.chip.gc == 9
    # guess: with several dies, kernels count the arrays of all of them. On existing chips the other bound hides this
    waves = (min(units * 40, self.values["array_count"] // self.values["simd_arrays_per_engine"] * 512) if gfx9
             else units * 32)
    control = _aligned(40 + waves * (8 if gfx9 else 12) + 8, PAGE)
    save = control + _aligned(units * (self.chip.vgpr_bytes + 0x4000 + self.chip.saved_lds_bytes + 0x1000), PAGE)
    control, save = self.values.get("ctl_stack_size") or control, self.values.get("cwsr_size") or save
    return QueueSizes(control, save, _aligned((save + _aligned(waves * 32, 64)) * self.xccs, PAGE))

def _aligned(size: int, step: int) -> int: return -(-size // step) * step

def read_properties(text: str) -> dict[str, int]:
  """Parse lines "name value" with numbers."""
  return {words[0]: int(words[1]) for line in text.splitlines() if len(words := line.split()) == 2
          and words[1].isdecimal()}

def _folder(box: HostFiles, path: str) -> list[dict[str, int]]:
  """Return the properties of path/0, path/1, ...; nothing if there is no such folder."""
  if not box.exists(path): return []
  return [read_properties(box.read_text(f"{path}/{name}/properties")) for name in sorted(box.listdir(path), key=int)]

def gpus(box: HostFiles) -> list[Gpu]:
  """Return the GPUs that this process may see, in the topology's order, including those of unknown kind.

  Raises OSError if the topology cannot be read.
  """
  found = []
  for name in sorted(box.listdir(NODES), key=int) if box.exists(NODES) else ():
    path = f"{NODES}/{name}"
    try: gpu_id, text = int(box.read_text(f"{path}/gpu_id")), box.read_text(f"{path}/properties")
    except OSError as error:
      if error.errno in (errno.EPERM, errno.EACCES): continue  # a container hides the GPUs of others in this way
      raise
    if gpu_id == 0: continue                                   # a processor
    values, banks = read_properties(text), _folder(box, f"{path}/mem_banks")
    vram = {kind: sum(b.get("size_in_bytes", 0) for b in banks if b.get("heap_type") == kind)
            for kind in (HEAP_VRAM_PUBLIC, HEAP_VRAM_PRIVATE)}
    chip = CHIPS.get(values.get("gfx_target_version", 0), UNKNOWN)
    levels = [max((c.get("size", 0) for c in _folder(box, f"{path}/caches") if c.get("level") == level),
                  default=0) << 10 for level in (1, 2, 3)]
    found.append(Gpu(chip, int(name), gpu_id, values, sum(vram.values()), vram[HEAP_VRAM_PUBLIC], tuple(levels)))
  return found

def version_name(version: int) -> str:
  """Return gfx1100 for 110000, as compilers write gfx_target_version."""
  return f"gfx{version // 10000}{version // 100 % 100:x}{version % 100:x}"

def choose(box: HostFiles, ordinal: int) -> Gpu:
  """Return GPU number `ordinal`.

  Raises DeviceError, which tells why there is none, or why it cannot be driven.
  """
  if not box.exists(KFD):
    if EMULATE:
      raise DeviceError(f"EMULATE={EMULATE} has no AMD GPU; name one, such as EMULATE=gfx1100, or use the device NV")
    raise DeviceError(f"there is no {KFD}: the kernel's amdgpu driver is not loaded or knows no GPU that computes; "
                      f"load it (modprobe amdgpu), or in "
                      "a container pass the devices on (--device=/dev/kfd --device=/dev/dri)")
  try: found = gpus(box)
  except OSError as error:
    raise DeviceError(f"{NODES} cannot be read ({error.strerror}); let the container or service see /sys") from error
  if ordinal >= len(found):
    if not found:
      raise DeviceError(f"{NODES} shows no GPU that this process may use; let the container have one, or use DEV=CPU")
    raise DeviceError(f"there {'is 1 GPU' if len(found) == 1 else f'are {len(found)} GPUs'}, and number {ordinal} is "
                      f"none of them")
  gpu = found[ordinal]
  if gpu.chip is UNKNOWN:
    raise DeviceError(f"the GPU is a {version_name(gpu.values.get('gfx_target_version', 0))}, which has no driver "
                      f"here; there are "
                      f"{', '.join(chip.arch for chip in CHIPS.values())}")
  missing = [name for name in NEEDED if not gpu.values.get(name)]
  if missing: raise DeviceError(f"{NODES}/{gpu.node}/properties does not tell {', '.join(missing)}; update the kernel")
  if gpu.xccs not in XCCS:
    raise DeviceError(f"the GPU shows {gpu.xccs} compute dies as one, and the driver knows "
                      f"{', '.join(map(str, XCCS))}; change its compute partition "
                      "(current_compute_partition in sysfs) to CPX")
  if not box.exists(gpu.render_node):
    raise DeviceError(f"there is no {gpu.render_node}, which belongs to the GPU; in a container pass it on "
                      f"(--device=/dev/dri)")
  return gpu
