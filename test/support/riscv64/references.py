"""The reference assemblers of RISC-V."""
from formats.reference_assemblers import ReferenceAssemblers

REFERENCES = ReferenceAssemblers(
  ("--triple=riscv64", "-mattr=+m,+a,+f,+d,+zfh,+zba,+zbb,+zbs,+zicond,+zihintpause,+v"), 17, "riscv64-linux-gnu-",
  "-march=rv64imafdv_zba_zbb_zbs_zfh_zicsr_zifencei_zihintpause")
# What GNU as does not take: Zicond (binutils 2.40), a rounding mode of a conversion that never rounds, and distances of
# jumps as numbers, which it reads as addresses
LLVM_ONLY = (r"czero|fcvt\.(d\.(s|h|w|wu)|s\.h) .*, (rne|rtz|rdn|rup|rmm|dyn)$|"
             r"(b(eq|ne|lt|ge|gt|le)[zu]?|j|jal) .*")
