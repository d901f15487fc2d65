"""The interface of each vendor's GPUs for tests of several vendors."""
from __future__ import annotations
from collections.abc import Callable
from typing import Any, NamedTuple

from test.isa.amd.machine import check as check_amd
from test.isa.sass.machine import check as check_sass
from tinyhw.codegen.optimize import optimize
from tinyhw.codegen.passes import lower
from tinyhw.isa.amd.capabilities import capabilities as amd_capabilities, generation_of
from tinyhw.isa.amd.describe import bounds as amd_bounds
from tinyhw.isa.amd.model.rates import card as amd_card
from tinyhw.isa.sass.capabilities import capabilities as sass_capabilities
from tinyhw.isa.sass.describe import bounds as sass_bounds
from tinyhw.isa.sass.model.rates import CARDS
from tinyhw.machine.ir.target import Capabilities
from tinyhw.uop.ops import UOp
from tinyhw.uop.program import Program

class Gpu(NamedTuple):
  """A vendor's GPU: its capabilities, the model, the typical card, and a function that executes a kernel and compares
  the results."""
  capabilities: Callable[[str], Capabilities]
  bounds: Callable[[Program, str], Any]
  card: Callable[[str], Any]
  check: Callable[..., Any]

AMD = Gpu(amd_capabilities, amd_bounds, lambda arch: amd_card(generation_of(arch)), check_amd)
NVIDIA = Gpu(sass_capabilities, sass_bounds, CARDS.__getitem__, check_sass)
GPUS = {"gfx942": AMD, "gfx1100": AMD, "gfx1200": AMD, "sm_80": NVIDIA, "sm_89": NVIDIA, "sm_90": NVIDIA}

def lowered(kernel: UOp, arch: str) -> Program:
  capable = GPUS[arch].capabilities(arch)
  return lower(optimize(kernel, capable), capable, "kernel")
