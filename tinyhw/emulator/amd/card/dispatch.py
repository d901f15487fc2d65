"""Execution of grids: from compute registers (or a kernel descriptor) to the start of waves, and workgroups in a seeded
random order.

State that the hardware would misread or hang on is a PacketError before the first wave: registers that were never set,
sizes that a compute unit does not have, counts that do not fit together. Several workgroups are resident at once and
take turns, so a program cannot rely on their order.
"""
from __future__ import annotations
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from tinyhw.autogen.fields import Register
from tinyhw.emulator.amd import unused
from tinyhw.emulator.amd.registers import DispatchRegisters
from tinyhw.emulator.checks.races import Races, mark
from tinyhw.emulator.errors import EmulatorError, MissingHazard, PacketError, PageFault
from tinyhw.emulator.memory.memory import INSTRUCTION

if TYPE_CHECKING:
  from tinyhw.emulator.amd.card.gpu import GpuContext
  from tinyhw.emulator.amd.card.port import Xcc
  from tinyhw.emulator.amd.card.queues import HardwareQueue
  from tinyhw.emulator.amd.chips import ChipParameters

RESIDENT = 8             # workgroups of a dispatch that take turns
WINDOW = 64              # workgroups not started yet, of which the next one is drawn
# most instructions of a workgroup in a step: at first, increase with each step of the dispatch, at last
SLICE, MORE, MOST = 200, 20, 1 << 16
MOST_WORK_ITEMS = 1024   # of a workgroup
LDS_UNIT = 512
SCRATCH_UNIT = {9: 1024, 11: 256, 12: 256}
# granularity in which a SIMD allocates registers to a wave
VGPR_GRANULE = {(9, 64): 8, (11, 32): 24, (11, 64): 12, (12, 32): 24, (12, 64): 12}
VGPR_UNIT = {(9, 64): 8, (11, 32): 8, (11, 64): 4, (12, 32): 8, (12, 64): 4}         # of PGM_RSRC1.VGPRS
# ERRATA waves start with other SGPRs than 16 set; raise USER_SGPR so that all together are 16
SGPR_INIT_16 = ("gfx1100", "gfx1102")
DONE = 2                 # wave.StepResult
DIMENSIONS = "XYZ"
Triple = tuple[int, int, int]

class WorkgroupLike(Protocol):
  """Executor of a workgroup: wave.Workgroup. decoder: passed to the next workgroup of the dispatch."""
  decoder: Any
  def step(self, budget: int) -> int:
    """Execute some instructions. Return DONE when all waves have ended."""

MakeWorkgroup = Callable[..., WorkgroupLike]

# **** from registers to the start of waves ****

class ComputeRegisters:
  """The SH registers of a queue, by address. unset: registers that a packet must set before their use."""
  def __init__(self, gpu: GpuContext):
    self.gpu = gpu
    self.values: dict[int, int] = {}

  def set(self, address: int, value: int) -> None:
    """Set a register. Raises PacketError for an unknown one."""
    if address not in self.gpu.registers.addresses:
      raise PacketError(f"register {address:#x} is none that the emulator knows of generation "
                        f"{self.gpu.chip.generation}")
    self.values[address] = value

  def word(self, name: str) -> int:
    """Return the value of a register. Raises PacketError if it was never set."""
    register: Register = self.gpu.registers.rows[name]
    if register.address not in self.values:
      raise PacketError(f"a dispatch needs {name}, which no packet of this queue has set; what is in it is what "
                        f"another program left")
    return self.values[register.address]

  def fields(self, name: str) -> dict[str, int]:
    """Return the fields of a register."""
    return decoded(self.gpu, name, self.word(name))

def decoded(gpu: GpuContext, name: str, value: int) -> dict[str, int]:
  """Return a register's fields. Raises PacketError for bits that are in no field."""
  register: Register = gpu.registers.rows[name]
  try: return register.decode([value])
  except ValueError as error: raise PacketError(str(error)) from error

