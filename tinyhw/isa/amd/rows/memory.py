"""AMD rows of memory (FLAT, GLOBAL, SCRATCH, buffers, and scalar loads), in the notation of table.py.

The four segments of memory have the same operations with the same opcodes. A line of LOADS, STORES and ATOMICS has one
instruction for each of its letters: f flat_, g global_, s scratch_, b buffer_. Then it has names, opcodes and the type
of the data.
"""
from __future__ import annotations

LOADS = """
fgsb  load_u8 load_ubyte@cdna                         10 . . .   u8
fgsb  load_i8 load_sbyte@cdna                         11 . . .   i8
fgsb  load_u16 load_ushort@cdna                       12 . . .   u16
fgsb  load_i16 load_sshort@cdna                       13 . . .   i16
fgsb  load_b32 load_dword@cdna                        14 . . .   b32
fgsb  load_b64 load_dwordx2@cdna                      15 . . .   b64
fgsb  load_b96 load_dwordx3@cdna                      16 . . .   b96
fgsb  load_b128 load_dwordx4@cdna                     17 . . .   b128
fgsb  load_d16_u8 load_ubyte_d16@cdna                 20 . 1e .  u8
fgsb  load_d16_hi_u8 load_ubyte_d16_hi@cdna           21 . . .   u8
fgsb  load_d16_i8 load_sbyte_d16@cdna                 22 . 1f .  i8
fgsb  load_d16_hi_i8 load_sbyte_d16_hi@cdna           23 . 22 .  i8
fgsb  load_d16_b16 load_short_d16@cdna                24 . 20 .  b16
fgsb  load_d16_hi_b16 load_short_d16_hi@cdna          25 . 23 .  b16
b     load_format_x                                   0 . . .    b32
b     load_format_xy                                  1 . . .    b64
b     load_format_xyz                                 2 . . .    b96
b     load_format_xyzw                                3 . . .    b128
b     load_d16_format_x load_format_d16_x@cdna        8 . . .    b16
b     load_d16_format_xy load_format_d16_xy@cdna      9 . . .    b16x2
b     load_d16_format_xyz load_format_d16_xyz@cdna    a . . .    b16x3
b     load_d16_format_xyzw load_format_d16_xyzw@cdna  b . . .    b16x4
b     load_d16_hi_format_x load_format_d16_hi_x@cdna  26 . . .   b16
gs    load_block                                      - - - 53   b1024
g     load_tr_b128                                    - - - 57   b32x4/2
g     load_tr_b64                                     - - - 58   b32x2/1
"""
STORES = """
fgsb  store_b8 store_byte@cdna                          18 . . .   b8
fgsb  store_d16_hi_b8 store_byte_d16_hi@cdna            19 . 24 .  b8
fgsb  store_b16 store_short@cdna                        1a . 19 .  b16
fgsb  store_d16_hi_b16 store_short_d16_hi@cdna          1b . 25 .  b16
fgsb  store_b32 store_dword@cdna                        1c . 1a .  b32
fgsb  store_b64 store_dwordx2@cdna                      1d . 1b .  b64
fgsb  store_b96 store_dwordx3@cdna                      1e . 1c .  b96
fgsb  store_b128 store_dwordx4@cdna                     1f . 1d .  b128
b     store_format_x                                    4 . . .    b32
b     store_format_xy                                   5 . . .    b64
b     store_format_xyz                                  6 . . .    b96
b     store_format_xyzw                                 7 . . .    b128
b     store_d16_format_x store_format_d16_x@cdna        c . . .    b16
b     store_d16_format_xy store_format_d16_xy@cdna      d . . .    b16x2
b     store_d16_format_xyz store_format_d16_xyz@cdna    e . . .    b16x3
b     store_d16_format_xyzw store_format_d16_xyzw@cdna  f . . .    b16x4
b     store_d16_hi_format_x store_format_d16_hi_x@cdna  27 . . .   b16
gs    store_block                                       - - - 54   b1024
"""
ATOMICS = """
fgb   atomic_swap_b32 atomic_swap@cdna           40 . 33 .  b32
fgb   atomic_cmpswap_b32 atomic_cmpswap@cdna     41 . 34 .  b32x2
fgb   atomic_add_u32 atomic_add@cdna             42 . 35 .  u32
fgb   atomic_sub_u32 atomic_sub@cdna             43 . 36 .  u32
fgb   atomic_min_i32 atomic_smin@cdna            44 . 38 .  i32
fgb   atomic_min_u32 atomic_umin@cdna            45 . 39 .  u32
fgb   atomic_max_i32 atomic_smax@cdna            46 . 3a .  i32
fgb   atomic_max_u32 atomic_umax@cdna            47 . 3b .  u32
fgb   atomic_and_b32 atomic_and@cdna             48 . 3c .  b32
fgb   atomic_or_b32 atomic_or@cdna               49 . 3d .  b32
fgb   atomic_xor_b32 atomic_xor@cdna             4a . 3e .  b32
fgb   atomic_inc_u32 atomic_inc@cdna             4b . 3f .  u32
fgb   atomic_dec_u32 atomic_dec@cdna             4c . 40 .  u32
fgb   atomic_add_f32                             4d . 56 .  f32
fgb   atomic_pk_add_f16                          4e . - 59  f16x2
fgb   atomic_add_f64                             4f . - -   f64
fgb   atomic_min_f64                             50 . - -   f64
fgb   atomic_max_f64                             51 . - -   f64
fg    atomic_pk_add_bf16                         52 . - 5a  bf16x2
b     atomic_pk_add_bf16                         - 52 - 5a  bf16x2
fgb   atomic_swap_b64 atomic_swap_x2@cdna        60 . 41 .  b64
fgb   atomic_cmpswap_b64 atomic_cmpswap_x2@cdna  61 . 42 .  b64x2
fgb   atomic_add_u64 atomic_add_x2@cdna          62 . 43 .  u64
fgb   atomic_sub_u64 atomic_sub_x2@cdna          63 . 44 .  u64
fgb   atomic_min_i64 atomic_smin_x2@cdna         64 . 45 .  i64
fgb   atomic_min_u64 atomic_umin_x2@cdna         65 . 46 .  u64
fgb   atomic_max_i64 atomic_smax_x2@cdna         66 . 47 .  i64
fgb   atomic_max_u64 atomic_umax_x2@cdna         67 . 48 .  u64
fgb   atomic_and_b64 atomic_and_x2@cdna          68 . 49 .  b64
fgb   atomic_or_b64 atomic_or_x2@cdna            69 . 4a .  b64
fgb   atomic_xor_b64 atomic_xor_x2@cdna          6a . 4b .  b64
fgb   atomic_inc_u64 atomic_inc_x2@cdna          6b . 4c .  u64
fgb   atomic_dec_u64 atomic_dec_x2@cdna          6c . 4d .  u64
fgb   atomic_cmpswap_f32                         - - 50 -   f32x2
fgb   atomic_min_f32 atomic_min_num_f32@rdna4    - - 51 .   f32
fgb   atomic_max_f32 atomic_max_num_f32@rdna4    - - 52 .   f32
gb    atomic_csub_u32                            - - 37 -   u32
fgb   atomic_sub_clamp_u32                       - - - 37   u32
fgb   atomic_cond_sub_u32                        - - - 50   u32
g     atomic_ordered_add_b64                     - - - 73   b64
"""
SEGMENTS = {"f": "flat", "g": "global", "s": "scratch", "b": "buffer"}
# segment: operands of a load, a store and an atomic with data of type {t} and a result of type {r}
SHAPES = {
  "f": ("{t}= address", "vaddr:address {t}", "{r}= address {t}"),
  "g": ("{t}= address saddr:address?", "vaddr:address {t} saddr:address?", "{r}= address {t} saddr:address?"),
  "s": ("{t}= vaddr:b32? saddr:b32?", "vaddr:b32? {t} saddr:b32?", ""),
  "b": ("{t}= vaddr:address? b128 b32", "{t} vaddr:address? b128 b32", "{t} vaddr:address? b128 b32"),
}
# Loads to shared memory: m0 has the address there, and the offset of the lane. CDNA's buffer loads do that with a flag.
TO_LDS = """
global_load_lds_u8 global_load_lds_ubyte@cdna       26 . - -  vaddr:address saddr:address?
global_load_lds_i8 global_load_lds_sbyte@cdna       27 . - -  vaddr:address saddr:address?
global_load_lds_u16 global_load_lds_ushort@cdna     28 . - -  vaddr:address saddr:address?
global_load_lds_i16 global_load_lds_sshort@cdna     29 . - -  vaddr:address saddr:address?
global_load_lds_b32 global_load_lds_dword@cdna      2a . - -  vaddr:address saddr:address?
global_load_lds_b128 global_load_lds_dwordx4@cdna4  - 7d - -  vaddr:address saddr:address?
global_load_lds_b96 global_load_lds_dwordx3@cdna4   - 7e - -  vaddr:address saddr:address?
@ scratch vmem load reads:m0
scratch_load_lds_u8 scratch_load_lds_ubyte@cdna    26 . - -  vaddr:b32? saddr:b32?
scratch_load_lds_i8 scratch_load_lds_sbyte@cdna    27 . - -  vaddr:b32? saddr:b32?
scratch_load_lds_u16 scratch_load_lds_ushort@cdna  28 . - -  vaddr:b32? saddr:b32?
scratch_load_lds_i16 scratch_load_lds_sshort@cdna  29 . - -  vaddr:b32? saddr:b32?
scratch_load_lds_b32 scratch_load_lds_dword@cdna   2a . - -  vaddr:b32? saddr:b32?
@ mubuf vmem load reads:m0 lds:1@cdna
buffer_load_lds_u8 buffer_load_ubyte@cdna           10 . 2d -  vaddr:address? b128 b32
buffer_load_lds_i8 buffer_load_sbyte@cdna           11 . 2e -  vaddr:address? b128 b32
buffer_load_lds_u16 buffer_load_ushort@cdna         12 . 2f -  vaddr:address? b128 b32
buffer_load_lds_i16 buffer_load_sshort@cdna         13 . 30 -  vaddr:address? b128 b32
buffer_load_lds_b32 buffer_load_dword@cdna          14 . 31 -  vaddr:address? b128 b32
buffer_load_lds_b96 buffer_load_dwordx3@cdna4       - 16 - -   vaddr:address? b128 b32
buffer_load_lds_b128 buffer_load_dwordx4@cdna4      - 17 - -   vaddr:address? b128 b32
buffer_load_lds_format_x buffer_load_format_x@cdna  0 . 32 -   vaddr:address? b128 b32
"""
OTHERS = """
@ global vmem
global_load_addtid_b32   - - 28 .  b32= saddr:address?       load
global_store_addtid_b32  - - 29 .  vdata:b32 saddr:address?  store
global_inv               - - - 2b  -                         bare only:scope barrier load
global_wb                - - - 2c  -                         bare only:scope barrier store
global_wbinv             - - - 4f  -                         bare only:scope barrier store
@ mubuf vmem bare barrier
buffer_wbl2         28 . - -  -  only:sc0 only:sc1 store
buffer_inv          29 . - -  -  only:sc0 only:sc1 load
buffer_wbinvl1      3e - - -  -  store
buffer_wbinvl1_vol  3f - - -  -  store
buffer_gl0_inv      - - 2b -  -  load
buffer_gl1_inv      - - 2c -  -  load
"""
TYPED = "".join(f"""
tbuffer_load_format_{x}       - - - {i + 0x80:x}  {t}= vaddr:address? b128 b32  load
tbuffer_store_format_{x}      - - - {i + 0x84:x}  {t} vaddr:address? b128 b32  store
tbuffer_load_d16_format_{x}   - - - {i + 0x88:x}  {half}= vaddr:address? b128 b32  load
tbuffer_store_d16_format_{x}  - - - {i + 0x8c:x}  {half} vaddr:address? b128 b32  store
""" for i, (x, t, half) in enumerate((("x", "b32", "b16"), ("xy", "b64", "b16x2"), ("xyz", "b96", "b16x3"), ("xyzw", "b128", "b16x4"))))
SCALAR = """
s_load_b32 s_load_dword@cdna                    0 . . .    b32= address b32?                load
s_load_b64 s_load_dwordx2@cdna                  1 . . .    b64= address b32?                load
s_load_b128 s_load_dwordx4@cdna                 2 . . .    b128= address b32?               load
s_load_b256 s_load_dwordx8@cdna                 3 . . .    b256= address b32?               load
s_load_b512 s_load_dwordx16@cdna                4 . . .    b512= address b32?               load
s_buffer_load_b32 s_buffer_load_dword@cdna      8 . . 10   b32= b128 b32?                   load
s_buffer_load_b64 s_buffer_load_dwordx2@cdna    9 . . 11   b64= b128 b32?                   load
s_buffer_load_b128 s_buffer_load_dwordx4@cdna   a . . 12   b128= b128 b32?                  load
s_buffer_load_b256 s_buffer_load_dwordx8@cdna   b . . 13   b256= b128 b32?                  load
s_buffer_load_b512 s_buffer_load_dwordx16@cdna  c . . 14   b512= b128 b32?                  load
s_gl1_inv                                       - - 20 -   -                                bare barrier
s_dcache_inv                                    20 . 21 .  -                                bare barrier
s_atc_probe                                     26 . 22 .  length address b32?              glc:0 dlc:0 th:0 scope:0
s_atc_probe_buffer                              27 . 23 .  length b128 b32?                 glc:0 dlc:0 th:0 scope:0
s_load_b96                                      - - - 5    b96= address b32?                load
s_load_i8                                       - - - 8    i8= address b32?                 load
s_load_u8                                       - - - 9    u8= address b32?                 load
s_load_i16                                      - - - a    i16= address b32?                load
s_load_u16                                      - - - b    u16= address b32?                load
s_buffer_load_b96                               - - - 15   b96= b128 b32?                   load
s_buffer_load_i8                                - - - 18   i8= b128 b32?                    load
s_buffer_load_u8                                - - - 19   u8= b128 b32?                    load
s_buffer_load_i16                               - - - 1a   i16= b128 b32?                   load
s_buffer_load_u16                               - - - 1b   u16= b128 b32?                   load
s_dcache_wb                                     21 . - -   -                                bare barrier
s_dcache_inv_vol                                22 . - -   -                                bare barrier
s_dcache_wb_vol                                 23 . - -   -                                bare barrier
s_memtime                                       24 . - -   b64=
s_prefetch_inst                                 - - - 24   sbase:address b32? sdata:length  th:0 scope:0
s_memrealtime                                   25 . - -   b64=
s_prefetch_inst_pc_rel                          - - - 25   soffset:b32? sdata:length        th:0 scope:0
s_prefetch_data                                 - - - 26   sbase:address b32? sdata:length  th:0 scope:0
s_buffer_prefetch_data                          - - - 27   sbase:b128 b32? sdata:length     th:0 scope:0
s_dcache_discard                                28 . - -   sbase:address b32?               store glc:0
s_prefetch_data_pc_rel                          - - - 28   soffset:b32? sdata:length        th:0 scope:0
s_dcache_discard_x2                             29 . - -   sbase:address b32?               store glc:0
"""
SCALAR_STORES = "".join(f"""
s_scratch_load_dword{n}   {5 + i:x} . - -   {t}= address b32?  load
s_store_dword{n}          {0x10 + i:x} . - -  {t} address b32?   store
s_scratch_store_dword{n}  {0x15 + i:x} . - -  {t} address b32?   store
s_buffer_store_dword{n}   {0x18 + i:x} . - -  {t} b128 b32?      store
""" for i, (n, t) in enumerate((("", "b32"), ("x2", "b64"), ("x4", "b128"))))
SCALAR_ATOMICS = "".join(f"""
s_buffer_atomic_{name}{x2}  {first + i:x} . - -  {t}{pair}+ b128 b32?  load store
s_atomic_{name}{x2}  {first + 0x40 + i:x} . - -  {t}{pair}+ address b32?  load store
""" for x2, first, t in (("", 0x40, "b32"), ("_x2", 0x60, "b64"))
    for i, (name, pair) in enumerate((("swap", ""), ("cmpswap", "x2"), *((n, "") for n in "add sub smin umin smax umax and or xor inc dec".split()))))

