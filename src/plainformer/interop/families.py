"""The families that are known, by the `model_type` of their `config.json`."""

from plainformer.interop.bert import BERT
from plainformer.interop.family import Family
from plainformer.interop.gpt2 import GPT2
from plainformer.interop.llama import LLAMA, MISTRAL, QWEN2
from plainformer.interop.marian import MARIAN

_KNOWN = (GPT2, LLAMA, QWEN2, MISTRAL, BERT, MARIAN)
FAMILIES: dict[str, Family] = {family.model_type: family for family in _KNOWN}
