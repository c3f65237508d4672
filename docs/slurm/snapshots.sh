#!/usr/bin/env bash
# A snapshot per task of a job array, over one lake; submitted as docs/slurm.md shows:
#   snapshots.sh FILE STAGE...       a file with a snapshot per line; only these stages and what they read
#SBATCH --job-name=lc-snapshots
#SBATCH --cpus-per-task=16
#SBATCH --mem=64G
#SBATCH --time=24:00:00
#SBATCH --requeue
#SBATCH --signal=B:TERM@300
set -euo pipefail

: "${LC_ROOT:?the lake: a folder that all machines see under this path, or a bucket}"
: "${LC_UPSTREAM:?the source}"
export LC_WORKERS=${LC_WORKERS:-${SLURM_CPUS_PER_TASK:-1}}

snapshot=$(sed -n "${SLURM_ARRAY_TASK_ID:?submit it with --array}p" "${1:?a file with a snapshot per line}")
shift
exec lc rebuild --snapshot "${snapshot:?the file has fewer lines}" "${@/#/--to=}"
