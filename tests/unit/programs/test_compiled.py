"""A program computes what its function does, and is found by other processes without being traced."""

import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from plainformer.devices import cores
from plainformer.programs import compiled as programs, kept
from plainformer.programs.compiled import Program, compiled
from plainformer.programs.description import Indescribable, digest_of


class Pair(eqx.Module):
    """Arrays, and what is compiled in."""

    a: Any
    b: Any
    name: str = eqx.field(static=True)


traced: list[str] = []


def scaled(pair: Pair, factor: float, rows: Any) -> tuple[Pair, Any, str]:
    traced.append(pair.name)
    return Pair(pair.a * factor, pair.b + rows.sum().astype(jnp.float32), pair.name + "!"), rows, pair.name


@pytest.fixture(autouse=True)
def nothing_traced_yet() -> Iterator[None]:
    traced.clear()
    yield
    kept.keep_in(None)


@pytest.fixture
def is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(programs, "WORTH_KEEPING", 0.0)
    monkeypatch.setattr(programs.registry, "has_failed", lambda: False)  # as some tests of CPU kernels have them do
    kept.keep_in(tmp_path)
    return tmp_path


def some(width: int = 3, name: str = "x") -> tuple[Pair, float, np.ndarray]:
    return Pair(jnp.arange(float(width)), jnp.ones(5), name), 2.0, np.arange(7, dtype=np.int32)


def check(result: tuple[Pair, Any, str], width: int = 3, name: str = "x", factor: float = 2.0) -> None:
    pair, rows, called = result
    np.testing.assert_array_equal(pair.a, factor * np.arange(width))
    np.testing.assert_array_equal(pair.b, np.full(5, 22.0))
    np.testing.assert_array_equal(rows, np.arange(7))
    assert (pair.name, called) == (name + "!", name)


@pytest.mark.parametrize("on", [False, True])
def test_a_program_gives_the_values_of_its_function(on: bool, request: pytest.FixtureRequest) -> None:
    if on:
        request.getfixturevalue("is_kept")
    run = Program(scaled)
    for _ in range(2):
        check(run(*some()))
    assert traced == ["x"]
    check(run(*some(width=11)), width=11)
    check(run(*some(name="y")), name="y")
    pair, _, rows = some()
    check(run(pair, 3.0, rows), factor=3.0)
    assert traced == ["x", "x", "y", "x"]


@pytest.mark.parametrize("on", [False, True])
def test_with_its_first_argument_given_it_is_the_same_program(
    on: bool, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    if on:
        request.getfixturevalue("is_kept")
    run = Program(scaled, donate=(2,))
    pair, _, rows = some()
    after = run.after(pair)
    for factor in (2.0, 3.0, 2.0, 2.0):
        given = jnp.asarray(rows)
        check(after(factor, given), factor=factor)
        assert given.is_deleted()
    check(run(pair, 3.0, jnp.asarray(rows)), factor=3.0)
    assert traced == ["x", "x"]
    monkeypatch.setattr(Program, "__call__", None)  # which looks through the first argument again
    check(after(3.0, jnp.asarray(rows)), factor=3.0)


def test_what_is_kept_is_found_without_being_traced(is_kept: Path) -> None:
    check(Program(scaled)(*some()))
    assert traced == ["x"]
    for _ in range(2):
        again = Program(scaled)
        assert again.is_ready(*some())
        check(again(*some()))
    assert traced == ["x"]
    assert not Program(scaled).is_ready(*some(width=4))
    check(Program(scaled)(*some(width=4)), width=4)
    assert traced == ["x", "x"]
    assert len(list(is_kept.iterdir())) == 2


def test_what_takes_no_time_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "WORTH_KEEPING", 1e9)
    kept.keep_in(tmp_path)
    check(Program(scaled)(*some()))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("times", [1, 2])
def test_what_is_donated_is_gone_when_it_was_found_too(is_kept: Path, times: int) -> None:
    for _ in range(times):
        pair, factor, rows = some()
        result = Program(scaled, donate=(0,))(pair, factor, rows)
        check(result)
        assert pair.a.is_deleted()
    assert traced == ["x"]


@pytest.mark.parametrize("bytes_of_it", [b"", b"no pickle"])
def test_what_cannot_be_read_is_made_again(is_kept: Path, bytes_of_it: bytes) -> None:
    check(Program(scaled)(*some()))
    (file,) = is_kept.iterdir()
    kept.write(file.name, bytes_of_it)
    check(Program(scaled)(*some()))
    assert traced == ["x", "x"]


