"""A function as a program: compiled once for each shape, kept between processes, found again without tracing."""

import enum
import pickle
import re
import time
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache, update_wrapper
from threading import Lock
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np
from jax.core import Tracer
from jax.experimental import serialize_executable

from plainformer.devices import cores, default_device
from plainformer.kernels.cpu import registry
from plainformer.programs import kept
from plainformer.programs.description import Indescribable, digest_of
from plainformer.runtime import compiler_options
from plainformer.waiting import waiting_for

WORTH_KEEPING = 0.02  # seconds that tracing and compiling took, as long as finding takes: less is not kept
_FOREIGN = re.compile(r"@plainformer_(\w+)")  # a call of a CPU kernel, in the text of a lowered program

_Parts = tuple[list[Any], list[Any]]


class Program:
    """A function of PyTrees as programs of XLA, one for each shape of its arrays and each value of all else.

    Arrays (JAX's and NumPy's) are the arguments of a program. All else is compiled in, and must have a hash. With
    `kept.keep_in` executables are kept on disk, by a digest of what they depend on (`description`): another process
    that finds one neither traces nor compiles. Without it, or where the function closes over what cannot be described,
    this is `jax.jit` of arrays.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        donate: Sequence[int] = (),
        depends_on: Any = None,
    ) -> None:
        """
        Args:
            function: of positional arguments.
            donate: the numbers of the arguments whose memory the results take.
            depends_on: what a function inside another closes over; a digest of it is part of the name under which
                executables are kept. None for a function of a module, which closes over nothing.
        """
        self._function, self._donated, self._depends_on = function, frozenset(donate), depends_on
        self._jit: Any = None
        self._places: dict[Hashable, _Place] = {}
        self._statics: dict[Any, _Static] = {}
        self._lock = Lock()
        update_wrapper(self, function)

    def __call__(self, *args: Any) -> Any:
        parts, static = self._parted(args)
        if any(_kind_of(leaf) is _Kind.TRACED for part in parts for leaf in part):
            return self._function(*args)  # part of another program
        key = _key(parts, static)
        place = self._places.get(key)
        if place is None or not place.is_found:
            if not kept.is_on() or not _is_local(parts):
                if place is None:
                    self._places[key] = _Place()
                return _whole(*self._jitted()(*parts, static))
            place = self._place_of(args, parts, static)
        return _whole(*place.executable.result()(*parts))

    def after(self, first: Any) -> "After":
        """The program with its first argument given, for calls in which that stays the same."""
        return After(self, first)

    def lower(self, *args: Any) -> Any:
        """The program for these shapes, to be compiled or looked at."""
        parts, static = self._parted(args)
        return self._jitted().lower(*parts, static)

    def ahead(self, *args: Any) -> Any:
        """Have the program for these arguments compiled, or found, in the background; gives the shapes of its result.

        Where executables are not kept, nothing is done, and the result is None.

        Args:
            args: as for a call; an array may be a `jax.ShapeDtypeStruct`.
        """
        parts, static = self._parted(args)
        if not kept.is_on() or not _is_local(parts):
            return None
        return self._place_of(args, parts, static).result

    def is_ready(self, *args: Any) -> bool:
        """Whether there is a program for these arguments (as for `ahead`): in this process, or kept by another."""
        parts, static = self._parted(args)
        if _key(parts, static) in self._places:
            return True
        try:
            return kept.is_on() and kept.has(digest_of(self._identity(), args, self._donated, compiler_options()))
        except Indescribable:
            return False

    def place(self, *args: Any) -> "_Place | None":
        """Where the executable for these arguments is; None where it is JAX's."""
        parts, static = self._parted(args)
        found = self._places.get(_key(parts, static))
        return found if found is not None and found.is_found else None

    def executable(self, *args: Any) -> Callable[[list[Any], list[Any]], Any]:
        """For arguments that were called with before: what computes them, of the arrays that are donated and others."""
        if (place := self.place(*args)) is not None:
            return place.executable.result()
        _, static = self._parted(args)
        return lambda donated, given: self._jitted()(donated, given, static)

    def _parted(self, args: Sequence[Any], before: int = 0) -> tuple[_Parts, "_Static"]:
        """The arrays that are donated and those that are not, and all else, of arguments that have so many before."""
        donated: list[Any] = []
        given: list[Any] = []
        others, structures = [], []
        for number, arg in enumerate(args, before):
            leaves, structure = jax.tree.flatten(arg)
            arrays, rest = donated if number in self._donated else given, []
            for leaf in leaves:
                if _is_array(leaf):
                    arrays.append(leaf)
                    rest.append(_HOLE)
                else:
                    rest.append(leaf)
            others.append(tuple(rest))
            structures.append(structure)
        kinds = tuple(type(leaf) for rest in others for leaf in rest)  # 1, 1.0 and True are equal
        value = tuple(structures), tuple(others), kinds
        with self._lock:
            return (donated, given), self._statics.setdefault(value, _Static(value))

    def _jitted(self) -> Any:
        with self._lock:
            if self._jit is None:
                options: Any = compiler_options()  # which depend on the device, and to ask for that starts JAX
                self._jit = jax.jit(self._on_arrays, static_argnums=2, donate_argnums=0, compiler_options=options)
        return self._jit

    @property
    def _on_arrays(self) -> Callable[..., Any]:
        def on_arrays(donated: list[Any], given: list[Any], static: _Static) -> tuple[list[Any], _Static]:
            structures, others, _ = static.value
            arrays = iter(donated), iter(given)
            args = [
                jax.tree.unflatten(
                    structure,
                    [next(arrays[number not in self._donated]) if leaf is _HOLE else leaf for leaf in leaves],
                )
                for number, (structure, leaves) in enumerate(zip(structures, others, strict=True))
            ]
            leaves, structure = jax.tree.flatten(self._function(*args))
            found = [leaf for leaf in leaves if eqx.is_array(leaf)]
            rest = tuple(_HOLE if eqx.is_array(leaf) else leaf for leaf in leaves)
            return found, _Static(((structure,), (rest,), ()))

        on_arrays.__name__ = self._function.__name__  # the program's, too
        return on_arrays

    def _place_of(self, args: Sequence[Any], parts: _Parts, static: "_Static") -> "_Place":
        """Where the executable of these shapes is, or will be."""
        with self._lock:
            place = self._places.setdefault(_key(parts, static), _Place())
        with place.lock:  # another thread may be at it
            if not place.is_found:
                self._find(place, args, parts, static)
                place.is_found = True
        return place

    def _find(self, place: "_Place", args: Sequence[Any], parts: _Parts, static: "_Static") -> None:
        """Load what is kept, or else trace the function, and compile it in the background."""
        try:
            name = digest_of(self._identity(), args, self._donated, compiler_options())
        except Indescribable:
            name = None
        held = None if name is None else _Held.read(name)
        if name is not None and held is not None:
            place.result = held.result
            place.executable = _background().submit(self._load, held, parts, static, name, default_device())
            return
        began = time.perf_counter()
        lowered = self._lowered(parts, static)
        place.result = _whole(*lowered.out_info)
        place.executable = _background().submit(_compile, lowered, place.result, name, began)

    def _load(self, held: "_Held", parts: _Parts, static: "_Static", name: str, device: Any) -> Callable[..., Any]:
        """The executable that was kept; where it cannot be used here, one that is made anew, in this thread."""
        try:
            return held.load(parts, device)
        except Exception:  # of JAX, XLA or a CPU kernel
            began = time.perf_counter()
            lowered = self._lowered(parts, static)
            return _compile(lowered, _whole(*lowered.out_info), name, began)

    def _lowered(self, parts: _Parts, static: "_Static") -> Any:
        """The function traced, of shapes alone: a program does not depend on whether it was asked for ahead."""
        with waiting_for("compiling"):
            return self._jitted().lower(*jax.tree.map(_shape_of, parts), static)

    def _identity(self) -> tuple[Any, ...]:
        """What is compiled. Raises Indescribable for a function that closes over values that have no description."""
        if "<locals>" in self._function.__qualname__ and self._depends_on is None:
            raise Indescribable(self._function)
        return self._function.__module__, self._function.__qualname__, self._depends_on


