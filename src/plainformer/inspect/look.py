"""What `look` gives: one text in one model, with everything that was computed on the way.

seen = plainformer.load("runs/demo").look("I like pizza")
seen["decoder/0/cross_attention/weights"]      # (batch, heads, query, key); the names are those of `nn.trace`
seen.lens[1][0]                                # the best tokens after layer 1 at the first position
seen.attribution(0)                            # what each part added to the chosen token's logit
seen.without("decoder/1/cross_attention/2")    # the same, with a head off
seen                                           # in a notebook, a picture
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

import plainformer
from plainformer.errors import InputError, some_of
from plainformer.extras import require
from plainformer.given import whole
from plainformer.inspect import chart, html
from plainformer.inspect.ablation import ablate
from plainformer.inspect.attribution import Attribution, attribution
from plainformer.inspect.lens import best, lens
from plainformer.inspect.tokens import Token, token_alone
from plainformer.models.encoder import Classifier
from plainformer.models.parameters import Model
from plainformer.nn.trace import traced
from plainformer.programs.compiled import compiled
from plainformer.shapes import Array
from plainformer.tokenizer import Tokenizer
from plainformer.tokenizer.truncation import Truncate, kept_of, truncated

Kind = Literal["translation", "text", "masked", "classification"]
PLACES = 8  # tokens that texts are padded to, or a multiple: every new number is compiled anew


class Prediction(NamedTuple):
    """A token, or a label, and the probability that the model gives it."""

    token: Token
    probability: float


Ranked = tuple[Prediction, ...]
"""Predictions, the most probable first."""


@dataclass(frozen=True)
class Reading:
    """What a model reads of a text.

    Attributes:
        ids: as it reads them.
        cut: how many tokens of the text are not among them, since they do not fit.
        unknown: what the vocabulary does not have, which is read as unknown.
        notes: both, in words.
    """

    ids: list[int]
    cut: int = 0
    unknown: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Subject:
    """What was looked at: a model, and the ids that it was given. A classifier's `chosen` is its label.

    user: what looked (a `Translator`, a `TextGenerator`, …), which has the tokenizers and the settings.
    settings: of the search, of a translation that was looked for by others than the user's.
    """

    model: Model
    kind: Kind
    inputs: tuple[list[int], ...]  # ids of the text or, of a translation, of source and target
    chosen: list[int]  # at each position the id whose logit is of interest
    tokenizer: Tokenizer  # of what is predicted
    top: int
    user: Any = field(repr=False)
    settings: Any = None


@dataclass(frozen=True)
class Look:
    """One text in one model.

    Attributes:
        kind: `translation`, `text` (a language model), `masked` or `classification`.
        text: what was given.
        source: the tokens of a translation's source; of other kinds none.
        tokens: those that the logits belong to: of a translation what the decoder read, its beginning first.
        chosen: at each position what is predicted there: the next token of a translation or text, the most probable of
            a masked language model; a classifier has one for the whole text, its label.
        predictions: at each position the most probable tokens; of a classifier one row, of labels.
        lens: the same after each layer: `lens[0]` of the embeddings, `lens[-1]` equals `predictions`.
        arrays: every array by its name (`nn.trace`), with `logits`; the batch is 1.
        beam: of a translation that was searched, the tree of the search (`decode.beam_tree`).
        left_out: of a classifier, for each word, by how much the probability of every label grows with it.
        notes: what is not as one would expect, such as that the text was cut.
    """

    kind: Kind
    text: str
    source: tuple[Token, ...]
    tokens: tuple[Token, ...]
    chosen: Ranked
    predictions: tuple[Ranked, ...]
    lens: tuple[tuple[Ranked, ...], ...]
    arrays: Mapping[str, NDArray[Any]] = field(repr=False)
    subject: Subject = field(repr=False)
    beam: Any = None
    left_out: tuple[tuple[str, dict[str, float]], ...] = ()
    notes: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> NDArray[Any]:
        """An array by its name. Raises InputError for one that is not there."""
        if name not in self.arrays:
            near = [known for known in self.arrays if name.rpartition("/")[2] in known]
            raise InputError(f"there is no array {name!r}", fix=f"there are {some_of(near or list(self.arrays))}")
        return self.arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.arrays)

    def __len__(self) -> int:
        return len(self.arrays)

    def __repr__(self) -> str:
        said = " ".join(one.token.label for one in self.chosen)
        return f"Look({self.kind}: {self.text!r} -> {said!r}; {len(self.arrays)} arrays)"

    @cached_property
    def attention(self) -> dict[str, NDArray[Any]]:
        """The weights of every attention, (batch, heads, query, key), by its name: `decoder/0/cross_attention`."""
        end = "/weights"
        return {name.removesuffix(end): array for name, array in self.arrays.items() if name.endswith(end)}

    def axes(self, name: str) -> tuple[tuple[Token, ...], tuple[Token, ...]]:
        """The tokens that look and those that are looked at, of an attention. Raises InputError for another name."""
        if name not in self.attention:
            raise InputError(f"there is no attention {name!r}", fix=f"there are {some_of(list(self.attention))}")
        own = self.source if name.startswith("encoder/") else self.tokens
        return own, self.source if name.endswith("cross_attention") else own

    def attribution(self, position: int = 0, token: int | str | None = None) -> dict[str, float]:
        """What every part of the model added to a logit at a position; the sum is the logit (`inspect.attribution`).

        Args:
            position: of `tokens`; of a classifier it is where in the text, and only the sum over all is the logit.
            token: whose logit: an id or a piece (of a classifier a label); the chosen one, if not given.

        Raises:
            InputError: there is no such position or token.
        """
        return self._attributed(token).at(self._checked(position))

    def without(self, *names: str) -> "Look":
        """The same ids in the model without the named heads, sublayers or layers (`inspect.ablation.ablate`).

        Of a translation it is the same target that is looked at, not a new search. Raises InputError for an unknown
        name.
        """
        subject = replace(self.subject, model=ablate(self.subject.model, *names))
        off = f"off: {', '.join(names)}"
        return replace(look_at(subject, self.text, self.source, self.tokens), notes=(*self.notes, off))

    def attention_tensors(self) -> dict[str, Any]:
        """The keyword arguments of BertViz: `bertviz.head_view(**seen.attention_tensors())`; `model_view` takes them,
        too.

        Tensors of PyTorch, one a layer, (batch, heads, query, key). Raises InputError where PyTorch is not installed.
        """
        torch = require("torch", extra="huggingface")

        def layers(which: str) -> list[Any]:
            return [torch.tensor(array) for name, array in self.attention.items() if which in name]

        own = [token.label for token in self.tokens]
        if self.kind != "translation":
            return {"attention": layers("self_attention"), "tokens": own}
        return {
            "encoder_attention": layers("encoder/"),
            "decoder_attention": [torch.tensor(one) for name, one in self.attention.items() if "decoder" in name
                                  and name.endswith("self_attention")],
            "cross_attention": layers("cross_attention"),
            "encoder_tokens": [token.label for token in self.source],
            "decoder_tokens": own,
        }  # fmt: skip

    def plot(self, what: str = "", *, head: int | None = None, position: int = 0) -> Any:
        """A chart of Altair (extra `plots`).

        Args:
            what: an attention by its name, all heads or one; `lens`; or `attribution` at a position. The last layer's
                attention, if not given.
            head: which, counted from 0.

        Raises:
            InputError: there is no such thing, or Altair is not installed.
        """
        if what == "lens":
            return chart.lens(self.lens, self.tokens if self.kind != "classification" else [Token(0, "text", "text")])
        if what == "attribution":
            return chart.bars(self.attribution(position), f"added to the logit of {self._name_of(position)}")
        name = what or list(self.attention)[-1]
        queries, keys = self.axes(name)
        weights = self.attention[name][0]
        if head is not None and not 0 <= head < len(weights):
            raise InputError(f"{name} has no head {head}", fix=f"choose 0 to {len(weights) - 1}")
        chosen = range(len(weights)) if head is None else [head]
        return chart.attention(name, {one: weights[one] for one in chosen}, queries, keys)

    def save_plot(self, path: str | Path, what: str = "", *, head: int | None = None, position: int = 0) -> None:
        """`plot` as a PNG or SVG, by the suffix of the path. Raises InputError as it does, and for another suffix."""
        chart.save(self.plot(what, head=head, position=position), Path(path))

    def save_page(self, path: str | Path, **how: Any) -> Any:
        """An HTML file that shows all this in a browser: `plainformer.save_page` (takes and raises what it does)."""
        return plainformer.save_page(self, path, **how)

    def _repr_html_(self) -> str:
        return html.page_of(self)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}

    def _name_of(self, position: int) -> str:
        return self.chosen[0 if self.kind == "classification" else self._checked(position)].token.label

    def _checked(self, position: int) -> int:
        if not 0 <= position < len(self.tokens):
            raise InputError(f"there is no position {position}", fix=f"give one from 0 to {len(self.tokens) - 1}")
        return position

    def _attributed(self, token: int | str | None) -> Attribution:
        subject, length = self.subject, len(self.tokens)
        id = None if token is None else self._id_of(token)
        if self.kind == "classification":
            wanted: Any = np.array([subject.chosen[0] if id is None else id])
            return attribution(subject.model, self.arrays, wanted, np.ones((1, length), bool))
        return attribution(subject.model, self.arrays, np.array([subject.chosen if id is None else [id] * length]))

    def _id_of(self, token: int | str) -> int:
        subject, size = self.subject, self.arrays["logits"].shape[-1]
        if isinstance(subject.model, Classifier):
            labels = list(subject.model.config.labels)
            found = labels.index(token) if token in labels else token
        else:
            found = subject.tokenizer.id(token) if isinstance(token, str) else token
        if not isinstance(found, int) or not 0 <= found < size:
            raise InputError(f"there is no token or label {token!r}", fix="give an id, or a piece as `tokens` has them")
        return found


# ---------------------------------------------------------------------------------------------------------------------
# How it is computed
# ---------------------------------------------------------------------------------------------------------------------


def of_weights(weights: str) -> tuple[str, ...]:
    """What there is to say where a model decodes with rounded weights: it is looked at as it was loaded."""
    return () if weights == "float32" else (f"shown in float32; decoding has {weights} weights, and may say otherwise",)


def reading_of(ids: Sequence[int], most: int, way: Truncate) -> Reading:
    """What is read of a text's ids, where `most` of them are read and `way` says which."""
    cut = max(0, len(ids) - most)
    said = f"the text has {len(ids):,} tokens, of which the model reads {kept_of(most, way)}: {cut:,} are cut"
    return Reading(truncated(ids, most, way), cut, notes=(said,) if cut else ())


