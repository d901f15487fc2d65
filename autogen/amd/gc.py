"""Registers of AMD's graphics and compute block that set up a kernel, for the generations 9 (GC 9.4.3), 11 (GC 11.0.0)
and 12 (GC 12.0.0).

Notation: autogen/fields.py. An address with "@" is that of the named generations. Addresses are absolute, in units of
words, with the default bases of the segments. SET_SH_REG counts from pm4.SET_SH_REG_START. NAME_{X,Y} are registers at
consecutive addresses.

Source: Linux, drivers/gpu/drm/amd/include/asic_reg/gc/gc_{9_4_3,11_0_0,12_0_0}_{offset,sh_mask}.h, and
nbio/nbio_{4_3_0,7_9_0}_offset.h for HDP; merged into rows by hand. test/autogen/amd/test_gc.py compares them with
test/golden/amd_registers.txt.
"""
from __future__ import annotations
import functools
from collections.abc import Iterator

from tinyhw.autogen.fields import Register, Table, lines, members, of_generation

ROWS = """
# name                             address             fields
COMPUTE_DISPATCH_INITIATOR         0x2e00              compute_shader_en:0 partial_tg_en:1 force_start_at_000:2 ordered_append_enbl:3
                                                       ordered_append_mode:4 use_thread_dimensions:5 order_mode:6 scalar_l1_inv_vol:10
                                                       vector_l1_inv_vol:11 ping_pong_en:12@12 reserved:12@9,11 tunnel_enable:13@11,12 restore:14
                                                       cs_w32_en:15@11,12 amp_shader_en:16@11,12 disable_disp_prempt_en:17@11,12
                                                       interleave_2d_en:18@12 ttrace_queue_id:29-31@12
COMPUTE_DIM_{X,Y,Z}                0x2e01              size
COMPUTE_START_{X,Y,Z}              0x2e04              start
COMPUTE_NUM_THREAD_{X,Y}           0x2e07              num_thread_full:0-15@9,11 num_thread_full:0-12@12 interleave_bits:13-15@12
                                                       num_thread_partial:16-31
COMPUTE_NUM_THREAD_Z               0x2e09              num_thread_full:0-15 num_thread_partial:16-31
COMPUTE_PIPELINESTAT_ENABLE        0x2e0a              pipelinestat_enable:0
COMPUTE_PERFCOUNT_ENABLE           0x2e0b              perfcount_enable:0
COMPUTE_PGM_LO                     0x2e0c              data
COMPUTE_PGM_HI                     0x2e0d              data:0-7
COMPUTE_DISPATCH_PKT_ADDR_LO       0x2e0e              data
COMPUTE_DISPATCH_PKT_ADDR_HI       0x2e0f              data:0-7
COMPUTE_DISPATCH_SCRATCH_BASE_LO   0x2e10              data
COMPUTE_DISPATCH_SCRATCH_BASE_HI   0x2e11              data:0-7
COMPUTE_PGM_RSRC1                  0x2e12              vgprs:0-5 sgprs:6-9 priority:10-11 float_mode:12-19 priv:20 dx10_clamp:21@9,11 wg_rr_en:21@12
                                                       debug_mode:22@9,12 disable_perf:23@12 ieee_mode:23@9,11 bulky:24 cdbg_user:25@9,12
                                                       fp16_ovfl:26 wgp_mode:29@11,12 mem_ordered:30@11,12 fwd_progress:31@11,12
COMPUTE_PGM_RSRC2                  0x2e13              scratch_en:0 user_sgpr:1-5 dynamic_vgpr:6@12 trap_present:6@9,11 tgid_x_en:7 tgid_y_en:8
                                                       tgid_z_en:9 tg_size_en:10 tidig_comp_cnt:11-12 excp_en_msb:13-14 lds_size:15-23 excp_en:24-30
                                                       skip_usgpr0:31@9 wgp_takeover:31@12
COMPUTE_VMID                       0x2e14              data:0-3
COMPUTE_RESOURCE_LIMITS            0x2e15              waves_per_sh:0-9 tg_per_cu:12-15 lock_threshold:16-21 simd_dest_cntl:22 force_simd_dist:23
                                                       cu_group_count:24-26 simd_disable:27-30@9
COMPUTE_DESTINATION_EN_SE{0,1}     0x2e16@11,12        cu_en
COMPUTE_STATIC_THREAD_MGMT_SE{0,1} 0x2e16              sa0_cu_en:0-15@11,12 sh0_cu_en:0-15@9 sa1_cu_en:16-31@11,12 sh1_cu_en:16-31@9
COMPUTE_TMPRING_SIZE               0x2e18              waves:0-11 wavesize:12-24@9 wavesize:12-26@11 wavesize:12-29@12
COMPUTE_DESTINATION_EN_SE{2,3}     0x2e19@11,12        cu_en
COMPUTE_STATIC_THREAD_MGMT_SE{2,3} 0x2e19              sa0_cu_en:0-15@11,12 sh0_cu_en:0-15@9 sa1_cu_en:16-31@11,12 sh1_cu_en:16-31@9
COMPUTE_RESTART_{X,Y,Z}            0x2e1b              restart
COMPUTE_THREAD_TRACE_ENABLE        0x2e1e              thread_trace_enable:0
COMPUTE_MISC_RESERVED              0x2e1f              send_seid:0-1@9 send_seid:0-2@11 send_seid:0-3@12 reserved3:3@11 reserved4:4@11,12
                                                       wave_id_base:5-16
COMPUTE_DISPATCH_ID                0x2e20              dispatch_id
COMPUTE_THREADGROUP_ID             0x2e21              threadgroup_id
COMPUTE_RELAUNCH                   0x2e22@9 0x2e30@11,12 payload:0-29 is_event:30 is_state:31
COMPUTE_REQ_CTRL                   0x2e22@11,12        soft_grouping_en:0 number_of_requests_per_cu:1-4 soft_grouping_allocation_timeout:5-8
                                                       hard_lock_hysteresis:9 hard_lock_low_threshold:10-14 producer_request_lockout:15
                                                       global_scanning_en:16 allocation_rate_throttling_threshold:17-19
                                                       dedicated_preallocation_buffer_limit:20-26
COMPUTE_STATIC_THREAD_MGMT_SE8     0x2e23@12           sa0_cu_en:0-15 sa1_cu_en:16-31
COMPUTE_WAVE_RESTORE_ADDR_LO       0x2e23@9 0x2e31@11,12 addr
COMPUTE_USER_ACCUM_{0,1,2,3}       0x2e24@11,12        contribution:0-6
COMPUTE_WAVE_RESTORE_ADDR_HI       0x2e24@9 0x2e32@11,12 addr:0-15
COMPUTE_TG_CHUNK_SIZE              0x2e27@9            tg_chunk_size:0-15
COMPUTE_PGM_RSRC3                  0x2e2d@9 0x2e28@11,12 accum_offset:0-5@9 shared_vgpr_cnt:0-3@11,12 inst_pref_size:4-9@11 inst_pref_size:4-11@12
                                                         trap_on_start:10@9,11 trap_on_end:11@9,11 glg_en:13@12 tg_split:16@9 image_op:31@11,12
COMPUTE_DDID_INDEX                 0x2e29@11,12        index:0-10
COMPUTE_SHADER_CHKSUM              0x2e2c@9 0x2e2a@11,12 checksum
COMPUTE_STATIC_THREAD_MGMT_SE{4,5,6,7} 0x2e2b@11,12        sa0_cu_en:0-15 sa1_cu_en:16-31
COMPUTE_DISPATCH_INTERLEAVE        0x2e2f@11,12        interleave:0-9@11 interleave_1d:0-9@12 interleave_2d_x_size:16-19@12
                                                       interleave_2d_y_size:24-27@12
COMPUTE_RELAUNCH2                  0x2e33@11,12        payload:0-29 is_event:30 is_state:31
COMPUTE_PRESCALED_DIM_{X,Y,Z}      0x2e35@12           size
COMPUTE_USER_DATA_{0-15}           0x2e40              data
COMPUTE_DISPATCH_TUNNEL            0x2e7d@11,12        off_delay:0-9@11 off_delay:0-12@12 immediate:10@11
COMPUTE_DISPATCH_END               0x2e7e              data
COMPUTE_NOWHERE                    0x2e7f              data
BIF_BX_PF0_GPU_HDP_FLUSH_REQ       0x0e26              cp:0-9 sdma:10-17
BIF_BX_PF0_GPU_HDP_FLUSH_DONE      0x0e27              cp:0-9 sdma:10-17
"""

def _registers(generation: int) -> Iterator[Register]:
  for name, text in lines(ROWS):
    items = text.split()
    addresses = [item for item in items if item.startswith("0x")]
    kept = [address for item in addresses if (address := of_generation(item, generation)) is not None]
    for number, member in enumerate(members(name) if kept else ()):
      yield Register(member, int(kept[0], 16) + number, " ".join(items[len(addresses):]), generation)

class Registers(Table):
  """The registers of a generation, as attributes, and by address."""
  def __init__(self, generation: int):
    super().__init__(_registers(generation))
    self.generation = generation
    self.addresses: dict[int, Register] = {}
    # the first name of those that share an address
    for register in self.rows.values(): self.addresses.setdefault(register.address, register)

@functools.cache
def registers(generation: int) -> Registers:
  """Return the registers of generation 9, 11 or 12."""
  if generation not in (9, 11, 12):
    raise ValueError(f"there are no registers of generation {generation}; there are 9, 11 and 12")
  return Registers(generation)
