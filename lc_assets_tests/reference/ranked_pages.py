"""The codec ``lc_ranked`` by the page of its format, a bit at a time; of version 1 the writer, too."""

from bisect import bisect_right

import google_crc32c
import numpy as np

from lc_assets.formats.arrays.grid_layout import Configuration


class Page:
    """A configuration; codes are strings of 0 and 1."""

    def __init__(self, configuration):
        self.configuration, n_ids = configuration, configuration.vocab_size
        self.own = [np.frombuffer(ranks, "<u2").tolist() for ranks in configuration.own]
        rest = sorted(set(range(n_ids)) - set(configuration.ranked))
        self.ids = [*configuration.ranked, *rest, None]
        self.ranks = {number: rank for rank, number in enumerate(self.ids)}
        bits = [0] * 8 + [bits for bits in range(1, 9) for _ in range(2)] + list(range(6, 21))
        if not self.own:
            bits = [0] * 256 + [bits for bits in range(1, 20) for _ in range(64)]
        place, self.classes = 0, []
        for extra in bits:
            if place <= n_ids + 1028 * bool(self.own):
                self.classes.append((place, extra))
            place += 1 << extra
        if not self.own:
            self.classes.append((0, n_ids.bit_length()))
        self.codes = [canonical(digits) for digits in configuration.lengths]
        self.code_of = [{own: code for code, own in codes.items()} for codes in self.codes]

    def context(self, rank):
        if not self.own:
            return min(rank, 127)
        digits = self.configuration.contexts
        return int(digits[rank], 16) if rank < len(digits) else 0

    def decode(self, content, n):
        sizes, each = np.frombuffer(content, "<u4", 8).tolist(), -(-n // 8)
        found, at = [], 32
        for size in sizes:
            number = int.from_bytes(content[at : at + 4 * size], "little")
            bits, context, at = iter(f"{number:0{32 * size}b}"[::-1]), 0, at + 4 * size
            for _ in range(each):
                code = ""
                while code not in self.codes[context]:
                    code += next(bits)
                first, extra = self.classes[self.codes[context][code]]
                rank = first + sum(int(next(bits)) << bit for bit in range(extra))
                if self.own:
                    rank = self.own[context][rank] if rank < 1028 else rank - 1028
                found.append(self.ids[rank])
                context = self.context(rank)
        return found[:n]

    def encode(self, flat):
        """By version 1."""
        ranks = [self.ranks[number] for number in flat]
        each = -(-len(ranks) // 8)
        ranks += [len(self.ids) - 1] * (8 * each - len(ranks))
        streams = []
        for begin in range(0, len(ranks), each):
            bits, context = "", 0
            for rank in ranks[begin : begin + each]:
                own = bisect_right(self.classes, (rank, 99), hi=len(self.classes) - 1) - 1
                own = own if own in self.code_of[context] else len(self.classes) - 1
                first, extra = self.classes[own]
                place = f"{rank - first:0{extra}b}"[::-1] * bool(extra)
                bits += self.code_of[context][own] + place
                context = self.context(rank)
            n_words = -(-len(bits) // 32)
            streams.append(int(bits[::-1] or "0", 2).to_bytes(4 * n_words, "little"))
        sizes = np.array([len(stream) // 4 for stream in streams], "<u4")
        return with_checksum(b"".join([sizes.tobytes(), *streams]))


def canonical(digits):
    code, own = 0, {}
    for length in range(1, 16):
        for number, digit in enumerate(digits):
            if int(digit, 16) == length:
                own[f"{code:0{length}b}"] = number
                code += 1
        code <<= 1
    return own


def with_checksum(content):
    return content + google_crc32c.value(content).to_bytes(4, "little")


def first_version(n_ids):
    """A configuration of version 1: in every context other classes have the shorter codes, and one
    has none.
    """
    plain = Page(Configuration(n_ids, (), ()))
    n_classes = len(plain.classes)
    bits = n_classes.bit_length()
    n_short = min((1 << bits) - n_classes, n_classes - 1)
    lengths = []
    for context in range(128):
        own = [bits - (at < n_short) for at in np.roll(np.arange(n_classes), context)]
        own[context % (n_classes - 1)] = 0
        lengths.append("".join(f"{length:x}" for length in own))
    ranked = tuple(range(n_ids - 1, n_ids // 2, -1))
    return Configuration(n_ids, ranked, tuple(lengths))