class After:
    """A program whose first argument, which is not donated, is given once: to look through the arrays of a model takes
    a third of a millisecond, and a step of a small one few."""

    def __init__(self, program: Program, first: Any) -> None:
        self._program, self._first = program, first
        (donated, self._given), _ = program._parted([first])
        assert not donated
        self._known: dict[Hashable, Callable[[list[Any], list[Any]], Any]] = {}

    def __call__(self, *rest: Any) -> Any:
        (donated, given), static = self._program._parted(rest, 1)
        key = _key((donated, given), static)
        run = self._known.get(key)
        if run is None:
            result = self._program(self._first, *rest)
            self._known[key] = self._program.executable(self._first, *rest)
            return result
        return _whole(*run(donated, [*self._given, *given]))


def compiled(function: Callable[..., Any] | None = None, *, donate: Sequence[int] = ()) -> Any:
    """`Program` as a decorator of a module's function, with or without arguments of its own."""
    if function is None:
        return lambda function: Program(function, donate=donate)
    return Program(function, donate=donate)


class _Place:
    """Where the executable of a shape is, once it is there, and the shapes of its result."""

    def __init__(self) -> None:
        self.lock, self.is_found = Lock(), False
        self.executable: Future[Callable[..., Any]] = Future()
        self.result: Any = None


def compile_no_more() -> None:
    """Begin nothing more in the background: a command that has ended need not wait for it."""
    if _background.cache_info().currsize:
        _background().shutdown(wait=False, cancel_futures=True)
        _background.cache_clear()


@cache
def _background() -> ThreadPoolExecutor:
    """What compiles and loads in the background: XLA does most of it on one core, and lets others run."""
    return ThreadPoolExecutor(2 * cores(), thread_name_prefix="compile")


