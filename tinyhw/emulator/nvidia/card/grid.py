"""Execution of grids: from a QMD to the start of blocks, and blocks in a seeded random order.

State that the hardware would misread, or that would never start, is a PacketError before the first block. Sources:
autogen/nvidia/qmd.py; limits are those of CUDA's compute capabilities.
"""
from __future__ import annotations
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from tinyhw.autogen.nvidia import bank, qmd
from tinyhw.emulator.checks.races import Races, mark
from tinyhw.emulator.errors import EmulatorError, PacketError, PageFault
from tinyhw.emulator.memory.memory import ENGINE, SCALAR
from tinyhw.emulator.nvidia.card.gpu import XID_MMU
from tinyhw.emulator.nvidia.card.port import Port
from tinyhw.isa.sass.table.units import FILE, PARTITIONS, WARP

if TYPE_CHECKING:
  from tinyhw.emulator.nvidia.card.engines import ChannelProcessor
  from tinyhw.emulator.nvidia.execute.decoded import DecodedCode

RESIDENT = 8         # blocks of a grid that take turns
# most instructions of a block in a step: at first, increase with each step of the grid, at last
SLICE, MORE, MOST = 200, 20, 1 << 16
MOST_LANES, MOST_BARRIERS = 1024, 16   # of a block

class BlockLike(Protocol):
  """Executor of a block."""
  def step(self, budget: int) -> bool:
    """Execute some instructions. Return True when all warps have ended."""

MakeBlock = Callable[["Grid", int, Port, int], BlockLike]

