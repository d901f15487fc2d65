"""Which module makes Code for which architecture (the first part of a device's `arch`): the ISAs of the registry, and
renderers of source."""
from collections import ChainMap

from tinyhw.isa import TARGETS

BACKENDS = ChainMap(TARGETS, {  # so that what registers later is found too
  "c": "tinyhw.codegen.render.targets",
  "python": "tinyhw.codegen.render.targets",
})
