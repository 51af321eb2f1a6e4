#!/bin/sh
# Fetch the data sets of the studies once: Debian packages for R's data, Python packages for the others.
# Everything lands in one folder of .npz files; nothing of it is needed at run time or by the tests.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
data=${GOLDSTEIN_DATA:-$here/data}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
apt-get download r-cran-mlbench r-cran-kernlab r-bioc-multtest weka
for package in *.deb; do dpkg-deb -x "$package" debian; done
python3 -m venv converter
converter/bin/pip install --quiet -r "$here/requirements.txt"
mkdir -p "$data"
converter/bin/python "$here/convert.py" debian "$data"