def start_of_registers(registers: ComputeRegisters, groups: Triple, initiator: int) -> DispatchRegisters:
  """Return the initial registers of waves after DISPATCH_DIRECT with these sizes."""
  gpu = registers.gpu
  flags = decoded(gpu, "COMPUTE_DISPATCH_INITIATOR", initiator)
  if not flags["compute_shader_en"]:
    raise PacketError("COMPUTE_SHADER_EN is not set in the dispatch initiator: nothing would run")
  for name in DIMENSIONS:
    if not flags["force_start_at_000"] and registers.word(f"COMPUTE_START_{name}"):
      raise PacketError(f"COMPUTE_START_{name} is not 0: not emulated")
  registers.word("COMPUTE_RESOURCE_LIMITS")
  threads = [registers.fields(f"COMPUTE_NUM_THREAD_{name}") for name in DIMENSIONS]
  size: Triple = (threads[0]["num_thread_full"], threads[1]["num_thread_full"], threads[2]["num_thread_full"])
  partial: Triple = (0, 0, 0)
  if flags["use_thread_dimensions"]:
    if 0 in size: raise PacketError(f"a workgroup of {size} work-items")
    partial = (groups[0] % size[0], groups[1] % size[1], groups[2] % size[2])
    groups = (-(-groups[0] // size[0]), -(-groups[1] // size[1]), -(-groups[2] // size[2]))
    if any(partial) and not flags["partial_tg_en"]:
      raise PacketError(f"the grid ends inside of workgroups ({partial}): set PARTIAL_TG_EN")
    given = tuple(item["num_thread_partial"] for item in threads)
    if given != partial:
      raise PacketError(f"NUM_THREAD_PARTIAL is {given}, and the last workgroups have {partial} work-items")
  wave_size = 32 if flags.get("cs_w32_en") else 64
  user = [registers.values.get(gpu.registers.rows[f"COMPUTE_USER_DATA_{i}"].address) for i in range(16)]
  return start(gpu, ProgramRegisters(registers.word("COMPUTE_PGM_LO") << 8 | registers.word("COMPUTE_PGM_HI") << 40,
                                     registers.word("COMPUTE_PGM_RSRC1"),
                                     registers.word("COMPUTE_PGM_RSRC2"), registers.word("COMPUTE_PGM_RSRC3")),
               Grid(wave_size, size, groups, partial), user,
               Scratch(registers.values.get(gpu.registers.rows["COMPUTE_DISPATCH_SCRATCH_BASE_LO"].address, 0) << 8 |
                       registers.values.get(gpu.registers.rows["COMPUTE_DISPATCH_SCRATCH_BASE_HI"].address, 0) << 40,
                       registers.values.get(gpu.registers.rows["COMPUTE_TMPRING_SIZE"].address, 0)))

class ProgramRegisters:
  """A program, from its registers."""
  def __init__(self, code: int, rsrc1: int, rsrc2: int, rsrc3: int, lds_bytes: int | None = None):
    self.code, self.rsrc1, self.rsrc2, self.rsrc3, self.lds_bytes = code, rsrc1, rsrc2, rsrc3, lds_bytes

class Grid:
  """Sizes of a dispatch: work-items of a workgroup, workgroups, and work-items of the last workgroups where they are
  smaller."""
  def __init__(self, wave_size: int, size: Triple, groups: Triple, partial: Triple = (0, 0, 0)):
    self.wave_size, self.size, self.groups, self.partial = wave_size, size, groups, partial

class Scratch:
  """The base address of scratch memory, and TMPRING_SIZE."""
  def __init__(self, base: int, ring: int): self.base, self.ring = base, ring

def start(gpu: GpuContext, program: ProgramRegisters, grid: Grid, user_data: Sequence[int | None],
          scratch: Scratch) -> DispatchRegisters:
  """Return the initial registers of waves, checked against the limits of a compute unit."""
  chip = gpu.chip
  one, two, three = (decoded(gpu, f"COMPUTE_PGM_RSRC{i + 1}", value)
                     for i, value in enumerate((program.rsrc1, program.rsrc2, program.rsrc3)))
  if chip.generation == 9 and grid.wave_size != 64: raise PacketError("gfx9 has waves of 64 lanes only")
  if chip.generation > 9 and not one["mem_ordered"]:
    raise PacketError("PGM_RSRC1.MEM_ORDERED is 0: loads may return in any order; set it")
  if three.get("tg_split"): raise PacketError("PGM_RSRC3.TG_SPLIT is not emulated")
  vgprs = (one["vgprs"] + 1) * VGPR_UNIT[chip.generation, grid.wave_size]
  accumulator = 4 * (three["accum_offset"] + 1) if chip.generation == 9 else None
  if accumulator is not None and accumulator > vgprs:
    raise PacketError(f"ACCUM_OFFSET is {accumulator} registers, and a wave has {vgprs}")
  if accumulator is None and vgprs > 256: raise PacketError(f"a wave has at most 256 VGPRs, not {vgprs}")
  ids = (bool(two["tgid_x_en"]), bool(two["tgid_y_en"]), bool(two["tgid_z_en"]))
  given = two["user_sgpr"] + sum(ids) + two["tg_size_en"]
  if chip.name in SGPR_INIT_16 and given != 16:
    raise MissingHazard(f"{chip.name} needs 16 SGPRs set at the start of a wave, and {given} are (USER_SGPR "
                        f"{two['user_sgpr']}); raise USER_SGPR")
  if two["user_sgpr"] > 16:
    raise PacketError(f"USER_SGPR is {two['user_sgpr']}, and there are 16 registers of user data")
  lds = two["lds_size"] * LDS_UNIT if program.lds_bytes is None else program.lds_bytes
  if lds > chip.lds_kib << 10:
    raise PacketError(f"a workgroup has at most {chip.lds_kib << 10} bytes of LDS, not {lds}")
  wgp = bool(one.get("wgp_mode", 0))
  check_fits(chip, grid, vgprs, wgp)
  bytes_per_wave, waves = _scratch(gpu, two, scratch)
  return DispatchRegisters(
    chip.name, program.code, grid.wave_size, vgprs, min(102, (one["sgprs"] // 2 + 1) * 16) if chip.generation == 9
    else 106, grid.size, grid.groups,
    tuple(user_data[:two["user_sgpr"]]), ids, bool(two["tg_size_en"]), two["tidig_comp_cnt"] + 1, lds, accumulator,
    scratch.base, bytes_per_wave,
    bool(two["scratch_en"]), grid.partial, one["float_mode"] & 15, one["float_mode"] >> 4,
    bool(one.get("dx10_clamp", 1)),
    bool(one.get("ieee_mode", 0)), bool(one["fp16_ovfl"]), wgp, bool(one["priv"]),
    (program.rsrc1, program.rsrc2, program.rsrc3), waves)

def _scratch(gpu: GpuContext, two: dict[str, int], scratch: Scratch) -> tuple[int, int]:
  """Return (bytes of a wave, number of waves that have scratch at once)."""
  if not two["scratch_en"]: return 0, 0
  ring = decoded(gpu, "COMPUTE_TMPRING_SIZE", scratch.ring)
  waves = ring["waves"] * (gpu.chip.engines if gpu.chip.generation > 9 else 1)
  if not waves or not ring["wavesize"] or not scratch.base:
    raise PacketError(f"the kernel uses scratch (SCRATCH_EN), and there is none: base {scratch.base:#x}, TMPRING_SIZE "
                      f"{scratch.ring:#x}")
  return ring["wavesize"] * SCRATCH_UNIT[gpu.chip.generation], waves

def check_fits(chip: ChipParameters, grid: Grid, vgprs: int, wgp: bool) -> None:
  """Check that a workgroup fits on one compute unit (or two, in WGP mode). Otherwise it would never start."""
  items = grid.size[0] * grid.size[1] * grid.size[2]
  if not 0 < items <= MOST_WORK_ITEMS:
    raise PacketError(f"a workgroup has 1 to {MOST_WORK_ITEMS} work-items, not {grid.size}")
  waves = -(-items // grid.wave_size)
  granule = VGPR_GRANULE[chip.generation, grid.wave_size]
  file = chip.vgprs if grid.wave_size == chip.wave_size else chip.vgprs // 2
  most = min(chip.waves, file // (-(-vgprs // granule) * granule)) * chip.simds * (2 if wgp else 1)
  if waves > most:
    place = "WGP" if wgp else "compute unit"
    raise PacketError(f"a workgroup of {waves} waves with {vgprs} VGPRs never starts: a {place} has room for {most} "
                      f"of them")

# **** workgroups that run ****

class Resident:
  """A workgroup that runs. slot: of its scratch, in workgroups."""
  def __init__(self, workgroup: WorkgroupLike, slot: int): self.workgroup, self.slot = workgroup, slot

class Dispatch:
  """The workgroups of a grid that run on one XCC: those whose number is `part` modulo `parts`. An actor. `done`: all
  have ended.

  first: number of workgroups that were started before and may still run. `races` distinguishes them by it.
  """
  def __init__(self, gpu: GpuContext, queue: HardwareQueue, xcc: Xcc, registers: DispatchRegisters, races: Races,
               part: int = 0,
               parts: int = 1, first: int = 0):
    self.gpu, self.queue, self.xcc, self.registers = gpu, queue, xcc, registers
    self.races, self.first = races if gpu.computer.strict else None, first
    races.join(first, registers.describe())
    self.decoder: Any = None                        # of the first workgroup: for all
    self.code: dict[tuple[int, int], bytes] = {}    # fetched bytes: code does not change while the dispatch runs
    self.looked = False                             # were unused results checked?
    x, y, z = registers.groups
    self.waiting: list[int] = []                    # numbers to draw the next one from
    self.rest = iter(range(part, x * y * z, parts))
    self.left = len(range(part, x * y * z, parts))
    self.residents: list[Resident] = []
    self.slice = SLICE
    self.random = gpu.computer.scheduler.random
    items = registers.group_size[0] * registers.group_size[1] * registers.group_size[2]
    self.waves = -(-items // registers.wave_size)   # of a workgroup
    self.most = min(RESIDENT, registers.scratch_waves // self.waves) if registers.scratch_enabled else RESIDENT
    if self.most == 0:
      raise PacketError(f"scratch is for {registers.scratch_waves} waves, and a workgroup has {self.waves}: it never "
                        f"starts")
    self.done = self.left == 0
    if not self.done:
      gpu.work.append(self)
      gpu.computer.scheduler.add(self, gpu.computer)

  def step(self) -> bool:
    """Start a workgroup, or let one run."""
    if not self.queue.active: return False
    try:
      if len(self.residents) < self.most and self.left > len(self.residents) and (not self.residents
                                                                                  or self.random.random() < 0.5):
        self._start()
      else: self._run(self.residents[self.random.randrange(len(self.residents))])
    except PageFault as fault: self.gpu.page_fault(fault, self.registers.describe())
    except EmulatorError as error:
      self.queue.stopped = str(error)
      self.abandon()
      raise
    return True

  def _start(self) -> None:
    """Begin one of the waiting workgroups, in a free slot, on some compute unit."""
    while len(self.waiting) < WINDOW and (number := next(self.rest, None)) is not None: self.waiting.append(number)
    number = self.waiting.pop(self.random.randrange(len(self.waiting)))
    x, y, _ = self.registers.groups
    group = (number % x, number // x % y, number // (x * y))
    taken = {resident.slot for resident in self.residents}
    slot = next(i for i in range(self.most) if i not in taken)
    port = self.gpu.unit_port(f"workgroup {group} of the {self.registers.describe()}", self.xcc,
                              self.gpu.pick_unit(self.random))
    port.races, port.mark = self.races, mark(self.first + number)
    def fetch(address: int, size: int) -> bytes:
      found = self.code.get((address, size))
      if found is None: found = self.code[address, size] = port.load(address, size, INSTRUCTION)
      return found
    if self.gpu.computer.strict > 1 and not self.looked:
      self.looked = True
      unused.check(self.registers, fetch)
    workgroup = self.gpu.computer.make_workgroup(self.gpu.chip.name, fetch, self.registers, group, port,
                                                 self.registers.lds_bytes,
                                                 self.random.getrandbits(64), wave_base=slot * self.waves,
                                                 decoder=self.decoder)
    self.decoder = workgroup.decoder
    self.residents.append(Resident(workgroup, slot))
    self.gpu.workgroups += 1

  def _run(self, resident: Resident) -> None:
    self.slice = min(self.slice + MORE, MOST)
    if resident.workgroup.step(1 + self.random.randrange(self.slice)) != DONE: return
    self.residents.remove(resident)
    self.left -= 1
    if not self.left: self._end()

  def abandon(self) -> None:
    """Drop the dispatch: nothing more of it runs."""
    self.residents.clear()
    self._end()

  def _end(self) -> None:
    self.done = True
    if self in self.gpu.work: self.gpu.work.remove(self)
    self.gpu.computer.scheduler.remove(self)
