"""An OpenCL device of this machine, for tests that run kernels."""
from gpu import source_kernels

from tinyhw.drivers.opencl.device import ClDevice
from tinyhw.machine.ir.code import Code
from tinyhw.uop.program import Program

def opened() -> ClDevice: return source_kernels.opened("OPENCL", ClDevice)

def run(code: Code, memory: dict[int, bytearray], variables: tuple[int, ...] = (), grid: int = 1) -> None:
  source_kernels.run(opened(), code, memory, variables, grid)

def check(program: Program, memory: dict[int, bytearray]) -> None:
  source_kernels.check(opened(), program, memory, "opencl")
