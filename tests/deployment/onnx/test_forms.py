"""Models as ONNX: functions with bodies or plain operations, which ONNX Runtime computes as eager does."""

import pytest
import torch

from opwright.deployment.deploying import deploy
from opwright.errors import DeploymentUnsupported, ToolMissing
from tests.deployment.models import MODELS, made
from tests.deployment.onnx.operators import CASES

onnx = pytest.importorskip("onnx")


def deployed(tmp_path, name, form=None):
    model, args, shapes = made(name)
    return deploy(model, args, to="onnx", at=tmp_path / "out", dynamic_shapes=shapes, operators=form)


def with_first_size_open(name):
    case = CASES[name]
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(0)
        args = case.args()
    batch = [argument.shape[0] if argument.dim() else None for argument in args]
    shared = {0: torch.export.Dim("batch")}
    shapes = tuple(shared if size == batch[0] else None for size in batch)
    return case.function, args, shapes


@pytest.mark.seconds(60)
def test_operators_are_functions_with_dynamic_sizes(tmp_path):
    deployment = deployed(tmp_path, "dynamic")
    checked = deployment.check()
    assert len(checked.differences) >= 2  # the examples, and another batch
    assert deployment.files[:2] == ("deployment.json", "model.onnx")
    model = onnx.load(deployment.path / "model.onnx")
    assert [(f.domain, f.name) for f in model.functions] == [("opwright.deployed", "gated")]
    assert {node.domain for node in model.functions[0].node} == {""}
    assert list(model.functions[0].input) == ["x", "gate"]
    assert [each.name for each in model.graph.input] == ["x"]
    assert model.graph.input[0].type.tensor_type.shape.dim[0].dim_param
    assert not model.graph.node[0].metadata_props  # where it comes from is the user's own affair


@pytest.mark.nightly
@pytest.mark.seconds(60)
def test_numbers_are_attributes_of_nodes(tmp_path):
    from tests.deployment.onnx.operators import beside_one

    deployment = deploy(
        lambda x: beside_one(beside_one(x, 0.25), -2.0), (torch.randn(3, 4),), to="onnx", at=tmp_path / "out"
    )
    deployment.check()
    model = onnx.load(deployment.path / "model.onnx")
    calls = [node for node in model.graph.node if node.domain]
    assert [[(a.name, onnx.helper.get_attribute_value(a)) for a in node.attribute] for node in calls] == [
        [("decay", 0.25)],
        [("decay", -2.0)],
    ]
    (function,) = model.functions
    assert list(function.attribute) == ["decay"]
    calls[0].attribute[0].f = 3.0  # the body reads it
    found = onnx_result(model, torch.ones(3, 4))
    assert torch.equal(torch.from_numpy(found), torch.full((3, 4), 1.0 * (1 - 3.0) + 3.0) * 3.0 - 2.0)


def onnx_result(model, x):
    import onnxruntime

    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {session.get_inputs()[0].name: x.numpy()})[0]


def test_a_wrong_body_is_found(tmp_path):
    deployment = deployed(tmp_path, "dynamic", "decomposed")
    model = onnx.load(deployment.path / "model.onnx")
    assert not model.functions
    assert {node.domain for node in model.graph.node} == {""}
    (sigmoid,) = [node for node in model.graph.node if node.op_type == "Sigmoid"]
    sigmoid.op_type = "Tanh"
    onnx.save(model, deployment.path / "model.onnx")
    with pytest.raises(Exception, match="something else than eager"):
        deployment.check()


@pytest.mark.parametrize("form", ["fused", "functions"])
def test_an_unknown_form_is_refused(tmp_path, form):
    with pytest.raises(DeploymentUnsupported, match=f"operators= is '{form}'"):
        deploy(torch.nn.Identity(), (torch.ones(2),), to="onnx", at=tmp_path / "out", operators=form)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("package", ["onnx", "onnxscript", "onnxruntime"])
def test_a_missing_package_is_named_with_its_extra(tmp_path, monkeypatch, package):
    monkeypatch.setattr("opwright.deployment.onnx.target.find_spec", lambda name: None if name == package else name)
    with pytest.raises(ToolMissing, match=rf"{package} is not installed\nhint: pip install 'opwright\[onnx\]'"):
        deploy(torch.nn.Identity(), (torch.ones(2),), to="onnx", at=tmp_path / "out")


@pytest.mark.nightly
@pytest.mark.seconds(90)
@pytest.mark.parametrize("form", ["function", "decomposed"])
@pytest.mark.parametrize("name", MODELS)
def test_models_agree_with_eager(tmp_path, name, form):
    assert deployed(tmp_path, name, form).check().passed


@pytest.mark.nightly
@pytest.mark.seconds(60)
@pytest.mark.parametrize("form", ["function", "decomposed"])
@pytest.mark.parametrize("name", [name for name in CASES if name != "bfloat16"])
def test_operators_at_the_edges_agree_with_eager(tmp_path, name, form):
    function, args, shapes = with_first_size_open(name)
    deployment = deploy(function, args, to="onnx", at=tmp_path / "out", dynamic_shapes=shapes, operators=form)
    assert deployment.check().passed