def most_probable(top: int) -> int:
    """How many predictions are kept of each position. Raises InputError for less than one."""
    if whole(top, "top") < 1:
        raise InputError(f"{top} predictions were asked for", fix="give at least 1")
    return top


def look_at(subject: Subject, text: str, source: Sequence[Token], tokens: Sequence[Token], **more: Any) -> Look:
    """What is seen of one text.

    Args:
        subject: model and ids.
        source, tokens: as `Look` has them.
        more: further fields of it.
    """
    lengths = [len(ids) for ids in subject.inputs]
    logits, seen, depths = _seen(subject.model, subject.top, *_padded(subject, lengths))
    found = {**seen, "logits": logits}
    arrays = {name: _cut(name, np.asarray(found[name]), lengths) for name in sorted(found, key=_in_the_model)}
    own = lengths[-1]
    if subject.kind == "classification":
        rows = [(np.asarray(ids)[:1], np.asarray(logprobs)[:1]) for ids, logprobs in depths]
    else:
        rows = [(np.asarray(ids)[0, :own], np.asarray(logprobs)[0, :own]) for ids, logprobs in depths]
    name = _namer(subject)
    ranked = [
        tuple(
            tuple(
                Prediction(name(int(id)), float(np.exp(logprob)))
                for id, logprob in zip(*place, strict=True)
                if logprob > -np.inf  # a row that is no token
            )
            for place in zip(ids, logprobs, strict=True)
        )
        for ids, logprobs in rows
    ]
    chosen = subject.chosen or [place[0].token.id for place in ranked[-1]]
    subject = replace(subject, chosen=chosen)
    probabilities = np.asarray(jax.nn.softmax(arrays["logits"][0].astype(np.float32)))
    said = [Prediction(name(id), float(row[id])) for id, row in zip(chosen, np.atleast_2d(probabilities), strict=True)]
    return Look(
        kind=subject.kind,
        text=text,
        source=tuple(source),
        tokens=tuple(tokens),
        chosen=tuple(said),
        predictions=ranked[-1],
        lens=tuple(ranked),
        arrays=arrays,
        subject=subject,
        **more,
    )


