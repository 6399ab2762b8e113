"""Trains on complete rows as they arrive: ``python -m examples.training_samples.train TABLE --checkpoint FILE``.

The "model" is a logistic regression by gradient descent over batches, in numpy. Model and position are kept in one
file, so after a stop, or a crash, each sample has been used exactly once.
"""

from __future__ import annotations

import argparse
import json
import threading
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudilake import Position, Samples

FEATURES = ["price", "age_days", "affinity"]
LABEL = "clicked"
_RATE = 1.0
_ROWS_OF_A_STEP = 64


@dataclass
class Model:
    """A logistic regression: the weight of each feature and the bias, the samples seen, and the next position."""

    weights: npt.NDArray[np.float64] = field(default_factory=lambda: np.zeros(len(FEATURES) + 1))
    seen: int = 0
    position: Position | None = None

    def learn(self, batch: pa.RecordBatch) -> float:
        """Take the samples of a batch; returns their mean loss before."""
        inputs = np.column_stack([batch.column(name).to_numpy() for name in FEATURES] + [np.ones(batch.num_rows)])
        labels = batch.column(LABEL).to_numpy(zero_copy_only=False).astype(np.float64)
        chances = 1 / (1 + np.exp(-inputs @ self.weights))
        loss = -np.mean(labels * np.log(chances + 1e-12) + (1 - labels) * np.log(1 - chances + 1e-12))
        for low in range(0, len(labels), _ROWS_OF_A_STEP):
            rows, wanted = inputs[low : low + _ROWS_OF_A_STEP], labels[low : low + _ROWS_OF_A_STEP]
            error = 1 / (1 + np.exp(-rows @ self.weights)) - wanted
            self.weights -= _RATE / np.sqrt(1 + self.seen / 1_000) * rows.T @ error / len(wanted)
            self.seen += len(wanted)
        return float(loss)

    def save(self, file: Path) -> None:
        """Keep model and position together, in one step."""
        position = None if self.position is None else self.position.to_json()
        text = json.dumps({"weights": self.weights.tolist(), "seen": self.seen, "position": position})
        beside = file.with_suffix(".new")
        beside.write_text(text)
        beside.replace(file)

    @classmethod
    def load(cls, file: Path) -> Model:
        """The kept model; a new one if there is none."""
        if not file.exists():
            return cls()
        kept = json.loads(file.read_text())
        position = None if kept["position"] is None else Position.from_json(kept["position"])
        return cls(np.array(kept["weights"]), kept["seen"], position)


def train(table: str, checkpoint: Path, samples: int | None = None, stop: threading.Event | None = None) -> Model:
    """Train until ``samples`` samples are seen in all, or ``stop`` is set; None follows the table without end."""
    model = Model.load(checkpoint)
    asked = Samples(
        table,
        columns=[*FEATURES, LABEL],
        since=model.position or Position(),
        follow=True,
        poll_s=0.5,
        stop=stop or threading.Event(),
    )
    for batch in asked:
        loss = model.learn(batch)
        model.position = asked.position
        model.save(checkpoint)
        print(f"{model.seen:,} samples, loss {loss:.3f}", flush=True)
        if samples is not None and model.seen >= samples:
            break
    return model


def main() -> None:
    """Train as the command line asks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", help="path or URI of the table")
    parser.add_argument("--checkpoint", type=Path, default=Path("model.json"))
    parser.add_argument("--samples", type=int, default=None, help="stop after so many samples")
    given = parser.parse_args()
    model = train(given.table, given.checkpoint, given.samples)
    print(dict(zip([*FEATURES, "bias"], model.weights.round(2).tolist(), strict=True)))


if __name__ == "__main__":
    main()
