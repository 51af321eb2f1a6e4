#!/bin/sh
# Make the environment of the competitors: sh benchmarks/peers/setup.sh [python]
set -eu
cd "$(dirname "$0")/../.."
"${1:-python3}" -m venv .venv-peers
.venv-peers/bin/python -m pip install --quiet --upgrade pip
.venv-peers/bin/python -m pip install --quiet -r benchmarks/peers/requirements.txt
# Without its pins, which no longer install.
.venv-peers/bin/python -m pip install --quiet --no-deps pygranso==1.2.0