@compiled
def _seen(model: Model, top: int, *inputs: Array) -> Any:
    """Logits, intermediates, and the best of every depth."""
    logits, seen = traced(model)(*inputs)
    valid = inputs[1] if isinstance(model, Classifier) else None
    return logits, seen, [best(depth, top) for depth in lens(model, seen, valid)]


def _padded(subject: Subject, lengths: Sequence[int]) -> list[Array]:
    """The arguments of the model: texts are padded at their end, where no real position sees it."""
    config: Any = subject.model.config
    limit = getattr(config, "context", None)
    if subject.kind == "translation" and config.position == "learned":
        limit = config.max_len
    found: list[Array] = []
    for number, (ids, length) in enumerate(zip(subject.inputs, lengths, strict=True)):
        room = -(-length // PLACES) * PLACES
        room = max(length, room if limit is None else min(room, limit))
        found.append(jnp.asarray([[*ids, *[0] * (room - length)]], jnp.int32))
        if number == 0 and subject.kind != "text":
            found.append(jnp.arange(room)[None, :] < length)
    return found


def _cut(name: str, array: NDArray[Any], lengths: Sequence[int]) -> NDArray[Any]:
    """An array without its padding."""
    own = lengths[0] if name.startswith("encoder/") else lengths[-1]
    keys = lengths[0] if "cross_attention" in name else own
    kind = name.rpartition("/")[2]
    if name == "logits" and array.ndim == 2:
        return array
    if kind in ("weights", "bias"):
        return array[:, :, :own, :keys]
    if kind in ("key", "value"):
        return array[:, :, :keys]
    return array[:, :, :own] if kind in ("query", "heads") else array[:, :own]


_RANKS = {
    name: rank
    for names in (
        *(("encoder", "decoder"), ("token", "type", "position"), ("query", "key", "value", "bias", "weights", "heads")),
        ("self_attention", "cross_attention", "feed_forward"),
    )
    for rank, name in enumerate(names)
} | {"embedding": -1, "output": 10, "residual": 11, "hidden": 10**6, "logits": 10**7}


def _in_the_model(name: str) -> tuple[int, ...]:
    """Where an array stands among the others: in the order in which they are computed."""
    return tuple(int(part) if part.isdigit() else _RANKS[part] for part in name.split("/"))


def _namer(subject: Subject) -> Callable[[int], Token]:
    """A token, or a label, by its id."""
    if isinstance(subject.model, Classifier):
        labels = subject.model.config.labels
        return lambda id: Token(id, labels[id], labels[id])
    return lambda id: token_alone(subject.tokenizer, id)
