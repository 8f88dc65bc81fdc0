"""What is known about a family of foreign checkpoints: its settings as ours, and its weights' names as a table.

A family is data and three functions between dictionaries. The table is read in both directions (`interop.table`), so
that what can be loaded can be saved.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from plainformer.models.config import Config
from plainformer.tokenizer import Tokenizer

Layout = Literal["same", "transposed", "one row"]
"""How their array lies beside ours: as it is; with its two axes exchanged; as a matrix of one row, ours a vector."""


@dataclass(frozen=True)
class Row:
    """One weight of theirs, and the one or more of ours that it is.

    Attributes:
        theirs: its name; `{layer}` stands for 0, 1, 2 … as long as our model has such a layer.
        ours: the path in our model (`models.skeleton.named_parameters`). Several are side by side in theirs, along the
            last axis once it lies as ours do. A row of which our model has none does not count.
        layout: how theirs lies.
        vocab: the setting of our configuration that says how many tokens its first axis (theirs) counts; the padding
            that our table may have is cut off on the way out, and filled with zeros on the way in.
        when: which configurations the row is for; None is all.
    """

    theirs: str
    ours: tuple[str, ...]
    layout: Layout = "same"
    vocab: str | None = None
    when: Callable[[Any], bool] | None = None


@dataclass(frozen=True)
class Family:
    """One `model_type` of theirs.

    Attributes:
        model_type: as in their `config.json`.
        architecture: the class of theirs that a configuration of ours is, for `architectures` and as `AutoModel…`.
        config_from: their settings, and the place to name in errors, to our configuration. Raises InputError naming
            every setting that none of our parts can do, all at once (`settings.Settings` collects them).
        differences: the parts of a configuration of ours that this family lacks, one line each; empty where the family
            can be exactly equal to it.
        config_to: our configuration, of which there are no differences, to their settings (all that decide the
            function; `architectures` and `model_type` are added).
        table: the weights.
        prefix: of the base model in their names; a checkpoint without it is read, too.
        copies: names of theirs that repeat another weight of theirs, where our model has no weight of its own for
            them; a file may have them or not, and where it has them they must be equal. What is repeated may itself be
            a copy.
        zeros: names of theirs that are all zeros where a file does not have them.
        layers: a layer of theirs -> the name of its output in a trace of ours (`nn.trace`), `{layer}` in both: what
            `verify` compares on the way.
        ignored: patterns (`fnmatch`) of names, prefix included, that are no part of the model: buffers of old versions.
        left_out: patterns of names that are a part of theirs, and have none of ours to go to -> what they are: an
            import says so.
        renamed: ends of names in old files -> what they are called now.
        prepared: a model of ours, of which there are no differences, to the same function with its numbers as theirs
            has them.
        spelled: the tokenizer that goes with a prepared model, from ours and the configuration before.
        roles: what else their settings say about special tokens, from that tokenizer and the keyword arguments of our
            settings. Names in `_token_id` go into both files, others into `generation_config.json`.
        generation_from: their `generation_config.json`, and the place to name in errors, to the keyword arguments of
            our settings. Raises InputError for values of the wrong type.
        generation_to: our settings' keyword arguments to those of their `generation_config.json`.
        generation_keys: our names of settings -> those of that file which was read, for errors.
        generation_left_out: what their file sets that has no counterpart here, given our tokenizer: an import says so.
        generation_left_behind: what our settings say that has no counterpart there: an export says so.
        caution: what a reader of theirs does otherwise with the tokenizer of an export, in one line; empty where
            it does the same.
        warning: what is to be known of a configuration that is imported, if anything: a fact's name and the fact.
    """

    model_type: str
    architecture: Callable[[Any], str]
    config_from: Callable[[Mapping[str, Any], str], Config]
    differences: Callable[[Config], list[str]]
    config_to: Callable[[Any], dict[str, Any]]
    table: tuple[Row, ...]
    generation_from: Callable[[Mapping[str, Any], str], dict[str, Any]]
    generation_to: Callable[[Mapping[str, Any]], dict[str, Any]]
    prefix: str = ""
    copies: Mapping[str, str] = field(default_factory=dict)
    zeros: tuple[str, ...] = ()
    layers: Mapping[str, str] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)
    renamed: Mapping[str, str] = field(default_factory=dict)
    prepared: Callable[[Any], Any] = lambda model: model
    spelled: Callable[[Tokenizer, Any], Tokenizer] = lambda tokenizer, config: tokenizer
    roles: Callable[[Tokenizer, Mapping[str, Any]], dict[str, Any]] = lambda tokenizer, generation: {}
    generation_keys: Callable[[Mapping[str, Any]], dict[str, str]] = lambda values: {}
    generation_left_out: Callable[[Mapping[str, Any], Tokenizer], list[str]] = lambda values, tokenizer: []
    generation_left_behind: Callable[[Mapping[str, Any]], list[str]] = lambda generation: []
    caution: Callable[[Tokenizer], str] = lambda tokenizer: ""
    warning: Callable[[Any], dict[str, str]] = lambda config: {}
