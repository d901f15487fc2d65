"""The kernels of drivers/gpu/selftest/kernels.py in AMD assembly, and hints for steps that fail with them.

Names of instructions are RDNA3's, which all assemblers take. `WORDS` has the text of those without a common name. The
distribution of matrices over lanes is from AMD's matrix instruction calculator. The steps of a sum may be in any order,
if both factors have the same.
"""
from __future__ import annotations
import math
from collections.abc import Callable, Sequence
from typing import Any

from tinyhw.drivers.gpu.selftest.kernels import LANES, Approximation, MatrixProduct, Texts, steps
from tinyhw.machine.ir.code import Code

# By generation: the register of the workgroup's number, waits for scalar loads, vector loads, stores and shared memory,
# and a barrier
WORDS = {
  9: {"group": "s2", "scalars": "s_waitcnt lgkmcnt(0)", "vectors": "s_waitcnt vmcnt(0)", "stores": "s_waitcnt vmcnt(0)",
      "local": "s_waitcnt lgkmcnt(0)", "barrier": "s_barrier"},
  11: {"group": "s15", "scalars": "s_waitcnt lgkmcnt(0)", "vectors": "s_waitcnt vmcnt(0)",
       "stores": "s_waitcnt_vscnt null, 0x0",
       "local": "s_waitcnt lgkmcnt(0)", "barrier": "s_barrier"},
  12: {"group": "ttmp9", "scalars": "s_wait_kmcnt 0x0", "vectors": "s_wait_loadcnt 0x0",
       "stores": "s_wait_storecnt 0x0", "local": "s_wait_dscnt 0x0",
       "barrier": "s_barrier_signal -1\ns_barrier_wait -1"},
}
# v0: the number of the work-item, v1: 4 times that
INDEX = """s_lshl_b32 s11, {group}, 6
v_and_b32 v0, 0x3ff, v0
v_add_nc_u32 v0, s11, v0
v_lshlrev_b32 v1, 2, v0
"""
EMPTY = "s_endpgm"
# out[i] = i
STORE = "s_load_b64 s[4:5], s[0:1], 0x0\n" + INDEX + """{scalars}
global_store_b32 v1, v0, s[4:5]
s_endpgm"""
# out[i] = a[i] + b[i] + x
ADD = """s_load_b128 s[4:7], s[0:1], 0x0
s_load_b64 s[8:9], s[0:1], 0x10
s_load_b32 s10, s[0:1], 0x18
""" + INDEX + """{scalars}
global_load_b32 v2, v1, s[6:7]
global_load_b32 v3, v1, s[8:9]
{vectors}
v_add_f32 v2, v2, v3
v_add_f32 v2, s10, v2
global_store_b32 v1, v2, s[4:5]
s_endpgm"""
# out[i] = i + (i + 7), both spilled before they are added
SPILL = "s_load_b64 s[4:5], s[0:1], 0x0\n" + INDEX + """v_add_nc_u32 v3, 7, v0
scratch_store_b32 off, v0, off offset:4
scratch_store_b32 off, v3, off offset:64
{stores}
scratch_load_b32 v2, off, off offset:4
scratch_load_b32 v3, off, off offset:64
{vectors}
v_add_nc_u32 v2, v2, v3
{scalars}
global_store_b32 v1, v2, s[4:5]
s_endpgm"""
# out[i] = the word at `from`, by a scalar load
SCALAR = """s_load_b128 s[4:7], s[0:1], 0x0
""" + INDEX + """{scalars}
s_load_b32 s10, s[6:7], 0x0
{scalars}
v_mov_b32 v2, s10
global_store_b32 v1, v2, s[4:5]
s_endpgm"""
# out[i] = number
CONSTANT = "s_load_b64 s[4:5], s[0:1], 0x0\n" + INDEX + """v_mov_b32 v2, {number}
{scalars}
global_store_b32 v1, v2, s[4:5]
s_endpgm"""
# One exchange of a sum over 256 lanes: each lane adds the value of the lane whose number differs in one bit
EXCHANGE = """ds_store_b32 v2, v3
{local}
{barrier}
v_xor_b32 v4, {distance}, v2
ds_load_b32 v5, v4
{local}
{barrier}
v_add_nc_u32 v3, v3, v5
"""
# out[group * 256 + lane] = 1 + 2 + ... + 256
REDUCE = """s_load_b64 s[4:5], s[0:1], 0x0
s_lshl_b32 s11, {group}, 10
v_and_b32 v0, 0x3ff, v0
v_lshlrev_b32 v2, 2, v0
v_add_nc_u32 v1, s11, v2
v_add_nc_u32 v3, 1, v0
""" + "".join(EXCHANGE.replace("{distance}", str(4 << bit)) for bit in range(8)) + """{scalars}
global_store_b32 v1, v3, s[4:5]
s_endpgm"""
# out[i] = op(in[i])
FLOAT = """s_load_b128 s[4:7], s[0:1], 0x0
""" + INDEX + """{scalars}
global_load_b32 v2, v1, s[6:7]
{vectors}
{op} v2, v2
s_nop 4
global_store_b32 v1, v2, s[4:5]
s_endpgm"""
DOUBLE = """s_load_b128 s[4:7], s[0:1], 0x0
""" + INDEX + """v_lshlrev_b32 v1, 3, v0
{scalars}
global_load_b64 v[2:3], v1, s[6:7]
{vectors}
{op} v[2:3], v[2:3]
s_nop 4
global_store_b64 v1, v[2:3], s[4:5]
s_endpgm"""
# It never ends, and reads memory meanwhile
HANG = "s_nop 0\ns_branch -2\ns_endpgm"

