from generators.findings.plantings import Controls, E, Planting, Scene, V


def copied(at: Scene, s: float) -> None:
    chosen = at.rng.choice(V, round(s), replace=False)
    at.weights[E][chosen] = at.weights[E][chosen[:1]]


CONTROLS = Controls(plantings=(Planting("shared-rows", "rows that are equal", copied, (120, 12, 3, 2, 1)),))
