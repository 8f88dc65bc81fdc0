"""A plan as lines of text, and as JSON."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from plainformer.plan.compiled import Compiled
from plainformer.plan.estimate import Memory
from plainformer.plan.hlo import Amount, Collective
from plainformer.plan.meshes import ROOM, Row
from plainformer.plan.plan import Plan
from plainformer.plan.words import counted, seconds, size
from plainformer.table import aligned

SHOWN = 12  # meshes of the table


def lines(plan: Plan) -> Iterator[str]:
    """The plan for a reader."""
    subject, chip, mesh = plan.subject, plan.chip, plan.mesh
    yield (
        f"{plan.name}: {plan.whole.parameters:,} parameters; batches of {subject.rows:,} rows of "
        f"{subject.row_tokens:,} targets in {subject.settings.compute_dtype}; {counted(mesh.size, 'device')} as {mesh}"
    )
    yield f"{chip.name}: {chip.source}"
    yield from (f"assumed: {one}" for one in subject.about)
    yield from plan.row.notes
    yield ""
    yield from _memory(plan)
    yield ""
    yield f"exchanged in a step by each device, as a compiler for {chip.name} is expected to have it"
    yield from _exchanged(plan.row.estimate.exchanged)
    if plan.compiled is not None:
        yield ""
        yield f"exchanged as {_compiler(plan.compiled)} has it"
        yield from _exchanged(plan.compiled.exchanged)
    yield ""
    yield from _times(plan)
    yield ""
    yield from _table(plan)


def _memory(plan: Plan) -> Iterator[str]:
    estimate, chip = plan.row.estimate, plan.chip
    own = "recomputing" if plan.subject.settings.remat else "plain"
    rows = [("a device needs", "plain", "recomputing layers")]
    for name in (*Memory._fields, "total"):
        title = "in all (the larger of the last two)" if name == "total" else name
        rows.append((title, size(getattr(estimate.plain, name)), size(getattr(estimate.remat, name))))
    yield from aligned(rows)
    fits = "fits" if plan.row.fits else "does not fit"
    most = f"the largest batch that does has {plan.row.most_rows:,} rows" if plan.row.most_rows else "no batch does"
    yield f"this training ({own}) {fits} in {ROOM:.0%} of {size(chip.memory)}; {most}".replace("%", " %")
    if (found := plan.compiled) is not None:
        yield (
            f"{_compiler(found)} counts {size(found.memory)}: arguments {size(found.arguments)}, temporaries "
            f"{size(found.temporaries)}, results {size(found.results)}"
        )


def _compiler(found: Compiled) -> str:
    """Whose figures they are."""
    depths = " and ".join("+".join(map(str, layers)) for layers in found.layers)
    how = (
        f"the whole program of {depths} layers" if len(found.layers) == 1 else f"programs of {depths} layers, extended"
    )
    return f"XLA's compiler for {found.platform} ({how})"


def _exchanged(found: Mapping[Collective, Amount]) -> list[str]:
    if not found:
        return ["nothing"]
    rows = [("collective", "axis", "count", "bytes")]
    rows += [(kind, axis, f"{count:,}", size(total)) for (kind, axis), (count, total) in found.items()]
    return aligned(rows, left=2)


def _times(plan: Plan) -> Iterator[str]:
    found, operations, devices = plan.row.times, plan.whole.operations, plan.mesh.size
    yield (
        f"a step is {operations:.3g} operations, {operations / devices:.3g} a device: {plan.chip.name} takes at least "
        f"{seconds(found.compute)} to compute, {seconds(found.memory)} for its memory, {seconds(found.interconnect)} "
        f"to exchange; {found.binds} binds"
    )
    yield (
        f"expected: {seconds(found.least)} if all that went on side by side (MFU {found.mfu(found.least):.1%}), "
        f"{seconds(found.most)} one after the other (MFU {found.mfu(found.most):.1%})"
    ).replace("%", " %")


def _table(plan: Plan) -> Iterator[str]:
    meshes = "1 mesh" if len(plan.others) == 1 else f"{len(plan.others)} meshes"
    yield f"{counted(plan.mesh.size, 'device')}: {meshes}, the quickest that fits first"
    head = ("mesh", "a device", "fits", "compute", "memory", "exchange", "step", "MFU", "binds", "most rows")
    yield from aligned([head, *(_cells(one, plan) for one in plan.others[:SHOWN])])
    if len(plan.others) > SHOWN:
        yield f"and {len(plan.others) - SHOWN} more (--json has all)"
    if plan.refused:
        more = f"; and {len(plan.refused) - 1} more" if len(plan.refused) > 1 else ""
        yield f"not possible: {plan.refused[0]}{more}"


def _cells(one: Row, plan: Plan) -> tuple[str, ...]:
    found, needs = one.times, one.estimate.remat if plan.subject.settings.remat else one.estimate.plain
    each = (seconds(found.compute), seconds(found.memory), seconds(found.interconnect), seconds(found.most))
    share = f"{found.mfu(found.most):.1%}".replace("%", " %")
    return (
        str(one.estimate.mesh),
        size(needs.total),
        "yes" if one.fits else "no",
        *each,
        share,
        found.binds,
        f"{one.most_rows:,}",
    )


def as_json(plan: Plan) -> dict[str, Any]:
    """The plan as JSON has it: bytes and seconds."""
    found = plan.compiled
    return {
        "name": plan.name,
        "parameters": plan.whole.parameters,
        "rows": plan.subject.rows,
        "row_tokens": plan.subject.row_tokens,
        "compute_dtype": plan.subject.settings.compute_dtype,
        "chip": plan.chip._asdict(),
        "operations": plan.whole.operations,
        "step": _row(plan.row),
        "compiled": found
        and {
            **{name: getattr(found, name) for name in ("platform", "arguments", "temporaries", "results", "memory")},
            "layers": found.layers,
            "exchanged": _amounts(found.exchanged),
        },
        "meshes": [_row(one) for one in plan.others],
        "refused": list(plan.refused),
        "assumed": plan.subject.about,
    }


def _row(one: Row) -> dict[str, Any]:
    found, taken = one.estimate, one.times
    return {
        "mesh": str(found.mesh),
        "memory": {
            name: {**part._asdict(), "total": part.total}
            for name, part in (("plain", found.plain), ("remat", found.remat))
        },
        "fits": one.fits,
        "most_rows": one.most_rows,
        "seconds": {**taken._asdict(), "least": taken.least, "most": taken.most},
        "mfu": {"least": taken.mfu(taken.most), "most": taken.mfu(taken.least)},
        "binds": taken.binds,
        "exchanged": _amounts(found.exchanged),
        "notes": one.notes,
    }


def _amounts(found: Mapping[Collective, Amount]) -> Sequence[dict[str, Any]]:
    return [{**kind._asdict(), "count": amount.times, "bytes": amount.size} for kind, amount in found.items()]
