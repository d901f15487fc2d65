"""Devices on virtual computers."""
from nvidia.fixtures import opened

__all__ = ["opened"]
