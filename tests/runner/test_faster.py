import pytest
import torch
from transformers.activations import NewGELUActivation
from transformers.pytorch_utils import Conv1D

from generators.runner.faster import make_faster


@pytest.mark.parametrize("shape", [(5, 20), (2, 7, 20), (1, 20)])
def test_products_are_those_of_torch_in_float64(shape):
    torch.manual_seed(0)
    model = torch.nn.Sequential(Conv1D(30, 20), NewGELUActivation(), torch.nn.Linear(30, 10, bias=False))
    model.device, states = torch.device("cpu"), torch.randn(*shape[:-1], 40)[..., ::2]
    expected = model.double()(states.double())
    make_faster(model.float())
    torch.testing.assert_close(model(states).double(), expected, rtol=1e-5, atol=1e-6)