def expand(text: str, shape: int, properties: str) -> dict[str, list[str]]:
  """The lines of LOADS, STORES or ATOMICS for each segment."""
  made: dict[str, list[str]] = {letter: [] for letter in SEGMENTS}
  for line in text.strip().split("\n"):
    letters, names, cells, kind = [c.strip() for c in line.split("  ") if c and not c.isspace()]
    result = kind[:-2] if "cmpswap" in names else kind
    for letter in letters:
      full = " ".join(f"{SEGMENTS[letter]}_{name}" for name in names.split())
      operands = SHAPES[letter][shape].format(t=kind, r=result)
      # the other half of the register stays
      if "_d16" in names and shape == 0: operands = operands.replace("=", "+", 1)
      made[letter].append(f"{full}  {cells}  {operands}  {properties}")
  return made

PARTS = [expand(LOADS, 0, "load"), expand(STORES, 1, "store"), expand(ATOMICS, 2, "atomic load store")]
HEADERS = {"f": "@ flat flat", "g": "@ global vmem", "s": "@ scratch vmem", "b": "@ mubuf vmem"}
TEXT = "\n".join([line for letter, header in HEADERS.items() for line in (header, *(row for part in PARTS for row in part[letter]))] +
                 ["@ global vmem load reads:m0", TO_LDS, OTHERS, "@ mtbuf vmem", TYPED, "@ smem smem", SCALAR, SCALAR_STORES, SCALAR_ATOMICS])