class Grid:
  """The blocks of a launch. An actor; it ends by itself. fields: of its QMD; bank: constant bank 0."""
  def __init__(self, processor: ChannelProcessor, address: int, state: dict[int, int]):
    self.processor, self.gpu, self.address = processor, processor.gpu, address
    self.chip, engines = processor.gpu.chip, processor.engines
    layout = qmd.layout(self.chip.generation)
    self.fields = layout.show(processor.port.load(address, layout.bytes, ENGINE))
    self.name = f"kernel at {self.fields.get('program_address', 0):#x}"
    self.blocks, self.lanes = self.fields.get("grid_width", 0), self.fields.get("cta_thread_dimension0", 0)
    self.registers, self.private_bytes = self.fields.get("register_count",
                                                         0), self.fields.get("shader_local_memory_low_size", 0)
    self.shared_bytes = self.fields.get("shared_memory_size", 0)
    self._check(state)
    self.bank = processor.port.load(self.fields["constant_buffer_addr[0]"], self.fields["constant_buffer_size[0]"],
                                    SCALAR)
    self.random = processor.computer.scheduler.random
    self.races = Races() if processor.computer.strict else None
    if self.races is not None: processor.agent.begin(self.races, f"the {self.name}, for which nothing has waited,")
    self.rest, self.left = iter(range(self.blocks)), self.blocks
    self.residents: list[BlockLike] = []
    self.slice = SLICE
    self.decoder: DecodedCode | None = None   # of the first block, for all; another grid may have other code
    if engines.make_block is None: raise PacketError(f"{self.name}: nothing executes blocks of {self.chip.name} here")
    self.make_block: MakeBlock = engines.make_block
    engines.work.append(self)
    processor.computer.scheduler.add(self, processor.computer)

  def _check(self, state: dict[int, int]) -> None:
    """Refuse a state that would be misread or would never start."""
    get = self.fields.get
    def wrong(why: str) -> PacketError: return PacketError(f"the QMD at {self.address:#x}: {why}")
    version = get("qmd_major_version"), get("qmd_minor_version", 0)
    if version != qmd.VERSIONS[self.chip.generation]:
      raise wrong(f"version {version} is not this GPU's, {qmd.VERSIONS[self.chip.generation]}")
    if self.chip.generation > 8 and get("qmd_type") != qmd.GRID_CTA:
      raise wrong(f"type {get('qmd_type', 0)} is no grid of blocks")
    if get("sass_version") not in self.chip.versions:
      raise wrong(f"code of version {get('sass_version', 0):#x}; the GPU runs {self.chip.versions}")
    if get("api_visible_call_limit") != qmd.NO_CHECK: raise wrong("API_VISIBLE_CALL_LIMIT is not set to NO_CHECK")
    if (get("grid_height"), get("grid_depth"), get("cta_thread_dimension1"),
        get("cta_thread_dimension2")) != (1, 1, 1, 1):
      raise wrong("grids of one dimension are emulated")
    if not 0 < self.lanes <= MOST_LANES: raise wrong(f"blocks of {self.lanes} lanes; they have 1 to {MOST_LANES}")
    if not self.blocks: raise wrong("a grid of no blocks")
    self._check_room(wrong)
    if not get("constant_buffer_valid[0]") or not get("constant_buffer_size[0]"):
      raise wrong("constant buffer 0 is not valid")
    if not get("constant_buffer_invalidate[0]"):
      raise wrong("CONSTANT_BUFFER_INVALIDATE of buffer 0 is not set: a kernel may see old arguments")
    if get("program_address", 0) % 16: raise wrong("code begins at a multiple of 16")
    if self.private_bytes: self._check_local(state, wrong)

  def _check_room(self, wrong: Callable[[str], PacketError]) -> None:
    warps = -(-self.lanes // WARP)
    registers = -(-self.registers // FILE.granule) * FILE.granule
    if (not bank.LEAST_REGISTERS <= self.registers <= bank.MOST_REGISTERS or -(-warps // PARTITIONS) * registers
        > FILE.registers):
      raise wrong(f"a block of {warps} warps with {self.registers} registers never starts: there are "
                  f"{FILE.registers * WARP} for every fourth warp")
    names = [f"{which}_sm_config_shared_mem_size" for which in ("min", "target", "max")]
    sizes = [(self.fields.get(name, 0) - 1) * 4 << 10 for name in names]
    if not sizes[0] <= sizes[1] <= sizes[2] <= self.chip.shared_kib << 10:
      raise wrong(f"splits of the cache {sizes} are not in order, or too large")
    if self.shared_bytes > sizes[1]:
      raise wrong(f"a block wants {self.shared_bytes} bytes of shared memory, and the split gives {sizes[1]}")
    if self.fields.get("barrier_count", 0) > MOST_BARRIERS: raise wrong("more than 16 barriers")

  def _check_local(self, state: dict[int, int], wrong: Callable[[str], PacketError]) -> None:
    compute = self.processor.tables.compute
    rows = compute.rows
    if rows["SET_SHADER_LOCAL_MEMORY_A"].address not in state:
      raise wrong("it wants local memory, and SET_SHADER_LOCAL_MEMORY was never set")
    tpc = (state[rows["SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_A"].address] << 32
           | state[rows["SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_B"].address])
    if self.private_bytes * WARP * self.chip.warps * 2 > tpc:
      raise wrong(f"lanes want {self.private_bytes} bytes of local memory, more than there are")

  def step(self) -> bool:
    """Start a block, or let one run."""
    if self.processor.stopped: return False
    try:
      if len(self.residents) < RESIDENT and self.left > len(self.residents) and (not self.residents
                                                                                 or self.random.random() < 0.5):
        self._start()
      else: self._run(self.residents[self.random.randrange(len(self.residents))])
    except PageFault as fault: self.processor.engines.fail(self.processor.channel, XID_MMU, fault)
    except EmulatorError:
      self.processor.stopped = True
      self.abandon()
      raise
    return True

  def _start(self) -> None:
    number = next(self.rest)
    caches = self.processor.engines.caches_of[self.gpu]
    port = Port(self.processor.port.table, self.processor.port.coherence, f"block {number} of the {self.name}", caches,
                self.random.randrange(2 * sum(self.chip.gpcs)))
    port.races, port.mark = self.races, mark(number)
    self.gpu.workgroups += 1
    self.residents.append(self.make_block(self, number, port, self.random.getrandbits(64)))

  def _run(self, block: BlockLike) -> None:
    self.slice = min(self.slice + MORE, MOST)
    if not block.step(1 + self.random.randrange(self.slice)): return
    self.residents.remove(block)
    self.left -= 1
    if not self.left: self.abandon()

  def abandon(self) -> None:
    """Drop the grid: nothing more of it runs."""
    self.residents.clear()
    if self in self.processor.engines.work: self.processor.engines.work.remove(self)
    self.processor.computer.scheduler.remove(self)

