"""Draws docs/figure1.svg: the Transformer of the paper's Figure 1, each box a link to the code that computes it.

    python dev/draw_figure1.py [FILE]

Where a class stands is looked up in the source, so that a file that moved needs nothing but another run.
"""

import ast
from functools import cache

from svg import DOCS, PACKAGE, box, line, link, number, page, words, write

WIDTH, HEIGHT = 780, 868
ENCODER, DECODER = 205, 575  # the middle of each stack
BOX = 196
FLOOR = 640  # where both stacks begin
SUBLAYER = 150  # the height of a sublayer with its residual connection
FEED = 40  # how far a sublayer is above its input: room for the three arrows of attention


@cache
def definitions() -> dict[str, list[str]]:
    """For each class and function at the top of a file, and each `Class.method`: the files that define it."""
    found: dict[str, list[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                inside = node.body if isinstance(node, ast.ClassDef) else []
                methods = [f"{node.name}.{method.name}" for method in inside if isinstance(method, ast.FunctionDef)]
                for name in (node.name, *methods):
                    found.setdefault(name, []).append(path.relative_to(DOCS.parent).as_posix())
    return found


def place(name: str) -> str:
    """The link to where `name` is defined, from docs/: its file, and the name as the anchor."""
    files = definitions().get(name, [])
    if len(files) != 1:
        raise SystemExit(
            f"{name} is defined in {len(files)} files, {', '.join(files) or 'none'}: name one that is unique"
        )
    return f"../{files[0]}#{name}"


def part(x: float, y: float, what: str, name: str, section: str, colour: str, *, width: float = BOX) -> str:
    """A box that says what it is, in the paper's words, and what it is called here."""
    about = f"{name}, section {section} of the paper"
    drawn = [box(x, y, width, 46, colour), words(x, y - 4, what), words(x, y + 14, name, "name")]
    return link(place(name), about, drawn)


def norm(x: float, y: float) -> str:
    """Add and norm, which one part does: `PostNorm`."""
    drawn = [box(x, y, BOX, 30, "c"), words(x - 42, y + 5, "Add & norm"), words(x + 50, y + 4, "PostNorm", "name")]
    return link(place("PostNorm"), "PostNorm, section 3.1 of the paper: LayerNorm(x + Sublayer(x))", drawn)


def sublayer(x: float, floor: float, side: int, drawn: str) -> list[str]:
    """A sublayer above its input at `floor`, with its norm above it and the residual connection on one side."""
    top = floor - FEED - 46
    middle = top - 31
    outside = x + side * (BOX / 2 + 22)
    return [
        line([(x, top), (x, middle + 15)]),
        line([(x, floor - 8), (outside, floor - 8), (outside, middle), (x + side * BOX / 2, middle)]),
        drawn,
        norm(x, middle),
    ]


def attention(x: float, floor: float, side: int, what: str) -> list[str]:
    """Self-attention: values, keys and queries are all of the input."""
    bar, bottom = floor - 20, floor - FEED
    return [
        line([(x, floor), (x, bottom)]),
        line([(x, bar), (x - 56, bar), (x - 56, bottom)]),
        line([(x, bar), (x + 56, bar), (x + 56, bottom)]),
        *_values_keys_queries(x, bottom),
        *sublayer(x, floor, side, part(x, bottom - 23, what, "MultiHeadAttention", "3.2.2", "a")),
    ]


def cross_attention(x: float, floor: float, side: int) -> list[str]:
    """Attention to the memory: values and keys are the encoder's output, queries the decoder's own states."""
    bottom = floor - FEED
    return [
        line([(x, floor), (x, floor - 14), (x + 56, floor - 14), (x + 56, bottom)], radius=5),
        *_values_keys_queries(x, bottom),
        *sublayer(x, floor, side, part(x, bottom - 23, "Multi-head attention", "MultiHeadAttention", "3.2.3", "a")),
    ]


def _values_keys_queries(x: float, y: float) -> list[str]:
    return [words(at - 10, y + 14, letter, "note") for at, letter in ((x - 56, "V"), (x, "K"), (x + 56, "Q"))]


def feed_forward(x: float, floor: float, side: int) -> list[str]:
    bottom = floor - FEED
    drawn = part(x, bottom - 23, "Feed-forward", "FeedForward", "3.3", "b")
    return [line([(x, floor), (x, bottom)]), *sublayer(x, floor, side, drawn)]


def stack(x: float, sublayers: int, side: int, what: str, layer: str) -> list[str]:
    """The frame of N layers, with what a layer and the whole are called."""
    top = FLOOR - sublayers * SUBLAYER + 4
    left, width, height = x - BOX / 2 - 42, BOX + 84, FLOOR + 12 - top
    shape = f'x="{number(left)}" y="{number(top)}" width="{number(width)}" height="{number(height)}" rx="10"'
    outside = x + side * (BOX / 2 + 70)
    return [
        f'<rect class="frame" {shape}/>',
        words(outside, top + height / 2, "N ×", "head"),
        link(place(what), f"{what}: N layers, section 3.1 of the paper", [words(x - 52, top - 8, what, "name")]),
        link(place(layer), f"{layer}: one layer", [words(x + 58, top - 8, layer, "name")]),
    ]


def embeddings() -> list[str]:
    """Both embeddings, and the one table of positions that is added to each."""
    plus, table = FLOOR + 50, FLOOR + 128
    middle = (ENCODER + DECODER) / 2
    drawn = [part(middle, plus, "Positional encoding", "Sinusoidal", "3.5", "f", width=150)]
    for x, what, side in ((ENCODER, "source ids", -1), (DECODER, "target ids, shifted right", 1)):
        drawn += [
            f'<circle class="box c" cx="{number(x)}" cy="{number(plus)}" r="12"/>',
            words(x, plus + 6, "+", "head"),
            line([(x, plus - 12), (x, FLOOR)], arrow=False),
            line([(middle + side * 75, plus), (x - side * 12, plus)]),
            line([(x, table - 23), (x, plus + 12)]),
            line([(x, table + 46), (x, table + 23)]),
            words(x, table + 64, what),
            part(x, table, "Embedding", "Embedding", "3.4", "d"),
        ]
    return drawn


def memory() -> list[str]:
    """The encoder's output, which is the keys and values of every decoder layer's second sublayer."""
    top = FLOOR - 2 * SUBLAYER + 4
    start = top + 29 - 15  # the top of the last norm
    between = (ENCODER + DECODER) / 2
    bar = FLOOR - SUBLAYER - FEED + 22
    bottom = FLOOR - SUBLAYER - FEED
    high = top - 32
    return [
        line([(ENCODER, start), (ENCODER, high), (between, high), (between, bar), (DECODER, bar), (DECODER, bottom)]),
        line([(between + 40, bar), (DECODER - 56, bar), (DECODER - 56, bottom)]),
        words((ENCODER + between) / 2 + 12, high - 8, "memory"),
    ]


def output() -> list[str]:
    """From the last decoder layer to probabilities."""
    top = FLOOR - 3 * SUBLAYER + 18
    return [
        line([(DECODER, top), (DECODER, 156)]),
        part(DECODER, 133, "Linear", "Transformer.project", "3.4", "e"),
        line([(DECODER, 110), (DECODER, 92)]),
        part(DECODER, 69, "Softmax, in the loss", "cross_entropy", "5.4", "e"),
        line([(DECODER, 46), (DECODER, 32)]),
        words(DECODER, 24, "probabilities of the next token"),
    ]


def draw() -> str:
    """The whole figure as SVG."""
    body = [
        link(place("Transformer"), "Transformer: the whole model", [words(24, 40, "Transformer", "head left")]),
        words(24, 62, "Figure 1 of “Attention Is All You Need”", "note left"),
        words(24, 80, "(Vaswani et al. 2017), drawn from this code:", "note left"),
        words(24, 98, "each box leads to the class that computes it", "note left"),
        *stack(ENCODER, 2, -1, "Encoder", "EncoderLayer"),
        *stack(DECODER, 3, 1, "Decoder", "DecoderLayer"),
        *attention(ENCODER, FLOOR, -1, "Multi-head attention"),
        line([(ENCODER, FLOOR - SUBLAYER + 18), (ENCODER, FLOOR - SUBLAYER)], arrow=False),
        *feed_forward(ENCODER, FLOOR - SUBLAYER, -1),
        *attention(DECODER, FLOOR, 1, "Masked attention"),
        line([(DECODER, FLOOR - SUBLAYER + 18), (DECODER, FLOOR - SUBLAYER)], arrow=False),
        *cross_attention(DECODER, FLOOR - SUBLAYER, 1),
        line([(DECODER, FLOOR - 2 * SUBLAYER + 18), (DECODER, FLOOR - 2 * SUBLAYER)], arrow=False),
        *feed_forward(DECODER, FLOOR - 2 * SUBLAYER, 1),
        *memory(),
        *output(),
        *embeddings(),
        link(
            place("Dropout"),
            "Dropout, section 5.4 of the paper",
            [words(WIDTH / 2, HEIGHT - 14, "Dropout: on the output of every sublayer and on both sums (+)", "note")],
        ),
    ]
    about = (
        "Source ids are embedded, positions added; N encoder layers of multi-head attention and feed-forward, each "
        "with a residual connection and a norm, make the memory. Target ids go the same way through N decoder layers, "
        "which also attend to the memory; a linear map and a softmax give the probabilities of the next token."
    )
    return page(WIDTH, HEIGHT, "The Transformer, encoder and decoder", about, body)


if __name__ == "__main__":
    write(draw, "figure1.svg")
