"""Every reader of bytes from outside, in one table."""

from lc_assets_tests.fuzzing import array_readers, crawl_readers, setting_readers

READERS = (*crawl_readers.READERS, *array_readers.READERS, *setting_readers.READERS)
"""Names are unique; a new reader belongs here."""
