"""The registry of instruction sets: the first part of a device's `arch` and the module that compiles for it. It imports none of them.

Such a module has `capabilities(arch) -> Capabilities` and `compile(program, arch) -> Code`.
"""
TARGETS = {
  "x86_64": "tinyhw.isa.x86.target",
}
