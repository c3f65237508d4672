"""Answers of an installed MaxText; run by its own Python, a question as JSON its only argument."""

import hashlib
import json
import math
import os
import sys
import time
from pathlib import Path

os.environ |= {"JAX_PLATFORMS": "cpu"}

import grain.python as grain
import jax
import maxtext
import numpy as np
from maxtext.configs import pyconfig
from maxtext.input_pipeline import (
    grain_data_processing,
    input_pipeline_interface,
    multihost_dataloading,
)

import lc_assets
from lc_assets.loaders.random_access import RowRecords
from lc_assets.loaders.stepping import as_arrays

ELASTIC = {"grain_use_elastic_iterator": True, "packing": False}


def config_of(folder, sequence_length, batch, **settings):
    """MaxText's configuration with Grain."""
    settings = {
        "run_name": "lc",
        "base_output_directory": folder,
        "dataset_type": "grain",
        "grain_worker_count": 0,
        "tokenize_train_data": False,
        "vocab_size": 50_304,
        "max_target_length": sequence_length,
        "per_device_batch_size": batch,
        "skip_jax_distributed_system": True,
        "enable_checkpointing": False,
        "hardware": "cpu",
        **settings,
    }
    base = Path(maxtext.__file__).parent / "configs" / "base.yml"
    return pyconfig.initialize(["", str(base), *(f"{k}={v}" for k, v in settings.items())])


def mesh_of(config):
    """Of this machine's only device."""
    devices = np.array(jax.devices()).reshape((1,) * len(config.mesh_axes))
    return jax.sharding.Mesh(devices, config.mesh_axes)


def mix(folder, sequence_length, n_samples, **settings):
    """Digests of the samples of a mix of Megatron files, by MaxText's own entry point."""
    config = config_of(
        folder,
        sequence_length,
        1,
        grain_file_type="mmap_npy",
        steps=n_samples,
        mmap_eod_id=50_256,
        **settings,
    )
    batches, _ = input_pipeline_interface.create_data_iterator(config, mesh_of(config))
    found = []
    for _ in range(n_samples):
        batch = next(batches)
        tokens = np.append(np.array(batch["inputs"][0]), np.array(batch["targets"])[0, -1])
        found.append(hashlib.sha256(tokens.astype(np.int64).tobytes()).hexdigest())
    return found


def elastic_iterator(config, data, host, n_hosts):
    """MaxText's, which batches single rows."""
    return grain_data_processing._make_elastic_iterator(
        grain.MapDataset.source(RowRecords(data, context_tokens=config.max_target_length)),
        config,
        lambda dataset: dataset,
        shard_index=host,
        shard_count=n_hosts,
    )


def rows(folder, path, sequence_length, batch, then, n_before, elastic):
    """Targets of all rows that MaxText's elastic iterators give, or those that take a host's
    batches: some number of hosts take ``n_before`` batches each, and ``then`` hosts go on from
    their state.
    """
    config = config_of(folder, sequence_length, batch, **ELASTIC, grain_train_files=path)
    mesh, data = mesh_of(config), lc_assets.open(path)

    def iterator(host, n_hosts):
        if elastic:
            return iter(elastic_iterator(config, data, host, n_hosts))
        share = {"batch_rows": batch, "rank": host, "n_ranks": n_hosts}
        records = RowRecords(data, context_tokens=sequence_length, **share)
        return iter(grain.MapDataset.source(records).to_iter_dataset())

    found, state = [], None
    for n_hosts, n_batches in (*((n, n_before) for n in (1, 2, 8)), (then, None)):
        hosts = [iterator(host, n_hosts) for host in range(n_hosts)]
        for host in hosts if state else ():
            host.set_state(state)
        for host in hosts:
            given = host if elastic else multihost_dataloading.MultiHostDataLoadIterator(host, mesh)
            for number, one in enumerate(given, 1):
                found += np.array(one["targets"]).tolist()
                if number == n_batches:
                    break
        state = hosts[0].get_state()
    return found


def speed(folder, path, sequence_length, batch):
    """Fewest CPU seconds of three readings of all rows, each by MaxText's iterator over hosts: of
    our loader, of batches by Grain, on one thread and on its own, and of the elastic iterator.
    """
    config = config_of(folder, sequence_length, batch, **ELASTIC, grain_train_files=path)
    shape = {"batch_rows": batch, "context_tokens": sequence_length}

    def batches(**how):
        source = grain.MapDataset.source(RowRecords(lc_assets.open(path), **shape))
        return source.to_iter_dataset(grain.ReadOptions(**how))

    readers = {
        "our loader": lambda: as_arrays(lc_assets.open(path).loader(**shape)),
        "batches": lambda: batches(num_threads=0, prefetch_buffer_size=0),
        "batches, a thread": lambda: batches(num_threads=1, prefetch_buffer_size=2),
        "elastic": lambda: elastic_iterator(config, lc_assets.open(path), 0, 1),
    }
    seconds, mesh = dict.fromkeys(readers, math.inf), mesh_of(config)
    for name, read in [*readers.items()] * 3:
        given = multihost_dataloading.MultiHostDataLoadIterator(read(), mesh)
        begun, n_left = time.process_time(), len(lc_assets.open(path).loader(**shape))
        for _ in range(n_left):
            next(given)
        seconds[name] = min(seconds[name], time.process_time() - begun)
    return seconds


if __name__ == "__main__":
    question = json.loads(sys.argv[1])
    answer = {"mix": mix, "rows": rows, "speed": speed}[question.pop("ask")](**question)
    print("answer " + json.dumps(answer))
