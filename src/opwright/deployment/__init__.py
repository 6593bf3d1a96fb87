"""Shipping: models as programs without Python, and operators as wheels that need torch alone."""

from opwright.deployment.deploying import Deployment, deploy
from opwright.deployment.wheels.wheel import Wheel, build_wheel

__all__ = ["Deployment", "Wheel", "build_wheel", "deploy"]
