"""Merge kernels of a schedule into kernels with several results, where they visit the same elements.

Not yet: each kernel stays by itself.
"""
from __future__ import annotations

from tinyhw.engine.lower import Kernel

def group_kernels(kernels: list[Kernel]) -> list[Kernel]: return kernels
