#!/bin/sh
# Compile the proof, let Coq's independent checker go over it, compare its assumptions with
# assumptions.txt, and build goldstein-check-verified, all in one folder. Exit code 77: no Coq.
set -e
here="$(cd "$(dirname "$0")" && pwd)"
out="${1:-build/verified}"
modules="Definitions Programs Numbers Check NumbersSound Calculus Sound Convex Extract"

# Coq itself brings Zarith, but not what is needed to compile with it.
have() {
    command -v coqc && command -v ocamlfind && test -f "$(ocamlfind query zarith)/big_int_Z.cmi"
} >/dev/null 2>&1

if ! have && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "installing Coq and OCaml ..."
    { timeout 30 apt-get update -qq
      DEBIAN_FRONTEND=noninteractive timeout 90 apt-get install -y -qq --no-install-recommends \
          coq ocaml ocaml-findlib libzarith-ocaml-dev; } >/dev/null 2>&1 || true
fi
if ! have; then
    echo "********************************************************************************" >&2
    echo "** No Coq (Debian: apt-get install coq ocaml ocaml-findlib libzarith-ocaml-dev)." >&2
    echo "** The proof of the checker is NOT checked, and its tests are SKIPPED." >&2
    echo "********************************************************************************" >&2
    exit 77
fi

mkdir -p "$out"
if command -v flock >/dev/null; then exec 9>"$out/lock" && flock 9; fi
if [ -f "$out/built" ] && [ -z "$(find "$here" -type f -newer "$out/built")" ]; then
    cat "$out/built"
    exit 0
fi
rm -f "$out/built"
cp "$here"/*.v "$here"/*.ml "$out"
cd "$out"
if grep -nwE "Admitted|admit|Axiom|Axioms|Parameter|Parameters|Conjecture" ./*.v; then
    echo "something is assumed that is not proved" >&2
    exit 1
fi
for module in $modules; do coqc -q -Q . Verified "$module.v"; done

cat > Assumed.v <<'END'
From Verified Require Import Sound Convex.
Definition theorems := (check_sound, minimum_sound).
Print Assumptions theorems.
END
coqc -q -Q . Verified Assumed.v > assumed.txt
grep -oE '^[A-Za-z_][^ :]*' assumed.txt | grep -vx Axioms | LC_ALL=C sort -u > assumed.names
LC_ALL=C comm -23 assumed.names "$here/assumptions.txt" > unexpected.names
if [ -s unexpected.names ]; then
    echo "assumptions beyond the axioms of the reals:" >&2
    cat unexpected.names >&2
    exit 1
fi

# The libraries of Coq itself are not gone over again (-norec): that takes minutes.
checked=""
for module in $modules; do checked="$checked -norec Verified.$module"; done
coqchk -silent -o -Q . Verified $checked > checked.txt 2>&1 || { cat checked.txt; exit 1; }
if sed -n '/^\* Axioms/,/^\* Constants/p' checked.txt | grep Verified; then
    echo "coqchk finds an axiom of ours" >&2
    exit 1
fi

ocamlfind ocamlopt -package zarith,unix -linkpkg checker.mli checker.ml main.ml \
    -o goldstein-check-verified
{
    echo "check_sound and minimum_sound are proved, and accepted by coqchk. They rest on"
    cat assumed.txt
    echo "built: goldstein-check-verified"
} > built
cat built
