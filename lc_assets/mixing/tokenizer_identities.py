"""What Megatron's Hugging Face tokenizer says of itself, version by version of megatron-core.

That text is part of the name of every cached index, so a cache must know it. Sure is only what the
program itself prints::

    json.dumps(tokenizer.unique_identifiers)

For a Hugging Face tokenizer with default arguments these templates are that text.
Source: printed by megatron-core 0.16.1, 0.19.2 and Megatron-LM's main of 2026-08.
"""

from collections.abc import Mapping
from typing import Any

_OLDER = "megatron.core.tokenizers.text.models.default_tokenizer.DefaultTokenizerText"
_NEWER = "megatron.core.tokenizers.text.text_tokenizer.MegatronTokenizerText"


def hugging_face_identities(tokenizer_path: str) -> Mapping[str, dict[str, Any]]:
    """Identities by the versions that use them.

    Args:
        tokenizer_path: as Megatron is told: a name or a folder, written exactly so.

    >>> list(hugging_face_identities("gpt2"))
    ['0.15 to 0.17', '0.18 to 0.19', 'main']
    """
    rest = {
        "vocab_file": "None",
        "merges_file": "None",
        "additional_special_tokens": "[]",
        "use_fast": "True",
        "trust_remote_code": "False",
        "include_special_tokens": "True",
    }
    template = {"chat_template": "None"}
    return {
        "0.15 to 0.17": {"class": _OLDER, "tokenizer_path": tokenizer_path} | rest,
        "0.18 to 0.19": {"class": _OLDER, "tokenizer_path": tokenizer_path} | template | rest,
        "main": {"class": _NEWER, "tokenizer_path": tokenizer_path}
        | template
        | rest
        | {"use_gigatoken": "False"},
    }
