"""`dev/lowered.py`: what makes two lowered programs one text, and what must not."""

import itertools
import json
import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import pytest

DEV = Path(__file__).parents[2] / "dev"


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    monkeypatch.syspath_prepend(DEV)
    return import_module


def lowered(function: Any) -> str:
    """With the lines of this file in it, and names of arguments and results."""
    module: Any = jax.jit(function).lower(jnp.ones((3, 5))).compiler_ir()
    return module.operation.get_asm(enable_debug_info=True)


@jax.jit
def positive(x):
    return jnp.where(x > 0, x, 0.0)


@jax.jit
def rectified(y):
    return jnp.where(y > 0, y, 0.0)


def one(x):
    return {"first": positive(x) @ x.T, "second": jnp.where(x > 1, x, 2.0)}


def other(values):
    return {"a": rectified(values) @ values.T, "b": jnp.where(values > 1, values, 2.0)}


def test_names_and_places_are_no_part_of_a_program(module) -> None:
    stablehlo = module("stablehlo")
    first, second = lowered(one), lowered(other)
    assert all(word in first for word in ("loc(", "@positive", "jit_one", "['first']", "test_lowered.py"))
    assert first != second
    assert stablehlo.normalised(first) == stablehlo.normalised(second)
    assert not re.search(r"loc|jit|positive|where|result|test_lowered", stablehlo.normalised(first))
    assert stablehlo.normalised(stablehlo.normalised(first)) == stablehlo.normalised(first)


@pytest.mark.parametrize(
    "changed",
    [
        lambda x: {"a": rectified(x) @ x.T, "b": jnp.where(x > 1, x, 3.0)},  # a constant
        lambda x: {"a": rectified(x) @ x.T, "b": jnp.where(x >= 1, x, 2.0)},  # an operation
        lambda x: {"a": rectified(x) @ x.T, "b": jnp.where(x > 1, 2.0, x)},  # the order of operands
        lambda x: {"b": rectified(x) @ x.T, "a": jnp.where(x > 1, x, 2.0)},  # the order of results
    ],
)
def test_what_is_computed_is(module, changed) -> None:
    stablehlo = module("stablehlo")
    assert stablehlo.normalised(lowered(changed)) != stablehlo.normalised(lowered(one))


def test_foreign_functions_keep_their_names_and_lose_digests(module) -> None:
    stablehlo = module("stablehlo")

    def call(target: str, config: str = '""') -> str:
        line = f'%0 = stablehlo.custom_call @{target}(%1) {{a = {config}}} : () -> () loc("f"("(":1:2))'
        return f"module @m {{\n  {line}\n}}"

    plain = stablehlo.normalised(call("plainformer_norm"))
    assert stablehlo.foreign_functions(plain) == ["plainformer_norm"]
    assert "loc" not in plain
    assert stablehlo.normalised(call("plainformer_norm_0a1b2c3d4e")) == plain
    assert stablehlo.normalised(call("plainformer_gelu")) != plain
    assert stablehlo.normalised(call("plainformer_norm", '"@m loc(0)"')) != plain
    pointers = [
        stablehlo.normalised(call("xla_ffi_python_cpu_callback", str(one))) for one in (94120385012, 94120385999)
    ]
    assert pointers[0] == pointers[1]


def test_programs_are_the_same_without_the_borders_of_their_functions(module) -> None:
    stablehlo, written_out = module("stablehlo"), module("lowered_table")._inlining()

    def loop(inner: Any) -> Any:
        return lambda x: jax.lax.while_loop(lambda c: c.sum() < 3, lambda c: inner(c) + 1.0, x)

    def plain(x):
        return jnp.where(x > 0, x, 0.0)

    with_borders, without, another = (
        stablehlo.normalised(lowered(loop(inner))) for inner in (positive, plain, lambda x: jnp.where(x > 0, x, 1.0))
    )
    assert with_borders != without
    assert written_out(with_borders) == written_out(without)
    assert written_out(with_borders) != written_out(another)


def test_the_result_of_a_call_ends_with_its_region(module) -> None:
    """What a loop's condition calls a value, its body calls another, with another type."""
    stablehlo, written_out = module("stablehlo"), module("lowered_table")._inlining()

    def doubled(x):
        return jax.lax.fori_loop(0, 3, lambda _, c: c + c, x)  # one of several results of a loop

    def loop(inner: Any) -> Any:
        return lambda x: jax.lax.while_loop(lambda c: inner(c).sum() < 3, lambda c: c[:, :2].sum() + c, x)

    with_borders, without = (stablehlo.normalised(lowered(loop(inner))) for inner in (jax.jit(doubled), doubled))
    assert "%1 = func.call" in with_borders
    assert "%1 = stablehlo.slice" in with_borders
    assert written_out(with_borders) == written_out(without)


def test_every_pair_of_settings_occurs_that_may(module) -> None:
    cases, axes = module("lowered_cases"), {"a": (1, 2, 3), "b": (4, 5), "c": (6, 7), "d": (8, 9)}

    def fits(case: Any) -> bool:
        return (case["a"], case["b"]) != (3, 5)

    found = cases.pairwise(axes, fits)
    for (one, here), (other, there) in itertools.combinations(axes.items(), 2):
        seen = {(case[one], case[other]) for case in found}
        assert seen == set(itertools.product(here, there)) - ({(3, 5)} if one + other == "ab" else set())
    assert len(found) < 10  # of 20 that fit


def test_a_folder_is_compared_with_another(module, tmp_path, capsys) -> None:
    def folder(name: str, programs: dict[str, tuple[str, list[str]]]) -> Path:
        (tmp_path / name / "programs").mkdir(parents=True)
        (tmp_path / name / "run").mkdir()
        for program, (text, _) in programs.items():
            (tmp_path / name / "programs" / f"{program}.mlir").write_text(text)
        facts = {program: {"count": 1, "operations": 7, "foreign": called} for program, (_, called) in programs.items()}
        where = {"task": "translation", "label": "train", "devices": 1, "kernels": True, "code": 0}
        (tmp_path / name / "run" / "0-train.json").write_text(json.dumps({**where, "programs": facts}))
        return tmp_path / name

    def compare(after: Path, renamed: dict[str, str] | None = None) -> tuple[int, str]:
        code = module("lowered_table").compare(before, after, renamed or {}, inlined=False, lines=9)
        return code, capsys.readouterr().out

    before = folder("before", {"a": ("same\n", []), "b": ("call @plainformer_product(1)\n", ["plainformer_product"])})
    code, said = compare(before)
    assert (code, "equal: 2 " in said) == (0, True)
    renamed = folder("renamed", {"a": ("same\n", []), "c": ("call @plainformer_matmul(1)\n", ["plainformer_matmul"])})
    assert compare(renamed)[0] == 1
    code, said = compare(renamed, {"product": "matmul"})
    assert (code, "the CPU kernel product is called matmul after it" in said) == (0, True)
    assert module("lowered_table").compare(before, renamed, {}, only="no run", inlined=False, lines=9) == 0
    assert "0 of 0 commands" in capsys.readouterr().out
    changed = folder("changed", {"a": ("same\n", []), "d": ("call @plainformer_product(2)\n", ["plainformer_product"])})
    code, said = compare(changed)
    assert (code, "DIFFERS: 1 equal, 1 gone, 1 new" in said) == (1, True)
    assert "-call @plainformer_product(1)" in said
    assert "+call @plainformer_product(2)" in said
