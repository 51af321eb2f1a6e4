"""Certify the parameters of a trained JAX model, however it was trained."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from goldstein.api.certify_data import certify_data
from goldstein.certificates import GoldsteinCertificate
from goldstein.jax.data_oracle import DataOracle
from goldstein.oracles.data_mean import Progress, Reduction


def certify(
    loss: Callable[[Any, Any], Any],
    params: Any,
    batches: Iterable[Any],
    *,
    delta: float,
    eps: float = 0.0,
    seed: int = 0,
    max_calls: int | None = None,
    reduction: Reduction = "mean",
    progress: Progress = False,
) -> GoldsteinCertificate:
    """Prove how stationary trained parameters are, for the mean loss over all of `batches`.

    Everything is computed in float64, batch by batch. Gradients are taken at random points near the
    parameters only, because automatic differentiation is wrong on kinks. A loss that depends on how
    the samples are batched, that differs when it is asked again, or that is computed in less than
    float64 is refused.

    Parameters
    ----------
    loss : callable
        `loss(params, batch)`, traceable: a mean over the samples of the batch. Dropout must be off.
    params : pytree
    batches : iterable of pytrees
        A list or another re-iterable of arrays with one row per sample. Every pass must give the
        same samples, in any order.
    delta : float
        Radius of the ball around the parameters, in the norm of all of them together.
    eps : float
        Stop as soon as this is reached; 0 asks for the smallest bound the budget allows.
    seed : int
    max_calls : int, optional
        Passes over the data. By default a dozen or two where the loss visibly falls nearby, and up
        to 600 where it does not.
    reduction : {"mean", "sum"}
        What `loss` returns for a batch; a sum over all data is divided by their number.
    progress : bool or callable
        Called with the number of passes made and the most there can be; True writes a line to a
        terminal.

    Returns
    -------
    GoldsteinCertificate
        Labelled `conditional`: automatic differentiation is trusted at the random points. `meta`
        records samples and dtype. Verify it with
        ``certificate.verify(DataOracle(loss, params, batches))``.

    Examples
    --------
    >>> import goldstein.jax, jax.numpy as jnp
    >>> def loss(params, batch):
    ...     return jnp.abs(batch["x"] @ params["w"] - batch["y"]).mean()
    >>> batches = [{"x": jnp.array([[1.0], [2.0]]), "y": jnp.array([2.0, 4.0])}]
    >>> params = {"w": jnp.array([2.0])}
    >>> goldstein.jax.certify(loss, params, batches, delta=1e-3).eps < 1e-12
    True
    """
    return certify_data(
        DataOracle(loss, params, batches, reduction),
        delta=delta,
        eps=eps,
        seed=seed,
        max_calls=max_calls,
        progress=progress,
    )
