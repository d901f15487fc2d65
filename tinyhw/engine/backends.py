"""Which module makes Code for which architecture (the first part of a device's `arch`): the ISAs of the registry, and renderers of source."""
from tinyhw.isa import TARGETS

BACKENDS = {
  **TARGETS,
  "c": "tinyhw.codegen.render.targets",
  "python": "tinyhw.codegen.render.targets",
}
