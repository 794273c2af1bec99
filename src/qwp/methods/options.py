"""Types of methods and their parameters, written by `make generated`."""

from __future__ import annotations

from typing import Literal, TypeAlias, TypedDict

Method: TypeAlias = Literal[
    "qwp",
    "wp",
    "self-learning",
    "gromov",
    "adversarial",
    "dema",
    "identical",
    "least-squares",
    "procrustes",
    "rcsls",
    "proc-b",
]


class Options(TypedDict, total=False):
    """Parameters of `qwp.align` and similar functions besides method and seed; each method has some of them."""

    anchor_weight: float | None
    anneal: float
    back_translation: float
    backend: Literal["auto", "numpy", "torch"]
    bank_size: int | None
    batch_size: int
    beta: float
    constraint: Literal["none", "spectral"]
    coreset: Literal["random", "kmeans++", "lloyd"]
    coreset_size: int | None
    cost: Literal["sqeuclidean", "dot"]
    criterion_words: int
    csls_k: int
    device: str
    dewhiten: float | None
    discriminator_steps: int
    dropout: float
    dtype: Literal["float32", "float64"]
    effort: str
    epoch_steps: int
    epochs: int
    epsilon: float
    final_rate: float
    final_sigma: float
    frequency_power: float
    frequency_prior: float
    growth: int
    hidden_size: int
    identical: bool
    identical_weight: float
    keep: float
    keep_growth: float
    learning_rate: float
    map: Literal["reweighted", "orthogonal"]
    mapper_rate: float
    max_memory: float | None
    max_steps: int
    normalize: str
    order: Literal["auto", "given", "none"]
    ot: Literal["balanced", "unbalanced", "exact"]
    pairs_per_step: int
    patience: int
    rate_decay: float
    refine: int
    refine_directions: Literal["mutual", "forward", "backward", "union"]
    refine_first_words: int
    refine_map: Literal["reweighted", "orthogonal"]
    refine_weights: Literal["equal", "csls"]
    refine_words: int
    restarts: int
    reweight: float
    rho: float
    ridge: float
    rounds: int
    schedule: Literal["grave", "fixed", "budget"]
    seed_pairs: int | None
    sigma: float
    sinkhorn_max_iter: int
    sinkhorn_tol: float
    smoothing: float
    sphere_centroids: bool
    stages: int
    start: Literal[
        "auto",
        "unsupervised",
        "profiles",
        "belief-propagation",
        "fused",
        "frank-wolfe",
        "identity",
        "identical",
        "lexicon",
        "matrix",
        "random",
        "least-squares",
        "procrustes",
    ]
    start_epsilon: float
    start_steps: int
    start_words: int
    steps: int
    threads: int | None
    tol: float
    train_words: int
    update: Literal["normalized", "gradient"]
    verdict: Literal["full", "exact", "quick", "none"]
    weight_power: float
