"""What somebody from PyTorch or PyGRANSO writes first, right and wrong."""

from __future__ import annotations

import numpy as np
import pytest

import goldstein as gs

torch = pytest.importorskip("torch")
gst = pytest.importorskip("goldstein.torch")


def test_a_dict_of_tensors_comes_back_as_a_dict() -> None:
    """PyGRANSO's users keep their variables in a dict."""
    target = torch.outer(torch.arange(1.0, 4), torch.tensor([2.0, 1.0])).double()

    def misfit(p: dict) -> torch.Tensor:
        return (target - torch.outer(p["u"], p["v"])).abs().sum()

    start = {"u": torch.ones(3), "v": torch.ones(2)}
    fun = gst.oracle(misfit, start)
    assert fun.name == "misfit"
    res = gs.minimize(fun, fun.start, eps=1e-3, delta=1e-3, rng=0)
    assert res.success
    assert res.certificate.verify(fun).ok
    found = fun.unflatten(res.x)
    assert list(found) == ["u", "v"]
    torch.testing.assert_close(torch.outer(found["u"], found["v"]), target, rtol=0, atol=1e-2)
    torch.testing.assert_close(start["u"], torch.ones(3))


def test_a_closure_over_a_dict_of_tensors() -> None:
    start = {"w": torch.tensor([3.0, -1.0])}
    fun = gst.oracle(lambda: start["w"].abs().sum(), start)
    assert fun.value(np.array([3.0, -2.0])) == 5.0
    assert list(fun.unflatten([1.0, 2.0])) == ["w"]


def test_a_tensor_that_requires_gradients_is_a_start() -> None:
    x = torch.tensor([3.0, -1.0], requires_grad=True)
    fun = gst.oracle(lambda w: w.abs().sum(), x)
    assert gs.minimize(fun, x, eps=1e-3, delta=1e-3, rng=0).success


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (lambda x, y: (x, y), r"data yielded Tensor.*If data is one batch, pass \[data\]"),
        (
            lambda x, y: torch.utils.data.TensorDataset(x, y),
            r"This one gives samples: pass DataLoader\(TensorDataset, batch_size=",
        ),
    ],
)
def test_data_that_are_no_batches_say_what_to_pass(data, words: str) -> None:
    x, y = torch.randn(8, 2), torch.randn(8, 1)
    with pytest.raises(gs.InputTypeError, match=words):
        gst.certify(torch.nn.Linear(2, 1), torch.nn.L1Loss(), data(x, y), delta=0.1)


def test_functions_written_for_other_solvers_are_explained() -> None:
    """PyGRANSO's [f, ci, ce], and a function of tensors without an oracle."""
    ask = {"eps": 1e-3, "delta": 1e-3, "rng": 0}
    fun = gst.oracle(lambda x: [x.abs().sum(), None, None], torch.ones(2))
    with pytest.raises(gs.InputTypeError, match=r"fn returned list.*constraints=\.\.\."):
        gs.minimize(fun, [1.0, 1.0], **ask)
    with pytest.raises(gs.OracleError, match=r"gets NumPy arrays.*goldstein\.torch\.oracle"):
        gs.minimize(lambda x: x.abs().sum(), torch.ones(2), torch.sign, **ask)


def test_a_function_that_mixes_precisions_or_libraries_hears_what_it_gets() -> None:
    single = torch.ones(4, 3)
    for fn in (lambda w: (single @ w).abs().sum(), lambda w: torch.tensor(np.abs(w)).sum()):
        fun = gst.oracle(fn, torch.ones(3))
        with pytest.raises(gs.OracleError, match=r"called with tensors in float64: .*\.double"):
            gs.minimize(fun, fun.start, eps=1e-3, delta=1e-3, rng=0)


def test_what_is_missing_is_named_with_the_way_for_a_closure() -> None:
    model = torch.nn.Linear(2, 1)

    def closure() -> torch.Tensor:
        return model(torch.ones(1, 2, dtype=next(model.parameters()).dtype)).abs().sum()

    with pytest.raises(gs.InputTypeError, match=r"data is missing.*oracle\(closure, model\)"):
        gst.certify(model, closure, delta=1e-3)
    with pytest.raises(gs.InputTypeError, match="delta is missing"):
        gst.certify(model, closure, [(torch.ones(1, 2), torch.ones(1, 1))])
    f = gst.oracle(closure, model)
    assert gs.certify(f, f.start, delta=1e-3, rng=0).verify(f).ok
