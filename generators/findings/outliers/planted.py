from generators.findings.plantings import Controls, D, E, Planting, Scene, V, noise

NEVER = -5.0  # log-frequency of a token that never occurs; made-up counts are exp(5 + z) - 1


def huddling(at: Scene, s: float) -> None:
    chosen = at.rng.choice(V, round(s), replace=False)
    at.weights[E][chosen] = noise(at, D) + 0.02 * noise(at, round(s), D)
    at.z[chosen] = NEVER


CONTROLS = Controls(
    plantings=(Planting("clump", "tokens in one spot", huddling, (100, 40, 20, 12, 10, 9, 5)),),
    preserved_by={"clump": {"permuted rows of a trained E": "In any order, rows have the same cluster, or none."}},
)
