#!/bin/sh
# Build a native peer from a copy of its sources, which are not part of this project:
#   sh benchmarks/peers/native/build.sh nonopt FOLDER   # the folder src of NonOpt; needs g++, LAPACK
#   sh benchmarks/peers/native/build.sh lmbm FOLDER     # lmbm.f, lmsub.f, matcal.f; needs gfortran
# LAPACK_LIBS replaces the default "-lopenblas".
set -eu
here="$(cd "$(dirname "$0")" && pwd)"
out="$here/../../../.venv-peers/native"
mkdir -p "$out"
case "${1:-}" in
nonopt)
    ${CXX:-g++} -O2 -fPIC -w -std=c++11 -shared -I"$here" -I"$2" "$here/nonopt.cpp" "$2"/*.cpp \
        -o "$out/nonopt.so" ${LAPACK_LIBS:--lopenblas}
    ;;
lmbm)
    objects="$(mktemp -d)"
    ${CC:-gcc} -O2 -fPIC -c -I"$here" "$here/lmbm.c" -o "$objects/peer.o"
    for part in lmbm lmsub matcal; do
        ${FC:-gfortran} -O2 -fPIC -w -std=legacy -c "$2/$part.f" -o "$objects/$part.o"
    done
    ${FC:-gfortran} -shared "$objects"/*.o -o "$out/lmbm.so"
    rm -r "$objects"
    ;;
*)
    sed -n '2,5p' "$0"
    exit 2
    ;;
esac
echo "built $out/$1.so"
