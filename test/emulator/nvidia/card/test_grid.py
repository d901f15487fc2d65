"""Launches: every field of a QMD that hardware would misread, or never start, is reported."""
import pytest
from nvidia.box import Note, code
from nvidia.warps import assembled

from tinyhw.device import Launch
from tinyhw.drivers.nvidia import launch as launching
from tinyhw.emulator.errors import PacketError
from tinyhw.errors import TinyError

@pytest.mark.parametrize("fields, said", [
  ({"qmd_major_version": 3}, r"version \(3, 0\) is not this GPU's"), ({"qmd_type": 0}, "type 0 is no grid of blocks"),
  ({"sass_version": 0x80}, "code of version 0x80"), ({"api_visible_call_limit": 0}, "API_VISIBLE_CALL_LIMIT"),
  ({"grid_height": 0}, "one dimension"),
  ({"cta_thread_dimension0": 0}, "blocks of 0 lanes"), ({"cta_thread_dimension0": 1024, "register_count": 128},
                                                        "never starts"),
  ({"cta_thread_dimension0": 288, "register_count": 176}, "9 warps with 176 registers never starts: there are 16384 "
   "for every fourth"),
  ({"register_count": 0}, "never starts"), ({"constant_buffer_valid[0]": 0}, "constant buffer 0 is not valid"),
  ({"constant_buffer_invalidate[0]": 0}, "a kernel may see old arguments"),
  ({"target_sm_config_shared_mem_size": 1}, "splits of the cache"),
  ({"min_sm_config_shared_mem_size": 1, "target_sm_config_shared_mem_size": 1, "shared_memory_size": 8192},
   "a block wants 8192 bytes"),
  ({"shader_local_memory_low_size": 64}, "SET_SHADER_LOCAL_MEMORY was never set"),
  ({"barrier_count": 17}, "more than 16 barriers")])
def test_fields_are_checked(opened, monkeypatch: pytest.MonkeyPatch, fields: dict[str, int], said: str) -> None:
  computer, device = opened("sm_90")
  Note(computer)
  describe = launching.describe
  monkeypatch.setattr(launching, "describe", lambda *arguments: {**describe(*arguments), **fields})
  program, a = device.load(code()), device.allocator.alloc(100)
  device.submit([Launch(program, [a], [1], 1)])
  with pytest.raises(TinyError, match=said): device.synchronize()

def test_registers_that_the_hardware_keeps_are_not_the_kernels(opened, monkeypatch: pytest.MonkeyPatch) -> None:
  """The highest one is R7: with a count of 8 the last two of those eight hold the program counter."""
  text = assembled(["MOV R7, RZ"]).ljust(128, b"\0")
  describe = launching.describe
  for count in (10, 9, 8):
    monkeypatch.setattr(launching, "describe", lambda *arguments,
                        count=count: {**describe(*arguments), "register_count": count})
    _, device = opened("sm_90")
    device.submit([Launch(device.load(code(text=text, arguments=(), registers=(("r", 8),), lanes=32)), [], [], 1)])
    if count == 10: device.synchronize()
    else:
      with pytest.raises(TinyError, match=f"R7: the launch gives each lane {count - 2} registers, but for 2 .* raise "
                         f"REGISTER"):
        device.synchronize()

def test_blocks_take_turns_in_an_order_that_the_seed_decides(opened) -> None:
  def order(seed: int) -> list[int]:
    computer, device = opened("sm_90", seed=seed)
    note, seen = Note(computer), list[int]()
    make = note.make
    def noting(grid, number, port, block_seed):
      block = make(grid, number, port, block_seed)
      turns = [2]
      def step(budget: int) -> bool:
        seen.append(number)
        turns[0] -= 1
        return turns[0] == 0
      block.step = step
      return block
    computer.engines.make_block = noting
    program, a = device.load(code()), device.allocator.alloc(100)
    device.submit([Launch(program, [a], [1], 30)])
    device.synchronize()
    return seen
  first, second = order(1), order(2)
  assert sorted(first) == sorted(second) == sorted([*range(30)] * 2) and first != second

def test_nothing_executes_blocks(opened) -> None:
  computer, device = opened("sm_90")
  computer.engines.make_block = None
  program, a = device.load(code()), device.allocator.alloc(100)
  with pytest.raises((PacketError, TinyError), match="nothing executes blocks"):
    device.submit([Launch(program, [a], [1], 1)])
    device.synchronize()
