"""The pictures that teach, each computed by the functions that the models are made of.

`PICTURES` has them by name; `plainformer figures` writes them.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from plainformer.equations.attention import masked_softmax
from plainformer.equations.loss import cross_entropy
from plainformer.equations.masks import AttentionMask, causal_mask, padding_mask
from plainformer.equations.positions import sinusoids
from plainformer.inspect.chart import altair, heat_map, rows, save
from plainformer.train.schedule import noam

LINES = ["#1f5ac8", "#c8551f", "#2a8a4a", "#8a3fb0"]


def positions() -> Any:
    """Sinusoidal encodings (section 3.5), a row for each position: every dimension a wave of its own length."""
    alt = altair()
    encoded = np.asarray(sinusoids(jnp.arange(40), 64))
    title = alt.Title("Sinusoidal positions", subtitle="sine on even dimensions, cosine on odd ones (section 3.5)")
    scale = alt.Scale(scheme="redblue", domain=[-1, 1])
    chart = heat_map(encoded, "dimension", "position", "", scale=scale).properties(width=512, height=320)
    return chart.properties(title=title)


def position_dimensions() -> Any:
    """Single dimensions of the encodings over positions: a sine and a cosine beside it, then slower ones."""
    alt = altair()
    encoded = np.asarray(sinusoids(jnp.arange(101), 20))
    data = [
        {"position": position, "value": float(encoded[position, dimension]), "dimension": str(dimension)}
        for dimension in (4, 5, 6, 7)
        for position in range(101)
    ]
    title = alt.Title("Single dimensions of a position", subtitle="d_model = 20; each pair turns more slowly")
    return _lines(data, "position", "value", "dimension", title)


def masks() -> Any:
    """Which keys each query may see: padding, the future, and both (section 3.2.3)."""
    alt = altair()
    valid = jnp.arange(8)[None, :] < 6
    causal, padding = causal_mask(8), padding_mask(valid)
    both = AttentionMask(_allowed(causal) & _allowed(padding))
    charts = [
        heat_map(
            np.broadcast_to(np.asarray(_allowed(mask), float)[0, 0], (8, 8)),
            "key",
            "query",
            name,
            scale=alt.Scale(domain=[0, 1], range=["#ececec", "#1f5ac8"]),
        )
        .encode(color=alt.Color("v:Q", legend=None, scale=alt.Scale(domain=[0, 1], range=["#ececec", "#1f5ac8"])))
        .properties(width=160, height=160)
        for name, mask in (("padding: 6 real keys", padding), ("causal", causal), ("both", both))
    ]
    title = alt.Title("Masks of attention", subtitle="blue: the query may attend to the key (section 3.2.3)")
    return alt.concat(*charts, columns=3, title=title)


def schedule() -> Any:
    """The paper's learning rate (equation 3) for sizes and warm-ups: linear up, then with the root of the step."""
    alt = altair()
    steps = np.arange(1, 20_001, 100)
    data = [
        {"step": int(step), "learning rate": float(rate), "model": f"d_model {d_model}, warm-up {warmup:,}"}
        for d_model, warmup in ((512, 4_000), (512, 8_000), (256, 4_000), (1_024, 4_000))
        for step, rate in zip(
            steps, np.asarray(jax.vmap(noam(d_model=d_model, warmup=warmup))(jnp.asarray(steps))), strict=True
        )
    ]
    title = alt.Title("The learning rate of the paper", subtitle="d_model^-0.5 · min(step^-0.5, step · warmup^-1.5)")
    return _lines(data, "step", "learning rate", "model", title)


def label_smoothing() -> Any:
    """What the loss wants of six tokens, the third being right: read off its gradient, softmax minus target."""
    alt = altair()
    logits, target, valid = jnp.zeros((1, 6)), jnp.array([2]), jnp.array([True])
    data = []
    for smoothing in (0.0, 0.1, 0.4):
        gradient = jax.grad(lambda x, e=smoothing: cross_entropy(x, target, valid, smoothing=e).loss)(logits)
        wanted = np.asarray(jax.nn.softmax(logits) - gradient)[0]
        data += [
            {"token": str(token), "probability": float(value), "ε": f"ε = {smoothing:g}"}
            for token, value in enumerate(wanted)
        ]
    title = alt.Title(
        "Label smoothing", subtitle="what the loss pulls six tokens to, token 2 being the right one (§5.4)"
    )
    return (
        alt.Chart(rows(data), title=title)
        .mark_bar()
        .encode(
            x=alt.X("token:O", axis=alt.Axis(labelAngle=0)),
            xOffset="ε:N",
            y=alt.Y("probability:Q", title="wanted probability", scale=alt.Scale(domain=[0, 1])),
            color=alt.Color("ε:N", title=None, scale=alt.Scale(range=LINES)),
        )
        .properties(width=420, height=220)
    )


