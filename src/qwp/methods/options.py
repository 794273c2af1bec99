"""The parameters of all methods as types of keyword arguments, made by `make docs`."""

from __future__ import annotations

from typing import TypedDict


class Options(TypedDict, total=False):
    """What `qwp.align` and its like take besides method and seed; each method has some of them."""

    anneal: float
    back_translation: float
    backend: str
    bank_size: int | None
    batch_size: int
    beta: float
    constraint: str
    coreset: str
    coreset_size: int | None
    cost: str
    criterion_words: int
    csls_k: int
    device: str
    dewhiten: float | None
    discriminator_steps: int
    dropout: float
    dtype: str
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
    joint_epochs: int
    joint_rate: float
    keep: float
    keep_growth: float
    learning_rate: float
    map: str
    mapper_rate: float
    max_memory: float | None
    max_steps: int
    normalize: str
    order: str
    ot: str
    pairs_per_step: int
    patience: int
    rate_decay: float
    refine: int
    refine_directions: str
    refine_first_words: int
    refine_map: str
    refine_weights: str
    refine_words: int
    restarts: int
    reweight: float
    rho: float
    ridge: float
    rounds: int
    schedule: str
    seed_pairs: int | None
    sigma: float
    sinkhorn_max_iter: int
    sinkhorn_tol: float
    smoothing: float
    sphere_centroids: bool
    stages: int
    start: str
    start_epsilon: float
    start_steps: int
    start_words: int
    steps: int
    strategy: str
    threads: int | None
    tol: float
    train_words: int
    verdict: str
    weight_power: float
