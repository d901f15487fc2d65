"""The modules that compile to Code, by the first part of a device's `arch`.

They are the ISAs of the registry, and the renderers of source.
"""
from collections import ChainMap

from tinyhw.isa import TARGETS

BACKENDS = ChainMap(TARGETS, {  # a view of TARGETS, so that later registrations are found
  "c": "tinyhw.codegen.render.targets",
  "metal": "tinyhw.codegen.render.targets",
  "opencl": "tinyhw.codegen.render.targets",
  "wgsl": "tinyhw.codegen.render.targets",
  "python": "tinyhw.codegen.render.targets",
})
