"""OpenCL against the CPU device on the same processor (PoCL), which take turns, and launches against those of a C
program.

    python3 test/bench/opencl.py [--seconds 1] [--rounds 8]

Needs an OpenCL driver whose device is the processor; for launches also a C compiler. It prints the least time of all
calls: on a machine with other work that is the one that nothing disturbed.
"""
from __future__ import annotations
import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench import turns

WORKLOADS = ("elementwise 16 M", "sum 64 M", "softmax 4096 x 4096")
DEVICES = ("CPU", "OPENCL")
KERNELS = 200    # of a recording
SOURCE = """#pragma OPENCL FP_CONTRACT OFF
__kernel __attribute__((reqd_work_group_size(32, 1, 1)))
void k_small(__global uchar *a, long o, __global uchar *b, long p, __global uchar *c, long q) {
  __global float *x = (__global float *)(a + o), *y = (__global float *)(b + p), *z = (__global float *)(c + q);
  int i = get_group_id(0) * 32 + get_local_id(0);
  x[i] = y[i] * z[i] + 1.0f;
}
"""
C_PROGRAM = """#include <stdio.h>
#include <stddef.h>
#include <time.h>
typedef void *P;
int clGetPlatformIDs(unsigned, P *, P), clGetDeviceIDs(P, unsigned long, unsigned, P *, P), clFinish(P);
P clCreateContext(P, unsigned, P *, P, P, P), clCreateCommandQueue(P, P, unsigned long, P);
P clCreateKernel(P, const char *, P), clCreateProgramWithSource(P, unsigned, const char **, P, P);
P clCreateBuffer(P, unsigned long, size_t, P, P);
int clBuildProgram(P, unsigned, P *, const char *, P, P), clSetKernelArg(P, unsigned, size_t, const void *);
int clEnqueueNDRangeKernel(P, P, unsigned, P, size_t *, size_t *, unsigned, P, P);
static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}
int main(int argc, char **argv) {
  P platform, device, memory[3];
  const char *source = argv[1];
  long zero = 0;
  size_t total = 1024, lanes = 32;
  double least = 1e12;
  clGetPlatformIDs(1, &platform, 0); clGetDeviceIDs(platform, 0xFFFFFFFF, 1, &device, 0);
  P context = clCreateContext(0, 1, &device, 0, 0, 0), queue = clCreateCommandQueue(context, device, 0, 0);
  P program = clCreateProgramWithSource(context, 1, &source, 0, 0);
  clBuildProgram(program, 1, &device, "-cl-std=CL1.2", 0, 0);
  P kernel = clCreateKernel(program, "k_small", 0);
  for (int i = 0; i < 3; i++) {
    memory[i] = clCreateBuffer(context, 1, 1 << 20, 0, 0);
    clSetKernelArg(kernel, 2 * i, 8, &memory[i]); clSetKernelArg(kernel, 2 * i + 1, 8, &zero);
  }
  for (int round = 0; round < 100; round++) {
    double start = now();
    for (int i = 0; i < KERNELS; i++) clEnqueueNDRangeKernel(queue, kernel, 1, 0, &total, &lanes, 0, 0, 0);
    clFinish(queue);
    if (now() - start < least) least = now() - start;
  }
  printf("%f", least / KERNELS);
}
"""

def prepare(workload: str) -> turns.Run:
  """A workload on the device that DEV names."""
  from tinyhw import Device, Tensor, TinyJit
  if workload == "elementwise 16 M":
    given = [Tensor.rand(1 << 24).realize() for _ in range(3)]
    def work(a: Tensor, b: Tensor, c: Tensor) -> Tensor: return ((a * b + c).relu() * 2 - a).realize()
  elif workload == "sum 64 M":
    given = [Tensor.rand(1 << 26).realize()]
    def work(a: Tensor) -> Tensor: return a.sum().realize()  # type: ignore[misc]
  else:
    given = [Tensor.rand(4096, 4096).realize()]
    def work(a: Tensor) -> Tensor: return a.softmax().realize()  # type: ignore[misc]
  captured = TinyJit(work)
  def run() -> None:
    captured(*given)
    Device[Device.DEFAULT].synchronize()
  return run

def launches() -> float:
  """Microseconds of a small kernel in a recording, with the wait at its end."""
  from tinyhw.device import Device, Launch
  from tinyhw.machine.ir.code import Code
  device = Device["OPENCL"]
  program = device.load(Code("small", "opencl", SOURCE.encode(), ("buffer",) * 3, lanes=32))
  recording = device.record([Launch(program, [device.allocator.alloc(1 << 20) for _ in range(3)], (), 32)] * KERNELS)
  least = float("inf")
  for _ in range(100):
    start = time.perf_counter()
    recording.submit()
    device.synchronize()
    least = min(least, time.perf_counter() - start)
  return least * 1e6 / KERNELS

def launches_in_c() -> float | None:
  """The same in C; None without a compiler."""
  compiler = next((name for name in ("cc", "gcc", "clang") if shutil.which(name)), None)
  if compiler is None: return None
  with tempfile.TemporaryDirectory() as folder:
    source = Path(folder, "launches.c")
    source.write_text(C_PROGRAM.replace("KERNELS", str(KERNELS)), "utf-8")
    subprocess.run([compiler, "-O2", "-w", str(source), "-o", f"{folder}/launches", "-l:libOpenCL.so.1"], check=True)
    return float(subprocess.run([f"{folder}/launches", SOURCE], check=True, capture_output=True, text=True).stdout)

def main() -> None:
  parser = argparse.ArgumentParser(description="OpenCL against the CPU device, on PoCL.")
  parser.add_argument("--serve", help="be the process of one device")
  parser.add_argument("--seconds", type=float, default=1.0, help="of a turn")
  parser.add_argument("--rounds", type=int, default=8, help="turns of each device")
  options = parser.parse_args()
  if options.serve:
    os.environ["DEV"] = options.serve
    return turns.serve(prepare)
  devices = [turns.Library(__file__, name) for name in DEVICES]
  print("| case | CPU | OPENCL | ratio |\n|---|---|---|---|")
  for workload in WORKLOADS:
    least = {device.name: float("inf") for device in devices}
    for _ in range(options.rounds):
      for device in devices:
        least[device.name] = min(least[device.name], *device.turn(workload, options.seconds)[turns.WARM_UP:])
    print(f"| {workload} | {least['CPU'] * 1e3:.2f} ms | {least['OPENCL'] * 1e3:.2f} ms | "
          f"{least['CPU'] / least['OPENCL']:.2f} |", flush=True)
  ours = min(launches() for _ in range(options.rounds))
  found = [launches_in_c() for _ in range(options.rounds)]
  theirs = min((time for time in found if time is not None), default=None)
  print(f"a small kernel in a recording of {KERNELS}: {ours:.2f} us; in C: "
        f"{'no compiler' if theirs is None else f'{theirs:.2f} us, ratio {theirs / ours:.2f}'}")

if __name__ == "__main__": main()
