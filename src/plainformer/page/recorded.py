"""What an engine would answer of one text: for a page in which the model itself does not travel.

`views/recorded.js` answers from it what a session of the engine (`engine/session.js`) would, in its words: description,
pass, search with its tree, lens, attribution, maps; and every head's query, key, value and weights, in float16, a block
for each head.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from plainformer.decode.beam_tree import BeamTree, Node
from plainformer.decode.mask_filler import MaskFiller
from plainformer.decode.own import silent_ids
from plainformer.decode.reference import choose, penalised
from plainformer.decode.text_classifier import TextClassifier
from plainformer.decode.text_generator import TextGenerator
from plainformer.decode.translator import Translator
from plainformer.folder import ModelFolder
from plainformer.inspect.attribution import attribution
from plainformer.inspect.lens import best
from plainformer.inspect.look import Look, Reading
from plainformer.inspect.stack import read_out, stacks, streams
from plainformer.kinds import model_type_of
from plainformer.page.blocks import Blocks, halves
from plainformer.page.token_views import token_views
from plainformer.tokenizer import Tokenizer
from plainformer.tokenizer.vocabulary import special_tokens

BEST = 12  # predictions of each place, as the views ask for them
LENS = 5  # and of each layer
EXPLAINED = 4  # tokens of each place whose logit is taken apart: the one that was chosen, and the best others
NEXT = 5000  # next tokens of a language model, the best, that are shown by their texts; others by their ids
MAP = 32  # cells of a small map, each way
OF_HEADS = ("weights", "query", "key", "value", "bias")

Values = NDArray[Any]


@dataclass(frozen=True)
class Recording:
    """A text that was read, ready to travel.

    told: what JSON can say. blocks: the arrays.
    """

    told: dict[str, Any]
    blocks: Blocks

    def to_json(self) -> str:
        """What is told, as it may stand inside a page's `<script>`."""
        whole = {**self.told, "blocks": self.blocks.layout}
        return json.dumps(whole, ensure_ascii=False, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def recording_of(seen: Look, content: ModelFolder, why: str) -> Recording:
    """All that a look saw.

    Args:
        seen: the look.
        content: the model that was looked at, with its tokenizers and settings.
        why: the model does not travel: a sentence for the reader.
    """
    return _Recorder(seen, content, why).recording()


class _Recorder:
    def __init__(self, seen: Look, content: ModelFolder, why: str) -> None:
        self.seen, self.content, self.why = seen, content, why
        self.user, self.blocks = seen.subject.user, Blocks()
        self.is_labelled = isinstance(self.user, TextClassifier)
        self.is_written = isinstance(self.user, TextGenerator)
        self.target_ids = [token.id for token in seen.tokens]

    def recording(self) -> Recording:
        predictions = self.predictions()
        arrays = {f"predictions/{name}": array for name, array in predictions.items()}
        if not self.is_labelled:
            arrays |= {f"lens/{name}": array for name, array in self.lens().items()}
        parts, explained = self.attributions(self.explained(predictions["ids"]))
        arrays |= {f"attribution/{name}": array for name, array in explained.items()}
        self.blocks.put("told", arrays)
        self.blocks.put("maps", {name: halves(largest(array[0], MAP)) for name, array in self.seen.attention.items()})
        if self.is_written:
            self.blocks.put("next", {"logits": self.seen["logits"][0, -1].astype(np.float32)})
        for name in self.seen.attention:
            self.put_heads(name)
        told = {
            "description": self.description(),
            "pass": self.passed(),
            "search": self.search(),
            "without_each_word": self.without_each_word(),
            "lens": [] if self.is_labelled else self.depths(),
            "parts": parts,
            "next": self.next_token() if self.is_written else None,
            "tokens": self.tokens(
                [array for name, array in arrays.items() if name.endswith("ids") and not self.is_labelled]
            ),
        }
        return Recording(told, self.blocks)

    # What JSON says

    def description(self) -> dict[str, Any]:
        config, source, target = self.content.model.config, self.source, self.content.target_tokenizer
        own = ["without_each_word"] if self.is_labelled else ["probabilities", "lens"]
        own += ["step"] if self.is_written else []
        searched = ["search"] if self.seen.beam is not None else []
        layers = {name.removesuffix("embedding/output"): 0 for name in self.seen if name.endswith("embedding/output")}
        for stack in layers:
            layers[stack] = sum(name.startswith(stack) and _is_layer(name.removeprefix(stack)) for name in self.seen)
        return {
            "kind": model_type_of(config),
            "config": config.to_dict(),
            "about": {name: str(value) for name, value in self.content.about.items()},
            "generation": dict(self.content.generation),
            "stacks": layers,
            "heads": config.heads,
            "special": _roles(source),
            "target_special": _roles(target),
            "mask": source.special.mask if isinstance(self.user, MaskFiller) else None,
            "methods": ["tokens", "forward", "arrays", "maps", "heads_added", "attribution", *own, *searched],
            "recorded": True,
            "why": self.why,
        }

    def passed(self) -> dict[str, Any]:
        masked = isinstance(self.user, MaskFiller)
        gaps = [at for at, id in enumerate(self.target_ids) if id == self.source.mask_id] if masked else None
        return {
            "source": [token.id for token in self.seen.source or self.seen.tokens],
            "target": self.target_ids,
            "unknown": list(self.read.unknown),
            "cut": self.read.cut,
            **({"gaps": gaps} if masked else {}),
            **({"labels": self.labels()} if self.is_labelled else {}),
            "names": self.shapes(),
        }

    def shapes(self) -> dict[str, list[int]]:
        """Of every array that can be asked for: those of `views/recorded.js` that follow from others, too."""
        found: dict[str, list[int]] = {}
        for name, weights in self.seen.attention.items():
            own = {part: self.seen[f"{name}/{part}"] for part in OF_HEADS if f"{name}/{part}" in self.seen.arrays}
            heads = weights.shape[1]
            found |= {f"{name}/{part}": [heads, *array.shape[2:]] for part, array in own.items()}
            found[f"{name}/scores"] = list(weights.shape[1:])
            found[f"{name}/heads"] = [heads, weights.shape[2], own["value"].shape[3]]
        return found

    def labels(self) -> list[dict[str, Any]]:
        logits = self.seen["logits"][0].astype(np.float32)
        probabilities = np.asarray(jax.nn.softmax(logits))
        rows = zip(self.user.labels, probabilities.tolist(), logits.tolist(), strict=True)
        return [{"label": label, "probability": probability, "logit": logit} for label, probability, logit in rows]

    def without_each_word(self) -> list[dict[str, Any]]:
        """Of a classifier. A text of one word has none without it."""
        if not self.is_labelled:
            return []
        whole = {label["label"]: label["probability"] for label in self.labels()}
        if not self.seen.left_out:
            return [{"word": word, "labels": []} for word in self.seen.text.split()]
        return [
            {
                "word": word,
                "labels": [{"label": label, "probability": whole[label] - more} for label, more in change.items()],
            }
            for word, change in self.seen.left_out
        ]

    def search(self) -> dict[str, Any] | None:
        """Of a translation that was searched for: as `engine/decode/beam.js` gives it."""
        tree: BeamTree | None = self.seen.beam
        if tree is None:
            return None
        bos, decode = self.target_ids[0], self.content.target_tokenizer.decode
        root = {"id": 0, "parent": -1, "step": 0, "token": bos, "logprob": 0.0, "total": 0.0, "score": 0.0}
        nodes = [{**root, "fate": "live", "reason": None}, *map(_node, tree.nodes)]
        last = {tuple(node.token for node in tree.path(node.number)): node.number + 1 for node in tree.nodes}
        ends = {node.token for node in tree.nodes if node.fate == "finished"}
        hypotheses = [
            {
                "ids": list(one.ids),
                "score": one.score,
                "logprob": one.logprob,
                "finished": one.finished,
                "text": decode(list(one.ids)),
                "node": next((last[path] for end in ends if (path := (*one.ids, end)) in last), last.get(one.ids, 0)),
            }
            for one in tree.hypotheses
        ]
        source = [token.id for token in self.seen.source]
        settings = dict(self.content.generation)
        return {"source": source, "bound": tree.bound, "settings": settings, "hypotheses": hypotheses, "nodes": nodes}

    def tokens(self, predicted: Sequence[Values]) -> dict[str, Any]:
        """Views of all tokens that stand in the text, or are predicted somewhere."""
        nodes = [node.token for node in self.seen.beam.nodes] if self.seen.beam is not None else []
        if self.is_written:
            predicted = [*predicted, self.ranked(self.seen["logits"][0, -1:], NEXT)["ids"]]
        ids = {*self.target_ids, *nodes, *(int(id) for array in predicted for id in np.unique(array) if id >= 0)}
        ends = {id for id in _roles(self.content.target_tokenizer).values() if id is not None}
        target = token_views(self.content.target_tokenizer, sorted(ids | ends))
        source = token_views(self.source, sorted({token.id for token in self.seen.source}))
        return {"target": target, "source": source or target}

    # Arrays

    def predictions(self) -> dict[str, Values]:
        """The best of each place (seq, BEST), as the engine tells them: without what stands for no text."""
        if self.is_labelled:
            return {"ids": np.zeros((0, 0), np.int32), "logprobs": np.zeros((0, 0), np.float32)}
        return self.ranked(self.seen["logits"][0], BEST)

    def lens(self) -> dict[str, Values]:
        """The best of each depth and place (depth, seq, LENS), of the same tokens; the last depth is the output."""
        model = self.content.model
        *inner, _ = streams(model, self.seen.arrays)
        depths = [*(np.asarray(read_out(model, stream)[0]) for stream in inner), self.seen["logits"][0]]
        found = [self.ranked(depth, LENS) for depth in depths]
        return {name: np.stack([one[name] for one in found]) for name in ("ids", "logprobs")}

    def ranked(self, logits: Values, count: int) -> dict[str, Values]:
        """The best of each row of logits (seq, vocab), by ids and log-probabilities (nats); -1 where there is none."""
        own = logits.astype(np.float32)  # a copy
        own[:, self.banned] = -np.inf
        ids, logprobs = map(np.asarray, best(jnp.asarray(own), count))
        is_one = np.isfinite(logprobs)
        return {"ids": np.where(is_one, ids, -1).astype(np.int32), "logprobs": np.where(is_one, logprobs, 0.0)}

    def depths(self) -> list[str]:
        prefix = "decoder/" if isinstance(self.user, Translator) else ""
        return [
            f"{prefix}{name}" for name in ("embedding/output", *map("{}/output".format, range(len(self.seen.lens) - 1)))
        ]

    def explained(self, ranked: Values) -> Values:
        """The tokens whose logits are told apart (seq, EXPLAINED): the chosen one, then the best; or all labels."""
        if self.is_labelled:
            return np.arange(len(self.user.labels))[None]
        return np.maximum(np.concatenate([self.chosen(ranked)[:, None], ranked[:, : EXPLAINED - 1]], axis=1), 0)

    def attributions(self, wanted: Values) -> tuple[list[str], dict[str, Values]]:
        """Names of parts; the tokens that are explained, their logits, and what each part added (part, seq, token)."""
        model, arrays, places = self.content.model, self.seen.arrays, len(self.target_ids)
        if self.is_labelled:  # one logit of the whole text
            valid = np.ones((1, places), bool)
            found = [attribution(model, arrays, np.array([label]), valid) for label in wanted[0]]
            values = [[one.parts[name].sum(axis=1) for one in found] for name in found[0].parts]
        else:
            found = [attribution(model, arrays, one[None]) for one in wanted.T]
            values = [[np.broadcast_to(one.parts[name], (1, places))[0] for one in found] for name in found[0].parts]
        names = list(found[0].parts)
        logits = np.take_along_axis(self.seen["logits"].reshape(len(wanted), -1), wanted, axis=-1)
        return names, {
            "ids": wanted.astype(np.int32),
            "logits": logits.astype(np.float32),
            "values": np.array(values, np.float32).transpose(0, 2, 1),
        }

    def chosen(self, ranked: Values) -> Values:
        """At each place the token that comes next, as views have it (`results.js`); where none does, the best."""
        if isinstance(self.user, MaskFiller):
            return ranked[:, 0]
        taken = self.target_ids[1:]
        if self.seen.kind == "translation":
            taken = self.seen.subject.chosen
        elif self.is_written:
            taken = [*taken, self.drawn()]
        return np.array([*taken, *ranked[len(taken) :, 0]])

    def next_token(self) -> dict[str, Any]:
        """Of a language model: which place its next token has, what that cannot be, and what ends a text."""
        eos = self.source.special_id("eos")
        ends = list(self.user.settings.end_tokens) or ([] if eos is None else [eos])
        return {"place": self.place, "banned": self.banned, "ends": ends}

    def drawn(self) -> int:
        """The next token as the settings draw it (`decode.reference.continuation`)."""
        settings = self.user.settings
        logits = self.seen["logits"][0, -1].astype(np.float32)
        logits = penalised(logits, self.target_ids, settings.repetition_penalty)
        logits[self.banned] = -np.inf
        of_sample = jax.random.fold_in(jax.random.key(settings.seed), 0)
        return choose(logits, jax.random.fold_in(of_sample, self.place), settings)

    @cached_property
    def place(self) -> int:
        """Of the next token in the whole text, what was cut of it among it."""
        return len(self.target_ids) + self.read.cut

    def put_heads(self, name: str) -> None:
        """A block for each head of an attention, and one of what its output projection makes of them all."""
        output = self.module(name).output
        mapped = {"heads": self.seen[f"{name}/heads"][0], "weight": np.asarray(output.weight)}
        mapped |= {} if output.bias is None else {"bias": np.asarray(output.bias)}
        self.blocks.put(f"{name}/output", {part: halves(array) for part, array in mapped.items()})
        heads = self.seen[f"{name}/weights"].shape[1]
        own = {part: self.seen[f"{name}/{part}"] for part in OF_HEADS if f"{name}/{part}" in self.seen.arrays}
        for head in range(heads):  # grouped heads share their keys
            arrays = {part: halves(array[0, head * array.shape[1] // heads]) for part, array in own.items()}
            self.blocks.put(f"{name}/{head}", arrays)

    def module(self, name: str) -> Any:
        """The attention of this name."""
        path, _, kind = name.rpartition("/")
        prefix, _, number = path.rpartition("/")
        found = next(stack for stack in stacks(self.content.model) if stack.prefix == (prefix and f"{prefix}/"))
        return getattr(found.layers[int(number)], kind)

    @cached_property
    def read(self) -> Reading:
        how = {"allow_unknown": True} if self.is_labelled else {}
        return self.user.read(self.seen.text, **how)

    @property
    def source(self) -> Tokenizer:
        return self.content.source_tokenizer

    @cached_property
    def banned(self) -> list[int]:
        """Ids that the engine does not count among predictions."""
        rows, tokenizer = self.seen["logits"].shape[-1], self.content.target_tokenizer
        if isinstance(self.user, TextGenerator):
            settings = self.user.settings
            never = silent_ids(tokenizer, rows) - set(settings.end_tokens)
            return sorted(never | set(settings.suppress_tokens))
        if isinstance(self.user, MaskFiller):
            silent = np.flatnonzero(special_tokens(tokenizer)).tolist()
            return [*silent, *range(tokenizer.vocab_size, rows)]
        return []


def largest(weights: Values, size: int) -> Values:
    """Maps (heads, rows, columns) of at most `size` cells each way of weights (heads, query, key): each cell is the
    largest of those that it stands for."""
    found = weights
    for axis in (1, 2):
        length = found.shape[axis]
        cells = min(length, size)
        found = np.maximum.reduceat(found, [-(-cell * length // cells) for cell in range(cells)], axis=axis)
    return found


def _node(node: Node) -> dict[str, Any]:
    """As the page has it: the root is the first node there, and what was stopped is pruned."""
    whole = asdict(node)
    is_cut = node.fate == "finished" and node.why != "it ended"
    reason = node.why if is_cut or node.fate in ("pruned", "stopped") else None
    fate = "pruned" if node.fate == "stopped" else node.fate
    kept = {name: whole[name] for name in ("step", "token", "logprob", "total", "score")}
    return {"id": node.number + 1, "parent": node.parent + 1, **kept, "fate": fate, "reason": reason}


def _is_layer(name: str) -> bool:
    """Whether this is the stream after a layer."""
    number, _, rest = name.partition("/")
    return number.isdigit() and rest == "output"


def _roles(tokenizer: Tokenizer) -> dict[str, int | None]:
    return {role: tokenizer.special_id(role) for role in asdict(tokenizer.special)}
