"""Optimal transport between weighted point sets, and the coresets that summarise whole spaces.

Convention: `epsilon` multiplies sum P log(P / (a b^T)), and the cost is not rescaled. For unit vectors the squared
Euclidean cost is 2 - 2<x, y>, so `epsilon` on `sqeuclidean` equals `epsilon / 2` on `dot` (-<x, y>). Unbalanced
transport replaces the two marginal constraints by `rho` times their KL divergences (Chizat et al. 2018).
"""
