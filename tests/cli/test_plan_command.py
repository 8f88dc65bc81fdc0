"""`plainformer plan`: a training is planned in a process of its own, which is told how many devices it plays."""

import json
from xml.etree import ElementTree

import pytest

SMALL = [
    *("--set", "model.layers=1", "--set", "model.d_model=16", "--set", "model.d_ff=32", "--set", "model.heads=4"),
    *(
        "--set",
        "model.context=12",
        "--set",
        "data.batch_size=8",
        "--vocab",
        "64",
        "--set",
        "train.compute_dtype=float32",
    ),
]


def test_a_plan_is_of_the_mesh_and_of_all_others_and_draws_where_parameters_live(finished, spawn, tmp_path):
    picture = tmp_path / "where.svg"
    asked = ["plan", "gpt2", "--mesh", "data=2,fsdp=2,tensor=2", "--chip", "v5e", "--compiler", "cpu", *SMALL]
    done = finished(spawn(*asked, "--json", "--picture", picture))
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert found["step"]["mesh"] == "data=2,fsdp=2,tensor=2"
    meshes = {one["mesh"] for one in found["meshes"]}
    assert len(meshes) == 9  # of the ten of eight devices all but tensor=8, for there are four heads
    assert "tensor=8" in found["refused"][0]
    # What the step of one layer exchanges is read from the whole program.
    assert found["compiled"]["layers"] == [[1]]
    axes = {one["axis"] for one in found["compiled"]["exchanged"]}
    assert {"fsdp", "tensor"} <= axes
    assert "?" not in axes
    # 8 bytes of moments for 4 of parameters.
    memory = found["step"]["memory"]["plain"]
    assert memory["optimizer"] == pytest.approx(2 * memory["parameters"], rel=0.01)
    texts = [one.text for one in ElementTree.parse(picture).iter() if one.tag.endswith("text")]
    assert "layers.0.self_attention.query.weight" in texts
    assert "5: d1 f0 t1" in texts


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--chip", "h10"], "there is no chip 'h10'; did you mean h100"),
        (["--mesh", "data=2", "--devices", "4"], "data=2 is 2 devices, and --devices is 4"),
        (["--mesh", "rows=2"], "a mesh has no axis 'rows'"),
        (["--whole"], "--whole is how a step is compiled, and none is"),
        (["--compiler", "gcc"], "there is no compiler 'gcc'"),
        (["--picture", "where.gif"], "a picture is PNG or SVG"),
    ],
)
def test_what_cannot_be_planned_is_said_in_one_line(cli, arguments, said):
    assert said in cli("plan", "gpt2", *arguments).error(2)
