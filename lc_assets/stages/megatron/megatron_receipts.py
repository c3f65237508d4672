"""The receipt beside a Megatron data set: ``{prefix}.receipt``, JSON that says what the two files
are and where they come from.

Megatron does not look at it; `lc verify` does, and knows from it the digests, the vocabulary and
whether every document ends with the end-of-document id. Its name does not end in ``.json``, because
a file that does is a corpus to `lc`.
"""

from pathlib import Path
from typing import Final

import msgspec

from lc_assets.formats.megatron.idx import bin_path, idx_path
from lc_assets.formats.megatron.indexed import MegatronReader
from lc_assets.lake.digests import sha256_of_file
from lc_assets.lake.receipts import decode_json, encode_json, with_checksum
from lc_assets.publishing import publish_bytes

SUFFIX: Final = ".receipt"


class Ids(msgspec.Struct, frozen=True, kw_only=True):
    """What the ids of a data set mean.

    Attributes:
        tokenizer: name of the vocabulary.
        tokenizer_sha256: of the file that defines it.
        n_ids: every id is smaller.
        eod: the id that ends every document; None when none was appended.
        dtype: of the ids.
    """

    tokenizer: str
    tokenizer_sha256: str
    n_ids: int
    eod: int | None
    dtype: str


class DataSetReceipt(msgspec.Struct, frozen=True, kw_only=True):
    """What a data set is.

    Attributes:
        made_by: ``write`` or ``merge``.
        ids: what they mean; None when the parts of a merged data set did not say.
        documents: how many there are.
        tokens: ids together.
        bin_sha256: of the ``.bin``.
        idx_sha256: of the ``.idx``; together they are the content's version.
        dropped: documents that were seen and not written, by reason.
        checksum: digest of everything else in the receipt.
    """

    made_by: str
    ids: Ids | None
    documents: int
    tokens: int
    bin_sha256: str
    idx_sha256: str
    dropped: dict[str, int] = {}
    checksum: str = ""


def receipt_path(prefix: Path) -> Path:
    """``{prefix}.receipt``; a prefix may hold dots."""
    return prefix.with_name(f"{prefix.name}{SUFFIX}")


def write_receipt(
    prefix: Path, *, made_by: str, ids: Ids | None, dropped: dict[str, int]
) -> DataSetReceipt:
    """Read a data set whole and publish its receipt."""
    reader = MegatronReader(prefix)
    receipt = with_checksum(
        DataSetReceipt(
            made_by=made_by,
            ids=ids,
            documents=len(reader.document_indices) - 1,
            tokens=reader.n_tokens,
            bin_sha256=sha256_of_file(bin_path(prefix)),
            idx_sha256=sha256_of_file(idx_path(prefix)),
            dropped=dict(sorted(dropped.items())),
        )
    )
    publish_bytes(receipt_path(prefix), encode_json(receipt))
    return receipt


def read_receipt(prefix: Path) -> DataSetReceipt | None:
    """The receipt beside a data set, or None when there is none.

    Raises:
        CorruptFile: when there is one that cannot be read.
    """
    path = receipt_path(prefix)
    return decode_json(path, DataSetReceipt) if path.is_file() else None