def softmax_scaling() -> Any:
    """Why scores are divided by √d_k (section 3.2.1): the softmax of large scores is all on one key, and its gradient
    is nothing."""
    alt = altair()
    keys, draws, sizes = 10, 64, (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
    random = np.random.default_rng(0)
    norm = jax.jit(lambda scores: jnp.linalg.norm(jax.vmap(jax.jacobian(_softmax))(scores), axis=(1, 2)).mean())
    gradients, weights = [], []
    for d_k in sizes:
        query, key = random.normal(size=(draws, d_k)), random.normal(size=(draws, keys, d_k))
        products = np.einsum("nd,nkd->nk", query, key).astype(np.float32)
        for name, scores in (("q·k", products), ("q·k / √d_k", products / np.float32(np.sqrt(d_k)))):
            gradients.append({"d_k": d_k, "size": float(norm(scores)), "scores": name})
            if d_k == 64:
                ordered = np.sort(np.asarray(jax.vmap(_softmax)(scores)), axis=1)[:, ::-1].mean(axis=0)
                weights += [
                    {"key": f"{place + 1}", "weight": float(one), "scores": name} for place, one in enumerate(ordered)
                ]
    colour = alt.Color("scores:N", title=None, scale=alt.Scale(domain=["q·k / √d_k", "q·k"], range=LINES[:2]))
    bars = (
        alt.Chart(rows(weights), title="weights at d_k = 64, the largest first")
        .mark_bar()
        .encode(
            x=alt.X("key:O", sort=None, axis=alt.Axis(labelAngle=0)),
            xOffset="scores:N",
            y=alt.Y("weight:Q", scale=alt.Scale(domain=[0, 1])),
            color=colour,
        )
        .properties(width=300, height=210)
    )
    lines = (
        alt.Chart(rows(gradients), title="size of the gradient of the softmax")
        .mark_line(point=True)
        .encode(
            x=alt.X("d_k:Q", scale=alt.Scale(type="log", base=2), axis=alt.Axis(values=list(sizes[::2]), format="d")),
            y=alt.Y("size:Q", title="norm of the Jacobian"),
            color=colour,
        )
        .properties(width=300, height=210)
    )
    title = alt.Title(
        "Why scores are divided by √d_k",
        subtitle=f"ten keys, queries and keys drawn from N(0, 1), means of {draws} draws (section 3.2.1)",
    )
    return alt.hconcat(bars, lines, title=title)


PICTURES: dict[str, Callable[[], Any]] = {
    "positions": positions,
    "position-dimensions": position_dimensions,
    "masks": masks,
    "schedule": schedule,
    "label-smoothing": label_smoothing,
    "softmax-scaling": softmax_scaling,
}
"""The pictures that need no model, by their names."""


def write_pictures(folder: Path, suffix: str) -> list[Path]:
    """Every picture of `PICTURES` in a folder that is there, as .png or .svg; their paths."""
    paths = []
    for name, draw in PICTURES.items():
        paths.append(folder / f"{name}{suffix}")
        save(draw(), paths[-1])
    return paths


def _lines(data: list[dict[str, Any]], x: str, y: str, colour: str, title: Any) -> Any:
    alt = altair()
    names = list(dict.fromkeys(row[colour] for row in data))
    return (
        alt.Chart(rows(data), title=title)
        .mark_line()
        .encode(
            x=alt.X(f"{x}:Q"),
            y=alt.Y(f"{y}:Q"),
            color=alt.Color(f"{colour}:N", sort=None, scale=alt.Scale(domain=names, range=LINES)),
        )
        .properties(width=480, height=240)
    )


def _softmax(scores: jax.Array) -> jax.Array:
    """Equation 1's, of one query's scores (keys)."""
    return masked_softmax(scores[None, None, None, :], None)[0, 0, 0]


def _allowed(mask: AttentionMask) -> jax.Array:
    allowed = mask.materialise()
    assert allowed is not None
    return allowed
