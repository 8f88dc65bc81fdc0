"""The sentence pairs that a recipe names, read from its folder or from a corpus that is built in."""

from plainformer.data import Pairs, read_pairs
from plainformer.data.builtin import EMBEDDED, LANGUAGES
from plainformer.errors import InputError
from plainformer.recipe import TranslationRecipe


def read_pairs_of(recipe: TranslationRecipe, name: str, target_name: str | None = None) -> Pairs:
    """One set of the recipe's data, by its name there, or by the names of its two sides.

    Raises:
        InputError: it is missing or broken.
    """
    data = recipe.data
    if data.path is not None:
        return read_pairs(data.path, name, data.source, data.target, columns=data.columns, target_name=target_name)
    if data.embedded not in EMBEDDED:
        raise InputError(f"no corpus {data.embedded!r} is built in", fix=f"there is {', '.join(EMBEDDED)}")
    if LANGUAGES[data.embedded] != (data.source, data.target):
        there = " to ".join(LANGUAGES[data.embedded])
        raise InputError(f"the corpus {data.embedded} is {there}", where="data.source, data.target")
    pairs = EMBEDDED[data.embedded](name)
    origin = [f"{data.embedded}/{name}:{number}" for number in range(1, len(pairs) + 1)]
    return Pairs([source for source, _ in pairs], [target for _, target in pairs], origin)
