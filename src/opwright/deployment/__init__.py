"""Shipping operators: wheels that need torch alone."""

from opwright.deployment.wheel import Wheel, build_wheel

__all__ = ["Wheel", "build_wheel"]
