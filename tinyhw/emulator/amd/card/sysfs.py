"""The text files that describe a computer's AMD GPUs: KFD's topology, and the files of render nodes in /sys/class/drm.

Formats follow Linux, amdkfd/kfd_topology.c and amdgpu's sysfs files. Properties are lines of a name and a decimal
number. Node 0 is the processor.
"""
from __future__ import annotations
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
  from tinyhw.emulator.amd.card.computer import GpuHost
  from tinyhw.emulator.amd.card.gpu import GpuContext

TOPOLOGY = "/sys/devices/virtual/kfd/kfd/topology"
HEAP_SYSTEM, HEAP_PUBLIC, HEAP_PRIVATE = 0, 1, 2
LINK_PCIE, LINK_XGMI = 2, 11
LINK_ENABLED, LINK_NO_PEER_DMA = 1, 1 << 4
CAPABILITY_DOORBELL_64 = 2 << 12
VENDOR = 0x1002
IP_GC, IP_SDMA, IP_NBIF = 11, 42, 108  # hardware ids of the IP discovery table
SYSTEM_BYTES = 16 << 30

def properties(values: dict[str, int]) -> str:
  """Return lines of a name and a number."""
  return "".join(f"{name} {value}\n" for name, value in values.items())

def tree(computer: GpuHost) -> dict[str, str]:
  """Return all files, by their paths."""
  files = {f"{TOPOLOGY}/generation_id": "2\n",
           f"{TOPOLOGY}/system_properties": properties({"platform_oem": 0, "platform_id": 0, "platform_rev": 0}),
           "/sys/module/amdgpu/initstate": "live\n"}
  for name, text in _processor(computer).items(): files[f"{TOPOLOGY}/nodes/0/{name}"] = text
  for gpu in computer.gpus:
    for name, text in _gpu(computer, gpu).items(): files[f"{TOPOLOGY}/nodes/{gpu.node}/{name}"] = text
    for name, text in _card(gpu).items(): files[f"/sys/class/drm/renderD{gpu.minor}/device/{name}"] = text
  return files

def _processor(computer: GpuHost) -> dict[str, str]:
  cards = len(computer.gpus)
  files = {"gpu_id": "0\n", "name": "\n",
           "properties": properties({"cpu_cores_count": os.cpu_count() or 1, "simd_count": 0, "mem_banks_count": 1,
                                     "caches_count": 0,
                                     "io_links_count": cards, "p2p_links_count": 0, "cpu_core_id_base": 0}),
           "mem_banks/0/properties": _bank(HEAP_SYSTEM, SYSTEM_BYTES, 64)}
  for i, gpu in enumerate(computer.gpus):
    files[f"io_links/{i}/properties"] = _link(LINK_PCIE, 0, gpu.node, LINK_ENABLED)
  return files

def _gpu(computer: GpuHost, gpu: GpuContext) -> dict[str, str]:
  chip = gpu.chip
  others = [other for other in computer.gpus if other is not gpu]
  link, flags = LINK_XGMI if chip.xgmi_engines else LINK_PCIE, LINK_ENABLED | (0 if computer.peers
                                                                               else LINK_NO_PEER_DMA)
  files = {"gpu_id": f"{gpu.gpu_id}\n", "name": f"{chip.name}\n", "properties": properties(_numbers(computer, gpu)),
           "mem_banks/0/properties": _bank(HEAP_PUBLIC if computer.large_bar else HEAP_PRIVATE, chip.vram, 256),
           "io_links/0/properties": _link(LINK_PCIE, gpu.node, 0, LINK_ENABLED),
           "caches/0/properties": properties({"processor_id_low": 0, "level": 2, "size": chip.l2_kib,
                                              "cache_line_size": 128,
                                              "cache_lines_per_tag": 1, "association": 16, "latency": 0, "type": 9})}
  for i, other in enumerate(others): files[f"p2p_links/{i}/properties"] = _link(link, gpu.node, other.node, flags)
  return files

def _numbers(computer: GpuHost, gpu: GpuContext) -> dict[str, int]:
  """Return the properties of a GPU's node."""
  chip = gpu.chip
  return {
    "cpu_cores_count": 0, "simd_count": chip.cus * chip.simds * chip.xccs, "mem_banks_count": 1, "caches_count": 1,
    "io_links_count": 1,
    "p2p_links_count": len(computer.gpus) - 1, "cpu_core_id_base": 0, "simd_id_base": 2147487744,
    "max_waves_per_simd": chip.waves,
    "lds_size_in_kb": chip.lds_kib, "gds_size_in_kb": 0, "num_gws": 64, "wave_front_size": chip.wave_size,
    "array_count": chip.engines * chip.arrays * chip.xccs, "simd_arrays_per_engine": chip.arrays,
    "cu_per_simd_array": -(-chip.cus // (chip.engines * chip.arrays)), "simd_per_cu": chip.simds,
    "max_slots_scratch_cu": 32,
    "gfx_target_version": chip.target_version, "vendor_id": VENDOR, "device_id": chip.device_id,
    "location_id": (gpu.index + 3) << 8, "domain": 0,
    "drm_render_minor": gpu.minor, "hive_id": 0x1234 if chip.xgmi_engines else 0, "num_sdma_engines": chip.sdma_engines,
    "num_sdma_xgmi_engines": chip.xgmi_engines, "num_sdma_queues_per_engine": chip.sdma_queues,
    "num_cp_queues": chip.cp_queues,
    "max_engine_clk_fcompute": chip.clock_mhz, "local_mem_size": 0, "fw_version": 2300,
    "capability": CAPABILITY_DOORBELL_64, "debug_prop": 0,
    "sdma_fw_version": 20, "unique_id": 0x5EED0000 + gpu.index, "num_xcc": chip.xccs, "max_engine_clk_ccompute": 5000}

def _bank(heap: int, size: int, width: int) -> str:
  return properties({"heap_type": heap, "size_in_bytes": size, "flags": 0, "width": width, "mem_clk_max": 1250})

def _link(kind: int, start: int, end: int, flags: int) -> str:
  return properties({"type": kind, "version_major": 0, "version_minor": 0, "node_from": start, "node_to": end,
                     "weight": 20, "min_latency": 0,
                     "max_latency": 0, "min_bandwidth": 0, "max_bandwidth": 0, "recommended_transfer_size": 0,
                     "recommended_sdma_engine_id_mask": 0,
                     "flags": flags})

def _card(gpu: GpuContext) -> dict[str, str]:
  """Return the files of the PCI device of a render node."""
  chip = gpu.chip
  files = {"vendor": f"{VENDOR:#06x}\n", "device": f"{chip.device_id:#06x}\n", "product_name": f"{chip.marketing}\n",
           "mem_info_vram_total": f"{chip.vram}\n",
           "mem_info_vis_vram_total": f"{chip.vram if gpu.computer.large_bar else 256 << 20}\n",
           "uevent": f"DRIVER=amdgpu\nPCI_SLOT_NAME=0000:{gpu.index + 3:02x}:00.0\n"}
  for hardware, version in ((IP_GC, chip.gc), (IP_SDMA, chip.sdma), (IP_NBIF, chip.nbif)):
    for name, value in zip(("major", "minor", "revision"), version):
      files[f"ip_discovery/die/0/{hardware}/0/{name}"] = f"{value}\n"
  if chip.xccs > 1: files |= {"current_compute_partition": "SPX\n", "current_memory_partition": "NPS1\n"}
  return files
