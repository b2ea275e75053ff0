#!/bin/sh
# A shard of a study, as an element of a job array. Written by `slicewise submit`.
#SBATCH --job-name=slicewise
#SBATCH --array=1-@SHARDS@
#SBATCH --cpus-per-task=@CPUS@
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=shard-%a.log
shard=$SLURM_ARRAY_TASK_ID
ended=$PWD/shard-$shard.code
cd @WORK@ || exit 1
@RUN@
code=$?
case $code in
0 | 2 | 126 | 127) ;;
*)
    # Up to three times again, from where it stopped.
    [ "${SLURM_RESTART_COUNT:-0}" -lt 3 ] && scontrol requeue "${SLURM_ARRAY_JOB_ID}_$shard" && exit "$code"
    ;;
esac
echo "$code" >"$ended"
exit "$code"
