#!/bin/sh
# Puts the shards into one results folder. Written by `slicewise submit`.
#SBATCH --job-name=slicewise-collect
#SBATCH --open-mode=append
#SBATCH --output=collect.log
ended=$PWD/collect
cd @WORK@ || exit 1
@COLLECT@ >"$ended.out"
code=$?
echo "$code" >"$ended.code"
exit "$code"
