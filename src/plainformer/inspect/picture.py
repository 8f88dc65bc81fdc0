"""A model's parts as a drawing (SVG): its stacks from the bottom up, each box with its shape and its parameters."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from plainformer.folder import AnyConfig
from plainformer.inspect.count import Part, count, parts
from plainformer.models.config import EncoderConfig, LanguageModelConfig, SingleStackConfig, TransformerConfig

WIDTH, HEIGHT, GAP, INSIDE, EDGE = 300, 40, 12, 12, 24  # of a box, between boxes, around boxes in a box, of the page
Number = float | int
COLOURS = {"embedding": "#fde6c8", "attention": "#cfe0fa", "forward": "#d5efd8", "norm": "#f4ecc2", "output": "#ead9f5"}


@dataclass(frozen=True)
class Box:
    """A part: what it is, its shape in words, its parameters; `inner` are those of one layer, of which there are
    `times`."""

    title: str
    detail: str
    parameters: int
    colour: str
    inner: tuple["Box", ...] = ()
    times: int = 1

    @property
    def height(self) -> int:
        if not self.inner:
            return HEIGHT
        return sum(box.height + GAP for box in self.inner) - GAP + 2 * INSIDE + 18


def drawing(config: AnyConfig) -> str:
    """The whole of it, an SVG."""
    columns = _columns(config)
    tallest = max(sum(box.height + GAP for box in column) - GAP for _, column in columns)
    width = 2 * EDGE + len(columns) * WIDTH + (len(columns) - 1) * 60
    bottom = EDGE + 40 + tallest
    body = []
    for number, (name, column) in enumerate(columns):
        x, y = EDGE + number * (WIDTH + 60), bottom
        body.append(_text(x + WIDTH / 2, bottom + 22, name, size=13))
        for place, box in enumerate(column):
            y -= box.height + (GAP if place else 0)
            if place:
                body.append(_arrow(x + WIDTH / 2, y + box.height + GAP, y + box.height))
            body += _box(box, x, y, WIDTH)
    if len(columns) == 2:
        body.append(_memory(columns, bottom))
    title = _text(EDGE, EDGE + 4, f"{count(config):,} parameters", size=15, anchor="start")
    marker = '<marker id="head" viewBox="0 0 6 6" refX="6" refY="3" markerWidth="6" markerHeight="6" orient="auto">'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{bottom + EDGE + 16}" '
            f'viewBox="0 0 {width} {bottom + EDGE + 16}" font-family="Liberation Sans, Arial, sans-serif">',
            f'<defs>{marker}<path d="M0,0 6,3 0,6z" fill="#555"/></marker></defs>',
            '<rect width="100%" height="100%" fill="white"/>',
            title,
            *body,
            "</svg>\n",
        ]
    )


def _columns(config: AnyConfig) -> list[tuple[str, list[Box]]]:
    """What is read at the foot of each stack, and its boxes from there up."""
    found = parts(config)
    if isinstance(config, TransformerConfig):
        target = "the source's table" if config.tie in ("three-way", "source-target") else ""
        encoder = [
            _embedding(config, found, "source_embedding", config.source_vocab, ""),
            _layers(config, found, "encoder.", config.encoder_layers),
            *_norm(config, found, "encoder.norm", "after the last layer"),
        ]
        decoder = [
            _embedding(config, found, "target_embedding", config.target_vocab, target),
            _layers(config, found, "decoder.", config.decoder_layers),
            *_norm(config, found, "decoder.norm", "after the last layer"),
            _output(config, found, config.target_vocab, "tied" if config.tie in ("three-way", "target-output") else ""),
        ]
        return [("source", encoder), ("target so far", decoder)]
    inside = "" if isinstance(config, LanguageModelConfig) else "encoder."
    column = [
        _embedding(config, found, f"{inside}embedding", config.vocab, ""),
        *_norm(config, found, f"{inside}embedding_norm", "on the sum of the embeddings"),
        _layers(config, found, inside, config.layers),
        *_norm(config, found, f"{inside}norm", "after the last layer"),
    ]
    labels = config.labels if isinstance(config, EncoderConfig) else ()
    if isinstance(config, EncoderConfig) and labels:
        column.append(Box("Pooling", config.pooling, _sum(found, "pooling"), COLOURS["norm"]))
    elif _sum(found, "transform"):
        column.append(
            Box("Transform", f"{config.d_model} → {config.d_model}", _sum(found, "transform"), COLOURS["norm"])
        )
    column.append(_output(config, found, len(labels) or config.vocab, "tied" if config.tie and not labels else ""))
    return [("text", column)]


def _embedding(config: AnyConfig, found: Sequence[Part], name: str, vocab: int, shared: str) -> Box:
    """A table, and what is added to its rows: positions, and types of tokens. `shared` says whose table it is."""
    inside = name.removesuffix("embedding") if isinstance(config, SingleStackConfig) else ""
    own = _sum(found, name)
    if name != "target_embedding":
        own += _sum(found, f"{inside}position") + _sum(found, f"{inside}token_type")
    table = shared or f"{vocab:,} tokens, {config.rows(vocab):,} × {config.d_model}"
    return Box("Embedding", f"{table}, {config.position} positions", own, COLOURS["embedding"])


def _layers(config: AnyConfig, found: Sequence[Part], inside: str, times: int) -> Box:
    """One layer's sublayers, and how many layers there are."""

    def of(part: str) -> int:
        return _sum(found, f"{inside}layers.0.{part}")

    kv_heads = config.kv_heads if isinstance(config, SingleStackConfig) else 0
    heads = f"{config.heads} heads" + (f" on {kv_heads}" if kv_heads not in (0, config.heads) else "")
    widths = f"d_k {config.key_width}, d_v {config.value_width}"
    masked = inside == "decoder." or isinstance(config, LanguageModelConfig)
    gate = "gated, " if config.gated else ""
    inner = [
        Box("Masked self-attention" if masked else "Self-attention", f"{heads}, {widths}", of("self_attention"),
            COLOURS["attention"]),
        *([Box("Cross-attention", f"{heads}, {widths}", of("cross_attention"), COLOURS["attention"])]
          if inside == "decoder." else []),
        Box("Feed-forward", f"{gate}{config.activation}, {config.d_model} → {config.d_ff} → {config.d_model}",
            of("feed_forward"), COLOURS["forward"]),
        Box(f"{_kind(config)} {'before' if config.norm_position == 'pre' else 'after'} each", f"width {config.d_model}",
            of("residuals"), COLOURS["norm"]),
    ]  # fmt: skip
    return Box(f"{times} layers", "", _sum(found, f"{inside}layers"), "#f7f7f7", tuple(inner), times)


