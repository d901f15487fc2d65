// Kernels for test/emulator/amd/test_llvm.py: LLVM compiles them for AMD GPUs and, as functions of one work-item, for the host, whose results are expected.
// 128 work-items; a, b: 2048 words, o: up to 512. Names with x_ have no host version: the test knows what they compute.
#ifdef __AMDGCN__
#define GLOBAL __attribute__((address_space(1)))
#define LOCAL __attribute__((loader_uninitialized, address_space(3)))
#define KERNEL(name) __attribute__((amdgpu_kernel, amdgpu_flat_work_group_size(128, 128))) \
  void name(GLOBAL const unsigned* a, GLOBAL const unsigned* b, GLOBAL unsigned* o)
#define ITEM __builtin_amdgcn_workitem_id_x()
#define BARRIER() do { __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup"); __builtin_amdgcn_s_barrier(); \
                       __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup"); } while (0)
#else
#define GLOBAL
#define KERNEL(name) void name(const unsigned* a, const unsigned* b, unsigned* o, int ITEM)
#endif
typedef unsigned u32;
typedef unsigned long long u64;
typedef long long i64;
typedef int i32;
static inline float f(u32 x) { float r; __builtin_memcpy(&r, &x, 4); return r; }
static inline u32 u(float x) { u32 r; __builtin_memcpy(&r, &x, 4); return r; }
static inline u64 wide(u32 low, u32 high) { return low | (u64)high << 32; }
static inline double d(u32 low, u32 high) { u64 v = wide(low, high); double r; __builtin_memcpy(&r, &v, 8); return r; }
static inline u64 ud(double x) { u64 r; __builtin_memcpy(&r, &x, 8); return r; }
#define OUT64(v) do { u64 w = (v); o[2 * i] = w; o[2 * i + 1] = w >> 32; } while (0)
#define A64 wide(a[2 * i], a[2 * i + 1])
#define B64 wide(b[2 * i], b[2 * i + 1])
#define AD d(a[2 * i], a[2 * i + 1])
#define BD d(b[2 * i], b[2 * i + 1])

KERNEL(f32_arithmetic) { int i = ITEM; o[i] = u(f(a[i]) * f(b[i]) + f(b[i]) - f(a[i])); }
KERNEL(f32_fma) { int i = ITEM; o[i] = u(__builtin_fmaf(f(a[i]), f(b[i]), f(a[i ^ 1]))); }
KERNEL(f32_divide) { int i = ITEM; o[i] = u(f(a[i]) / f(b[i])); }
KERNEL(f32_sqrt) { int i = ITEM; o[i] = u(__builtin_sqrtf(f(a[i] & 0x7fffffff))); }
KERNEL(f32_round) { int i = ITEM; float x = f(a[i]); o[4 * i] = u(__builtin_floorf(x)); o[4 * i + 1] = u(__builtin_ceilf(x));
                    o[4 * i + 2] = u(__builtin_truncf(x)); o[4 * i + 3] = u(__builtin_rintf(x)); }
KERNEL(f32_ldexp) { int i = ITEM; o[i] = u(__builtin_ldexpf(f(a[i]), (i32)(b[i] & 511) - 256)); }
KERNEL(f32_from_integers) { int i = ITEM; o[i] = u((float)a[i] - (float)(i32)b[i]); }
KERNEL(f32_from_wide) { int i = ITEM; u64 x = A64; o[2 * i] = u((float)x); o[2 * i + 1] = u((float)(i64)x); }
KERNEL(f64_divide) { int i = ITEM; OUT64(ud(AD / BD)); }
KERNEL(f64_fma) { int i = ITEM; OUT64(ud(__builtin_fma(AD, BD, d(a[2 * i], b[2 * i + 1])))); }
KERNEL(f64_sqrt) { int i = ITEM; OUT64(ud(__builtin_sqrt(d(a[2 * i], a[2 * i + 1] & 0x7fffffff)))); }
KERNEL(f16_arithmetic) { int i = ITEM; _Float16 x, y; unsigned short s = a[i], t = b[i]; __builtin_memcpy(&x, &s, 2); __builtin_memcpy(&y, &t, 2);
                         _Float16 p = x * y, r = p + y; unsigned short w; __builtin_memcpy(&w, &r, 2); o[i] = w; }
