"""Which module makes Code for which architecture: the first part of a device's `arch`. A new ISA is a folder and one line here."""
BACKENDS = {
  "x86_64": "tinyhw.isa.x86.target",
  "c": "tinyhw.codegen.render.c",
  "python": "tinyhw.codegen.render.python",
}