class _Hole:
    """Stands where an array is."""

    def __reduce__(self) -> str:
        return "_HOLE"


_HOLE = _Hole()


@jax.tree_util.register_pytree_node_class
class _Static:
    """Structures and leaves that are no arrays: a static argument of a program, and part of its result.

    A program has one for equal values, so that it is compared by identity. `jax.jit` looks arguments up in a table that
    another thread may change while Python compares or hashes them: with an `__eq__` or `__hash__` of ours the process
    can die of it (JAX 0.10.2).
    """

    def __init__(self, value: Any) -> None:
        self.value = value

    def tree_flatten(self) -> tuple[tuple[()], Any]:
        return (), self.value

    @classmethod
    def tree_unflatten(cls, value: Any, _: Any) -> "_Static":
        return cls(value)


def _whole(arrays: Sequence[Any], static: _Static) -> Any:
    """A result from its arrays and the rest of it."""
    (structure,), (leaves,), _ = static.value
    found = iter(arrays)
    return jax.tree.unflatten(structure, [next(found) if leaf is _HOLE else leaf for leaf in leaves])


def _key(parts: _Parts, static: _Static) -> Hashable:
    return (
        default_device(),
        static,
        *(tuple((leaf.shape, leaf.dtype, _is_weak(leaf)) for leaf in part) for part in parts),
    )


class _Kind(enum.Enum):
    """What a leaf is to a program."""

    OTHER, ARRAY, TRACED = range(3)


_kinds: dict[type, _Kind] = {}


def _kind_of(leaf: Any) -> _Kind:
    kind = type(leaf)
    if (found := _kinds.get(kind)) is None:  # to ask takes a microsecond, and steps have hundreds of leaves
        is_array = isinstance(leaf, jax.Array | np.ndarray | np.generic | jax.ShapeDtypeStruct)
        found = _Kind.TRACED if isinstance(leaf, Tracer) else _Kind.ARRAY if is_array else _Kind.OTHER
        _kinds[kind] = found
    return found


def _is_array(leaf: Any) -> bool:
    return _kind_of(leaf) is not _Kind.OTHER


def _shape_of(leaf: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, weak_type=_is_weak(leaf))


def _is_weak(leaf: Any) -> bool:
    return bool(getattr(leaf, "weak_type", False))


def _is_local(parts: _Parts) -> bool:
    """Whether all arrays are on the one device that programs run on; arrays of a mesh are left to `jax.jit`."""
    if jax.config.jax_disable_jit:  # pyright: ignore[reportAttributeAccessIssue]
        return False
    here = {default_device()}
    return all(leaf.devices() == here for part in parts for leaf in part if isinstance(leaf, jax.Array))


def _compile(lowered: Any, result: Any, name: str | None, began: float) -> Callable[..., Any]:
    """The executable of a program that was traced, which is kept if that is worth it."""
    with kept.compiling_alone(), waiting_for("compiling"):
        compiled = lowered.compile()
    # What was traced without CPU kernels that failed would be found by those in which they work.
    if name is not None and time.perf_counter() - began >= WORTH_KEEPING and not registry.has_failed():
        _keep(name, lowered, compiled, result)
    return compiled


def _keep(name: str, lowered: Any, compiled: Any, result: Any) -> None:
    """Keep an executable: its bytes, the shapes of its result, and the CPU kernels that it calls."""
    kernels = sorted(set(_FOREIGN.findall(lowered.as_text())))
    try:
        kept.write(name, pickle.dumps((serialize_executable.serialize(compiled)[0], result, kernels)))
    except Exception:  # of pickle, JAX or XLA: what cannot be written is compiled again by the next process
        return


class _Held(NamedTuple):
    """What is kept of a program.

    executable: its bytes, as JAX serialises it.
    result: the shapes of its result.
    kernels: the CPU kernels that it calls, which XLA must know of before.
    """

    executable: bytes
    result: Any
    kernels: Sequence[str]

    @classmethod
    def read(cls, name: str) -> "_Held | None":
        """What is kept under a name; None where nothing is, or nothing that can be read."""
        if (data := kept.read(name)) is None:
            return None
        try:
            return cls(*pickle.loads(data))
        except Exception:  # of a class that is gone, say
            return None

    def load(self, parts: _Parts, device: Any) -> Callable[..., Any]:
        """The executable on a device, for arguments of this structure. Raises whatever JAX, XLA and CPU kernels do."""
        if self.kernels:
            registry.register(self.kernels)
        leaves, structure = jax.tree.flatten(self.result)
        static = _Static(((structure,), (tuple(_HOLE if _is_array(leaf) else leaf for leaf in leaves),), ()))
        arrays = [leaf for leaf in leaves if _is_array(leaf)]
        trees = jax.tree.structure((parts, {})), jax.tree.structure((arrays, static))
        return serialize_executable.deserialize_and_load(
            self.executable, *trees, backend=device.client, execution_devices=[device]
        )
