#!/usr/bin/env bash
# The machines of one job as a Ray cluster, and a rebuild on it: sbatch ray.sh
# `ray symmetric-run` starts Ray on every machine, runs the command on the first, and ends Ray with it.
#SBATCH --job-name=lc-ray
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=32
#SBATCH --mem=128G
#SBATCH --time=24:00:00
set -euo pipefail

: "${LC_ROOT:?the lake: a folder that all machines see under this path, or a bucket}"
: "${LC_UPSTREAM:?the source}"
first=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
address=$first:$((20000 + SLURM_JOB_ID % 10000))
export RAY_USAGE_STATS_ENABLED=0 LC_EXECUTOR=ray:$address

srun --nodes="$SLURM_JOB_NUM_NODES" --ntasks="$SLURM_JOB_NUM_NODES" \
    ray symmetric-run --address "$address" --min-nodes "$SLURM_JOB_NUM_NODES" --num-cpus "$SLURM_CPUS_PER_TASK" -- \
    lc rebuild "$@"
