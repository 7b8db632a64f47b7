#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# sbatch examples/cluster/slurm.sh: two parameter servers and three workers on two nodes. The certificates are in $HOME/certs, from
# `millrace certs $HOME/certs --host NODE ...`; the checkpoints in $HOME/line, a folder that all nodes see.
#SBATCH --ntasks=5
#SBATCH --nodes=2
#SBATCH --distribution=block
#SBATCH --requeue
#SBATCH --signal=USR1@120
export MILLRACE_JOBS=ps=2,worker=3 MILLRACE_BIND=0.0.0.0 MILLRACE_ALLOW_FILES=$HOME/line
export MILLRACE_TLS_CA=$HOME/certs/ca.pem MILLRACE_TLS_CERT=$HOME/certs/task.pem MILLRACE_TLS_KEY=$HOME/certs/task.key
srun --kill-on-bad-exit=1 python examples/cluster/train.py --logdir "$HOME/line"