def test_an_executable_that_cannot_be_loaded_is_made_again(is_kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check(Program(scaled)(*some()))

    def refuse(*_: Any, **__: Any) -> Any:
        raise RuntimeError("made by another XLA")

    with monkeypatch.context() as patch:
        patch.setattr(programs.serialize_executable, "deserialize_and_load", refuse)
        check(Program(scaled)(*some()))
    assert traced == ["x", "x"]


def test_ahead_gives_the_shapes_of_the_result_and_compiles_once(is_kept: Path) -> None:
    run = Program(scaled)
    pair, factor, rows = some()
    shapes = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), (pair, rows))
    found, _, called = run.ahead(shapes[0], factor, shapes[1])
    assert (found.a.shape, found.a.dtype, found.name, called) == ((3,), jnp.float32, "x!", "x")
    check(run(pair, factor, rows))
    assert traced == ["x"]
    found, *_ = Program(scaled).ahead(shapes[0], factor, shapes[1])
    assert found.b.shape == (5,)
    assert traced == ["x"]


def test_where_nothing_is_kept_nothing_is_done_ahead() -> None:
    assert Program(scaled).ahead(*some()) is None
    assert traced == []


def test_a_function_inside_another_is_kept_by_what_it_depends_on(is_kept: Path) -> None:
    def adding(number: float, **options: Any) -> Program:
        def add(x: Any) -> Any:
            traced.append("add")
            return x + number

        return Program(add, **options)

    x = jnp.ones(3)
    for number in (1.0, 2.0, 1.0):
        assert adding(number, depends_on=number)(x).tolist() == [1.0 + number] * 3
    assert traced == ["add", "add"]
    for number in (1.0, 2.0):  # and not at all where nobody has said so
        assert adding(number)(x).tolist() == [1.0 + number] * 3
    assert traced == ["add"] * 4
    assert len(list(is_kept.iterdir())) == 2


