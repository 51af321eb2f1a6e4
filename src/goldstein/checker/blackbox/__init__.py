"""Tests of black boxes that can only refuse: perturbed points, differences of values."""
