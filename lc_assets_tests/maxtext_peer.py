"""Answers of an installed MaxText; run by its own Python, a question as JSON its only argument."""

import hashlib
import json
import os
import sys
from pathlib import Path

os.environ |= {"JAX_PLATFORMS": "cpu"}

import grain.python as grain
import jax
import maxtext
import numpy as np
from maxtext.configs import pyconfig
from maxtext.input_pipeline import grain_data_processing, input_pipeline_interface

import lc_assets
from lc_assets.loaders.random_access import RowRecords


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
    devices = np.array(jax.devices()).reshape((1,) * len(config.mesh_axes))
    mesh = jax.sharding.Mesh(devices, config.mesh_axes)
    batches, _ = input_pipeline_interface.create_data_iterator(config, mesh)
    found = []
    for _ in range(n_samples):
        batch = next(batches)
        tokens = np.append(np.array(batch["inputs"][0]), np.array(batch["targets"])[0, -1])
        found.append(hashlib.sha256(tokens.astype(np.int64).tobytes()).hexdigest())
    return found


def rows(folder, path, sequence_length, batch, then, n_before):
    """Targets of all rows that MaxText's elastic iterators give: some number of hosts take
    ``n_before`` batches each, and ``then`` hosts go on from their state.
    """
    settings = {"grain_use_elastic_iterator": True, "packing": False, "grain_train_files": path}
    config = config_of(folder, sequence_length, batch, **settings)
    records = RowRecords(lc_assets.open(path), context_tokens=sequence_length)

    def iterators(n_hosts):
        return [
            iter(
                grain_data_processing._make_elastic_iterator(
                    grain.MapDataset.source(records),
                    config,
                    lambda dataset: dataset,
                    shard_index=host,
                    shard_count=n_hosts,
                )
            )
            for host in range(n_hosts)
        ]

    found, state = [], None
    for n_hosts, n_batches in (*((n, n_before) for n in (1, 2, 8)), (then, None)):
        hosts = iterators(n_hosts)
        for host in hosts if state else ():
            host.set_state(state)
        for host in hosts:
            for number, one in enumerate(host, 1):
                found += np.array(one["targets"]).tolist()
                if number == n_batches:
                    break
        state = hosts[0].get_state()
    return found


if __name__ == "__main__":
    question = json.loads(sys.argv[1])
    answer = {"mix": mix, "rows": rows}[question.pop("ask")](**question)
    print("answer " + json.dumps(answer))
