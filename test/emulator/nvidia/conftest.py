"""Devices on virtual computers."""
from nvidia_fixtures import opened

__all__ = ["opened"]