def _norm(config: AnyConfig, found: Sequence[Part], name: str, where: str) -> list[Box]:
    own = _sum(found, name)
    return [Box(_kind(config), where, own, COLOURS["norm"])] if own else []


def _kind(config: AnyConfig) -> str:
    return "LayerNorm" if config.norm == "layer" else "RMSNorm"


def _output(config: AnyConfig, found: Sequence[Part], rows: int, tied: str) -> Box:
    detail = f"{config.d_model} → {rows:,}" + (", the embedding's table" if tied else "")
    return Box("Output projection", detail, _sum(found, "output") + _sum(found, "output_bias"), COLOURS["output"])


def _sum(found: Sequence[Part], name: str) -> int:
    return sum(part.parameters for part in found if part.name == name or part.name.startswith(f"{name}."))


def _box(box: Box, x: Number, y: Number, width: Number) -> list[str]:
    lines = [f'<rect x="{x}" y="{y}" width="{width}" height="{box.height}" rx="6" fill="{box.colour}" stroke="#777"/>']
    if not box.inner:
        lines.append(_text(x + 10, y + 17, box.title, size=13, anchor="start"))
        lines.append(_text(x + 10, y + 32, box.detail, size=11, anchor="start", colour="#444"))
        lines.append(_text(x + width - 10, y + 17, f"{box.parameters:,}", size=11, anchor="end"))
        return lines
    lines.append(_text(x + 10, y + 16, f"{box.title}, one of them:", size=12, anchor="start"))
    lines.append(_text(x + width - 10, y + 16, f"{box.parameters:,}", size=11, anchor="end"))
    below = y + box.height - INSIDE
    for place, inner in enumerate(box.inner):
        below -= inner.height + (GAP if place else 0)
        lines += _box(inner, x + INSIDE, below, width - 2 * INSIDE)
    return lines


def _memory(columns: Sequence[tuple[str, list[Box]]], bottom: Number) -> str:
    """From the top of the encoder to the decoder's layers."""
    encoder, decoder = (column for _, column in columns)
    top = bottom - sum(box.height + GAP for box in encoder) + GAP
    layers = bottom - decoder[0].height - GAP - decoder[1].height / 2
    x, turn = EDGE + WIDTH / 2, EDGE + WIDTH + 30
    path = f"M{x},{top} V{top - 14} H{turn} V{layers} H{EDGE + WIDTH + 60}"
    words = _text(turn + 6, top - 18, "memory", size=11, anchor="end", colour="#444")
    return f'<path d="{path}" fill="none" stroke="#555" marker-end="url(#head)"/>{words}'


def _arrow(x: Number, start: Number, end: Number) -> str:
    return f'<path d="M{x},{start} V{end}" stroke="#555" marker-end="url(#head)"/>'


def _text(x: Number, y: Number, said: str, *, size: int, anchor: str = "middle", colour: str = "black") -> str:
    return f'<text x="{x}" y="{y}" font-size="{size}" text-anchor="{anchor}" fill="{colour}">{escape(said)}</text>'