# **** the matrix unit: each lane loads its elements of A and B, and stores its elements of the result ****

MATRIX_11 = """s_load_b128 s[4:7], s[0:1], 0x0
s_load_b64 s[8:9], s[0:1], 0x10
v_and_b32 v0, 0x3ff, v0
v_lshlrev_b32 v1, 5, v0
{scalars}
global_load_b128 v[8:11], v1, s[6:7]
global_load_b128 v[12:15], v1, s[6:7] offset:16
global_load_b128 v[16:19], v1, s[8:9]
global_load_b128 v[20:23], v1, s[8:9] offset:16
{vectors}
v_wmma_f32_16x16x16_f16 v[24:31], v[8:15], v[16:23], 0
s_nop 15
global_store_b128 v1, v[24:27], s[4:5]
global_store_b128 v1, v[28:31], s[4:5] offset:16
s_endpgm"""
MATRIX_12 = """s_load_b128 s[4:7], s[0:1], 0x0
s_load_b64 s[8:9], s[0:1], 0x10
v_and_b32 v0, 0x3ff, v0
v_lshlrev_b32 v1, 4, v0
v_lshlrev_b32 v2, 5, v0
{scalars}
global_load_b128 v[8:11], v1, s[6:7]
global_load_b128 v[16:19], v1, s[8:9]
{vectors}
v_wmma_f32_16x16x16_f16 v[24:31], v[8:11], v[16:19], 0
s_nop 15
global_store_b128 v2, v[24:27], s[4:5]
global_store_b128 v2, v[28:31], s[4:5] offset:16
s_endpgm"""
MATRIX_9 = """s_load_b128 s[4:7], s[0:1], 0x0
s_load_b64 s[8:9], s[0:1], 0x10
v_and_b32 v0, 0x3ff, v0
v_lshlrev_b32 v1, 3, v0
v_lshlrev_b32 v2, 4, v0
{scalars}
global_load_b64 v[8:9], v1, s[6:7]
global_load_b64 v[10:11], v1, s[8:9]
{vectors}
v_mfma_f32_16x16x16_f16 v[12:15], v[8:9], v[10:11], 0
s_nop 15
s_nop 15
global_store_b128 v2, v[12:15], s[4:5]
s_endpgm"""
MATRIX = {
  9: MatrixProduct(MATRIX_9, 64, 16, 16, 16, (4, 4, 4),
                   lambda lane, e: (lane % 16, 4 * (lane // 16) + e), lambda lane, e: (4 * (lane // 16) + e, lane % 16),
                   lambda lane, e: (4 * (lane // 16) + e, lane % 16)),
  11: MatrixProduct(MATRIX_11, 32, 16, 16, 16, (16, 16, 8),
                    lambda lane, e: (lane % 16, e), lambda lane, e: (e, lane % 16),
                    lambda lane, e: (2 * e + lane // 16, lane % 16)),
  12: MatrixProduct(MATRIX_12, 32, 16, 16, 16, (8, 8, 8),
                    lambda lane, e: (lane % 16, 8 * (lane // 16) + e),
                    lambda lane, e: (8 * (lane // 16) + e, lane % 16),
                    lambda lane, e: (8 * (lane // 16) + e, lane % 16)),
}

HALF_OF_64 = 2.0 ** -23   # the bits of a float64 that reciprocals and roots have: 24
APPROXIMATIONS = (
  Approximation("v_rcp_f32", lambda x: 1 / x, 1.0, 2.0, needed=True),
  Approximation("v_sqrt_f32", math.sqrt, 1.0, 4.0, needed=True),
  Approximation("v_rcp_f64", lambda x: 1 / x, 1.0, 2.0, HALF_OF_64, needed=True, kind="d"),
  Approximation("v_rsq_f64", lambda x: 1 / math.sqrt(x), 1.0, 4.0, HALF_OF_64, needed=True, kind="d"),
  Approximation("v_exp_f32", lambda x: 2.0 ** x, -0.5, 0.5, needed=True),
  Approximation("v_log_f32", math.log2, 0.5, 2.0, needed=True),
  Approximation("v_log_f32", math.log2, 2.0, 64.0, needed=True),
  Approximation("v_exp_f32", lambda x: 2.0 ** x, -8.0, 8.0),
  Approximation("v_rsq_f32", lambda x: 1 / math.sqrt(x), 1.0, 4.0),
  Approximation("v_sin_f32", lambda x: math.sin(2 * math.pi * x), 0.01, 0.49),
  Approximation("v_cos_f32", lambda x: math.cos(2 * math.pi * x), 0.26, 0.74),
)

def texts(generation: int) -> Texts:
  """Return the kernels for a generation of chips."""
  return Texts(EMPTY, STORE, ADD, SPILL, CONSTANT, REDUCE, HANG, {"f": FLOAT, "d": DOUBLE}, APPROXIMATIONS,
               MATRIX[generation], SCALAR)

def kernel(assemble: Callable[[str, str], bytes], arch: str, generation: int, text: str, name: str,
           arguments: Sequence[str] = ("buffer",),
           lanes: int = LANES, words: dict[str, str] | None = None, **fields: Any) -> Code:
  """Assemble a kernel of the texts above. words: replacements for other names in braces."""
  made = assemble(text.format(**WORDS[generation], **(words or {})), arch)
  return Code(name, arch, made, tuple(arguments), lanes=lanes, registers=(("vgpr", 32), ("sgpr", 16)), **fields)

LAUNCH = ("the words of a launch (docs/hardware/amd.md shows them, with what each is for): registers that this chip "
          "wants and nobody has set; the code's address")
STEPS, LAST, VERY_LAST = steps({
  "empty kernel": LAUNCH,
  "store": "where the workgroup's number is (user_sgprs of topology.py); if whole lines or dies are missing, the "
  "write-back of caches (RELEASE in "
           "commands.py)",
  "arithmetic": "the mode of rounding (FLOAT_MODE in launch.py) if last bits differ; waits for loads if values are old",
  "shared memory": "LDS_SIZE in launch.py (lds_step of topology.py), barriers",
  "scratch": "TMPRING_SIZE and the scratch base (reserve_scratch in device.py); scratch_unit of topology.py",
  "caches": "the flags of ACQUIRE and RELEASE in commands.py for this generation; the message says which cache kept "
  "old lines",
  "order": "what waits for what: gpu/order.py; the barrier of a launch (launch.py); POLL_REGMEM and WAIT_REG_MEM on "
  "the timeline",
  "matrix unit": "the layouts of isa/amd/table/matrix.py: send the line, which tells how many elements differ",
  "approximations": "isa/amd/macros/macros.py and select/recipes.py make good an error of less than one unit in the "
  "last place; send the line "
                    "with the operand",
  "peer copy": "PCIe peer access (dmesg: amdgpu, P2P), Resizable BAR, IOMMU",
  "hang": "dmesg: whether the kernel reset the GPU; the deadline is HCQDEV_WAIT_TIMEOUT_MS",
  "bad address": "the fault's event (events.py); dmesg has the kernel's own words",
})
