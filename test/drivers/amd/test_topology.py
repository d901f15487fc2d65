"""The data from sysfs, the sizes of queues, and the reasons why a GPU is not driven."""
import errno

import pytest
from amd.box import TOPOLOGY, AMDBox

from tinyhw.config import Context
from tinyhw.drivers.amd import topology
from tinyhw.errors import DeviceError

def gpu(kind: str, **values: int) -> topology.Gpu:
  box = AMDBox(kind)
  found = topology.gpus(box)[0]
  return topology.Gpu(found.chip, found.node, found.gpu_id, {**found.values, **values}, found.vram_bytes,
                      found.visible_bytes, found.caches)

def test_gpus_are_nodes_with_a_gpu_id() -> None:
  found = topology.gpus(AMDBox("gfx1100", count=2))
  assert [(g.node, g.gpu_id, g.chip.arch, g.render_node)
          for g in found] == [(1, 1000, "gfx1100", "/dev/dri/renderD128"),
                              (2, 1001, "gfx1100", "/dev/dri/renderD129")]
  assert (found[0].vram_bytes, found[0].visible_bytes, found[0].caches) == (1 << 30, 1 << 30, (32 << 10, 0, 0))

@pytest.mark.parametrize("kind, units, engines, dies",
                         [("gfx1100", 96, 6, 1), ("gfx1200", 32, 2, 1), ("gfx942", 38, 4, 8)])
def test_counts_are_those_of_one_die(kind: str, units: int, engines: int, dies: int) -> None:
  assert (gpu(kind).compute_units, gpu(kind).shader_engines, gpu(kind).xccs) == (units, engines, dies)

def test_sizes_of_queues_are_those_of_a_7900_xtx() -> None:
  """A real card's queue has save size 0x2c02000 and control stack 0xa000."""
  assert gpu("gfx1100").queue_sizes() == (0xA000, 0x2BEA000, 0x2C02000)

def test_sizes_of_queues_of_several_dies() -> None:
  sizes = gpu("gfx942").queue_sizes()
  waves = 38 * 40
  assert (sizes.control_stack == 0x3000 and sizes.total == 8 * (sizes.save + waves * 32)
          + -(8 * (sizes.save + waves * 32)) % 4096)

def test_more_local_memory_is_saved_on_gfx950() -> None:
  assert gpu("gfx950").queue_sizes().save - gpu("gfx942", simd_count=1024).queue_sizes().save == 32 * (96 << 10)

def test_a_kernel_that_tells_sizes_is_believed() -> None:
  assert gpu("gfx1100", ctl_stack_size=0xB000, cwsr_size=0x3000000).queue_sizes() == (0xB000, 0x3000000, 0x3018000)

def test_properties_are_lines_of_names_and_numbers() -> None:
  assert topology.read_properties("a 1\nb  22\nunique_id x\n\nodd\n") == {"a": 1, "b": 22}

def test_a_version_is_named_as_compilers_do() -> None:
  assert [topology.version_name(v) for v in (110000, 90402, 90010, 120001)] == ["gfx1100", "gfx942", "gfx90a",
                                                                                "gfx1201"]

def test_a_gpu_that_a_container_hides_is_none_of_ours() -> None:
  class Hidden(AMDBox):
    def read_text(self, path: str) -> str:
      if path == f"{TOPOLOGY}/1/gpu_id": raise PermissionError(errno.EPERM, "not permitted")
      return super().read_text(path)
  assert [g.gpu_id for g in topology.gpus(Hidden("gfx1100", count=2))] == [1001]

def reason(box: AMDBox, ordinal: int = 0) -> str:
  with pytest.raises(DeviceError) as caught: topology.choose(box, ordinal)
  return caught.value.message

def test_reasons_why_there_is_none() -> None:
  box = AMDBox()
  box.nodes.clear()
  assert ("there is no /dev/kfd" in reason(box) and "--device=/dev/kfd" in reason(box)
          and "modprobe amdgpu" in reason(box))
  with Context(EMULATE="sm_90"):
    assert reason(box) == "EMULATE=sm_90 has no AMD GPU; name one, such as EMULATE=gfx1100, or use the device NV"
  assert "shows no GPU that this process may use" in reason(AMDBox(count=0))
  assert reason(AMDBox(count=1), 1) == "there is 1 GPU, and number 1 is none of them"
  assert reason(AMDBox(count=2), 5) == "there are 2 GPUs, and number 5 is none of them"

def test_reasons_why_it_is_not_driven() -> None:
  box = AMDBox()
  box.nodes.discard("/dev/dri/renderD128")
  assert "there is no /dev/dri/renderD128" in reason(box)
  box = AMDBox()
  box.texts[f"{TOPOLOGY}/1/properties"] = box.texts[f"{TOPOLOGY}/1/properties"].replace("110000", "100302")
  assert "the GPU is a gfx1032, which has no driver here; there are gfx942, gfx950, gfx1100" in reason(box)
  box = AMDBox("gfx942")
  box.texts[f"{TOPOLOGY}/1/properties"] = box.texts[f"{TOPOLOGY}/1/properties"].replace("num_xcc 8", "num_xcc 6")
  assert "6 compute dies as one" in reason(box) and "CPX" in reason(box)

def test_properties_that_are_needed() -> None:
  box = AMDBox()
  text = box.texts[f"{TOPOLOGY}/1/properties"]
  box.texts[f"{TOPOLOGY}/1/properties"] = text.replace("simd_per_cu 2\n", "").replace("array_count 12", "array_count 0")
  assert "nodes/1/properties does not tell simd_per_cu, array_count; update the kernel" in reason(box)

def test_a_topology_that_cannot_be_read() -> None:
  class Broken(AMDBox):
    def listdir(self, path: str) -> list[str]: raise OSError(errno.EIO, "input/output error")
  assert "cannot be read (input/output error)" in reason(Broken())