KERNEL(f32_from_f16) { int i = ITEM; _Float16 x; unsigned short s = a[i]; __builtin_memcpy(&x, &s, 2); o[i] = u((float)x); }
KERNEL(f16_from_f32) { int i = ITEM; _Float16 r = (_Float16)f(a[i]); unsigned short w; __builtin_memcpy(&w, &r, 2); o[i] = w; }
KERNEL(u32_from_f32) { int i = ITEM; float x = f(a[i]); i32 k = x > -2e9f && x < 2e9f ? (i32)x : 0; o[i] = k; }
KERNEL(u32_from_f64) { int i = ITEM; double x = AD; i32 k = x > -2e9 && x < 2e9 ? (i32)x : 5; o[i] = k; }
KERNEL(u32_compare) { int i = ITEM; float x = f(a[i]), y = f(b[i]);
                      o[i] = (x < y) + 2 * (x != y) + 4 * (x >= y) + 8 * __builtin_isunordered(x, y) + 16 * ((i32)a[i] < (i32)b[i]); }
KERNEL(u32_divide) { int i = ITEM; o[i] = a[i] / (b[i] | 1) + a[i] % (b[i] >> 7 | 1); }
KERNEL(u32_divide_signed) { int i = ITEM; i32 y = (i32)b[i] >> 9; o[i] = (i32)(a[i] >> 1) / (y ? y : 3) + (i32)a[i] % 1000; }
KERNEL(u32_divide_wide) { int i = ITEM; u64 y = (B64 & 0xffffffffffull) | 1; OUT64(A64 / y + A64 % y); }
KERNEL(u32_shift_wide) { int i = ITEM; u64 x = A64; OUT64((x << (b[2 * i] & 63)) ^ (x >> (b[2 * i + 1] & 63)) ^ (u64)((i64)x >> (b[2 * i] >> 8 & 63)) * x); }
KERNEL(u32_bits) { int i = ITEM; u32 x = a[i];
                   o[i] = __builtin_popcount(x) + (x ? __builtin_clz(x) : 77) + (x ? __builtin_ctz(x) : 99) + __builtin_bitreverse32(x) + __builtin_bswap32(x); }
KERNEL(u32_bytes) { int i = ITEM; GLOBAL const unsigned char* p = (GLOBAL const unsigned char*)a; GLOBAL const signed char* q = (GLOBAL const signed char*)b;
                    o[i] = p[i] * 3u + (u32)(i32)q[i] + (u32)(i32)((GLOBAL const short*)a)[i]; }
KERNEL(u32_collatz) { int i = ITEM; u32 x = (a[i] & 127) + 1, n = 0; while (x != 1) { x = x & 1 ? 3 * x + 1 : x >> 1; n++; } o[i] = n; }
KERNEL(u32_branches) { int i = ITEM; u32 r = 0;
  for (u32 j = 0; j < (b[i] & 15); j++) {
    if (a[i] >> j & 1) r += a[(i + j) & 127];
    else if (r & 4) { r ^= b[j]; break; }
    else continue;
    r = r * 5 + 1;
  }
  o[i] = r; }
KERNEL(u32_private) { int i = ITEM; volatile u32 t[16]; u32 r = 0; for (int j = 0; j < 16; j++) t[j] = a[i] * j + b[i];
                      for (int j = 0; j < 8; j++) r ^= t[a[i] >> j & 15]; o[i] = r; }

#ifdef __AMDGCN__
LOCAL u32 sums[128];
KERNEL(x_reduce) { int i = ITEM; sums[i] = a[i]; BARRIER(); for (int s = 64; s; s >>= 1) { if (i < s) sums[i] += sums[i + s]; BARRIER(); } o[i] = sums[0]; }
KERNEL(x_atomic) { __atomic_fetch_add(o, a[ITEM], __ATOMIC_RELAXED); __atomic_fetch_max(o + 1, a[ITEM], __ATOMIC_SEQ_CST); }
LOCAL u32 tile[256];
KERNEL(x_transpose) { int i = ITEM; for (int j = 0; j < 2; j++) tile[j * 128 + i] = a[j * 128 + i]; BARRIER();
                      for (int j = 0; j < 2; j++) { int k = j * 128 + i; o[k] = tile[(k & 15) * 16 + (k >> 4)]; } }
#endif
