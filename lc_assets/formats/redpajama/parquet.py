"""Reading the data set's Parquet files: what is wrong with one, said in words.

Here: errors. Not here: the files (`lc_assets.formats.redpajama.duplicates`,
    `lc_assets.formats.redpajama.minhash`).
"""

import contextlib
from collections.abc import Iterator

import pyarrow as pa

from lc_assets.errors import CorruptFile


@contextlib.contextmanager
def damage_said_plainly(where: str) -> Iterator[None]:
    """Turn what Arrow says of a damaged file into `CorruptFile`, which names ``where``; what the
    system says goes through.
    """
    try:
        yield
    except (pa.ArrowException, UnicodeDecodeError) as error:
        raise CorruptFile(f"{where}: not a readable Parquet file: {error}") from error
    except OSError as error:
        if error.errno is not None:
            raise
        raise CorruptFile(
            f"{where}: not a readable Parquet file: {error}"
        ) from error  # Arrow's word for damaged pages
