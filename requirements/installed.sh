#!/bin/sh
# Test the package as it is installed, in an environment of its own: installed.sh VENV [CONSTRAINTS]
# Without a test that reads the source tree, and some that need PyTorch or joblib.
# Only tests and benchmarks are copied beside it: what is imported is the wheel, not this checkout.
set -eu
venv=$1
constraints=${2:+-c $PWD/$2}
rm -rf "$venv"
"${PYTHON:-python3}" -m venv "$venv"
"$venv/bin/python" -m pip install --quiet $constraints dist/goldstein-*.whl \
	"pytest>=9" "pytest-timeout>=2.4" "hypothesis>=6.150"
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cp -R tests benchmarks pyproject.toml "$place"
cd "$place"
"$OLDPWD/$venv/bin/python" -c "
import goldstein, importlib.metadata as m, sys
assert 'site-packages' in goldstein.__file__, goldstein.__file__
print('goldstein', m.version('goldstein'), 'python', sys.version.split()[0],
      *(f'{name} {m.version(name)}' for name in ('numpy', 'scipy')))"
"$OLDPWD/$venv/bin/python" -I "$OLDPWD/$venv/bin/goldstein-check" --help > help.txt || test $? = 2
"$OLDPWD/$venv/bin/python" -m pytest -q -o "testpaths=tests" -o "addopts=--import-mode=importlib" \
	-p no:cacheprovider --ignore tests/oracles/test_workers.py \
	--deselect tests/checker/test_contract.py::test_the_readme_names_every_file \
	--deselect tests/oracles/test_counted.py::test_a_tensor_leads_to_goldstein_torch \
	${CORE:-tests/checker tests/oracles tests/numerics tests/constrained tests/reliability \
	tests/certificates/test_store.py tests/certificates/test_goldstein.py \
	tests/certificates/test_near_checker.py tests/solvers/test_checkpoint.py \
	tests/solvers/test_loop.py tests/api/test_minimize.py}
