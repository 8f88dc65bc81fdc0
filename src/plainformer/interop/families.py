"""The families that are known, by the `model_type` of their `config.json`."""

from plainformer.interop.bert import BERT
from plainformer.interop.family import Family
from plainformer.interop.gpt2 import GPT2
from plainformer.interop.llama import LLAMA
from plainformer.interop.marian import MARIAN

FAMILIES: dict[str, Family] = {family.model_type: family for family in (GPT2, LLAMA, BERT, MARIAN)}