def test_several_threads_compile_once(is_kept: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    run = Program(scaled)
    with ThreadPoolExecutor(8) as pool:
        for result in pool.map(lambda _: run(*some()), range(16)):
            check(result)
    assert traced == ["x"]


def test_more_executables_that_cannot_be_loaded_than_threads_are_all_made_again(
    is_kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is made in the thread that failed to load it: one that waited for another thread would wait for ever."""
    many = range(3, 3 + 4 * cores())
    for width in many:
        check(Program(scaled)(*some(width)), width)
    traced.clear()
    all_here = threading.Barrier(2 * cores(), timeout=60)

    def refuse(*_: Any, **__: Any) -> Any:
        all_here.wait()
        raise RuntimeError("made by another XLA")

    monkeypatch.setattr(programs.serialize_executable, "deserialize_and_load", refuse)
    run = Program(scaled)
    for width in many:
        run.ahead(*some(width))
    for width in many:
        check(run(*some(width)), width)
    assert len(traced) == len(many)


def test_what_was_traced_where_cpu_kernels_failed_is_not_kept(is_kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs.registry, "has_failed", lambda: True)
    check(Program(scaled)(*some()))
    assert list(is_kept.iterdir()) == []


def test_what_is_compiled_serves_on_when_nothing_is_kept_any_more(is_kept: Path) -> None:
    run = Program(scaled)
    check(run(*some()))
    kept.keep_in(None)
    check(run(*some()))
    assert traced == ["x"]


@pytest.mark.parametrize("on", [False, True])
def test_equal_numbers_of_other_types_are_other_programs(on: bool, request: pytest.FixtureRequest) -> None:
    if on:
        request.getfixturevalue("is_kept")
    run = Program(lambda x, by: x * by, depends_on="times")
    with jax.numpy_dtype_promotion("standard"):
        found = [run(jnp.arange(3), by) for by in (2, 2.0, True, 1)]
    assert [one.dtype for one in found] == [jnp.int32, jnp.float32, jnp.int32, jnp.int32]


@pytest.mark.parametrize("on", [False, True])
def test_a_program_may_be_part_of_another(on: bool, request: pytest.FixtureRequest) -> None:
    if on:
        request.getfixturevalue("is_kept")
    run = Program(lambda x: (x**2).sum(), depends_on="squares")
    assert jax.grad(run)(jnp.asarray([3.0, 5.0])).tolist() == [6.0, 10.0]
    assert jax.jit(run)(jnp.asarray([3.0, 5.0])) == 34.0


@pytest.mark.parametrize("used", [False, True])
def test_jaxs_own_cache_is_as_it_was(is_kept: Path, used: bool) -> None:
    before = jax.config.values["jax_enable_compilation_cache"]
    try:
        jax.config.update("jax_enable_compilation_cache", used)
        check(Program(scaled)(*some()))
        assert jax.config.values["jax_enable_compilation_cache"] is used
    finally:
        jax.config.update("jax_enable_compilation_cache", before)


def test_when_a_command_has_ended_nothing_more_is_compiled_and_another_may_begin(is_kept: Path) -> None:
    check(Program(scaled)(*some()))
    programs.compile_no_more()
    check(Program(scaled)(*some(width=9)), width=9)


@compiled
def doubled(x: Any) -> Any:
    return 2 * x


@compiled(donate=(0,))
def tripled(x: Any) -> Any:
    return 3 * x


def test_a_decorated_function_is_a_program() -> None:
    assert doubled(jnp.arange(3)).tolist() == [0, 2, 4]
    assert tripled(jnp.arange(3)).tolist() == [0, 3, 6]
    assert doubled.__name__ == "doubled"


@pytest.mark.parametrize(
    "other",
    [
        (some(width=4)[0], 2.0),
        (some(name="y")[0], 2.0),
        (some()[0], 3.0),
        (some()[0], 2),
        (eqx.tree_at(lambda pair: pair.a, some()[0], jnp.arange(3)), 2.0),
        (eqx.tree_at(lambda pair: pair.a, some()[0], None), 2.0),
        ((some()[0].a, some()[0].b), 2.0),
    ],
)
def test_what_makes_another_program_makes_another_digest(other: tuple[Any, ...]) -> None:
    these = digest_of("f", (some()[0], 2.0), (), {})
    assert these == digest_of("f", (some()[0], 2.0), (), {})
    assert these != digest_of("f", other, (), {})


def test_numbers_make_no_other_digest_and_names_donation_and_options_do() -> None:
    pair = some()[0]
    these = digest_of("f", (pair,), (), {})
    assert these == digest_of("f", (eqx.tree_at(lambda pair: pair.a, pair, 7 * pair.a),), (), {})
    assert len({these, digest_of("g", (pair,), (), {}), digest_of("f", (pair,), (0,), {})}) == 3
    assert these != digest_of("f", (pair,), (), {"xla": 1})


def test_settings_of_jax_make_another_digest() -> None:
    these = digest_of("f", (), (), {})
    before = jax.config.values["jax_default_matmul_precision"]
    try:
        jax.config.update("jax_default_matmul_precision", "highest")
        assert digest_of("f", (), (), {}) != these
    finally:
        jax.config.update("jax_default_matmul_precision", before)
    assert digest_of("f", (), (), {}) == these


@pytest.mark.parametrize("value", [lambda x: x, object()])
def test_what_has_no_name_elsewhere_cannot_be_described(value: Any) -> None:
    with pytest.raises(Indescribable):
        digest_of("f", (value,), (), {})


def test_functions_and_classes_are_described_by_their_names() -> None:
    assert digest_of("f", (jax.nn.gelu, Pair), (), {}) != digest_of("f", (jax.nn.relu, Pair), (), {})


def test_another_process_finds_it_and_computes_the_same(tmp_path: Path) -> None:
    """Two processes, of which the first compiles and the second finds; the numbers are the same to the bit."""
    source = textwrap.dedent(
        """
        import sys
        from pathlib import Path
        import jax, jax.numpy as jnp
        from plainformer.programs import compiled as programs, kept
        from plainformer.models import LanguageModel, LanguageModelConfig
        from plainformer.decode.score import text_logprobs
        programs.WORTH_KEEPING = 0.0
        kept.keep_in(Path(sys.argv[1]))
        said, lowered = [], programs.Program._lowered
        programs.Program._lowered = lambda self, *given: said.append(1) or lowered(self, *given)
        config = LanguageModelConfig(vocab=19, d_model=12, d_ff=23, heads=2, layers=2, context=14)
        model = LanguageModel(config, key=jax.random.key(0))
        ids = jnp.arange(10, dtype=jnp.int32).reshape(2, 5)
        print(text_logprobs(model, ids, ids).tolist(), said)
        """
    )
    both = [
        subprocess.run([sys.executable, "-c", source, str(tmp_path)], capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    assert both[0] == both[1].replace(" []", " [1]")
    assert both[1].endswith(" []\n")


def test_threads_may_call_it_with_what_python_compares(tmp_path: Path) -> None:
    """In a process of its own: `jax.jit` dies where another thread runs while it compares two static arguments."""
    source = textwrap.dedent(
        """
        import threading, time
        import jax.numpy as jnp
        from plainformer.programs.compiled import Program

        class Number:
            def __init__(self, n): self.n = n
            def __hash__(self): return self.n
            def __eq__(self, other):
                time.sleep(0.0005)  # lets others run, as Python may between any two of its instructions
                return self.n == other.n

        program, x, is_over = Program(lambda x, number: x + number.n), jnp.float32(1), False

        def call_again():
            while not is_over:
                assert program(x, Number(0)) == 1

        thread = threading.Thread(target=call_again)
        thread.start()
        print(sum(int(program(x, Number(n))) for n in range(40)))
        is_over = True
        thread.join()
        """
    )
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "820\n"), done.stderr
