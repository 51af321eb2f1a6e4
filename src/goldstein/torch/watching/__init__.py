"""Watching a training run: how stationary is the model now, at a bounded cost."""

from goldstein.torch.watching.monitor import Monitor
from goldstein.torch.watching.observation import Observation
from goldstein.torch.watching.stopping import GoldsteinStopping

__all__ = ["GoldsteinStopping", "Monitor", "Observation"]
