"""A look as a notebook shows it: tokens, attention, the lens and the beam, in one piece of HTML.

Everything from outside (texts, tokens, labels) is escaped. Maps are images of some hundred bytes, inside the page.
"""

import base64
import struct
import zlib
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

MAP = 48  # pixels that a map of attention has at most, each way
POSITIONS = 32  # that the table of the lens has at most
BLUE = 31, 90, 200  # which is read on white and on black

STYLE = (
    "font:13px system-ui,sans-serif;line-height:1.5;overflow-x:auto;max-width:100%",
    "display:inline-block;padding:0 .4em;margin:.1em;border:1px solid rgba(128,128,128,.5);border-radius:4px",
    "image-rendering:pixelated;width:72px;height:72px;border:1px solid rgba(128,128,128,.5);display:block",
    "padding:.1em .4em;text-align:left;white-space:nowrap",
)
WHOLE, CHIP, IMAGE, CELL = STYLE


def page_of(look: Any) -> str:
    """The whole of an `inspect.look.Look`."""
    parts = [
        f"<p><b>{escape(look.kind)}</b> {escape(look.text)}</p>",
        *(f"<p>{escape(note)}</p>" for note in look.notes),
        _tokens("source", look.source),
        _tokens("tokens", look.tokens),
        _labels(look) if look.kind == "classification" else "",
        _lens(look),
        _beam(look) if look.beam is not None else "",
        _attention(look),
    ]
    return f'<div class="plainformer-look" style="{WHOLE}">{"".join(parts)}</div>'


def _tokens(what: str, tokens: Iterable[Any]) -> str:
    chips = "".join(
        f'<span style="{CHIP}" title="{escape(f"{token.piece} (id {token.id})")}">{escape(token.label)}</span>'
        for token in tokens
    )
    return f"<p>{what}: {chips}</p>" if chips else ""


def _labels(look: Any) -> str:
    """Every label that is kept, and what each word does for the chosen one."""
    chosen = look.chosen[0].token.text
    rows = [f"<tr>{_cell(one.token.text)}{_cell(f'{one.probability:.1%}')}</tr>" for one in look.predictions[0]]
    words = "".join(f"<tr>{_cell(word)}{_cell(f'{change[chosen]:+.1%}')}</tr>" for word, change in look.left_out)
    title = f"<p>by how much each word raises the probability of {escape(chosen)}</p>"
    return f"<table>{''.join(rows)}</table>" + (f"{title}<table>{words}</table>" if words else "")


def _lens(look: Any) -> str:
    """The best token at every depth, and in a tip its probability and those behind it."""
    count = len(look.predictions)
    shown = range(max(0, count - POSITIONS), count)
    tokens = ["all"] if look.kind == "classification" else [look.tokens[place].label for place in shown]
    head = "".join(f'<th style="{CELL}">{escape(token)}</th>' for token in tokens)
    rows = [
        f'<tr><th style="{CELL}">{"embeddings" if depth == 0 else f"layer {depth - 1}"}</th>'
        + "".join(_guess(row[place]) for place in shown)
        + "</tr>"
        for depth, row in enumerate(look.lens)
    ]
    part = f" (the last {POSITIONS} of {count} positions)" if count > POSITIONS else ""
    title = f"<p>what would be said after each layer{part}</p>"
    return f'{title}<table style="border-collapse:collapse"><tr><th></th>{head}</tr>{"".join(rows)}</table>'


def _guess(ranked: Sequence[Any]) -> str:
    first = ranked[0]
    tip = "; ".join(f"{one.token.piece} {one.probability:.1%}" for one in ranked)
    colour = f"background:rgba({','.join(map(str, BLUE))},{0.45 * first.probability:.2f})"
    return f'<td style="{CELL};{colour}" title="{escape(tip)}">{escape(first.token.label)}</td>'


def _beam(look: Any) -> str:
    """Each step of the search: what went on or ended, and what was pruned."""
    rows = []
    for step in range(1, max((node.step for node in look.beam.nodes), default=0) + 1):
        here = [node for node in look.beam.nodes if node.step == step]
        kept = "".join(_node(look, node) for node in here if node.fate != "pruned")
        pruned = "".join(_node(look, node) for node in here if node.fate == "pruned")
        rows.append(f"<tr>{_cell(str(step))}<td>{kept}</td><td style='opacity:.55'>{pruned}</td></tr>")
    head = "".join(f'<th style="{CELL}">{name}</th>' for name in ("step", "kept", "pruned"))
    title = "<p>the beam (after which tokens, and why, in the tip of each)</p>"
    return f"{title}<table><tr>{head}</tr>{''.join(rows)}</table>"


def _node(look: Any, node: Any) -> str:
    pieces = [look.subject.tokenizer.token(one.token) for one in look.beam.path(node.number)]
    tip = f"{' '.join(pieces)}: {node.total:.3f} nats, score {node.score:.3f}; {node.fate}: {node.why}"
    mark = {"finished": " ■", "stopped": " ◌"}.get(node.fate, "")
    return f'<span style="{CHIP}" title="{escape(tip)}">{escape(pieces[-1])}{mark}</span>'


def _attention(look: Any) -> str:
    """A map of every head: queries downwards, keys to the right."""
    rows = []
    for name, weights in look.attention.items():
        images = "".join(
            f'<td><img style="{IMAGE}" alt="{escape(name)}, head {head}" title="{escape(name)}, head {head}" '
            f'src="{map_of(weights[0, head])}"></td>'
            for head in range(weights.shape[1])
        )
        rows.append(f"<tr>{_cell(name)}{images}</tr>")
    return f"<p>attention, a map for each head: queries downwards, keys to the right</p><table>{''.join(rows)}</table>"


def _cell(text: str) -> str:
    return f'<td style="{CELL}">{escape(text)}</td>'


def map_of(weights: NDArray[Any]) -> str:
    """The address of a small image of weights (query, key) from 0 to 1; of large ones the largest of each block."""
    small = _at_most(np.asarray(weights, np.float32), MAP)
    alpha = np.clip(np.round(255 * small), 0, 255).astype(np.uint8)
    height, width = alpha.shape
    # A palette of 256 steps of opacity: on white or black, as the page is.
    rows = b"".join(b"\0" + row.tobytes() for row in alpha)
    chunks = [
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)),
        (b"PLTE", bytes(BLUE) * 256),
        (b"tRNS", bytes(range(256))),
        (b"IDAT", zlib.compress(rows, 9)),
        (b"IEND", b""),
    ]
    body = b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )
    return "data:image/png;base64," + base64.b64encode(b"\x89PNG\r\n\x1a\n" + body).decode()


def _at_most(weights: NDArray[np.float32], most: int) -> NDArray[np.float32]:
    steps = [-(-size // most) for size in weights.shape]
    if max(steps) <= 1:
        return weights
    padded = np.pad(weights, [(0, -size % step) for size, step in zip(weights.shape, steps, strict=True)])
    rows, columns = (size // step for size, step in zip(padded.shape, steps, strict=True))
    return padded.reshape(rows, steps[0], columns, steps[1]).max(axis=(1, 3))
