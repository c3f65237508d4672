"""A published token store of whole rows, made up, of any size: what the grid's benchmarks begin
with.
"""

import numpy as np

from lc_assets.builds.table_writer import TableWriter
from lc_assets.builds.tables import IDENTITY, TOKENIZED
from lc_assets.counts import Counts
from lc_assets.formats.megatron.indexed import MegatronWriter
from lc_assets.lake.lake import Lake
from lc_assets.lake.receipts import Fingerprint, receipt_of
from lc_assets.lake.versions import write_receipt
from lc_assets.vocabulary import GPT2_EOT, GPT2_VOCAB_SIZE, ROW_TOKENS
from lc_assets_tests.grid_builders import zipf_ids

SOURCE_ROWS = 64


def write_tokens(lake: Lake, key: str, *, n_shards: int, shard_documents: int) -> None:
    """Publish ``n_shards`` × ``shard_documents`` documents of 65,536 tokens: other stretches of the
    same 8 MB each time.
    """
    partition = lake.partition("token_documents", key)
    folder, source = partition.folder / "v1", zipf_ids(SOURCE_ROWS, ROW_TOKENS)
    folder.mkdir(parents=True)
    for shard in range(n_shards):
        table = TableWriter(folder / f"{shard:04d}-en_head.documents.parquet", TOKENIZED)
        with MegatronWriter.publishing(
            folder / f"{shard:04d}-en_head", np.dtype(np.uint16)
        ) as writer:
            for document in range(shard_documents):
                writer.add(np.roll(source[document % SOURCE_ROWS], document * 7 + shard))
                identity = dict.fromkeys((*IDENTITY, "tokenized_digest"), "") | {
                    "id": f"{key}/{shard:04d}/en_head.json.gz/{document}"
                }
                table.add(
                    identity
                    | {"document": document, "n_tokens": ROW_TOKENS, "n_chars": 0, "n_bytes": 0}
                )
        table.close()
    n_documents = n_shards * shard_documents
    params = {
        "min_tokens": ROW_TOKENS,
        "tokenizer": "gpt2",
        "n_ids": GPT2_VOCAB_SIZE,
        "eot": GPT2_EOT,
    }
    fingerprint = Fingerprint(
        stage="token_documents", key=key, code_version="1", params=params, inputs={}
    )
    partition.point_at(
        write_receipt(
            folder, receipt_of(folder, fingerprint, Counts(seen=n_documents, kept=n_documents))
        )
    )
