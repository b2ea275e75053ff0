#!/bin/sh
# Submits the shards, and the job that collects them once all have succeeded; prints the numbers of both jobs. Written by
# `slicewise submit`.
cd -- "$(dirname -- "$0")" || exit 1
rm -f -- collect.code shard-*.code
job=$(sbatch --parsable @OPTIONS@ shards.sh) || exit
job=${job%%;*}
collect=$(sbatch --parsable --dependency="afterok:$job" --kill-on-invalid-dep=yes @OPTIONS@ collect.sh) || {
    code=$?
    scancel "$job"
    exit "$code"
}
echo "$job ${collect%%;*}" | tee jobs
