"""Shipping operators: wheels that need torch alone."""

from opwright.deployment.wheels.wheel import Wheel, build_wheel

__all__ = ["Wheel", "build_wheel"]
