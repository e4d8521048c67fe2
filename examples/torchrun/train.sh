#!/bin/bash
# Trains on several machines, which push samples to each other. Run it on each of them:
# train.sh NODES NODE FIRST DATASET CHECKPOINT
# NODES is how many machines there are, NODE the number of this one, from 0, FIRST the address of
# machine 0, and CHECKPOINT a file that all can read and write. If a machine is lost, all ranks end with
# an error that names it; started again, on as many machines as are left, training goes on from there.
set -euo pipefail
nodes=$1 node=$2 first=$3
shift 3

# The same on all machines, and another for each job.
: "${GRISTWAY_JOB_SECRET:?is not set: make a secret with 'openssl rand -hex 16'}"

# The interface that the machines reach each other by: nodes listen nowhere else.
export GRISTWAY_LISTEN=${GRISTWAY_LISTEN:-eth0}

exec torchrun --nnodes "$nodes" --node-rank "$node" --nproc-per-node "${RANKS:-8}" \
  --master-addr "$first" --master-port "${MASTER_PORT:-29500}" \
  "$(dirname "$0")/../python/ddp.py" "$@"
